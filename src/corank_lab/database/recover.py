"""Copy what can still be read of a damaged SQLite database to a new one."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from corank.data import atomic_folder
from corank.errors import InputError, reason
from corank_lab.database.checksums import add_function, columns_of, log_damage, readable
from corank_lab.database.connections import Statements
from corank_lab.database.migrations import TABLES, AppTables
from corank_lab.database.sqlite import SqliteDatabase


class Recovered(NamedTuple):
    """What `recover` copied."""

    n_rows: Counter[str]  # number of rows of each table
    lost: list[str]  # a sentence part for each row that was not copied, or for the part of a table that cannot be read


def recover(path: Path, folder: Path, *, apps: Sequence[AppTables] = (), overwrite: bool = False) -> Recovered:
    """Copy all sound rows of a database, which is opened for reading only."""
    if not path.is_file():
        raise InputError(f"{path} is not a file; pass the damaged database, or its folder.")
    try:
        # immutable: SQLite adds no files beside it, but reads no write-ahead log either
        wal = Path(f"{path}-wal")
        how = "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"
        # the thread that writes also reads
        opened = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, check_same_thread=False)
        with closing(opened) as source, atomic_folder(folder, overwrite=overwrite) as scratch:
            source.execute("PRAGMA writable_schema = ON")  # skips damaged definitions; the file stays as it is
            add_function(source)
            source.text_factory = _text
            names = (*TABLES, *(table for app in apps for table in app.tables))
            tables = {table: columns_of(source.execute, table) for table in names}
            with SqliteDatabase(scratch / "corank.db") as store:
                for app in apps:
                    store.install(app)
                result = store.run(lambda db: _copy(source, tables, db, apps))
            if not result.n_rows:
                raise InputError(f"nothing can be read of {path}; restore it from a copy.")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"nothing can be read of {path} ({reason(error)}); restore it from a copy.") from None
    damage = log_damage(path)
    if damage:
        result.lost.append(damage)
    return result


def _copy(
    source: sqlite3.Connection, tables: dict[str, list[str]], db: Statements, apps: Sequence[AppTables]
) -> Recovered:
    n_rows: Counter[str] = Counter()
    lost = []
    for table, columns in tables.items():
        if not columns:  # a database of an older version
            continue
        marks = ", ".join("?" * len(columns))
        for number, is_sound, values in readable(source, table, columns):
            if values is None:
                lost.append(f"{table}: rows from {number} on, of which some cannot be read")
                continue
            try:
                if not is_sound:
                    raise ValueError
                if table == "meta" and values[0] != "database":  # of the format, not of the content
                    continue
                if not n_rows[table]:  # a new database has rows of its own
                    db(f"DELETE FROM {table}" + " WHERE key = 'database'" * (table == "meta"))
                db(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", *values)
                n_rows[table] += 1
            except (ValueError, sqlite3.IntegrityError):
                lost.append(_name(table, number, dict(zip(columns, values, strict=True))))
    for app in apps:
        app.after_recovery(db, n_rows)
    return Recovered(n_rows, lost)


def _name(table: str, number: int, values: dict[str, Any]) -> str:
    if table == "answers":
        return f"answer {number}, of {values['judge']!r:.60} on {values['item']!r:.60}"
    return f"{table}: row {number}"


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:  # no column of a sound row
        return None
