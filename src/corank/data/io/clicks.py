"""
Logs of clicks: lists shown to users, from tables with one row per document shown, or User Behavior Insights (UBI).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.collection import as_texts
from corank.data.inputs import as_numbers
from corank.data.io.tables import JSON, at_path, json_values, read_table, read_utf8, shortened, suffix_of, write_rows
from corank.data.queries import Queries, is_missing
from corank.errors import InputError, warn

Ints = NDArray[np.int64]
MAX_POSITION = 1_000_000
"""Largest position of a list; memory is needed for every position."""
COLUMNS = ("qid", "docid", "position", "clicked")
OPTIONAL = ("impression", "propensity", "complete", "log_propensity")
"""Columns of tables, in the order of the parameters of `ClickLog.of`."""
CLICKS = ("click", "click_through", "add_to_cart", "purchase")
"""Actions of UBI that count as clicks."""
IMPRESSION = "impression"
"""Action of an event that is logged for every document shown."""
HITS = ("query_response_hit_ids", "query_response_objects_ids")

_FLAG = (lambda values: (values == 0) | (values == 1)), "0 or 1"
# which values each column of numbers may hold, and what a message expects; sums of probabilities exceed 1 by rounding
_RANGES: dict[str, Any] = {
    "position": (
        lambda values: (values >= 1) & (values <= MAX_POSITION) & (values == np.floor(values)),
        f"a whole number from 1 to {MAX_POSITION}",
    ),
    "clicked": _FLAG,
    "propensity": (lambda values: (values > 0) & (values <= 1), "a probability above 0"),
    "complete": _FLAG,
    "log_propensity": (lambda values: (values <= 1e-9) & np.isfinite(values), "the logarithm of a probability"),
}


@dataclass(frozen=True, eq=False, repr=False)
class ClickLog:
    """
    Lists that were shown, with one row per document shown; made by `ClickLog.of` or `read_clicks`.

    propensity: Probability that the row is examined, known when the list was made; None if the log has none.
    log_propensity: Logarithm of the probability that the row was shown at its position, given the rows above it, as in
        `Impression`; None if the log has none.
    complete: Whether the row's list is complete; in other lists, documents that were not clicked may be missing. None
        if all lists are complete. Methods that need them leave incomplete lists out, or refuse them.
    """

    impression: Ints  # number of the list of each row, from 0
    qid: NDArray[np.object_]  # qid, docids: query and document of the row
    docids: NDArray[np.object_]
    position: Ints  # position in the list; the first is 1
    clicked: NDArray[np.bool_]  # whether the document was clicked, once or more
    propensity: NDArray[np.float64] | None = None
    complete: NDArray[np.bool_] | None = None
    log_propensity: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        qid: ArrayLike,
        docids: ArrayLike,
        position: ArrayLike,
        clicked: ArrayLike,
        *,
        impression: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        complete: ArrayLike | None = None,
        log_propensity: ArrayLike | None = None,
    ) -> ClickLog:
        """Check a log of lists and clicks."""
        queries, documents = _names(qid), _names(docids)
        n = len(queries)
        if len(documents) != n:
            raise InputError(f"docids has {len(documents)} values for {n} query ids; pass one for each row shown.")
        given = {
            "position": position, "clicked": clicked, "propensity": propensity, "complete": complete,
            "log_propensity": log_propensity,
        }  # fmt: skip
        checked: dict[str, Any] = {
            name: None if values is None else _numbers(name, values, n) for name, values in given.items()
        }
        places, whole = checked.pop("position"), checked.pop("complete")
        if impression is None:
            same = (queries[1:] == queries[:-1]) & (places[1:] > places[:-1])
            lists = np.cumsum(np.concatenate([np.zeros(min(n, 1)), ~same])).astype(np.int64)
        else:
            lists = Queries.of(impression, n).codes
        partial = None if whole is None or whole.all() else whole.astype(bool)
        clicks = checked.pop("clicked").astype(bool)
        log = cls(lists, queries, documents, places.astype(np.int64), clicks, complete=partial, **checked)
        log._require_lists()
        return log

    def __len__(self) -> int:
        return len(self.position)

    def __repr__(self) -> str:
        n_queries = len(np.unique(self.query_codes))
        return (
            f"<ClickLog: {self.n_impressions} lists of {n_queries} queries, {len(self)} documents shown, "
            f"{int(self.clicked.sum())} clicked>"
        )

    @property
    def n_impressions(self) -> int:
        """Number of lists."""
        return int(self.impression.max()) + 1 if len(self) else 0

    @cached_property
    def query_codes(self) -> Ints:
        """Number of each row's query, in order of first appearance."""
        return Queries.of(self.qid, len(self)).codes

    @cached_property
    def items(self) -> Ints:
        """Number of each row's pair of query and document."""
        documents = Queries.of(self.docids, len(self)).codes
        return _numbered(self.query_codes, documents)

    def find(self, qid: ArrayLike, docids: ArrayLike) -> Ints:
        """Match the rows of the log with rows of features."""
        queries, documents = _names(qid), _names(docids)
        if len(queries) != len(documents):
            raise InputError(f"docids has {len(documents)} values for {len(queries)} query ids; pass one for each row.")
        number = {pair: row for row, pair in enumerate(zip(queries.tolist(), documents.tolist(), strict=True))}
        if len(number) < len(queries):
            raise InputError(
                f"{len(queries) - len(number)} rows repeat the query and document of another; pass distinct rows."
            )
        shown = zip(self.qid.tolist(), self.docids.tolist(), strict=True)
        return np.fromiter((number.get(pair, -1) for pair in shown), dtype=np.int64, count=len(self))

    def part(self, rows: NDArray[np.bool_]) -> ClickLog:
        """Return the log of some rows."""
        more: dict[str, Any] = {}
        for name in OPTIONAL:
            values = getattr(self, name)
            more[name] = None if values is None else values[rows]
        return ClickLog.of(self.qid[rows], self.docids[rows], self.position[rows], self.clicked[rows], **more)

    def expected_clicks(self) -> tuple[NDArray[np.object_], NDArray[np.object_], NDArray[np.float64]]:
        """
        Return queries, documents and their clicks over expected clicks (COEC), which correct the position bias.

        The click-through rate of position k is c_k = (clicks at k) / (documents shown at k). A document that was shown
        at the positions k_1, ..., k_n of a query gets (its clicks) / Σ_i c_{k_i}: 1 if it was clicked as often as any
        document at these positions. This needs that relevance and position are unrelated in the log, which
        `corank.clicks.position_bias` does not.
        """
        kept = np.ones(len(self), dtype=bool) if self.complete is None else self.complete
        if not self.clicked[kept].any():
            raise InputError("no complete list has a click, so no grades can be computed; log more lists.")
        position, clicked = self.position[kept], self.clicked[kept].astype(np.float64)
        rate = np.bincount(position, weights=clicked) / np.maximum(np.bincount(position), 1)
        _, first, code = np.unique(self.items[kept], return_index=True, return_inverse=True)
        clicks, expected = np.bincount(code, weights=clicked), np.bincount(code, weights=rate[position])
        known = np.flatnonzero(expected > 0)
        known = known[np.argsort(first[known])]
        rows = np.flatnonzero(kept)[first[known]]
        return self.qid[rows], self.docids[rows], np.round(clicks[known] / expected[known], 3)

    def _require_lists(self) -> None:
        """Raise for lists of two queries, and for documents or positions that occur twice in a list."""
        if not len(self):
            raise InputError("the log has no rows; pass at least one document that was shown.")
        first = np.zeros(self.n_impressions, dtype=np.int64)
        first[self.impression[::-1]] = self.query_codes[::-1]
        mixed = np.flatnonzero(first[self.impression] != self.query_codes)
        if len(mixed):
            raise InputError(
                f"row {mixed[0]} of the log has query {self.qid[mixed[0]]!r}, but its list has another one; pass "
                "distinct ids of lists in impression."
            )
        for what, values in (("document", self.items), ("position", self.position)):
            numbers = _numbered(self.impression, values)
            if numbers.max() + 1 < len(self):
                row = int(np.flatnonzero(np.bincount(numbers)[numbers] > 1)[-1])
                raise InputError(
                    f"row {row} of the log repeats a {what} of its list; pass distinct ids of lists in impression."
                )


