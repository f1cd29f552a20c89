"""
Match the references of records with the records of the collection.

A reference is an id, a DOI, a PubMed id, an OpenAlex id, or free text: ``SMITH J, 2001, NATURE, V4, P5`` in Web of
Science, authors, title, journal and year in Scopus. A match needs agreement: the identifier, or the whole title and the
year and first author where they are known, or first author, year, volume and first page. A work outside the collection
becomes a normalised text, so that two records that cite it share the text.
"""

from __future__ import annotations

import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import cached_property
from http.client import HTTPException
from typing import Any, NamedTuple

from corank.data import JsonLines
from corank.errors import InputError
from corank.progress import progress
from corank_lab.records.evidence import ComparedRecord, journal_words, make_entries, same_journal
from corank_lab.records.identity import (
    comparable_title,
    family_name,
    fold_text,
    normalise_doi,
    normalise_pmid,
    normalise_title,
)
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
        if len({comparable_title(self._records.titles[i]) for i in holders}) > 1:
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

    def _agrees(self, at: int, text: str, before: list[str]) -> bool:
        """Whether the year is in the text, and the first author is the first of those before the title."""
        year, family = self._records.details[at].year, self._families[at]
        years = [int(item) for item in _YEAR.findall(text)]
        if year is None or not years:
            is_year = len(self._entries[at].title) >= 40 and bool(family and before)
        else:
            is_year = year in years
        # the first author has at most three names and two initials before the next author begins
        is_author = not family or not before or set(family.split()) <= set(before[: 5 + family.count(" ")])
        return is_year and is_author and (bool(family and before) or len(self._entries[at].title) >= 30)


def _is_bounded(text: str, end: int) -> bool:
    """Whether a title ends there: a colon or a word would continue it."""
    rest = text[end : end + 2].lstrip()
    return not rest or rest[0] in _AFTER_TITLE


def _plain_id(text: str) -> str:
    openalex = _OPENALEX.fullmatch(text)
    return openalex[1].upper() if openalex else text


ADDRESS = "https://api.openalex.org"
BATCH = 50
PAUSE = 0.1
"""Number of works per question, and seconds between questions: at most ten per second."""

TRIES, TIMEOUT, FIRST_WAIT, LONGEST_WAIT = 6, 60.0, 1.0, 120.0
"""Attempts per question, seconds until an attempt fails, and seconds of the first and the longest pause after it."""

MAX_ANSWER = 64_000_000
"""Bytes of an answer; more is not read."""


class Work(NamedTuple):
    """A work in OpenAlex: its id such as ``W17``, and the ids of the works that it cites."""

    id: str
    references: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class FetchedReferences:
    """References of a collection from OpenAlex."""

    # the records with references: ids of the collection where the cited work is in it, OpenAlex ids elsewhere. A record
    # that OpenAlex does not know, or without references there, keeps its own. The OpenAlex id of a record is in its
    # field ``openalex_id``
    records: Records
    openalex_ids: list[str]  # openAlex id of each record; empty if it is unknown
    n_asked: int  # number of records with a DOI or a PubMed id
    # n_references, n_inside: number of fetched references, and how many are to records of the collection
    n_references: int
    n_inside: int

    def __str__(self) -> str:
        n_known = sum(map(bool, self.openalex_ids))
        return (
            f"OpenAlex knows {n_known} of {len(self.records)} records ({self.n_asked} have a DOI or a PubMed id); they "
            f"have {self.n_references} references, {self.n_inside} of them to records of the collection."
        )


def fetch_references(
    records: Records,
    *,
    cache: str | os.PathLike[str],
    address: str = ADDRESS,
    mail: str | None = None,
    key: str | None = None,
    verbose: bool = True,
    sleep: Callable[[float], object] = time.sleep,
) -> FetchedReferences:
    """
    Fetch the references of records with a DOI or a PubMed id from OpenAlex.

    Only identifiers are sent. Ctrl-C stops; answers so far stay in the cache, and the next run continues.
    """
    parts = urllib.parse.urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"the address of OpenAlex is {address!r}; expected one such as {ADDRESS}.")
    keys = [_keys(records, i) for i in range(len(records))]
    client = _Client(address.rstrip("/"), mail, key, sleep)
    try:
        file = JsonLines(cache)
    except BlockingIOError:
        raise InputError(f"{cache} is in use by another process; wait until it has finished.") from None
    with file:
        works = _cached(file)
        wanted = list(dict.fromkeys(item for of in keys for item in of[:1]))
        _complete(works, [item for item in wanted if item not in works], client, file, "DOIs and PubMed ids", verbose)
        # a record whose DOI is unknown may be known by its PubMed id
        second = [of[1] for of in keys if len(of) > 1 and works[of[0]] is None and of[1] not in works]
        _complete(works, list(dict.fromkeys(second)), client, file, "PubMed ids", verbose)
    return _resolved(records, keys, works)


