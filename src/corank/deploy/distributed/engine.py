"""
Engines that run the tasks of a pass and reduce their results: on this machine, or on a Dask cluster.

A task is a module-level function with small arguments or results of other tasks. It may run twice, on any machine and
at any time; its result does not depend on that. Results are handles until they are gathered. They are reduced in a
tree ordered by their numbers, never by the time at which they arrive.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

from threadpoolctl import threadpool_limits

from corank.core.threads import at_most
from corank.errors import InputError, import_extra, reason
from corank.progress import progress

Task = Callable[..., Any]
FAN = 8
"""Number of results that one task of a tree reduces."""


@dataclass(frozen=True)
class LocalEngine:
    """Runs tasks on this machine, one after the other; memory holds one part at a time and the sums."""

    verbose: bool = False  # whether to show a progress bar on a terminal or in a notebook

    def map(self, function: Task, *columns: Sequence[Any], name: str) -> list[Any]:
        """Run one task for each tuple of arguments, one after the other."""
        done = []
        with progress(len(columns[0]), name, self.verbose) as advance:
            for row in zip(*columns, strict=True):
                done.append(function(*map(_computed, row)))
                advance(1)
        return done

    def reduce(self, function: Task, handles: Sequence[Any], name: str) -> Any:
        """Reduce results in a tree ordered by number."""
        while len(handles) > 1:
            handles = [function(handles[i : i + FAN]) for i in range(0, len(handles), FAN)]
        return handles[0]

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Return the results."""
        return list(handles)


def _computed(argument: Any) -> Any:
    """Compute a lazy Dask object; return anything else unchanged."""
    return argument.compute(scheduler="synchronous") if hasattr(argument, "__dask_graph__") else argument


_POLL = 0.2
"""Seconds between two checks of a cluster."""
_MIN_SCATTERED = 1 << 19
"""Bytes from which an argument shared by all tasks is sent to the workers once."""


