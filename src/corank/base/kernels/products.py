"""Linear, polynomial and cosine kernels, and sums of kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from corank.base.kernels.kernel import Gram, Kernel, products, require_inner_product, require_positive, squared_norms
from corank.core.rows.scaled import ScaledRows
from corank.errors import InputError


@dataclass(frozen=True)
class LinearKernel(Kernel):
    """k(x, z) = x·z."""

    is_linear: ClassVar[bool] = True

    def _gram(self, X: Any, Z: Any) -> Gram:
        return products(X, Z)

    def diag(self, X: Any) -> Gram:
        """Compute ‖x‖² for each row."""
        return squared_norms(self._rows(X))


@dataclass(frozen=True)
class PolynomialKernel(Kernel):
    """k(x, z) = (gamma x·z + coef0)^degree."""

    degree: int = 2  # at least 1
    gamma: float = 1.0  # positive
    coef0: float = 1.0  # at least 0

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or int(self.degree) != self.degree or self.degree < 1:
            raise InputError(f"degree is {self.degree}; pass a whole number of at least 1.")
        require_positive(self.gamma, "gamma")
        coef0: Any = self.coef0
        if not (isinstance(coef0, Real) and 0 <= float(coef0) < np.inf):
            raise InputError(f"coef0 is {self.coef0}; pass a number of at least 0, so that the kernel is definite.")

    def _gram(self, X: Any, Z: Any) -> Gram:
        K = products(X, Z)
        K *= self.gamma
        K += self.coef0
        K **= self.degree
        return K

    def diag(self, X: Any) -> Gram:
        """Compute (gamma ‖x‖² + coef0)^degree for each row."""
        return np.asarray((self.gamma * squared_norms(self._rows(X)) + self.coef0) ** self.degree)


@dataclass(frozen=True)
class CosineKernel(Kernel):
    """k(x, z) = x·z / (‖x‖ ‖z‖); 0 if a row is zero."""

    scales_columns: ClassVar[bool] = False

    def _gram(self, X: Any, Z: Any) -> Gram:
        from sklearn.metrics.pairwise import cosine_similarity  # takes a second to import

        return np.asarray(cosine_similarity(X, Z))


@dataclass(frozen=True)
class SumKernel(Kernel):
    """
    k(x, z) = Σ_v c_v k_v(x, z), where each kernel uses its own columns.

    columns: Columns of each kernel, None for all columns; None uses all columns for every kernel.
    """

    kernels: tuple[Kernel, ...]  # the parts k_v
    weights: tuple[float, ...]  # c_v, at least 0
    columns: tuple[tuple[int, ...] | None, ...] | None = None

    def __post_init__(self) -> None:
        n = len(self.kernels)
        if not n or len(self.weights) != n or (self.columns is not None and len(self.columns) != n):
            raise InputError(f"there are {n} kernels and {len(self.weights)} weights; pass one weight per kernel.")
        if not all(np.isfinite(c) and c >= 0 for c in self.weights):
            raise InputError(f"weights is {self.weights}; pass finite numbers of at least 0.")
        if any(kernel.is_precomputed for kernel in self.kernels):
            raise InputError("a precomputed kernel cannot be part of a sum; add the Gram matrices and pass their sum.")

    # class attributes of other kernels; here they depend on the parts
    @property
    def scales_columns(self) -> bool:  # type: ignore[override]
        """Whether columns may be scaled to a common size."""
        return all(kernel.scales_columns for kernel in self.kernels)

    @property
    def takes_objects(self) -> bool:  # type: ignore[override]
        """Whether rows may be arbitrary objects."""
        return all(kernel.takes_objects for kernel in self.kernels)

    def diag(self, X: Any) -> Gram:
        """Add up the diagonals."""
        rows = self._rows(X)
        parts = [c * kernel.diag(self._select(v, rows)) for v, (kernel, c) in self._used]
        return np.asarray(sum(parts, start=np.zeros(rows.shape[0])))

    def fit(self, X: Any, rng: np.random.Generator, weights: NDArray[np.float64] | None = None) -> Kernel:
        """Compute the parameters of every kernel."""
        parts = zip(self.kernels, rng.spawn(len(self.kernels)), strict=True)
        return replace(self, kernels=tuple(k.fit(self._select(v, X), own, weights) for v, (k, own) in enumerate(parts)))

    def _rows(self, X: Any) -> Any:
        return X if self.takes_objects and getattr(X, "ndim", 2) == 1 else super()._rows(X)

    def _gram(self, X: Any, Z: Any) -> Gram:
        total = np.zeros((X.shape[0], Z.shape[0]))
        for v, (kernel, c) in self._used:
            own = self._select(v, X)
            # kernels are more accurate if both sides are the same array
            K = kernel(own, None if Z is X else self._select(v, Z))
            if Z is X and not kernel.is_positive_definite:
                require_inner_product(np.asarray(K, dtype=np.float64), kernel)
            total += c * K
        return total

    @property
    def _used(self) -> list[tuple[int, tuple[Kernel, float]]]:
        return [part for part in enumerate(zip(self.kernels, self.weights, strict=True)) if part[1][1] > 0.0]

    def _select(self, v: int, X: Any) -> Any:
        columns = None if self.columns is None else self.columns[v]
        if columns is None:
            return X
        return X.select(list(columns)) if isinstance(X, ScaledRows) else X[:, list(columns)]
