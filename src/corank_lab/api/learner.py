"""
Learning from the log, exactly once.

The learner reads events strictly in order. A list is *closed*, and learnt with the clicks that came before, at the
first of these events:

1. feedback on it that is marked as final;
2. an event whose time is at least that of the list plus its waiting time (300 seconds by default);
3. a list that makes more than `MAX_OPEN` lists wait: the oldest is closed.

Feedback after that is *late*: it stays in the log, is counted, and is not learnt online. If no event arrives, the
learner itself appends a tick, so that rule 2 needs no clock: what is learnt, in which order and with which clicks, is a
function of the log alone.

The new states of models and the number of the last event are committed in one transaction, which is refused if another
learner has moved on from the number that this one started from. A learner that is killed therefore repeats nothing and
leaves nothing out, and `replay` of the log gives the same bytes. After a start, lists that wait are found by reading
the log again from the oldest of them: no list after the oldest one that waits can have been closed by rules 2 or 3,
which close the oldest first.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from corank.data import lock
from corank.errors import InputError
from corank_lab.api.log import BATCH_SIZE, CLICK, EXCLUDED, FINAL, Event, EventLog, NewEvent, now_ms
from corank_lab.api.models import Registry, ServedModel, load_model, version_of
from corank_lab.database.connections import Statements
from corank_lab.database.database import Database

MAX_OPEN = 200_000  # largest number of lists that wait for feedback
PAUSE_SECONDS = 0.1  # shortest time in seconds between two commits of the learner, unless a request waits for one
IDLE_SECONDS = 0.25  # time in seconds after which the learner looks for events and activations of other processes
_LOCK = 0x636F72616E6C
_LOGGER = logging.getLogger("corank_lab.api")


@dataclass
class OpenList:
    """A list that waits for feedback."""

    number: int  # of its event
    subject: str  # the model that drew it
    until: int  # time at which it is closed
    clicked: set[str] = field(default_factory=set)  # items that were clicked


class OpenLists:
    """The lists that wait for feedback, after a part of the log."""

    def __init__(self, most: int = MAX_OPEN) -> None:
        self._most = most
        self._open: dict[str, OpenList] = {}
        self.counts: Counter[str] = Counter()  # of feedback: learnt, late, on unknown lists, excluded by a rule

    @property
    def oldest(self) -> OpenList | None:
        return next(iter(self._open.values()), None)

    def __len__(self) -> int:
        return len(self._open)

    def feed(self, event: Event, *, expire: bool = True) -> tuple[list[OpenList], bool]:
        closed: list[OpenList] = []
        while expire and (oldest := self.oldest) is not None and oldest.until <= event.time:
            closed.append(self._pop_oldest())
        if event.kind == "impression" and event.subject:
            self._open[event.id] = OpenList(event.number, event.subject, event.time + event.flag)
            if expire and len(self._open) > self._most:
                self.counts["closed_early"] += 1
                closed.append(self._pop_oldest())
        elif event.kind == "feedback":
            if event.flag & EXCLUDED:
                self.counts["excluded"] += 1
                return closed, False
            result = self._open.get(event.subject)
            if result is None:
                return closed, True
            self.counts["feedback"] += 1
            if event.flag & CLICK:
                result.clicked.add(event.item)
            if event.flag & FINAL:
                closed.append(self._open.pop(event.subject))
        return closed, False

    def _pop_oldest(self) -> OpenList:
        return self._open.pop(next(iter(self._open)))


class Models:
    """Models that learn, loaded when a list of theirs is closed."""

    def __init__(self, log: EventLog, column: str) -> None:
        # column: "state" to continue from what was learnt, "initial" to learn everything again
        self._log, self._column = log, column
        self.models: dict[str, ServedModel] = {}
        self.counts: dict[str, Counter[str]] = {}

    def learn(self, closed: Sequence[OpenList]) -> dict[str, int]:
        """Learn lists in order; return the number of the last list of each model that was touched."""
        touched: dict[str, int] = {}
        for first in range(0, len(closed), BATCH_SIZE // 8):
            part = closed[first : first + BATCH_SIZE // 8]
            numbers = [entry.number for entry in part]
            bodies, arrays = self._log.bodies(numbers), self._log.arrays(numbers)
            for item in part:
                model, body = self._model(item.subject), json.loads(bodies[item.number])
                if model is None:  # the version was removed
                    continue
                shown = arrays[item.number]["rows"]
                clicked = np.array([body["items"][row] in item.clicked for row in shown], dtype=np.bool_)
                counts = self.counts[item.subject]
                counts["lists"] += 1
                counts["clicked"] += int(clicked.any())
                model.learn(arrays[item.number], int(body["learnt"]), clicked)
                touched[item.subject] = item.number
        return touched

    def content(self, subject: str) -> bytes:
        return self._require(*version_of(subject)).content()

    def _model(self, subject: str) -> ServedModel | None:
        if subject not in self.models:
            with suppress(LookupError):
                self.models[subject] = self._load(*version_of(subject))
        return self.models.get(subject)

    def _load(self, name: str, version: int) -> ServedModel:
        sql = f"SELECT kind, {self._column}, counts FROM models WHERE name = ? AND version = ?"
        result = self._log.store.read(sql, name, version)
        if not result:
            raise LookupError(f"{name}/{version}")
        kind, content, counts = result[0]
        counted = json.loads(counts) if self._column == "state" else {}
        self.counts[f"{name}/{version}"] = Counter(counted)
        return load_model(kind, bytes(content), self._require)

    def _require(self, name: str, version: int) -> ServedModel:
        model = self._model(f"{name}/{version}")
        if model is None:
            raise InputError(f"{name} version {version} was removed, but a test compares it; remove the test too.")
        return model


class LogLearner:
    """Learns what the log has, commits it, and publishes new states to the registry that answers requests."""

    def __init__(self, log: EventLog, registry: Registry) -> None:
        self._log, self._registry = log, registry
        self.load()

    def load(self) -> None:
        """Continue from what was committed."""
        number, oldest, counts = self._log.store.read("SELECT number, oldest, counts FROM learner")[0]
        self.number, self._models, self._lists = int(number), Models(self._log, "state"), OpenLists()
        for events in self._log.batches(int(oldest) - 1, self.number):
            for event in events:
                self._lists.feed(event, expire=False)
        self._lists.counts = Counter(json.loads(counts))

    @property
    def n_open(self) -> int:
        return len(self._lists)

    @property
    def counts(self) -> dict[str, int]:
        return dict(self._lists.counts)

    def step(self) -> int:
        """Learn the next events and commit; return their number, 0 at the end of the log."""
        events = self._log.after(self.number)
        if not events:
            oldest = self._lists.oldest
            if oldest is not None and oldest.until <= now_ms():
                tick = NewEvent("tick", f"{oldest.number}", now_ms(), "{}")
                self._log.append([tick]).result()
            return 0
        touched = fold(self._log, self._lists, self._models, events)
        before, self.number = self.number, events[-1].number
        self._commit(before, touched)
        return len(events)

    def _commit(self, before: int, touched: dict[str, int]) -> None:
        states = [
            (self._models.content(subject), json.dumps(self._models.counts[subject]), number, *version_of(subject))
            for subject, number in touched.items()
        ]
        oldest = self._lists.oldest
        first = self.number + 1 if oldest is None else oldest.number
        values = (self.number, first, json.dumps(self._lists.counts), before)

        def job(db: Statements) -> bool:
            sql = "UPDATE learner SET number = ?, oldest = ?, counts = ? WHERE id = 1 AND number = ?"
            if db(sql, *values).rowcount != 1:
                return False
            for state in states:
                db("UPDATE models SET state = ?, counts = ?, learnt = ? WHERE name = ? AND version = ?", *state)
            return True

        if not self._log.store.run(job):  # another learner was faster
            self.load()
            return
        for subject, number in touched.items():
            name, version = version_of(subject)
            self._registry.publish(name, version, number, self._models.models[subject].snapshot())


def fold(log: EventLog, lists: OpenLists, models: Models, events: Sequence[Event]) -> dict[str, int]:
    """Learn from events in order."""
    closed: list[OpenList] = []
    for event in events:
        done, is_unmatched = lists.feed(event)
        closed += done
        if is_unmatched:
            number = log.number_of("impression", event.subject)
            lists.counts["late" if number is not None and number < event.number else "unknown"] += 1
    return models.learn(closed)


def replay(log: EventLog, upto: int | None = None) -> tuple[dict[str, bytes], dict[str, dict[str, int]]]:
    """Learn everything again from the initial states and the log."""
    lists, models = OpenLists(), Models(log, "initial")
    for events in log.batches(0, upto):
        fold(log, lists, models, events)
    states = {subject: models.content(subject) for subject in models.models}
    return states, {subject: dict(counts) for subject, counts in models.counts.items()}


class Lease:
    """The right to learn, which one process at a time has: on SQLite a locked file, on PostgreSQL an advisory lock."""

    def __init__(self, store: Database) -> None:
        self._store = store
        self._held: Any = None

    def take(self) -> bool:
        """Return whether this process has the lease now."""
        if self._store.dialect == "sqlite":
            if self._held is None:
                file = Path(f"{self._store.address}-learner").open("a")  # noqa: SIM115 - kept open
                try:
                    lock(file.fileno(), wait=False)
                except BlockingIOError:
                    file.close()
                    return False
                self._held = file
            return True
        try:
            if self._held is not None:
                self._held.execute("SELECT 1")
                return True
            connection = self._store._connect()
            if connection.execute(f"SELECT pg_try_advisory_lock({_LOCK})").fetchone()[0]:
                self._held = connection
                return True
            connection.close()
        except Exception:  # the server was restarted, so the lease is gone
            self.release()
        return False

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            with suppress(Exception):
                held.close()


class LearnerThread(threading.Thread):
    """Learns in the background while this process has the lease; otherwise follows what another process learns."""

    def __init__(self, log: EventLog, registry: Registry) -> None:
        super().__init__(name="corank-learner", daemon=True)
        self._log, self._registry, self._lease = log, registry, Lease(log.store)
        self._wake, self._is_over = threading.Event(), threading.Event()
        self._waiting: list[tuple[int, Future[int]]] = []
        self._lock = threading.Lock()
        self.learner: LogLearner | None = None
        self.number = 0
        self.n_failures = 0

    def notify(self) -> None:
        self._wake.set()

    def reached(self, number: int) -> Future[int]:
        """Return a future that is set once the event with this number is learnt."""
        future: Future[int] = Future()
        with self._lock:
            self._waiting.append((number, future))
        self._wake.set()
        return future

    def close(self) -> None:
        """Stop after the current step, and give the lease back."""
        self._is_over.set()
        self._wake.set()
        self.join()

    def run(self) -> None:
        refreshed = 0.0
        while not self._is_over.is_set():
            n_done = 0
            try:
                if time.monotonic() - refreshed > IDLE_SECONDS:
                    self._registry.refresh()
                    is_held = self._lease.take()
                    self.learner = (self.learner or LogLearner(self._log, self._registry)) if is_held else None
                    refreshed = time.monotonic()
                if self.learner is not None:
                    n_done = self.learner.step()
                    self.number = self.learner.number
                else:
                    self.number = int(self._log.store.read("SELECT number FROM learner")[0][0])
                    if self._waiting:
                        self._registry.refresh()
            except Exception as error:  # the database is away; everything is read again
                self.n_failures += 1
                _LOGGER.warning("learning is interrupted by %s", type(error).__name__)
                self.learner = None
                self._is_over.wait(IDLE_SECONDS)
            self._answer()
            if n_done < BATCH_SIZE and not self._waiting:
                self._is_over.wait(PAUSE_SECONDS)
            if not n_done and not self._is_over.is_set():
                self._wake.wait(0.005 if self._waiting else IDLE_SECONDS)
                self._wake.clear()
        self._lease.release()

    def _answer(self) -> None:
        with self._lock:
            ready = [future for number, future in self._waiting if number <= self.number]
            self._waiting = [item for item in self._waiting if item[0] > self.number]
        for future in ready:
            if not future.done():
                future.set_result(self.number)


def require_lease(store: Database) -> Lease:
    """Take the lease for a command, or raise if a service runs."""
    lease = Lease(store)
    if not lease.take():
        raise InputError("a service is running on this database; stop it first, then run the command again.")
    return lease
