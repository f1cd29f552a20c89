from __future__ import annotations

import math
import re
import struct
from fractions import Fraction

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corank.core import parsing
from corank.core.jit import compile_kernels
from corank.core.parsing import (
    BAD,
    BAD_ID,
    BAD_LABEL,
    BAD_QID,
    BAD_VALUE,
    DONE,
    GOOD,
    HARD,
    ID_ORDER,
    ID_RANGE,
    INTEGER_QID,
    LARGE_VALUE,
    NO_QID,
    NO_ROOM,
    QID_POSITIONS,
    TEXT_QID,
    Fields,
    ParserSettings,
    Sheet,
    parse_rows,
    split_lines,
    survey,
)


def padded(text: str) -> np.ndarray:
    return np.frombuffer(text.encode() + b"\n\n", dtype=np.uint8)


compile_kernels()


@numba.njit
def at_start(text):
    origin = parsing.address(text)
    value, stop, state = parsing.read_number(origin)
    return value, stop - origin, state


def read(token: str) -> tuple[float, int, int]:
    return at_start(padded(token + " "))


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def check(token: str, may_be_hard: bool = True) -> None:
    value, stop, state = read(token)
    assert stop == len(token)
    assert state == GOOD or (may_be_hard and state == HARD)
    if state == GOOD:
        assert bits(value) == bits(float(token)), token


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(0.0)
@example(-0.0)
@example(5e-324)
@example(1.7976931348623157e308)
def test_the_shortest_text_of_any_double(value: float) -> None:
    check(repr(value))


