"""
Engine: what runs pure tasks, and in which tree their results meet; three methods, so that another engine is one file.

A task is a function of a module and small arguments, or results of other tasks. It may run twice, on any machine and
at any time: nothing that it returns depends on that. Results are handles until they are gathered; they meet in a
binary tree by number, never in the order in which they were done.
"""

from __future__ import annotations

import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
from threadpoolctl import threadpool_limits

from corank.core.threads import at_most
from corank.errors import InputError, import_extra, reason
from corank.progress import progress

Task = Callable[..., Any]
FAN = 8
"""Results that meet in one task of a tree."""


class Engine(ABC):
    """
    AveragedRuns tasks; `LocalEngine` and `corank.distributed.DaskEngine` are engines.

    Attributes
    ----------
    keeps : bool
        Whether results may be as large as rows, because they stay in the memory of many machines until gathered.
    """

    keeps: ClassVar[bool]

    @abstractmethod
    def map(self, function: Task, *columns: Sequence[Any], name: str) -> list[Any]:
        """
        Run a task for each row of arguments.

        Parameters
        ----------
        function : callable
            A function of a module.
        *columns : sequences
            Its arguments, one sequence each; an argument may be a handle, or a list of handles, and a lazy object
            (of Dask's) is computed first.
        name : str
            What is done, for messages and progress.

        Returns
        -------
        list
            A handle for each row.
        """

    @abstractmethod
    def reduce(self, function: Task, handles: Sequence[Any], name: str) -> Any:
        """
        Let results meet in a tree by number.

        Parameters
        ----------
        function : callable
            Takes a list of results, in order, and returns one.
        handles : sequence
            One or more handles.
        name : str
            What is done.

        Returns
        -------
        object
            A handle.
        """

    @abstractmethod
    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """
        Wait for results and bring them here.

        Parameters
        ----------
        handles : sequence
            Handles.

        Returns
        -------
        list
            Their results.
        """


@dataclass(frozen=True)
class LocalEngine(Engine):
    """
    This machine, task after task: memory holds one part at a time, and what was summed.

    Parameters
    ----------
    verbose : bool
        Whether to show how far it has come, on a terminal or in a notebook.
    """

    verbose: bool = False
    keeps: ClassVar[bool] = False

    def map(self, function: Task, *columns: Sequence[Any], name: str) -> list[Any]:
        """Run the tasks, one after the other."""
        done = []
        with progress(len(columns[0]), name, self.verbose) as advance:
            for row in zip(*columns, strict=True):
                done.append(function(*map(_computed, row)))
                advance(1)
        return done

    def reduce(self, function: Task, handles: Sequence[Any], name: str) -> Any:
        """Let results meet."""
        while len(handles) > 1:
            handles = [function(handles[at : at + FAN]) for at in range(0, len(handles), FAN)]
        return handles[0]

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Return the results, which are here."""
        return list(handles)


def _computed(argument: Any) -> Any:
    """What a lazy object of Dask's stands for; anything else is itself."""
    return argument.compute(scheduler="synchronous") if hasattr(argument, "__dask_graph__") else argument


_LOOK = 0.2
"""Seconds between two looks at a cluster that is waited for."""
_LARGE = 1 << 19
"""Bytes from which what all tasks are told is sent once."""


