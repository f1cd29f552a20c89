"""
Evidence that two records describe one work: identifiers, titles, year, first author, journal, volume, page, abstract.

Each detail of two records agrees, conflicts, or is unknown on one side. `compare` combines them by rules, not by
weights, so that the reason of every decision can be said in a sentence. The thresholds are similarities in percent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from rapidfuzz import fuzz

from corank_lab.records.identity import (
    comparable_title,
    family_name,
    is_beginning,
    is_generic,
    kinds_differ,
    normalise_title,
    numbers_differ,
    replaced_words,
    title_similarity,
)
from corank_lab.records.records import Records

SAME, CLOSE, RELATED = 95.0, 85.0, 60.0
"""Titles that differ by typing errors, by small words, and at least in topic."""

MIN_WORDS = 6
"""Words of a title that, with the year, identify a work if nothing else can be compared."""

ABSTRACT_ALIKE, ABSTRACT_OTHER, ABSTRACT_LENGTH = 80.0, 50.0, 150
FIELDS = {
    "page": ("sp", "bp", "pages", "page", "pg", "start_page", "start page", "startpage", "page start", "pagination",
             "page numbers", "p", "ar", "art. no.", "article number"),
    "volume": ("vl", "volume", "vi", "vol"),
    "issn": ("sn", "issn", "is", "isbn", "ei", "print issn", "e issn"),
}  # fmt: skip
"""Usual names of columns and tags, in lower case; the first that is present is used."""

_NUMBER = re.compile(r"\d+")
_PAGE = re.compile(r"\b([a-z]{0,3})\.?\s*0*(\d+)", re.IGNORECASE)
_DATE = re.compile(r"(\d{1,2})-(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)$", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ISSN = re.compile(r"\b\d{4}-?\d{3}[\dx]\b", re.IGNORECASE)
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_NO_ISSN: frozenset[str] = frozenset()
_SMALL = frozenset(("of", "the", "and", "in", "for", "on", "de", "der", "la", "und", "et", "a"))


class Match(NamedTuple):
    """Two records of one work: how sure it is, for the order of merging, and the reason in words."""

    strength: float
    text: str


@dataclass(frozen=True)
class ComparedRecord:
    """What is compared of a record; empty means unknown."""

    title: str
    compact: str
    doi: str
    pmid: str
    accession: str
    year: int | None
    author: tuple[str, ...]
    journal: tuple[str, ...]
    issn: frozenset[str]
    volume: str
    page: tuple[str, str] | None
    text: str

    @cached_property
    def abstract(self) -> str:
        """First letters of the abstract, without blanks."""
        return normalise_title(self.text[:1200]).replace(" ", "")[:500]

    @property
    def sort_key(self) -> tuple[str, ...]:
        """Order in which similar records are neighbours, whatever their order in the file is."""
        return (self.compact, *self.author[:1], *(self.page or ()), self.doi, self.pmid, self.volume, self.text)

    @cached_property
    def generic(self) -> bool:
        """Whether many works have such a title."""
        return is_generic(self.title)


def make_entries(records: Records) -> list[ComparedRecord]:
    """Return what is compared of each record."""
    return [entry_of(records, i) for i in range(len(records))]


def entry_of(records: Records, index: int) -> ComparedRecord:
    """Return what is compared of one record."""
    item, title, fields = records.details[index], comparable_title(records.titles[index]), records.fields[index]
    issn, volume, page = (_field(fields, names) for names in _columns(tuple(fields)))
    return ComparedRecord(
        title, title.replace(" ", ""), item.doi, item.pmid, item.accession, item.year,
        first_author_words(item.authors), journal_words(item.journal),
        frozenset(result.replace("-", "").lower() for result in _ISSN.findall(issn)) if issn else _NO_ISSN,
        next(iter(_NUMBER.findall(volume)), "").lstrip("0"), first_page(page) if page else None,
        records.abstracts[index],
    )  # fmt: skip


@lru_cache(maxsize=10_000)
def _columns(names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return which columns of a record may hold ISSN, volume and page, the preferred first."""
    spelled = {name.strip().lower(): name for name in names}
    return tuple(
        tuple(spelled[field] for field in FIELDS[what] if field in spelled) for what in ("issn", "volume", "page")
    )


