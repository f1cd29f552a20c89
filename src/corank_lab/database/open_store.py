"""Open a store by its address: a file of SQLite, or a PostgreSQL database."""

from __future__ import annotations

import os

from corank.errors import InputError
from corank_lab.database.store import AnswerStore


def open_answer_store(address: str | os.PathLike[str]) -> AnswerStore:
    """Open a store."""
    text = os.fspath(address)
    scheme, separator, rest = text.partition("://")
    if not separator or scheme == "sqlite":
        from corank_lab.database.sqlite_store import SqliteStore

        # sqlite:///notes.db is a relative path, sqlite:////srv/notes.db an absolute one
        return SqliteStore(rest.removeprefix("/") if separator else text)
    if scheme in ("postgresql", "postgres"):
        from corank_lab.database.postgres_store import PostgresStore

        return PostgresStore(text)
    raise InputError(
        f"the database is {scheme}://...; pass a path, or an address such as postgresql://user@host/database."
    )
