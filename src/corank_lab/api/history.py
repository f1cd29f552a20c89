"""
What is done with the log of a service: read its lists, train new versions, replay, export, and forget people.

Lists are read twice: once for the feedback on them, once in order. Feedback that a rule excluded is left out. Memory
grows with the feedback, not with the features. A version is trained from clicks: position bias is estimated from items
that were shown at several positions (`corank.clicks.position_bias`), and a clicked item is preferred to the others of
its list with weight 1 / propensity. Its recipe names the last event, so the same log gives the same version again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank import registry
from corank.base import Ranker
from corank.clicks import OnlineRanker, click_pairs, position_bias
from corank.data import ClickLog, read_regular, with_names, write_text
from corank.deploy import load, model_bytes
from corank.errors import InputError, suggest_names
from corank_lab.api.learner import Models, OpenLists, fold, replay, require_lease
from corank_lab.api.log import CLICK, EXCLUDED, Event, EventLog
from corank_lab.api.models import (
    FixedModel,
    InterleavedModel,
    OnlineModel,
    Registry,
    ServedModel,
    subject_of,
    version_of,
)
from corank_lab.api.requests import MAX_FEATURES
from corank_lab.database.connections import Statements
from corank_lab.database.database import Database
from corank_lab.database.schema import format_time

Floats = NDArray[np.float64]
LIST_BATCH = 500


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
    feedback: list[Event]  # on it, in the order of the log

    @property
    def shown(self) -> list[str]:
        """Ids of the items shown, from the top."""
        return [self.items[row] for row in self.rows]

    @property
    def clicked(self) -> NDArray[np.bool_]:
        """Whether each item shown was clicked."""
        clicks = {event.item for event in self.feedback if event.flag & CLICK}
        return np.array([item in clicks for item in self.shown], dtype=np.bool_)


def shown_lists(
    log: EventLog, model: str | None = None, *, upto: int | None = None, only_clicked: bool = False
) -> Iterator[ShownList]:
    """Yield the lists of a log in order: all, those of a model, or those with a click."""
    last, feedback = log.last_number() if upto is None else upto, dict[str, list[Event]]()
    for events in log.batches(0, last):
        for event in events:
            if event.kind == "feedback" and not event.flag & EXCLUDED:
                feedback.setdefault(event.subject, []).append(event)
    clicked = {id for id, entries in feedback.items() if any(entry.flag & CLICK for entry in entries)}
    names: dict[str, list[str] | None] = {}
    for events in log.batches(0, last):
        wanted = [
            event
            for event in events
            if event.kind == "impression"
            and (model is None or version_of(event.subject or "/0")[0] == model)
            and (not only_clicked or event.id in clicked)
        ]
        for first in range(0, len(wanted), LIST_BATCH):
            part = wanted[first : first + LIST_BATCH]
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
    """A log and the rows of its lists, for `corank.clicks.replay`; equal items of a query share their rows."""

    log: ClickLog
    X: Floats
    qid: NDArray[np.object_]  # qid, docids: query and item of each row
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


def train_version(log: EventLog, registry: Registry, name: str, ranker: str, parameters: Mapping[str, Any]) -> int:
    """Train a new version, add it and return its number; it is not activated."""
    recipe = {"source": "clicks", "ranker": ranker, "parameters": dict(parameters), "upto": log.last_number()}
    kind, content = train_content(log, registry, name, recipe)
    return registry.add(name, kind, content, recipe)


def train_content(log: EventLog, registry: Registry, name: str, recipe: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return kind and state of the version that a recipe stands for."""
    if recipe["source"] != "clicks":
        raise InputError("versions that 0.2 trained from judgements cannot be trained again")
    ranker = _build(recipe["ranker"], recipe["parameters"])
    _fit_clicks(log, ranker, registry.serving(name)[2], int(recipe["upto"]))
    return OnlineModel.kind if hasattr(ranker, "run_") else FixedModel.kind, model_bytes(ranker)


def _build(name: str, parameters: Mapping[str, Any]) -> Any:
    exported = {item.lower(): item for item in registry.names()}
    kind = registry.find(exported.get(name.lower(), ""))
    if not (isinstance(kind, type) and issubclass(kind, Ranker)):
        raise InputError(f"there is no ranker {name!r}; {suggest_names(name, ('RankSVM', 'RankRLS', 'SPD', 'PDGD'))}.")
    try:
        return kind(**{"random_state": 0, **parameters} if "random_state" in kind._get_param_names() else parameters)
    except TypeError:
        raise InputError(
            f"{kind.__name__} has no such parameters; its parameters are {kind._get_param_names()}."
        ) from None


def _fit_clicks(log: EventLog, ranker: Any, like: ServedModel, upto: int) -> None:
    rows: dict[tuple[str, str], NDArray[np.float64]] = {}
    shown: list[tuple[str, str, str, int, bool]] = []
    for entry in shown_lists(log, upto=upto, only_clicked=True):
        if entry.X is None or entry.X.shape[1] != like.n_features:
            continue
        for rank, (row, is_clicked) in enumerate(zip(entry.rows, entry.clicked.tolist(), strict=True), 1):
            rows[entry.query, entry.items[row]] = entry.X[row]
            shown.append((entry.id, entry.query, entry.items[row], rank, is_clicked))
    if not shown:
        raise InputError(f"the log has no clicked list with {like.n_features} features; record feedback first.")
    ids, queries, items, positions, clicks = zip(*shown, strict=True)
    clicks_log = ClickLog.of(queries, items, positions, clicks, impression=ids)
    qid, docids = zip(*rows, strict=True)
    pairs = click_pairs(clicks_log, qid, docids, bias=position_bias(clicks_log))
    X = with_names(np.array(list(rows.values())), like.names)
    ranker.fit(X, pairs=pairs.pairs, pair_weight=pairs.pair_weight)


