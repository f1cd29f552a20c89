"""
Truncated Newton: minimise a smooth convex loss of the scores of rows plus alpha/2 ‖w‖².

Every step solves the Newton equations loosely by preconditioned conjugate gradients, which need products with the
second derivative only, and goes as far as the slope along it falls. A piecewise quadratic loss (the squared hinge) ends
at its exact optimum after finitely many steps. Reference: Lee and Lin, Large-scale linear RankSVM, Neural Computation
2014.

It stops by the duality gap: with g the gradient, the objective is at most ‖g‖²/(2 alpha) above its minimum. That is
certain, and means the same whatever the units of X: rows c times as large with c² times the penalty have the same gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from corank.errors import warn
from corank.solvers.linear_map import LinearMap
from corank.solvers.solution import Floats, Solution

T = TypeVar("T")
Vector = Callable[[Floats], Floats]

# loosest answer to the Newton equations, as a share of what is left to gain, and most steps towards it
_LOOSE, _MAX_INNER = 0.01, 250
# share of its first slope at which a line counts as level, and of the last place tried at which the search ends
_LEVEL, _CLOSE = 0.1, 1e-10
# an objective that falls to this share of its first value is zero up to rounding
_ZERO = float(np.finfo(np.float64).eps ** 2)


class Slopes(NamedTuple):
    """
    A loss of scores u at one place.

    bend: returns the product of its second derivative and a vector.
    """

    value: float
    slope: Floats
    bend: Vector


Evaluate = Callable[[Floats], Slopes]


@dataclass(frozen=True, eq=False)
class Affine:
    """
    Scores u = A w + b of rows as a linear map of θ = (w, b), or of θ = w without an intercept.

    rows: the rows of A.
    has_intercept: whether b is learnt.
    """

    rows: LinearMap
    has_intercept: bool

    def scores(self, theta: Floats) -> Floats:
        """
        Return the scores of the rows.

        theta: weights, then the intercept where there is one.
        Returns: A w + b.
        """
        return self.rows.scores(theta[:-1]) + theta[-1] if self.has_intercept else self.rows.scores(theta)

    def gather(self, h: Floats) -> Floats:
        """
        Return the transposed map.

        h: one number per row.
        Returns: (Aᵀh, Σ h), or Aᵀh.
        """
        return np.append(self.rows.gather(h), h.sum()) if self.has_intercept else self.rows.gather(h)


def minimise(
    evaluate: Evaluate,
    scores: Affine,
    prior: Floats,
    alpha: float,
    precondition: Vector,
    tol: float,
    max_iter: int,
    advance: Callable[[int], object],
) -> Solution:
    """
    Minimise loss(s₀ + u(θ)) + alpha/2 ‖w‖² over θ.

    evaluate: takes scores u and returns the loss there.
    scores: the map u(θ).
    prior: s₀, where scores are for θ = 0.
    alpha: weight of the penalty.
    precondition: product with P⁻¹, P near the second derivative in θ.
    tol: stops where the objective is above its minimum by at most `tol` times its value, or times what was gained since
        0, where that is less.
    max_iter: most Newton steps; a warning is given when they do not suffice.
    advance: is told of each step.
    """
    d = scores.rows.X.shape[1]
    penalty = np.full(d + scores.has_intercept, alpha)
    penalty[d:] = 0.0
    theta, u = np.zeros(len(penalty)), prior
    here = evaluate(u)
    g = first = scores.gather(here.slope)
    value = start = here.value
    left = most = _gap(scores, here, g, alpha)
    enough, n_iter = 0.0, 0
    while not left <= enough and n_iter < max_iter:
        n_iter += 1
        advance(1)

        def curve(v: Floats, at: Slopes = here) -> Floats:
            return penalty * v + scores.gather(at.bend(scores.scores(v)))

        # as well as the last step allows, but never better than the end asks for
        step = newton_step(curve, -g, precondition, max(min(_LOOSE, left / most), _LEVEL * enough / left))
        moved = scores.scores(step)
        along = partial(_along, evaluate, u, moved, float(penalty * theta @ step), float(penalty @ step**2))
        t, here = line_length(along, -float(g @ step))
        theta, u = theta + t * step, u + t * moved
        g = penalty * theta + scores.gather(here.slope)
        value, left = here.value + 0.5 * float(penalty @ theta**2), _gap(scores, here, g, alpha)
        # to second order, half of what the first slope promises is what was gained
        enough = max(tol * min(value, -0.5 * float(first @ theta)), _ZERO * start)
    if not left <= enough:
        warn(
            f"Newton's method stopped after {n_iter} steps, up to {left / value:.1e} of the objective above its "
            f"minimum, where tol={tol:g} asks for less; scale the columns of X, or raise alpha, tol or max_iter.",
            ConvergenceWarning,
        )
    return Solution(theta[:d], float(theta[d]) if scores.has_intercept else 0.0, value, n_iter)


def _gap(scores: Affine, here: Slopes, g: Floats, alpha: float) -> float:
    """
    Bound how far the objective is above its minimum.

    An intercept has no penalty; it is moved to its best place first, to second order, and the gap is that of the rest.
    """
    if not scores.has_intercept:
        return float(g @ g) / (2.0 * alpha)
    w, b, column = g[:-1], float(g[-1]), scores.gather(here.bend(np.ones(len(here.slope))))
    if not column[-1] > 0.0:
        return float(w @ w) / (2.0 * alpha)
    w = w - b / column[-1] * column[:-1]
    return float(w @ w) / (2.0 * alpha) + b * b / (2.0 * float(column[-1]))


def newton_step(curve: Vector, b: Floats, precondition: Vector, loose: float) -> Floats:
    """Conjugate gradients on curve(x) = b from 0, until ‖r‖² of the residual r is at most `loose` times ‖b‖²."""
    x, r = np.zeros_like(b), b.copy()
    z = precondition(r)
    p, rz, enough = z, float(r @ z), loose * float(b @ b)
    for _ in range(_MAX_INNER):
        Hp = curve(p)
        bend = float(p @ Hp)
        if not bend > 0.0:
            break
        x += rz / bend * p
        r -= rz / bend * Hp
        if float(r @ r) <= enough:
            break
        z = precondition(r)
        previous, rz = rz, float(r @ z)
        p = z + rz / previous * p
    return x


def _along(
    evaluate: Evaluate, u: Floats, moved: Floats, penalty_slope: float, penalty_bend: float, t: float
) -> tuple[Slopes, float, Callable[[], float]]:
    """The loss at u + t · moved, the slope of the objective there along the step, and what tells its bend."""
    there = evaluate(u + t * moved)
    slope = float(there.slope @ moved) + penalty_slope + t * penalty_bend
    return there, slope, lambda: float(moved @ there.bend(moved)) + penalty_bend


def line_length(along: Callable[[float], tuple[T, float, Callable[[], float]]], fall: float) -> tuple[float, T]:
    """
    Find how far to go along a step: all of it or, where the slope then rises again, to where it is nearly level.

    Only slopes are compared: near the minimum, values differ by less than their rounding.

    along: takes a place and returns what is there, the slope, and what tells the bend.
    fall: how steeply the objective falls at the start.
    """
    low, high, t = 0.0, 1.0, 1.0
    there, slope, bend = along(t)
    while slope > _LEVEL * fall or (t < 1.0 and slope < -_LEVEL * fall):
        low, high = (low, t) if slope > 0.0 else (t, high)
        rise = bend()
        t = t - slope / rise if rise > 0.0 else low
        if not low < t < high:
            t = 0.5 * (low + high)
        there, slope, bend = along(t)
        if high - low <= _CLOSE * high:
            break
    return t, there
