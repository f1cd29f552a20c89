"""Names of authors, keywords and references in one cell."""

from __future__ import annotations

import re
from collections.abc import Iterable

from corank_lab.records.fields.clean import clean_line, is_absent

_AND = re.compile(r" (?:and|&) ")
_LINES = re.compile(r"[\r\n]+")
_FIRST_AND = re.compile(r"\s{0,20}and\s")
_INITIALS = re.compile(r"(?:[^\W\d_]\.?[ -]?){1,5}(?:,? (?:Jr|Sr|II|III|IV)\.?)?")
_ENDS_IN_INITIALS = re.compile(r".+\s(?:[^\W\d_a-zß-ÿ][^\W\d_]?\.?-?){1,4}(?: (?:Jr|Sr|2nd|3rd|II|III)\.?)?")
_ID_NUMBER = re.compile(r"\s*\(\d{6,}\)$")
_OTHERS = re.compile(r"(?:et al\.?|and others|others)", re.IGNORECASE)


def split_authors(values: Iterable[str], *, is_cell: bool, is_bibtex: bool = False) -> tuple[str, ...]:
    """Return the authors in the values of a column or tag."""
    found: list[str] = []
    for value in values:
        found += _parts(value, is_cell, is_bibtex)
    cleaned = (clean_line(one).strip(" ;,|") for one in found)
    cleaned = (_ID_NUMBER.sub("", one).strip(" ,") if one.endswith(")") else one for one in cleaned)
    return tuple(one for one in cleaned if one and not _OTHERS.fullmatch(one) and not is_absent(one))


def _parts(value: str, is_cell: bool, is_bibtex: bool) -> list[str]:
    if is_bibtex:
        return _outside_braces(" ".join(value.split()).split(" and "))
    if ";" in value:
        return value.split(";")
    if "|" in value:
        return value.split("|")
    lines = _LINES.split(value.strip())
    if len(lines) > 1:
        return [_FIRST_AND.sub("", one, count=1) if _FIRST_AND.match(one) else one for one in lines]
    joined = _AND.split(" ".join(value.split()))
    if len(joined) > 1 and all("," in one for one in joined):
        return joined
    return _by_commas(value) if is_cell else [value]


def _outside_braces(parts: list[str]) -> list[str]:
    """Put names together again that were split inside braces."""
    found: list[list[str]] = []
    depth = 0
    for part in parts:
        if depth > 0:
            found[-1].append(part)
        else:
            found.append([part])
            depth = 0
        depth += part.count("{") - part.count("}")
    return [" and ".join(one) for one in found]


def _by_commas(value: str) -> list[str]:
    pieces = [one.strip() for one in re.split(r",\s+|,(?=[^\W\d_])", value.strip().strip(",")) if one.strip()]
    if len(pieces) <= 1:
        return pieces
    pieces[-1] = re.sub(r"^(?:and|&)\s+", "", pieces[-1])
    if all(_ENDS_IN_INITIALS.fullmatch(one) for one in pieces) or (
        len(pieces) > 2 and sum(" " in one for one in pieces) > 0.7 * len(pieces)
    ):
        # "Griffin DK, O'Connor RE.", or "Zixiao Yang, Baoyu Jiang, Xing Xu"
        pieces[-1] = pieces[-1][:-1] if pieces[-1].endswith(".") and not pieces[0].endswith(".") else pieces[-1]
        return pieces
    if len(pieces) > 2 and len(pieces) % 2 == 0 and all(_INITIALS.fullmatch(one) for one in pieces[1::2]):
        return [f"{family}, {given}" for family, given in zip(pieces[::2], pieces[1::2], strict=True)]
    if len(pieces) == 2 and all(" " in one and len(one.split()) <= 4 for one in pieces):
        return pieces
    return [value]


def split_keywords(values: Iterable[str], *, is_cell: bool) -> tuple[str, ...]:
    """Return the different keywords in the values of a column or tag."""
    found: dict[str, None] = {}
    for value in values:
        parts = re.split(r"[;|\r\n]", value)
        if len(parts) == 1 and is_cell:
            parts = re.split(r",\s*(?![^()]*\))", value) if len(value) < 20_000 else value.split(",")
        for part in parts:
            one = clean_line(part).strip(" ;,")
            if one and not is_absent(one):
                found.setdefault(one)
    return tuple(found)


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
