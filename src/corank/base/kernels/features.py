"""
FeatureMap: explicit features Φ of a view, in which the penalty is ‖w‖² (Nyström approximation).

The features of a linear kernel are the view's columns. For other kernels they are computed from r basis rows R: with
K̂ = K[R, R] = U diag(κ) Uᵀ, Φ(x) = k(x, R) U diag(κ)^{-1/2}, so that f = Φ w has norm ‖w‖ in the kernel's space. The
coefficients of the paper's sparse form are a = U diag(κ)^{-1/2} w. Directions with κ near zero are dropped, so that
basis rows may repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.kernels.basis import Basis
from corank.base.kernels.kernel import inverse_root, require_square
from corank.base.kernels.views import View
from corank.errors import InputError
from corank.fitted import Part, Relations, Shapes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FeatureMap(Part):
    """Map from rows of X to rows of Φ."""

    _shapes: ClassVar[Shapes] = {"T": ("r", "n_features")}
    _relations: ClassVar[Relations] = {
        "T has a row for each basis row": lambda m: (
            (m.basis is None) == (m.T is None) and (m.basis is None or len(m.basis) == len(m.T))
        ),
        "n_features is positive": lambda m: m.n_features >= 0,
    }

    view: View  # columns and a kernel whose parameters are numbers
    basis: Basis | None  # the basis rows; None if Φ is the view's columns
    T: Floats | None  # (r, k): U diag(κ)^{-1/2}; None if Φ is the view's columns
    n_features: int  # k, the number of columns of Φ

    @classmethod
    def of_columns(cls, view: View, n_columns: int) -> FeatureMap:
        """Use the `n_columns` columns of a view with a linear kernel."""
        return cls(view, None, None, n_columns)

    @classmethod
    def on_basis(cls, basis: Basis, X: Any) -> FeatureMap:
        """Build the features of basis rows, in O(r³) time and three r × r arrays."""
        require_square(len(basis), 3)
        T = inverse_root(basis.gram(X))
        return cls(basis.view, basis, T, T.shape[1])

    def __call__(self, rows: Any) -> Floats:
        """Return Φ for rows with all columns; plain columns keep their dtype."""
        if self.basis is not None:
            return np.asarray(self.basis.similarities(rows) @ self.T)
        columns = self.view.select(rows)
        if columns.shape[1] != self.n_features:
            raise InputError(
                f"X has {columns.shape[1]} columns, but the model expects {self.n_features}; pass the same columns."
            )
        return np.asarray(columns.toarray() if sparse.issparse(columns) else columns)

    @property
    def inflation(self) -> float:
        """Factor by which rounding errors of similarities grow in Φ: √(Σ κ / min κ); 1 for plain columns."""
        if self.T is None or not self.T.size:
            return 1.0
        kappa = 1.0 / np.sum(self.T**2, axis=0)
        return float(np.sqrt(kappa.sum() / kappa.min()))

    def is_like(self, other: FeatureMap) -> bool:
        """Return whether another map has the same columns, kernel and basis."""
        if self is other:
            return True
        if self.basis is None or other.basis is None:
            alike = self.view.is_like(other.view) and self.n_features == other.n_features
            return self.basis is other.basis and alike
        return self.basis.is_like(other.basis) and np.array_equal(self.T, other.T)  # type: ignore[arg-type]

    def coefficients(self, w: Floats) -> Floats:
        """Convert weights of Φ to coefficients of the view's columns (linear kernel) or of the basis rows."""
        if self.basis is None or self.T is None:
            return w
        a = np.asarray(self.T @ w)
        return self.basis.column_weights(a) if self.view.kernel.is_linear else a


def stack_features(maps: tuple[FeatureMap, ...]) -> Callable[[Any], Floats]:
    """Return the map from rows of X to rows of Φ = [Φ_1 … Φ_M], the concatenated features of several views."""
    return maps[0] if len(maps) == 1 else lambda rows: np.hstack([phi(rows) for phi in maps])
