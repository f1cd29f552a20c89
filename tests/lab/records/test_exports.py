"""The exports of databases and tools in CORANK_DATA, against counts by grep and by the csv module."""

from __future__ import annotations

import csv
import io
import lzma
import re
from pathlib import Path

import pytest

from corank_lab.records.records import Records, read_records
from experiments.datasets.catalog import data_root

ROOT = data_root() / "record_exports"
COLUMNS = ("records", "titles", "abstracts", "year", "authors", "journal", "doi", "keywords", "url")
TAGGED = {
    "titles": "TI|T1", "abstracts": "AB|N2", "year": "PY|Y1|DP", "authors": "AU|A1", "journal": "JF|JO|T2|JA|JT|SO",
    "doi": "DO|DI", "keywords": "KW|MH|OT|DE|ID", "url": "UR|L2",
}  # fmt: skip
TABLES = {
    "titles": ("Title", "Article Title", "title"),
    "abstracts": ("Abstract", "Abstract Note", "abstract"),
    "year": ("Year", "Publication Year", "Published Year", "Publication Date", "year"),
    "authors": ("Authors", "Author", "Author/s", "Author(s)", "Author Names", "author", "authors"),
    "journal": (
        "Source Title", "Source title", "Journal Title", "Journal", "Publication Title", "Publication", "journal",
        "Journal/Book", "Source",
    ),
    "doi": ("DOI", "doi"),
    "keywords": (
        "Keywords", "MeSH Terms", "Fields of Study", "Subjects", "Author Keywords", "Index Keywords", "keywords",
        "Manual Tags", "Automatic Tags", "Emtree Medical Index Terms", "Emtree Medical Index Terms (Major Focus)",
    ),
    "url": ("URL", "Url", "Link", "External URL", "Source URLs", "PLink", "Full Text Link", "Embase Link"),
}  # fmt: skip
XML = {
    "titles": "title", "abstracts": "abstract", "year": "year", "authors": "author",
    "journal": "secondary-title|full-title|alt-title|tertiary-title",
    "doi": "electronic-resource-num", "keywords": "keyword", "url": "url",
}  # fmt: skip
N_TOOLS = 33


def files() -> list[Path]:
    return sorted((*ROOT.glob("tools/*.xz"), *ROOT.glob("*.xz")))


def counts_of(records: Records) -> dict[str, int]:
    found = {
        "records": len(records),
        "titles": sum(map(bool, records.titles)),
        "abstracts": sum(map(bool, records.abstracts)),
    }
    return found | {name: sum(bool(getattr(of, name)) for of in records.details) for name in COLUMNS[3:]}


def is_value(name: str, text: str) -> bool:
    if name == "doi":
        return re.search(r"10\.\d{4}", text) is not None
    return bool(text.strip()) and text.strip().lower() not in ("n/a", "na", "[no abstract available]")


def crude_tagged(text: str) -> dict[str, int]:
    """Count records of which a tag has a value, line by line."""
    begin = (
        r"TY {1,2}-" if re.search(r"(?m)^TY {1,2}-", text) else "PMID-" if "PMID-" in text else r"PT [A-Z]$|<\d+\. >"
    )
    works = re.split(rf"(?m)^(?={begin})", re.sub(r"\r\n?", "\n", text))[1:]
    found = {"records": len(works)}
    for name, tags in TAGGED.items():
        only = {"PT": "DE|ID"}.get(works[0][:2], "KW|MH|OT") if name == "keywords" else tags
        line = rf"(?m)^(?:{only}){' ' if works[0].startswith('PT ') else '  - '}[ \t]*(\S.*)$"
        found[name] = sum(any(is_value(name, one) for one in re.findall(line, work)) for work in works)
    if "VN  - Ovid" in text:
        found["year"] = sum(bool(re.search(r"(?m)^SO  - .*\b\d{4}\.$", work)) for work in works)
    if begin == "PMID-":
        found["doi"] = sum("[doi]" in work for work in works)
    return found


def crude_table(rows: list[list[str]]) -> dict[str, int]:
    start = next(at for at, row in enumerate(rows) if {"Title", "Article Title", "title"} & set(row))
    header, body = rows[start], [row for row in rows[start + 1 :] if sum(map(bool, row)) > 1]
    found = {"records": len(body)}
    for name, columns in TABLES.items():
        places = [at for at, column in enumerate(header) if column in columns]
        found[name] = sum(any(len(row) > at and is_value(name, row[at]) for at in places) for row in body)
    return found


