"""
Forget a person: delete the events, and learn again from what is left.

Deleted are the lists shown to the person with all feedback on them, and the person's feedback, judgements and profile.
Online models and tests then learn again from their initial states by a replay of the log, trained versions by their
recipes; the lists of other people stay as they were shown. One transaction does all of it. On SQLite the file is
rewritten afterwards, so that no deleted page is left in it. Copies of the database and exported files are not touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from corank.errors import InputError
from corank_lab.api.learner import Models, OpenLists, fold, replay, require_lease
from corank_lab.api.log import Event, EventLog
from corank_lab.api.registry import Registry, subject_of, version_of
from corank_lab.api.training import train_content
from corank_lab.database.store import AnswerStore, Statements


class Forgotten(NamedTuple):
    """What was done."""

    n_events: int  # events deleted
    n_left: int  # events left
    n_models: int  # versions that learnt again


class _LogWithout(EventLog):
    """The log without some events."""

    def __init__(self, store: AnswerStore, removed: set[int]) -> None:
        super().__init__(store)
        self._removed = removed

    def batches(self, after: int = 0, upto: int | None = None) -> Iterator[list[Event]]:
        """Read the log in parts."""
        for events in super().batches(after, upto):
            if kept := [event for event in events if event.number not in self._removed]:
                yield kept


_OF_PERSON = (
    "person = ? OR (kind = 'feedback' AND subject IN (SELECT id FROM events WHERE kind = 'impression' AND person = ?))"
)


def forget_person(store: AnswerStore, person: str) -> Forgotten:
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
        states = [(models.content(one), json.dumps(models.counts[one]), *version_of(one)) for one in subjects]
        oldest = number + 1 if lists.oldest is None else lists.oldest.number

        def job(db: Statements) -> None:
            for content, counts, name, version in states:
                sql = "UPDATE models SET state = ?, counts = ? WHERE name = ? AND version = ?"
                db(sql, content, counts, name, version)
            for subject, content in initial.items():
                db("UPDATE models SET initial = ? WHERE name = ? AND version = ?", content, *version_of(subject))
            sql = "UPDATE learner SET oldest = ?, counts = ? WHERE id = 1"
            db(sql, oldest, json.dumps(lists.counts))
            for one in removed:
                db("DELETE FROM event_arrays WHERE number = ?", one)
                db("DELETE FROM events WHERE number = ?", one)

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
    found = {}
    for row in registry.versions():
        if "source" in row.recipe:
            try:
                found[subject_of(row.name, row.version)] = train_content(log, registry, row.name, row.recipe)[1]
            except InputError as error:
                raise InputError(
                    f"{row.name} version {row.version} cannot be trained without these events ({error}); remove it "
                    "with corank serve remove, then try again."
                ) from None
    return found


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
