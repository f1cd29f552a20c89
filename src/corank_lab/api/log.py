"""
The log of events: lists that were shown, feedback on them and judgements, numbered in the order of their commits.

An event is never changed. Its kind and id make it unique, so sending it again changes nothing. Numbers follow the order
of commits on SQLite and on PostgreSQL (`Database` lets one writer at a time commit), so a reader that has seen
number n never meets a smaller one later. Features and other arrays of a list are kept in a table of their own, as
safetensors, so that the log itself is small to read.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from corank.errors import InputError, suggest_names
from corank_lab.database.connections import Statements
from corank_lab.database.database import Database
from corank_lab.database.schema import AppTables, hash_secret, is_secret, new_secret, utc_now

_FIRST = """
CREATE TABLE IF NOT EXISTS events (number {number}, kind TEXT NOT NULL, id TEXT NOT NULL, time BIGINT NOT NULL,
    person TEXT NOT NULL, subject TEXT NOT NULL, item TEXT NOT NULL, flag BIGINT NOT NULL, body TEXT NOT NULL,
    UNIQUE (kind, id));
CREATE TABLE IF NOT EXISTS event_arrays (number {key}, content {bytes} NOT NULL);
CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS models (name TEXT NOT NULL, version INTEGER NOT NULL, kind TEXT NOT NULL,
    recipe TEXT NOT NULL, initial {bytes} NOT NULL, state {bytes} NOT NULL, counts TEXT NOT NULL,
    learnt BIGINT NOT NULL, created TEXT NOT NULL, PRIMARY KEY (name, version));
