"""The store in a SQLite file, and the choice of the store by its address."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any

from corank.errors import InputError, import_extra, reason
from corank_lab.database.connections import DatabaseError, LostError
from corank_lab.database.database import Database
from corank_lab.database.schema import (
    HEADER,
    MAGIC,
    VERSION,
    Damage,
    add_function,
    check_database,
    checked_tables,
    is_sound,
    log_damage,
    version_of,
)

BUSY_MS = 10_000  # time to wait for another process that writes to the file
OTHER_FILES = ("-wal", "-shm")
"""Ends of the names of the files that SQLite keeps next to an open one: answers not yet in it, and their index."""


class SqliteDatabase(Database):
    """
    A store in one file, which several processes may use.

    A file that is deleted, replaced or shortened while it is open would lose all further answers, so nothing is written
    then. The same is true for the files that SQLite keeps next to it.

    path: the file; it is created if it does not exist. Before a file of an older version is changed, a copy with the
        old version in its name is made next to it.
    """

    dialect = "sqlite"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.address = os.path.abspath(path)
        self._sound: dict[str, str] = {}
        self._opened: Any = None
        if not self.path.parent.is_dir():
            raise InputError(f"{path} cannot be opened: there is no folder {self.path.parent}; create it first.")
        with self._explaining():
            self._prepare()
        with contextlib.suppress(OSError):  # SQLite says what is wrong with the folder
            # answers and hashes of links are for the owner of the file only; SQLite's other files get the same mode
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._file = self._identity("")
        try:
            super().__init__()
        except BaseException:
            if self.path.exists() and not self.path.stat().st_size:  # as on a full disk; nothing is in it
                for end in ("", *OTHER_FILES):
                    Path(f"{self.path}{end}").unlink(missing_ok=True)
            raise
        with self._explaining():
            self._sound = self._pool.run(
                lambda db: {table: is_sound(db.execute, table) for table in checked_tables(db.execute)}
            )

    def _connect(self) -> sqlite3.Connection:
        if self._opened is not None and self._identity("") != self._file:
            raise self._lost(str(self.path))
        connection = sqlite3.connect(
            f"{Path(self.address).as_uri()}?mode=rw",  # never creates a file in place of one that was deleted
            uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_MS / 1000, cached_statements=256,
        )  # fmt: skip
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            add_function(connection)
            if self._identity("") != self._file:
                raise self._lost(str(self.path))
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin(self, connection: Any) -> None:
        if connection is self._opened:
            self._confirm(connection)
        connection.execute("BEGIN IMMEDIATE")
        if connection is not self._opened:  # SQLite has opened its other files now
            self._opened, self._others = connection, [self._identity(end) for end in OTHER_FILES]
            self._size, self._log = self._sizes()

    def _confirm(self, connection: Any) -> None:
        gone = self._gone()
        if gone:
            if self._identity("") == self._file:  # answers of the lost log come into the file
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("PRAGMA wal_checkpoint")
            raise self._lost(gone)
        cut = self._cut(connection)
        if cut:
            raise LostError(
                f"{cut} was shortened or overwritten while it was in use, so nothing is saved any more; "
                f"stop the server, and restore {self.path} from a copy."
            )

    def _gone(self) -> str:
        """Return the name of a file that is not the one that was opened; empty if all are."""
        ends, opened = ("", *OTHER_FILES), (self._file, *self._others)
        return next(
            (f"{self.path}{end}" for end, id in zip(ends, opened, strict=True) if self._identity(end) != id), ""
        )

    def _cut(self, connection: Any) -> str:
        """Return the name of a file that was shortened or overwritten in its place; empty if none was seen to be."""
        size, log = self._sizes()
        log_size, header = log
        if size < self._size:  # as after VACUUM in another process, unless the log is the same or pages are missing
            try:
                (n_pages,), (n_bytes,) = (
                    connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
                )
            except sqlite3.Error:
                return str(self.path)
            if log == self._log or size < n_pages * n_bytes:
                return str(self.path)
        # SQLite begins a log again with another header, and without a header it is a log that nobody can read
        if (log_size and header[:3] != MAGIC) or (header == self._log[1] and log_size < self._log[0]):
            return f"{self.path}-wal"
        self._size, self._log = size, log
        return ""

    def _sizes(self) -> tuple[int, tuple[int, bytes]]:
        """Return the sizes of the file and of its log, and the header of the log."""
        try:
            with open(f"{self.address}-wal", "rb", buffering=0) as log:
                return os.stat(self.address).st_size, (os.fstat(log.fileno()).st_size, log.read(HEADER))
        except OSError:  # one of them was taken away just now
            return 0, (0, b"")

    def _identity(self, end: str) -> tuple[int, int] | None:
        """Return device and inode of the file or of one next to it, None if there is none."""
        try:
            file = os.stat(self.address + end)
        except OSError:
            return None
        return file.st_dev, file.st_ino

    def _lost(self, name: str) -> LostError:
        return LostError(
            f"{name} was deleted or replaced while it was in use, so nothing is saved any more; put it back if it was "
            "moved, or restart the server to use what is there now."
        )

    def _is_usable(self, connection: Any) -> bool:
        # after a full disk, the file is opened afresh; but not another file, whose answers differ
        return connection is self._opened and bool(self._gone() or self._cut(connection))

    def sound(self, table: str) -> str:
        return self._sound[table]

    def damaged(self, what: str) -> LostError:
        return LostError(
            f"{self.path} is damaged ({what}); restore it from a copy, or copy what is sound to a new folder with: "
            f"corank lab recover {self.path} --output FOLDER."
        )

    def _prepare(self) -> None:
        if not self.path.exists():
            return
        if not self.path.stat().st_size:
            if self._sizes()[1][0]:
                raise Damage("the file is empty, but its log is not")
            return
        damage = log_damage(self.path)
        if damage:  # before SQLite opens the log, since it removes what it does not read
            raise Damage(damage)
        connection = sqlite3.connect(self.path, timeout=BUSY_MS / 1000)
        try:
            add_function(connection)
            check_database(connection)
            version = version_of(connection, self.dialect)
            if 0 < version < VERSION:
                copy = self.path.with_name(f"{self.path.name}.version{version}")
                if not copy.exists():
                    target = sqlite3.connect(copy)
                    try:
                        connection.backup(target)
                    finally:
                        target.close()
        finally:
            connection.close()

    def explained(self, error: Exception) -> Exception:
        if isinstance(error, Damage):
            return self.damaged(str(error))
        if isinstance(error, UnicodeDecodeError):  # of an error of SQLite, which quotes a damaged definition
            return self.damaged("the definition of a table or trigger was changed")
        if not isinstance(error, sqlite3.Error):
            return error
        if _code(error) == sqlite3.SQLITE_CORRUPT or "decode to UTF-8" in str(error):
            return self.damaged(reason(error))
        return DatabaseError(f"{self.path} {_words(error)}")


def _words(error: sqlite3.Error) -> str:
    """Describe an error of SQLite and what to do."""
    code = _code(error)
    if code == sqlite3.SQLITE_FULL:
        return "cannot be written because the disk is full; free some space, then try again."
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "is locked by another program; close that program, then try again."
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return "cannot be written because the file or its folder is read-only; make both writable, then try again."
    if code == sqlite3.SQLITE_CANTOPEN:
        return "cannot be opened; check that the folder exists and is writable."
    if code == sqlite3.SQLITE_IOERR:
        return "cannot be written, as on a full or failing disk; free some space, then try again."
    if code == sqlite3.SQLITE_NOTADB:
        return f"is not a sound SQLite database ({reason(error)}); restore it from a copy, or choose another file."
    return f"cannot be used now ({reason(error)}); try again, and check the disk if this persists."


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def open_database(address: str | os.PathLike[str]) -> Database:
    """Open a store."""
    text = os.fspath(address)
    scheme, separator, rest = text.partition("://")
    if not separator or scheme == "sqlite":
        # sqlite:///notes.db is a relative path, sqlite:////srv/notes.db an absolute one
        return SqliteDatabase(rest.removeprefix("/") if separator else text)
    if scheme in ("postgresql", "postgres"):
        from corank_lab.database.backends import PostgresDatabase

        return PostgresDatabase(text)
    raise InputError(
        f"the database is {scheme}://...; pass a path, or an address such as postgresql://user@host/database."
    )


_LOCK = 0x636F72616E6B
"""Key of the lock that one writer of all processes holds, so that numbers of answers follow the order of commits."""


class PostgresDatabase(Database):
    """A store in a PostgreSQL database, which several servers may use."""

    dialect = "postgresql"

    def __init__(self, address: str) -> None:
        self._psycopg: Any = import_extra("psycopg", "postgres")
        self.address = address
        super().__init__()

    def _connect(self) -> Any:
        connection = self._psycopg.connect(
            self.address, autocommit=True, connect_timeout=10, application_name="corank", prepare_threshold=3
        )
        # answers are acknowledged after the commit, which a server or database with "off" reports before it is on disk
        connection.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        return connection

    def _begin(self, connection: Any) -> None:
        connection.execute("BEGIN")
        connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")

    def _is_usable(self, connection: Any) -> bool:
        return not connection.closed and not connection.broken

    def _confirm(self, connection: Any) -> None:
        # the server itself keeps its files
        pass

    def _sql(self, statement: str) -> str:
        return statement.replace("?", "%s")

    def explained(self, error: Exception) -> Exception:
        if isinstance(error, self._psycopg.errors.DiskFull):
            return DatabaseError("the disk of the PostgreSQL server is full; free some space, then try again.")
        if isinstance(error, self._psycopg.errors.ReadOnlySqlTransaction):
            return DatabaseError("the PostgreSQL server accepts no writes now; try again when it does.")
        if isinstance(error, self._psycopg.OperationalError):
            return DatabaseError(
                f"the PostgreSQL server cannot be reached ({reason(error)}); check that it runs, then try again."
            )
        if isinstance(error, self._psycopg.Error):
            return DatabaseError(f"the PostgreSQL server refused a statement ({reason(error)}); check its log.")
        return error
