"""Ovid's text with names of fields: a name on a line of its own, its values indented below."""

from __future__ import annotations

import re
from itertools import pairwise

from corank.data import LINE_END
from corank_lab.records.fields.columns import fields_of, find_columns
from corank_lab.records.parsers.parsed import ParsedFile, RawRecord, columns_of

_NUMBER = re.compile(r"<\d+\s*\.?\s*>")
_INDENTED = re.compile(r"[ \t]+\S")


def is_labelled(lines: list[str]) -> bool:
    """Return whether a number in brackets comes first, then names with indented values, one of them a title."""
    if not lines or not _NUMBER.fullmatch(lines[0].strip()):
        return False
    names = [
        line.strip() for line, following in pairwise(lines)
        if not _INDENTED.match(line) and _INDENTED.match(following)
    ]  # fmt: skip
    return any("title" in fields_of(one) for one in names)


def parse_labelled(text: str, name: str) -> ParsedFile:
    """Parse the records."""
    records: list[RawRecord] = []
    places: list[str] = []
    label = ""
    for at, line in enumerate(LINE_END.split(text), 1):
        if _NUMBER.fullmatch(line.strip()):
            records.append({})
            places.append(f"{name}, line {at}")
            label = ""
        elif _INDENTED.match(line) and label and records:
            records[-1].setdefault(label, []).append(line.strip())
        elif line.strip():
            label = line.strip()
    return ParsedFile("Ovid", records, places, find_columns(columns_of(records)))
