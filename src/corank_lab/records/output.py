"""
Records as all writers see them: standard values under one name each, and the fields of the source.

A field of the source is never lost. If it repeats a standard value, the value is written once; otherwise the field is
written under its own name, or as a note in RIS, which has no place for it. A record that is written in the format it
was read from keeps its own lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from corank_lab.records.columns import find_columns
from corank_lab.records.identity import normalise_doi, normalise_pmid
from corank_lab.records.nested import ENDNOTE_FIELDS, PUBMED_FIELDS
from corank_lab.records.parsed import (
    FieldNames,
    clean_abstract,
    clean_line,
    split_authors,
    split_keywords,
    split_references,
)
from corank_lab.records.records import Records
from corank_lab.records.tagged import BIBTEX_FIELDS, DIALECTS, decode_latex

OWN = " (source)"
"""End of the name of a field that a reader would take for a standard value."""

BETWEEN = "; "
"""Separator of several values in one cell."""

LISTS = ("authors", "keywords", "references")
"""Standard values of which a record may have several."""

KINDS = (
    "id", "title", "abstract", "authors", "year", "journal", "doi", "pmid", "accession", "keywords", "url",
    "references", "included",
)  # fmt: skip
"""Standard values in the order of columns; these are also the names of the columns."""

MARKS = {1.0: "ASReview_relevant", 0.0: "ASReview_irrelevant"}
"""Notes that hold a judgement where a format has no field for it, as ASReview writes them."""

_OTHERS = {
    "bibtex": ("bibtex", BIBTEX_FIELDS), "endnote xml": ("endnote xml", ENDNOTE_FIELDS),
    "pubmed xml": ("pubmed xml", PUBMED_FIELDS),
}  # fmt: skip
_FORMATS = {name.casefold(): (dialect.family, dialect.names) for name, dialect in DIALECTS.items()} | _OTHERS
FAMILIES: dict[str, FieldNames] = dict(_FORMATS.values())
"""Names of fields by kind of format; tables and JSON, whose names vary, are not listed."""

_DERIVED = re.compile(r"(doi|pmid|accession|title|content):")
_TABLES = ("csv", "tsv", "excel")


@dataclass(frozen=True)
class OutputRecord:
    """One record to write."""

    # texts of each standard value by its name in `KINDS`; absent values are left out
    values: Mapping[str, Sequence[str]]
    fields: Mapping[str, list[str]]  # columns or tags of the source
    family: str  # the kind of names in `fields`: a key of `FAMILIES`, "table" or "other"
    names: FieldNames  # names of the fields that hold each standard value in the source
    label: float  # 1, 0 or NaN
    more: Mapping[str, str]  # further columns, such as a note
    has_label: bool  # whether the label is written even if it is not known
    source: str = ""  # name of the file

    def text(self, kind: str) -> str:
        """Return a standard value as one cell; empty if the record has none."""
        return BETWEEN.join(self.values.get(kind, ()))

    def repeats(self, name: str) -> bool:
        """Return whether a field of the source is empty or equal to a standard value that it holds."""
        given = self.fields.get(name, ())
        kinds = [kind for kind in self.kinds_of(name) if kind in self.values]
        if not kinds or any(given == self.values[kind] for kind in kinds):
            return bool(kinds) or not any(item.strip() for item in given)
        raw = [squeeze(item).casefold() for item in given if item.strip()]
        folded = [self._folded[kind] for kind in kinds]
        return not raw or any(raw == known[:-1] or BETWEEN.join(raw) == known[-1] for known in folded)

    def kinds_of(self, name: str) -> list[str]:
        """Return the standard values that a field of the source may hold."""
        return [kind for kind, names in self.names.items() if name in names]

    def says(self, kind: str) -> bool:
        """Return whether the reader of the source finds a standard value in its fields."""
        values = self.values.get(kind, ())
        raw = [item for name in self.names.get(kind, ()) for item in self.fields.get(name, ())]
        return not values or _says(kind, raw, values) or (kind == "id" and self.is_id_implied)

    @property
    def is_id_implied(self) -> bool:
        """Whether readers take another identifier as the id, because the record has no id of its own."""
        return self.text("id") == (self.text("accession") or self.text("pmid"))

    @cached_property
    def mark(self) -> str:
        """The judgement as a note; empty if it is not known and not asked for."""
        return MARKS.get(self.label, "ASReview_not_seen" if self.has_label else "")

    @cached_property
    def _folded(self) -> dict[str, list[str]]:
        """Standard values in lower case, followed by the cell that holds them all."""
        folded = {kind: [squeeze(value).casefold() for value in values] for kind, values in self.values.items()}
        return {kind: [*values, BETWEEN.join(values)] for kind, values in folded.items()}


def output_records(
    records: Records,
    labels: NDArray[np.float64] | None = None,
    more: Mapping[str, Sequence[str]] | None = None,
) -> list[OutputRecord]:
    """Return records in the form that all writers use."""
    formats = {source.name: family_of(source.format) for source in records.sources}
    families = [
        formats.get(item.source) or guess_family(fields)
        for item, fields in zip(records.details, records.fields, strict=True)
    ]
    names = _names(records, families)
    result = records.labels if labels is None else labels
    rows = []
    for i, family in enumerate(families):
        source = records.details[i].source
        fields = _own_fields(records.fields[i], family == "bibtex")
        rows.append(
            OutputRecord(
                _values(records, i, float(result[i]), fields, names[source, family]), fields, family,
                names[source, family], float(result[i]), {name: column[i] for name, column in (more or {}).items()},
                labels is not None, source,
            )
        )  # fmt: skip
    return rows


def one_cell(kind: str, values: Sequence[str]) -> str:
    """Return the values of a field as one cell that readers split into the same values."""
    text, result = BETWEEN.join(values), tuple(values)
    if not result:
        return ""
    if kind == "authors" and split_authors([text], is_cell=True) != result:
        return f"{text};"
    if kind == "keywords" and split_keywords([text], is_cell=True) != result:
        return f"{text};"
    if kind == "references" and split_references([text]) != result and len(result) > 1:
        return "\n".join(result)
    return text


def family_of(form: str) -> str:
    """Return the kind of field names of a format that a reader recognised."""
    words = form.casefold()
    return _FORMATS[words][0] if words in _FORMATS else "table" if words in _TABLES else "other"


def guess_family(fields: Mapping[str, list[str]]) -> str:
    """Return the kind of field names if the format of the source is not known."""
    if "TY" in fields:
        return "ris"
    if "PT" in fields and "PMID" not in fields and "OWN" not in fields:
        return "wos"
    return "nbib" if {"PMID", "OWN", "FAU"} & fields.keys() else "table"


def squeeze(text: str) -> str:
    """Return a text as one line with single blanks."""
    return " ".join(text.split())


def _names(records: Records, families: Sequence[str]) -> dict[tuple[str, str], FieldNames]:
    """Return the names of fields for each file."""
    columns: dict[tuple[str, str], dict[str, None]] = {}
    for item, fields, family in zip(records.details, records.fields, families, strict=True):
        columns.setdefault((item.source, family), {}).update(dict.fromkeys(fields))
    result: dict[tuple[str, str], FieldNames] = {}
    for key, listed in columns.items():
        names = dict(FAMILIES.get(key[1]) or find_columns(listed))
        result[key] = {"included" if kind == "label" else kind: columns for kind, columns in names.items()}
    return result


def _values(
    records: Records, at: int, label: float, fields: Mapping[str, list[str]], names: FieldNames
) -> dict[str, list[str]]:
    item = records.details[at]
    given = item.given_id or ("" if _DERIVED.match(records.ids[at]) else records.ids[at])
    result: dict[str, Iterable[str]] = {
        "id": [given], "title": [_spelled(records.titles[at], fields, names.get("title", ()))],
        "abstract": [_spelled(records.abstracts[at], fields, names.get("abstract", ()))], "authors": item.authors,
        "year": [str(item.year or "")], "journal": [item.journal], "doi": [item.doi], "pmid": [item.pmid],
        "accession": [item.accession], "keywords": item.keywords, "url": [item.url],
        "references": records.references[at], "included": [] if np.isnan(label) else [str(int(label))],
    }  # fmt: skip
    listed = {kind: [text for text in texts if text.strip()] for kind, texts in result.items()}
    return {kind: texts for kind, texts in listed.items() if texts}


def _spelled(text: str, fields: Mapping[str, list[str]], names: Iterable[str]) -> str:
    """Return a title or abstract with the markup of the source, which was cleaned for reading."""
    for name in names:
        for raw in fields.get(name, ()):
            if ("<" in raw or "&" in raw) and raw != text and text in (clean_line(raw), clean_abstract(raw)):
                return raw.strip()
    return text


def _own_fields(fields: Mapping[str, list[str]], decode: bool) -> dict[str, list[str]]:
    """Return the fields without judgements that a writer adds itself."""
    kept = {
        name: [value for value in values if value.lstrip()[:9].casefold() != "asreview_"]
        for name, values in fields.items()
    }
    return {name: [*map(decode_latex, values)] if decode else values for name, values in kept.items() if values}


def _says(kind: str, raw: Sequence[str], values: Sequence[str]) -> bool:
    """Return whether fields hold a value, in any spelling that a reader understands."""
    if kind == "year":
        return any(values[0] in item for item in raw)
    if kind == "doi":
        return values[0] in raw or any(normalise_doi(decode_latex(item)) == normalise_doi(values[0]) for item in raw)
    if kind == "pmid":
        return any(normalise_pmid(item) == values[0] for item in raw)
    if kind in ("authors", "keywords"):
        return bool(raw)
    if values[0] in raw and len(values) == 1:
        return True
    folded = [squeeze(item).casefold() for item in raw]
    wanted = [squeeze(value).casefold() for value in values]
    if kind == "references":
        return folded == wanted or BETWEEN.join(folded) == BETWEEN.join(wanted)
    if kind in ("title", "abstract"):
        cleaned = [clean_line(item).casefold() for item in (*raw, *map(decode_latex, raw), " ".join(raw))]
        return clean_line(values[0]).casefold() in cleaned
    together = clean_line(decode_latex(" ".join(raw))).casefold()
    return bool(raw) and wanted[0] in together
