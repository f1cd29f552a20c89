"""Writers of records in each dialect, for the fuzzers: plain texts are escaped, hostile ones may break the file."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from xml.sax.saxutils import escape

from fuzz.mutations import ODD_VALUES, mutate_json


@dataclass(frozen=True)
class Work:
    """A record; empty texts are left out of the file."""

    id: str
    title: str
    abstract: str
    year: str
    doi: str
    authors: tuple[str, ...]
    keywords: tuple[str, ...]

    def fields(self) -> dict[str, list[str]]:
        """Return the values of each field that has some."""
        lists = {
            "id": [self.id], "title": [self.title], "abstract": [self.abstract], "year": [self.year], "doi": [self.doi],
            "authors": list(self.authors), "keywords": list(self.keywords),
        }  # fmt: skip
        return {name: [one for one in values if one] for name, values in lists.items() if any(values)}


def table(works: list[Work], rng: Random) -> bytes:
    """CSV or TSV, with or without rows above the header."""
    mark, end = rng.choice(",,;\t|"), rng.choice(("\n", "\r\n"))
    header = ["id", "Title", "Abstract", "Publication Year", "DOI", "Authors", "Keywords", rng.choice(("", "note"))]
    rows = [
        [one.id, one.title, one.abstract, one.year, one.doi, "; ".join(one.authors), "; ".join(one.keywords), ""]
        for one in works
    ]
    above = [["Search", "tin:ti"], ["-----"], []] if rng.random() < 0.3 else []
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=mark, lineterminator=end, quoting=rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)))
    writer.writerows([*above, header, *rows])
    return encoded(out.getvalue(), rng)


def tagged(tags: dict[str, str], first: str, last: str, mark: str, gap: str = "\n") -> Callable[..., bytes]:
    """
    Return the writer of a tagged dialect.

    tags: tag of each field.
    first, last: lines that begin and end a record.
    mark: between tag and value.
    gap: between records.
    """

    def write(works: list[Work], rng: Random) -> bytes:
        end, lines = rng.choice(("\n", "\n", "\r\n", "\r")), []
        for at, one in enumerate(works, 1):
            lines += [first.format(at)] if first else []
            for name, values in one.fields().items():
                lines += [f"{tags[name]}{mark}{value}" for value in values] if name in tags else []
            lines += [last] if last else []
            lines += [""] * gap.count("\n")
        return encoded(end.join(lines) + end, rng)

    return write


_RIS = {"id": "ID", "title": "TI", "abstract": "AB", "year": "PY", "doi": "DO", "authors": "AU", "keywords": "KW"}
ris = tagged(_RIS, "TY  - JOUR", "ER  - ", "  - ")
cochrane = tagged({**_RIS, "year": "YR", "doi": "DOI", "keywords": "KY"}, "Record #{} of 9", "", ": ")
wos = tagged(
    {"id": "UT", "title": "TI", "abstract": "AB", "year": "PY", "doi": "DI", "authors": "AU", "keywords": "DE"},
    "PT J", "ER", " ",
)  # fmt: skip
refworks = tagged({**_RIS, "title": "T1", "year": "YR", "authors": "A1", "keywords": "K1"}, "RT Journal", "", " ")
refer = tagged(
    {"id": "%F", "title": "%T", "abstract": "%X", "year": "%D", "doi": "%R", "authors": "%A", "keywords": "%K"},
    "%0 Journal Article", "", " ",
)  # fmt: skip
_OVID = {
    "id": "UI  ", "title": "TI  ", "abstract": "AB  ", "year": "YR  ", "doi": "DO  ", "authors": "AU  ",
    "keywords": "MH  ",
}  # fmt: skip
ovid = tagged(_OVID, "<{}. >", "", "- ")
pubmed = tagged({**_OVID, "id": "PHST", "year": "DP  ", "doi": "LID ", "authors": "FAU "}, "PMID- {}", "", "- ")


def bibtex(works: list[Work], rng: Random) -> bytes:
    """BibTeX with braces or quotes."""
    names = {"title": "title", "abstract": "abstract", "year": "year", "doi": "doi"}
    entries = ["@string{x = {y}}"] if rng.random() < 0.3 else []
    for one in works:
        lines = [
            f"  {names[name]} = {_latex(values[0], rng)}" for name, values in one.fields().items() if name in names
        ]
        lines += [f"  author = {{{' and '.join(one.authors)}}}"] if one.authors else []
        lines += [f"  keywords = {{{'; '.join(one.keywords)}}}"] if one.keywords else []
        entries.append(f"@{rng.choice(('article', 'misc'))}{{{one.id},\n" + ",\n".join(lines) + "\n}")
    return encoded("\n\n".join(entries) + "\n", rng)


def _latex(text: str, rng: Random) -> str:
    for sign in "\\&%$#_{}":
        text = text.replace(sign, f"\\{sign}" if sign != "\\" else "/")
    return f'"{text}"' if '"' not in text and rng.random() < 0.3 else f"{{{text}}}"


def endnote(works: list[Work], rng: Random) -> bytes:
    """EndNote's XML, with or without styles."""
    names = {
        "title": "titles/title", "abstract": "abstract", "year": "dates/year", "doi": "electronic-resource-num",
        "id": "accession-num", "authors": "contributors/authors/author", "keywords": "keywords/keyword",
    }  # fmt: skip
    out = ['<?xml version="1.0" encoding="UTF-8"?><xml><records>']
    for one in works:
        out.append("<record>")
        for name, values in one.fields().items():
            *outer, leaf = names[name].split("/")
            out += [f"<{tag}>" for tag in outer]
            out += [f"<{leaf}>{_styled(value, rng)}</{leaf}>" for value in values]
            out += [f"</{tag}>" for tag in outer[::-1]]
        out.append("</record>")
    return encoded("".join(out) + "</records></xml>", rng)


