"""
Parsers of small texts in Python: a small command needs no numba.

The parsers read the usual spelling of the formats. For anything else, such as a fault, a carriage return or a query
id that is not an integer, they return None, and the caller runs the kernel, which decides.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from corank.core.parsing import DONE, INTEGER_QID, NO_QID, ParserSettings, Sheet

_NUMBER = rb"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_IS_NUMBER = re.compile(_NUMBER).fullmatch
_IS_PAIR = re.compile(rb"([0-9]{1,9}):(" + _NUMBER + rb")").fullmatch
_IS_QID = re.compile(rb"qid:(-?[0-9]{1,18})").fullmatch
_LAST_ID = re.compile(rb"([0-9]{1,10}):[^:]*\Z").search
# control characters other than tab and newline
_IS_UNUSUAL = re.compile(rb"[\x00-\x08\x0b-\x1f]").search


def survey(text: bytes) -> tuple[int, int, int, int, int] | None:
    """Count as the kernel of that name."""
    if _IS_UNUSUAL(text):
        return None
    rows, colons, later_colons, largest = 0, 0, 0, 0
    for line in text.split(b"\n"):
        body = line.partition(b"#")[0].strip()
        if body:
            result = body.count(b":")
            last = _LAST_ID(body)
            rows, colons, later_colons = rows + 1, colons + result, later_colons + max(result - 1, 0)
            largest = max(largest, int(last[1]) if last else 0)
    return rows, colons, later_colons, largest, -1


def parse_rows(
    text: bytes, shift: int, row: int, at: int, sheet: Sheet, rules: ParserSettings
) -> tuple[int, int, int, int, int, int] | None:
    """Parse whole lines as the kernel of that name; no number is hard."""
    if _IS_UNUSUAL(text) or rules.qids not in (NO_QID, INTEGER_QID):
        return None
    largest, begin = 0, 0
    for line in text.split(b"\n"):
        body, mark, _ = line.partition(b"#")
        words = body.split()
        if words:
            if row == len(sheet.y) or not _IS_NUMBER(words[0]):
                return None
            sheet.y[row] = float(words[0])
            first = 1
            if rules.qids == INTEGER_QID:
                qid = _IS_QID(words[1]) if len(words) > 1 else None
                if qid is None:
                    return None
                sheet.qid[row] = int(qid[1])
                first = 2
            last = 0
            for word in words[first:]:
                pair = _IS_PAIR(word)
                feature, value = (int(pair[1]), float(pair[2])) if pair else (0, 0.0)
                if not last < feature <= rules.last_id or not abs(value) < rules.too_large:
                    return None
                if rules.width < 0 and at == len(sheet.indices):
                    return None
                place = at if rules.width < 0 else row * rules.width + feature - 1
                sheet.values[place] = value
                if rules.width < 0:
                    sheet.indices[at] = feature - 1
                    at += 1
                last = feature
            largest = max(largest, last)
            sheet.comments[row] = shift + begin + len(body) + 1 if mark else -1
            row += 1
            if rules.width < 0:
                sheet.indptr[row] = at
        begin += len(line) + 1
    # an infinite number is a fault
    return (DONE, shift + len(text), row, at, 0, largest) if np.isfinite(sheet.y[:row]).all() else None


def split_lines(text: bytes, n_columns: int, number: int) -> tuple[NDArray[np.float64], list[list[str]]] | None:
    """Split lines of blank-separated columns."""
    rows = [line.split() for line in text.split(b"\n")] if not _IS_UNUSUAL(text) else [[b""]]
    rows = [row for row in rows if row]
    if not all(len(row) == n_columns and _IS_NUMBER(row[number]) for row in rows):
        return None
    numbers = np.array([float(row[number]) for row in rows])
    if not np.isfinite(numbers).all():
        return None
    return numbers, [[row[k].decode(errors="surrogateescape") for row in rows] for k in range(n_columns)]
