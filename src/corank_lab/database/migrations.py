"""
Versions of the database: numbered functions, each of which leads from one version to the next.

A database of an older version is copied before it is changed (`SqliteStore`). A newer one is refused.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from corank.errors import InputError
from corank_lab.database.checksums import CHECKED, FIRST_VERSION, add_checksums, add_schema_checksum

TYPES = {
    "sqlite": {
        "number": "INTEGER PRIMARY KEY AUTOINCREMENT", "key": "INTEGER PRIMARY KEY", "bytes": "BLOB", "real": "REAL",
    },
    "postgresql": {
        "number": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "key": "BIGINT PRIMARY KEY", "bytes": "BYTEA",
        "real": "DOUBLE PRECISION",
    },
}  # fmt: skip
"""Types of columns that are spelt differently, by dialect."""

_FIRST = """
CREATE TABLE projects (id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, settings TEXT NOT NULL,
    created TEXT NOT NULL, is_archived INTEGER NOT NULL);
CREATE TABLE files (project TEXT NOT NULL REFERENCES projects (id), name TEXT NOT NULL, type TEXT NOT NULL,
    content {bytes} NOT NULL, PRIMARY KEY (project, name));
CREATE TABLE judges (id TEXT PRIMARY KEY, project TEXT REFERENCES projects (id), name TEXT NOT NULL,
    token_hash TEXT NOT NULL, created TEXT NOT NULL, is_revoked INTEGER NOT NULL, UNIQUE (project, name));
CREATE TABLE answers (number {number}, project TEXT NOT NULL REFERENCES projects (id), judge TEXT NOT NULL,
    client_id TEXT NOT NULL, item TEXT NOT NULL, action TEXT NOT NULL, entry TEXT NOT NULL, time TEXT NOT NULL,
    UNIQUE (project, judge, client_id));
CREATE INDEX answers_in_order ON answers (project, number);
CREATE TABLE holds (project TEXT NOT NULL, item TEXT NOT NULL, judge TEXT NOT NULL, until {real} NOT NULL,
    PRIMARY KEY (project, item, judge))
"""


def _create(execute: Callable[..., Any], types: dict[str, str]) -> None:
    """Version 1: projects, files, judges, answers and holds."""
    for statement in _FIRST.split(";"):
        execute(statement.format(**types))
    execute(f"INSERT INTO meta (key, value) VALUES ('database', '{secrets.token_hex(8)}')")


def _add_version(execute: Callable[..., Any], types: dict[str, str]) -> None:
    """Version 2: answers name the version of the software that stored them."""
    execute("ALTER TABLE answers ADD COLUMN version TEXT NOT NULL DEFAULT ''")


def _add_imports(execute: Callable[..., Any], types: dict[str, str]) -> None:
    """Version 3: uploads that are still being read, and which links were opened."""
    execute("ALTER TABLE judges ADD COLUMN is_opened INTEGER NOT NULL DEFAULT 0")
    execute("UPDATE judges SET is_opened = 1")  # all who are signed in stay so
    execute(
        "CREATE TABLE imports (id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, created TEXT NOT NULL, "
        f"stage TEXT NOT NULL, share {types['real']} NOT NULL, attempts INTEGER NOT NULL, "
        "project TEXT REFERENCES projects (id), error TEXT NOT NULL)"
    )
    execute(
        "CREATE TABLE import_files (import TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, "
        f"content {types['bytes']} NOT NULL, PRIMARY KEY (import, number))"
    )


_SERVICE = """
CREATE TABLE events (number {number}, kind TEXT NOT NULL, id TEXT NOT NULL, time BIGINT NOT NULL, person TEXT NOT NULL,
    subject TEXT NOT NULL, item TEXT NOT NULL, flag BIGINT NOT NULL, body TEXT NOT NULL, UNIQUE (kind, id));
CREATE TABLE event_arrays (number {key}, content {bytes} NOT NULL);
CREATE TABLE items (id TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE models (name TEXT NOT NULL, version INTEGER NOT NULL, kind TEXT NOT NULL, recipe TEXT NOT NULL,
    initial {bytes} NOT NULL, state {bytes} NOT NULL, counts TEXT NOT NULL, learnt BIGINT NOT NULL,
    created TEXT NOT NULL, PRIMARY KEY (name, version));
CREATE TABLE active_models (name TEXT PRIMARY KEY, version INTEGER NOT NULL, history TEXT NOT NULL);
CREATE TABLE learner (id {key}, number BIGINT NOT NULL, oldest BIGINT NOT NULL, counts TEXT NOT NULL);
CREATE TABLE api_keys (id TEXT PRIMARY KEY, name TEXT NOT NULL, scopes TEXT NOT NULL, hash TEXT NOT NULL,
    created TEXT NOT NULL, is_revoked INTEGER NOT NULL)
"""


def _add_service(execute: Callable[..., Any], types: dict[str, str]) -> None:
    """Version 4: the log of events, models and keys of the ranking service."""
    for statement in _SERVICE.split(";"):
        execute(statement.format(**types))
    execute("INSERT INTO learner (id, number, oldest, counts) VALUES (1, 0, 1, '{}')")


def _add_checksums(execute: Callable[..., Any], types: dict[str, str]) -> None:
    """Version 5: checksums of rows, in SQLite."""
    if types is TYPES["sqlite"]:
        for table in CHECKED:
            add_checksums(execute, table)


MIGRATIONS: tuple[Callable[[Callable[..., Any], dict[str, str]], None], ...] = (
    _create, _add_version, _add_imports, _add_service, _add_checksums,
)  # fmt: skip
"""Number k, from 0, leads from version k to version k + 1."""

VERSION = len(MIGRATIONS)


def version_of(connection: Any, dialect: str) -> int:
    """Return the version of a database; 0 if it is empty."""
    if dialect == "sqlite":
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'").fetchone()
    else:
        found = connection.execute("SELECT 1 WHERE to_regclass('meta') IS NOT NULL").fetchone()
    if found is None:
        return 0
    row = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    return int(row[0]) if row else 0


def migrate(connection: Any, dialect: str, to: int = VERSION) -> None:
    """
    Bring a database to a version, inside the caller's transaction.

    to: the version; tests make databases of older ones.
    """
    version = version_of(connection, dialect)
    if version > VERSION:
        raise InputError(
            f"the database has version {version}, which a newer corank wrote; this one reads versions up to {VERSION}, "
            "so install a newer corank (pip install -U corank)."
        )
    if version >= to:
        return
    connection.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    for number in range(version, to):
        MIGRATIONS[number](connection.execute, TYPES[dialect])
    connection.execute("DELETE FROM meta WHERE key = 'version'")
    connection.execute(f"INSERT INTO meta (key, value) VALUES ('version', '{int(to)}')")
    if dialect == "sqlite" and to >= FIRST_VERSION:
        add_schema_checksum(connection.execute)
