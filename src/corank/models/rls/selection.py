"""Choice of the weight of the penalty among candidates, by leave-out scores or by the evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base.solvers.choice import choose
from corank.core.rows.scaled import plain
from corank.data.ranking import RankingData
from corank.data.splits import keep_scores
from corank.errors import InputError
from corank.memory import require_memory
from corank.metrics import parse_metric
from corank.models.rls.frame import Frame, RowFrame
from corank.models.rls.leave_out import Advance
from corank.models.rls.spectrum import Ridge, ridge_of
from corank.models.rls.systems import System

Floats = NDArray[np.float64]
Remake = Callable[[RankingData, Frame], System]

EVIDENCE = "evidence"
"""Name of the criterion that maximises the marginal likelihood; it leaves nothing out."""

# folds of the rows of a single query, if leave-pair-out is not exact
_FOLDS = 10
# n × n arrays in leave-pair-out: numbers, weights, margins and errors of all pairs
_PAIRS_OUT = 25


def candidates(values: Any, name: str) -> Floats:
    """Return a checked list of candidates as an array."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.ndim != 1 or not len(numbers) or not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise InputError(f"{name} is {values!r}; pass a list of one or more finite numbers from 0.")
    return numbers


def metric_for(metric: str | None, frame: Frame) -> str:
    """Return the metric; by default nDCG@10 for grades in several queries, else disagreement."""
    if metric is not None:
        return metric if metric == EVIDENCE else str(parse_metric(metric))
    if not isinstance(frame, RowFrame) or frame.n_queries < 2:
        return "disagreement"
    are_grades = (frame.y >= 0) & (frame.y <= 10) & (frame.y == np.round(frame.y))
    return "nDCG@10" if are_grades.all() else "disagreement"


def best(scores: Floats, metric: str, *prefer: Floats) -> tuple[int, ...]:
    """Return the index of the best mean of a metric, ignoring NaN; see `corank.base.solvers.choice.choose` for ties."""
    if np.isnan(scores).all():
        raise InputError(f"{metric} is undefined for every left-out query; choose another metric, or score more rows.")
    return choose(direction(metric) * scores, *prefer)


def direction(metric: str) -> float:
    """Return 1 if larger is better, else −1."""
    return 1.0 if metric == EVIDENCE or parse_metric(metric).measure.larger_is_better else -1.0


def leave_out_scores(
    system: System, ridge: Ridge, alphas: Floats, metric: str, remake: Remake, advance: Advance
) -> tuple[Floats, str]:
    """Score every alpha on left-out rows, or by the evidence."""
    frame = system.frame
    if metric == EVIDENCE:
        return system.evidence(ridge, alphas), "largest"
    if frame.n_queries > 1:
        return frame.scores(system.queries_out(ridge, alphas, advance), metric), "leave-query-out"
    if not isinstance(frame, RowFrame) or metric != "disagreement":
        raise InputError(
            f"there is one query, but metric={metric!r} needs two or more for leave-query-out; for scores of one query "
            "use metric='disagreement', which leaves out rows."
        )
    n = len(frame.rows)
    if n < 4:
        raise InputError(
            f"the one query has {n} rows, but leaving out rows needs four or more; pass alpha instead of alphas."
        )
    if _leaves_out_pairs(frame):
        return system.pairs_out(ridge, alphas), "leave-pair-out"
    n_parts = min(_FOLDS, n // 2)
    return _rows_out(system, alphas, n_parts, remake, advance), f"{n_parts}-fold"


def require_pairs_memory(frame: Frame, metric: str) -> None:
    """Raise `InputError` if leave-pair-out is the method and needs more memory than there is."""
    if metric != EVIDENCE and frame.n_queries == 1 and isinstance(frame, RowFrame) and _leaves_out_pairs(frame):
        n = len(frame.rows)
        require_memory(n, 8.0 * _PAIRS_OUT * n * n, "set metric='evidence', or pass alpha instead of alphas")


def _order_of_values(data: RankingData, rows: NDArray[np.int64], y: Floats) -> NDArray[np.int64]:
    """Order rows by score, weight, prior and columns; rows that are objects or CSR, by score and weight only."""
    X = plain(data.X)
    columns = X[rows].T[::-1] if isinstance(X, np.ndarray) and X.ndim == 2 else ()
    return np.lexsort((*columns, data.prior_of(rows), data.weight_of(rows), y))


def _leaves_out_pairs(frame: RowFrame) -> bool:
    """Return whether leave-pair-out of one query is exact: equal scores are compared (one run) or absent (n runs)."""
    return len(frame.L.keep) in (1, len(frame.rows))


def _rows_out(system: System, alphas: Floats, n_parts: int, remake: Remake, advance: Advance) -> Floats:
    """
    Return the share of pairs inside each fold of the rows of one query that models of the other folds order wrongly.

    If rows of equal score are not compared, leaving out two rows changes the weight of every other row, so no shortcut
    exists. Rows are assigned to folds in the order of their scores, and rows of equal score in the order of their
    numbers, so that the order of the input does not matter.
    """
    assert isinstance(system.frame, RowFrame)
    rows, y, wrong, total = system.frame.rows, system.frame.y, np.zeros(len(alphas)), 0
    order = _order_of_values(system.data, rows, y)
    for part in range(n_parts):
        out = order[part::n_parts]
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
