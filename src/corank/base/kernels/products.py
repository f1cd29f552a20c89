"""Linear, polynomial and cosine kernels."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from corank.base.kernels.kernel import Gram, Kernel, products, require_positive, squared_norms
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
