"""
Models of the service: a name has versions 1, 2, ..., of which one is active.

A version keeps its initial state for ever, and the state that it has learnt from its own lists. Models come from files
that the owner adds, or from training on the log; never from a path or a file in a request.
"""

from __future__ import annotations

import json
import re
import threading
from typing import Any, NamedTuple

from corank.errors import InputError, suggest_names
from corank_lab.api.log import TABLES
from corank_lab.api.rankers import ServedModel, load_model
from corank_lab.database.connections import Statements
from corank_lab.database.database import Database
from corank_lab.database.entries import utc_now

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MAX_HISTORY = 100
"""Number of earlier activations of a name that `rollback` can undo."""


class ModelRow(NamedTuple):
    """A version of a model."""

    name: str
    version: int
    kind: str
    recipe: dict[str, Any]  # how it was made, as JSON values
    counts: dict[str, int]  # lists that it drew and that were learnt, and those with a click
    learnt: int  # number of the last event that changed its state
    created: str


class Registry:
    """The models of a database. It may be used by many threads."""

    def __init__(self, store: Database) -> None:
        store.install(TABLES)
        self.store = store
        self._lock = threading.RLock()
        self._loaded: dict[tuple[str, int], tuple[int, ServedModel]] = {}
        self.active: dict[str, int] = {}
        self.refresh()

    def add(self, name: str, kind: str, content: bytes, recipe: dict[str, Any]) -> int:
        """Add a version, and activate it if it is the first of its name."""
        if not _NAME.fullmatch(name):
            raise InputError(f"a model cannot be called {name!r}; use up to 64 letters, digits, dots and hyphens.")
        load_model(kind, content, self.model, is_known=False)

        def job(db: Statements) -> int:
            newest = db("SELECT COALESCE(MAX(version), 0) FROM models WHERE name = ?", name).fetchone()[0]
            version = int(newest) + 1
            db(
                "INSERT INTO models (name, version, kind, recipe, initial, state, counts, learnt, created) "
                "VALUES (?, ?, ?, ?, ?, ?, '{}', 0, ?)",
                name, version, kind, json.dumps(recipe), content, content, utc_now(),
            )  # fmt: skip
            db(
                "INSERT INTO active_models (name, version, history) VALUES (?, ?, '[]') ON CONFLICT (name) DO NOTHING",
                name,
                version,
            )
            return version

        version = self.store.run(job)
        self.refresh()
        return version

    def versions(self) -> list[ModelRow]:
        """Return all versions of all models."""
        rows = self.store.read(
            "SELECT name, version, kind, recipe, counts, learnt, created FROM models ORDER BY name, version"
        )
        return [ModelRow(row[0], row[1], row[2], json.loads(row[3]), json.loads(row[4]), *row[5:]) for row in rows]

    def activate(self, name: str, version: int) -> int:
        """Use a version of a model from now on; return it."""
        self._require(name)
        known = [row.version for row in self.versions() if row.name == name]
        if version not in known:
            raise InputError(f"{name} has no version {version}; its versions are 1 to {max(known)}.")

        def job(db: Statements) -> int:
            before, history = db("SELECT version, history FROM active_models WHERE name = ?", name).fetchone()
            if before != version:
                steps = [*json.loads(history), before][-MAX_HISTORY:]
                sql = "UPDATE active_models SET version = ?, history = ? WHERE name = ?"
                db(sql, version, json.dumps(steps), name)
            return version

        return self._changed(self.store.run(job))

    def rollback(self, name: str) -> int:
        """Use the version again that was active before the last activation; return it."""
        self._require(name)

        def job(db: Statements) -> int:
            history = json.loads(db("SELECT history FROM active_models WHERE name = ?", name).fetchone()[0])
            if not history:
                raise InputError(f"{name} has no earlier version to go back to; activate a version by its number.")
            sql = "UPDATE active_models SET version = ?, history = ? WHERE name = ?"
            db(sql, history[-1], json.dumps(history[:-1]), name)
            return int(history[-1])

        return self._changed(self.store.run(job))

    def remove(self, name: str, version: int) -> None:
        """Remove a version that is not active; its lists stay in the log, and are not learnt any more."""
        self._require(name)
        if self.active[name] == version:
            raise InputError(f"{name} version {version} is active; activate another version first.")
        self.model(name, version)

        def job(db: Statements) -> None:
            db("DELETE FROM models WHERE name = ? AND version = ?", name, version)
            history = json.loads(db("SELECT history FROM active_models WHERE name = ?", name).fetchone()[0])
            left = json.dumps([item for item in history if item != version])
            db("UPDATE active_models SET history = ? WHERE name = ?", left, name)

        self.store.run(job)
        self._loaded.pop((name, version), None)

    def model(self, name: str, version: int) -> ServedModel:
        """Return a version, in the state that was committed last as far as this process knows."""
        with self._lock:
            result = self._loaded.get((name, version))
            if result is None:
                result = self._loaded[name, version] = self._load(name, version)
            return result[1]

    def serving(self, name: str | None) -> tuple[str, int, ServedModel]:
        """Return name, version and model that answers for a name; None stands for the only name."""
        if name is None:
            if len(self.active) != 1:
                names = ", ".join(sorted(self.active)) or "none"
                raise InputError(f"the request names no model, but the service has several or none: {names}.")
            name = next(iter(self.active))
        self._require(name)
        version = self.active[name]
        return name, version, self.model(name, version)

    def publish(self, name: str, version: int, learnt: int, model: ServedModel) -> None:
        """Use a new state of a version, which was committed."""
        with self._lock:
            self._loaded[name, version] = (learnt, model.bind(self.model))

    def refresh(self) -> None:
        """Take notice of activations and states that other processes committed; loads the new states."""
        self.active = {
            name: int(version) for name, version in self.store.read("SELECT name, version FROM active_models")
        }
        for name, version, learnt in self.store.read("SELECT name, version, learnt FROM models"):
            known = self._loaded.get((name, version))
            if known is not None and known[0] < learnt:
                fresh = self._load(name, version)
                with self._lock:
                    if self._loaded[name, version][0] < fresh[0]:
                        self._loaded[name, version] = fresh

    def _load(self, name: str, version: int) -> tuple[int, ServedModel]:
        rows = self.store.read("SELECT kind, state, learnt FROM models WHERE name = ? AND version = ?", name, version)
        if not rows:
            raise InputError(f"there is no version {version} of a model {name!r}; list them with GET /models.")
        kind, state, learnt = rows[0]
        return learnt, load_model(kind, bytes(state), self.model)

    def _changed(self, version: int) -> int:
        self.refresh()
        return version

    def _require(self, name: str) -> None:
        if name not in self.active:
            hint = suggest_names(name, sorted(self.active)) if self.active else "add one with corank serve add"
            raise InputError(f"there is no model {name[:60]!r}; {hint}.")


def subject_of(name: str, version: int) -> str:
    """Return the subject of lists that a version drew."""
    return f"{name}/{version}"


def version_of(subject: str) -> tuple[str, int]:
    """Return name and version of a subject."""
    name, _, version = subject.rpartition("/")
    return name, int(version)
