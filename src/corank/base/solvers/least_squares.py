"""
The squared loss: one linear system.

Minimises  mix · mean_D ½ (y − w·x − b)² + (1 − mix) · mean_P ½ (y_a − y_b − w·(a − b))² + alpha/2 ‖w‖²,
P the pairs of rows of one query with different scores. The pairs enter only through ``Σ_q X_qᵀ L_q X_q``, computed in
one scan of the rows (`corank.base.pairs`): O(n d² + d³) time and O(d²) memory for any number of pairs. Above
`MAX_DENSE` unknowns, or if n d² exceeds `MAX_SUMS`, the same system is solved by conjugate gradients, O(non-zeros) a
step, without a d × d matrix.

Reference: Sculley, Combined regression and ranking, KDD 2010 (the objective, solved there by stochastic steps).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from corank.base.pairs import Moments
from corank.base.pairs.moments import dense
from corank.base.solvers.comparisons import solve_by_products
from corank.base.solvers.solution import Floats, Solution, require, require_products
from corank.core.rows.access import factors_of, plain
from corank.data.inputs import require_weight
from corank.data.ranking import RankingData
from corank.errors import InputError


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The function ½ wᵀAw − bᵀw + ½ c of the weights."""

    A: Floats
    b: Floats
    c: float
    x_mean: Floats  # x_mean (d,), y_mean: means of the rows and of the scores; 0 without an intercept
    y_mean: float

    @classmethod
    def zero(cls, d: int) -> Quadratic:
        """Return the zero function of d weights."""
        return cls(np.zeros((d, d)), np.zeros(d), 0.0, np.zeros(d), 0.0)

    def plus(self, sums: Floats, scale: float) -> Quadratic:
        """Add ``scale`` times ½ Σ (y − w·x)², from the sums ``[X y]ᵀ [X y]``."""
        A, b, c = sums[:-1, :-1], sums[:-1, -1], float(sums[-1, -1])
        return replace(self, A=self.A + scale * A, b=self.b + scale * b, c=self.c + scale * c)


MAX_DENSE = 4000
"""Unknowns up to which the system is built and factorised."""
MAX_SUMS = 10**12
"""Products n d² up to which the system is built: some tens of seconds."""


# number of rows whose mean approximates the mean of all rows
_SAMPLE = 10_000


def squared(
    data: RankingData,
    *,
    mix: float = 0.0,
    alpha: float,
    fit_intercept: bool = False,
    query_weight: str = "pairs",
) -> Solution:
    """Minimise the squared loss over pairs, rows, or both."""
    columns = [np.arange(data.n_features)]
    return replace(_solve(data, columns, mix, alpha, 0.0, fit_intercept, query_weight), view_coefs=())


def squared_views(
    data: RankingData,
    views: Sequence[Any],
    *,
    mix: float = 0.0,
    alpha: float | ArrayLike,
    coupling: float,
    fit_intercept: bool = False,
    query_weight: str = "pairs",
) -> Solution:
    """
    Minimise the squared loss of several views that are coupled on unjudged pairs.

    With m_v = w_v · p_v the margin of a pair p in view v, and P̂ the pairs of unjudged rows of one query:
    Σ_v [the objective of `squared` for view v] + coupling · Σ_{v,u} mean_P̂ (m_v − m_u)², whose gradient contains
    the 4 coupling mean_P̂ Σ_{u≠v} (m_v − m_u) p_v of the LCRA update.
    """
    columns = [_columns_of(view, data.n_features) for view in views]
    if not columns or any(len(c) == 0 for c in columns):
        raise InputError(f"got {len(columns)} views; pass at least one view, each with at least one column.")
    if not np.isfinite(coupling) or coupling < 0.0:
        raise InputError(f"coupling is {coupling}; pass a finite weight of the agreement, zero or more.")
    if np.ndim(alpha) and np.shape(alpha) != (len(columns),):
        raise InputError(
            f"alpha has shape {np.shape(alpha)}; pass one number, or one for each of {len(columns)} views."
        )
    weight = np.repeat(np.asarray(alpha), [len(c) for c in columns]) if np.ndim(alpha) else float(np.asarray(alpha))
    return _solve(data, columns, mix, weight, coupling, fit_intercept, query_weight)


def _columns_of(view: Any, d: int) -> NDArray[np.int64]:
    every = np.arange(d)
    try:
        return every[view] if isinstance(view, slice) else every[np.atleast_1d(view) if len(view) else slice(0)]
    except (IndexError, TypeError) as error:
        raise InputError(f"a view has columns that X does not have ({error}); pass integers below {d}.") from error


