"""XML: EndNote (also of Zotero and Mendeley), PubMed, and other files of repeated elements with a title."""

from __future__ import annotations

import html
import re
from collections import Counter
from typing import Any

from corank.data import current_budget
from corank.errors import InputError, import_extra
from corank_lab.records.columns import fields_of, find_columns
from corank_lab.records.parsers.parsed import ParsedFile, RawRecord, columns_of

ENDNOTE_FIELDS = {
    "title": ("title", "alt-title", "translated-title", "short-title"), "abstract": ("abstract",),
    "year": ("year", "date"), "authors": ("author",),
    "journal": ("full-title", "secondary-title", "abbr-1", "alt-title", "tertiary-title"),
    "doi": ("electronic-resource-num", "url"), "pmid": (), "accession": ("accession-num",), "id": ("accession-num",),
    "keywords": ("keyword",), "url": ("url", "pdf-urls"), "references": (), "notes": ("notes", "research-notes"),
}  # fmt: skip
PUBMED_FIELDS = {
    "title": ("ArticleTitle", "BookTitle", "VernacularTitle"), "abstract": ("AbstractText",), "year": ("Year",),
    "authors": ("Author",), "journal": ("Journal",), "doi": ("DOI",), "pmid": ("PMID",), "id": ("PMID",),
    "keywords": ("Keyword", "DescriptorName"), "references": ("Reference",),
}  # fmt: skip

_GROUPS = frozenset((
    "secondary-authors", "tertiary-authors", "subsidiary-authors", "translated-authors", "pdf-urls", "image-urls",
    "text-urls",
))  # fmt: skip
_FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|&#(?:[xX]0*(?:[0-8bcefBCEF]|1[0-9a-fA-F])|0*(?:[0-8]|1[124-9]|2\d|3[01]));"
)
_NAMED = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z][A-Za-z0-9]{1,31});")
_BARE = re.compile(r"&(?!#?\w{1,32};)")
_DEEPEST = 12
_MAX_LEVELS = 500


def parse_xml(text: str, name: str) -> ParsedFile:
    """Parse XML. Entities that the file defines itself, and external ones, are refused."""
    root = _root(text.encode("utf-8", "replace").decode(), name)
    tags = Counter(_local(item.tag) for item in root.iter() if isinstance(item.tag, str))
    if tags["PubmedArticle"] or tags["PubmedBookArticle"]:
        articles = [item for item in root.iter() if item.tag in ("PubmedArticle", "PubmedBookArticle")]
        return _parsed("PubMed XML", [_pubmed(article) for article in articles], name, PUBMED_FIELDS)
    if tags["record"] and tags["titles"]:
        return _parsed("EndNote XML", [_endnote(item) for item in root.iter("record")], name, ENDNOTE_FIELDS)
    elements = _repeated(root)
    if not elements:
        raise InputError(
            f"{name} is XML with the elements {', '.join(list(tags)[:12])}; expected an export of EndNote, Zotero, "
            "Mendeley or PubMed."
        )
    records = [_flat(element) for element in elements]
    return _parsed("XML", records, name, find_columns(columns_of(records)))


def _parsed(format: str, records: list[RawRecord], name: str, names: Any) -> ParsedFile:
    return ParsedFile(format, records, [f"{name}, record {i}" for i in range(1, len(records) + 1)], names)


def _root(text: str, name: str) -> Any:
    tree = import_extra("defusedxml.ElementTree", "records")
    current_budget().take("values", text.count("<") - text.count("</"), name)
    text = _FORBIDDEN.sub("", text).lstrip()
    try:
        return _shallow(tree.fromstring(text), name)
    except (tree.ParseError, ValueError, LookupError) as error:
        first = error
    repaired = _BARE.sub("&amp;", _NAMED.sub(lambda result: html.unescape(result[0]), text))
    try:
        if repaired != text and isinstance(first, tree.ParseError):
            return _shallow(tree.fromstring(repaired), name)
    except (tree.ParseError, ValueError, LookupError):
        pass
    if isinstance(first, InputError):
        raise first
    said = f"{type(first).__name__}: {str(first)[:100]}"
    raise InputError(f"{name} is not valid XML ({said}); export it again, or as RIS.") from None