def _numbers(name: str, given: ArrayLike, n: int) -> NDArray[np.float64]:
    """Check a column of numbers."""
    fits, wanted = _RANGES[name]
    values = as_numbers(given, name, "number")
    if len(values) != n:
        raise InputError(f"{name} has {len(values)} values for {n} rows shown; pass one for each.")
    bad = np.flatnonzero(~fits(values))
    if len(bad):
        raise InputError(f"{name} is {values[bad[0]]:g} at row {bad[0]} of the log; pass {wanted}.")
    return values


def _numbered(first: Ints, second: Ints) -> Ints:
    """Number the distinct pairs of two columns from 0, in ascending order."""
    width = int(second.max()) + 1 if len(second) else 1
    numbers: Ints = np.unique(first * width + second, return_inverse=True)[1].astype(np.int64)
    return numbers


def _names(values: ArrayLike) -> NDArray[np.object_]:
    ids: Any = values if isinstance(values, list | tuple) else np.asarray(values).tolist()
    if not isinstance(ids, list | tuple):
        raise InputError(f"ids are {values!r}; pass one for each row.")
    missing = next((row for row, value in enumerate(ids) if is_missing(value)), None)
    if missing is not None:
        raise InputError(f"row {missing} has no id of its query or document; pass both for every row.")
    texts = [str(value) for value in ids]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:  # half characters, from JSON, could not be written again
        texts = [text.encode("utf-8", "replace").decode() for text in texts]
    return as_texts(texts)


