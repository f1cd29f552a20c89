"""
Hyper-parameters: which numbers of a kernel can be learnt, and the evidence for them.

    maximise log Z(θ) − ½ Σ_j ((θ_j − start_j) / log 10)²

over the logarithms θ of the kernel's parameters and of sigma, by L-BFGS. The second term, a broad log-normal prior
about where learning starts, decides only what answers do not: widths do not collapse or run away when there are few.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse
from sklearn.gaussian_process.kernels import Kernel as SklearnKernel

from corank.errors import warn
from corank.kernels import ARDKernel, CallableKernel, GaussianKernel, Kernel

Floats = NDArray[np.float64]
Objective = Callable[[Floats], tuple[float, Floats]]

# deviation of the prior of a logarithm; learning goes no further than this many of them
_BROAD, _FARTHEST = float(np.log(10.0)), 4.0
# deviation of the starts of further runs
_RESTART = 1.5


class Tunable(ABC):
    """The numbers of a kernel, as logarithms."""

    theta: Floats

    @abstractmethod
    def at(self, theta: Floats) -> Kernel:
        """The kernel with other numbers."""

    @abstractmethod
    def slopes(self, theta: Floats, rows: Any, K: Floats, Q: Floats) -> Floats:
        """Σ_ij Q_ij ∂K_ij/∂θ for the symmetric Q."""


@dataclass
class Fixed(Tunable):
    """A kernel that has no numbers to learn."""

    kernel: Kernel

    def __post_init__(self) -> None:
        self.theta = np.empty(0)

    def at(self, theta: Floats) -> Kernel:
        """The kernel."""
        return self.kernel

    def slopes(self, theta: Floats, rows: Any, K: Floats, Q: Floats) -> Floats:
        """No slopes."""
        return np.empty(0)


@dataclass
class _Width(Tunable):
    """The one width of a Gaussian kernel."""

    kernel: GaussianKernel

    def __post_init__(self) -> None:
        self.theta = np.log([float(self.kernel.gamma)])

    def at(self, theta: Floats) -> Kernel:
        return GaussianKernel(float(np.exp(theta[0])))

    def slopes(self, theta: Floats, rows: Any, K: Floats, Q: Floats) -> Floats:
        # K = exp(−gamma D), so that ∂K/∂log gamma = K log K
        log_K = np.log(K, out=np.zeros_like(K), where=K > 0.0)
        return np.array([np.sum(Q * K * log_K)])


@dataclass
class _Widths(Tunable):
    """A width for each column."""

    kernel: ARDKernel

    def __post_init__(self) -> None:
        self.theta = np.log(np.array(self.kernel.gammas, dtype=np.float64))

    def at(self, theta: Floats) -> Kernel:
        return ARDKernel(tuple(np.exp(theta).tolist()))

    def slopes(self, theta: Floats, rows: Any, K: Floats, Q: Floats) -> Floats:
        X, W = rows - rows.mean(axis=0), Q * K
        # Σ W_ij (x_i − x_j)² = 2 (Σ_i x_i² Σ_j W_ij − xᵀWx), column by column
        return np.asarray(-2.0 * np.exp(theta) * (W.sum(axis=1) @ X**2 - np.sum(X * (W @ X), axis=0)))


@dataclass
class _Sklearn(Tunable):
    """What a kernel of scikit-learn calls theta."""

    kernel: SklearnKernel

    def __post_init__(self) -> None:
        self.theta = np.asarray(self.kernel.theta, dtype=np.float64)

    def at(self, theta: Floats) -> Kernel:
        return CallableKernel(self.kernel.clone_with_theta(theta))

    def slopes(self, theta: Floats, rows: Any, K: Floats, Q: Floats) -> Floats:
        _, of_theta = self.kernel.clone_with_theta(theta)(rows, eval_gradient=True)
        return np.asarray(np.einsum("ij,ijk->k", Q, of_theta))


def tunable(kernel: Kernel) -> Tunable:
    """Say what of a kernel can be learnt; nothing of kernels whose slopes are not known."""
    if isinstance(kernel, GaussianKernel):
        return _Width(kernel)
    if isinstance(kernel, ARDKernel):
        return _Widths(kernel)
    if isinstance(kernel, CallableKernel) and isinstance(kernel.function, SklearnKernel):
        return _Sklearn(kernel.function)
    return Fixed(kernel)


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