def crude_xml(text: str) -> dict[str, int]:
    works = re.findall(r"<record>.*?</record>", text, re.DOTALL)
    works = [re.sub(r"<style[^>]*>|</style>|&lt;Go to ISI&gt;://WOS", "", work) for work in works]
    count = {name: sum(bool(re.search(rf"<({tag})>[^:]", work)) for work in works) for name, tag in XML.items()}
    return {"records": len(works), **count}


def crude_bibtex(text: str) -> dict[str, int]:
    works = re.split(r"(?m)^@", text)[1:]
    names = {"titles": "title", "abstracts": "abstract", "authors": "author", "journal": "journal|booktitle"}
    count = {
        name: sum(bool(re.search(rf"(?m)^\s+(?:{names.get(name, name)}) = ", work)) for work in works)
        for name in COLUMNS[1:]
    }
    return {"records": len(works), **count}


def crude(path: Path) -> dict[str, int]:
    content = lzma.decompress(path.read_bytes())
    if content.startswith(b"PK"):
        openpyxl = pytest.importorskip("openpyxl")
        sheet = openpyxl.load_workbook(io.BytesIO(content)).active
        return crude_table([["" if cell is None else str(cell) for cell in row] for row in sheet.values])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252")
    kind = path.name.split(".")[-2]
    if kind in ("csv", "tsv"):
        csv.field_size_limit(10**9)
        mark = "\t" if kind == "tsv" else ";" if "excel" in path.name else ","
        return crude_table(list(csv.reader(io.StringIO(text, newline=""), delimiter=mark)))
    return {"xml": crude_xml, "bib": crude_bibtex}.get(kind, crude_tagged)(text)


def test_the_samples_are_there():
    if not ROOT.exists():
        pytest.skip("needs record_exports under CORANK_DATA")
    assert len(list(ROOT.glob("tools/*.xz"))) == N_TOOLS
    assert len(files()) == N_TOOLS + 12


@pytest.mark.thin(4)
@pytest.mark.parametrize("path", files(), ids=lambda path: path.name.removesuffix(".xz"))
def test_every_field_is_read_and_ids_do_not_depend_on_the_order(path):
    found = read_records(path)
    assert counts_of(found) == crude(path)
    assert all(found.titles)
    assert all(not of.year or 1600 < of.year < 2100 for of in found.details)
    assert all(not of.doi or re.fullmatch(r"10\.\d{4,9}/\S+", of.doi) for of in found.details)
    assert not any(re.search(r"</?(?:i|b|sub|sup|p)>|&[a-z]+;", text) for text in (*found.titles, *found.abstracts))
    reordered = shuffled(path)
    if reordered is not None:
        again = read_records(reordered)
        assert sorted(zip(again.ids, again.titles, strict=True)) == sorted(zip(found.ids, found.titles, strict=True))
        assert again.ids != found.ids or len(found) == 1


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    shuffled.folder = tmp_path  # type: ignore[attr-defined]


def shuffled(path: Path) -> Path | None:
    """Return the file with its records in the opposite order; None for a workbook."""
    content = lzma.decompress(path.read_bytes())
    kind = path.name.split(".")[-2]
    if kind == "xlsx":
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252")
    if kind in ("csv", "tsv"):
        csv.field_size_limit(10**9)
        mark = "\t" if kind == "tsv" else ";" if "excel" in path.name else ","
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark))
        start = next(at for at, row in enumerate(rows) if {"Title", "Article Title", "title"} & set(row))
        out = io.StringIO()
        csv.writer(out, delimiter=mark).writerows([*rows[: start + 1], *reversed(rows[start + 1 :])])
        changed = out.getvalue()
    elif kind == "xml":
        head, *works = re.split(r"(?=<record>)", text.removesuffix("</records></xml>"))
        changed = head + "".join(reversed(works)) + "</records></xml>"
    elif kind == "bib":
        changed = "@" + "@".join(reversed(re.split(r"(?m)^@", text)[1:]))
    else:
        begin = (
            r"TY {1,2}-"
            if re.search(r"(?m)^TY {1,2}-", text)
            else "PMID-"
            if "PMID-" in text
            else r"PT [A-Z]$|<\d+\. >"
        )
        _, *works = re.split(rf"(?m)^(?={begin})", re.sub(r"\r\n?", "\n", text).removesuffix("EF"))
        changed = "\n".join(one.rstrip() + "\n" for one in reversed(works))
    target: Path = shuffled.folder / path.name.removesuffix(".xz")  # type: ignore[attr-defined]
    target.write_text(changed, encoding="utf-8", newline="")
    return target
