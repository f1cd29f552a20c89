"""
Smooth losses over parts: truncated Newton, whose gradients and products are sums over queries.

    mix · mean_D ℓ(y, w·x + b) + (1 − mix) · mean_P ℓ(t(y_a − y_b), w·(a − b)) + alpha/2 ‖w‖²

A step of `corank.solvers.newton` on weights alone: each gradient, and each product with the second derivative, is one
pass in which d numbers go to every part and d come back. On a cluster the rows stay in the memory of the workers
meanwhile; on one machine each pass reads them again. Some tens of passes reach the optimum of one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from corank.core.rows.scaled import ScaledRows
from corank.data.problem.ranking import RankingData
from corank.distributed.parts import Parts
from corank.distributed.whole import Problem
from corank.errors import warn
from corank.pairwise import Moments, weigh_queries
from corank.pairwise.losses import Loss
from corank.progress import progress
from corank.solvers.linear_map import LinearMap
from corank.solvers.newton import Affine, Evaluate, line_length, newton_step
from corank.solvers.smooth_losses import block_of, pair_loss, row_loss
from corank.solvers.solution import Solution
from corank.solvers.targets import Range, in_unit, ordered, unit_range

Floats = NDArray[np.float64]

_LOOSE, _LEVEL = 0.01, 0.1
_ZERO = float(np.finfo(np.float64).eps ** 2)


@dataclass(frozen=True, eq=False)
class Smooth:
    """
    A smooth objective over parts, as every task is told.

    loss, mix, query_weight, has_intercept: as in the formula; whether b is learnt.
    factors: what columns are multiplied by.
    limits: scores that stand for 0 and 1 where the loss learns shares.
    pair_weight, n_scored: what the means are over.
    theta: weights and intercept where the loss is asked for.
    along: what the second derivative is multiplied by; None asks for value and gradient.
    """

    loss: str
    mix: float
    query_weight: str
    has_intercept: bool
    factors: Floats
    limits: Range | None
    pair_weight: float
    n_scored: int
    theta: Floats
    along: Floats | None = None


@dataclass(frozen=True, eq=False)
class Pull:
    """A part's value of the loss and its gradient; or 0, and a product with its second derivative."""

    value: float
    vector: Floats

    def __add__(self, other: Pull) -> Pull:
        return Pull(self.value + other.value, self.vector + other.vector)


@dataclass(frozen=True)
class Limits:
    """The range of scores of some queries, see `corank.solvers.targets.unit_range`."""

    low: float
    high: float

    def __add__(self, other: Limits) -> Limits:
        return Limits(min(self.low, other.low), max(self.high, other.high))


def limits_of(parts: Parts, rows: bool) -> Range:
    """Say which scores of all parts stand for 0 and for 1; `rows` as in `corank.solvers.targets.unit_range`."""
    found: Limits | None = parts.summed(_limits_part, rows, "range of scores")
    return (0.0, 1.0) if found is None else (found.low, found.high)


def minimise_parts(parts: Parts, objective: Smooth, sums: Moments, alpha: float, tol: float, max_iter: int) -> Solution:
    """
    Find the optimum.

    objective: what is minimised; its `theta` is where the search begins.
    sums: moments of the scaled columns, with sums over rows where mix is above 0.
    alpha, tol, max_iter: as in `corank.solvers.smooth_loss`.
    """
    d = len(objective.factors)
    penalty = np.full(len(objective.theta), alpha)
    penalty[d:] = 0.0
    precondition = _preconditioner(objective, sums, alpha)

    def at(theta: Floats) -> Pull:
        found: Pull = parts.summed(_pull_part, replace(objective, theta=theta), "gradient")
        return Pull(found.value + 0.5 * float(penalty @ theta**2), found.vector + penalty * theta)

    def bend(theta: Floats, v: Floats) -> Floats:
        found: Pull = parts.summed(_pull_part, replace(objective, theta=theta, along=v), "product")
        return penalty * v + found.vector

    theta = objective.theta
    here = first = at(theta)
    left = most = _gap(here.vector, alpha, d, objective, lambda v: bend(theta, v))
    enough, n_iter = 0.0, 0
    with progress(max_iter, "Newton steps", parts.verbose) as advance:
        while not left <= enough and n_iter < max_iter:
            n_iter += 1
            advance(1)
            origin = theta
            loose = max(min(_LOOSE, left / most), _LEVEL * enough / left)
            step = newton_step(lambda v, at=origin: bend(at, v), -here.vector, precondition, loose)  # type: ignore[misc]

            def along(t: float, begin: Floats = origin, step: Floats = step) -> tuple[Any, float, Callable[[], float]]:
                place = begin + t * step
                there = at(place)
                return there, float(there.vector @ step), lambda: float(step @ bend(place, step))

            t, here = line_length(along, -float(here.vector @ step))
            theta = origin + t * step
            left = _gap(here.vector, alpha, d, objective, lambda v, at=theta: bend(at, v))  # type: ignore[misc]
            enough = max(tol * min(here.value, -0.5 * float(first.vector @ theta)), _ZERO * first.value)
    if not left <= enough:
        warn(
            f"Newton's method stopped after {n_iter} steps, up to {left / here.value:.1e} of the objective above its "
            f"minimum, where tol={tol:g} asks for less; scale the columns of X, or raise alpha, tol or max_iter.",
            ConvergenceWarning,
        )
    return Solution(theta[:d], float(theta[d]) if objective.has_intercept else 0.0, here.value, n_iter)


