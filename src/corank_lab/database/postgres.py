"""The store in a PostgreSQL database, for teams."""

from __future__ import annotations

from typing import Any

from corank.errors import import_extra, reason
from corank_lab.database.connections import DatabaseError
from corank_lab.database.database import Database

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
        """Return a `DatabaseError` for an error of the database."""
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
