"""Records as BibTeX: one entry per record, one field per column; special characters are escaped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from corank_lab.records.identity import family_name
from corank_lab.records.writers.ris import TYPES
from corank_lab.records.writers.standard import OutputRecord, one_cell, squeeze, tag_lines

TAGS = {
    "title": "title", "abstract": "abstract", "authors": "author", "year": "year", "journal": "journal", "doi": "doi",
    "pmid": "pmid", "accession": "accession_number", "keywords": "keywords", "url": "url", "references": "references",
}  # fmt: skip
"""Field of each standard value; the id is the key of the entry, and in ``record_id`` if a key cannot hold it."""

VERBATIM = ("doi", "url", "file")
ENTRY = ("type", "key")
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
    own = {name: values for name, values in record.fields.items() if name not in ENTRY} if is_own else {}
    fields: dict[str, list[str]] = {}
    for tag, name, value in tag_lines(record, "bibtex", TAGS):
        if name in own or (is_own and name in ENTRY):
            continue
        field = _field_name(tag or name)
        fields.setdefault(field if tag or field not in TAGS.values() else f"{field}_source", []).append(value)
    lines = [f"  {name} = {{{_value(name, values)}}}," for name, values in fields.items()]
    # LaTeX of the source stays as it is
    lines += [f"  {name} = {{{value}}}," for name, values in own.items() for value in values if name != "included"]
    added = {_field_name(name): text for name, text in record.more.items() if text.strip()}
    added |= {"included": record.text("included")} if record.text("included") or record.has_label else {}
    lines += [f"  {name} = {{{_value(name, [text])}}}," for name, text in added.items()]
    key = _key(record, used)
    if record.text("id") not in ("", key) and "record_id" not in own:  # signs that a key cannot hold, or a repeated id
        lines.insert(0, f"  record_id = {{{escape(record.text('id'))}}},")
    return "\n".join([f"@{_type(record)}{{{key},", *lines, "}", ""])


def _value(name: str, values: list[str]) -> str:
    if name == "author":
        # a name that contains the separator is one name in braces
        texts = [f"{{{escape(one)}}}" if re.search(r"\sand\s", one) else escape(one) for one in map(squeeze, values)]
        return " and ".join(texts)
    text = one_cell(name, [*map(squeeze, values)])
    if name in VERBATIM and not set("{}\\") & set(text):
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
    found = re.sub(r"[^a-z0-9_-]+", "_", plain).strip("_-")
    return found if found[:1].isalpha() else f"field_{found}".rstrip("_")


def _type(record: OutputRecord) -> str:
    own = {name.casefold(): values[0] for name, values in record.fields.items() if values}
    if record.family == "bibtex" and re.fullmatch(r"[A-Za-z]+", own.get("type", "")):
        return own["type"].lower()
    if record.family == "ris":
        found = next((kind for kind, form in TYPES.items() if form == own.get("ty", "").upper()), None)
        if found:
            return found
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
