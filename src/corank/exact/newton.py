"""
Truncated Newton: minimise a smooth convex loss of the scores of rows plus alpha/2 ‖w‖².

Every step solves the Newton equations loosely by preconditioned conjugate gradients, which need products with the
second derivative only, and halves the step until it pays. A piecewise quadratic loss (the squared hinge) ends at its
exact optimum after finitely many steps. Reference: Lee and Lin, Large-scale linear RankSVM, Neural Computation 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from corank.errors import warn
from corank.exact.linear import LinearMap
from corank.exact.solution import Floats, Solution

Vector = Callable[[Floats], Floats]

# loosest answer to the Newton equations, and most steps towards it
_LOOSE, _MAX_INNER = 0.1, 250
_SUFFICIENT, _SMALLEST_STEP = 1e-4, 1e-10
_ROUNDING = 1e-13


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
    evaluate: Evaluate, scores: Affine, alpha: float, precondition: Vector, tol: float, max_iter: int
) -> Solution:
    """
    Minimise loss(u(θ)) + alpha/2 ‖w‖² over θ.

    evaluate: takes scores u and returns the loss there.
    scores: the map u(θ).
    alpha: weight of the penalty.
    precondition: product with P⁻¹, P near the second derivative in θ.
    tol: stops when √(gᵀP⁻¹g) of the gradient g falls to `tol` times what it was at 0.
    max_iter: most Newton steps; a warning is given when they do not suffice.
    """
    d = scores.rows.X.shape[1]
    penalty = np.full(d + scores.has_intercept, alpha)
    penalty[d:] = 0.0
    theta, u = np.zeros(len(penalty)), np.zeros(len(scores.rows.order))
    here = evaluate(u)
    g = scores.gather(here.slope)
    first = size = float(np.sqrt(g @ precondition(g)))
    n_iter = 0
    while size > tol * first and n_iter < max_iter:
        n_iter += 1

        def curve(v: Floats, at: Slopes = here) -> Floats:
            return penalty * v + scores.gather(at.bend(scores.scores(v)))

        loose = min(_LOOSE, size / first) * size
        step = _newton_step(curve, -g, precondition, loose)
        moved = scores.scores(step)
        value, decrease = here.value + 0.5 * penalty @ theta**2, float(g @ step)
        t, there = 1.0, evaluate(u + moved)
        while t > _SMALLEST_STEP and not (
            there.value + 0.5 * penalty @ (theta + t * step) ** 2
            <= value + _SUFFICIENT * t * decrease + _ROUNDING * abs(value)
        ):
            t *= 0.5
            there = evaluate(u + t * moved)
        if t <= _SMALLEST_STEP:
            # rounding hides what is left to gain
            break
        theta, u, here = theta + t * step, u + t * moved, there
        g = penalty * theta + scores.gather(here.slope)
        size = float(np.sqrt(g @ precondition(g)))
    if size > tol * first:
        warn(
            f"Newton's method stopped after {n_iter} steps at {size / first:.1e} of the first gradient, above "
            f"tol={tol}; raise max_iter, tol or alpha.",
            ConvergenceWarning,
        )
    objective = here.value + 0.5 * float(penalty @ theta**2)
    return Solution(theta[:d], float(theta[d]) if scores.has_intercept else 0.0, objective, n_iter)


def _newton_step(curve: Vector, b: Floats, precondition: Vector, loose: float) -> Floats:
    """Conjugate gradients on curve(x) = b from 0, until √(rᵀP⁻¹r) of the residual r is at most `loose`."""
    x, r = np.zeros_like(b), b.copy()
    z = precondition(r)
    p, rz = z, float(r @ z)
    for _ in range(_MAX_INNER):
        Hp = curve(p)
        bend = float(p @ Hp)
        if not bend > 0.0:
            break
        x += rz / bend * p
        r -= rz / bend * Hp
        z = precondition(r)
        previous, rz = rz, float(r @ z)
        if rz <= loose * loose:
            break
        p = z + rz / previous * p
    return x
