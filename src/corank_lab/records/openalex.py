"""
References of records from OpenAlex, by DOI or PubMed id, with a cache on disk.

Up to 50 works are asked for at once. Each answer is on the disk before the next question, so that a run that was killed
continues where it stopped. Errors of the network and of the server are retried after a pause that grows.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, NamedTuple

from corank.data import JsonLines
from corank.errors import InputError
from corank.progress import progress
from corank_lab.records.identity import normalise_doi, normalise_pmid
from corank_lab.records.records import Records

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


def _keys(records: Records, index: int) -> list[str]:
    item = records.details[index]
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
        common = {"select": "id,doi,ids,referenced_works", "mailto": mail, "api_key": key}
        self._common = {name: value for name, value in common.items() if value}
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
        try:
            return dict(_works([self._get(f"/works/{urllib.parse.quote(key, ':')}", {})], key)).get(key)
        except _Rejected:
            return None

    def _ask_list(self, keys: Sequence[str]) -> dict[str, Work | None]:
        kind = keys[0].partition(":")[0]
        wanted = "|".join(key.partition(":")[2] for key in keys)
        result: dict[str, Work | None] = dict.fromkeys(keys)
        n_seen, page = 0, 1
        while True:
            answer = self._get("/works", {"filter": f"{kind}:{wanted}", "per-page": str(BATCH), "page": str(page)})
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
        if kind.startswith("doi"):
            key = f"doi:{normalise_doi(str(result.get('doi') or ids.get('doi') or ''))}"
        else:
            key = f"pmid:{normalise_pmid(_short(str(ids.get('pmid') or '')))}"
        cited = result.get("referenced_works")
        references = [_short(work) for work in cited if isinstance(work, str)] if isinstance(cited, list) else []
        yield key, Work(_short(result["id"]), tuple(dict.fromkeys(references)))


def _short(address: str) -> str:
    return address.rstrip("/").rpartition("/")[2]