CREATE TABLE IF NOT EXISTS active_models (name TEXT PRIMARY KEY, version INTEGER NOT NULL, history TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS learner (id {key}, number BIGINT NOT NULL, oldest BIGINT NOT NULL, counts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS api_keys (id TEXT PRIMARY KEY, name TEXT NOT NULL, scopes TEXT NOT NULL, hash TEXT NOT NULL,
    created TEXT NOT NULL, is_revoked INTEGER NOT NULL)
"""
_START = (
    "INSERT INTO learner (id, number, oldest, counts) VALUES (1, {last}, {last} + 1, '{{}}') ON CONFLICT DO NOTHING"
)


def _create(execute: Callable[..., Any], types: dict[str, str]) -> None:
    """Version 1; the tables exist in databases of versions 4 and 5, where the database itself created them."""
    for statement in _FIRST.split(";"):
        execute(statement.format(**types))
    execute(_START.format(last=0))


def _continue(db: Callable[..., Any], n_rows: Mapping[str, int]) -> None:
    """Let the learner begin after the last event, if what it had learnt is lost: nothing is learnt twice."""
    if not n_rows["learner"]:
        db("DELETE FROM learner")
        db(_START.format(last="(SELECT COALESCE(MAX(number), 0) FROM events)"))


TABLES = AppTables(
    "api",
    ("events", "event_arrays", "items", "models", "active_models", "learner", "api_keys"),
    (_create,),
    _continue,
)
"""Tables of the service; only earlier versions used the table `items`."""


CLICK, FINAL, EXCLUDED = 1, 2, 4
"""Bits of the flag of feedback: it counts as a click; it closes the list; a rule excludes it from learning."""
BATCH_SIZE = 2000  # number of events that are read together
_IN_ONE_QUERY = 500

Arrays = dict[str, NDArray[Any]]


class NewEvent(NamedTuple):
    """An event to append."""

    kind: str  # "impression", "feedback" or "tick"; in logs of version 0.2 also "judgement" and "user"
    id: str  # unique among the events of its kind
    time: int  # milliseconds since 1970
    body: str  # the event as JSON
    person: str = ""  # id of the user or judge; empty if unknown
    # of a list the model that drew it, as "name/version", empty if it was drawn elsewhere; of feedback the id of the
    # list; of a judgement the query
    subject: str = ""
    item: str = ""  # id of the item of feedback
    # of a list the milliseconds to wait for feedback; of feedback the bits `CLICK`, `FINAL` and `EXCLUDED`
    flag: int = 0
    arrays: bytes | None = None  # arrays of a list, packed


class Event(NamedTuple):
    """An event of the log without its body; fields as in `NewEvent`."""

    number: int
    kind: str
    id: str
    time: int
    person: str
    subject: str
    item: str
    flag: int


class EventLog:
    """The events of a database."""

    def __init__(self, store: Database) -> None:
        store.install(TABLES)
        self.store = store

    def append(self, events: Sequence[NewEvent]) -> Future[list[int]]:
        """Queue events, which are committed together."""

        def job(db: Statements) -> list[int]:
            numbers = []
            for event in events:
                result = db(_INSERT, *event[:-1]).fetchone()
                numbers.append(int(result[0]) if result else 0)
                if result and event.arrays is not None:
                    db("INSERT INTO event_arrays (number, content) VALUES (?, ?)", numbers[-1], event.arrays)
            return numbers

        return self.store.submit(job)

    def after(self, number: int, limit: int = BATCH_SIZE) -> list[Event]:
        rows = self.store.read(
            f"SELECT {', '.join(Event._fields)} FROM events WHERE number > ? ORDER BY number LIMIT {int(limit)}", number
        )
        return [Event(*row) for row in rows]

    def batches(self, after: int = 0, upto: int | None = None) -> Iterator[list[Event]]:
        """Read the log in parts: the events with numbers above `after`, up to `upto` if it is given."""
        while result := self.after(after):
            after = result[-1].number
            wanted = result if upto is None else [event for event in result if event.number <= upto]
            if wanted:
                yield wanted
            if len(wanted) < len(result):
                return

    def bodies(self, numbers: Sequence[int]) -> dict[int, str]:
        return {int(number): str(body) for number, body in self._by("number, body", "events", "number", numbers)}

    def arrays(self, numbers: Sequence[int]) -> dict[int, Arrays]:
        result = self._by("number, content", "event_arrays", "number", numbers)
        return {int(number): unpack(bytes(content)) for number, content in result}

    def number_of(self, kind: str, id: str) -> int | None:
        rows = self.store.read("SELECT number FROM events WHERE kind = ? AND id = ?", kind, id)
        return int(rows[0][0]) if rows else None

    def shown(self, ids: Iterable[str]) -> dict[str, set[str]]:
        """Return the items that lists of the log showed, by the ids of the lists."""
        result = {}
        columns = "id, number, subject, body"
        for id, number, subject, body in self._by(columns, "events", "kind = 'impression' AND id", list(ids)):
            about = json.loads(body)
            items = about["items"]
            if subject and about["k"] < len(items):
                items = [items[row] for row in self.arrays([number])[number]["rows"]]
            result[str(id)] = set(items)
        return result

    def last_number(self) -> int:
        return int(self.store.read("SELECT COALESCE(MAX(number), 0) FROM events")[0][0])

    def _by(self, columns: str, table: str, key: str, values: Sequence[Any]) -> Iterator[Any]:
        for first in range(0, len(values), _IN_ONE_QUERY):
            part = values[first : first + _IN_ONE_QUERY]
            marks = ", ".join("?" * len(part))
            yield from self.store.read(f"SELECT {columns} FROM {table} WHERE {key} IN ({marks})", *part)


_INSERT = (
    "INSERT INTO events (kind, id, time, body, person, subject, item, flag) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (kind, id) DO NOTHING RETURNING number"
)


def pack(arrays: Arrays) -> bytes:
    """Pack arrays of float64 and int64, as 32-bit numbers where that loses nothing; `unpack` restores the types."""
    packed = {}
    for name, values in arrays.items():
        with np.errstate(over="ignore"):
            short = values.astype(np.float32 if values.dtype == np.float64 else np.int32)
        packed[name] = np.ascontiguousarray(short if (short == values).all() else values)
    return bytes(save_tensors(packed))


def unpack(content: bytes) -> Arrays:
    """Return packed arrays, as float64 and int64."""
    result = load_tensors(content)
    return {name: values.astype(f"{values.dtype.kind}8", copy=False) for name, values in result.items()}


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


SCOPES = ("rank", "feedback", "admin")
"""What a key may do; admin includes the others. Keys of 0.2 may also have "judge", which nothing needs now."""
FRESH_SECONDS = 2.0  # seconds after which revoked keys are noticed


class Key(NamedTuple):
    """A key without its secret."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created: str
    is_revoked: bool

    def allows(self, scope: str) -> bool:
        """Return whether the key is good for a scope; "any" is good for every key."""
        return scope == "any" or scope in self.scopes or "admin" in self.scopes


class Keys:
    """The keys of a database; each may send `rate` requests per second, and save up to two seconds of them."""

    def __init__(self, store: Database, rate: float = 1000.0) -> None:
        store.install(TABLES)
        self._store, self._rate = store, rate
        self._known: dict[str, tuple[str, Key]] = {}
        self._read_at = 0.0
        self._buckets: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def add(self, name: str, scopes: Sequence[str]) -> str:
        """Add a key, and return it; the secret is not stored."""
        for scope in scopes:
            if scope not in SCOPES:
                raise InputError(f"there is no scope {scope!r}; {suggest_names(scope, SCOPES)}.")
        id, secret = secrets.token_hex(4), new_secret()
        created = utc_now()
        row = (id, name, ",".join(dict.fromkeys(scopes)), hash_secret(secret), created)
        sql = "INSERT INTO api_keys (id, name, scopes, hash, created, is_revoked) VALUES (?, ?, ?, ?, ?, 0)"
        self._store.write((sql, *row))
        self._read_at = 0.0
        return f"{id}.{secret}"

    def revoke(self, id: str) -> None:
        if id not in {key.id for key in self.all()}:
            raise InputError(f"there is no key {id!r}; list the keys first.")
        self._store.write(("UPDATE api_keys SET is_revoked = 1 WHERE id = ?", id))
        self._read_at = 0.0

    def all(self) -> list[Key]:
        return [key for _, key in self._rows()]

    @property
    def is_fresh(self) -> bool:
        """Whether `find` needs no database."""
        return time.monotonic() - self._read_at < FRESH_SECONDS

    def refresh(self) -> None:
        self._known = {key.id: (secret, key) for secret, key in self._rows() if not key.is_revoked}
        self._read_at = time.monotonic()

    def find(self, token: str) -> Key | None:
        id, _, secret = token.partition(".")
        expected, key = self._known.get(id, (None, None))
        return key if is_secret(secret, expected) else None

    def wait_for(self, key: Key) -> float:
        """Count a request; return the seconds to wait if the key has used up its rate, else 0."""
        now = time.monotonic()
        with self._lock:
            saved, i = self._buckets.get(key.id, (2.0 * self._rate, now))
            saved = min(2.0 * self._rate, saved + self._rate * (now - i))
            if saved < 1.0:
                self._buckets[key.id] = (saved, now)
                return (1.0 - saved) / self._rate
            self._buckets[key.id] = (saved - 1.0, now)
            return 0.0

    def _rows(self) -> list[tuple[str, Key]]:
        sql = "SELECT hash, id, name, scopes, created, is_revoked FROM api_keys ORDER BY created, id"
        return [
            (row[0], Key(row[1], row[2], tuple(row[3].split(",")), row[4], bool(row[5])))
            for row in self._store.read(sql)
        ]
