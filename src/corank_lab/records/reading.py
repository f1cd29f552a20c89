"""Read record files of any format into one collection: fields of each record, and stable, unique ids."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import shorten
from types import MappingProxyType

import numpy as np

from corank.errors import InputError
from corank_lab.records.columns import read_labels
from corank_lab.records.documents import (
    LOAD_FORMAT,
    add_images,
    is_load_file,
    is_mail,
    load_folder,
    parse_load_file,
    parse_mail,
)
from corank_lab.records.identity import fingerprint, normalise_doi, normalise_pmid
from corank_lab.records.nested import parse_json, parse_xml
from corank_lab.records.parsed import (
    LoadedFile,
    ParsedFile,
    RawRecord,
    clean_abstract,
    clean_line,
    decode,
    head_of,
    load_file,
    split_authors,
    split_keywords,
    split_references,
)
from corank_lab.records.records import RecordDetails, Records, RecordSource, without_collection
from corank_lab.records.tables import is_labelled, parse_excel, parse_labelled, parse_table
from corank_lab.records.tagged import find_dialect, parse_bibtex, parse_tagged

TITLE_LENGTH = 100
"""Letters of a title that is the beginning of the text."""
_YEAR = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?!\d)")
_COMPACT_DATE = re.compile(r"\s*(1[5-9]\d\d|20\d\d)(?:0[1-9]|1[0-2])\d{0,2}\s*")
_ADDRESS = re.compile(r"(?:https?|ftp)://[^\s<>\"|]+|www\.[^\s<>\"|]+", re.IGNORECASE)
_SOURCE_END = re.compile(r"\.\s|,\s*\d|\s\d|;|\.$")
_LONGEST_DOI = 2000

_ADDRESSES = ("UR", "L2", "LK", "US", "url", "ee", "bdsk-url-1", "%U")
"""Columns in which a DOI counts only behind doi.org."""

# tags that hold an identifier only if its form says so
_FORMS = {
    ("doi", "M3"): r"(?:doi:?\s*)?(10\.\d{4,9}/\S+)", ("doi", "L3"): r"(?:doi:?\s*)?(10\.\d{4,9}/\S+)",
    ("doi", "key"): r"(10\.\d{4,9}/\S+)",
    ("doi", "LID"): r"(10\.\d{4,9}/\S+)(?: \[doi\])?", ("doi", "AID"): r"(10\.\d{4,9}/\S+)(?: \[doi\])?",
    **{("doi", column): r".*?doi\.org/(10\.\d{4,9}/[^\s|;&?#]+).*" for column in _ADDRESSES},
    ("pmid", "C2"): r"(\d{6,8})", ("pmid", "C5"): r"(\d{6,8})", ("pmid", "C3"): r"(?:PUBMED|PMID)\W*(\d{1,8}).*",
    ("pmid", "XR"): r".*?(?:PUBMED|PMID)\W*(\d{1,8}).*", ("pmid", "AN"): r"(?:PMID|MEDLINE|PUBMED)\W*(\d{1,8})",
    ("pmid", "UI"): r"(?:PMID|MEDLINE|PUBMED)\W*(\d{1,8})",
    ("accession", "U2"): r"(L\d{6,12})", ("accession", "UR"): r".*[?&]eid=(2-s2\.0-\d+).*",
    ("id", "U2"): r"(L\d{6,12})", ("id", "U1"): r"(\d{5,12})",
    ("id", "UR"): r".*[?&]eid=(2-s2\.0-\d+).*",
}  # fmt: skip
_PATTERNS = {place: re.compile(form, re.IGNORECASE | re.DOTALL) for place, form in _FORMS.items()}


@dataclass(frozen=True)
class ReadRecord:
    """An interpreted record; `label` is NaN if it is not judged."""

    title: str
    abstract: str
    details: RecordDetails
    references: tuple[str, ...]
    label: float
    fields: Mapping[str, list[str]]


def interpret(
    parsed: ParsedFile, name: str, source: str, columns: Mapping[str, str] = MappingProxyType({})
) -> tuple[list[ReadRecord], list[str]]:
    """Return the records of a parsed file and remarks on them."""
    taken = set(columns.values())
    names = {field: tuple(item for item in result if item not in taken) for field, result in parsed.names.items()}
    names |= {field: (column,) for field, column in columns.items()}
    reader = _Interpreter(parsed, names, source)
    labels, label_remarks = read_labels(parsed, names)
    entries = [reader.entry(record, label) for record, label in zip(parsed.records, labels, strict=True)]
    remarks = [*parsed.remarks, *label_remarks]
    if not names.get("title") and any(item.abstract for item in entries):
        first_lines = (next(iter(item.abstract.strip().splitlines()), "") for item in entries)
        titles = (shorten(line, TITLE_LENGTH, placeholder=" …") for line in first_lines)
        entries = [replace(item, title=title) for item, title in zip(entries, titles, strict=True)]
        remarks.append(f"There is no column of titles; each title is the beginning of {names['abstract'][0]!r}.")
    n_titles = sum(bool(item.title) for item in entries)
    if not n_titles:
        raise InputError(_no_titles(parsed, name))
    if n_titles < 0.5 * len(entries):
        remarks.append(f"Only {n_titles} of {len(entries)} records have a title; check the column or tag of the title.")
    return entries, remarks


def _no_titles(parsed: ParsedFile, name: str) -> str:
    listed = ", ".join(column[:40] for column in parsed.columns)[:300]
    kind = "columns" if parsed.is_table else "fields"
    if not parsed.records:
        return f"{name} contains no records; expected at least one below the header."
    return (
        f"{name} ({parsed.format}) has no titles; it has the {kind} {listed or '(none)'}. Name the one of titles title,"
        " or pass its name as title (--title COLUMN)."
    )


class _Interpreter:
    def __init__(self, parsed: ParsedFile, names: Mapping[str, Sequence[str]], source: str) -> None:
        self.parsed, self.names, self.source = parsed, names, source
        self.decode = parsed.decode
        self.is_json = parsed.format.endswith(("JSON", "JSON lines"))
        self.is_cell = parsed.is_table or self.is_json or parsed.format in ("BibTeX", "XML")
        self.is_bibtex = parsed.format == "BibTeX"

    def entry(self, record: RawRecord, label: float) -> ReadRecord:
        """Interpret one record."""
        accession = self._first(record, "accession", self._accession)
        pmid = self._first(record, "pmid", self._pmid)
        url = self._first(record, "url", _url)
        details = RecordDetails(
            year=self._year(record),
            authors=self._authors(record),
            journal=self._first(record, "journal", self._journal),
            doi=self._first(record, "doi", self._doi) or self._doi("url", [url]),
            pmid=pmid,
            accession=accession,
            given_id=self._first(record, "id", self._id) or accession or pmid,
            keywords=self._keywords(record),
            url=url,
            source=self.source,
        )
        derived = self.parsed.derived
        fields = record if not derived else {key: values for key, values in record.items() if key not in derived}
        return ReadRecord(
            self._first(record, "title", self._title), self._first(record, "abstract", self._abstract), details,
            self._references(record), label, fields,
        )  # fmt: skip

    def _values(self, record: RawRecord, field: str) -> list[tuple[str, list[str]]]:
        return [(column, values) for column in self.names.get(field, ()) if (values := record.get(column))]

    def _first(self, record: RawRecord, field: str, reads: Callable[[str, list[str]], str]) -> str:
        """Return the first text that is not empty."""
        for column, values in self._values(record, field):
            if text := reads(column, values):
                return text
        return ""

    # repeated columns of a table are alternatives, repeated tags continue each other
    def _title(self, column: str, values: list[str]) -> str:
        return clean_line(self.decode(values[0] if self.parsed.is_table else " ".join(values)))

    def _abstract(self, column: str, values: list[str]) -> str:
        return clean_abstract(self.decode(values[0] if self.parsed.is_table else "\n".join(values)))

    def _journal(self, column: str, values: list[str]) -> str:
        text = clean_line(self.decode(values[0]))
        if column == "SO" and self.parsed.format in ("Ovid", "Cochrane", "PubMed", "RIS"):
            end = _SOURCE_END.search(text)
            return text[: end.start()] if end else text
        return text

    def _identifiers(self, field: str, column: str, values: list[str]) -> Iterator[str]:
        """Yield the values of a column that may be identifiers; in some columns, only those of a certain form."""
        pattern = _PATTERNS.get((field, column))
        for value in values:
            if pattern is None:
                yield value
            elif result := pattern.fullmatch(value.strip()):
                yield result[1]

    def _doi(self, column: str, values: list[str]) -> str:
        short = [value[:_LONGEST_DOI] for value in values]
        dois = (normalise_doi(self.decode(value)) for value in self._identifiers("doi", column, short))
        return next(filter(None, dois), "")

    def _pmid(self, column: str, values: list[str]) -> str:
        texts = self._identifiers("pmid", column, values)
        return next(filter(None, (normalise_pmid(text.strip().removesuffix(".0")[:200]) for text in texts)), "")

    def _accession(self, column: str, values: list[str], field: str = "accession") -> str:
        texts = (" ".join(self.decode(text).split())[:200] for text in self._identifiers(field, column, values))
        return next(filter(None, texts), "")

    def _id(self, column: str, values: list[str]) -> str:
        return self._accession(column, values, "id")

    def _year(self, record: RawRecord) -> int | None:
        for column, values in self._values(record, "year"):
            for value in values:
                compact = _COMPACT_DATE.fullmatch(value)
                result = [compact[1]] if compact else _YEAR.findall(value[:2000])
                if result:
                    return int(result[-1] if column == "SO" else result[0])
        return None

    def _authors(self, record: RawRecord) -> tuple[str, ...]:
        for _, values in self._values(record, "authors"):
            texts = values if self.is_bibtex else map(self.decode, values)
            is_cell = self.is_cell and len(values) == 1
            if result := split_authors(texts, is_cell=is_cell, is_bibtex=self.is_bibtex):
                return tuple(map(self.decode, result)) if self.is_bibtex else result
        return ()

    def _keywords(self, record: RawRecord) -> tuple[str, ...]:
        result: dict[str, None] = {}
        for _, values in self._values(record, "keywords"):
            is_cell = self.is_cell and len(values) == 1
            result |= dict.fromkeys(split_keywords(map(self.decode, values), is_cell=is_cell))
        return tuple(result)

    def _references(self, record: RawRecord) -> tuple[str, ...]:
        listed = (
            split_references(map(self.decode, values), is_list=self.is_json and len(values) > 1)
            for _, values in self._values(record, "references")
        )
        return next(filter(None, listed), ())


def _url(column: str, values: list[str]) -> str:
    return next((match[0].rstrip(".,;") for value in values if (match := _ADDRESS.search(value))), "")


def read_files(paths: Sequence[str | os.PathLike[str]], title: str | None = None, text: str | None = None) -> Records:
    """Read files of any format, one after another; see `corank_lab.records.records.read_records`."""
    named = {field: column for field, column in (("title", title), ("abstract", text)) if column is not None}
    seen: dict[str, None] = {}
    names = _source_names(paths)
    entries: list[ReadRecord] = []
    sources = []
    with without_collection():
        for path, source in zip(paths, names, strict=True):
            loaded = load_folder(path) if os.path.isdir(path) else load_file(path)
            sha256, name = loaded.sha256, loaded.name
            parsed = parse_file(loaded)
            del loaded  # the content
            if parsed.format == LOAD_FORMAT:
                parsed = add_images(parsed, path)
            present = {field: column for field, column in named.items() if column in parsed.columns}
            seen |= dict.fromkeys(parsed.columns)
            result, remarks = interpret(parsed, name, source, present)
            entries += result
            sources.append(RecordSource(source, sha256, parsed.format, len(result), tuple(remarks)))
    for field, column in named.items():
        if column not in seen:
            listed = ", ".join(item[:40] for item in seen)[:300]
            option = "title" if field == "title" else "text"
            raise InputError(
                f"{option} is {column!r}, but {', '.join(names)} has the columns {listed}; pass one of them."
            )
    ids = stable_ids(entries)
    try:
        return Records(
            ids,
            [entry.title for entry in entries],
            [entry.abstract for entry in entries],
            [entry.references for entry in entries],
            np.array([entry.label for entry in entries]),
            [entry.fields for entry in entries],
            [entry.details for entry in entries],
            sources,
        )
    except InputError as error:
        raise InputError(f"{', '.join(names)}: {error}") from None


def _source_names(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the name of each file; its path where two files have the same name."""
    names = [Path(path).name for path in paths]
    times = Counter(names)
    return [os.fspath(path) if times[name] > 1 else name for path, name in zip(paths, names, strict=True)]


