"""
Hyper-parameters: the evidence is maximised over parameters of a kernel and sigma.

    maximise log Z(θ) − ½ Σ_j ((θ_j − start_j) / log 10)²

over the logarithms θ of the kernel's parameters and of sigma, by L-BFGS. The second term, a broad log-normal prior
about where learning starts, decides only what answers do not: widths do not collapse or run away when there are few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from corank.errors import warn

Floats = NDArray[np.float64]
Objective = Callable[[Floats], tuple[float, Floats]]

# deviation of the prior of a logarithm; learning goes no further than this many of them
_BROAD, _FARTHEST = float(np.log(10.0)), 4.0
# deviation of the starts of further runs
_RESTART = 1.5


def maximise(
    evidence: Objective, start: Floats, n_restarts: int, rng: np.random.Generator
) -> tuple[Floats, float, int]:
    """
    Climb from `start`, and from random places about it; keep the best.

    evidence: θ to log Z and its slopes.
    Returns: θ, what was maximised there, and the number of evaluations.
    """
    calls, size = 0, 0.0

    def loss(theta: Floats) -> tuple[float, Floats]:
        nonlocal calls, size
        calls += 1
        value, slopes = evidence(theta)
        away = (theta - start) / _BROAD
        down = -slopes + away / _BROAD
        # the first step of L-BFGS is as long as the slope: of length 1, it stays where sites can follow
        size = size or max(1.0, float(np.linalg.norm(down)))
        return (-value + 0.5 * float(away @ away)) / size, down / size

    reach = _FARTHEST * _BROAD
    bounds = [(value - reach, value + reach) for value in start]
    best: Any = None
    for at in (start, *(start + _RESTART * rng.standard_normal(len(start)) for _ in range(n_restarts))):
        inside = np.clip(at, start - reach, start + reach)
        options = {"maxiter": 60, "ftol": 1e-6, "gtol": 1e-3}
        found = optimize.minimize(loss, inside, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        if best is None or found.fun < best.fun:
            best = found
    if np.any(np.abs(best.x - start) > 0.999 * reach):
        warn("a parameter of the kernel, or sigma, ran to the end of its range; scale columns, or pass it as a number.")
    return np.asarray(best.x), -float(best.fun) * size, calls


def dense(rows: Any) -> Any:
    """Rows as an array, for slopes that need their columns."""
    return rows.toarray() if sparse.issparse(rows) else rows