class DaskEngine(Engine):
    """
    A cluster of Dask's.

    Tasks have keys of their own and depend on nothing but their arguments, so that the scheduler may run again what a
    lost worker had done. Inside a task BLAS, pyarrow and corank's kernels keep to one thread: a worker runs as many
    tasks at a time as it has threads.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    verbose : bool
        Whether to show how far it has come, on a terminal or in a notebook.
    patience : float
        Seconds to wait for a worker when the cluster has none.
    """

    keeps: ClassVar[bool] = True

    def __init__(self, client: Any, verbose: bool = False, patience: float = 300.0) -> None:
        self._distributed = import_extra("distributed", "dask")
        if getattr(client, "asynchronous", False) or not hasattr(client, "submit"):
            raise InputError(
                f"client is {type(client).__name__}, not a synchronous distributed.Client; make one of your cluster."
            )
        self.client, self.verbose, self.patience = client, verbose, patience
        self._asked: dict[str, Any] | None = None
        # the tasks whose progress is shown while what depends on them is waited for
        self._shown: list[Any] = []

    @property
    def ready(self) -> dict[str, float]:
        """Seconds that each worker took to load the kernels before its first task, or to compile them."""
        asked = self._asked or {}
        return {worker: float(one.result()) for worker, one in asked.items() if one.status == "finished"}

    def map(self, function: Task, *columns: Sequence[Any], name: str) -> list[Any]:
        """Submit the tasks; all have keys of this call."""
        token = uuid4().hex
        with self._saying():
            self._make_ready()
            rows = enumerate(zip(*map(self._shared, columns), strict=True))
            self._shown = [
                self.client.submit(bounded, function, *map(self._future, row), key=f"{name}-{token}-{at}", pure=True)
                for at, row in rows
            ]
        return list(self._shown)

    def reduce(self, function: Task, handles: Sequence[Any], name: str) -> Any:
        """Submit a tree of tasks, by number."""
        level, token = 0, uuid4().hex
        with self._saying():
            while len(handles) > 1:
                handles = [
                    self.client.submit(
                        function, list(handles[at : at + FAN]), key=f"{name}-{token}-{level}-{at}", pure=True
                    )
                    for at in range(0, len(handles), FAN)
                ]
                level += 1
        return handles[0]

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Wait, as long as there is a cluster to wait for."""
        waiting, shown, alone = set(handles), {*handles, *self._shown}, time.monotonic()
        name = str(handles[0].key).split("-")[0] if handles else ""
        with self._saying(), progress(len(shown), name, self.verbose) as advance:
            while waiting:
                done = {one for one in shown if one.done()}
                advance(len(done))
                shown -= done
                waiting -= done
                self._require_scheduler(done)
                if any(one.status == "error" for one in done) or not waiting:
                    break
                if self._workers():
                    alone = time.monotonic()
                elif time.monotonic() - alone > self.patience:
                    raise InputError(
                        f"the cluster has had no worker for {self.patience:g} seconds; start workers, and run this "
                        "again: nothing was written."
                    )
                time.sleep(_LOOK if len(waiting) > 1 else _LOOK / 10)
            self._shown = []
            failed = [one.exception() for one in handles if one.status == "error"]
            found = [] if failed else list(self.client.gather(list(handles)))
        if failed:
            raise self._said(failed[0])
        return found

    def _said(self, error: Exception) -> Exception:
        """What a task raised, in one sentence where that is not corank's own."""
        if isinstance(error, self._distributed.scheduler.KilledWorker):
            return InputError(
                f"every worker that tried the task {error.task} was lost; look into the log of the last one: it had "
                "too little memory for a part, or was ended from outside."
            )
        if isinstance(error, OSError):
            return InputError(f"a worker could not read its part ({reason(error)}); check that every worker can.")
        return error

    def _make_ready(self) -> None:
        """Ask every worker, once and before any task, to load the kernels."""
        if self._asked is None:
            token = uuid4().hex
            how = {"pure": True, "allow_other_workers": True}
            self._asked = {
                worker: self.client.submit(bounded, ready, key=f"ready-{token}-{at}", workers=[worker], **how)
                for at, worker in enumerate(self._workers())
            }

    def _workers(self) -> Iterable[str]:
        """
        Return the addresses of the workers, by a call of its own.

        `Client.scheduler_info` returns a cache. The client replaces it in the background and empties it when it closes.
        """
        try:
            return self.client.nthreads()  # type: ignore[no-any-return]
        except AttributeError as closed:  # the client's connection is None once it has closed
            raise _lost(f"the client is {self.client.status}") from closed

    def _shared(self, column: Sequence[Any]) -> Sequence[Any]:
        """Send what all tasks are told once to every worker where it is large; else it goes along with each task."""
        if len(column) < 2 or any(one is not column[0] for one in column) or isinstance(column[0], str):
            return column
        try:
            if len(pickle.dumps(column[0])) < _LARGE:
                return column
        except (pickle.PicklingError, AttributeError, TypeError):  # Dask knows how to send more than this
            return column
        # on every worker, or all tasks would be drawn to the one that has it
        told = self.client.submit(_same, column[0], key=f"settings-{uuid4().hex}", pure=True)
        self.client.replicate([told])
        return [told] * len(column)

    def _future(self, argument: Any) -> Any:
        return self.client.compute(argument) if hasattr(argument, "__dask_graph__") else argument

    def _require_scheduler(self, handles: Iterable[Any]) -> None:
        """Raise where nobody can say any more what became of tasks; to ask for results would take a minute."""
        if self.client.status != "running":
            raise _lost(f"the client is {self.client.status}")
        if any(one.status in ("cancelled", "lost") for one in handles):
            raise _lost("tasks were cancelled")

    def _saying(self) -> _Saying:
        return _Saying(self._distributed)


class _Saying:
    """Turns what a cluster that is lost raises into one sentence."""

    def __init__(self, distributed: Any) -> None:
        self._distributed = distributed

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        lost = (self._distributed.CancelledError, self._distributed.comm.CommClosedError, TimeoutError, OSError)
        if isinstance(error, lost) and not isinstance(error, InputError):
            raise _lost(reason(error)) from error


def _lost(why: str) -> InputError:
    return InputError(
        f"the cluster's scheduler was lost ({why}); start it anew, and run this again: nothing was written."
    )


def _same(told: Any) -> Any:
    return told


def bounded(function: Task, *arguments: Any) -> Any:
    """Run a task on one thread: a worker has as many of these as it runs tasks at a time."""
    with at_most(1), threadpool_limits(1), _one_reader():
        return function(*arguments)


@contextmanager
def _one_reader() -> Iterator[None]:
    """Let pyarrow, where it is installed, unpack columns on one thread."""
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


def ready() -> float:
    """
    Sum over a few made rows, so that no part waits for the compiler.

    Returns: seconds it took; next to nothing where the kernels are loaded.
    """
    from corank.data.problem.ranking import RankingData
    from corank.distributed.sums import SumSettings, sum_part
    from corank.distributed.tasks import WholeQueries

    began = time.perf_counter()
    for dtype in (np.float32, np.float64):
        X = np.arange(12, dtype=dtype).reshape(6, 2)
        data = RankingData.of(X, [0.0, 1.0, 1.0, np.nan, np.nan, 0.0], [1, 1, 1, 1, 1, 2])
        sum_part(iter([WholeQueries(data, np.arange(6))]), SumSettings(unscored=True, origin=np.zeros(2)))
    return time.perf_counter() - began