def stable_ids(entries: Sequence[ReadRecord]) -> list[str]:
    """
    Return an id for each record that does not depend on its place.

    It is the given id if no other record has it, otherwise the first of DOI, PubMed id, accession number and
    fingerprint that no other record has. Records that share all of them get a number in the order of their contents.
    """
    candidates = [_candidates(entry) for entry in entries]
    times = Counter(item for row in candidates for item in set(row))
    ids = [next((item for item in row if times[item] == 1), "") for row in candidates]
    taken = {id_ for id_ in ids if id_}
    shared: dict[str, list[int]] = {}
    for index, element in enumerate(ids):
        if not element:
            shared.setdefault(candidates[index][0], []).append(index)
    for element, members in shared.items():
        members.sort(key=lambda i: (_content(entries[i]), i))
        number = 0
        for index in members:
            while True:
                number += 1
                name = element if number == 1 else f"{element}#{number}"
                if name not in taken:
                    break
            ids[index] = name
            taken.add(name)
    return ids


def _candidates(entry: ReadRecord) -> list[str]:
    item = entry.details
    mark = fingerprint(entry.title, item.year, item.authors)
    known = (
        item.given_id, item.doi and f"doi:{item.doi}", item.pmid and f"pmid:{item.pmid}",
        item.accession and f"accession:{item.accession}",
        f"title:{mark}" if mark else f"content:{_content(entry)[:16]}",
    )  # fmt: skip
    return [text for text in known if text]


