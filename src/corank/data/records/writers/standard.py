"""
Records as all writers see them: standard values under one name each, and the fields of the source.

A field of the source is never lost. If it repeats a standard value, the value is written once; otherwise the field is
written under its own name, or as a note in formats that have no place for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from corank.data.records.identity import normalise_doi, normalise_pmid, normalise_title
from corank.data.records.records import Records

BETWEEN = "; "
"""Separator of several values in one cell."""

LISTS = ("authors", "keywords", "references")
"""Standard values of which a record may have several."""

NAMES: dict[str, tuple[str, ...]] = {
    "id": ("id", "record_id", "openalex_id", "key"),
    "title": ("title", "ti", "t1", "primary_title", "article title", "document title"),
    "abstract": ("abstract", "ab", "n2", "abstract note", "abstract_note"),
    "authors": ("authors", "author", "au", "a1", "fau"),
    "year": ("year", "py", "y1", "publication year", "publication_year", "dp", "date"),
    "journal": ("journal", "t2", "jo", "jf", "ja", "jt", "so", "source title", "publication title", "journal/book"),
    "doi": ("doi", "do", "di", "prism:doi"),
    "pmid": ("pmid", "pubmed id", "pubmed_id", "pm"),
    "accession": ("accession", "accession number", "an", "ut", "eid", "ut (unique wos id)"),
    "keywords": ("keywords", "kw", "de", "ot", "author keywords", "manual tags", "keyword"),
    "url": ("url", "ur", "link", "links"),
    "references": ("references", "cr", "referenced_works", "cited references"),
    "included": ("included", "label_included", "relevant", "label", "final_included"),
}
"""Standard values in the order of columns, and names of fields that usually hold them, in lower case."""

SHARED: dict[str, dict[str, str]] = {
    "volume": {"ris": "VL", "nbib": "VI", "bibtex": "volume", "wos": "VL"},
    "issue": {"ris": "IS", "nbib": "IP", "bibtex": "number", "wos": "IS"},
    "pages": {"ris": "SP", "nbib": "PG", "bibtex": "pages", "wos": "BP"},
    "issn": {"ris": "SN", "nbib": "IS", "bibtex": "issn", "wos": "SN"},
    "language": {"ris": "LA", "nbib": "LA", "bibtex": "language", "wos": "LA"},
    "publisher": {"ris": "PB", "nbib": "PB", "bibtex": "publisher", "wos": "PU"},
}
"""Further fields that several formats have, under their own names."""

MARKS = {1.0: "ASReview_relevant", 0.0: "ASReview_irrelevant"}
"""Notes that hold a judgement where a format has no field for it, as ASReview writes them."""

_DERIVED = re.compile(r"(doi|pmid|accession|title):")


@dataclass(frozen=True)
class OutputRecord:
    """
    One record to write.

    values: texts of each standard value by its name in `NAMES`; absent values are left out.
    fields: columns or tags of the source.
    family: the kind of names in `fields`: "table", "ris", "nbib", "bibtex", "wos" or "other".
    label: 1, 0 or NaN.
    more: further columns, such as a note.
    has_label: whether the label is written even if it is not known.
    source: name of the file.
    """

    values: Mapping[str, Sequence[str]]
    fields: Mapping[str, list[str]]
    family: str
    label: float
    more: Mapping[str, str]
    has_label: bool
    source: str = ""

    def text(self, kind: str) -> str:
        """Return a standard value as one cell; empty if the record has none."""
        return BETWEEN.join(self.values.get(kind, ()))

    def repeats(self, name: str) -> bool:
        """Return whether a field of the source is empty or equal to the standard value of its name."""
        kind = kind_of(name)
        raw = [squeeze(one).casefold() for one in self.fields.get(name, ()) if one.strip()]
        if not raw:
            return True
        known = self._folded.get(kind or "", [])
        return bool(known) and (raw == known[:-1] or BETWEEN.join(raw) == known[-1])

    def says(self, kind: str, names: Iterable[str] | None = None) -> bool:
        """
        Return whether a reader finds a standard value in the fields of the source.

        names: fields in which a reader looks for it; by default those of `NAMES`.
        """
        values = self.values.get(kind, ())
        if not values:
            return True
        anywhere = kind in ("id", "accession")
        wanted = None if anywhere else NAMES[kind] if names is None else [name.casefold() for name in names]
        raw = [
            one for name, found in self.fields.items() if wanted is None or name.casefold() in wanted for one in found
        ]
        return _says(kind, raw, values)

    @cached_property
    def mark(self) -> str:
        """The judgement as a note; empty if it is not known and not asked for."""
        return MARKS.get(self.label, "ASReview_not_seen" if self.has_label else "")

    @cached_property
    def _folded(self) -> dict[str, list[str]]:
        """Standard values in lower case, followed by the cell that holds them all."""
        folded = {kind: [squeeze(one).casefold() for one in values] for kind, values in self.values.items()}
        return {kind: [*values, BETWEEN.join(values)] for kind, values in folded.items()}


def output_records(
    records: Records, labels: NDArray[np.float64] | None = None, more: Mapping[str, Sequence[str]] | None = None
) -> list[OutputRecord]:
    """
    Return records in the form that all writers use.

    labels: judgements to write in place of those of the records, also where they are NaN.
    more: further columns, with one text per record.
    """
    formats = {source.name: family_of(source.format) for source in records.sources}
    found = records.labels if labels is None else labels
    rows = []
    for at, fields in enumerate(records.fields):
        label = float(found[at])
        family = formats.get(records.details[at].source) or guess_family(fields)
        values = _values(records, at, label)
        rows.append(
            OutputRecord(
                values, _own_fields(fields), family, label,
                {name: column[at] for name, column in (more or {}).items()}, labels is not None,
                records.details[at].source,
            )
        )  # fmt: skip
    return rows


def tag_lines(record: OutputRecord, family: str, tags: Mapping[str, Sequence[str]]) -> list[tuple[str, str, str]]:
    """
    Return a record as lines of a tagged format, standard values first.

    family: that of the format. A record that comes from it keeps its own lines.
    tags: for each standard value the tag to write, and further tags in which a reader finds it.
    Returns: tag, name of the field in the source and value; the tag is empty if the format has none for the field.
    """
    is_own = record.family == family
    lines = [
        (own[0], kind, value) for kind, own in tags.items() if not (is_own and record.says(kind, own))
        for value in record.values.get(kind, ())
    ]  # fmt: skip
    shared = {names.get(record.family, kind).casefold(): names[family] for kind, names in SHARED.items()}
    for name, values in record.fields.items():
        if is_own:
            tag = name
        elif record.repeats(name):
            continue
        else:
            kind = kind_of(name)
            is_free = kind in tags and kind not in record.values and kind not in ("id", "title", "abstract", "included")
            tag = shared.get(name.casefold(), tags[kind][0] if kind and is_free else "")
        lines += [(tag, name, value) for value in values if value.strip()]
    return lines


def kind_of(name: str) -> str | None:
    """Return the standard value that a field of this name usually holds."""
    return _KINDS.get(name.strip().casefold())


def family_of(form: str) -> str:
    """
    Return the kind of field names of a format that a reader recognised.

    >>> family_of("RIS"), family_of("Web of Science plain text"), family_of("Excel"), family_of("EndNote XML")
    ('ris', 'wos', 'table', 'other')
    """
    words = form.casefold()
    for sign, family in _FAMILIES.items():
        if sign in words:
            return family
    return "other"


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


_KINDS = {name: kind for kind, names in NAMES.items() for name in names}
_FAMILIES = {
    "pubmed": "nbib", "nbib": "nbib", "medline": "nbib", "bibtex": "bibtex", "xml": "other", "ovid": "other",
    "cochrane": "other", "ris": "ris", "tab": "table", "csv": "table", "tsv": "table", "excel": "table",
    "json": "table", "web of science": "wos", "wos": "wos",
}  # fmt: skip


def _values(records: Records, at: int, label: float) -> dict[str, list[str]]:
    one = records.details[at]
    given = one.given_id or ("" if _DERIVED.match(records.ids[at]) else records.ids[at])
    found: dict[str, Iterable[str]] = {
        "id": [given], "title": [_spelled(records.titles[at], "title", records.fields[at])],
        "abstract": [_spelled(records.abstracts[at], "abstract", records.fields[at])], "authors": one.authors,
        "year": [str(one.year or "")], "journal": [one.journal], "doi": [one.doi], "pmid": [one.pmid],
        "accession": [one.accession], "keywords": one.keywords, "url": [one.url],
        "references": records.references[at], "included": [] if np.isnan(label) else [str(int(label))],
    }  # fmt: skip
    listed = {kind: [text for text in texts if text.strip()] for kind, texts in found.items()}
    return {kind: texts for kind, texts in listed.items() if texts}


def _spelled(text: str, kind: str, fields: Mapping[str, list[str]]) -> str:
    """Return a title or abstract with the markup of the source, which was cleaned for reading."""
    for name, values in fields.items():
        for raw in values:
            if ("<" in raw or "&" in raw) and kind_of(name) == kind and normalise_title(raw) == normalise_title(text):
                return raw.strip()
    return text


def _own_fields(fields: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the fields without judgements that a writer adds itself."""
    kept = {
        name: [value for value in values if not value.strip().casefold().startswith("asreview_")]
        for name, values in fields.items()
    }
    return {name: values for name, values in kept.items() if values}


def _says(kind: str, raw: Sequence[str], values: Sequence[str]) -> bool:
    if kind == "year":
        return any(values[0] in one for one in raw)
    if kind == "doi":
        return any(normalise_doi(one) == normalise_doi(values[0]) for one in raw)
    if kind == "pmid":
        return any(normalise_pmid(one) == values[0] for one in raw)
    folded = [squeeze(one).casefold() for one in raw]
    if kind in LISTS:
        wanted = [squeeze(one).casefold() for one in values]
        return folded == wanted or BETWEEN.join(folded) == BETWEEN.join(wanted)
    return any(squeeze(value).casefold() in folded for value in values)