class DaskEngine:
    """
    Runs tasks on a Dask cluster, local or remote.

    Tasks have unique keys and depend on their arguments only, so the scheduler may repeat the work of a lost worker.
    Inside a task, BLAS, pyarrow and corank's kernels use one thread: a worker runs as many tasks at a time as it has
    threads.

    Dask sends pickles in both directions. Unpickling runs code that the sender chose, so a hostile worker, scheduler or
    client can take over the others. Connect only to clusters that you trust, and secure them with TLS.

    client: Client of a cluster that you trust.
    verbose: Whether to show a progress bar on a terminal or in a notebook.
    patience: Seconds to wait for a worker if the cluster has none.
    """

    def __init__(self, client: Any, verbose: bool = False, patience: float = 300.0) -> None:
        self._distributed = import_extra("distributed", "dask")
        if getattr(client, "asynchronous", False) or not hasattr(client, "submit"):
            raise InputError(
                f"client is of type {type(client).__name__}; pass a synchronous distributed.Client of your cluster."
            )
        self.client, self.verbose, self.patience = client, verbose, patience
        # tasks whose progress is shown while their results are reduced
        self._shown: list[Any] = []

    def map(self, function: Task, *columns: Sequence[Any], name: str) -> list[Any]:
        """Submit one task for each tuple of arguments, with keys of this call."""
        token = uuid4().hex
        with self._explaining():
            rows = enumerate(zip(*map(self._shared, columns), strict=True))
            self._shown = [
                self.client.submit(bounded, function, *map(self._future, row), key=f"{name}-{token}-{i}", pure=True)
                for i, row in rows
            ]
        return list(self._shown)

    def reduce(self, function: Task, handles: Sequence[Any], name: str) -> Any:
        """Submit a tree of tasks, ordered by number."""
        level, token = 0, uuid4().hex
        with self._explaining():
            while len(handles) > 1:
                handles = [
                    self.client.submit(
                        function, list(handles[i : i + FAN]), key=f"{name}-{token}-{level}-{i}", pure=True
                    )
                    for i in range(0, len(handles), FAN)
                ]
                level += 1
        return handles[0]

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Wait for results while the cluster exists, and fetch them."""
        waiting, shown, alone = set(handles), {*handles, *self._shown}, time.monotonic()
        name = str(handles[0].key).split("-")[0] if handles else ""
        with self._explaining(), progress(len(shown), name, self.verbose) as advance:
            while waiting:
                done = {item for item in shown if item.done()}
                advance(len(done))
                shown -= done
                waiting -= done
                self._require_scheduler(done)
                if any(item.status == "error" for item in done) or not waiting:
                    break
                if self._workers():
                    alone = time.monotonic()
                elif time.monotonic() - alone > self.patience:
                    raise InputError(
                        f"the cluster has had no worker for {self.patience:g} seconds, and nothing was written; start "
                        "workers and run this again."
                    )
                time.sleep(_POLL if len(waiting) > 1 else _POLL / 10)
            self._shown = []
            failed = [handle.exception() for handle in handles if handle.status == "error"]
            results = [] if failed else list(self.client.gather(list(handles)))
        if failed:
            raise self._explained(failed[0])
        return results

    def _explained(self, error: Exception) -> Exception:
        """Return the error of a task, or an `InputError` that explains it."""
        if isinstance(error, self._distributed.scheduler.KilledWorker):
            return InputError(
                f"every worker that ran the task {error.task} was lost, because it had too little memory for a part or "
                "was stopped; check the log of the last worker."
            )
        if isinstance(error, OSError):
            return InputError(f"a worker could not read its part ({reason(error)}); make it readable for every worker.")
        return error

    def _workers(self) -> Iterable[str]:
        """
        Return the addresses of the workers.

        `Client.scheduler_info` returns a cache, which the client replaces in the background and empties when it closes.
        """
        try:
            return self.client.nthreads()  # type: ignore[no-any-return]
        except AttributeError as closed:  # the client's connection is None once it has closed
            raise _lost(f"the client is {self.client.status}") from closed

    def _shared(self, column: Sequence[Any]) -> Sequence[Any]:
        """Send a large argument shared by all tasks once to every worker; a small one is sent with each task."""
        if len(column) < 2 or any(item is not column[0] for item in column) or isinstance(column[0], str):
            return column
        try:
            if len(pickle.dumps(column[0])) < _MIN_SCATTERED:
                return column
        except (pickle.PicklingError, AttributeError, TypeError):  # Dask can send it
            return column
        # on every worker, or all tasks would move to the one that has it
        shared = self.client.submit(_same, column[0], key=f"settings-{uuid4().hex}", pure=True)
        self.client.replicate([shared])
        return [shared] * len(column)

    def _future(self, argument: Any) -> Any:
        return self.client.compute(argument) if hasattr(argument, "__dask_graph__") else argument

    def _require_scheduler(self, handles: Iterable[Any]) -> None:
        """Raise if the scheduler is lost; waiting for results would take a minute."""
        if self.client.status != "running":
            raise _lost(f"the client is {self.client.status}")
        if any(handle.status in ("cancelled", "lost") for handle in handles):
            raise _lost("tasks were cancelled")

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Turn the errors of a lost cluster into an `InputError`."""
        lost = (self._distributed.CancelledError, self._distributed.comm.CommClosedError, TimeoutError, OSError)
        try:
            yield
        except InputError:
            raise
        except lost as error:
            raise _lost(reason(error)) from error


def _lost(why: str) -> InputError:
    return InputError(
        f"the cluster's scheduler was lost ({why}), and nothing was written; start it again and run this again."
    )


def _same(argument: Any) -> Any:
    return argument


def bounded(function: Task, *arguments: Any) -> Any:
    """Run a task on one thread."""
    with at_most(1), threadpool_limits(1), _one_reader():
        return function(*arguments)


@contextmanager
def _one_reader() -> Iterator[None]:
    """Limit pyarrow, if it is installed, to one thread."""
    if find_spec("pyarrow") is None:
        yield
        return
    arrow = import_extra("pyarrow", "frames")
    before = arrow.cpu_count()
    arrow.set_cpu_count(1)
    try:
        yield
    finally:
        arrow.set_cpu_count(before)