def _solve(
    data: RankingData, columns: list[NDArray[Any]], mix: float, alpha: float | Floats, coupling: float,
    fit_intercept: bool, query_weight: str,
) -> Solution:  # fmt: skip
    """Minimise; alpha is a number, or an array with that of each weight."""
    lowest = float(np.min(alpha))
    centred, couples = fit_intercept and mix > 0.0, coupling > 0.0 and len(columns) > 1
    require(data, mix, lowest)
    d, n_slots = data.n_features, sum(len(c) for c in columns)
    if max(n_slots, d) > MAX_DENSE or data.n_rows * d * d > MAX_SUMS:
        theta, objective, n_iter, means = solve_by_products(data, columns, mix, alpha, coupling, centred, query_weight)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            system, agreement = _sums(data, mix, centred, couples, query_weight)
        theta, objective = _factorise(system, agreement, columns, alpha, coupling)
        n_iter, means = 0, (system.x_mean, system.y_mean)
    bounds = np.cumsum([0, *(len(c) for c in columns)])
    coefs = tuple(theta[bounds[v] : bounds[v + 1]] for v in range(len(columns)))
    coef = np.zeros(d)
    for view, w in zip(columns, coefs, strict=True):
        np.add.at(coef, view, w / len(columns))
    intercept = float(means[1] - coef @ means[0]) if centred else 0.0
    return Solution(coef, intercept, max(objective, 0.0), n_iter, coefs)


def _sums(
    data: RankingData, mix: float, centred: bool, couples: bool, query_weight: str
) -> tuple[Quadratic, Floats | None]:
    """Return the system of the loss, and the mean of p pᵀ over unjudged pairs if views are coupled."""
    origin = np.zeros(0)
    unscored = Moments.of(data, rows="unscored", query_weight=query_weight) if couples else None
    if centred:
        # relative to a point near the mean of rows, so that centring the sums does not cancel
        origin, factors = _near_mean(data), factors_of(data.X)
        raw = replace(data, X=plain(data.X))
        scored = Moments.of(raw, features=lambda rows: dense(rows) - origin, plain=True, query_weight=query_weight)
        if factors is not None:
            scored, origin = scored.scaled(factors), factors * origin
    else:
        scored = Moments.of(data, plain=mix > 0.0, query_weight=query_weight)
    system = _system(scored, mix, centred)
    if len(origin):
        system = replace(system, x_mean=system.x_mean + origin)
    if unscored is None or not unscored.pair_weight > 0.0:
        return system, None
    return system, unscored.pair[:-1, :-1] / unscored.pair_weight


def _near_mean(data: RankingData) -> Floats:
    rows = data.scored_rows
    rows = rows[:: max(len(rows) // _SAMPLE, 1)]
    return np.asarray(plain(data.X)[rows].mean(axis=0), dtype=np.float64).ravel()


def _system(sums: Moments, mix: float, centred: bool) -> Quadratic:
    """Add both parts, with centred rows if an intercept absorbs the mean."""
    system = Quadratic.zero(sums.n_features)
    if mix < 1.0:
        require_weight(sums.pair_weight, "pair")
        system = system.plus(sums.pair, (1.0 - mix) / sums.pair_weight)
    if mix == 0.0:
        return system
    assert sums.plain is not None
    total = sums.plain[-1, -1]
    require_weight(total, "scored row")
    if not centred:
        return system.plus(sums.plain[:-1, :-1], mix / total)
    mean = sums.plain[-1, :-1] / total
    system = system.plus(sums.plain[:-1, :-1] - total * np.outer(mean, mean), mix / total)
    return replace(system, x_mean=mean[:-1], y_mean=float(mean[-1]))


def _factorise(
    system: Quadratic, agreement: Floats | None, columns: list[NDArray[Any]], alpha: float | Floats, coupling: float
) -> tuple[Floats, float]:
    """
    Solve the block system of the views.

    Block (v, u) is δ_vu (A_vv + alpha_v I) + 4 coupling (M δ_vu − 1) U_vu, U the mean of p pᵀ over unjudged pairs.
    """
    slots = np.concatenate(columns)
    view = np.repeat(np.arange(len(columns)), [len(c) for c in columns])
    same = (view[:, None] == view[None, :]).astype(np.float64)
    A = system.A[np.ix_(slots, slots)] * same
    if agreement is not None:
        A += 4.0 * coupling * (len(columns) * same - 1.0) * agreement[np.ix_(slots, slots)]
    A[np.diag_indices_from(A)] += alpha
    b = system.b[slots]
    require_products(A)
    theta = _solve_symmetric(A, b, shortest=bool(np.min(alpha) == 0.0))
    return theta, float(0.5 * theta @ (A @ theta) - b @ theta + 0.5 * len(columns) * system.c)


def _solve_symmetric(A: Floats, b: Floats, shortest: bool) -> Floats:
    """Solve with columns scaled to diagonal 1; `shortest` returns the solution of smallest norm if A is singular."""
    diagonal = np.diag(A)
    smallest = len(A) * np.finfo(np.float64).eps
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled = A * scale[:, None] * scale[None, :]
    try:
        factor = linalg.cho_factor(scaled)
        # smaller pivots are rounding errors
        if np.diag(factor[0]).min() ** 2 > smallest:
            return np.asarray(scale * linalg.cho_solve(factor, scale * b))
    except linalg.LinAlgError:
        pass
    if shortest:
        scale, scaled = np.ones(len(A)), A
    values, vectors = linalg.eigh(scaled)
    kept = values > smallest * max(values[-1], 0.0)
    return np.asarray(scale * (vectors[:, kept] @ ((vectors[:, kept].T @ (scale * b)) / values[kept])))
