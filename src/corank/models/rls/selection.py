"""
Choice of the weight of the penalty among candidates, by leave-out scores or by the evidence.

`gaussian_is_better` leaves out fifths of some of the queries.

For at most `N_QUERIES` random queries, both kernels predict each fifth from the others: the linear one with the chosen
alpha, the Gaussian one with `N_BASIS` basis rows and the best of three alphas. With d_q the gain in the metric of query
q, the Gaussian kernel is better if mean d ≥ `MARGIN` and mean d ≥ `N_ERRORS` standard errors of it. Three errors
allow for the choice among alphas and for users who fit often. Fifths instead of single queries are several times as
fast, so that the check takes about as long as the fit of 100 queries, whatever the size of the problem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base.kernels.basis import Basis, FeatureMap, choose_basis
from corank.base.kernels.views import View
from corank.base.solvers.choice import choose
from corank.base.solvers.penalty import alpha_of, freedom
from corank.core.rows.access import plain
from corank.data.ranking import RankingData
from corank.data.splits import keep_scores
from corank.errors import InputError
from corank.memory import require_memory
from corank.metrics import parse_metric
from corank.models.rls.accuracy import LeaveOutScores
from corank.models.rls.frame import ComparedRows, ScoredRows
from corank.models.rls.leave_out import Advance
from corank.models.rls.spectrum import Ridge, ridge_of
from corank.models.rls.systems import System

Floats = NDArray[np.float64]
Remake = Callable[[RankingData, ComparedRows], System]

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


def metric_for(metric: str | None, frame: ComparedRows) -> str:
    """Return the metric; by default nDCG@10 for grades in several queries, else disagreement."""
    if metric is not None:
        return metric if metric == EVIDENCE else str(parse_metric(metric))
    if not isinstance(frame, ScoredRows) or frame.n_queries < 2:
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
    if not isinstance(frame, ScoredRows) or metric != "disagreement":
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


def require_pairs_memory(frame: ComparedRows, metric: str) -> None:
    """Raise `InputError` if leave-pair-out is the method and needs more memory than there is."""
    if metric != EVIDENCE and frame.n_queries == 1 and isinstance(frame, ScoredRows) and _leaves_out_pairs(frame):
        n = len(frame.rows)
        require_memory(n, 8.0 * _PAIRS_OUT * n * n, "set metric='evidence', or pass alpha instead of alphas")


def _order_of_values(data: RankingData, rows: NDArray[np.int64], y: Floats) -> NDArray[np.int64]:
    """Order rows by score, weight, prior and columns; rows that are objects or CSR, by score and weight only."""
    X = plain(data.X)
    columns = X[rows].T[::-1] if isinstance(X, np.ndarray) and X.ndim == 2 else ()
    return np.lexsort((*columns, data.prior_of(rows), data.weight_of(rows), y))


def _leaves_out_pairs(frame: ScoredRows) -> bool:
    """Return whether leave-pair-out of one query is exact: equal scores are compared (one run) or absent (n runs)."""
    return len(frame.L.keep) in (1, len(frame.rows))


def _rows_out(system: System, alphas: Floats, n_parts: int, remake: Remake, advance: Advance) -> Floats:
    """
    Return the share of pairs inside each fold of the rows of one query that models of the other folds order wrongly.

    If rows of equal score are not compared, leaving out two rows changes the weight of every other row, so no shortcut
    exists. Rows are assigned to folds in the order of their scores, and rows of equal score in the order of their
    numbers, so that the order of the input does not matter.
    """
    assert isinstance(system.frame, ScoredRows)
    rows, y, wrong, total = system.frame.rows, system.frame.y, np.zeros(len(alphas)), 0
    order = _order_of_values(system.data, rows, y)
    for part in range(n_parts):
        out = order[part::n_parts]
        kept = np.ones(system.data.n_rows, dtype=bool)
        kept[rows[out]] = False
        data = keep_scores(system.data, kept)
        frame = ComparedRows.of(data, "pairs", ties=False)
        i, j = np.nonzero(y[out][:, None] > y[out])
        if len(i) and frame.n_queries:
            rest = remake(data, frame)
            g, noise = rest.rows_out(ridge_of(rest.equations(), alphas), data.X[rows[out]], alphas)
            f = g + data.prior_of(rows[out])[:, None]
            wrong += np.where(np.abs(f[i] - f[j]) <= noise[i] + noise[j], 0.5, f[i] < f[j]).sum(axis=0)
            total += len(i)
        advance(len(y[out]))
    return wrong / total if total else np.full(len(alphas), np.nan)


MIN_QUERIES, N_QUERIES, MAX_ROWS, N_BASIS = 50, 100, 4_000, 100
MARGIN, N_ERRORS = 0.01, 3.0
_FIFTHS = 5
# alphas of the Gaussian kernel, relative to the closed rule
_ALPHAS = np.array([1e-3, 1e-2, 1e-1])


def gaussian_is_better(data: RankingData, frame: ComparedRows, alpha: float, metric: str) -> bool:
    """Return whether a Gaussian kernel is better than the linear one on left-out queries."""
    is_dense = isinstance(plain(data.X), np.ndarray)
    if metric == EVIDENCE or not isinstance(frame, ScoredRows) or not is_dense or frame.n_queries < MIN_QUERIES:
        return False
    rng = np.random.default_rng(0)
    chosen = rng.permutation(frame.n_queries)[:N_QUERIES]
    chosen = chosen[np.cumsum(np.diff(frame.starts)[chosen]) <= MAX_ROWS]
    if len(chosen) < MIN_QUERIES:
        return False
    kept = np.zeros(data.n_rows, dtype=bool)
    for q in chosen:
        kept[frame.rows[frame.starts[q] : frame.starts[q + 1]]] = True
    data = keep_scores(data, kept)
    frame = ComparedRows.of(data, frame.query_weight, frame.ties)
    assert isinstance(frame, ScoredRows)
    linear = FeatureMap.of_columns(View(None, "linear"), data.n_features)
    view = View(None, "gaussian").fit(data.X, rng, data.weights)
    rows = choose_basis(view, data.X, frame.rows, N_BASIS, "random", rng)
    gaussian = FeatureMap.on_basis(Basis.of(view, data.X, rows), data.X)
    before = _values(data, frame, linear, np.array([alpha]), metric)[0]
    after = _values(data, frame, gaussian, None, metric)
    d = direction(metric) * (max(after, key=lambda values: direction(metric) * np.nanmean(values)) - before)
    d = d[~np.isnan(d)]
    error = np.std(d, ddof=1) / np.sqrt(len(d)) if len(d) > 1 else np.inf
    return bool(len(d) and d.mean() >= max(MARGIN, N_ERRORS * error))


def _values(data: RankingData, frame: ScoredRows, phi: FeatureMap, alphas: Floats | None, metric: str) -> list[Floats]:
    """Return the metric of each left-out query, for each alpha; by default some below that of the closed rule."""
    Z, t = frame.design(0, frame.n_queries, data.X, phi)
    A, b, query = Z.T @ Z, Z.T @ t, np.arange(frame.n_queries)
    alphas = alpha_of(float(np.trace(A)), 0, freedom(data, frame.ties)) * _ALPHAS if alphas is None else alphas
    row = np.repeat(query, np.diff(frame.starts))
    values = np.empty((len(t), len(alphas)))
    for fold in range(_FIFTHS):
        out = row % _FIFTHS == fold
        # the loss is a mean over pairs: the others have 1/(1 − s) times their weight, see `corank.models.rls.leave_out`
        shifts = (1.0 - frame.shares[query % _FIFTHS == fold].sum()) * alphas
        rest = A - Z[out].T @ Z[out] + shifts[:, None, None] * np.eye(len(A))
        side = np.broadcast_to((b - Z[out].T @ t[out])[:, None], (len(alphas), len(b), 1))
        values[out] = Z[out] @ np.linalg.solve(rest, side)[:, :, 0].T
    held = LeaveOutScores(values, np.zeros_like(values))
    return [np.asarray(result.values, dtype=np.float64) for result in frame.results(held, metric)]
