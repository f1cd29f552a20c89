"""
Connections to a database: one thread that writes, many jobs per transaction, and a pool for readers.

The jobs that are waiting are committed together, and each caller continues after the commit.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

from corank.errors import InputError
from corank_lab.database.schema import AppTables, install, migrate

T = TypeVar("T")
Job = Callable[[Any], Any]
MAX_JOBS = 256  # largest number of jobs of one transaction
MAX_READERS = 8


class Writer:
    """
    A thread that runs jobs on its own connection.

    All jobs that wait are run in one transaction, and each caller continues after the commit. If one of them raises,
    the transaction is rolled back and each job runs in a transaction of its own, so a job must have no other effects.

    """

    def __init__(self, database: Connections) -> None:
        self._database = database
        self._connection: Any = None
        self._jobs: queue.SimpleQueue[tuple[Job, Future[Any]] | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="corank-writer", daemon=True)
        self._thread.start()
        self.n_commits = 0

    def run(self, job: Callable[[Any], T]) -> T:
        return self.submit(job).result()

    def submit(self, job: Callable[[Any], T]) -> Future[T]:
        future: Future[T] = Future()
        self._jobs.put((job, future))
        if self._is_closed:  # the thread may not see the job any more
            self._refuse_rest()
        return future

    @property
    def n_waiting(self) -> int:
        return self._jobs.qsize()

    def close(self) -> None:
        """Run the jobs that wait, then end the thread and close the connection."""
        self._is_closed = True
        self._jobs.put(None)
        self._thread.join()
        self._refuse_rest()

    def _refuse_rest(self) -> None:
        self._thread.join()
        with suppress(queue.Empty):
            while True:
                result = self._jobs.get_nowait()
                if result is not None:
                    result[1].set_exception(RuntimeError("the store is closed"))

    def _work(self) -> None:
        is_last = False
        while not is_last:
            result = self._jobs.get()
            batch = []
            while result is not None:
                batch.append(result)
                if len(batch) == MAX_JOBS:
                    break
                try:
                    result = self._jobs.get_nowait()
                except queue.Empty:
                    break
            is_last = result is None
            if batch:
                self._run_all(batch)
        if self._connection is not None:
            self._connection.close()

    def _run_all(self, batch: list[tuple[Job, Future[Any]]]) -> None:
        try:
            results = self._transaction([job for job, _ in batch])
        except Exception as error:
            if len(batch) == 1:
                batch[0][1].set_exception(error)
            else:
                for item in batch:
                    self._run_all([item])
            return
        try:
            self._database._confirm(self._connection)
        except Exception as error:
            for _, future in batch:
                future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            future.set_result(result)

    def _begun(self) -> Any:
        """Begin a transaction; on a new connection if the old one broke, as after a restart of the database."""
        if self._connection is not None:
            try:
                self._database._begin(self._connection)
                return self._connection
            except Exception:
                if self._database._is_usable(self._connection):
                    raise
                with suppress(Exception):
                    self._connection.close()
                self._connection = None
        connection = self._database._connect()
        try:
            self._database._begin(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _transaction(self, jobs: list[Job]) -> list[Any]:
        connection = self._begun()
        try:
            results = [job(connection) for job in jobs]
            connection.execute("COMMIT")
        except BaseException:
            with suppress(Exception):
                connection.execute("ROLLBACK")
            if not self._database._is_usable(connection):
                self._connection = None
                with suppress(Exception):
                    connection.close()
            raise
        self.n_commits += 1
        return results


class ConnectionPool:
    """Connections for readers, opened when needed and used again."""

    def __init__(self, database: Connections) -> None:
        self._database = database
        self._free: list[Any] = []
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(MAX_READERS)

    def run(self, job: Callable[[Any], T]) -> T:
        """Run a job that only reads; again on a new connection if an old one broke."""
        with self._slots:
            while True:
                with self._lock:
                    old = self._free.pop() if self._free else None
                connection = self._database._connect() if old is None else old
                try:
                    result = job(connection)
                except BaseException as error:
                    if self._database._is_usable(connection):
                        self._keep(connection)
                        raise
                    with suppress(Exception):
                        connection.close()
                    if old is None or not isinstance(error, Exception):
                        raise
                else:
                    self._keep(connection)
                    return result

    def _keep(self, connection: Any) -> None:
        with self._lock:
            self._free.append(connection)

    def close(self) -> None:
        with self._lock:
            while self._free:
                self._free.pop().close()


class DatabaseError(InputError):
    """The database cannot be used now. The message is one sentence for the reader of a page."""


class LostError(DatabaseError):
    """The database is damaged or was taken away: answers that were saved may be lost."""


class Connections(ABC):
    """A database that many threads read and one thread writes."""

    def __init__(self) -> None:
        self._installed: set[str] = set()
        self._pool, self._writer = ConnectionPool(self), Writer(self)
        try:
            self._writer.run(lambda db: migrate(db, self.dialect))
        except BaseException:
            self.close()
            raise

    dialect: str
    address: str  # by which `open_database` opens the same database

    @abstractmethod
    def _connect(self) -> Any:
        """Open a connection that commits after every statement."""

    @abstractmethod
    def _begin(self, connection: Any) -> None:
        """Begin a transaction that writes."""

    @abstractmethod
    def _is_usable(self, connection: Any) -> bool:
        """Return whether a connection may be used again after an error."""

    @abstractmethod
    def _confirm(self, connection: Any) -> None:
        """Raise if what was committed is not in the database that the address names; called after every commit."""

    def sound(self, table: str) -> str:
        """Return the expression that is true for a row of a table that was not damaged."""
        return "TRUE"

    def damaged(self, what: str) -> LostError:
        return LostError(f"the database is damaged ({what}); restore it from a copy.")

    @abstractmethod
    def explained(self, error: Exception) -> Exception:
        """Return a `DatabaseError` for an error of the database; other errors as they are."""

    def install(self, app: AppTables) -> None:
        """Create or upgrade the tables of an app, once for each time that the database is opened."""
        if app.name not in self._installed:
            with self._explaining():
                self._writer.run(lambda db: install(db, self.dialect, app))
            self._installed.add(app.name)

    def close(self) -> None:
        self._writer.close()
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            explained = self.explained(error)
            if explained is error:
                raise
            raise explained from error

    def read(self, sql: str, *values: Any) -> list[Any]:
        with self._explaining():
            return self._pool.run(lambda db: db.execute(self._sql(sql), _storable(values)).fetchall())

    def write(self, *statements: Sequence[Any]) -> None:
        """Run statements in one transaction. When this returns, their effect is on the disk."""

        def job(db: Statements) -> None:
            for sql, *values in statements:
                db(sql, *values)

        self.run(job)

    def run(self, job: Callable[[Statements], T]) -> T:
        """Run a job in one transaction, possibly with others. When this returns, its effect is on the disk."""
        with self._explaining():
            return self.submit(job).result()

    def submit(self, job: Callable[[Statements], T]) -> Future[T]:
        """Queue a job for `run`; the result is set after the commit."""
        return self._writer.submit(lambda db: job(Statements(db, self._sql)))

    @property
    def n_waiting(self) -> int:
        return self._writer.n_waiting

    def _sql(self, statement: str) -> str:
        return statement


class Statements:
    """Runs statements of a transaction."""

    def __init__(self, connection: Any, sql: Callable[[str], str]) -> None:
        self._connection, self._sql = connection, sql

    def __call__(self, statement: str, *values: Any) -> Any:
        """Run a statement, and return its cursor."""
        return self._connection.execute(self._sql(statement), _storable(values))


def _storable(values: Sequence[Any]) -> list[Any]:
    """Replace half characters, which have no UTF-8, and NUL, which PostgreSQL refuses."""
    return [
        value.encode("utf-8", "replace").decode().replace("\x00", "\ufffd") if isinstance(value, str) else value
        for value in values
    ]
