"""The loop around the compiled steps: pieces short enough to interrupt, a trace, a progress bar, early stopping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from corank.linear.runs import Runs
from corank.linear.task import Task
from corank.solvers.early_stopping import EarlyStopping, run_training

Floats = NDArray[np.float64]
Judge = Callable[[Floats, Floats], float]

# times that the objective is estimated, and early stopping considered, during a call of fit
N_CHECKS = 20
# steps between two looks at the keyboard
_PIECE = 500_000


@dataclass(frozen=True, eq=False)
class Trained:
    """
    What training leaves.

    runs: the runs to keep, which are those of the best check when stopping early.
    trace (n_checks + 1, 2): rows of (step, estimated objective).
    errors (n_checks,): error on what was held out; empty without early stopping.
    interrupted: whether Ctrl-C broke it off: a kernel always ends its piece, so the runs are whole.
    """

    runs: Runs
    trace: Floats
    errors: Floats
    interrupted: bool


def train(runs: Runs, task: Task, n_steps: int, judge: Judge | None, patience: int, verbose: bool) -> Trained:
    """
    Take steps, and watch.

    runs: advanced in place.
    task: what to learn from.
    n_steps: steps to take.
    judge: takes the weights and biases of the views and returns the error on what was held out; stops early.
    patience: checks without a lower error after which to stop.
    verbose: whether to show a progress bar, on a terminal or in a notebook.
    Returns: the runs and how they went.
    """
    trace = [(runs.n_steps, _estimate(runs, task))]
    stopping, best = EarlyStopping(patience), runs
    ends = np.unique(np.linspace(0, n_steps, min(n_steps, N_CHECKS) + 1).astype(np.int64)[1:])

    def check() -> bool:
        nonlocal best
        trace.append((runs.n_steps, _estimate(runs, task)))
        if judge is None:
            return False
        if stopping.record(judge(*runs.weights(task.columns))):
            best = runs.copy()
        return stopping.is_over

    interrupted = run_training(partial(runs.advance, task), ends, check, _PIECE * len(runs.states), verbose)
    kept = runs if judge is None else best
    return Trained(kept, np.array(trace, dtype=np.float64), np.array(stopping.errors), interrupted)


def _estimate(runs: Runs, task: Task) -> float:
    return task.sample.objective(task.objective, *runs.weights(task.columns))
