"""
Records in every dialect, valid or damaged.

What was written undamaged must be read again. Of every accepted file: ids are unique and do not depend on the order,
texts are clean, packing changes nothing, and what is written as CSV or RIS is read again.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

from corank_lab.records.parsed import clean_abstract, clean_line
from corank_lab.records.records import Records, read_records
from corank_lab.records.writer import write_records
from fuzz import record_dialects as dialects
from fuzz.format import Format, Wrong
from fuzz.mutations import ODD_BYTES, mutate
from fuzz.record_dialects import Work

TITLES = [
    "Tin", "two words", "Über 3 µm", "a, b", 'so "called" tin', "p < 0.05 & more", "Is it | so", "x" * 300, "Zinn 🦀",
    "Half: a - b", "1. First",
]  # fmt: skip
ABSTRACTS = ["", "Rats sleep.", "One. Two, three; four.", "Größe > 5", "[No abstract available]", "y" * 3000]
HOSTILE = [
    "", " ", "line\nbreak", "a\rb", "tab\there", "\u2028", "\x85", "\x0b", "\x0c\x1c", "TI  - no", "ER  - ", "\0",
    "\ufeff", "ASReview_relevant", "|", "{{{", "}}}", "&lt;i&gt;x", "<b>x", "]]>", "<!--", "\\",
    '"', "=1+1", "@article{x,", "PT J", "Record #1 of 2", "<1. >", "%0 x", "&#xD800;", "\ud800", "title",
    "10.1000/" + "(" * 500, ";" * 300, "a, " * 300, "(" * 2000, "<" * 500, "&" * 500, "W1 W2",
    "RAYYAN-INCLUSION: {" + '"A"=>"Included",' * 50,
]  # fmt: skip
WORDS = [
    *ODD_BYTES, b'"', b'""', b'","', b"\r", b"\n\n", b"ER  - \n", b"TI  - ", b"TY  - JOUR\n", b"title", b"\\ud800",
    b"[" * 50, b"{" * 50, b"}", b"<a>" * 50, b"</record>", b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"&a;", b"@article{",
    b" = {", b"#", b"PT J\n", b"PMID- 1\n", b"%T x\n", b"PK\x03\x04", b"\x1f\x8b", b"\xd0\xcf\x11\xe0", b"&#xD;",
    b'="1"',
]  # fmt: skip
WAYS = ("plain", "packed", "written as CSV", "written as RIS")

Writer = Callable[[list[Work], Random], bytes]


class RecordsFile(Format):
    """
    Records of one dialect.

    kind: name of the dialect.
    write: returns a file of given works.
    """

    ways = len(WAYS)
    is_text = True

    def __init__(self, kind: str, write: Writer, damage: Writer | None = None) -> None:
        self.kind, self.name, self.suffix = kind, f"records_{kind}", f".{kind}"
        self.write, self.damage = write, damage or write
        self.sample = write([_work(Random(0), 0, hostile=False)], Random(0))
        self._expected: tuple[bytes, list[Work]] = (b"", [])

    def generate(self, rng: Random) -> bytes:
        n = rng.choice((1, 1, 2, 3, 5))
        if rng.random() < 0.4:
            works = [_work(rng, at, hostile=False) for at in range(n)]
            content = self.write(works, rng)
            self._expected = content, works
            return content
        content = self._hostile(rng, n)
        return content if rng.random() < 0.3 else mutate(content, rng, WORDS, lambda: self._hostile(rng, 1))

    def _hostile(self, rng: Random, n: int) -> bytes:
        works = [_work(rng, at, hostile=rng.random() < 0.6) for at in range(n)]
        if rng.random() < 0.2:
            works = [replace(one, title="") for one in works]
        return self.damage(works, rng)

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        path = folder / f"in.{self.kind}"
        path.write_bytes(content)
        is_valid = self._expected[0] == content
        if WAYS[way] == "packed":
            path = folder / f"in.{self.kind}.gz"
            path.write_bytes(gzip.compress(content, 1, mtime=0))
        found = read_records(path)
        _check_records(found)
        if is_valid:
            _compare(found, self._expected[1])
        if way >= 2 and is_valid:
            _write(found, folder / f"out.{('csv', 'ris')[way - 2]}")
        return True


def formats() -> list[RecordsFile]:
    """One of each dialect."""
    odd_json = partial(dialects.json_text, odd=True)
    return [
        RecordsFile("csv", dialects.table),
        RecordsFile("xlsx", dialects.excel, _odd_sheet),
        RecordsFile("ris", dialects.ris),
        RecordsFile("pubmed", dialects.pubmed),
        RecordsFile("ovid", dialects.ovid),
        RecordsFile("cochrane", dialects.cochrane),
        RecordsFile("wos", dialects.wos),
        RecordsFile("refworks", dialects.refworks),
        RecordsFile("refer", dialects.refer),
        RecordsFile("bibtex", dialects.bibtex),
        RecordsFile("endnote", dialects.endnote),
        RecordsFile("pubmed_xml", dialects.pubmed_xml),
        RecordsFile("jsonl", partial(dialects.json_text, lines=True), partial(odd_json, lines=True)),
        RecordsFile("json", partial(dialects.json_text, lines=False), partial(odd_json, lines=False)),
    ]


def _work(rng: Random, at: int, *, hostile: bool) -> Work:
    def text(plain: list[str]) -> str:
        return rng.choice(HOSTILE if hostile and rng.random() < 0.5 else plain)

    return Work(
        id=f"a{at}" if not hostile else rng.choice(("a1", "a2", "", f"b{at}", "doi:x", "a b")),
        title=text(TITLES),
        abstract=text(ABSTRACTS),
        year=rng.choice(("2001", "1999", "")) if not hostile else rng.choice(("2001", "0", "99999", "c. 1850", "²⁰⁰¹")),
        doi=f"10.1000/x.{at}" if not hostile else text(["10.1000/x", ""]),
        authors=rng.choice(((), ("Roe, A.",), ("Roe, A.", "Doe, B."))) if not hostile else (text(["Roe, A."]),),
        keywords=rng.choice(((), ("tin", "deep sleep"))) if not hostile else (text(["tin"]),),
    )


def _odd_sheet(works: list[Work], rng: Random) -> bytes:
    """A workbook with large numbers of rows and columns, wrong references, and shared strings that are absent."""
    if rng.random() < 0.4:
        return dialects.excel(works, rng)
    row = rng.choice(("1", "2", "1048576", "99999999999", "-1", "x", ""))
    cell = rng.choice(('r="A1"', 'r="XFD1"', 'r="ZZZZZZ1"', 'r=""', 't="s"', 't="e"', 't="b"', 't="d"', 's="99"'))
    value = rng.choice(("1", "1e308", "x"))
    body = '<row r="1"><c t="inlineStr"><is><t>Title</t></is></c></row>'
    body += f'<row r="{row}"><c {cell}><v>{value}</v></c></row>'
    size = rng.choice(("", '<dimension ref="A1:XFD1048576"/>', '<dimension ref="x"/>'))
    return dialects.workbook(f"{size}<sheetData>{body}</sheetData>", rng)


def _check_records(found: Records) -> None:
    n = len(found)
    if not n == len(set(found.ids)) == len(found.titles) == len(found.labels) == len(found.details) or not all(
        found.ids
    ):
        raise Wrong("lengths or ids", repr(found.ids)[:200])
    if not any(found.titles):
        raise Wrong("no titles")
    for text in (*found.titles, *found.abstracts):
        if "\0" in text or text != text.strip() or text != text.encode("utf-8", "replace").decode():
            raise Wrong("not clean", repr(text)[:200])
    for one, fields in zip(found.details, found.fields, strict=True):
        if one.year is not None and not 1500 <= one.year < 2100:
            raise Wrong("year", one.year)
        if not all(isinstance(value, str) for values in fields.values() for value in values):
            raise Wrong("fields", repr(fields)[:200])
    if sum(source.n_records for source in found.sources) != n:
        raise Wrong("sources", repr(found.sources)[:200])


def _compare(found: Records, works: list[Work]) -> None:
    rows = [
        (title, abstract.replace("\n", " "), one.year, one.doi, one.authors, one.keywords)
        for title, abstract, one in zip(found.titles, found.abstracts, found.details, strict=True)
    ]
    expected = [
        (
            clean_line(one.title), clean_abstract(one.abstract), int(one.year) if one.year else None, one.doi,
            one.authors, one.keywords,
        )
        for one in works
    ]  # fmt: skip
    if found.sources[0].format == "PubMed XML":  # which writes family names only
        expected = [(*row[:4], tuple(name.split(", ")[0] for name in row[4]), row[5]) for row in expected]
    if rows != expected:
        raise Wrong("works", f"{rows} for {expected}"[:1000])


def _write(found: Records, path: Path) -> None:
    write_records(path, found, found.labels, {"note": [""] * len(found)}, overwrite=True)
    again = read_records(path)
    if [clean_line(one) for one in again.titles] != list(found.titles):
        raise Wrong("written", f"{again.titles} for {found.titles}"[:500])
    if not np.array_equal(again.labels, found.labels, equal_nan=True):
        raise Wrong("labels written", f"{again.labels} for {found.labels}")
