"""
Smooth losses over parts: the truncated Newton method, with gradients and Hessian products summed over queries.

    mix · mean_D ℓ(y, w·x + b) + (1 − mix) · mean_P ℓ(t(y_a − y_b), w·(a − b)) + alpha/2 ‖w‖²

Each gradient and each Hessian product is one pass, which sends d numbers to every part and receives d. On a cluster the
rows stay in the memory of the workers; on one machine each pass reads them again. Some tens of passes reach the same
optimum as one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from corank.base.pairs import Moments
from corank.base.pairs.factors import weigh_queries
from corank.base.pairs.losses import Loss
from corank.base.solvers.linear_map import LinearMap
from corank.base.solvers.newton import Affine, Evaluate, LinePoint, Point, SmoothObjective, minimise
from corank.base.solvers.smooth_losses import block_of, moment_preconditioner, pair_loss, row_loss
from corank.base.solvers.solution import Solution
from corank.base.solvers.targets import Range, in_unit, ordered, unit_range
from corank.core.rows.scaled import ScaledRows
from corank.data.ranking import RankingData
from corank.deploy.distributed.parts import Parts
from corank.deploy.distributed.tasks import WholeQueries
from corank.progress import progress

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PartLoss:
    """A smooth loss and where to evaluate it: the settings of a pass."""

    loss: str  # loss, mix, query_weight: as in the formula
    mix: float
    query_weight: str
    has_intercept: bool  # whether b is learnt
    factors: Floats  # factors of the columns
    limits: Range | None  # scores that are mapped to 0 and 1, for a loss that learns shares
    pair_weight: float  # pair_weight, n_scored: denominators of the means
    n_scored: int
    theta: Floats  # weights and intercept
    direction: Floats | None = None  # vector to multiply by the Hessian; None computes value and gradient


@dataclass(frozen=True, eq=False)
class PartGradient:
    """Value and gradient of the loss of a part; or 0, and a Hessian product."""

    value: float
    vector: Floats

    def __add__(self, other: PartGradient) -> PartGradient:
        return PartGradient(self.value + other.value, self.vector + other.vector)


@dataclass(frozen=True)
class Limits:
    """Range of the scores of some queries, see `corank.base.solvers.targets.unit_range`."""

    low: float
    high: float

    def __add__(self, other: Limits) -> Limits:
        return Limits(min(self.low, other.low), max(self.high, other.high))


def limits_of(parts: Parts, rows: bool) -> Range:
    """Return the range of scores over all parts; `rows` as in `corank.base.solvers.targets.unit_range`."""
    found: Limits | None = parts.summed(_limits_part, rows, "range of scores")
    return (0.0, 1.0) if found is None else (found.low, found.high)


def minimise_parts(parts: Parts, loss: PartLoss, sums: Moments, alpha: float, tol: float, max_iter: int) -> Solution:
    """Minimise the objective over all parts."""
    precondition = moment_preconditioner(sums, loss.mix, alpha, Loss.of(loss.loss).curvature, loss.has_intercept)
    with progress(max_iter, "Newton steps", parts.verbose) as advance:
        return minimise(_PartsObjective(parts, loss, alpha), precondition, tol, max_iter, advance)


class _PartsObjective(SmoothObjective):
    """The objective over parts; every value, gradient and Hessian product is one pass."""

    def __init__(self, parts: Parts, loss: PartLoss, alpha: float) -> None:
        super().__init__(len(loss.factors), alpha, loss.has_intercept)
        self._parts, self._loss = parts, loss

    def start(self) -> Point:
        return self._point(self._loss.theta)

    def _point(self, theta: Floats) -> Point:
        found: PartGradient = self._parts.summed(_evaluate_part, replace(self._loss, theta=theta), "gradient")

        def hessian_product(v: Floats) -> Floats:
            settings = replace(self._loss, theta=theta, direction=v)
            product: PartGradient = self._parts.summed(_evaluate_part, settings, "product")
            return self.penalty * v + product.vector

        def line(step: Floats) -> Callable[[float], LinePoint]:
            def along(t: float) -> LinePoint:
                there = self._point(theta + t * step)
                derivative = float(there.gradient @ step)
                return LinePoint(derivative, lambda: float(step @ there.hessian_product(step)), lambda: there)

            return along

        value = found.value + 0.5 * float(self.penalty @ theta**2)
        return Point(theta, value, found.vector + self.penalty * theta, hessian_product, line)


def _limits_part(problems: Iterator[WholeQueries], rows: bool) -> Limits | None:
    total = None
    for problem in problems:
        if len(problem.data.scored_rows):
            own = Limits(*unit_range(problem.data, rows))
            total = own if total is None else total + own
    return total


def _evaluate_part(problems: Iterator[WholeQueries], loss: PartLoss) -> PartGradient:
    """Sum the loss and its gradient, or a Hessian product, over the queries of a part."""
    total = PartGradient(0.0, np.zeros(len(loss.theta)))
    for problem in problems:
        total = total + _evaluate(problem.data, loss)
    return total


def _evaluate(data: RankingData, settings: PartLoss) -> PartGradient:
    loss = Loss.of(settings.loss)
    if settings.limits is not None:
        data = in_unit(data, settings.limits)
    elif loss.scores == "signs" and settings.mix == 0.0:
        data = ordered(data)
    assert data.y is not None
    order = data.order[data.is_scored[data.order]]
    loss.require_scores(data.y[order], data.queries.codes[order], settings.mix > 0.0)
    terms: list[Evaluate] = []
    weighed = weigh_queries(data, settings.query_weight)
    pair_weight = block_of(weighed)[1]
    if settings.mix < 1.0 and pair_weight > 0.0:
        terms.append(pair_loss(weighed, loss, (1.0 - settings.mix) * pair_weight / settings.pair_weight))
    if settings.mix > 0.0 and len(order):
        share = settings.mix * len(order) / settings.n_scored
        terms.append(row_loss(data.y[order], data.weight_of(order), loss, share))
    scores = Affine(LinearMap(ScaledRows(data.X, settings.factors), order), settings.has_intercept)
    value, vector = 0.0, np.zeros(len(settings.theta))
    u = scores.scores(settings.theta)
    moved = None if settings.direction is None else scores.scores(settings.direction)
    for term in terms:
        here = term(u)
        if moved is None:
            value += here.value
        vector += scores.gather(here.gradient if moved is None else here.hessian_product(moved))
    return PartGradient(value, vector)
