"""
The lists of a log: for training, for `replay`, and as User Behavior Insights (UBI) for other tools.

Lists are read twice: once for the feedback on them, once in order. Feedback that a rule excluded is left out. Memory
grows with the feedback, not with the features.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.data import ClickLog, write_text
from corank.errors import InputError
from corank_lab.api.log import CLICK, EXCLUDED, EventLog
from corank_lab.api.models import version_of
from corank_lab.database.schema import format_time

Floats = NDArray[np.float64]
LISTS_AT_ONCE = 500


class ItemFeedback(NamedTuple):
    """Feedback on a list: its number in the log, id, time, person and item, and whether it counts as a click."""

    number: int
    id: str
    time: int
    person: str
    item: str
    is_click: bool


class ShownList(NamedTuple):
    """A list of the log."""

    id: str
    time: int
    person: str
    query: str
    items: list[str]  # ids of all items of the request; rows: numbers of those shown, from the top
    rows: list[int]
    # X, log_propensities, prior: as they were when the list was drawn; None if the list was ranked elsewhere, or the
    # model has none
    X: Floats | None
    log_propensities: Floats | None
    prior: Floats | None
    names: list[str] | None
    feedback: list[ItemFeedback]  # feedback on it, in the order of the log

    @property
    def shown(self) -> list[str]:
        """Ids of the items shown, from the top."""
        return [self.items[row] for row in self.rows]

    @property
    def clicked(self) -> NDArray[np.bool_]:
        """Whether each item shown was clicked."""
        clicks = {entry.item for entry in self.feedback if entry.is_click}
        return np.array([item in clicks for item in self.shown], dtype=np.bool_)


def shown_lists(
    log: EventLog, model: str | None = None, *, upto: int | None = None, only_clicked: bool = False
) -> Iterator[ShownList]:
    """Yield the lists of a log in order: all, those of a model, or those with a click."""
    last, feedback = log.last_number() if upto is None else upto, dict[str, list[ItemFeedback]]()
    for events in log.batches(0, last):
        for event in events:
            if event.kind == "feedback" and not event.flag & EXCLUDED:
                is_click = bool(event.flag & CLICK)
                entry = ItemFeedback(event.number, event.id, event.time, event.person, event.item, is_click)
                feedback.setdefault(event.subject, []).append(entry)
    clicked = {id for id, entries in feedback.items() if any(entry.is_click for entry in entries)}
    names: dict[str, list[str] | None] = {}
    for events in log.batches(0, last):
        wanted = [
            event
            for event in events
            if event.kind == "impression"
            and (model is None or version_of(event.subject or "/0")[0] == model)
            and (not only_clicked or event.id in clicked)
        ]
        for first in range(0, len(wanted), LISTS_AT_ONCE):
            part = wanted[first : first + LISTS_AT_ONCE]
            numbers = [event.number for event in part]
            bodies, arrays = log.bodies(numbers), log.arrays(numbers)
            for event in part:
                body, result = json.loads(bodies[event.number]), arrays.get(event.number, {})
                if event.subject not in names:
                    names[event.subject] = _names(log, event.subject)
                rows = result["rows"].tolist() if result else list(range(len(body["items"])))
                yield ShownList(
                    event.id, event.time, event.person, str(body.get("query") or ""), body["items"], rows,
                    result.get("X"), result.get("log_propensities"), result.get("prior"), names[event.subject],
                    feedback.get(event.id, []),
                )  # fmt: skip


def _names(log: EventLog, subject: str) -> list[str] | None:
    """Return the names of the columns of a model; None if they have none, or the model was removed."""
    from corank_lab.api.models import Registry

    if not subject:
        return None
    try:
        return Registry(log.store).model(*version_of(subject)).names
    except InputError:
        return None


def write_ubi_events(log: EventLog, path: Path, model: str | None, *, persons: bool, overwrite: bool) -> int:
    """Write UBI 1.3: one JSON object per line, a query with the documents shown, followed by the events on it."""
    n_lists = 0
    with write_text(path, overwrite=overwrite) as stream:
        for entry in shown_lists(log, model):
            n_lists += 1
            stream.writelines(json.dumps(line).encode() + b"\n" for line in _ubi_lines(log, entry, persons))
        _require_lists(n_lists, model)
    return n_lists


def _ubi_lines(log: EventLog, shown: ShownList, persons: bool) -> Iterator[dict[str, Any]]:
    query = {
        "query_id": shown.id, "user_query": shown.query, "query_response_hit_ids": shown.shown, "application": "corank",
        "timestamp": _time(shown.time),
    }  # fmt: skip
    yield query | ({"client_id": shown.person} if persons and shown.person else {})
    places = {item: place for place, item in enumerate(shown.shown, 1)}
    bodies = log.bodies([event.number for event in shown.feedback])
    for event in shown.feedback:
        if not event.item:
            continue
        about: dict[str, Any] = {"object": {"object_id": event.item, "object_id_field": "docid"}}
        if event.item in places:
            about["position"] = {"ordinal": places[event.item]}
        result = {
            "action_name": str(json.loads(bodies[event.number]).get("action", "click")), "query_id": shown.id,
            "user_query": shown.query, "timestamp": _time(event.time), "event_id": event.id, "event_attributes": about,
        }  # fmt: skip
        yield result | ({"client_id": event.person} if persons and event.person else {})


class LoggedRows(NamedTuple):
    """
    A log and the rows of its lists, for `corank.clicks.replay`.

    Lists of the same query with the same items and features share their rows; qid, docids: query and item of each row.
    """

    log: ClickLog
    X: Floats
    qid: NDArray[np.object_]
    docids: NDArray[np.object_]
    prior: Floats | None
    names: list[str] | None


def logged_rows(log: EventLog, model: str | None = None) -> LoggedRows:
    """Return the lists of a log with all items that were ranked, shown or not."""
    contexts: dict[bytes, str] = {}
    X: list[Floats] = []
    qid: list[str] = []
    docids: list[str] = []
    priors: list[Floats] = []
    columns: list[tuple[str, str, str, int, bool, float]] = []
    first, is_drawn = None, True
    for entry in shown_lists(log, model):
        if entry.X is None:
            continue
        first = first or (entry.X.shape[1], entry.names)
        if (entry.X.shape[1], entry.names) != first:
            raise InputError("lists of the log have different features; choose the lists of one model with --lists.")
        key = hashlib.sha256(json.dumps([entry.query, entry.items]).encode() + entry.X.tobytes()).digest()
        if key not in contexts:
            contexts[key] = f"{entry.query}#{len(contexts) + 1}"
            X.append(entry.X)
            qid += [contexts[key]] * len(entry.items)
            docids += entry.items
            if entry.prior is not None:
                priors.append(entry.prior)
        is_drawn &= entry.log_propensities is not None
        logs = np.zeros(len(entry.rows)) if entry.log_propensities is None else entry.log_propensities
        for place, (item, clicked, chance) in enumerate(zip(entry.shown, entry.clicked, logs, strict=True), 1):
            columns.append((entry.id, contexts[key], item, place, bool(clicked), float(chance)))
    _require_lists(len(contexts), model)
    ids, queries, items, places, clicks, chances = zip(*columns, strict=True)
    clicks_log = ClickLog.of(
        queries, items, places, clicks, impression=ids, log_propensity=np.minimum(chances, 0.0) if is_drawn else None
    )
    prior = np.concatenate(priors) if len(priors) == len(X) else None
    names = first[1] if first else None
    return LoggedRows(
        clicks_log, np.concatenate(X), np.array(qid, dtype=object), np.array(docids, dtype=object), prior, names
    )


def _require_lists(n_lists: int, model: str | None) -> None:
    if not n_lists:
        of_model = f" of the model {model!r}" if model else ""
        raise InputError(f"the log has no list{of_model} to export; rank items first, or name another model.")


def _time(milliseconds: int) -> str:
    return format_time(datetime.fromtimestamp(milliseconds / 1000, UTC))