def _gap(g: Floats, alpha: float, d: int, objective: Smooth, bend: Callable[[Floats], Floats]) -> float:
    """Bound how far the objective is above its minimum, see `corank.solvers.newton`."""
    if not objective.has_intercept:
        return float(g @ g) / (2.0 * alpha)
    unit = np.zeros(d + 1)
    unit[d] = 1.0
    column, w, b = bend(unit), g[:-1], float(g[-1])
    if not column[-1] > 0.0:
        return float(w @ w) / (2.0 * alpha)
    w = w - b / column[-1] * column[:-1]
    return float(w @ w) / (2.0 * alpha) + b * b / (2.0 * float(column[-1]))


def _preconditioner(objective: Smooth, sums: Moments, alpha: float) -> Callable[[Floats], Floats]:
    """Products with P⁻¹, P the second derivative of the squared loss times what bounds that of the loss."""
    d, mix, curvature = len(objective.factors), objective.mix, Loss.of(objective.loss).curvature
    P = np.zeros((d + 1, d + 1))
    if mix < 1.0:
        P[:d, :d] += (1.0 - mix) * curvature / sums.pair_weight * sums.pair[:d, :d]
    if sums.plain is not None and mix > 0.0:
        kept = np.r_[:d, d + 1]
        P += mix * curvature / sums.plain[-1, -1] * sums.plain[np.ix_(kept, kept)]
    P = P if objective.has_intercept else P[:d, :d]
    P[np.diag_indices(d)] += alpha
    P[np.diag_indices_from(P)] *= 1.0 + 1e-10
    factor = linalg.cho_factor(P)
    return lambda r: np.asarray(linalg.cho_solve(factor, r))


def _limits_part(problems: Iterator[Problem], rows: bool) -> Limits | None:
    total = None
    for problem in problems:
        if len(problem.data.scored_rows):
            own = Limits(*unit_range(problem.data, rows))
            total = own if total is None else total + own
    return total


def _pull_part(problems: Iterator[Problem], told: Smooth) -> Pull:
    """Sum the loss and its gradient, or a product with its second derivative, over the queries of a part."""
    total = Pull(0.0, np.zeros(len(told.theta)))
    for problem in problems:
        total = total + _pull(problem.data, told)
    return total


def _pull(data: RankingData, told: Smooth) -> Pull:
    loss = Loss.of(told.loss)
    if told.limits is not None:
        data = in_unit(data, told.limits)
    elif loss.scores == "signs" and told.mix == 0.0:
        data = ordered(data)
    assert data.y is not None
    order = data.order[data.is_scored[data.order]]
    loss.require_scores(data.y[order], data.queries.codes[order], told.mix > 0.0)
    terms: list[Evaluate] = []
    weighed = weigh_queries(data, told.query_weight)
    pair_weight = block_of(weighed)[1]
    if told.mix < 1.0 and pair_weight > 0.0:
        terms.append(pair_loss(weighed, loss, (1.0 - told.mix) * pair_weight / told.pair_weight))
    if told.mix > 0.0 and len(order):
        share = told.mix * len(order) / told.n_scored
        terms.append(row_loss(data.y[order], data.weight_of(order), loss, share))
    scores = Affine(LinearMap(ScaledRows(data.X, told.factors), order), told.has_intercept)
    value, vector = 0.0, np.zeros(len(told.theta))
    u = scores.scores(told.theta)
    moved = None if told.along is None else scores.scores(told.along)
    for term in terms:
        here = term(u)
        if moved is None:
            value += here.value
        vector += scores.gather(here.slope if moved is None else here.bend(moved))
    return Pull(value, vector)
