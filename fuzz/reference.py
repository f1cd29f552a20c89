"""
Slow reference readers of text in plain Python.

They follow the description of the formats only. They return None for a text that must be rejected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LARGEST_ID = 2**24
"""Largest feature id if the number of features is not given."""

LARGEST_SINGLE = 2.0**128 - 2.0**103
"""Smallest number that rounds to infinity in float32."""

_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INTEGER = re.compile(rb"-?[0-9]{1,18}")
_ID = re.compile(rb"[0-9]{1,10}")
_BLANKS = re.compile(rb"[ \t\r]+")
_BARE_RETURN = re.compile(rb"\r[^\r]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Row:
    """
    A line of LETOR text.

    comment: the text after ``#``, if any.
    """

    label: float
    qid: bytes | None
    values: dict[int, float]
    comment: bytes | None


def read_number(word: bytes) -> float | None:
    """Read a finite decimal number in ASCII without underscores, as `float` does."""
    if not _NUMBER.fullmatch(word):
        return None
    value = float(word)
    return value if abs(value) < float("inf") else None


def read_letor(texts: list[bytes], last_id: int = LARGEST_ID, too_large: float = float("inf")) -> list[Row] | None:
    """
    Rows of LETOR texts, one after the other.

    last_id: largest allowed feature id.
    too_large: smallest magnitude that is not allowed.
    """
    rows: list[Row] = []
    if any(text.startswith(_UTF_16) for text in texts):
        return None
    for line in (line for text in texts for line in text.removeprefix(_BYTE_ORDER_MARK).split(b"\n")):
        body, mark, comment = line.partition(b"#")
        if _BARE_RETURN.search(comment):
            return None  # rows would be hidden behind it
        words = [word for word in _BLANKS.split(body) if word]
        if not words:
            continue
        label = read_number(words.pop(0))
        qid = words.pop(0)[4:] if words and words[0].startswith(b"qid:") else None
        if label is None or qid == b"" or b"\0" in (qid or b""):
            return None
        if rows and (qid is None) != (rows[0].qid is None):
            return None
        values: dict[int, float] = {}
        for word in words:
            name, colon, number = word.partition(b":")
            value = read_number(number)
            if not colon or not _ID.fullmatch(name) or value is None or not abs(value) < too_large:
                return None
            if not max(values, default=0) < int(name) <= last_id:
                return None
            values[int(name)] = value
        rows.append(Row(label, qid, values, comment.split(b"\r")[0] if mark else None))
    return rows or None


def letor_qids(rows: list[Row]) -> list[int] | list[str] | None:
    """Return query ids: integers if all are, otherwise strings; None without query ids."""
    names = [row.qid for row in rows if row.qid is not None]
    if not names:
        return None
    if all(_INTEGER.fullmatch(name) for name in names):
        return [int(name) for name in names]
    return [name.decode(errors="surrogateescape") for name in names]


def letor_docid(comment: bytes | None) -> str:
    """Return X in ``docid = X``, otherwise the first word."""
    rest = (comment or b"").lstrip(b" \t")
    behind = rest.removeprefix(b"docid").lstrip(b" \t")
    if rest.startswith(b"docid") and behind.startswith(b"="):
        rest = behind[1:].lstrip(b" \t")
    return re.split(rb"[ \t]", rest)[0].decode(errors="surrogateescape")


def read_columns(text: bytes, names: tuple[str, ...], number: str) -> list[list[str]] | None:
    """Return the words of each line of a run or qrels file; column `number` must be numeric."""
    table: list[list[str]] = []
    if text.startswith(_UTF_16):
        return None
    for line in text.removeprefix(_BYTE_ORDER_MARK).split(b"\n"):
        words = [word for word in _BLANKS.split(line) if word]
        if words and (len(words) != len(names) or read_number(words[names.index(number)]) is None):
            return None
        table += [[word.decode(errors="surrogateescape") for word in words]] if words else []
    return table or None
