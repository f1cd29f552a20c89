"""Candidates for the weight of the penalty, judged by rows that a model did not see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.problem.ranking import RankingData
from corank.data.problem.splits import keep_scores
from corank.errors import InputError
from corank.metrics import parse_metric
from corank.rls.frame import Frame, RowFrame
from corank.rls.leave_out import Advance
from corank.rls.spectrum import Ridge, ridge_of
from corank.rls.systems import System

Floats = NDArray[np.float64]
Remake = Callable[[RankingData, Frame], System]

EVIDENCE = "evidence"
"""What judges candidates by how likely they make all scores, with nothing left out."""

# parts that the rows of a single query are dealt into where pairs cannot be left out at once
_FOLDS = 10


def candidates(values: Any, name: str) -> Floats:
    """Check a list of candidates, and return them as numbers."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.ndim != 1 or not len(numbers) or not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise InputError(f"{name} is {values!r}; pass a list of one or more finite numbers, none below zero.")
    return numbers


def metric_for(metric: str | None, frame: Frame) -> str:
    """Name the metric that judges; by default nDCG@10 where whole queries of grades are left out, else disagreement."""
    if metric is not None:
        return metric if metric == EVIDENCE else str(parse_metric(metric))
    if not isinstance(frame, RowFrame) or frame.n_queries < 2:
        return "disagreement"
    are_grades = (frame.y >= 0) & (frame.y <= 10) & (frame.y == np.round(frame.y))
    return "nDCG@10" if are_grades.all() else "disagreement"


def best(scores: Floats, metric: str) -> tuple[int, ...]:
    """Find the best of candidates' means of a metric; the first of equals, and none that is NaN."""
    if np.isnan(scores).all():
        raise InputError(
            f"{metric} is defined for no query that was left out; choose another metric, or score more rows."
        )
    at = int(np.nanargmax(direction(metric) * scores))
    return tuple(int(i) for i in np.unravel_index(at, scores.shape))


def direction(metric: str) -> float:
    """Return 1 where larger is better, else −1."""
    return 1.0 if metric == EVIDENCE or parse_metric(metric).measure.larger_is_better else -1.0


def judged(
    system: System, ridge: Ridge, alphas: Floats, metric: str, remake: Remake, advance: Advance
) -> tuple[Floats, str]:
    """
    Judge every alpha by what models say of rows that they did not see.

    ridge: of its equations.
    alphas (m,): weights of the penalty.
    metric: what judges.
    remake: makes the same kind of system of other scores of the same rows.
    advance: is told how many rows are done.
    Returns: means of the metric, and what was left out; or the log evidence.
    """
    frame = system.frame
    if metric == EVIDENCE:
        return system.evidence(ridge, alphas), "largest"
    if frame.n_queries > 1:
        return frame.scores(system.queries_out(ridge, alphas, advance), metric), "leave-query-out"
    if not isinstance(frame, RowFrame) or metric != "disagreement":
        raise InputError(
            f"one query cannot be left out and predicted from others; metric={metric!r} needs two queries or more "
            "(with scores and one query, metric='disagreement' leaves out rows)."
        )
    n = len(frame.rows)
    if n < 4:
        raise InputError(
            f"leaving out rows of the one query needs four or more, and it has {n}; pass alpha instead of alphas."
        )
    # one run: equal scores are compared; n runs: there are none
    if len(frame.L.keep) in (1, n):
        return system.pairs_out(ridge, alphas), "leave-pair-out"
    n_parts = min(_FOLDS, n // 2)
    return _rows_out(system, alphas, n_parts, remake, advance), f"{n_parts}-fold"


def _rows_out(system: System, alphas: Floats, n_parts: int, remake: Remake, advance: Advance) -> Floats:
    """
    Share of the pairs inside each part of one query's rows that models of the other parts order wrongly.

    Where rows of equal score are not compared, leaving out two rows changes what every other row weighs, and no
    solution follows from the whole one. Such a frame has its rows in the order of their scores: so they are dealt.
    """
    assert isinstance(system.frame, RowFrame)
    rows, y, wrong, total = system.frame.rows, system.frame.y, np.zeros(len(alphas)), 0
    for part in range(n_parts):
        out = slice(part, None, n_parts)
        kept = np.ones(system.data.n_rows, dtype=bool)
        kept[rows[out]] = False
        data = keep_scores(system.data, kept)
        frame = Frame.of(data, "pairs", ties=False)
        i, j = np.nonzero(y[out][:, None] > y[out])
        if len(i) and frame.n_queries:
            rest = remake(data, frame)
            g, noise = rest.rows_out(ridge_of(rest.equations(), alphas), data.X[rows[out]], alphas)
            f = g + data.prior_of(rows[out])[:, None]
            wrong += np.where(np.abs(f[i] - f[j]) <= noise[i] + noise[j], 0.5, f[i] < f[j]).sum(axis=0)
            total += len(i)
        advance(len(y[out]))
    return wrong / total if total else np.full(len(alphas), np.nan)
