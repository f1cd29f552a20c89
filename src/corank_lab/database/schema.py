"""
Tables and their versions, and checksums by which damage of rows and of the write-ahead log of SQLite is found.

Here are the tables of projects and answers. Other apps define their own as `AppTables`, by numbered functions that lead
from each version to the next, and call `Database.install`; the database only runs them and keeps a version for each. A
database of 0.2 is copied before it is changed (`SqliteDatabase`). A newer one is refused. PostgreSQL has checksums of
pages (``initdb --data-checksums``), so its tables get none of these.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError

MAX_SHOWN = 5  # number of damaged rows that a message names
MAX_MISSES = 10_000  # number of unreadable rows after which `readable` looks no further for single rows
_EMPTY = "0" * 16
"""Before the trigger fills it. It has the length of a checksum, so that SQLite then rewrites only what differs."""

Execute = Callable[..., Any]


class Damage(Exception):
    """Parts of the file are changed or unreadable; the message names them."""


def add_function(connection: sqlite3.Connection) -> None:
    """Define the function that the triggers call."""
    connection.create_function("corank_checksum", -1, _checksum, deterministic=True)
    connection.execute("PRAGMA trusted_schema = ON")  # some builds let triggers call no functions of programs


def add_checksums(execute: Execute, table: str) -> None:
    """Add checksums to a table and compute those of its rows; again after a column was added."""
    columns = columns_of(execute, table)
    if "checksum" not in _all_columns(execute, table):
        execute(f"ALTER TABLE {table} ADD COLUMN checksum TEXT NOT NULL DEFAULT '{_EMPTY}'")
    execute(f"UPDATE {table} SET checksum = {_call(execute, table)}")
    for event, name in (("INSERT", "added"), (f"UPDATE OF {', '.join(columns)}", "changed")):
        execute(f"DROP TRIGGER IF EXISTS {table}_{name}")
        execute(
            f"CREATE TRIGGER {table}_{name} AFTER {event} ON {table} BEGIN UPDATE {table} SET "
            f"checksum = {_call(execute, table, 'NEW.')} WHERE rowid = NEW.rowid; END"
        )


def add_schema_checksum(execute: Execute) -> None:
    """Store the checksum of the definitions of all tables and triggers."""
    execute("DELETE FROM meta WHERE key = 'schema'")
    execute("INSERT INTO meta (key, value) VALUES ('schema', ?)", (_schema(execute),))


def checked_tables(execute: Execute) -> list[str]:
    """Return the tables whose rows have checksums, ``meta`` first."""
    sql = "SELECT tbl_name FROM sqlite_master WHERE type = 'trigger' AND name = tbl_name || '_added' ORDER BY tbl_name"
    return sorted((str(name) for (name,) in execute(sql)), key=lambda name: (name != "meta", name))


def has_checksums(execute: Execute) -> bool:
    """Return whether the rows of a database have checksums."""
    return "checksum" in _all_columns(execute, "meta")


def columns_of(execute: Execute, table: str) -> list[str]:
    """Return the names of the columns of a table, without the checksum; none if it does not exist."""
    return [name for name in _all_columns(execute, table) if name != "checksum"]


def is_sound(execute: Execute, table: str) -> str:
    """Return the expression that is true for a row whose checksum is right."""
    return f"checksum IS {_call(execute, table)}"


def check_database(connection: sqlite3.Connection) -> None:
    """Raise `Damage` unless structure, definitions, indexes and rows of a database are sound."""
    execute = connection.execute
    # quick_check would not compare indexes with their tables, and an answer that its index lacks is lost
    messages = [str(row[0]) for row in execute(f"PRAGMA integrity_check({MAX_SHOWN})")]
    if messages != ["ok"]:
        raise Damage(messages[0].removeprefix("*** in database main ***\n"))
    if not has_checksums(execute):
        return
    if execute("SELECT value FROM meta WHERE key = 'schema'").fetchone() != (_schema(execute),):
        raise Damage("the definition of a table or trigger was changed")
    for table in checked_tables(execute):
        result = execute(
            f"SELECT rowid FROM {table} WHERE NOT ({is_sound(execute, table)}) LIMIT {MAX_SHOWN}"
        ).fetchall()
        if result:
            numbers = ", ".join(str(number) for (number,) in result)
            raise Damage(f"{table}: row {numbers}{' and maybe more' * (len(result) == MAX_SHOWN)}")


def readable(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> Iterator[tuple[int, bool, Any]]:
    """Read a table of a damaged file as far as possible: forwards, backwards, then row by row between."""
    execute = connection.execute
    sound = is_sound(execute, table) if has_checksums(execute) else "1"
    select = f"SELECT rowid, {sound}, {', '.join(columns)} FROM {table}"
    first, last = 1, sys.maxsize
    with suppress(sqlite3.DatabaseError):
        for row in execute(f"{select} ORDER BY rowid"):
            yield row[0], bool(row[1]), row[2:]
            first = row[0] + 1
        return
    with suppress(sqlite3.DatabaseError):
        for row in execute(f"{select} WHERE rowid >= ? ORDER BY rowid DESC", (first,)):
            yield row[0], bool(row[1]), row[2:]
            last = row[0] - 1
    yield first, False, None
    number, n_missed = first, 0
    while number <= last and n_missed < MAX_MISSES:
        n_missed += 1
        with suppress(sqlite3.DatabaseError):
            for row in execute(f"{select} WHERE rowid = ?", (number,)):
                yield row[0], bool(row[1]), row[2:]
                n_missed = 0
        number += 1


def _checksum(text: bytes, *blobs: bytes | None) -> str:
    digest = hashlib.sha256(text)
    for blob in blobs:
        digest.update(blob or b"")
    return digest.hexdigest()[: len(_EMPTY)]


def _call(execute: Execute, table: str, prefix: str = "") -> str:
    """Return the expression of a row's checksum."""
    columns = columns_of(execute, table)
    blobs = [str(row[1]) for row in execute(f"PRAGMA table_info({table})") if row[2] == "BLOB"]
    # with types, because a flipped bit can turn text into bytes; as bytes, because damaged text may not be UTF-8
    form = ",".join("%s%d" if name in blobs else "%s%Q" for name in columns)
    values = ", ".join(
        f"typeof({prefix}{name}), " + (f"length({prefix}{name})" if name in blobs else f"{prefix}{name}")
        for name in columns
    )
    more = "".join(f", CAST({prefix}{name} AS BLOB)" for name in blobs)
    return f"corank_checksum(CAST(printf('{form}', {values}) AS BLOB){more})"