def _keys(records: Records, at: int) -> list[str]:
    item = records.details[at]
    return [key for key in (item.doi and f"doi:{item.doi}", item.pmid and f"pmid:{item.pmid}") if key]


def _cached(file: JsonLines) -> dict[str, Work | None]:
    """Works by key from the cache; None for a work that OpenAlex does not know."""
    works: dict[str, Work | None] = {}
    for i, line in enumerate(file.lines, 1):
        try:
            stored = json.loads(line)
            works |= {key: Work(item[0], tuple(item[1])) if item else None for key, item in stored["works"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            raise InputError(
                f"{file.path}, line {i}: expected answers of OpenAlex, found {line[:40]!r}; pass another file for the "
                "cache, or delete this one."
            ) from None
    return works


def _complete(
    works: dict[str, Work | None], keys: Sequence[str], client: _Client, file: JsonLines, what: str, verbose: bool
) -> None:
    """Ask for the works that are not in the cache, and store each answer."""
    batches = [
        same[start : start + BATCH]
        for kind in ("doi:", "pmid:")
        for same in ([key for key in keys if key.startswith(kind)],)
        for start in range(0, len(same), BATCH)
    ]
    n_before = len(works)
    with progress(len(keys), f"OpenAlex: {what}", verbose and bool(keys)) as advance:
        for batch in batches:
            try:
                result = client.ask(batch)
            except _Unavailable as error:
                raise InputError(
                    f"{error} The answers for {len(works) - n_before} of {len(keys)} works are stored in {file.path}; "
                    "run the command again to continue."
                ) from None
            file.append({"works": result})
            works |= {key: result.get(key) for key in batch}
            advance(len(batch))


def _resolved(records: Records, keys: list[list[str]], works: dict[str, Work | None]) -> FetchedReferences:
    result = [next((work for key in of if (work := works.get(key)) is not None), None) for of in keys]
    ids = [work.id if work else "" for work in result]
    number: dict[str, int] = {}
    for i, entry in enumerate(ids):
        if entry:
            number.setdefault(entry, i)
    references, n_references, n_inside = [], 0, 0
    for i, work in enumerate(result):
        cited = [reference for reference in work.references if number.get(reference) != i] if work else []
        n_references += len(cited)
        n_inside += sum(item in number for item in cited)
        fetched = tuple(records.ids[number[item]] if item in number else item for item in cited)
        references.append(fetched or tuple(records.references[i]))
    fields = [
        {**values, "openalex_id": [item]} if item else values for values, item in zip(records.fields, ids, strict=True)
    ]
    return FetchedReferences(
        replace(records, references=references, fields=fields), ids, sum(map(bool, keys)), n_references, n_inside
    )


class _Unavailable(Exception):
    """No answer after all attempts; the message is a sentence."""


class _Rejected(Exception):
    """The server cannot read the question."""


class _Client:
    """Questions to OpenAlex, with pauses and repeated attempts."""

    def __init__(self, address: str, mail: str | None, key: str | None, sleep: Callable[[float], object]) -> None:
        self._address, self._sleep = address, sleep
        self._common = {name: value for name, value in (("mailto", mail), ("api_key", key)) if value}
        self._last = -PAUSE

    def ask(self, keys: Sequence[str]) -> dict[str, Work | None]:
        """Ask for works by DOI or by PubMed id."""
        # commas and bars separate filters and values, so that such a DOI cannot be asked for in a list
        plain = [key for key in keys if not set(key) & set(",|")]
        result = {key: self._ask_one(key) for key in keys if key not in set(plain)}
        if not plain:
            return result
        try:
            return result | self._ask_list(plain)
        except _Rejected:
            if len(plain) == 1:
                return {**result, plain[0]: None}
            half = len(plain) // 2  # one bad identifier must not hide the others
            return result | self.ask(plain[:half]) | self.ask(plain[half:])

    def _ask_one(self, key: str) -> Work | None:
        kind, _, value = key.partition(":")
        try:
            answer = self._get(f"/works/{kind}:{urllib.parse.quote(value)}", {"select": _SELECT})
        except _Rejected:
            return None
        return dict(_works([answer], kind)).get(key)

    def _ask_list(self, keys: Sequence[str]) -> dict[str, Work | None]:
        kind = keys[0].partition(":")[0]
        wanted = "|".join(key.partition(":")[2] for key in keys)
        result: dict[str, Work | None] = dict.fromkeys(keys)
        n_seen, page = 0, 1
        while True:
            query = {"filter": f"{kind}:{wanted}", "per-page": str(BATCH), "page": str(page), "select": _SELECT}
            answer = self._get("/works", query)
            for of, work in _works(answer["results"], kind):
                old = result.get(of)
                # several entries for one identifier: the one with the most references
                if of in result and (old is None or (-len(work.references), work.id) < (-len(old.references), old.id)):
                    result[of] = work
            n_seen += len(answer["results"])
            if n_seen >= answer["meta"]["count"]:
                return result
            if not answer["results"]:
                n_works = answer["meta"]["count"]
                raise _Unavailable(f"OpenAlex announces {n_works} works and sends {n_seen}: its answer is incomplete.")
            page += 1

    def _get(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        url = f"{self._address}{path}?{urllib.parse.urlencode(query | self._common, safe=':|,/')}"
        wait, reason = FIRST_WAIT, ""
        for attempt in range(TRIES):
            if attempt:
                self._sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT)
            since = time.monotonic() - self._last
            if since < PAUSE:
                self._sleep(PAUSE - since)
            try:
                answer = _read(url)
                self._last = time.monotonic()
                if isinstance(answer, dict) and (_is_list(answer) if path == "/works" else "id" in answer):
                    return answer
                reason = "its answer does not have the expected form"
            except urllib.error.HTTPError as error:
                with error:
                    reason = f"it answers {error.code} ({error.reason})"
                    if error.code in (400, 404, 414):
                        raise _Rejected from None
                    if error.code == 401:
                        raise _Unavailable(f"OpenAlex refuses to answer: {reason}; check the key.") from None
                    wait = max(wait, _retry_after(error.headers.get("Retry-After")))
                if wait > LONGEST_WAIT:
                    raise _Unavailable(
                        f"OpenAlex asks to wait {wait:.0f} s: the limit of questions is reached. A free key raises it."
                    ) from None
            except (OSError, HTTPException, ValueError, RecursionError) as error:
                reason = f"{type(error).__name__}: {error}"
            finally:
                self._last = time.monotonic()
        raise _Unavailable(f"OpenAlex gave no answer in {TRIES} attempts: {reason}.")


_SELECT = "id,doi,ids,referenced_works"


def _read(url: str) -> Any:
    request = urllib.request.Request(url, headers={"User-Agent": "corank", "Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        return json.loads(answer.read(MAX_ANSWER))


def _retry_after(value: str | None) -> float:
    """Seconds of a Retry-After header, which has seconds or a date; 0 if it is absent."""
    if not value:
        return 0.0
    try:
        return float(value) if value.strip().isdigit() else parsedate_to_datetime(value).timestamp() - time.time()
    except (TypeError, ValueError):
        return 0.0


def _is_list(answer: dict[str, Any]) -> bool:
    meta = answer.get("meta")
    return isinstance(answer.get("results"), list) and isinstance(meta, dict) and isinstance(meta.get("count"), int)


def _works(results: Iterable[Any], kind: str) -> Iterable[tuple[str, Work]]:
    """Keys and works of an answer; entries without an id are left out."""
    for result in results:
        if not isinstance(result, dict) or not isinstance(result.get("id"), str):
            continue
        given = result.get("ids")
        ids = given if isinstance(given, dict) else {}
        if kind == "doi":
            value = normalise_doi(str(result.get("doi") or ids.get("doi") or ""))
        else:
            value = normalise_pmid(str(ids.get("pmid") or "").rstrip("/").rpartition("/")[2])
        cited = result.get("referenced_works")
        references = [_short(work) for work in cited if isinstance(work, str)] if isinstance(cited, list) else []
        yield f"{kind}:{value}", Work(_short(result["id"]), tuple(dict.fromkeys(references)))


def _short(address: str) -> str:
    return address.rstrip("/").rpartition("/")[2]
