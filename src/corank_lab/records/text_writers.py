"""Records as text: RIS and PubMed's .nbib, which have lines of a tag and a value; BibTeX; JSON lines."""

from __future__ import annotations

import json
import re
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Any

from corank_lab.records.columns import fields_of
from corank_lab.records.identity import family_name
from corank_lab.records.output import KINDS, LISTS, OWN, OutputRecord, one_cell, squeeze, tag_lines

RIS_TAGS = {
    "id": "ID", "title": "TI", "abstract": "AB", "authors": "AU", "year": "PY", "journal": "T2", "doi": "DO",
    "pmid": "PM", "accession": "AN", "keywords": "KW", "url": "UR", "references": "CR",
}  # fmt: skip
NBIB_TAGS = {
    "pmid": "PMID", "title": "TI", "abstract": "AB", "authors": "FAU", "year": "DP", "journal": "JT", "doi": "AID",
    "keywords": "OT", "accession": "AN", "id": "ID", "url": "UR", "references": "CR",
}  # fmt: skip
BIBTEX_TAGS = {
    "title": "title", "abstract": "abstract", "authors": "author", "year": "year", "journal": "journal", "doi": "doi",
    "pmid": "pmid", "accession": "accession_number", "keywords": "keywords", "url": "url", "references": "references",
}  # fmt: skip
"""Tag of each standard value; the last four of .nbib are not PubMed's own. A BibTeX entry has the id as its key."""

RIS_TYPES = {
    "article": "JOUR", "book": "BOOK", "inbook": "CHAP", "incollection": "CHAP", "inproceedings": "CPAPER",
    "conference": "CPAPER", "phdthesis": "THES", "mastersthesis": "THES", "techreport": "RPRT", "unpublished": "UNPB",
}  # fmt: skip
"""Types of RIS by the types of BibTeX."""

_RIS_TAG, _NBIB_TAG = re.compile(r"[A-Z][A-Z0-9]"), re.compile(r"[A-Z][A-Z0-9]{1,3}")
_NBIB_WIDTH = 82


def ris_text(records: Sequence[OutputRecord]) -> str:
    """Return records as RIS; every value is one line, and fields without a tag become notes (``N1``)."""
    texts = []
    for record in records:
        lines = [
            (tag, name, value) for tag, name, value in tag_lines(record, "ris", RIS_TAGS) if tag not in ("TY", "ER")
        ]
        pairs = [("TY", _ris_type(record)), *_with_notes(record, lines, _RIS_TAG, "N1"), ("ER", "")]
        texts.append("".join(f"{tag}  - {value}\n" for tag, value in pairs))
    return "\n".join(texts) + "\n"


def nbib_text(records: Sequence[OutputRecord]) -> str:
    """Return records in the format of PubMed; fields without a tag become general notes (``GN``)."""
    texts = []
    for record in records:
        lines = tag_lines(record, "nbib", NBIB_TAGS)
        lines = [(tag, name, f"{squeeze(value)} [doi]" if (tag, name) == ("AID", "doi") else value)
                 for tag, name, value in lines]  # fmt: skip
        # PMID begins a record, also without a number
        begin = [] if record.text("pmid") else ["PMID-"]
        pairs = _with_notes(record, lines, _NBIB_TAG, "GN")
        texts.append("\n".join([*begin, *(_nbib_line(tag, value) for tag, value in pairs)]) + "\n")
    return "\n".join(texts)


def _with_notes(
    record: OutputRecord, lines: Sequence[tuple[str, str, str]], known: re.Pattern[str], note: str
) -> list[tuple[str, str]]:
    """Return tags and values; fields without a tag, the judgement and further columns become notes."""
    pairs = [
        (tag, squeeze(value)) if known.fullmatch(tag) else (note, f"{squeeze(name)}: {squeeze(value)}")
        for tag, name, value in lines
    ]
    pairs += [(note, record.mark)] if record.mark else []
    return pairs + [(note, f"{squeeze(name)}: {squeeze(text)}") for name, text in record.more.items() if text.strip()]


def _nbib_line(tag: str, value: str) -> str:
    # other values may be lists, in which every line is a value
    is_wrapped = tag in ("TI", "AB")
    lines = textwrap.wrap(value, _NBIB_WIDTH, break_long_words=False, break_on_hyphens=False) if is_wrapped else [value]
    return f"{tag:<4}- " + "\n      ".join(lines)


def _ris_type(record: OutputRecord) -> str:
    own = record.fields.get("TY", []) if record.family == "ris" else []
    if own and own[0].strip():
        return squeeze(own[0])
    entry = record.fields.get("type", [""])[0] if record.family == "bibtex" else ""
    return RIS_TYPES.get(entry.casefold(), "JOUR" if "journal" in record.values else "GEN")


_VERBATIM = ("doi", "url", "file")
_ENTRY = ("type", "key")
"""Names under which the reader keeps the type and the key of an entry."""