def _shallow(root: Any, name: str) -> Any:
    level, depth = [root], 0
    while level:
        level, depth = [child for item in level for child in item if len(child)], depth + 1
        if depth > _MAX_LEVELS:
            raise InputError(f"{name} has more than {_MAX_LEVELS} levels of XML elements; check that it is an export.")
    return root


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _all_text(element: Any) -> str:
    """Return the text of an element; it is counted, since elements within each other repeat it."""
    text = "".join(element.itertext()).strip()
    current_budget().take("bytes", len(text), "the XML")
    return text


def _endnote(record: Any) -> RawRecord:
    """Return the leaves of a record by name; the text of an element may be in several ``style`` elements."""
    result: RawRecord = {}

    def add(element: Any, group: str, depth: int) -> None:
        parts = [item for item in element if item.tag != "style"]
        if parts and depth < _DEEPEST:
            for part in parts:
                add(part, element.tag if element.tag in _GROUPS else group, depth + 1)
            return
        value = _all_text(element) or (element.get("name", "") if element.tag == "ref-type" else "")
        if element.tag == "ref-type":
            value = element.get("name", value)
        if value:
            result.setdefault(group or str(element.tag), []).append(value)

    for child in record:
        add(child, "", 0)
    return result


def _pubmed(article: Any) -> RawRecord:
    def texts(path: str) -> list[str]:
        return [text for item in article.iterfind(path) if (text := _all_text(item))]

    authors = []
    for entry in article.iterfind(".//AuthorList/Author"):
        parts = {child.tag: _all_text(child) for child in entry}
        given = parts.get("ForeName") or parts.get("Initials")
        names = [part for part in (parts.get("LastName"), given) if part]
        authors.append(", ".join(names) or parts.get("CollectiveName", ""))
    abstract = [
        f"{label}: {text}" if (label := item.get("Label")) else text
        for item in article.iterfind(".//Abstract/AbstractText")
        if (text := _all_text(item))
    ]
    own = "PubmedData/ArticleIdList/ArticleId"
    dois = [_all_text(item) for item in article.iterfind(own) if item.get("IdType") == "doi"]
    dois += [_all_text(item) for item in article.iterfind(".//ELocationID") if item.get("EIdType") == "doi"]
    result = {
        "PMID": texts("MedlineCitation/PMID") or texts("BookDocument/PMID"),
        "ArticleTitle": texts(".//ArticleTitle")[:1],
        "BookTitle": texts(".//BookTitle")[:1],
        "VernacularTitle": texts(".//VernacularTitle"),
        "AbstractText": abstract,
        "Author": [author for author in authors if author],
        "Journal": texts(".//Journal/Title") or texts(".//MedlineTA") or texts(".//BookTitle"),
        "Year": texts(".//PubDate/Year") or texts(".//PubDate/MedlineDate") or texts(".//DateCompleted/Year"),
        "DOI": [doi for doi in dois if doi][:1],
        "DescriptorName": texts(".//MeshHeading/DescriptorName"),
        "Keyword": texts(".//KeywordList/Keyword"),
        "PublicationType": texts(".//PublicationType"),
        "Language": texts(".//Article/Language"),
        "Volume": texts(".//JournalIssue/Volume"),
        "Issue": texts(".//JournalIssue/Issue"),
        "MedlinePgn": texts(".//MedlinePgn"),
        "Reference": [
            _all_text(item) for item in article.iterfind(".//ReferenceList/Reference/ArticleIdList/ArticleId")
            if item.get("IdType") == "pubmed"
        ],
    }  # fmt: skip
    return {key: values for key, values in result.items() if values}


def _repeated(root: Any) -> list[Any]:
    """Return the elements of the most frequent kind among those that have a title as a child."""
    titled: dict[str, list[Any]] = {}
    for item in root.iter():
        if any(isinstance(child.tag, str) and "title" in fields_of(_local(child.tag)) for child in item):
            titled.setdefault(str(item.tag), []).append(item)
    return max(titled.values(), key=len, default=[])


def _flat(element: Any) -> RawRecord:
    result: RawRecord = {}

    def add(one: Any, path: str, depth: int) -> None:
        if len(one) and depth < _DEEPEST:
            for child in one:
                if isinstance(child.tag, str):
                    add(child, f"{path}.{_local(child.tag)}" if path else _local(child.tag), depth + 1)
            return
        value = _all_text(one) or one.get("href", "")
        if value and path:
            result.setdefault(path, []).append(value)

    add(element, "", 0)
    return result
