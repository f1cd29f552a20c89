"""One thread that writes to a database, many jobs per transaction; and connections for readers."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
Job = Callable[[Any], Any]
MOST_JOBS = 256
"""Largest number of jobs of one transaction."""


class Writer:
    """
    A thread that runs jobs on its own connection.

    All jobs that wait are run in one transaction, and each caller continues after the commit. If one of them raises,
    the transaction is rolled back and each job runs in a transaction of its own, so a job must have no other effects.

    connect: opens a connection that commits after every statement.
    begin: begins a transaction.
    is_usable: whether the connection may be used again after an error.
    confirm: called after every commit; if it raises, no caller gets its result.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        begin: Callable[[Any], None],
        is_usable: Callable[[Any], bool],
        confirm: Callable[[Any], None] = lambda _: None,
    ) -> None:
        self._connect, self._begin, self._is_usable, self._confirm = connect, begin, is_usable, confirm
        self._connection: Any = None
        self._jobs: queue.SimpleQueue[tuple[Job, Future[Any]] | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="corank-writer", daemon=True)
        self._thread.start()
        self.n_commits = 0

    def run(self, job: Callable[[Any], T]) -> T:
        """Run a job, and return its result after the commit."""
        return self.submit(job).result()

    def submit(self, job: Callable[[Any], T]) -> Future[T]:
        """Queue a job; the result is set after the commit."""
        future: Future[T] = Future()
        self._jobs.put((job, future))
        if self._is_closed:  # the thread may not see the job any more
            self._refuse_rest()
        return future

    @property
    def n_waiting(self) -> int:
        """Number of jobs that are queued."""
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
                found = self._jobs.get_nowait()
                if found is not None:
                    found[1].set_exception(RuntimeError("the store is closed"))

    def _work(self) -> None:
        is_last = False
        while not is_last:
            found = self._jobs.get()
            batch = []
            while found is not None:
                batch.append(found)
                if len(batch) == MOST_JOBS:
                    break
                try:
                    found = self._jobs.get_nowait()
                except queue.Empty:
                    break
            is_last = found is None
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
                for one in batch:
                    self._run_all([one])
            return
        try:
            self._confirm(self._connection)
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
                self._begin(self._connection)
                return self._connection
            except Exception:
                if self._is_usable(self._connection):
                    raise
                with suppress(Exception):
                    self._connection.close()
                self._connection = None
        connection = self._connect()
        try:
            self._begin(connection)
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
            if not self._is_usable(connection):
                self._connection = None
                with suppress(Exception):
                    connection.close()
            raise
        self.n_commits += 1
        return results


class Pool:
    """
    Connections for readers, opened when needed and used again.

    connect, is_usable: as for `Writer`.
    """

    def __init__(self, connect: Callable[[], Any], is_usable: Callable[[Any], bool], most: int = 8) -> None:
        self._connect, self._is_usable = connect, is_usable
        self._free: list[Any] = []
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(most)

    def run(self, job: Callable[[Any], T]) -> T:
        """Run a job that only reads; again on a new connection if an old one broke."""
        with self._slots:
            while True:
                with self._lock:
                    old = self._free.pop() if self._free else None
                connection = self._connect() if old is None else old
                try:
                    result = job(connection)
                except BaseException as error:
                    if self._is_usable(connection):
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
        """Close the connections that are free."""
        with self._lock:
            while self._free:
                self._free.pop().close()
