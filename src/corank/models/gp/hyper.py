"""
Hyper-parameters: the evidence as a function of the parameters of a kernel, of sigma and of others, and its maximum.

    maximise log Z(θ) − ½ Σ_j ((θ_j − start_j) / log 10)²

over θ, the logarithms of the kernel's parameters and of sigma, and others, by L-BFGS. The second term is a broad
log-normal prior around the starting point. It keeps parameters finite that few answers leave undetermined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, sparse

from corank.base.kernels.views import View
from corank.errors import warn
from corank.models.gp.prior import DistinctRows

Floats = NDArray[np.float64]
Objective = Callable[[Floats], tuple[float, Floats]]

# standard deviation of the prior of a logarithm, and the bounds of the search in these units
_BROAD, _FARTHEST = float(np.log(10.0)), 4.0
# step of θ from which second derivatives are computed
_STEP = 0.1
# standard deviation of the starting points of restarts
_RESTART = 1.5


def maximise(
    evidence: Objective, start: Floats, n_restarts: int, rng: np.random.Generator
) -> tuple[Floats, float, int]:
    """Maximise from `start` and from random points around it; keep the best."""
    calls, size = 0, 0.0

    def loss(theta: Floats) -> tuple[float, Floats]:
        nonlocal calls, size
        calls += 1
        value, gradient = evidence(theta)
        away = (theta - start) / _BROAD
        descent = -gradient + away / _BROAD
        # L-BFGS starts with a step as long as the gradient: normalised to 1, sites converge from a warm start
        size = size or max(1.0, float(np.linalg.norm(descent)))
        return (-value + 0.5 * float(away @ away)) / size, descent / size

    reach = _FARTHEST * _BROAD
    bounds = [(value - reach, value + reach) for value in start]
    best: Any = None
    for point in (start, *(start + _RESTART * rng.standard_normal(len(start)) for _ in range(n_restarts))):
        clipped = np.clip(point, start - reach, start + reach)
        options = {"maxiter": 60, "ftol": 1e-6, "gtol": 1e-3}
        solution = optimize.minimize(loss, clipped, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        if best is None or solution.fun < best.fun:
            best = solution
    if np.any(np.abs(best.x - start) > 0.999 * reach):
        warn("a parameter of the kernel, or sigma, reached the end of its range; scale the columns, or pass a number.")
    return np.asarray(best.x), -float(best.fun) * size, calls


def nodes(evidence: Objective, theta: Floats, start: Floats, *, spread: bool) -> list[tuple[Floats, float]]:
    """
    Return points of the first k entries of θ, the others fixed, and logarithms of weights: ∫ Z p dθ ≈ Σ_j w_j Z(θ_j).

    At the maximum θ̂ of Z p, Z p is nearly proportional to the Gaussian q = N(θ̂, S), S⁻¹ = H + I/s², with the Hessian −H
    of log Z and the prior p = N(start, s² I) of `maximise`. The integral is the mean of Z p/q under q, by the cubature
    of third degree with the points θ̂ and θ̂ ± √(k + 1) times the columns of the symmetric root of S:

        log w_j = log c_j + log p(θ_j) − log q(θ_j),   c = 1/(k + 1) for θ̂, else 1/(2(k + 1)).

    The weights make kernels with different numbers of parameters comparable. The points are far from θ̂ in directions
    that few answers leave open; a Gaussian process at θ̂ alone would be too sure.

    spread: whether to return all points; otherwise only θ̂, which is Laplace's approximation.
    """
    k = len(start)
    gradient = evidence(theta)[1][:k]
    H = np.empty((k, k))
    for j in range(k):
        moved = theta.copy()
        moved[j] += _STEP
        H[j] = (gradient - evidence(moved)[1][:k]) / _STEP
    values, U = linalg.eigh(0.5 * (H + H.T))
    shrinkage = 1.0 + _BROAD**2 * np.maximum(values, 0.0)  # s² S⁻¹
    away = np.zeros((1, k))
    if spread:
        root = _BROAD * np.sqrt(k + 1.0) * (U / np.sqrt(shrinkage)) @ U.T
        away = np.concatenate([away, root, -root])
    points = theta[:k] + away
    log_c = np.log(np.where(np.arange(len(away)) == 0, 1.0, 0.5) / (k + 1.0)) if spread else np.zeros(1)
    log_p = -0.5 * np.sum(((points - start) / _BROAD) ** 2, axis=1)
    log_q = 0.5 * np.log(shrinkage).sum() - 0.5 * np.sum((away @ U / _BROAD) ** 2 * shrinkage, axis=1)
    return list(zip(points, (log_c + log_p - log_q).tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Evidence:
    """log Z at one θ, and its derivatives."""

    log_z: float
    gram_gradient: Callable[[], Floats]  # ∂ log Z/∂K over the items
    sigma_gradient: float  # derivative in log sigma
    free_gradient: Floats  # in parameters beside those of the kernel and sigma


@dataclass(frozen=True, eq=False)
class EvidenceOf:
    """
    log Z as a function of θ: logarithms of the kernel's parameters, ½ log(sigma² − least²), other parameters.

    items, item_numbers: the items in use; `observed` names them by their positions in `item_numbers`.
    """

    view: View
    n_theta: int  # number of learnt parameters of the kernel; 0 if it is fixed
    items: DistinctRows
    item_numbers: NDArray[np.int64]
    observed: Callable[[Floats, float, Floats], Evidence]  # of the Gram matrix, sigma and other parameters
    sigma: float | None  # None if it is learnt
    least: float = 0.0  # lower bound of a learnt sigma

    def parts(self, theta: Floats) -> tuple[View, float, Floats]:
        """Split θ into the view with its kernel, sigma, and the other parameters."""
        k = self.n_theta
        view = replace(self.view, kernel=self.view.kernel.with_theta(theta[:k]))
        if self.sigma is not None:
            return view, self.sigma, theta[k:]
        return view, float(np.hypot(np.exp(theta[k]), self.least)), theta[k + 1 :]

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """log Z and its gradient."""
        view, sigma, free = self.parts(theta)
        K = self.items.gram(view, self.item_numbers)
        result = self.observed(K, sigma, free)
        gradient = [result.free_gradient]
        if self.sigma is None:
            gradient.insert(0, np.array([(1.0 - (self.least / sigma) ** 2) * result.sigma_gradient]))
        if self.n_theta:
            rows = self.items.rows[self.item_numbers]
            dense = rows.toarray() if sparse.issparse(rows) else rows
            gradient.insert(0, view.kernel.theta_gradient(dense, K, result.gram_gradient()))
        return result.log_z, np.concatenate(gradient)
