"""The Laplacian of given pairs, or of the edges of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from corank.pairwise.laplacian import Laplacian
from corank.pairwise.operands import Array, as_columns, as_dense, as_given, operands


@dataclass(frozen=True, eq=False)
class PairLaplacian(Laplacian):
    """
    Given pairs or the edges of a graph, as sparse matrices: L = BᵀB, H = B (see `Laplacian.from_pairs`).

    Attributes
    ----------
    n : int
        Number of rows.
    B : CSR array, shape (m, n)
        √w_k (e_a − e_b) for each pair.
    L : CSR array, shape (n, n)
        BᵀB.
    """

    n: int
    B: Any
    L: Any

    def apply(self, V: Array, out: Array | None = None) -> Array:
        """Return L V for a vector or block V, in `out` (which may be V) where given."""
        return self._product(self.L, V, out)

    def half(self, V: Array, out: Array | None = None) -> Array:
        """Return H V, one row for each pair, where HᵀH = L."""
        return self._product(self.B, V, out)

    def half_t(self, V: Array, out: Array | None = None) -> Array:
        """Return Hᵀ V."""
        return self._product(self.B.T, V, out)

    def quad(self, U: Any, V: Any = None) -> Any:
        """Return UᵀLV in float64 (V = U by default); U and V may be vectors, blocks or CSR matrices."""
        left = as_columns(U, self.n)
        right = left if V is None else as_columns(V, self.n)
        total = as_dense(left.T @ (self.L @ right))
        return as_given((total + total.T) / 2 if V is None else total, U, U if V is None else V)

    @staticmethod
    def _product(matrix: Any, V: Array, out: Array | None) -> Array:
        block, result = operands(V, out, matrix.shape)
        result[...] = matrix @ block
        return result
