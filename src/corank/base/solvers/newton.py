"""
Truncated Newton method for a smooth convex loss plus alpha/2 ‖w‖².

Every step solves the Newton equations approximately by preconditioned conjugate gradients, which need Hessian products
only, and is followed by a line search on the directional derivative. A piecewise quadratic loss (the squared hinge)
reaches its exact optimum after finitely many steps. Reference: Lee and Lin, Large-scale linear RankSVM, Neural
Computation 2014.

It stops by the duality gap: with gradient g, the objective is at most ‖g‖²/(2 alpha) above its minimum. The bound is
strict and does not depend on the units of X: rows c times as large with c² times the penalty have the same gap.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from corank.base.solvers.comparisons import LinearMap
from corank.base.solvers.conjugate import MatVec, conjugate_gradients
from corank.base.solvers.solution import Floats, Solution
from corank.errors import InputError, warn

# largest squared residual of the Newton equations, relative to the gap left, and most steps of conjugate gradients
_LOOSE, _MAX_INNER = 0.01, 250
# directional derivative, relative to the first one, and interval, relative to its end, at which a line search ends
_LEVEL, _CLOSE = 0.1, 1e-10
# an objective that falls to this share of its first value is zero up to rounding
_ZERO = float(np.finfo(np.float64).eps ** 2)


class Derivatives(NamedTuple):
    """Value and derivatives of a function at one point."""

    value: float
    gradient: Floats
    hessian_product: MatVec  # multiplies a vector by the Hessian


Evaluate = Callable[[Floats], Derivatives]
"""Returns the derivatives of a loss at the given scores."""


class Point(NamedTuple):
    """
    A penalised objective at one θ.

    line: takes a step and returns the objective along it, as a function of t in θ + t · step.
    """

    theta: Floats
    value: float
    gradient: Floats
    hessian_product: MatVec  # multiplies a vector by the Hessian
    line: Callable[[Floats], Callable[[float], LinePoint]]


class LinePoint(NamedTuple):
    """A penalised objective at one point of a line."""

    derivative: float  # directional derivative
    curvature: Callable[[], float]  # computes the second directional derivative
    point: Callable[[], Point]  # computes everything else there


class Affine(NamedTuple):
    """Scores u = A w + b of rows as a linear map of θ = (w, b), or of θ = w without an intercept."""

    rows: LinearMap  # the rows of A
    has_intercept: bool  # whether b is learnt

    def scores(self, theta: Floats) -> Floats:
        """Return A w + b."""
        if not self.has_intercept:
            return self.rows.scores(theta)
        w, b = theta[:-1], theta[-1]
        return self.rows.scores(w) + b if w.any() else np.full(len(self.rows.order), b)

    def gather(self, h: Floats) -> Floats:
        """Return (Aᵀh, Σ h), or Aᵀh without an intercept."""
        return np.append(self.rows.gather(h), h.sum()) if self.has_intercept else self.rows.gather(h)


class ScoreObjective:
    """
    loss(s₀ + u(θ)) + alpha/2 ‖w‖² with scores u linear in θ; a line search multiplies by X only once.

    evaluate: returns the derivatives of the loss at given scores.
    scores: the map u(θ).
    prior: s₀, the scores at θ = 0.
    """

    def __init__(self, evaluate: Evaluate, scores: Affine, prior: Floats, alpha: float) -> None:
        self.d, self.alpha, self.has_intercept = scores.rows.X.shape[1], alpha, scores.has_intercept
        self.penalty = np.full(self.d + self.has_intercept, alpha)
        self.penalty[self.d :] = 0.0
        self._evaluate, self._scores, self._prior = evaluate, scores, prior

    def start(self) -> Point:
        """Return the objective at θ = 0."""
        return self._point(np.zeros(len(self.penalty)), self._prior, self._evaluate(self._prior))

    def gap(self, here: Point) -> float:
        """
        Bound how far the objective is above its minimum.

        The intercept has no penalty. It moves to its optimum first, to second order; the gap is that of the rest.
        """
        g = here.gradient
        if not self.has_intercept:
            return float(g @ g) / (2.0 * self.alpha)
        w, b = g[:-1], float(g[-1])
        column = here.hessian_product(np.append(np.zeros(self.d), 1.0))
        if not column[-1] > 0.0:
            return float(w @ w) / (2.0 * self.alpha)
        w = w - b / column[-1] * column[:-1]
        return float(w @ w) / (2.0 * self.alpha) + b * b / (2.0 * float(column[-1]))

    def _point(self, theta: Floats, u: Floats, loss: Derivatives) -> Point:
        penalty, scores = self.penalty, self._scores
        return Point(
            theta,
            loss.value + 0.5 * float(penalty @ theta**2),
            penalty * theta + scores.gather(loss.gradient),
            lambda v: penalty * v + scores.gather(loss.hessian_product(scores.scores(v))),
            partial(self._line, theta, u),
        )

    def _line(self, theta: Floats, u: Floats, step: Floats) -> Callable[[float], LinePoint]:
        moved = self._scores.scores(step)
        slope, curvature = float(self.penalty * theta @ step), float(self.penalty @ step**2)

        def along(t: float) -> LinePoint:
            there = self._evaluate(u + t * moved)
            return LinePoint(
                float(there.gradient @ moved) + slope + t * curvature,
                lambda: float(moved @ there.hessian_product(moved)) + curvature,
                lambda: self._point(theta + t * step, u + t * moved, there),
            )

        return along


@np.errstate(over="ignore", invalid="ignore")
def minimise(
    objective: ScoreObjective, precondition: MatVec, tol: float, max_iter: int, advance: Callable[[int], object]
) -> Solution:
    """Minimise a smooth objective from θ = 0."""
    here = first = objective.start()
    gap = first_gap = objective.gap(here)
    allowed, n_iter = 0.0, 0
    while not gap <= allowed and n_iter < max_iter:
        n_iter += 1
        advance(1)
        # as accurate as the last step allows, but not more accurate than the end requires
        tolerance = max(min(_LOOSE, gap / first_gap), _LEVEL * allowed / gap)
        step = conjugate_gradients(here.hessian_product, -here.gradient, precondition, tolerance, _MAX_INNER).x
        here = _search_line(here.line(step), -float(here.gradient @ step)).point()
        gap = objective.gap(here)
        # to second order, the decrease is half of what the first gradient predicts
        allowed = max(tol * min(here.value, -0.5 * float(first.gradient @ here.theta)), _ZERO * first.value)
    if not gap <= allowed:
        warn(
            f"Newton's method stopped after {n_iter} steps, and the objective may be {gap / here.value:.1e} of its "
            f"value above its minimum; tol={tol:g} requires less. Scale the columns of X, or raise alpha, tol or "
            "max_iter.",
            ConvergenceWarning,
        )
    d, theta, alpha = objective.d, here.theta, objective.alpha
    if not np.isfinite(here.value):
        raise InputError(f"the weights overflow with alpha={alpha:g}; scale the columns of X, or raise alpha.")
    return Solution(theta[:d], float(theta[d]) if objective.has_intercept else 0.0, here.value, n_iter)


def _search_line(along: Callable[[float], LinePoint], fall: float) -> LinePoint:
    """
    Return the end of a line search: the full step or, if the derivative is positive there, a point where it is small.

    Only derivatives are compared: near the minimum, values differ by less than their rounding errors.
    """
    low, high, t = 0.0, 1.0, 1.0
    there = along(t)
    while there.derivative > _LEVEL * fall or (t < 1.0 and there.derivative < -_LEVEL * fall):
        low, high = (low, t) if there.derivative > 0.0 else (t, high)
        curvature = there.curvature()
        t = t - there.derivative / curvature if curvature > 0.0 else low
        if not low < t < high:
            t = 0.5 * (low + high)
        there = along(t)
        if high - low <= _CLOSE * high:
            break
    return there
