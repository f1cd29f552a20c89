"""
Cited works of a record, as its file gives them: ids, DOIs, or references in free text.

A list of ids or DOIs becomes its parts. Free text, such as Scopus's References or the CR of Web of Science, becomes a
list of single references, to be matched by `corank_lab.records.references`. `is_identifier` tells the two apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_ID = re.compile(
    r"(?:https?://(?:dx\.)?(?:doi|openalex)\.org/\S+|(?:doi:)?10\.\d{4,9}/\S+"
    r"|[A-Za-z]{0,30}[:_-]?\d[\w.:/-]*|[a-z]+(?:_[a-z0-9]+)*_\d{4}[a-z]?(?:-\d+)?)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[\s|;,]+")
_LINE = re.compile(r"[\r\n|]+")
_SEMICOLON = re.compile(r";\s+")
_COMPLETE = re.compile(r"\b(?:1[5-9]|20)\d\d[a-z]?\b|\b10\.\d{4,9}/")
_COPYRIGHT = re.compile(r"\s*(?:copyright\b|\(c\)|©)", re.IGNORECASE)
_EDGES = " ,;\t\r\n"


def is_identifier(cited: str) -> bool:
    """Return whether a reference is an id or a DOI, not free text."""
    return _ID.fullmatch(cited) is not None


def split_references(values: Iterable[str], *, is_list: bool = False) -> tuple[str, ...]:
    """Return the single references in the values of a column or tag."""
    found: list[str] = []
    for value in values:
        if _COPYRIGHT.match(value):
            continue  # the tag CR in Ovid's exports
        if is_list:
            found.append(value.strip(_EDGES))
            continue
        tokens = [one for one in _BETWEEN.split(value) if one]
        if tokens and all(_ID.fullmatch(one) for one in tokens):
            found += tokens
            continue
        lines = [one for one in _LINE.split(value) if one.strip(_EDGES)]
        found += lines if len(lines) > 1 else _sentences(value)
    return tuple(one for text in found if (one := " ".join(text.split()).strip(_EDGES)))


def _sentences(text: str) -> list[str]:
    """Split at semicolons; a part without a year or a DOI belongs to the next one."""
    found: list[str] = []
    begun: list[str] = []
    for part in _SEMICOLON.split(text):
        begun.append(part)
        if _COMPLETE.search(part):
            found.append("; ".join(begun))
            begun = []
    rest = "; ".join(begun)
    if found and len(rest) < 40:  # such as an editor's note behind the last reference
        return [*found[:-1], f"{found[-1]}; {rest}"]
    return [*found, rest]
