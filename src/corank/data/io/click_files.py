"""Files of clicks: tables with one row per document shown, and OpenSearch's User Behavior Insights (UBI)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from corank.data.durable.compressed import require_text_place, write_text
from corank.data.io.click_log import MAX_POSITION, ClickLog
from corank.data.io.frames import parquet_rows
from corank.data.io.table_text import LocatedRows, at_path, csv_rows, json_values, read_utf8, shortened, suffix_of
from corank.errors import InputError, suggest_names, warn

JSON = (".json", ".jsonl", ".ndjson")
CLICKS = ("click", "click_through", "add_to_cart", "purchase")
"""Actions that count as clicks."""
IMPRESSION = "impression"
"""Action of an event that is logged for every document shown."""
EPOCH = "1970-01-01T00:00:00Z"
"""Time of all objects written: the specification requires one, and a log of clicks has none."""
HITS = ("query_response_hit_ids", "query_response_objects_ids")


def read_ubi(path: str | os.PathLike[str], queries: str | os.PathLike[str] | None = None) -> ClickLog:
    """
    Read queries and events; a list is one ``query_id``, a query its words, a click an event of `CLICKS`.

    Repeated clicks count once. A warning gives the number of objects, hits and clicks that are left out.
    """
    searches: dict[str, _Search] = {}
    n_found, n_lost, notes = 0, 0, []
    for file in (queries, path):
        if file is not None:
            result = _Objects(str(file))
            for where, item in result.read():
                n_lost += _add(searches, where, item)
            n_found += result.n_objects
            notes += result.notes()
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
            f"{path}: no document shown in {n_found} objects{''.join(f'; {note}' for note in notes)}. Log UBI's "
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


def _add(searches: dict[str, _Search], where: str, one: dict[str, Any]) -> bool:
    """Add a query or an event to its search; return whether it is a click without a search or a document."""
    name = one.get("query_id")
    hits = next((one[key] for key in HITS if one.get(key) is not None), None)
    if "action_name" not in one and hits is not None:
        if not isinstance(name, str | int):
            raise InputError(f"{where}: query_id is {name!r}; expected the id of a search.")
        if not isinstance(hits, list):
            raise InputError(f"{where}: the documents shown are {hits!r}; expected a list of ids.")
    action = str(one.get("action_name")).casefold()
    if not isinstance(name, str | int):
        return action in CLICKS  # an event of no search
    search = searches.setdefault(str(name), _Search())
    search.words = search.words or str(one.get("user_query") or "") or None
    if "action_name" not in one:
        search.is_logged = True
        if hits is not None:  # another page of the same search continues the list
            search.hits = list(dict.fromkeys([*(search.hits or ()), *map(str, hits)]))
        return False
    document = at_path(one, "event_attributes", "object", "object_id")
    if document is None:
        return action in CLICKS
    place = _ordinal(at_path(one, "event_attributes", "position", "ordinal"))
    if search.seen.get(str(document)) is None:
        search.seen[str(document)] = place
    if action in CLICKS:
        search.clicks.add(str(document))
    search.has_impressions |= action == IMPRESSION and place is not None
    return False


def _ordinal(value: Any) -> int | None:
    value = value.get("index") if isinstance(value, dict) else value
    try:
        return None if isinstance(value, bool) or int(value) != float(value) else int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def write_ubi(
    path: str | os.PathLike[str], log: ClickLog, queries: str | os.PathLike[str] | None, *, overwrite: bool
) -> None:
    """Write one JSON object per line: queries with the documents shown, and one event per click."""
    if log.propensity is not None or log.log_propensity is not None:
        raise InputError(f"the log has propensities, which UBI cannot store; write {path} as .csv.")
    if log.complete is not None:
        raise InputError(f"the log has incomplete lists, which UBI cannot store; write {path} as .csv.")
    last = np.zeros(log.n_impressions, dtype=np.int64)
    np.maximum.at(last, log.impression, log.position)
    if (last != np.bincount(log.impression)).any():
        raise InputError(f"lists of the log have gaps between positions, which UBI cannot store; write {path} as .csv.")
    if queries is not None:
        with write_text(queries, overwrite=overwrite) as stream:
            _write_queries(stream, log)
    with write_text(path, overwrite=overwrite) as stream:
        if queries is None:
            _write_queries(stream, log)
        for row in log.clicked.nonzero()[0].tolist():
            attributes = {
                "object": {"object_id": log.docids[row], "object_id_field": "docid"},
                "position": {"ordinal": int(log.position[row])},
            }
            number = str(log.impression[row])
            _write(stream, {"action_name": "click", "query_id": number, "event_attributes": attributes})


def _write_queries(stream: IO[bytes], log: ClickLog) -> None:
    lists: list[list[int]] = [[] for _ in range(log.n_impressions)]
    for row in log.position.argsort(kind="stable").tolist():
        lists[log.impression[row]].append(row)
    for number, rows in enumerate(lists):
        hits = [log.docids[row] for row in rows]
        _write(stream, {"query_id": str(number), "user_query": log.qid[rows[0]], HITS[0]: hits})


def _write(stream: IO[bytes], one: dict[str, Any]) -> None:
    stream.write(json.dumps({**one, "timestamp": EPOCH}).encode() + b"\n")


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
                if "action_name" in item or "query_id" in item or any(key in item for key in HITS):
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
            yield value["_source"] if isinstance(value, dict) and isinstance(value.get("_source"), dict) else value


COLUMNS = ("qid", "docid", "position", "clicked")
OPTIONAL = ("impression", "propensity", "complete", "log_propensity")
TABLES = (".csv", ".tsv", ".parquet")


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
        return read_ubi(path, queries)
    if queries is not None:
        raise InputError(f"queries= is for events of UBI, but {path} is a table; leave it out.")
    if suffix not in TABLES:
        raise InputError(f"{path} has an unknown suffix; expected one of {', '.join((*TABLES, *JSON))}.")
    columns, rows = parquet_rows(path) if suffix == ".parquet" else csv_rows(read_utf8(path), str(path))
    for column in COLUMNS:
        if column not in columns:
            raise InputError(f"{path} has no column {column!r}; {suggest_names(column, columns)}.")
    if not rows:
        raise InputError(f"{path} has no rows; expected one per document shown.")
    cells = {name: [row[name] for _, row in rows] for name in (*COLUMNS, *OPTIONAL) if name in columns}
    numbers = {
        name: _numbers(cells[name], name, rows) for name in ("position", "clicked", *OPTIONAL[1:]) if name in cells
    }
    try:
        return ClickLog.of(
            cells["qid"],
            cells["docid"],
            numbers["position"],
            numbers["clicked"],
            impression=cells.get("impression"),
            propensity=numbers.get("propensity"),
            complete=numbers.get("complete"),
            log_propensity=numbers.get("log_propensity"),
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_clicks(
    path: str | os.PathLike[str],
    log: ClickLog,
    *,
    queries: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a log of clicks as a table (.csv, .tsv) or as User Behavior Insights (.json, .jsonl, .ndjson)."""
    suffix = suffix_of(path)
    for place in (path, queries):
        if place is not None:
            require_text_place(place, overwrite=overwrite)
    if suffix in JSON:
        write_ubi(path, log, queries, overwrite=overwrite)
        return
    if suffix not in (".csv", ".tsv"):
        raise InputError(f"{path} has an unknown suffix; use .csv, .tsv or .jsonl.")
    if queries is not None:
        raise InputError(f"queries= is for events of UBI, but {path} is a table; leave it out.")
    _write_table(Path(path), log, "," if suffix == ".csv" else "\t", overwrite)


def _write_table(path: Path, log: ClickLog, comma: str, overwrite: bool) -> None:
    import csv
    import io

    columns: dict[str, Any] = {
        "impression": log.impression.tolist(),
        "qid": log.qid.tolist(),
        "docid": log.docids.tolist(),
        "position": log.position.tolist(),
        "clicked": log.clicked.astype(np.int64).tolist(),
    }
    if log.propensity is not None:
        columns["propensity"] = log.propensity.tolist()
    if log.log_propensity is not None:
        columns["log_propensity"] = log.log_propensity.tolist()
    if log.complete is not None:
        columns["complete"] = log.complete.astype(np.int64).tolist()
    with write_text(path, overwrite=overwrite) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline="")
        writer = csv.writer(text, delimiter=comma, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        text.flush()
        text.detach()


def _numbers(cells: list[Any], name: str, rows: LocatedRows) -> list[float]:
    numbers = []
    for (where, _), cell in zip(rows, cells, strict=True):
        try:
            numbers.append(float(cell))
        except (TypeError, ValueError):
            raise InputError(f"{where}: {name} is {cell!r}; expected a number.") from None
    return numbers
