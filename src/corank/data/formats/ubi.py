"""
OpenSearch's User Behavior Insights (UBI, specification 1.3): queries with the documents shown, and events.

A query is a JSON object with ``query_id`` (one search by one user), ``user_query`` (its words) and
``query_response_hit_ids`` (documents in the order shown). An event has ``action_name``, ``query_id`` and
``event_attributes.object.object_id``; the position of the document is read from the query's list.
A file has one object per line, or one list of objects; the ``_source`` of exported index entries is unwrapped.
"""

from __future__ import annotations

import json
import os
from typing import IO, Any

import numpy as np

from corank.data.formats.click_log import ClickLog
from corank.data.formats.compressed import write_text
from corank.data.formats.table_text import LocatedRows, jsonl_rows, read_utf8
from corank.errors import InputError

JSON = (".json", ".jsonl", ".ndjson")
CLICKS = ("click", "click_through", "add_to_cart", "purchase")
"""Actions that count as clicks."""
EPOCH = "1970-01-01T00:00:00Z"
"""Time of all objects written: the specification requires one, and a log of clicks has none."""
HITS = ("query_response_hit_ids", "query_response_objects_ids")


def read_ubi(path: str | os.PathLike[str], queries: str | os.PathLike[str] | None = None) -> ClickLog:
    """
    Read queries and events; a list is one ``query_id``, a query its words, a click an event of `CLICKS`.

    Events without a known list, or of documents that it did not show, are left out; repeated clicks count once.

    path: the events, and also the queries if `queries` is None.
    queries: the file of queries.
    """
    objects = [*(_objects(queries) if queries is not None else ()), *_objects(path)]
    shown: dict[str, tuple[str, list[str]]] = {}
    clicks: set[tuple[str, str]] = set()
    for where, one in objects:
        hits = next((one[name] for name in HITS if one.get(name) is not None), None)
        name = one.get("query_id")
        if "action_name" in one:
            document = _at(one, "event_attributes", "object", "object_id")
            if one["action_name"] in CLICKS and name is not None and document is not None:
                clicks.add((str(name), str(document)))
        elif hits is not None:  # otherwise its results were not logged
            if not isinstance(name, str | int):
                raise InputError(f"{where}: query_id is {name!r}; expected the id of a search.")
            if not isinstance(hits, list):
                raise InputError(f"{where}: the documents shown are {hits!r}; expected a list of ids.")
            query, before = shown.get(str(name), (str(one.get("user_query") or name), []))
            # another page of the same search continues the list
            shown[str(name)] = (query, list(dict.fromkeys([*before, *map(str, hits)])))
    rows = [
        (name, query, document, place, (name, document) in clicks)
        for name, (query, documents) in shown.items()
        for place, document in enumerate(documents, 1)
    ]
    if not rows:
        raise InputError(
            f"{queries or path} has no query with {HITS[0]}, so the lists shown are unknown; log UBI's queries too, "
            "and pass them with queries=."
        )
    names, words, documents, places, clicked = zip(*rows, strict=True)
    return ClickLog.of(list(words), list(documents), list(places), list(clicked), impression=list(names))


def write_ubi(
    path: str | os.PathLike[str], log: ClickLog, queries: str | os.PathLike[str] | None, *, overwrite: bool
) -> None:
    """
    Write one JSON object per line: queries with the documents shown, and one event per click.

    path: the events.
    queries: a file for the queries; None writes them before the events.
    overwrite: whether to replace existing files.
    """
    if log.propensity is not None:
        raise InputError(f"the log has propensities, which UBI cannot store; write {path} as .csv.")
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


def _objects(path: str | os.PathLike[str]) -> LocatedRows:
    text, name = read_utf8(path), str(path)
    if not text.lstrip().startswith("["):
        rows = jsonl_rows(text, name)[1]
    else:
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError(f"{name} is not a list of JSON objects; write one object per line, or a list.") from None
        rows = [(f"{name}, object {at}", one) for at, one in enumerate(listed, 1)]
    found = [(where, one.get("_source", one) if isinstance(one, dict) else one) for where, one in rows]
    for where, one in found:
        if not isinstance(one, dict):
            raise InputError(f"{where}: expected a JSON object, a query or an event; check that the file is UBI.")
    return found


def _at(one: Any, *names: str) -> Any:
    for name in names:
        one = one.get(name) if isinstance(one, dict) else None
    return one
