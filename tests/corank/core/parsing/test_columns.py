from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corank.core.parsing.columns import gather_lines, split_lines
from corank.core.parsing.small import BAD_NUMBER, DONE, FEW_COLUMNS, MANY_COLUMNS, PADDING, Fields


def split(text: str) -> tuple[tuple[int, int, int], Fields]:
    most = text.count("\n") + 1
    table = Fields(
        np.zeros((most, 2, 2), np.int64), np.zeros(most, np.bool_), np.zeros(most), np.zeros((most, 2), np.int64)
    )
    padded = np.frombuffer(text.encode() + b"\n" * PADDING, dtype=np.uint8)
    return split_lines(padded, len(text.encode()), np.array([0, -1, 1]), 1, table), table


names = st.text("ab#é:", min_size=1, max_size=4)
rows = st.lists(st.tuples(names, st.integers(-99, 99), names), max_size=8)
gaps = st.sampled_from([" ", "\t", "  \t"])


@given(rows, gaps, st.sampled_from(["\n", "\r\n", " \n\n"]))
def test_lines_split_as_python_splits_them(chosen: list[tuple[str, int, str]], gap: str, end: str) -> None:
    text = "".join(gap.join([first, str(number), last]) + end for first, number, last in chosen)
    (code, position, n), table = split(text)
    content = text.encode()
    assert (code, position, n) == (DONE, len(content), len(chosen))
    expected = [line.split() for line in text.splitlines() if line.strip()]
    found = [[content[a:b].decode() for a, b in spans] for spans in table.spans[:n].tolist()]
    assert found == [[line[0], line[2]] for line in expected]
    assert table.numbers[:n].tolist() == [float(line[1]) for line in expected]
    firsts = [line[0] for line in expected]
    assert table.fresh[:n].tolist() == [k == 0 or firsts[k] != firsts[k - 1] for k in range(n)]
    lines = np.zeros(sum(len(line[2].encode()) + 1 for line in expected), np.uint8)
    gather_lines(np.frombuffer(content + b"\n", np.uint8), table.spans[:n, 1], lines)
    assert lines.tobytes().decode() == "".join(line[2] + "\n" for line in expected)


def test_faults_have_a_code_and_a_place() -> None:
    assert split("a 1 b\na 1\n")[0] == (FEW_COLUMNS, 9, 1)
    assert split("a 1 b c\n")[0] == (MANY_COLUMNS, 6, 0)
    assert split("a x b\n")[0] == (BAD_NUMBER, 2, 0)
    assert split("a 1x b\n")[0] == (BAD_NUMBER, 2, 0)


def test_a_number_that_needs_exact_arithmetic_is_left_with_its_place() -> None:
    long = "1." + "3" * 40
    _, table = split(f"a {long} b\n")
    assert np.isnan(table.numbers[0])
    assert table.number_spans[0].tolist() == [2, 2 + len(long)]