def _all_columns(execute: Execute, table: str) -> list[str]:
    return [str(row[1]) for row in execute(f"PRAGMA table_info({table})")]


def _schema(execute: Execute) -> str:
    tables = checked_tables(execute)
    marks = ", ".join("?" * len(tables))
    sql = f"SELECT name, sql FROM sqlite_master WHERE type <> 'index' AND tbl_name IN ({marks}) ORDER BY name"
    return _checksum(repr(execute(sql, tables).fetchall()).encode())


MAGIC = b"\x37\x7f\x06"  # first bytes of a log
HEADER, FRAME = 32, 24  # number of bytes of the header of a log, and of that of a frame
_TRIES = 3  # number of times to read a log that seems damaged: another process may begin it again while it is read


def log_damage(path: Path) -> str:
    """Return what is damaged in the log of a database; empty if nothing is, or there is no log."""
    log, damage = Path(f"{path}-wal"), ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(0.05)
        try:
            damage = _damage(log.read_bytes())
        except OSError:  # there is none, or SQLite says what is wrong with it
            return ""
        if not damage:
            break
    return f"{log.name}: {damage}" if damage else ""


def _damage(content: bytes) -> str:
    if len(content) <= HEADER or not any(content):  # nothing was committed to it
        return ""
    kind, _, page, _, *salts = struct.unpack(">4sIIIII", content[:24])
    order = ">" if kind[3:] == b"\x83" else "<"
    stated = np.frombuffer(content[24:HEADER], dtype=">u4").astype(np.uint32)
    result = _checksums(np.frombuffer(content[:24], dtype=f"{order}u4")[None], np.zeros((1, 2), dtype=np.uint32))
    if kind[:3] != MAGIC or (result != stated).any() or not 512 <= page <= 65536:
        return "its header was changed"
    n_frames = (len(content) - HEADER) // (FRAME + page)
    frames = np.frombuffer(content, np.uint8, n_frames * (FRAME + page), HEADER).reshape(n_frames, FRAME + page)
    heads = np.ascontiguousarray(frames[:, :FRAME]).view(">u4")
    before = np.vstack([stated, heads[:-1, 4:]]).astype(np.uint32)
    words = np.ascontiguousarray(np.delete(frames, np.s_[8:FRAME], axis=1)).view(f"{order}u4")
    has_salts = (heads[:, 2:4] == salts).all(axis=1)
    is_right = has_salts & (_checksums(words, before) == heads[:, 4:]).all(axis=1)
    if is_right.all():
        return ""
    first = int(np.argmin(is_right))
    commits = np.flatnonzero(has_salts & (heads[:, 1] > 0))
    commits = commits[commits >= first]
    if not len(commits) or not is_right[commits[0] + 1 :].any():  # the last transaction may be incomplete
        return ""
    return f"frame {first + 1} of {n_frames} was changed, and later changes cannot be read"


