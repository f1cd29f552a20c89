"""
What is done with the log of a service: new versions of models, replay, export, and forgetting people.

An export is a table of the lists with their clicks and a table of the features, which `corank learn-clicks` and
`corank replay` read. The log is read twice: once for the feedback on its lists, once in order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank import registry
from corank.clicks import OnlineRanker
from corank.data import ClickLog, atomic_folder, csv_text, read_regular, with_names, write_clicks, write_text
from corank.deploy import load, model_bytes
from corank.errors import InputError, suggest_names
from corank_lab.api.learner import Models, OpenLists, fold, replay, require_lease
from corank_lab.api.log import CLICK, EXCLUDED, Arrays, Event, EventLog
from corank_lab.api.models import FixedModel, InterleavedModel, OnlineModel, Registry, subject_of, version_of
from corank_lab.api.requests import MAX_FEATURES
from corank_lab.database.connections import Statements
from corank_lab.database.database import Database

Floats = NDArray[np.float64]
BATCH_LISTS = 500
CLICKS_FILE, ROWS_FILE = "clicks.csv", "rows.csv"


class LoggedRows(NamedTuple):
    """The lists of a log with all items that were ranked, shown or not; equal items of a query share their rows."""

    log: ClickLog
    X: Floats
    qid: list[str]  # qid, docids: query and item of each row
    docids: list[str]
    names: list[str] | None


def logged_rows(log: EventLog, model: str | None = None) -> LoggedRows:
    """Return the lists of a log, or those of a model; feedback that a rule excluded is left out."""
    clicks: dict[str, set[str]] = {}
    for events in log.batches():
        for event in events:
            if event.kind == "feedback" and event.flag & CLICK and not event.flag & EXCLUDED:
                clicks.setdefault(event.subject, set()).add(event.item)
    contexts: dict[bytes, str] = {}
    X: list[Floats] = []
    qid: list[str] = []
    docids: list[str] = []
    rows: list[tuple[str, str, str, int, bool, float]] = []
    subjects: dict[str, None] = {}
    is_drawn = True
    for event, body, arrays in _drawn_lists(log, model):
        subjects[event.subject] = None
        if X and arrays["X"].shape[1] != X[0].shape[1]:
            raise InputError("lists of the log have different features; choose the lists of one model with --model.")
        items, query = body["items"], str(body.get("query") or "")
        key = hashlib.sha256(json.dumps([query, items]).encode() + arrays["X"].tobytes()).digest()
        if key not in contexts:
            contexts[key] = f"{len(contexts) + 1}#{query}"  # no formula of a spreadsheet
            X.append(arrays["X"])
            qid += [contexts[key]] * len(items)
            docids += items
        chances = arrays.get("log_propensities")
        is_drawn &= chances is not None
        logs = np.zeros(len(arrays["rows"])) if chances is None else chances
        for position, (row, chance) in enumerate(zip(arrays["rows"].tolist(), logs.tolist(), strict=True), 1):
            is_clicked = items[row] in clicks.get(event.id, ())
            rows.append((event.id, contexts[key], items[row], position, is_clicked, min(chance, 0.0)))
    if not rows:
        of_model = f" of the model {model!r}" if model else ""
        raise InputError(f"the log has no list{of_model} to export; rank items first, or name another model.")
    names = [_names(log, subject) for subject in subjects]
    if any(item != names[0] for item in names):
        raise InputError("lists of the log have different features; choose the lists of one model with --model.")
    ids, queries, documents, positions, clicked, log_propensity = zip(*rows, strict=True)
    result = ClickLog.of(
        queries, documents, positions, clicked, impression=ids, log_propensity=log_propensity if is_drawn else None
    )
    return LoggedRows(result, np.concatenate(X), qid, docids, names[0])


def _drawn_lists(log: EventLog, model: str | None) -> Iterator[tuple[Event, dict[str, Any], Arrays]]:
    """Yield the lists that models drew, in order, with their bodies and arrays."""
    for events in log.batches():
        lists = [event for event in events if event.kind == "impression" and event.subject]
        lists = [event for event in lists if model is None or version_of(event.subject)[0] == model]
        for first in range(0, len(lists), BATCH_LISTS):
            part = lists[first : first + BATCH_LISTS]
            numbers = [event.number for event in part]
            bodies, arrays = log.bodies(numbers), log.arrays(numbers)
            # a database that was recovered may lack arrays
            known = [event for event in part if event.number in arrays]
            yield from ((event, json.loads(bodies[event.number]), arrays[event.number]) for event in known)


def _names(log: EventLog, subject: str) -> list[str] | None:
    """Return the names of the columns of a model; None if they have none, or the model was removed."""
    try:
        return Registry(log.store).model(*version_of(subject)).names
    except InputError:
        return None


def export_log(log: EventLog, folder: Path, model: str | None = None, *, overwrite: bool = False) -> int:
    """Write the lists of a log as a table of clicks and a table of features; return the number of lists."""
    with atomic_folder(folder, overwrite=overwrite, known=(CLICKS_FILE, ROWS_FILE)) as scratch:
        lists = logged_rows(log, model)
        names = lists.names or [f"x{number}" for number in range(1, lists.X.shape[1] + 1)]
        rows = zip(lists.qid, lists.docids, lists.X.tolist(), strict=True)
        table = [["qid", "docid", *names], *([query, item, *values] for query, item, values in rows)]
        write_clicks(scratch / CLICKS_FILE, lists.log)
        with write_text(scratch / ROWS_FILE) as stream:
            stream.write(csv_text(table, keep_formulas=True).encode())
    return lists.log.n_impressions


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
        log, versions = EventLog(store), Registry(store).versions()
        number = int(store.read("SELECT number FROM learner")[0][0])
        if trained := [row for row in versions if "source" in row.recipe]:
            raise InputError(
                f"an earlier version of corank trained {trained[0].name} version {trained[0].version} on this log, and "
                "it cannot be trained again without these events; remove it with corank serve remove, then try again."
            )
        lists, models = OpenLists(), Models(log, "initial")
        for events in log.batches(0, number):
            fold(log, lists, models, [event for event in events if event.number not in removed])
        subjects = [subject_of(row.name, row.version) for row in versions]
        states = [(models.content(entry), json.dumps(models.counts[entry]), *version_of(entry)) for entry in subjects]
        oldest = number + 1 if lists.oldest is None else lists.oldest.number

        def job(db: Statements) -> None:
            for content, counts, name, version in states:
                sql = "UPDATE models SET state = ?, counts = ? WHERE name = ? AND version = ?"
                db(sql, content, counts, name, version)
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