def _field(fields: Mapping[str, list[str]], names: tuple[str, ...]) -> str:
    return next((" ".join(values) for name in names if (values := fields[name]) and any(values)), "")


def first_page(text: str) -> tuple[str, str] | None:
    """Return letters and number of the first page; a range that a spreadsheet took for a date is restored."""
    date = _DATE.search(text.strip())
    if date:
        return "", str(min(int(date[1]), _MONTHS.index(date[2].lower()) + 1))
    result = _PAGE.search(text)
    return (result[1].lower(), result[2]) if result else None


def first_author_words(authors: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the first author without initials, the family name first."""
    if not authors or not authors[0].strip():
        return ()
    names = normalise_title(authors[0]).split()
    leading = next((i for i, name in enumerate(names) if len(name) == 1), len(names))
    if leading and leading < len(names) and "," not in authors[0]:
        return tuple(names[:leading])
    family = family_name(authors[0]).split() or names
    return tuple(dict.fromkeys([*family, *(name for name in names if len(name) > 2)]))


@lru_cache(maxsize=50_000)
def journal_words(journal: str) -> tuple[str, ...]:
    """Return the words of a journal without brackets, articles and prepositions."""
    return tuple(word for word in normalise_title(_BRACKETS.sub(" ", journal)).split() if word not in _SMALL)


class RecordAgreement(NamedTuple):
    """True where a detail of two records agrees, False where it conflicts, None where it is unknown."""

    year: bool | None
    author: bool | None
    journal: bool | None
    volume: bool | None
    page: bool | None
    abstract: bool | None

    @property
    def same_place(self) -> bool:
        """Whether volume and first page agree, or journal and first page if a volume is unknown."""
        return self.page is True and (self.volume is True or (self.volume is None and self.journal is True))

    def agreeing(self) -> list[str]:
        """Names of the details that agree."""
        return [name for name, agrees in zip(_NAMES, self, strict=True) if agrees is True]

    def conflicting(self) -> list[str]:
        """Names of the details that conflict; volumes are too often mistaken to count."""
        return [name for name, agrees in zip(_NAMES, self, strict=True) if agrees is False and name != "volume"]


_NAMES = ("year", "first author", "journal", "volume", "first page", "abstract")


def compare_details(first: ComparedRecord, other: ComparedRecord) -> RecordAgreement:
    """Compare all details but identifiers and titles."""
    return RecordAgreement(
        _years(first.year, other.year), _authors(first.author, other.author), _journals(first, other),
        first.volume == other.volume if first.volume and other.volume else None, _pages(first.page, other.page),
        _abstracts(first, other),
    )  # fmt: skip


def _years(first: int | None, other: int | None) -> bool | None:
    """A difference of one year, as between online and print, is neither an agreement nor a conflict."""
    if first is None or other is None or abs(first - other) == 1:
        return None
    return first == other


def _authors(first: tuple[str, ...], other: tuple[str, ...]) -> bool | None:
    if not first or not other:
        return None
    return bool(set(first) & set(other)) or (
        min(len(first[0]), len(other[0])) > 5 and fuzz.ratio(first[0], other[0]) >= 85
    )


def _pages(first: tuple[str, str] | None, other: tuple[str, str] | None) -> bool | None:
    if first is None or other is None:
        return None
    if first[1] == other[1]:
        return True if first[0] == other[0] or not first[0] or not other[0] else None
    # an article number and the pages of its PDF are not comparable
    is_article = ["e" in page[0] or len(page[1]) > 4 for page in (first, other)]
    return None if is_article[0] != is_article[1] else False


def _abstracts(first: ComparedRecord, other: ComparedRecord) -> bool | None:
    if len(first.abstract) < ABSTRACT_LENGTH or len(other.abstract) < ABSTRACT_LENGTH:
        return None
    length = min(len(first.abstract), len(other.abstract))
    alike = fuzz.ratio(first.abstract[:length], other.abstract[:length])
    return True if alike >= ABSTRACT_ALIKE else False if alike < ABSTRACT_OTHER else None


def _journals(first: ComparedRecord, other: ComparedRecord) -> bool | None:
    if first.issn & other.issn:
        return True
    return same_journal(first.journal, other.journal)


@lru_cache(maxsize=100_000)
def same_journal(first: tuple[str, ...], other: tuple[str, ...]) -> bool | None:
    """
    Return whether two journals, as words without articles and prepositions, may be one; None if it cannot be said.
    """
    if not first or not other:
        return None
    short, long = sorted((first, other), key=lambda words: (len(words), len("".join(words))))
    if len(short) == len(long) and all(map(_is_abbreviation, short, long)):
        return True
    if short == ("".join(word[0] for word in long),):
        return True
    return None if all(map(_is_abbreviation, short, long)) else False


def _is_abbreviation(first: str, other: str) -> bool:
    """Whether one word has the letters of the other in order, as natl and national."""
    short, long = sorted((first, other), key=len)
    letters = iter(long)
    return short[0] == long[0] and all(letter in letters for letter in short)


def compare(first: ComparedRecord, other: ComparedRecord) -> Match | None:
    """Return why two records describe one work, or None if that is not sure."""
    alike = title_similarity(first.title, other.title)
    details = compare_details(first, other)
    reason = _by_identifier(first, other, alike, details)
    if reason:
        return Match(200 + alike + len(details.agreeing()), reason)
    if _is_duplicate(first, other, alike, details):
        return Match(alike + len(details.agreeing()), _in_words(alike, details))
    return None


def _in_words(alike: float, details: RecordAgreement) -> str:
    percent = "the same title" if alike == 100 else f"titles {min(99, int(alike))} % alike"
    agreeing = [name for name in details.agreeing() if name != "abstract"]
    both = (
        [f"same {' and '.join([', '.join(agreeing[:-1]), agreeing[-1]] if agreeing[1:] else agreeing)}"]
        if agreeing
        else []
    )
    return ", ".join([percent, *both, *(["abstracts alike"] if details.abstract else [])])


def _by_identifier(first: ComparedRecord, other: ComparedRecord, alike: float, details: RecordAgreement) -> str:
    """Reason if an identifier is the same and nothing shows that the works differ, as in supplements with one DOI."""
    same_pmid = bool(first.pmid) and first.pmid == other.pmid
    same_doi = bool(first.doi) and first.doi == other.doi
    if _differ(first.pmid, other.pmid) or (kinds_differ(first.title, other.title) and not details.same_place):
        return ""
    unknown = not first.title or not other.title
    if same_pmid and (unknown or alike >= RELATED or details.author or details.same_place):
        return f"same PubMed id {first.pmid}"
    if same_doi:
        conflicts = set(details.conflicting())
        if alike >= SAME:
            # neighbouring abstracts of a supplement may differ by a word of the title
            is_distinct = numbers_differ(first.title, other.title) and not is_beginning(first.title, other.title)
            is_distinct = is_distinct or (replaced_words(first.title, other.title) and not details.author)
            is_same = (not is_distinct or details.page is True or details.abstract is True) and (
                "first page" not in conflicts or ("first author" not in conflicts and not _other_text(first, other))
            )
        elif alike >= RELATED or is_beginning(first.title, other.title) or unknown:
            is_same = bool(details.author or details.page or unknown) and not {"first page", "abstract"} & conflicts
            is_same = is_same and (alike >= CLOSE or details.abstract is not None or details.page is True)
        else:
            is_same = details.same_place and details.author is True and details.abstract is not False
        return f"same DOI {first.doi}" if is_same else ""
    if first.accession and first.accession == other.accession and not details.conflicting():
        is_same = alike >= CLOSE and not _differ(first.doi, other.doi) and not numbers_differ(first.title, other.title)
        return f"same accession number {first.accession}" if is_same else ""
    return ""


def _other_text(first: ComparedRecord, other: ComparedRecord) -> bool:
    """Whether both records have abstracts that are not alike."""
    known = min(len(first.abstract), len(other.abstract)) >= ABSTRACT_LENGTH
    return known and _abstracts(first, other) is not True


def _differ(first: str, other: str) -> bool:
    return bool(first and other) and first != other


def _is_duplicate(first: ComparedRecord, other: ComparedRecord, alike: float, details: RecordAgreement) -> bool:
    """Decide without an identifier: the less alike the titles are, the more of the rest must agree."""
    if _differ(first.pmid, other.pmid) or kinds_differ(first.title, other.title):
        return False
    if not first.title or not other.title:
        return first.title == other.title and details.abstract is True and not details.conflicting()
    agreeing, conflicting = details.agreeing(), details.conflicting()
    if len(conflicting) > 1:
        return False
    place, same_abstract = details.same_place, details.abstract is True
    if _differ(first.doi, other.doi) and not (alike >= SAME and place):
        return False
    if first.generic or other.generic:
        return not conflicting and details.year is True and (place or (same_abstract and details.author is True))
    if conflicting and not place:
        # pages may be those of an earlier version if all the rest agrees
        rest = {"year", "first author", "journal", "abstract"}
        if conflicting != ["first page"] or not rest <= set(agreeing):
            return False
    changed = numbers_differ(first.title, other.title) or replaced_words(first.title, other.title)
    if (
        changed
        and not (place and alike >= CLOSE and details.author is not False)
        and not (same_abstract and details.author is True and details.page is not False)
    ):
        return False
    if first.year and other.year and first.year != other.year and not (details.page or same_abstract):
        return False  # a conference abstract and its article, or a yearly editorial
    if alike >= SAME:
        is_bare = details.author is details.journal is details.abstract is None  # as in a list of titles and years
        if alike == 100 and is_bare and details.year and not conflicting and len(first.title.split()) >= MIN_WORDS:
            return True
        # a comment often has the title, year and journal of the work that it is about, and no abstract
        same_text = same_abstract or first.text == other.text
        is_supported = bool(details.author or details.page) or same_text
        return is_supported and (len(agreeing) > 1 or (alike == 100 and (_nothing_else(first, other) or same_abstract)))
    if alike >= CLOSE:
        return len(agreeing) > 2 and (place or same_abstract)
    if alike >= RELATED or is_beginning(first.title, other.title):
        return len(agreeing) > 3 and details.author is True and (place or same_abstract)
    # a translated title
    return place and same_abstract and details.author is True and details.year is True


def _nothing_else(first: ComparedRecord, other: ComparedRecord) -> bool:
    """Whether only titles, which are long enough, are known, and perhaps the same year."""
    known = (first.author, other.author, first.journal, other.journal)
    return not any(known) and first.year == other.year and len(first.title.split()) > 4


def contradict(first: ComparedRecord, other: ComparedRecord) -> bool:
    """Return whether two records cannot describe one work, even if both resemble a third."""
    if _differ(first.pmid, other.pmid) or kinds_differ(first.title, other.title):
        return True
    alike = title_similarity(first.title, other.title) if first.title and other.title else 100.0
    details = compare_details(first, other)
    if alike >= RELATED and numbers_differ(first.title, other.title) and not details.same_place:
        return not is_beginning(first.title, other.title)
    n_against = len(details.conflicting()) + _differ(first.doi, other.doi) + (alike < RELATED)
    is_tied = details.same_place or details.abstract is True or (bool(first.doi) and first.doi == other.doi)
    return n_against > int(is_tied)