def read_clicks(path: str | os.PathLike[str], *, queries: str | os.PathLike[str] | None = None) -> ClickLog:
    """
    Read a log of clicks.

    A table (.csv, .tsv or .parquet) has one row per document shown: ``qid``, ``docid``, ``position`` (from 1),
    ``clicked`` (0 or 1) and, if known, ``impression`` (id of the list), ``propensity``, ``log_propensity`` and
    ``complete`` (0 for rows of lists whose documents are not all known). Files with the suffix .json, .jsonl or .ndjson
    are read as User Behavior Insights (UBI): events, and queries with the documents shown, in one file or two. Saved
    answers of OpenSearch (``{"hits": {"hits": [...]}}``) are unwrapped. A warning gives the number of objects and
    clicks that are left out.
    """
    suffix = suffix_of(path)
    if suffix in JSON:
        return _read_ubi(path, queries)
    if queries is not None:
        raise InputError(f"queries= is for events of UBI, but {path} is a table; leave it out.")
    if suffix not in (".csv", ".tsv", ".parquet"):
        raise InputError(f"{path} has an unknown suffix; expected .csv, .tsv, .parquet, {', '.join(JSON)}.")
    table = read_table(path)
    table.require(*COLUMNS)
    if not len(table):
        raise InputError(f"{path} has no rows; expected one per document shown.")
    cells: dict[str, Any] = {
        name: table.numbers(name) if name in _RANGES else list(map(_trimmed, table.columns[name]))
        for name in (*COLUMNS, *OPTIONAL)
        if name in table.columns
    }
    shown = [cells.pop(name) for name in COLUMNS]
    try:
        return ClickLog.of(*shown, **cells)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _trimmed(cell: Any) -> Any:
    return cell.strip(" \t\n\v\f\r") if isinstance(cell, str) else cell  # as in the ids of `corank.read`


