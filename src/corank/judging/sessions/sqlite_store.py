"""The store in one SQLite file: write-ahead log, every commit flushed to the disk."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any

from corank.errors import InputError, reason
from corank.judging.sessions.migrations import VERSION, version_of
from corank.judging.sessions.store import AnswerStore, StoreError

BUSY_MS = 10_000
"""Time to wait for another process that writes to the file."""


class SqliteStore(AnswerStore):
    """
    A store in one file, which several processes may use.

    path: the file; it is created if it does not exist. Before a file of an older version is changed, a copy with the
        old version in its name is made next to it.
    """

    dialect = "sqlite"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.address = os.path.abspath(path)
        if not self.path.parent.is_dir():
            raise InputError(f"{path} cannot be opened: there is no folder {self.path.parent}; create it first.")
        with self._explaining():
            self._back_up()
        with contextlib.suppress(OSError):  # SQLite says what is wrong with the folder
            # answers and hashes of links are for the owner of the file only; SQLite's other files get the same mode
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        super().__init__()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=BUSY_MS / 1000, cached_statements=256
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin(self, connection: Any) -> None:
        connection.execute("BEGIN IMMEDIATE")

    def _is_usable(self, connection: Any) -> bool:
        # a file that was replaced, or a disk that was full, is opened afresh
        return False

    def _back_up(self) -> None:
        if not self.path.exists() or not self.path.stat().st_size:
            return
        connection = sqlite3.connect(self.path, timeout=BUSY_MS / 1000)
        try:
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
        """Return a `StoreError` for an error of the database."""
        if not isinstance(error, sqlite3.Error):
            return error
        return StoreError(f"{self.path} {_words(error)}")


def _words(error: sqlite3.Error) -> str:
    """Describe an error of SQLite and what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
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
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"is not a sound SQLite database ({reason(error)}); restore it from a copy, or choose another file."
    return f"cannot be used now ({reason(error)}); try again, and check the disk if this persists."