@given(st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_any_well_formed_number(token: str) -> None:
    check(token)


@given(st.integers(0, 10**6 - 1), st.text("0123456789", min_size=0, max_size=9))
def test_numbers_of_usual_length_are_never_hard(whole: int, fraction: str) -> None:
    check(f"{whole}.{fraction}", may_be_hard=False)


def test_hardly_any_double_of_seventeen_digits_is_hard() -> None:
    tokens = [repr(value) for value in np.random.default_rng(0).random(20_000).tolist()]
    read_back = [read(token) for token in tokens]
    good = [(value, token) for (value, _, state), token in zip(read_back, tokens, strict=True) if state == GOOD]
    assert all(bits(value) == bits(float(token)) for value, token in good)
    assert len(good) > 0.99 * len(tokens)


@given(st.integers(2**53, 10**18 - 1), st.integers(1, 17))
def test_half_way_cases_go_to_the_even_neighbour(mantissa: int, places: int) -> None:
    tie = Fraction(mantissa, 10**places)
    near = float(tie)
    middle = (Fraction(near) + Fraction(math.nextafter(near, 0.0))) / 2
    digits = str(middle.numerator * 10**places // middle.denominator)
    for last in (digits, str(int(digits) + 1)):
        check(f"{last[:-places]}.{last[-places:]}")


@pytest.mark.parametrize(
    "token", ["", "-", "+", ".", "-.", "e5", ".e1", "1e", "1e+", "1.5e-", "nan", "inf", "x1", "--1"]
)
def test_what_is_no_number_is_bad(token: str) -> None:
    assert read(token)[2] == BAD


@pytest.mark.parametrize("token", ["1e400", "-1e309", "123456789" * 40, "1e99999999999999999999", "1e-400"])
def test_what_leaves_the_range_is_left_to_exact_arithmetic(token: str) -> None:
    assert read(token)[1:] == (len(token), HARD)


def parse(text: str, width: int = -1, qids: int = NO_QID, last_id: int = 99) -> tuple[tuple, Sheet, np.ndarray]:
    n, nnz = text.count("\n") + 1, text.count(":")
    sheet = Sheet(
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n * width if width > 0 else nnz),
        np.zeros(nnz, np.int32),
        np.zeros(n + 1, np.int32),
    )
    hard = np.zeros((n + nnz, 3), np.int64)
    return (
        parse_rows(padded(text), len(text), 0, 0, 0, sheet, ParserSettings(width, last_id, qids, 1e20), hard),
        sheet,
        hard,
    )


lines = st.sampled_from(
    ["", "  ", "\r", "# only: a comment", " # 9:9", "1", "0 3:1.5", "2 1:1 200:-4e2", "\t1 7:0 # x:y #z", "1 2:1#9:1\r"]
)


@given(st.text("x\r\n# ", max_size=40))
def test_a_survey_finds_a_bare_return_in_a_comment(text: str) -> None:
    comments = [found.span(1) for found in re.finditer(r"#([^\n]*)", text)]
    bare = [found.start() for found in re.finditer(r"\r[^\r\n]", text)]
    hidden = [at for at in bare if any(begin <= at < end for begin, end in comments)]
    found = survey(padded(text), len(text))[4]
    # one a line is enough
    assert found == -1 if not hidden else found in hidden and "\n" not in text[hidden[0] : found]


@given(st.lists(lines, max_size=12))
def test_a_survey_counts_rows_colons_and_the_largest_id(chosen: list[str]) -> None:
    text = "".join(line + "\n" for line in chosen)
    bare = [line.partition("#")[0].split() for line in chosen]
    features = [token for tokens in bare for token in tokens[1:]]
    expected = (
        sum(bool(tokens) for tokens in bare),
        len(features),
        sum(max(len(tokens) - 2, 0) for tokens in bare),
        max((int(token.split(":")[0]) for token in features), default=0),
        -1,
    )
    assert survey(padded(text), len(text)) == expected


def test_dense_rows_and_csr_rows_hold_the_same() -> None:
    text = "1 qid:4 1:0.5 3:-2\n0 qid:-5 # none\n\n2 qid:4 2:1e3 #c\n"
    result, sheet, _ = parse(text, width=3, qids=INTEGER_QID, last_id=3)
    assert result == (DONE, len(text), 3, 0, 0, 3)
    assert sheet.values.reshape(-1, 3)[:3].tolist() == [[0.5, 0, -2], [0, 0, 0], [0, 1000, 0]]
    assert sheet.y[:3].tolist() == [1, 0, 2]
    assert sheet.qid[:3].tolist() == [4, -5, 4]
    assert [text[k:].split("\n")[0] if k >= 0 else None for k in sheet.comments[:3]] == [None, " none", "c"]
    result, sheet, _ = parse(text, qids=INTEGER_QID)
    assert result == (DONE, len(text), 3, 3, 0, 3)
    assert sheet.indptr[:4].tolist() == [0, 2, 2, 3]
    assert sheet.indices[:3].tolist() == [0, 2, 1]
    assert sheet.values[:3].tolist() == [0.5, -2, 1000]


def test_query_ids_can_be_kept_as_positions() -> None:
    text = "1 qid:ab 1:2\n1 qid:c#x\n"
    result, sheet, _ = parse(text, qids=QID_POSITIONS)
    assert result[0] == DONE
    assert [text[k] for k in sheet.qid[:2]] == ["a", "c"]


def test_hard_numbers_are_listed() -> None:
    long = "1." + "7" * 30
    text = f"{long} 1:{long}\n1 1:{long} 2:{long}\n1 1:1\n"
    (code, _, row, at, n_hard, _), _, hard = parse(text)
    assert (code, row, at, n_hard) == (DONE, 3, 4, 4)
    assert [text[a:b] for a, b, _ in hard[:4].tolist()] == [long] * 4
    assert hard[:4, 2].tolist() == [-1, 0, 1, 2]


def test_more_rows_or_values_than_room_are_refused() -> None:
    sheet = Sheet(*(np.zeros(2, kind) for kind in (float, np.int64, np.int64, float, np.int32)), np.zeros(3, np.int32))
    hard = np.zeros((9, 3), np.int64)
    for text, place in (("1 1:1 2:1\n1 1:1\n", 14), ("1\n1\n1\n", 4)):
        result = parse_rows(padded(text), len(text), 0, 0, 0, sheet, ParserSettings(-1, 9, NO_QID, 1e30), hard)
        assert result[:2] == (NO_ROOM, place)


@pytest.mark.parametrize(
    ("text", "qids", "code", "column"),
    [
        ("x 1:1\n", NO_QID, BAD_LABEL, 0),
        ("1x 1:1\n", NO_QID, BAD_LABEL, 0),
        ("1 1:1\n", INTEGER_QID, BAD_QID, 2),
        ("1 qid: 1:1\n", INTEGER_QID, BAD_QID, 2),
        ("1\n", INTEGER_QID, BAD_QID, 1),
        ("1 qid:a 1:1\n", INTEGER_QID, TEXT_QID, 6),
        ("1 qid:1234567890123456789 1:1\n", INTEGER_QID, TEXT_QID, 6),
        ("1 qid:1 1:1\n", NO_QID, BAD_ID, 2),
        ("1 3\n", NO_QID, BAD_ID, 2),
        ("1 12345678901:1\n", NO_QID, BAD_ID, 2),
        ("1 a:1\n", NO_QID, BAD_ID, 2),
        ("1 0:1\n", NO_QID, ID_ORDER, 2),
        ("1 2:1 2:1\n", NO_QID, ID_ORDER, 6),
        ("1 2:1 1:1\n", NO_QID, ID_ORDER, 6),
        ("1 100:1\n", NO_QID, ID_RANGE, 2),
        ("1 1:\n", NO_QID, BAD_VALUE, 4),
        ("1 1:nan\n", NO_QID, BAD_VALUE, 4),
        ("1 1:2:3\n", NO_QID, BAD_VALUE, 4),
        ("1 1:-1e22\n", NO_QID, LARGE_VALUE, 4),
    ],
)
def test_every_fault_has_its_code_and_place(text: str, qids: int, code: int, column: int) -> None:
    assert parse(text, qids=qids)[0][:2] == (code, column)


def split(text: str) -> tuple[tuple[int, int, int], Fields]:
    most = text.count("\n") + 1
    table = Fields(
        np.zeros((most, 2, 2), np.int64), np.zeros(most, np.bool_), np.zeros(most), np.zeros((most, 2), np.int64)
    )
    padded = np.frombuffer(text.encode() + b"\n\n", dtype=np.uint8)
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
