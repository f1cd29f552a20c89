"""Run a kernel over pieces of a range on threads; kernels release the GIL, so plain threads do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

# most threads that callers who ask for every processor get; None knows no bound
_MOST: ContextVar[int | None] = ContextVar("most threads", default=None)


@contextmanager
def at_most(n: int | None) -> Iterator[None]:
    """Bound what `n_threads` says of every processor, for a caller that shares the machine with others like it."""
    before = _MOST.set(n)
    try:
        yield
    finally:
        _MOST.reset(before)


def n_threads(n_jobs: int | None = None) -> int:
    """Return how many threads to use: `n_jobs`, or every processor this process may run on."""
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(here, _MOST.get() or here)


def threads_for(n_numbers: int) -> int:
    """Return how many threads to use for a pass over so many numbers: starting one costs as much as 2²⁰ of them."""
    return 1 if n_numbers < 1 << 20 else n_threads()


def cut(starts: NDArray[np.int64], pieces: int) -> list[tuple[int, int]]:
    """
    Cut blocks 0..Q-1 with pointers `starts` (Q+1) into runs of blocks of about equal numbers of rows.

    starts (Q + 1,): where each block begins; the last entry is the number of rows.
    pieces: number of runs wanted.
    Returns: half-open runs of blocks that cover all blocks, in order; empty runs are left out.
    """
    targets = np.linspace(starts[0], starts[-1], pieces + 1)
    cuts = np.searchsorted(starts, targets, side="left")
    cuts[0], cuts[-1] = 0, len(starts) - 1
    return [(int(a), int(b)) for a, b in pairwise(cuts) if b > a]


def spread(work: Callable[[int, int], T], runs: list[tuple[int, int]], n_jobs: int | None = None) -> list[T]:
    """
    Call `work(first, last)` for every run, on threads where there is more than one; results in order.

    work: takes the two ends of a run.
    runs: see `cut`.
    n_jobs: number of threads; every available processor by default.
    Returns: what `work` returned, run by run.
    """
    threads = min(n_threads(n_jobs), len(runs))
    if threads <= 1:
        return [work(first, last) for first, last in runs]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda run: work(*run), runs))


def add_up(work: Callable[[int, int], Any], runs: list[tuple[int, int]], n_jobs: int | None = None) -> Any:
    """
    Add what `work(first, last)` returns for every run, in a binary tree by the number of the run.

    Which numbers meet depends on the runs alone, so any number of threads gives the same bytes. Two neighbours of the
    tree are added as soon as both are there: about n_jobs · log(runs) parts are kept, not all of them.

    work: takes the two ends of a run and returns something that can be added.
    runs: one or more, see `cut`.
    n_jobs: number of threads; every available processor by default.

    >>> add_up(lambda first, last: sum(range(first, last)), [(0, 2), (2, 3), (3, 6)])
    15
    """
    waiting: dict[tuple[int, int], Any] = {}
    lock = Lock()

    def climb(at: int, _: int) -> None:
        part, width = work(*runs[at]), len(runs)
        while width > 1:
            # the last of an odd number goes up alone
            if at ^ 1 < width:
                with lock:
                    other = waiting.pop((width, at ^ 1), None)
                    if other is None:
                        waiting[width, at] = part
                        return
                part = part + other
            at, width = at // 2, (width + 1) // 2
        waiting[1, 0] = part

    spread(climb, [(at, at + 1) for at in range(len(runs))], n_jobs)
    return waiting[1, 0]
