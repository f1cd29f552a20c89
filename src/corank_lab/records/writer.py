"""
Write records with their judgements as RIS, CSV, TSV, Excel, JSON lines or load file.

All writers see standard values under one name each, and the fields of the source. A field of the source is never lost.
If it repeats a standard value, the value is written once; otherwise the field is written under its own name, or as a
note in RIS, which has no place for it. A record that is written in the format it was read from keeps its own lines.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data import SUFFIXES, atomic_file, csv_text, suffix_of, write_text
from corank.errors import InputError
from corank_lab.records.columns import fields_of, find_columns
from corank_lab.records.documents import IMAGES, image_file_text, load_file_text
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
from corank_lab.records.tables import write_excel
from corank_lab.records.tagged import BIBTEX_FIELDS, DIALECTS, decode_latex

SOURCE_SUFFIX = " (source)"
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
"""Family, and names of fields, of each format; tables and JSON, whose names vary, are not listed."""

FAMILIES: dict[str, FieldNames] = dict(_FORMATS.values())

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
        fields = _source_fields(records.fields[i], family == "bibtex")
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
    records: Records, index: int, label: float, fields: Mapping[str, list[str]], names: FieldNames
) -> dict[str, list[str]]:
    item = records.details[index]
    given = item.given_id or ("" if _DERIVED.match(records.ids[index]) else records.ids[index])
    result: dict[str, Iterable[str]] = {
        "id": [given], "title": [_spelled(records.titles[index], fields, names.get("title", ()))],
        "abstract": [_spelled(records.abstracts[index], fields, names.get("abstract", ()))], "authors": item.authors,
        "year": [str(item.year or "")], "journal": [item.journal], "doi": [item.doi], "pmid": [item.pmid],
        "accession": [item.accession], "keywords": item.keywords, "url": [item.url],
        "references": records.references[index], "included": [] if np.isnan(label) else [str(int(label))],
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


def _source_fields(fields: Mapping[str, list[str]], decode: bool) -> dict[str, list[str]]:
    """Return the fields without judgements that a writer adds itself."""
    others = {
        name: [value for value in values if value.lstrip()[:9].casefold() != "asreview_"]
        for name, values in fields.items()
    }
    return {name: [*map(decode_latex, values)] if decode else values for name, values in others.items() if values}


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


ALWAYS = ("id", "title", "abstract")

RIS_TAGS = {
    "id": "ID", "title": "TI", "abstract": "AB", "authors": "AU", "year": "PY", "journal": "T2", "doi": "DO",
    "pmid": "PM", "accession": "AN", "keywords": "KW", "url": "UR", "references": "CR",
}  # fmt: skip
"""Tag of each standard value."""

_COMMON = {"volume": "VL", "issue": "IS", "pages": "SP", "issn": "SN", "language": "LA", "publisher": "PB"}
_SHARED = {
    "nbib": {"vi": "VL", "ip": "IS", "pg": "SP", "is": "SN", "la": "LA", "pb": "PB"},
    "wos": {"vl": "VL", "is": "IS", "bp": "SP", "sn": "SN", "la": "LA", "pu": "PB"},
    "bibtex": _COMMON | {"number": "IS"}, "endnote xml": _COMMON | {"number": "IS", "isbn": "SN"},
}  # fmt: skip
"""Tags of RIS for further fields, by their names in other formats, in lower case."""

RIS_TYPES = {
    "article": "JOUR", "book": "BOOK", "inbook": "CHAP", "incollection": "CHAP", "inproceedings": "CPAPER",
    "conference": "CPAPER", "phdthesis": "THES", "mastersthesis": "THES", "techreport": "RPRT", "unpublished": "UNPB",
}  # fmt: skip
"""Types of RIS by the types of BibTeX."""
_RIS_TAG = re.compile(r"[A-Z][A-Z0-9]")


def ris_text(records: Sequence[OutputRecord]) -> str:
    """Return records as RIS; every value is one line, and fields without a tag become notes (``N1``)."""
    texts = []
    for record in records:
        pairs = [(tag, squeeze(value)) if _RIS_TAG.fullmatch(tag) else ("N1", f"{squeeze(name)}: {squeeze(value)}")
                 for tag, name, value in _ris_lines(record) if tag not in ("TY", "ER")]  # fmt: skip
        pairs += [("N1", record.mark)] if record.mark else []
        pairs += [("N1", f"{squeeze(name)}: {squeeze(text)}") for name, text in record.more.items() if text.strip()]
        lines = [("TY", _ris_type(record)), *pairs, ("ER", "")]
        texts.append("".join(f"{tag}  - {value}\n" for tag, value in lines))
    return "\n".join(texts) + "\n"


def _ris_lines(record: OutputRecord) -> list[tuple[str, str, str]]:
    """Return tag, name and value of each line, standard values first."""
    is_own = record.family == "ris"
    lines = [
        (tag, kind, value)
        for kind, tag in RIS_TAGS.items()
        if not (is_own and record.says(kind)) and not (kind == "id" and record.is_id_implied)
        for value in record.values.get(kind, ())
    ]
    shared = _SHARED.get(record.family, _COMMON)
    for name, values in record.fields.items():
        if is_own or not record.repeats(name):
            tag = name if is_own else shared.get(name.casefold(), "")
            lines += [(tag, name, value) for value in values if value.strip()]
    return lines


def _ris_type(record: OutputRecord) -> str:
    types = record.fields.get("TY", []) if record.family == "ris" else []
    if types and types[0].strip():
        return squeeze(types[0])
    entry = record.fields.get("type", [""])[0] if record.family == "bibtex" else ""
    return RIS_TYPES.get(entry.casefold(), "JOUR" if "journal" in record.values else "GEN")


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
            free_name = f"{name}{SOURCE_SUFFIX}" if name.casefold() in folded or fields_of(name) else name
            row[free_name] = values if len(values) > 1 else values[0]
    for name, text in record.more.items():
        row[name if name not in row else f"{name} (answer)"] = text
    return row


def table_rows(records: Sequence[OutputRecord]) -> Iterator[list[str]]:
    """
    Yield the header and one row per record.

    Records of one table keep its columns, and get a column for each standard value that these do not hold. Otherwise
    standard values have columns of their own, followed by the fields that add something to them. Such a field is
    written as ``NAME (source)`` if a reader would take its name for that of a standard value.
    """
    names = list(dict.fromkeys(name for record in records for name in record.fields))
    is_table = all(record.family == "table" for record in records) and len({item.source for item in records}) == 1

    def is_written(kind: str) -> bool:
        if is_table:
            return any(not record.says(kind) for record in records)
        return kind in ("title", "abstract") or any(kind in record.values for record in records)

    kinds = [kind for kind in KINDS if kind != "included" and is_written(kind)]
    first = [kind for kind in kinds if not is_table or kind in ALWAYS]
    others = [kind for kind in kinds if kind not in first]
    has_label = is_written("included") or any(record.has_label for record in records)
    more = list(dict.fromkeys(name for record in records for name in record.more))
    last = [*(["included"] if has_label else []), *more]
    taken = {name.casefold() for name in (*kinds, *last)}
    columns = [
        name
        for name in names
        if (is_table and name.casefold() not in taken) or not all(record.repeats(name) for record in records)
    ]
    if not is_table:
        taken |= {name.casefold() for name in columns if fields_of(name)}
    yield [*first, *_distinct(columns, taken), *others, *last]
    for record in records:
        yield [
            *(one_cell(kind, record.values.get(kind, ())) for kind in first),
            *(BETWEEN.join(record.fields.get(name, ())) for name in columns),
            *(one_cell(kind, record.values.get(kind, ())) for kind in others),
            *([record.text("included")] if has_label else []),
            *(record.more.get(name, "") for name in more),
        ]  # fmt: skip


def _distinct(names: Sequence[str], taken: set[str]) -> list[str]:
    """Return names of columns that differ from each other and from `taken`, in any case."""
    used, distinct = {*taken}, []
    for name in names:
        chosen = f"{name}{SOURCE_SUFFIX}" if name.casefold() in taken else name
        tries = 2
        while chosen.casefold() in used:
            chosen, tries = f"{name} [{tries}]", tries + 1
        used.add(chosen.casefold())
        distinct.append(chosen)
    return distinct


EXCEL = ".xlsx"
WRITERS: dict[str, Callable[[Sequence[OutputRecord], bool], str]] = {
    ".ris": lambda records, _: ris_text(records),
    ".csv": lambda records, keep_formulas: csv_text(table_rows(records), keep_formulas=keep_formulas),
    ".tsv": lambda records, keep_formulas: csv_text(table_rows(records), separator="\t", keep_formulas=keep_formulas),
    ".jsonl": lambda records, _: jsonl_text(records),
    ".ndjson": lambda records, _: jsonl_text(records),
    ".dat": lambda records, _: load_file_text(table_rows(records)),
    # the images of documents, and nothing else of them
    ".opt": lambda records, _: image_file_text(text for item in records for text in item.fields.get(IMAGES, ())),
}
"""Text of each format of text, with or without formulas in cells."""

WRITTEN = (".ris", ".csv", ".tsv", EXCEL, ".jsonl", ".dat")
"""Suffixes of files that hold all that is known of records."""


def require_records_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a name without that of compression; raise `InputError` if records have no such format."""
    suffix = suffix_of(path)
    if suffix not in (*WRITTEN, *WRITERS):
        raise InputError(
            f"{path} has an unknown suffix; choose a name that ends in {', '.join(WRITTEN[:-1])} or {WRITTEN[-1]}."
        )
    if suffix == EXCEL and Path(path).suffix in SUFFIXES:
        raise InputError(f"{path} has the suffix of a compressed file, but .xlsx is compressed; leave it out.")
    return suffix


def write_records(
    path: str | os.PathLike[str],
    records: Records,
    labels: NDArray[np.float64] | None = None,
    more: Mapping[str, Sequence[str]] | None = None,
    *,
    overwrite: bool = False,
    keep_formulas: bool = False,
) -> tuple[str, ...]:
    """
    Write records; the suffix decides the format.

    Every field of the source is kept: as a column, a tag, or a note where the format has no place for it. RIS
    has one line per value, so line breaks become blanks there.
    """
    suffix = require_records_suffix(path)
    rows = output_records(records, labels, more)
    if suffix == EXCEL:
        with atomic_file(path, overwrite=overwrite) as scratch:
            return write_excel(scratch, table_rows(rows), keep_formulas=keep_formulas)
    text = WRITERS[suffix](rows, keep_formulas)
    with write_text(path, overwrite=overwrite) as stream:
        stream.write(text.encode("utf-8", "replace"))
    return ()
