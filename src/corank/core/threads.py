"""Run kernels on threads over pieces of a range, which release the GIL; limit the threads of BLAS."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

# largest default number of threads; None for no limit
_LIMIT: ContextVar[int | None] = ContextVar("thread limit", default=None)


# rows of matrices from which BLAS uses all its threads
_MANY_ROWS = 2000


@contextmanager
def at_most(n: int | None) -> Iterator[None]:
    """Limit the default of `n_threads`, for a caller that shares the machine."""
    before = _LIMIT.set(n)
    try:
        yield
    finally:
        _LIMIT.reset(before)


@contextmanager
def blas_threads_for(n_rows: int) -> Iterator[None]:
    """
    Let BLAS use one thread for matrices of at most 2,000 rows.

    Many products of small matrices wait for their threads longer than they compute, on a busy machine by far.
    """
    if n_rows > _MANY_ROWS:
        yield
        return
    with _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def n_threads(n_jobs: int | None = None) -> int:
    """Return the number of threads: `n_jobs`, or all available processors."""
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, _LIMIT.get() or available)


def threads_for(n_numbers: int) -> int:
    """Return the number of threads for a loop of `n_numbers` operations; below 2²⁰, one thread is faster."""
    return 1 if n_numbers < 1 << 20 else n_threads()


def cut(starts: NDArray[np.int64], pieces: int) -> list[tuple[int, int]]:
    """
    Split blocks 0..Q-1 into runs of blocks with about equal numbers of rows.

    starts (Q + 1,): where each block begins; the last entry is the number of rows.
    pieces: number of runs.
    Returns: consecutive half-open runs that cover all blocks; empty runs are omitted.
    """
    targets = np.linspace(starts[0], starts[-1], pieces + 1)
    cuts = np.searchsorted(starts, targets, side="left")
    cuts[0], cuts[-1] = 0, len(starts) - 1
    return [(int(a), int(b)) for a, b in pairwise(cuts) if b > a]


def parallel_map(function: Callable[[int, int], T], runs: list[tuple[int, int]], n_jobs: int | None = None) -> list[T]:
    """Call `function(first, last)` for every run (see `cut`), on threads if there are several; results are in order."""
    threads = min(n_threads(n_jobs), len(runs))
    if threads <= 1:
        return [function(first, last) for first, last in runs]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda run: function(*run), runs))


def add_up(function: Callable[[int, int], Any], runs: list[tuple[int, int]], n_jobs: int | None = None) -> Any:
    """
    Add the results of `function(first, last)` over all runs (see `cut`), in a binary tree.

    The order of additions depends on the runs only, so that any number of threads gives the same bytes. Neighbours in
    the tree are added as soon as both are ready: about n_jobs · log(runs) partial sums are kept in memory.
    """
    waiting: dict[tuple[int, int], Any] = {}
    lock = Lock()

    def climb(at: int, _: int) -> None:
        part, width = function(*runs[at]), len(runs)
        while width > 1:
            # the last of an odd number of parts has no partner
            if at ^ 1 < width:
                with lock:
                    other = waiting.pop((width, at ^ 1), None)
                    if other is None:
                        waiting[width, at] = part
                        return
                part = part + other
            at, width = at // 2, (width + 1) // 2
        waiting[1, 0] = part

    parallel_map(climb, [(i, i + 1) for i in range(len(runs))], n_jobs)
    return waiting[1, 0]
