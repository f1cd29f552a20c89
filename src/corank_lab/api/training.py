"""
Models of the service: make them, train new versions on the log, and forget people.

A version is trained from clicks, weighted by inverse propensity: on all lists of the log with features, and the clicks
that rules did not exclude. Position bias is estimated from items that were shown at several positions
(`corank.clicks.position_bias`), and a clicked item is preferred to the others of its list with weight 1 / propensity
(`corank.clicks.click_pairs`). The recipe of a version names the last event that was used, so the same log gives the
same version again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank import registry
from corank.base import Ranker
from corank.clicks import OnlineRanker, click_pairs, position_bias
from corank.data import ClickLog, read_regular, with_names
from corank.deploy import load, model_bytes
from corank.errors import InputError, suggest_names
from corank_lab.api.export import shown_lists
from corank_lab.api.learner import Models, OpenLists, fold, replay, require_lease
from corank_lab.api.log import Event, EventLog
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
        ranker = new_online(online, columns, has_prior=has_prior)
        return OnlineModel.kind, model_bytes(ranker), {"online": type(ranker).__name__}
    names = [name.strip() for name in (interleave or "").split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise InputError(f"--interleave is {interleave!r}; pass the names of two models, such as old,new.")
    first, second = (registry.serving(name)[:2] for name in names)
    return InterleavedModel.kind, InterleavedModel.start(first, second, registry.model), {"interleave": names}


def new_online(name: str, columns: str | None, *, has_prior: bool = False) -> Any:
    """Return an online ranker that has learnt nothing."""
    result = next((item for item in ONLINE if item.lower() == name.lower()), None)
    if result is None:
        raise InputError(f"there is no online ranker {name!r}; {suggest_names(name, ONLINE)}.")
    names = [item.strip() for item in (columns or "").split(",")]
    if len(names) == 1 and names[0].isdecimal():
        names, n = [], int(names[0])
    else:
        n = len(names)
    if not 1 <= n <= MAX_FEATURES or (names and (len(set(names)) < n or not all(names))):
        raise InputError(
            f"--columns is {columns!r}; pass the number of features, from 1 to {MAX_FEATURES}, or distinct names with "
            "commas."
        )
    ranker = registry.find(result)(random_state=0)
    ranker._begin(with_names(np.zeros((1, n)), names or None), [0.0] if has_prior else None)
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
