"""
Match the references of records with the records of the collection.

A reference is an id, a DOI, a PubMed id, an OpenAlex id, or free text: ``SMITH J, 2001, NATURE, V4, P5`` in Web of
Science, authors, title, journal and year in Scopus. A match needs agreement: the identifier, or the whole title and the
year and first author where they are known, or first author, year, volume and first page. A work outside the collection
becomes a normalised text, so that two records that cite it share the text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from corank_lab.records.evidence import ComparedRecord, journal_words, make_entries, same_journal
from corank_lab.records.identity import comparable_title, family_name, fold_text, normalise_doi, normalise_title
from corank_lab.records.records import Records

_OPENALEX = re.compile(r"(?:https?://(?:api\.)?openalex\.org/(?:works/)?)?(W\d{4,})/?", re.IGNORECASE)
_PMID = re.compile(
    r"(?:pmid|pubmed(?: id)?)\s*[:=]?\s*0*(\d{1,9})\b|pubmed\.ncbi\.nlm\.nih\.gov/0*(\d{1,9})", re.IGNORECASE
)
_CITED = re.compile(r"(?P<author>[^,]+),\s*(?P<year>(?:1[5-9]|20)\d\d),\s*(?P<rest>.*)", re.DOTALL)
_VOLUME, _FIRST_PAGE = re.compile(r",\s*V0*(\d+)\b"), re.compile(r",\s*P([A-Z]{0,3})0*(\d+)\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(1[5-9]\d\d|20\d\d)\b")
_SEPARATOR = re.compile(r";\s+|\s*\|\s*|[\r\n]+")
_WORD = re.compile(r"[^\W_]+")
_AFTER_TITLE = frozenset(",.;(?!\"'”’)]")
MIN_WORDS = 4
"""Number of words that a title needs to be found in free text."""


@dataclass(frozen=True)
class ReferenceCounts:
    """How many references were matched with records of the collection, and how."""

    n_references: int  # number of references of all records
    # by_id, by_doi, by_pmid, by_title, by_page: references to records of the collection: by id, by DOI, by PubMed id,
    # by title, or by first author, year, volume and first page
    by_id: int = 0
    by_doi: int = 0
    by_pmid: int = 0
    by_title: int = 0
    by_page: int = 0

    @property
    def n_matched_inside(self) -> int:
        """Number of references to records of the collection."""
        return self.by_id + self.by_doi + self.by_pmid + self.by_title + self.by_page

    def __str__(self) -> str:
        ways = {
            "id": self.by_id, "DOI": self.by_doi, "PubMed id": self.by_pmid, "title": self.by_title,
            "author, year and page": self.by_page,
        }  # fmt: skip
        shown = ", ".join(f"{n} by {name}" for name, n in ways.items() if n)
        inside = f"{self.n_matched_inside} of {self.n_references} references are to records of the collection"
        return f"{inside} ({shown})." if shown else f"{inside}."


def match_references(records: Records) -> tuple[Records, ReferenceCounts]:
    """
    Replace references by ids of the collection where they surely agree, and by normalised texts elsewhere.

    >>> from corank_lab.records.records import RecordDetails
    >>> details = [RecordDetails(), RecordDetails(year=2001, authors=("Roe, A.",))]
    >>> cited = "Roe A., Sleep and memory in young rats, Nature, 4, pp. 5-9, (2001); Doe B., Tin, (1990)"
    >>> titles = ["A review of sleep", "Sleep and memory in young rats"]
    >>> records = Records(["a", "b"], titles, ["", ""], [[cited], []], details=details)
    >>> matched, counts = match_references(records)
    >>> matched.references[0], str(counts)
    (('b', 'doe b tin 1990'), '1 of 2 references are to records of the collection (1 by title).')
    """
    index = _Index(records)
    known: dict[str, tuple[str, int | str]] = {}
    counts: Counter[str] = Counter()
    matched = []
    for i, given in enumerate(records.references):
        cited: dict[str, None] = {}
        for text in _parts(given):
            counts["all"] += 1
            if text not in known:
                known[text] = index.find(text)
            how, result = known[text]
            if result == i:
                continue
            counts[how] += 1
            cited[records.ids[result] if isinstance(result, int) else result] = None
        matched.append(tuple(cited))
    ways = {f"by_{how}": counts[how] for how in ("id", "doi", "pmid", "title", "page")}
    return replace(records, references=matched), ReferenceCounts(counts["all"], **ways)


def _parts(given: Iterable[str]) -> Iterator[str]:
    """Single references; a text with several is split at semicolons, bars and line ends, never at blanks or commas."""
    for text in given:
        yield from (part for item in _SEPARATOR.split(text) if (part := item.strip(" ;|")))


class _Place(NamedTuple):
    family: str
    year: int
    volume: str
    page: str


class _Index:
    """Records by everything that a reference may name."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._by_id: dict[str, int] = {}
        self._by_key: dict[str, list[int]] = defaultdict(list)
        given = Counter(detail.given_id for detail in records.details if detail.given_id)
        for i, item in enumerate(records.details):
            for key in (item.given_id if given[item.given_id] == 1 else "", records.ids[i]):
                if key:
                    self._by_id[_plain_id(key)] = i
            for key in (f"doi:{item.doi}" if item.doi else "", f"pmid:{item.pmid}" if item.pmid else ""):
                if key:
                    self._by_key[key].append(i)

    @cached_property
    def _entries(self) -> Sequence[ComparedRecord]:
        return make_entries(self._records)

    @cached_property
    def _families(self) -> list[str]:
        return [family_name(detail.authors[0]) if detail.authors else "" for detail in self._records.details]

    @cached_property
    def _by_place(self) -> dict[_Place, list[int]]:
        """Records by first author, year, volume and page; for references in free text."""
        result: dict[_Place, list[int]] = defaultdict(list)
        for i, (entry, family) in enumerate(zip(self._entries, self._families, strict=True)):
            if family and entry.year and entry.volume and entry.page:
                result[_Place(family, entry.year, entry.volume, "".join(entry.page))].append(i)
        return result

    @cached_property
    def _by_words(self) -> dict[tuple[str, ...], dict[str, list[int]]]:
        """Records by the first words of their title, then by the title; for references in free text."""
        result: dict[tuple[str, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for i, title in enumerate(self._records.titles):
            words = normalise_title(title).split()
            if len(words) >= MIN_WORDS:
                result[tuple(words[:3])][" ".join(words)].append(i)
        return result

    def find(self, text: str) -> tuple[str, int | str]:
        """How a reference was matched and with which record; or that it is outside, and its normalised text."""
        i = self._by_id.get(_plain_id(text))
        if i is not None:
            return "id", i
        openalex = _OPENALEX.fullmatch(text)
        if openalex:
            return "outside", openalex[1].upper()
        doi = normalise_doi(text)
        if doi:
            result = self._agreed(self._by_key.get(f"doi:{doi}", []), text)
            return ("doi", result) if result is not None else ("outside", f"doi:{doi}")
        pmid = _PMID.search(text)
        if pmid:
            key = f"pmid:{pmid[1] or pmid[2]}"
            result = self._agreed(self._by_key.get(key, []), text)
            return ("pmid", result) if result is not None else ("outside", key)
        # a text without blanks is an id, which is kept
        return self._find_text(text) if len(text.split()) > 1 else ("outside", text)

    def _agreed(self, holders: list[int], text: str) -> int | None:
        """The record with an identifier; of several with different titles, the one whose title is in the text."""
        if len(holders) > 1 and len({comparable_title(self._records.titles[i]) for i in holders}) > 1:
            plain = normalise_title(text)
            holders = [i for i in holders if (title := normalise_title(self._records.titles[i])) and title in plain]
            if len({self._records.titles[i] for i in holders}) > 1:
                return None
        return holders[0] if holders else None

    def _find_text(self, text: str) -> tuple[str, int | str]:
        cited = _CITED.fullmatch(text)
        if cited:
            volume, page = _VOLUME.search(cited["rest"]), _FIRST_PAGE.search(cited["rest"])
            if volume and page:
                place = _Place(family_name(cited["author"]), int(cited["year"]), volume[1], (page[1] + page[2]).lower())
                result = self._at_place(place, cited["rest"][: cited["rest"].find(",")])
                # the same work has several spellings of its journal
                return ("page", result) if result is not None else ("outside", "{} {} v{} p{}".format(*place))
        i = self._by_title(text)
        return ("title", i) if i is not None else ("outside", normalise_title(text) or text)

    def _at_place(self, place: _Place, journal: str) -> int | None:
        words = journal_words(journal)
        holders = [
            i for i in self._by_place.get(place, []) if same_journal(words, self._entries[i].journal) is not False
        ]
        titles = {self._entries[i].title for i in holders}
        return holders[0] if len(titles) == 1 else None

    def _by_title(self, text: str) -> int | None:
        """The record whose whole title is in the text between punctuation marks, if year and first author agree."""
        plain = fold_text(text)
        words = list(_WORD.finditer(plain))
        spelled = [word[0] for word in words]
        result: list[tuple[int, int]] = []
        for start, first in enumerate(zip(spelled, spelled[1:], spelled[2:], strict=False)):
            for title, holders in self._by_words[first].items() if first in self._by_words else ():
                end = start + title.count(" ") + 1
                if end > len(words) or " ".join(spelled[start:end]) != title:
                    continue
                if _is_bounded(plain, words[end - 1].end()):
                    result += [(len(title), i) for i in holders if self._agrees(i, text, spelled[:start])]
        longest = {i for length, i in result if length == max(result)[0]}
        if len({self._entries[i].title for i in longest}) > 1 or not longest:
            return None
        return min(longest)

    def _agrees(self, index: int, text: str, before: list[str]) -> bool:
        """Whether the year is in the text, and the first author is the first of those before the title."""
        year, family = self._records.details[index].year, self._families[index]
        years = [int(item) for item in _YEAR.findall(text)]
        if year is None or not years:
            is_year = len(self._entries[index].title) >= 40 and bool(family and before)
        else:
            is_year = year in years
        # the first author has at most three names and two initials before the next author begins
        is_author = not family or not before or set(family.split()) <= set(before[: 5 + family.count(" ")])
        return is_year and is_author and (bool(family and before) or len(self._entries[index].title) >= 30)


def _is_bounded(text: str, end: int) -> bool:
    """Whether a title ends there: a colon or a word would continue it."""
    rest = text[end : end + 2].lstrip()
    return not rest or rest[0] in _AFTER_TITLE


def _plain_id(text: str) -> str:
    openalex = _OPENALEX.fullmatch(text) if text[:1] in "WwHh" else None
    return openalex[1].upper() if openalex else text