def write_clicks(path: str | os.PathLike[str], log: ClickLog, *, overwrite: bool = False) -> None:
    """Write a log of clicks as a table (.csv, .tsv)."""
    if suffix_of(path) not in (".csv", ".tsv"):
        raise InputError(f"{path} has an unknown suffix; use .csv or .tsv.")
    columns: dict[str, Any] = {
        "impression": log.impression, "qid": log.qid, "docid": log.docids, "position": log.position,
        "clicked": log.clicked.astype(np.int64), "propensity": log.propensity, "log_propensity": log.log_propensity,
        "complete": None if log.complete is None else log.complete.astype(np.int64),
    }  # fmt: skip
    cells = {name: values.tolist() for name, values in columns.items() if values is not None}
    rows = [list(cells), *zip(*cells.values(), strict=True)]
    write_rows(path, rows, overwrite=overwrite, separator="," if suffix_of(path) == ".csv" else "\t")


def is_ubi(value: Any) -> bool:
    """Return whether a JSON value is a query or an event of UBI."""
    return isinstance(value, dict) and ("action_name" in value or any(key in value for key in HITS))


def _read_ubi(path: str | os.PathLike[str], queries: str | os.PathLike[str] | None) -> ClickLog:
    """
    Read queries and events; a list is one ``query_id``, a query its words, a click an event of `CLICKS`.

    Repeated clicks count once.
    """
    searches: dict[str, _Search] = {}
    n_objects, n_lost, notes = 0, 0, []
    for file in (queries, path):
        if file is not None:
            objects = _Objects(str(file))
            for where, item in objects.read():
                n_lost += _add(searches, where, item)
            n_objects += objects.n_objects
            notes += objects.notes()
    rows = [row for name, search in searches.items() for row in search.rows(name)]
    n_lost += sum(search.n_lost for search in searches.values())
    n_unshown = sum(search.n_unshown for search in searches.values())
    n_partial = sum(not search.is_complete for search in searches.values())
    if n_partial:
        notes.append(
            f"{n_partial} of {len(searches)} searches have neither {HITS[0]} nor events of the action {IMPRESSION!r}, "
            "so only documents of other events are known (by position.ordinal)"
        )
    if n_lost:
        notes.append(f"{n_lost} clicks were left out, because the query or the position of their document is unknown")
    if n_unshown:
        notes.append(f"{n_unshown} clicks were left out, because their documents were not shown by their searches")
    if not rows:
        raise InputError(
            f"{path}: no document shown in {n_objects} objects{''.join(f'; {note}' for note in notes)}. Log UBI's "
            f"queries with {HITS[0]} and pass them with queries=, or log position.ordinal in events."
        )
    if notes:
        warn(f"{path}: {'; '.join(notes)}.")
    names, words, documents, places, clicked, complete = zip(*rows, strict=True)
    return ClickLog.of(
        list(words), list(documents), list(places), list(clicked), impression=list(names), complete=list(complete)
    )


@dataclass
class _Search:
    """One search by one user."""

    words: str | None = None  # the query; None if it is unknown
    is_logged: bool = False  # whether its query was logged, and not only events
    hits: list[str] | None = None  # the documents shown, in order; None if they were not logged
    seen: dict[str, int | None] = field(default_factory=dict)  # documents of events, with their positions if known
    clicks: set[str] = field(default_factory=set)  # clicked documents
    has_impressions: bool = False  # whether an event was logged for every document shown
    n_lost: int = 0  # clicks on documents whose position is unknown
    n_unshown: int = 0  # clicks on documents that are not among those shown

    @property
    def is_complete(self) -> bool:
        return self.hits is not None or self.has_impressions

    def rows(self, name: str) -> Iterator[tuple[str, str, str, int, bool, bool]]:
        """Yield name, query, document, position, whether it was clicked, and whether the list is complete."""
        places: dict[str, int] = {}
        if self.hits is not None:
            places = {document: place for place, document in enumerate(self.hits, 1)}
        elif self.words or self.is_logged:
            # of several documents at one position, e.g. of two pages, the first is kept
            first = {place: document for document, place in reversed(self.seen.items()) if place is not None}
            places = {document: place for place, document in sorted(first.items())}
            bad = next((place for place in first if not 1 <= place <= MAX_POSITION), None)
            if bad is not None:
                raise InputError(
                    f"position.ordinal is {bad} in an event of the search {name!r}; expected a whole number from 1 to "
                    f"{MAX_POSITION}, the place of the document in its list. If your positions count from 0, add 1."
                )
        n_left = len(self.clicks - places.keys())
        self.n_lost, self.n_unshown = (n_left, 0) if self.hits is None else (0, n_left)
        for document, place in places.items():
            yield name, self.words or name, document, place, document in self.clicks, self.is_complete