def _content(entry: ReadRecord) -> str:
    """Return a hash of the texts and fields of a record."""
    content = json.dumps([entry.title, entry.abstract, sorted(entry.fields.items())], ensure_ascii=True)
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


_FOREIGN = {
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls); save it as .xlsx or CSV",
    b"%PDF": "a PDF file; export the records as RIS, CSV or Excel",
    b"{\\rtf": "a rich text file; export the records as RIS, CSV or Excel",
    b"PAR1": "a Parquet file; convert it to CSV",
    b"SQLite format 3": "a database; export the records as RIS, CSV or Excel",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
    b"Rar!": "a RAR archive; unpack it first",
}
_HTML = re.compile(r"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_XML = re.compile(r"<(?:\?xml|!|[A-Za-z][\w:.-]*[\s/>])")
_JSON = re.compile(r"\{|\[\s*[{\[\]]")
_BIBTEX = re.compile(r"^[ \t]*@[A-Za-z]+[ \t]*[{(]", re.MULTILINE)


def _is_bibtex(head: str) -> bool:
    result = _BIBTEX.search(head)
    # a table may quote an address at the beginning of a line, but not before its header
    return result is not None and all(
        not line.strip() or line.lstrip().startswith(("%", "@", "#", "//")) or "," not in line
        for line in head[: result.start()].split("\n")
    )


FORMATS: tuple[tuple[Callable[[str], object], Callable[[str, str], ParsedFile]], ...] = (
    (_XML.match, parse_xml), (_JSON.match, parse_json), (is_load_file, parse_load_file), (is_labelled, parse_labelled),
    (find_dialect, parse_tagged), (_is_bibtex, parse_bibtex), (lambda head: True, parse_table),
)  # fmt: skip
"""How each format of text is recognised, and its parser; the first that matches is used."""


def parse_file(loaded: LoadedFile) -> ParsedFile:
    """Parse a file of any known format; raise `InputError` for others."""
    content, name = loaded.content, loaded.name
    if content.startswith(b"PK\x03\x04"):
        return parse_excel(content, name)
    if is_mail(content):
        return parse_mail(content, name)
    for magic, what in _FOREIGN.items():
        if content.startswith(magic):
            raise InputError(f"{name} is {what}.")
    text, remark = decode(content)
    head = head_of(text)
    if _HTML.match(head):
        raise InputError(f"{name} is a web page; export the records as RIS, CSV or Excel.")
    parsed = next(parse for is_format, parse in FORMATS if is_format(head))(text, name)
    return replace(parsed, remarks=(remark, *parsed.remarks)) if remark else parsed
