"""ScaledRows: rows whose columns are multiplied by factors on access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """The matrix X diag(factors), scaled on access, so that X may be memory-mapped."""

    X: Any  # the unscaled rows
    factors: NDArray[np.float64]  # (n_features,): factor of each column

    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return (int(self.X.shape[0]), int(self.X.shape[1]))

    @property
    def dtype(self) -> Any:
        """Data type of X."""
        return self.X.dtype

    def __getitem__(self, rows: Any) -> Any:
        """Return scaled rows as a float64 array or CSR matrix."""
        chosen = self.X[rows]
        is_dense = isinstance(chosen, np.ndarray)
        return chosen * self.factors if is_dense else chosen.multiply(self.factors[None, :]).tocsr()

    def select(self, columns: Any) -> ScaledRows:
        """Return some columns."""
        return ScaledRows(self.X[:, columns], self.factors[columns])

    def __matmul__(self, w: NDArray[Any]) -> Any:
        """Return the product with a vector or a matrix."""
        return self.X @ (self.factors * w if w.ndim == 1 else self.factors[:, None] * w)


def plain(X: Any) -> Any:
    """Return the unscaled rows of a `ScaledRows`, or X itself."""
    return X.X if isinstance(X, ScaledRows) else X


def factors_of(X: Any) -> NDArray[np.float64] | None:
    """Return the factors of a `ScaledRows`, or None."""
    return X.factors if isinstance(X, ScaledRows) else None
