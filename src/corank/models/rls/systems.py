"""
The linear systems of least-squares ranking: (A + alpha I) x = b, A a mean over the compared pairs.

Dense, over n scored rows: A = H K Hᵀ and b = H y, with L = HᵀH the Laplacian of the pairs over their weight, K the Gram
matrix of the rows, and Hᵀx the coefficients of the rows. With features Φ: A = ΦᵀLΦ and b = ΦᵀL y, x the weights of Φ.

Candidates for alpha are compared by leave-out scores or by the evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base.kernels.basis import Basis, stack_features
from corank.base.solvers.choice import choose
from corank.base.solvers.penalty import alpha_of, freedom
from corank.core.rows.access import plain
from corank.data.ranking import RankingData
from corank.data.splits import keep_scores
from corank.errors import InputError
from corank.memory import require_memory
from corank.metrics import parse_metric
from corank.models.rls.frame import ComparedRows, ScoredRows
from corank.models.rls.leave_out import (
    Advance,
    ErrorScales,
    LeaveOutScores,
    dual_queries_out,
    pairs_out,
    rows_out,
    views_out,
)
from corank.models.rls.spectrum import Equations, Ridge, RidgeSpectrum, ridge_of
from corank.models.rls.summary import PairSums

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DenseSystem:
    """The dense dual: one coefficient per scored row; the basis are the compared rows."""

    data: RankingData
    frame: ScoredRows
    basis: Basis

    def equations(self) -> Equations:
        """
        Build H K Hᵀ and H y, in O(n²) in addition to the Gram matrix and at most twice its memory.

        H K Hᵀ and H y are zero along the constant of each query. These directions get an eigenvalue near the mean of
        the diagonal, so that small alphas do not make the system singular. The solution does not change.
        """
        frame, w, is_linear = self.frame, self.frame.w, self.basis.view.kernel.is_linear
        M = self.basis.gram(self.data.X)
        frame.L.half(M, out=M)
        # K is symmetric: (H K)ᵀ = K Hᵀ
        frame.L.half(M.T, out=M)
        trace = float(np.trace(M))
        # distinct values: repeated eigenvalues make the decomposition several times slower
        levels = (trace / len(M) or 1.0) * _spread(frame.n_queries)
        for own, (begin, end) in zip(levels, pairwise(frame.starts), strict=True):
            u = np.sqrt(w[begin:end] / w[begin:end].sum())
            M[begin:end, begin:end] += own * np.outer(u, u)
        closed = alpha_of(trace, self.basis.rows.shape[1] if is_linear else 0, freedom(self.data, frame.ties))
        # the trace of an indefinite kernel may be negative
        units = np.full(len(M), abs(float(np.trace(M))) / len(M))
        return Equations(M, frame.targets, units, closed)

    def coefficients(self, x: Floats) -> Floats:
        """Return Hᵀx, or the equivalent weights of columns."""
        a = self.frame.L.half_t(x)
        return self.basis.column_weights(a) if self.basis.view.kernel.is_linear else a

    def queries_out(self, ridge: Ridge, alphas: Floats, advance: Advance) -> LeaveOutScores:
        """Predict each query from all others."""
        frame = self.frame
        return dual_queries_out(ridge, frame.targets, frame.starts, frame.shares, alphas, self._error_scales, advance)

    def pairs_out(self, ridge: Ridge, alphas: Floats) -> Floats:
        """Return the leave-pair-out disagreement error of the one query."""
        return pairs_out(ridge, None, self.frame, alphas, self._error_scales)

    def rows_out(self, ridge: Ridge, rows: Any, alphas: Floats) -> LeaveOutScores:
        """Predict other rows of the one query, up to a constant."""
        similarities = self.frame.L.half(np.ascontiguousarray(self.basis.similarities(rows).T)).T
        length = float(np.mean(self.basis.diagonal(self.data.X)))
        return rows_out(ridge, ridge.transform(similarities), alphas, self._error_scales, length, is_dual=True)

    def misfit(self, ridge: Ridge, shift: float) -> tuple[float, float]:
        """Return tᵀ(I + ZZᵀ/λ)⁻¹t and log |I + ZZᵀ/λ|, Z and t those of `ComparedRows.design`."""
        assert isinstance(ridge, RidgeSpectrum)
        spread = _spread(self.frame.n_queries)
        # remove the eigenvalues that `equations` added for the constants of queries
        levels = spread * (ridge.values.sum() / (len(ridge.values) + spread.sum()))
        q = shift * float(ridge.times_inverse(ridge.target, shift) @ ridge.target)
        return q, ridge.log_det(shift) - float(np.sum(np.log1p(levels / shift)))

    @property
    def _error_scales(self) -> ErrorScales:
        return self.frame.error_scales(self.basis.diagonal(self.data.X))


@dataclass(frozen=True, eq=False)
class FeatureSystem:
    """The system of features: columns, or similarities to basis rows."""

    data: RankingData
    frame: ComparedRows
    basis: Basis | None
    summary: PairSums

    def equations(self) -> Equations:
        """Build ΦᵀLΦ and ΦᵀL y."""
        return self.summary.equations()

    def coefficients(self, x: Floats) -> Floats:
        """Return coefficients of the columns, or of the basis rows."""
        return self.summary.only_map.coefficients(x)

    def queries_out(self, ridge: Ridge, alphas: Floats, advance: Advance) -> LeaveOutScores:
        """Predict each query from all others."""
        return self.views_out([ridge], alphas, advance)[0]

    def views_out(self, ridges: list[Ridge], alphas: Floats, advance: Advance) -> list[LeaveOutScores]:
        """Predict each query from all others by the mean of the views, for each coupling."""
        frame, blocks, parts, scales = self.frame, self.summary.blocks, [], self._error_scales
        for some, starts, Z, t in frame.designs(self.data.X, stack_features(self.summary.maps)):
            parts.append(views_out(ridges, Z, t, starts, frame.shares[some], blocks, alphas, scales))
            advance(len(t))
        return [LeaveOutScores(*map(np.concatenate, zip(*of_one, strict=True))) for of_one in zip(*parts, strict=True)]

    def pairs_out(self, ridge: Ridge, alphas: Floats) -> Floats:
        """Return the leave-pair-out disagreement error of the one query."""
        assert isinstance(self.frame, ScoredRows)
        Z, _ = self.frame.design(0, 1, self.data.X, self.summary.only_map)
        return pairs_out(ridge, Z, self.frame, alphas, self._error_scales)

    def rows_out(self, ridge: Ridge, rows: Any, alphas: Floats) -> LeaveOutScores:
        """Predict other rows of the one query, up to a constant."""
        features = ridge.transform(self.summary.only_map(rows))
        return rows_out(ridge, features, alphas, self._error_scales, self._length, is_dual=False)

    def misfit(self, ridge: Ridge, shift: float) -> tuple[float, float]:
        """Return the same for features."""
        explained = float(ridge.times_inverse(ridge.target, shift) @ ridge.target)
        return float(np.sum(self.frame.targets**2)) - explained, ridge.log_det(shift)

    @property
    def _length(self) -> float:
        """Mean k(x, x) over basis rows, summed over views."""
        bases = [phi.basis for phi in self.summary.maps if phi.basis is not None]
        return sum(float(np.mean(basis.diagonal(self.data.X))) for basis in bases)

    @property
    def _error_scales(self) -> ErrorScales:
        inflation = max(phi.inflation for phi in self.summary.maps)
        return replace(self.frame.error_scales(self._length), inflation=inflation)


def _spread(n: int) -> Floats:
    return np.linspace(0.5, 1.5, n)


System = DenseSystem | FeatureSystem
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
        return evidence(system, ridge, alphas), "largest"
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


def evidence(system: System, ridge: Ridge, alphas: Floats) -> Floats:
    """
    Return the log evidence of each alpha, up to a constant.

    Scores are f plus noise of precision L/σ², f has covariance σ² K/alpha, the level of a query has a flat prior,
    and σ maximises the likelihood: −½(m log(q/m) + log |I + A/alpha|), with m the number of free differences of
    compared rows and q twice the minimum of the objective.
    """
    m = freedom(system.data, system.frame.ties).differences
    evidence = []
    for shift in ridge.shifts(alphas):
        q, log_det = system.misfit(ridge, float(shift))
        evidence.append(-0.5 * (m * np.log(max(q, np.finfo(np.float64).tiny) / m) + log_det))
    return np.array(evidence)
