from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.core.parsing.letor import parse_rows, survey
from corank.core.parsing.small import (
    BAD_ID,
    BAD_LABEL,
    BAD_QID,
    BAD_VALUE,
    DONE,
    ID_ORDER,
    ID_RANGE,
    INTEGER_QID,
    LARGE_VALUE,
    NO_QID,
    NO_ROOM,
    PADDING,
    PAUSED,
    QID_POSITIONS,
    TEXT_QID,
    ParserSettings,
    Sheet,
)


def padded(text: str) -> np.ndarray:
    return np.frombuffer(text.encode() + b"\n" * PADDING, dtype=np.uint8)


def parse(
    text: str, width: int = -1, qids: int = NO_QID, n_hard: int = 8, last_id: int = 99
) -> tuple[tuple, Sheet, np.ndarray]:
    n, nnz = text.count("\n") + 1, text.count(":")
    sheet = Sheet(
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n * width if width > 0 else nnz),
        np.zeros(nnz, np.int32),
        np.zeros(n + 1, np.int32),
    )
    hard = np.zeros((n_hard, 3), np.int64)
    return (
        parse_rows(padded(text), 0, len(text), 0, 0, 0, sheet, ParserSettings(width, last_id, qids, 1e30), hard),
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
    found = survey(padded(text), 0, len(text))[4]
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
    assert survey(padded(text), 0, len(text)) == expected


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


def test_hard_numbers_are_listed_and_a_full_list_pauses_at_a_line() -> None:
    long = "1." + "7" * 30
    text = f"{long} 1:{long}\n1 1:{long} 2:{long}\n1 1:1\n"
    (code, position, row, at, n_hard, _), _, hard = parse(text, n_hard=3)
    assert (code, text[position:], row, at, n_hard) == (PAUSED, text.split("\n", 1)[1], 1, 1, 2)
    assert [text[a:b] for a, b, _ in hard[:2].tolist()] == [long, long]
    assert hard[:2, 2].tolist() == [-1, 0]


def test_more_rows_or_values_than_room_are_refused() -> None:
    sheet = Sheet(*(np.zeros(2, kind) for kind in (float, np.int64, np.int64, float, np.int32)), np.zeros(3, np.int32))
    hard = np.zeros((1, 3), np.int64)
    for text, place in (("1 1:1 2:1\n1 1:1\n", 14), ("1\n1\n1\n", 4)):
        result = parse_rows(padded(text), 0, len(text), 0, 0, 0, sheet, ParserSettings(-1, 9, NO_QID, 1e30), hard)
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
        ("1 1:-1e31\n", NO_QID, LARGE_VALUE, 4),
    ],
)
def test_every_fault_has_its_code_and_place(text: str, qids: int, code: int, column: int) -> None:
    assert parse(text, qids=qids)[0][:2] == (code, column)