def _checksums(words: NDArray[Any], before: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return SQLite's checksums of rows of words, each continued from another: a += x + b, b += y + a, modulo 2³²."""
    n = words.shape[1] // 2
    # what a word adds to a and b at the end: (a, b) is multiplied by ((1, 1), (1, 2)) after every pair
    power, coefficients = np.eye(2, dtype=np.uint32), np.empty((2 * n, 2), dtype=np.uint32)
    step = np.array([[1, 1], [1, 2]], dtype=np.uint32)
    for i in reversed(range(n)):
        coefficients[2 * i], coefficients[2 * i + 1] = power[:, 0] + power[:, 1], power[:, 1]
        power = power @ step
    return words.astype(np.uint32) @ coefficients + before @ power.T


def new_secret() -> str:
    """Return a secret."""
    return secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """Return the hash to store."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def is_secret(secret: str, expected: str | None) -> bool:
    """Return whether a secret has the stored hash; None for an unknown id, which takes as long."""
    is_equal = hmac.compare_digest(hash_secret(secret), expected or hash_secret(""))
    return is_equal and expected is not None


def utc_now() -> str:
    """Return the present time, as entries and tables have it; rows of 0.2 end with ``+00:00``."""
    return format_time(datetime.now(UTC))


def format_time(time: datetime) -> str:
    """Return a time as text."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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

_TABLES = """
CREATE TABLE projects (id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, settings TEXT NOT NULL,
    created TEXT NOT NULL, is_archived INTEGER NOT NULL);
CREATE TABLE files (project TEXT NOT NULL REFERENCES projects (id), name TEXT NOT NULL, type TEXT NOT NULL,
    content {bytes} NOT NULL, PRIMARY KEY (project, name));
CREATE TABLE judges (id TEXT PRIMARY KEY, project TEXT REFERENCES projects (id), name TEXT NOT NULL,
    token_hash TEXT NOT NULL, created TEXT NOT NULL, is_revoked INTEGER NOT NULL,
    is_opened INTEGER NOT NULL DEFAULT 0, UNIQUE (project, name));
CREATE TABLE answers (number {number}, project TEXT NOT NULL REFERENCES projects (id), judge TEXT NOT NULL,
    client_id TEXT NOT NULL, item TEXT NOT NULL, action TEXT NOT NULL, entry TEXT NOT NULL, time TEXT NOT NULL,
    version TEXT NOT NULL DEFAULT '', UNIQUE (project, judge, client_id));
CREATE INDEX answers_in_order ON answers (project, number);
CREATE TABLE holds (project TEXT NOT NULL, item TEXT NOT NULL, judge TEXT NOT NULL, until {real} NOT NULL,
    PRIMARY KEY (project, item, judge));
CREATE TABLE imports (id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, created TEXT NOT NULL,
    stage TEXT NOT NULL, share {real} NOT NULL, attempts INTEGER NOT NULL, project TEXT REFERENCES projects (id),
    error TEXT NOT NULL);
CREATE TABLE import_files (import TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, content {bytes} NOT NULL,
    PRIMARY KEY (import, number))
"""
VERSION, OLDEST = 6, 5
"""Version of the tables, and that of 0.2, which differs by having no version of the service's tables (`AppTables`)."""
TABLES = ("meta", "projects", "files", "judges", "answers")
"""Tables whose rows have checksums; the others hold questions that wait and uploads that are being read."""
Step = Callable[[Execute, dict[str, str]], None]
"""Changes tables; gets the function that runs statements, and `TYPES` of the dialect."""


class AppTables(NamedTuple):
    """Tables that an app adds to the database."""

    name: str  # of the app
    tables: tuple[str, ...]  # names; in SQLite their rows get checksums
    steps: tuple[Step, ...]  # number k, from 0, leads from version k to version k + 1
    # called after rows of a damaged database were copied, with their numbers by table
    after_recovery: Callable[[Execute, Mapping[str, int]], None] = lambda db, n_rows: None


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


def migrate(connection: Any, dialect: str) -> None:
    """Create the tables, or bring them to the present version, inside the caller's transaction."""
    version, execute = version_of(connection, dialect), connection.execute
    _require_known("the database has", version, VERSION)
    if version == VERSION:
        return
    if 0 < version < OLDEST:
        raise InputError(
            f"the database has version {version}, from before corank 0.2; open it once with corank 0.2 to migrate it."
        )
    if not version:
        execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        for statement in _TABLES.split(";"):
            execute(statement.format(**TYPES[dialect]))
        execute(f"INSERT INTO meta (key, value) VALUES ('database', '{secrets.token_hex(8)}')")
        for table in TABLES if dialect == "sqlite" else ():
            add_checksums(execute, table)
    _set_version(connection, dialect, "", VERSION)


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
