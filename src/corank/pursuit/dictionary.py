"""Dictionary: the functions that a pursuit chooses from, as columns over the rows it learns from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.models.pursuit import TINY
from corank.kernels import Basis
from corank.pursuit.inner import Floats, Inner
from corank.solvers.solution import require_products

# entries of a block of columns: 16 MiB of float64
_BLOCK = 1 << 21
# a norm below this many units of rounding is that of a column which is constant in every query
_ROUNDING = 64.0


@dataclass(frozen=True, eq=False)
class Dictionary:
    """
    N columns over n rows, held once.

    >>> Dictionary(np.array([[1.0, 0.0], [1.0, 2.0]])).correlate(np.array([1.0, 1.0]))
    array([2., 2.])
    """

    D: Any

    def __len__(self) -> int:
        return int(self.D.shape[1])

    def correlate(self, v: Floats) -> Floats:
        """
        Return Dᵀv, the one product over the dictionary that a step costs.

        v (n,): one number per row.
        Returns: one number per column.
        """
        return np.asarray(self.D.T @ v.astype(self.D.dtype, copy=False), dtype=np.float64)

    def column(self, j: int) -> Floats:
        """Return one column."""
        return _dense(self.D[:, [j]])[:, 0]

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """
        Go through the columns, a few at a time.

        Yields: which columns, and a copy of them.
        """
        width = max(_BLOCK // max(self.D.shape[0], 1), 1)
        for start in range(0, len(self), width):
            piece = slice(start, min(start + width, len(self)))
            yield piece, _dense(self.D[:, piece])

    def squares(self, inner: Inner) -> Floats:
        """
        Return kᵀL̃k for each column k; 0 for a column that is constant in every query, up to rounding.

        inner: the inner product.
        Returns: squared norms.
        """
        out = np.concatenate([np.empty(0), *(inner.squares(block) for _, block in self.blocks())])
        return np.where(out > self.rounding(inner), out, 0.0)

    def rounding(self, inner: Inner) -> Floats:
        """
        Return what kᵀL̃k may amount to by rounding alone.

        inner: the inner product.
        Returns: one bound per column.
        """
        unit = (_ROUNDING * np.finfo(self.D.dtype).eps) ** 2 * inner.largest
        plain = [np.einsum("ij,ij->j", block, block) for _, block in self.blocks()]
        return np.asarray(np.maximum(unit * np.concatenate([np.empty(0), *plain]), TINY))


def kernel_columns(basis: Basis, X: Any, rows: NDArray[np.int64]) -> Dictionary:
    """
    Make a dictionary of similarities, in blocks of rows: one n × N array and little more.

    basis: what each column is the similarity to.
    rows (n,): those that the columns run over.
    Returns: of len(basis) columns, in the precision of X.
    """
    D = np.empty((len(rows), len(basis)), dtype=np.float32 if X.dtype == np.float32 else np.float64)
    for piece, K in basis.blocks(X, rows):
        D[piece] = K
    return Dictionary(D)


def feature_columns(X: Any, rows: NDArray[np.int64]) -> Dictionary:
    """
    Make a dictionary of the columns of X themselves.

    rows (n,): those that the columns run over.
    Returns: of as many columns as X.
    """
    chosen = X[rows]
    with np.errstate(over="ignore"):
        require_products(np.square(np.abs(chosen).max(), dtype=np.float64))
    return Dictionary(chosen.tocsc() if sparse.issparse(chosen) else chosen)


def _dense(block: Any) -> Floats:
    return np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)