ONLINE = ("PDGD", "PairwiseEpsilonGreedy")


def make_version(
    registry: Registry,
    path: Path | None,
    online: str | None,
    columns: str | None,
    interleave: str | None,
    *,
    has_prior: bool,
) -> tuple[str, bytes, dict[str, Any]]:
    """Return kind, state and recipe of a version."""
    if sum(item is not None for item in (path, online, interleave)) != 1:
        raise InputError("pass one of --model, --online and --interleave.")
    if path is not None:
        is_online = isinstance(load(path), OnlineRanker)
        return (OnlineModel if is_online else FixedModel).kind, read_regular(path), {"file": path.name}
    if online is not None:
        ranker = _new_online(online, columns, has_prior)
        return OnlineModel.kind, model_bytes(ranker), {"online": type(ranker).__name__}
    names = [name.strip() for name in (interleave or "").split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise InputError(f"--interleave is {interleave!r}; pass the names of two models, such as old,new.")
    first, second = (registry.serving(name)[:2] for name in names)
    return InterleavedModel.kind, InterleavedModel.start(first, second, registry.model), {"interleave": names}


def _new_online(name: str, columns: str | None, has_prior: bool) -> Any:
    kind = next((item for item in ONLINE if item.lower() == name.lower()), None)
    if kind is None:
        raise InputError(f"there is no online ranker {name!r}; {suggest_names(name, ONLINE)}.")
    names = [item.strip() for item in (columns or "").split(",")]
    is_number = len(names) == 1 and names[0].isdecimal()
    n = int(names[0]) if is_number else len(names)
    if not 1 <= n <= MAX_FEATURES or not (is_number or (len(set(names)) == n and all(names))):
        raise InputError(
            f"--columns is {columns!r}; pass the number of features, from 1 to {MAX_FEATURES}, or distinct names with "
            "commas."
        )
    ranker = registry.find(kind)(random_state=0)
    ranker._begin(with_names(np.zeros((1, n)), None if is_number else names), [0.0] if has_prior else None)
    return ranker


class Forgotten(NamedTuple):
    """What was done."""

    n_events: int  # events deleted
    n_left: int  # events left
    n_models: int  # versions that learnt again


class _LogWithout(EventLog):
    """The log without some events."""

    def __init__(self, store: Database, removed: set[int]) -> None:
        super().__init__(store)
        self._removed = removed

    def batches(self, after: int = 0, upto: int | None = None) -> Iterator[list[Event]]:
        for events in super().batches(after, upto):
            if kept := [event for event in events if event.number not in self._removed]:
                yield kept


_OF_PERSON = (
    "person = ? OR (kind = 'feedback' AND subject IN (SELECT id FROM events WHERE kind = 'impression' AND person = ?))"
)


def forget_person(store: Database, person: str) -> Forgotten:
    """Delete all events of a person, and learn everything again without them; the service must not run."""
    if not person:
        raise InputError("the user is an empty text, which stands for unknown users; pass the id of a user.")
    lease = require_lease(store)
    try:
        removed = {int(row[0]) for row in store.read(f"SELECT number FROM events WHERE {_OF_PERSON}", person, person)}
        log, registry = _LogWithout(store, removed), Registry(store)
        number = int(store.read("SELECT number FROM learner")[0][0])
        initial = _trained_again(log, registry)
        lists, models = OpenLists(), Models(log, "initial", initial)
        for events in log.batches(0, number):
            fold(log, lists, models, events)
        subjects = [subject_of(row.name, row.version) for row in registry.versions()]
        states = [(models.content(entry), json.dumps(models.counts[entry]), *version_of(entry)) for entry in subjects]
        oldest = number + 1 if lists.oldest is None else lists.oldest.number

        def job(db: Statements) -> None:
            for content, counts, name, version in states:
                sql = "UPDATE models SET state = ?, counts = ? WHERE name = ? AND version = ?"
                db(sql, content, counts, name, version)
            for subject, content in initial.items():
                db("UPDATE models SET initial = ? WHERE name = ? AND version = ?", content, *version_of(subject))
            sql = "UPDATE learner SET oldest = ?, counts = ? WHERE id = 1"
            db(sql, oldest, json.dumps(lists.counts))
            for item in removed:
                db("DELETE FROM event_arrays WHERE number = ?", item)
                db("DELETE FROM events WHERE number = ?", item)

        store.run(job)
        if store.dialect == "sqlite":
            connection = store._connect()
            try:
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.close()
        n_left = int(store.read("SELECT COUNT(*) FROM events")[0][0])
    finally:
        lease.release()
    return Forgotten(len(removed), n_left, len(states))


def _trained_again(log: EventLog, registry: Registry) -> dict[str, bytes]:
    """Return the initial states of versions that were trained on the log."""
    result = {}
    for row in registry.versions():
        if "source" in row.recipe:
            try:
                result[subject_of(row.name, row.version)] = train_content(log, registry, row.name, row.recipe)[1]
            except InputError as error:
                raise InputError(
                    f"{row.name} version {row.version} cannot be trained without these events ({error}); remove it "
                    "with corank serve remove, then try again."
                ) from None
    return result


def compare_with_replay(log: EventLog) -> tuple[list[str], int, int]:
    """Replay the log; return the versions that differ from it, the number of versions, and of the last event."""
    rows = log.store.read("SELECT l.number, m.name, m.version, m.initial, m.state FROM models m, learner l")
    number = int(rows[0][0]) if rows else 0
    states, _ = replay(log, number)
    different = [
        f"{name}/{version}"
        for _, name, version, initial, state in rows
        if states.get(subject_of(name, version), bytes(initial)) != bytes(state)
    ]
    return different, len(rows), number
