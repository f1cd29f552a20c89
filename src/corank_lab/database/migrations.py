"""
Versions of the database: numbered functions, each of which leads from one version to the next.

Here are the tables of projects and answers. Other apps define their own as `AppTables` and call
`Database.install`; the database only runs them and keeps a version for each. A database of an older version is
copied before it is changed (`SqliteDatabase`). A newer one is refused.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from corank.errors import InputError
from corank_lab.database.checksums import add_checksums, add_schema_checksum, checked_tables, has_checksums

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


def _nothing(execute: Callable[..., Any], types: dict[str, str]) -> None:
    """Version 4 added the tables of the service, which it creates itself since version 6 (`AppTables`)."""


def _add_checksums(execute: Callable[..., Any], types: dict[str, str]) -> None:
    """Version 5: checksums of rows, in SQLite."""
    if types is TYPES["sqlite"]:
        for table in TABLES:
            add_checksums(execute, table)


Step = Callable[[Callable[..., Any], dict[str, str]], None]
"""Changes a database; gets the function that runs statements, and `TYPES` of the dialect."""
MIGRATIONS: tuple[Step, ...] = (_create, _add_version, _add_imports, _nothing, _add_checksums, _nothing)
"""Number k, from 0, leads from version k to version k + 1."""

VERSION = len(MIGRATIONS)
TABLES = ("meta", "projects", "files", "judges", "answers")
"""Tables whose rows have checksums; the others hold questions that wait and uploads that are being read."""


class AppTables(NamedTuple):
    """Tables that an app adds to the database."""

    name: str  # of the app
    tables: tuple[str, ...]  # names; in SQLite their rows get checksums
    steps: tuple[Step, ...]  # as `MIGRATIONS`
    # called after rows of a damaged database were copied, with their numbers by table
    after_recovery: Callable[[Callable[..., Any], Mapping[str, int]], None] = lambda db, n_rows: None


def version_of(connection: Any, dialect: str, app: str = "") -> int:
    """Return the version of a database, or of the tables of an app; 0 if there are none."""
    if dialect == "sqlite":
        result = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'").fetchone()
    else:
        result = connection.execute("SELECT 1 WHERE to_regclass('meta') IS NOT NULL").fetchone()
    if result is None:
        return 0
    row = connection.execute(f"SELECT value FROM meta WHERE key = '{_key(app)}'").fetchone()
    return int(row[0]) if row else 0


def migrate(connection: Any, dialect: str, to: int = VERSION) -> None:
    """Bring a database to a version, inside the caller's transaction."""
    version = version_of(connection, dialect)
    _require_known("the database has", version, VERSION)
    if version >= to:
        return
    connection.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    for number in range(version, to):
        MIGRATIONS[number](connection.execute, TYPES[dialect])
    _set_version(connection, dialect, "", to)


def install(connection: Any, dialect: str, app: AppTables) -> None:
    """Bring the tables of an app to its version, inside the caller's transaction."""
    version, latest = version_of(connection, dialect, app.name), len(app.steps)
    _require_known(f"tables of {app.name} have", version, latest)
    if version == latest:
        return
    for step in app.steps[version:]:
        step(connection.execute, TYPES[dialect])
    if dialect == "sqlite":
        for table in set(app.tables) - set(checked_tables(connection.execute)):
            add_checksums(connection.execute, table)
    _set_version(connection, dialect, app.name, latest)


def _key(app: str) -> str:
    return f"version.{app}" if app else "version"


def _set_version(connection: Any, dialect: str, app: str, version: int) -> None:
    connection.execute(f"DELETE FROM meta WHERE key = '{_key(app)}'")
    connection.execute(f"INSERT INTO meta (key, value) VALUES ('{_key(app)}', '{version}')")
    if dialect == "sqlite" and has_checksums(connection.execute):
        add_schema_checksum(connection.execute)


def _require_known(what: str, version: int, latest: int) -> None:
    if version > latest:
        raise InputError(
            f"{what} version {version}, which a newer corank wrote; this one reads versions up to {latest}, so install "
            "a newer corank (pip install -U corank)."
        )
