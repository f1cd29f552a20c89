"""API keys, ``id.secret`` (`corank_lab.database.tokens`): one per caller, with scopes and a rate."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from corank.errors import InputError, suggest_names
from corank_lab.api.log import TABLES
from corank_lab.database.database import Database
from corank_lab.database.entries import utc_now
from corank_lab.database.tokens import hash_secret, is_secret, new_secret

SCOPES = ("rank", "feedback", "judge", "admin")
"""What a key may do; admin includes the others."""
FRESH = 2.0
"""Seconds after which revoked keys are noticed."""


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
    """
    The keys of a database.

    rate: requests per second and key; a key may save up to two seconds of them.
    """

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
        """Make a key invalid."""
        if id not in {key.id for key in self.all()}:
            raise InputError(f"there is no key {id!r}; list the keys first.")
        self._store.write(("UPDATE api_keys SET is_revoked = 1 WHERE id = ?", id))
        self._read_at = 0.0

    def all(self) -> list[Key]:
        """Return all keys, the oldest first."""
        return [key for _, key in self._rows()]

    @property
    def is_fresh(self) -> bool:
        """Whether `find` needs no database."""
        return time.monotonic() - self._read_at < FRESH

    def refresh(self) -> None:
        """Read the keys again."""
        self._known = {key.id: (secret, key) for secret, key in self._rows() if not key.is_revoked}
        self._read_at = time.monotonic()

    def find(self, token: str) -> Key | None:
        """Return the key with this text, None if it is invalid."""
        id, _, secret = token.partition(".")
        expected, key = self._known.get(id, (None, None))
        return key if is_secret(secret, expected) else None

    def wait_for(self, key: Key) -> float:
        """Count a request; return the seconds to wait if the key has used up its rate, else 0."""
        now = time.monotonic()
        with self._lock:
            saved, at = self._buckets.get(key.id, (2.0 * self._rate, now))
            saved = min(2.0 * self._rate, saved + self._rate * (now - at))
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
