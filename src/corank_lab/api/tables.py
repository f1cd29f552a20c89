"""Tables of the service in the database: the log of events, items, models, the learner and keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from corank_lab.database.migrations import AppTables

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
"""Tables of the service."""
