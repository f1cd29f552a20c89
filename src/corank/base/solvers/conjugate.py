"""Conjugate gradients. This module imports numpy only, for commands that need no compiled kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MatVec = Callable[[Floats], Floats]
"""Multiplies a vector by a matrix."""


class ConjugateGradients(NamedTuple):
    """An approximate solution of a linear system."""

    x: Floats  # the solution
    n_iter: int  # number of steps
    converged: bool  # whether the residual is small enough


def conjugate_gradients(
    A: MatVec, b: Floats, precondition: MatVec, tol: float, max_iter: int, start: Floats | None = None
) -> ConjugateGradients:
    """Solve A x = b, A symmetric and positive definite, until ‖b − Ax‖² ≤ tol ‖b‖²."""
    x, r = (np.zeros_like(b), b.copy()) if start is None else (start.copy(), b - A(start))
    p, previous, enough = b, 1.0, tol * float(b @ b)
    for n_iter in range(max_iter):
        if float(r @ r) <= enough:
            return ConjugateGradients(x, n_iter, True)
        z = precondition(r)
        rz = float(r @ z)
        p = z + rz / previous * p if n_iter else z.copy()
        Ap = A(p)
        curvature = float(p @ Ap)
        if not curvature > 0.0:
            return ConjugateGradients(x, n_iter, False)
        x += rz / curvature * p
        r -= rz / curvature * Ap
        previous = rz
    return ConjugateGradients(x, max_iter, float(r @ r) <= enough)