ESCAPES = {
    "\\": r"{\textbackslash}", "{": r"{\textbraceleft}", "}": r"{\textbraceright}", "~": r"{\textasciitilde}",
    "^": r"{\textasciicircum}", **{sign: f"\\{sign}" for sign in "&%$#_"},
}  # fmt: skip
_ESCAPES = str.maketrans(ESCAPES)


def bibtex_text(records: Sequence[OutputRecord]) -> str:
    """Return records as BibTeX in UTF-8; keys are ids, or first author and year, and differ from each other."""
    used: set[str] = set()
    return "\n".join(_entry(record, used) for record in records)


def _entry(record: OutputRecord, used: set[str]) -> str:
    is_own = record.family == "bibtex"
    own = {name: values for name, values in record.fields.items() if name not in _ENTRY} if is_own else {}
    fields: dict[str, list[str]] = {}
    for tag, name, value in tag_lines(record, "bibtex", BIBTEX_TAGS):
        if name in own or (is_own and name in _ENTRY):
            continue
        field = _field_name(tag or name)
        fields.setdefault(field if tag or field not in BIBTEX_TAGS.values() else f"{field}_source", []).append(value)
    lines = [f"  {name} = {{{_value(name, values)}}}," for name, values in fields.items()]
    # LaTeX of the source stays as it is
    lines += [f"  {name} = {{{value}}}," for name, values in own.items() for value in values if name != "included"]
    added = {_field_name(name): text for name, text in record.more.items() if text.strip()}
    added |= {"included": record.text("included")} if record.text("included") or record.has_label else {}
    lines += [f"  {name} = {{{_value(name, [text])}}}," for name, text in added.items()]
    key = _key(record, used)
    if record.text("id") not in ("", key) and "record_id" not in own:  # signs that a key cannot hold, or a repeated id
        lines.insert(0, f"  record_id = {{{escape(record.text('id'))}}},")
    return "\n".join([f"@{_bibtex_type(record)}{{{key},", *lines, "}", ""])


def _value(name: str, values: list[str]) -> str:
    if name == "author":
        # a name that contains the separator is one name in braces
        texts = [
            f"{{{escape(item)}}}" if re.search(r"\sand\s", item) else escape(item) for item in map(squeeze, values)
        ]
        return " and ".join(texts)
    text = one_cell(name, [*map(squeeze, values)])
    if name in _VERBATIM and not set("{}\\") & set(text):
        return text
    return escape(text)


def escape(text: str) -> str:
    """
    Return a text as the value of a BibTeX field: braces are balanced, and LaTeX shows the text itself.

    >>> print(escape("R&D of {x}: 5 %"))
    R\\&D of {\\textbraceleft}x{\\textbraceright}: 5 \\%
    """
    return text.translate(_ESCAPES)


def _field_name(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    result = re.sub(r"[^a-z0-9_-]+", "_", plain).strip("_-")
    return result if result[:1].isalpha() else f"field_{result}".rstrip("_")


def _bibtex_type(record: OutputRecord) -> str:
    own = {name.casefold(): values[0] for name, values in record.fields.items() if values}
    if record.family == "bibtex" and re.fullmatch(r"[A-Za-z]+", own.get("type", "")):
        return own["type"].lower()
    if record.family == "ris":
        result = next((kind for kind, form in RIS_TYPES.items() if form == own.get("ty", "").upper()), None)
        if result:
            return result
    return "article" if "journal" in record.values else "misc"


def _key(record: OutputRecord, used: set[str]) -> str:
    given = record.text("id")
    authors = record.values.get("authors", ())
    made = (family_name(authors[0]).replace(" ", "") if authors else "record") + record.text("year")
    plain = unicodedata.normalize("NFKD", given or made).encode("ascii", "ignore").decode()
    key = re.sub(r"[^A-Za-z0-9:._/+-]+", "_", plain).strip("_") or "record"
    chosen, tries = key, 2
    while chosen.casefold() in used:
        chosen, tries = f"{key}-{tries}", tries + 1
    used.add(chosen.casefold())
    return chosen


def jsonl_text(records: Sequence[OutputRecord]) -> str:
    """Return records as JSON lines: standard values first, then the fields that add something to them."""
    return "".join(json.dumps(_row(record), ensure_ascii=False) + "\n" for record in records)


def _row(record: OutputRecord) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for kind in KINDS:
        values = list(record.values.get(kind, ()))
        if kind == "included":
            row |= {kind: int(values[0]) if values else None} if values or record.has_label else {}
        elif kind == "year":
            row |= {kind: int(values[0])} if values else {}
        elif values:
            row[kind] = values if kind in LISTS else values[0]
    folded = {name.casefold() for name in row}
    for name, values in record.fields.items():
        if not record.repeats(name):
            own = f"{name}{OWN}" if name.casefold() in folded or fields_of(name) else name
            row[own] = values if len(values) > 1 else values[0]
    for name, text in record.more.items():
        row[name if name not in row else f"{name} (answer)"] = text
    return row
