# mypy: disable-error-code="no-untyped-call"
"""Access to rows in kernels: dense or CSR, scaled or not, selected by type at compile time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import before_compiling


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


class DenseRows(NamedTuple):
    """
    The array of a dense matrix, C-contiguous.

    factors (n_features,): factor of each column, applied on access; None for no scaling.
    """

    values: NDArray[Any]
    factors: NDArray[np.float64] | None = None


class CSRRows(NamedTuple):
    """The arrays of a CSR matrix with unsigned indices."""

    data: NDArray[Any]
    indices: NDArray[np.uint32]  # column of each value, ascending inside a row
    indptr: NDArray[np.uint64]  # (n_rows + 1,): where each row begins
    factors: NDArray[np.float64] | None = None  # (n_features,): as in `DenseRows`


def as_core_rows(X: Any) -> DenseRows | CSRRows:
    """Convert rows to the form that kernels take."""
    rows, factors = plain(X), factors_of(X)
    if isinstance(rows, np.ndarray):
        return DenseRows(np.ascontiguousarray(rows), factors)
    indices = rows.indices.view(np.uint32) if rows.indices.dtype == np.int32 else rows.indices.astype(np.uint32)
    indptr = rows.indptr.view(np.uint64) if rows.indptr.dtype == np.int64 else rows.indptr.astype(np.uint64)
    return CSRRows(rows.data, indices, indptr, factors)


def dot(rows, i, w):  # type: ignore[no-untyped-def]
    """Return x_i · w, summed in float64."""
    raise NotImplementedError("for kernels only")


def dot_difference(rows, a, b, w):  # type: ignore[no-untyped-def]
    """Return (x_a − x_b) · w, summed in float64."""
    raise NotImplementedError("for kernels only")


def add_scaled(rows, i, scale, w):  # type: ignore[no-untyped-def]
    """Add scale · x_i to w."""
    raise NotImplementedError("for kernels only")


def add_difference(rows, a, b, scale, w):  # type: ignore[no-untyped-def]
    """Add scale · (x_a − x_b) to w."""
    raise NotImplementedError("for kernels only")


def list_row(rows, i, columns, values):  # type: ignore[no-untyped-def]
    """Write the columns and non-zero values of row i; return their number."""
    raise NotImplementedError("for kernels only")


def list_difference(rows, a, b, columns, values):  # type: ignore[no-untyped-def]
    """Write the columns and non-zero values of x_a − x_b, each column once; return their number."""
    raise NotImplementedError("for kernels only")


def prefetch_row(rows, i):  # type: ignore[no-untyped-def]
    """Prefetch the cache lines of row i."""
    raise NotImplementedError("for kernels only")


# after the names that it imports from here
before_compiling("corank.core.rows.access_code")
