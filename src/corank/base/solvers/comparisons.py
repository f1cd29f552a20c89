"""
The squared loss as a quadratic form of the scores of rows, applied in O(n) and never built.

Its linear system is solved by conjugate gradients where X has many columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from corank.base.pairs import Laplacian
from corank.base.pairs.losses import weigh_queries
from corank.base.solvers.conjugate import conjugate_gradients
from corank.base.solvers.solution import Floats
from corank.core.rows.access import as_core_rows, factors_of, plain
from corank.core.rows.products import gather_rows, score_rows
from corank.core.threads import parallel_map, threads_for
from corank.data.inputs import require_weight
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import warn

TOLERANCE = 1e-10
"""Norm of the residual, relative to the right-hand side, at which conjugate gradients stop."""
MAX_STEPS = 5000
"""Largest number of their steps."""


@dataclass(frozen=True, eq=False)
class Comparisons:
    """The function ½ zᵀKz − kᵀz + ½ c of the scores z of chosen rows."""

    rows: LinearMap
    apply: Callable[[Floats], Floats]  # returns K z
    linear: Floats  # the vector k
    constant: float  # the number c
    diagonal: Floats  # diagonal of K


def scored_comparisons(data: RankingData, mix: float, centred: bool, query_weight: str) -> Comparisons:
    """
    Return the loss of the scored rows.

    K = (1 − mix)/W_P (L_q − L_g) + mix/W_D (diag(w) − w wᵀ/W_D): all pairs of a query except those inside a grade,
    each with weight c_q, and the rows themselves (about their mean if an intercept absorbs it).
    """
    if data.pairs is not None:
        return _preferences(weigh_queries(data, query_weight))
    assert data.y is not None
    assert data.targets is not None
    order = data.order[data.is_scored[data.order]]
    w = data.weight_of(order)
    # a query without pairs has no weight to distribute over its rows
    v = weigh_queries(data, query_weight).weight_of(order) if mix < 1.0 else w
    y, query = data.y[order], data.queries.codes[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (query[1:] != query[:-1]) | (y[1:] != y[:-1])
    grade = np.cumsum(new) - 1
    W_q, W_g, W_D = np.bincount(query, weights=v), np.bincount(grade, weights=v), float(w.sum())
    require_weight(W_D, "scored row")
    degree = v * (W_q[query] - W_g[grade])
    per_pair, per_row = 0.0, mix / W_D
    if mix < 1.0:
        require_weight(float(degree.sum()), "pair")
        per_pair = (1.0 - mix) / (0.5 * float(degree.sum()))
    L_q, L_g = _blocks(query, v), _blocks(grade, v)

    def apply(z: Floats) -> Floats:
        out = per_row * w * (z - (w @ z) / W_D if centred else z)
        return out + per_pair * (L_q @ z - L_g @ z) if per_pair else out

    t = data.targets[order]
    k = apply(t)
    return Comparisons(LinearMap(data.X, order), apply, k, float(t @ k), per_pair * degree + per_row * w)


def unscored_comparisons(data: RankingData, query_weight: str) -> Comparisons | None:
    """
    Return the mean square of the differences of unjudged rows, K the mean over pairs of (e_a − e_b)(e_a − e_b)ᵀ.

    Returns: the quadratic form; None if no query holds two unjudged rows.
    """
    order = data.order[~data.is_scored[data.order]]
    w = weigh_queries(data, query_weight, rows="unscored").weight_of(order)
    query = data.queries.codes[order]
    degree = w * (np.bincount(query, weights=w)[query] - w)
    total = 0.5 * float(degree.sum())
    if not total > 0.0:
        return None
    L = _blocks(query, w)
    linear = np.zeros(len(order))
    return Comparisons(LinearMap(data.X, order), lambda z: (L @ z) / total, linear, 0.0, degree / total)


def _preferences(data: RankingData) -> Comparisons:
    assert data.pairs is not None
    n, (winners, losers) = data.n_rows, data.pairs.T
    w, t = data.pair_weight, data.pair_targets
    total = float(w.sum())
    require_weight(total, "pair")
    L = Laplacian.from_pairs(data.pairs, n, w / total)
    k = (np.bincount(winners, weights=w * t, minlength=n) - np.bincount(losers, weights=w * t, minlength=n)) / total
    degree = np.bincount(data.pairs.ravel(), weights=np.repeat(w, 2), minlength=n) / total
    return Comparisons(LinearMap(data.X, np.arange(n)), L.apply, k, float(w @ t**2) / total, degree)


def _blocks(codes: NDArray[np.int64], w: Floats) -> Laplacian:
    """Return the Laplacian of all pairs of rows with equal codes; the codes are sorted."""
    return Laplacian.per_query(Queries.of(codes, len(codes)), weights=w)


def solve_by_products(
    data: RankingData,
    columns: list[NDArray[Any]],
    mix: float,
    alpha: float | Floats,
    coupling: float,
    centred: bool,
    query_weight: str,
) -> tuple[Floats, float, int, tuple[Floats, float]]:
    """Solve the block system of `corank.base.solvers.squared_views` by conjugate gradients."""
    loss = scored_comparisons(data, mix, centred, query_weight)
    agreement = unscored_comparisons(data, query_weight) if coupling > 0.0 and len(columns) > 1 else None
    M, d = len(columns), data.n_features
    bounds = np.cumsum([0, *(len(c) for c in columns)])

    def spread_out(theta: Floats, v: int) -> Floats:
        w = np.zeros(d)
        np.add.at(w, columns[v], theta[bounds[v] : bounds[v + 1]])
        return w

    def product(theta: Floats) -> Floats:
        out = alpha * theta
        for v in range(M):
            part = loss.rows.gather(loss.apply(loss.rows.scores(spread_out(theta, v))))
            out[bounds[v] : bounds[v + 1]] += part[columns[v]]
        if agreement is not None:
            margins = [agreement.rows.scores(spread_out(theta, v)) for v in range(M)]
            total = np.sum(margins, axis=0)
            for v in range(M):
                part = agreement.rows.gather(agreement.apply(M * margins[v] - total))
                out[bounds[v] : bounds[v + 1]] += 4.0 * coupling * part[columns[v]]
        return out

    slots = np.concatenate(columns)
    b = loss.rows.gather(loss.linear)[slots]
    # an upper bound of the diagonal, up to rounding: rows are not centred
    diagonal = alpha + loss.rows.gather_squares(loss.diagonal)[slots]
    if agreement is not None:
        diagonal += 4.0 * coupling * (M - 1) * agreement.rows.gather_squares(agreement.diagonal)[slots]
    inverse = 1.0 / np.where(diagonal > 0.0, diagonal, 1.0)
    theta, n_iter, converged = conjugate_gradients(product, b, lambda r: inverse * r, TOLERANCE**2, MAX_STEPS)
    if not converged:
        warn(
            f"conjugate gradients stopped after {n_iter} steps before reaching the optimum; scale X or raise alpha.",
            ConvergenceWarning,
        )
    objective = float(0.5 * theta @ product(theta) - b @ theta + 0.5 * M * loss.constant)
    return theta, objective, n_iter, _means(data) if centred else (np.zeros(d), 0.0)


def _means(data: RankingData) -> tuple[Floats, float]:
    assert data.targets is not None
    rows = data.scored_rows
    share = data.weight_of(rows) / data.weight_of(rows).sum()
    return LinearMap(data.X, rows).gather(share), float(share @ data.targets[rows])


# a fixed number of pieces, so that sums do not depend on the number of threads
_PIECES = 8
# smallest number of rows of a piece, if there are that many
_ROWS = 512


@dataclass(frozen=True, eq=False)
class LinearMap:
    """The matrix A with rows x_i, i = order[k]; X is not copied."""

    X: Any
    order: NDArray[np.int64]  # (m,): the chosen rows

    def scores(self, w: Floats) -> Floats:
        """Return A w, summed in float64."""
        order, out, w = self.order.view(np.uint64), np.empty(len(self.order)), self._scaled(w)
        parallel_map(lambda first, last: score_rows(self._rows, order, w, out, first, last), self._pieces, self._n_jobs)
        return out

    def gather(self, h: Floats) -> Floats:
        """Return Aᵀ h."""
        order, d = self.order.view(np.uint64), self.X.shape[1]

        def piece(first: int, last: int) -> Floats:
            out = np.zeros(d)
            gather_rows(self._rows, order, h, out, first, last)
            return out

        parts = parallel_map(piece, self._pieces, self._n_jobs)
        return self._scaled(np.sum(parts, axis=0) if parts else np.zeros(d))

    def gather_squares(self, h: Floats) -> Floats:
        """Return Σ_k h_k x_i², i = order[k], for every column."""
        total, X = np.zeros(self.X.shape[1]), plain(self.X)
        for first, last in self._pieces:
            rows = X[self.order[first:last]]
            if sparse.issparse(rows):
                total += rows.power(2).T @ h[first:last]
            else:
                total += np.einsum("kj,kj,k->j", rows, rows, h[first:last])
        return self._scaled(self._scaled(total))

    def _scaled(self, w: Floats) -> Floats:
        factors = factors_of(self.X)
        return w if factors is None else factors * w

    @cached_property
    def _rows(self) -> Any:
        return as_core_rows(plain(self.X))

    @cached_property
    def _n_jobs(self) -> int:
        X = plain(self.X)
        return threads_for(len(self.order) * (X.nnz // max(X.shape[0], 1) if sparse.issparse(X) else X.shape[1]))

    @cached_property
    def _pieces(self) -> list[tuple[int, int]]:
        ends = np.linspace(0, len(self.order), min(_PIECES, len(self.order) // _ROWS + 1) + 1).astype(int)
        return [(int(first), int(last)) for first, last in pairwise(ends) if last > first]
