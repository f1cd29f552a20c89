"""The loop around the compiled steps: pieces short enough to interrupt, a trace, a progress bar, early stopping."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.ranking import RankingData
from corank.descent.runs import Runs
from corank.descent.task import Task
from corank.errors import InputError
from corank.metrics import disagreement_error

Floats = NDArray[np.float64]
Judge = Callable[[Floats], float]

# times that the objective is estimated, and early stopping considered, during a call of fit
N_CHECKS = 20
# steps between two looks at the keyboard
_PIECE = 500_000


@dataclasses.dataclass(frozen=True)
class Patience:
    """
    When to stop early.

    Attributes
    ----------
    judge : callable
        Takes the combined weights and returns the error on what was held out.
    tol : float
        What counts as an improvement.
    n_iter_no_change : int
        Checks without improvement after which to stop.
    """

    judge: Judge
    tol: float
    n_iter_no_change: int


def train(
    runs: Runs, task: Task, n_steps: int, patience: Patience | None, verbose: bool
) -> tuple[Runs, Floats, KeyboardInterrupt | None]:
    """
    Take steps, and watch.

    Parameters
    ----------
    runs : Runs
        Advanced in place.
    task : Task
        What to learn from.
    n_steps : int
        Steps to take.
    patience : Patience, optional
        When to stop early.
    verbose : bool
        Whether to show a progress bar, on a terminal only.

    Returns
    -------
    runs : Runs
        The runs to keep, which are those of the best check when stopping early.
    trace : array of shape (n_checks, 2)
        Rows of (step, estimated objective).
    interrupt : KeyboardInterrupt or None
        What broke the training off, to be raised when the runs are safe: a kernel always ends its piece.
    """
    trace = [(runs.n_steps, _estimate(runs, task))]
    best, best_error, n_worse = runs, np.inf, 0
    ends = runs.n_steps + np.unique(np.linspace(0, n_steps, min(n_steps, N_CHECKS) + 1).astype(np.int64)[1:])
    interrupt = None
    try:
        with _progress(n_steps, verbose) as report:
            for end in ends:
                while runs.n_steps < end:
                    piece = int(min(end - runs.n_steps, _PIECE * len(runs.states)))
                    runs.advance(task, piece)
                    report(piece)
                trace.append((runs.n_steps, _estimate(runs, task)))
                if patience is None:
                    continue
                error = patience.judge(view_weights(runs, task)[0].mean(axis=0))
                n_worse = 0 if error < best_error - patience.tol else n_worse + 1
                if error < best_error:
                    best, best_error = Runs.resume(runs.plan, runs.stored()), error
                if n_worse >= patience.n_iter_no_change:
                    break
    except KeyboardInterrupt as caught:
        interrupt = caught
    return (runs if patience is None else best), np.array(trace, dtype=np.float64), interrupt


def view_weights(runs: Runs, task: Task) -> tuple[Floats, Floats]:
    """
    Weights of each view in the columns of X.

    Parameters
    ----------
    runs : Runs
        The runs.
    task : Task
        Whose views they have.

    Returns
    -------
    tuple of (array of shape (n_views, n_features), array of shape (n_views,))
        Weights, zero where a view does not see a column, and biases.
    """
    w, biases = runs.weights(task.columns.views)
    W = np.zeros((len(biases), len(task.columns.starts) - 1))
    W[task.columns.views, task.columns.of_slots] = w
    return W, biases


def hold_out(data: RankingData, share: float, rng: np.random.Generator) -> tuple[RankingData, Judge]:
    """
    Hide the scores of some queries (of some rows where there is one query, or some preferences) to judge by them.

    Parameters
    ----------
    data : RankingData
        The problem; its rows are not copied, those held out count as unscored.
    share : float
        Share of the queries, rows or preferences.
    rng : numpy.random.Generator
        Chooses them.

    Returns
    -------
    tuple of (RankingData, callable)
        What is left, and a function from weights to the disagreement error on what was held out.
    """
    if data.pairs is not None:
        held = rng.random(len(data.pairs)) < share
        D = data.X[data.pairs[held, 0]] - data.X[data.pairs[held, 1]]
        _require_both(held)
        return dataclasses.replace(data, pairs=data.pairs[~held]), lambda w: _wrong(D @ w)
    assert data.y is not None
    useful = np.flatnonzero(data.pairs_per_query > 0)
    if len(useful) > 1:
        n = min(max(1, round(share * len(useful))), len(useful) - 1)
        held = np.isin(data.queries.codes, rng.choice(useful, n, replace=False))
    else:
        held = rng.random(data.n_rows) < share
    rows = np.flatnonzero(held & data.is_scored)
    truth, codes, X = data.y[rows], data.queries.codes[rows], data.X[rows]
    y = np.where(held, np.nan, data.y)
    _require_both(np.array([_has_pair(truth, codes), not _has_pair(y[~np.isnan(y)], data.queries.codes[~np.isnan(y)])]))
    return RankingData.of_checked(data.X, y, data.queries), lambda w: disagreement_error(truth, X @ w, codes)


def _has_pair(y: Floats, codes: NDArray[np.int64]) -> bool:
    seen = np.unique(np.stack([codes, y]), axis=1)[0]
    return bool((np.diff(seen) == 0).any())


def _require_both(held: NDArray[np.bool_]) -> None:
    if not held.any() or held.all():
        raise InputError(
            "tol is set, but validation_fraction leaves no pair to learn from or none to judge by; "
            "change validation_fraction, or set tol=None."
        )


def _wrong(margins: Floats) -> float:
    return float((margins < 0).mean() + 0.5 * (margins == 0).mean())


def _estimate(runs: Runs, task: Task) -> float:
    return task.sample.objective(task.objective, *view_weights(runs, task))


@contextmanager
def _progress(n_steps: int, verbose: bool) -> Iterator[Callable[[int], Any]]:
    if not verbose:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        job = bar.add_task("steps", total=n_steps)
        yield lambda done: bar.advance(job, done)