def _styled(text: str, rng: Random) -> str:
    return f'<style face="normal">{escape(text)}</style>' if rng.random() < 0.5 else escape(text)


def pubmed_xml(works: list[Work], rng: Random) -> bytes:
    """PubMed's XML."""
    out = ["<?xml version='1.0'?><PubmedArticleSet>"]
    for at, one in enumerate(works, 1):
        authors = "".join(
            f"<Author><LastName>{escape(name.split(', ')[0])}</LastName></Author>" for name in one.authors
        )
        keywords = "".join(f"<Keyword>{escape(name)}</Keyword>" for name in one.keywords)
        out.append(
            f"<PubmedArticle><MedlineCitation><PMID>{at}</PMID><Article><Journal><JournalIssue><PubDate>"
            f"<Year>{one.year}</Year></PubDate></JournalIssue></Journal><ArticleTitle>{escape(one.title)}</ArticleTitle>"
            f"<Abstract><AbstractText>{escape(one.abstract)}</AbstractText></Abstract><AuthorList>{authors}</AuthorList>"
            f"</Article><KeywordList>{keywords}</KeywordList></MedlineCitation><PubmedData><ArticleIdList>"
            f'<ArticleId IdType="doi">{escape(one.doi)}</ArticleId></ArticleIdList></PubmedData></PubmedArticle>'
        )
    return encoded("".join(out) + "</PubmedArticleSet>", rng)


def json_text(works: list[Work], rng: Random, *, lines: bool, odd: bool = False) -> bytes:
    """JSON lines, an array, or an object around it; odd values may replace others."""
    rows = [
        {name: values if name in ("authors", "keywords") else values[0] for name, values in one.fields().items()}
        for one in works
    ]
    rows = [mutate_json(row, rng, [*ODD_VALUES, True, [], {}, [["a"]]]) if odd else row for row in rows]
    whole = rng.choice((rows, {"results": rows, "meta": {"count": 1}}))
    text = "\n".join(map(json.dumps, rows)) if lines else json.dumps(whole, indent=rng.choice((None, 1)))
    return text.encode("utf-8", "surrogatepass")


def excel(works: list[Work], rng: Random) -> bytes:
    """A workbook with inline strings."""
    header = ["id", "Title", "Abstract", "Year", "DOI", "Authors", "Keywords"]
    rows = [header] + [
        [one.id, one.title, one.abstract, one.year, one.doi, "; ".join(one.authors), "; ".join(one.keywords)]
        for one in works
    ]
    body = "".join(
        f'<row r="{at}">' + "".join(f'<c t="inlineStr"><is><t>{escape(cell)}</t></is></c>' for cell in row) + "</row>"
        for at, row in enumerate(rows, 1)
    )
    return workbook(f"<sheetData>{body}</sheetData>", rng)


_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def workbook(sheet: str, rng: Random) -> bytes:
    """Pack the XML of a sheet into a workbook."""
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override '
        f'PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/><Override '
        f'PartName="/xl/worksheets/sheet1.xml" ContentType="{kinds}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_LINKS}"><Relationship Id="rId1" Type="{_OFFICE}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_OFFICE}"><sheets><sheet name="a" sheetId="1" r:id="rId1"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_LINKS}"><Relationship Id="rId1" '
        f'Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f"<worksheet {_MAIN}>{sheet}</worksheet>",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if rng.random() < 0.5 else zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content.encode("utf-8", "replace"))
    return out.getvalue()


def encoded(text: str, rng: Random) -> bytes:
    """Encode a text: mostly as UTF-8, also with a mark or as UTF-16."""
    encoding = rng.choice(("utf-8",) * 6 + ("utf-8-sig", "utf-16"))
    return text.encode(encoding, "surrogatepass" if encoding == "utf-8" else "replace")
