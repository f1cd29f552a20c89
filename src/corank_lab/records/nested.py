"""
Records inside each other: JSON of OpenAlex, Semantic Scholar, Europe PMC and others, XML of EndNote and PubMed.

JSON is one object per line, an array, or the answer of a service. Other XML is read if it repeats an element that has
a title.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from corank.data import current_budget
from corank.errors import InputError, import_extra
from corank_lab.records.columns import fields_of, find_columns
from corank_lab.records.parsed import ParsedFile, RawRecord, columns_of

INVERTED = "abstract_inverted_index"
_DEEPEST_KEY = 6
"""Levels of nested objects that become columns with dots in their names; deeper ones stay JSON."""

_MAX_KEYS = 2_000


def parse_json(text: str, name: str) -> ParsedFile:
    """Parse objects; nested values become columns such as ``primary_location.source.display_name``."""
    current_budget().take_json(text, name)
    whole = _whole(text)
    format = "JSON lines" if whole is None else "JSON"
    numbered = ((f"{name}, record {i}", item) for i, item in enumerate(whole or (), 1))
    objects = _of_lines(text, name) if whole is None else numbered
    records, places = [], []
    for place, entry in objects:
        records.append(_flatten(entry, place))
        places.append(place)
    if not records:
        raise InputError(f"{name} contains no records; expected at least one JSON object.")
    columns = columns_of(records)
    if any(item in columns for item in ("authorships.author.display_name", INVERTED)):
        format = f"OpenAlex {format}"
    return ParsedFile(format, records, places, find_columns(columns), derived=frozenset((INVERTED,)))


def _whole(text: str) -> list[dict[str, Any]] | None:
    """Return the objects of a text that is one JSON value; None if it is not, or one object without a list."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    result = _longest(value)
    if result is None and isinstance(value, dict) and "\n" in text.strip():
        return [value]
    return result


def _longest(value: Any, depth: int = 0) -> list[dict[str, Any]] | None:
    """Return the longest list of objects in a JSON value, at most three levels deep."""
    if isinstance(value, list):
        objects = [_unwrapped(entry) for entry in value if isinstance(entry, dict)]
        return objects or None
    if not isinstance(value, dict) or depth > 3 or _is_record(value):
        return None
    lists = [listed for entry in value.values() if (listed := _longest(entry, depth + 1))]
    return max(lists, key=lambda item: (any(map(_is_record, item)), len(item)), default=None)


def _is_record(value: dict[str, Any]) -> bool:
    return any(isinstance(value.get(key), str | list) for key in ("title", "Title", "display_name", "TITLE"))


def _unwrapped(value: dict[str, Any]) -> dict[str, Any]:
    inner = value.get("_source")
    return inner if isinstance(inner, dict) else value


def _of_lines(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for i, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            shown = repr(line.strip()[:40])
            raise InputError(f"{name}, line {i}: expected a JSON object, found {shown}; write one object per line.")
        yield f"{name}, line {i}", row


def _flatten(node: dict[str, Any], place: str) -> RawRecord:
    record: RawRecord = {}
    index = node.get(INVERTED)
    for key, value in node.items():
        if key == INVERTED and isinstance(value, dict):
            continue
        _add(record, _text(key), value, 0)
    if isinstance(index, dict):
        record[INVERTED] = [_rebuilt(index, place)]
    return {key: values for key, values in record.items() if any(values)}


def _add(record: RawRecord, key: str, value: Any, depth: int) -> None:
    if value is None or value == "":
        return
    if isinstance(value, list) and depth < _DEEPEST_KEY:
        for item in value:
            _add(record, key, item, depth + 1)
    elif isinstance(value, dict) and depth < _DEEPEST_KEY and len(record) < _MAX_KEYS:
        known = _person(value) or _date(value)
        if known:
            record.setdefault(key, []).append(known)
            return
        for inner, part in value.items():
            _add(record, f"{key}.{_text(inner)}", part, depth + 1)
    else:
        record.setdefault(key, []).append(_text(value))


def _person(value: dict[str, Any]) -> str:
    """Return "family, given" of a person in CSL or Crossref, or an empty string."""
    family = next((value[key] for key in ("family", "last_name", "lastName") if isinstance(value.get(key), str)), "")
    given = next(
        (value[key] for key in ("given", "first_name", "firstName", "initials") if isinstance(value.get(key), str)), ""
    )
    literal = value.get("literal")
    name = (
        ", ".join(item for item in (family, given) if item) if family else literal if isinstance(literal, str) else ""
    )
    return _text(name)


def _date(value: dict[str, Any]) -> str:
    parts = value.get("date-parts")
    while isinstance(parts, list) and parts and isinstance(parts[0], list):
        parts = parts[0]
    if not isinstance(parts, list) or not parts or not all(isinstance(part, int | str) for part in parts):
        return ""
    return "-".join(_text(part) for part in parts[:3])


def _rebuilt(index: dict[str, Any], place: str) -> str:
    """Return the text of an inverted index: positions of each word."""
    places = [
        (i, word) for word, positions in index.items() if isinstance(positions, list) for i in positions
        if type(i) is int
    ]  # fmt: skip
    n_listed = sum(len(positions) if isinstance(positions, list) else 1 for positions in index.values())
    if len(places) < n_listed:
        raise InputError(f"{place}: expected a list of positions for each word of the inverted index of the abstract.")
    return _text(" ".join(word for _, word in sorted(places)))


def _text(value: Any) -> str:
    """Text unchanged, other values as JSON; lone surrogates, which UTF-8 cannot encode, become question marks."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):  # a nested value, or an integer of thousands of digits
        text = ""
    return text.encode("utf-8", "replace").decode()


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
    message = f"{type(first).__name__}: {str(first)[:100]}"
    raise InputError(f"{name} is not valid XML ({message}); export it again, or as RIS.") from None


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


def _leaves(element: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the elements without parts, and the tags that lead to each; text in ``style`` elements is not parted."""
    for part in element:
        if isinstance(part.tag, str):
            inner = (*path, _local(part.tag))
            if len(inner) <= _DEEPEST and any(child.tag != "style" for child in part):
                yield from _leaves(part, inner)
            else:
                yield inner, part


def _endnote(record: Any) -> RawRecord:
    """Return the leaves of a record by name; those of some groups by the name of the group."""
    result: RawRecord = {}
    for path, leaf in _leaves(record):
        group = next((tag for tag in path[-2::-1] if tag in _GROUPS), path[-1])
        text = _all_text(leaf)
        if value := leaf.get("name", text) if path[-1] == "ref-type" else text:
            result.setdefault(group, []).append(value)
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
    article_ids = "PubmedData/ArticleIdList/ArticleId"
    dois = [_all_text(item) for item in article.iterfind(article_ids) if item.get("IdType") == "doi"]
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
    for path, leaf in _leaves(element):
        if value := _all_text(leaf) or leaf.get("href", ""):
            result.setdefault(".".join(path), []).append(value)
    return result