def _add(searches: dict[str, _Search], where: str, entry: dict[str, Any]) -> bool:
    """Add a query or an event to its search; return whether it is a click without a search or a document."""
    name, action = entry.get("query_id"), str(entry.get("action_name")).casefold()
    hits = next((entry[key] for key in HITS if entry.get(key) is not None), None)
    is_event, is_click, has_name = "action_name" in entry, action in CLICKS, isinstance(name, str | int)
    if not is_event and hits is not None:
        if not has_name:
            raise InputError(f"{where}: query_id is {name!r}; expected the id of a search.")
        if not isinstance(hits, list):
            raise InputError(f"{where}: the documents shown are {hits!r}; expected a list of ids.")
    if not has_name:
        return is_click  # an event of no search
    search = searches.setdefault(str(name), _Search())
    search.words = search.words or str(entry.get("user_query") or "") or None
    if not is_event:
        search.is_logged = True
        if hits is not None:  # another page of the same search continues the list
            search.hits = list(dict.fromkeys([*(search.hits or ()), *map(str, hits)]))
        return False
    document = at_path(entry, "event_attributes", "object", "object_id")
    if document is None:
        return is_click
    place = _ordinal(at_path(entry, "event_attributes", "position", "ordinal"))
    if search.seen.get(str(document)) is None:
        search.seen[str(document)] = place
    if is_click:
        search.clicks.add(str(document))
    search.has_impressions |= action == IMPRESSION and place is not None
    return False


def _ordinal(value: Any) -> int | None:
    value = value.get("index") if isinstance(value, dict) else value
    try:
        return None if isinstance(value, bool) or int(value) != float(value) else int(value)
    except (TypeError, ValueError, OverflowError):
        return None


class _Objects:
    """The queries and events of a file, and counts of what is left out."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.n_objects = self.n_other = self.n_hits = self.n_total = 0

    def read(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield file and line of each query and event, and the object."""
        for where, value in json_values(read_utf8(self.path), self.path):
            for item in self._unwrapped(value):
                if not isinstance(item, dict):
                    raise InputError(
                        f"{where}: expected a JSON object, a query or an event, found {shortened(item)}; check that "
                        "the file is UBI."
                    )
                self.n_objects += 1
                if is_ubi(item) or "query_id" in item:
                    yield where, item
                else:
                    self.n_other += 1

    def notes(self) -> list[str]:
        """Return sentences about what the file lacks, without full stops."""
        result = []
        if self.n_other:
            result.append(f"{self.n_other} of {self.n_objects} objects of {self.path} are neither a query nor an event")
        if self.n_hits < self.n_total:
            result.append(
                f"{self.path} has {self.n_hits} hits of a search that found {self.n_total} (fetch all pages with "
                "size and search_after)"
            )
        return result

    def _unwrapped(self, value: Any) -> Iterator[Any]:
        """Yield the documents of a value: a saved answer, several, a list, or a document with or without _source."""
        if isinstance(value, list):
            for item in value:
                yield from self._unwrapped(item)
        elif isinstance(value, dict) and isinstance(value.get("responses"), list):
            yield from self._unwrapped(value["responses"])
        elif isinstance(hits := at_path(value, "hits", "hits"), list):
            total = at_path(value, "hits", "total")
            total = total.get("value") if isinstance(total, dict) else total
            self.n_hits += len(hits)
            self.n_total = max(self.n_total, total if isinstance(total, int) else 0)
            yield from self._unwrapped(hits)
        else:
            yield value["_source"] if isinstance(at_path(value, "_source"), dict) else value
