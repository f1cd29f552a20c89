"""
The distinct rows of a problem (items), sorted, so that the order of the input does not matter; their neighbour graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from corank.base.kernels.basis import Basis, as_doubles
from corank.base.kernels.kernel import require_inner_product
from corank.base.kernels.views import View
from corank.base.pairs import Laplacian
from corank.errors import InputError
from corank.fitted import Part, Relations, Shapes, are_below
from corank.memory import require_memory

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# arrays as large as the Gram matrix that learning needs at the same time
_GRAMS = 10


@dataclass(frozen=True, eq=False)
class DistinctRows(Part):
    """
    The distinct rows of X (items).

    rows: one row of X for each item, in float64, or objects; for a precomputed kernel, similarities to all rows of X.
    """

    _shapes: ClassVar[Shapes] = {"rows": ("items", "..."), "numbers": ("items",), "of_row": ("rows",)}
    _relations: ClassVar[Relations] = {
        "of_row names items": lambda r: are_below(r.of_row, len(r), -1),
        "numbers names rows": lambda r: are_below(r.numbers, len(r.of_row)),
        "rows are numbers": lambda r: r.rows.dtype in (np.float64, object),
    }

    rows: Any
    numbers: Integers  # (n,): row numbers in X
    of_row: Integers  # (n_rows,): the item of each row of X; −1 for rows of weight 0

    @classmethod
    def of(cls, X: Any, kept: NDArray[np.bool_]) -> DistinctRows:
        """Find the distinct rows among those marked in `kept`."""
        numbers = np.flatnonzero(kept)
        rows = as_doubles(X[numbers])
        first, code = _distinct(rows)
        of_row = np.full(X.shape[0], -1)
        of_row[numbers] = code
        return cls(rows[first], numbers[first], of_row)

    def __len__(self) -> int:
        return len(self.numbers)

    def pairs(self, pairs: Integers, weight: Floats, offset: Floats) -> tuple[Integers, Floats, Floats]:
        """Turn pairs of rows into pairs of items, without pairs of weight 0 and of equal rows."""
        of_items = self.of_row[pairs]
        kept = (weight > 0.0) & (of_items >= 0).all(axis=1) & (of_items[:, 0] != of_items[:, 1])
        return of_items[kept], weight[kept], offset[kept]

    def are_in(self, rows: Any) -> bool:
        """Whether these are the rows of X."""
        own = as_doubles(rows[self.numbers])
        if sparse.issparse(own) or sparse.issparse(self.rows):
            return bool(abs(sparse.csr_array(own) - sparse.csr_array(self.rows)).max() == 0.0)
        return bool(np.array_equal(own, self.rows))

    def gram(self, view: View, chosen: Integers) -> Floats:
        """Gram matrix of the items `chosen`; raises `InputError` if learning needs more than the free memory."""
        require_memory(len(chosen), 8.0 * _GRAMS * len(chosen) ** 2, "set n_basis to 1,000")
        with np.errstate(over="ignore", invalid="ignore"):
            if view.kernel.is_precomputed:
                K = self.rows[np.ix_(chosen, self.numbers[chosen])]
            else:
                K = view.kernel(self.rows[chosen])
        K = np.array(K, dtype=np.float64, order="C")
        require_inner_product(K, view.kernel)
        return K

    def basis(self, view: View, chosen: Integers) -> Basis:
        """The items `chosen` as a basis."""
        numbers = self.numbers[chosen]
        return Basis(view, numbers, numbers if view.kernel.is_precomputed else self.rows[chosen])

    def laplacian(self, view: View, n_neighbors: int) -> Any:
        """Sparse Laplacian of the graph of nearest neighbours (eq. 4), with edges of weight 1."""
        n = len(self)
        k = min(n_neighbors, n - 1)
        if k < 1:
            return sparse.csr_array((n, n))
        if view.kernel.is_precomputed or self.rows.ndim == 1:
            K = self.gram(view, np.arange(n))
            size = np.diagonal(K)
            squares = np.maximum(size[:, None] + size - 2.0 * K, 0.0)
            np.fill_diagonal(squares, 0.0)
            near = NearestNeighbors(n_neighbors=k, metric="precomputed").fit(np.sqrt(squares)).kneighbors_graph()
        else:
            near = NearestNeighbors(n_neighbors=k).fit(self.rows).kneighbors_graph()
        return Laplacian.from_graph(near.maximum(near.T)).L


def _distinct(rows: Any) -> tuple[Integers, Integers]:
    """Return the positions of the sorted distinct rows, and the number of the distinct row that equals each row."""
    if rows.ndim == 1:  # objects are assumed to be distinct
        return np.arange(len(rows)), np.arange(len(rows))
    if not sparse.issparse(rows):
        _, first, code = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        return first, code.ravel()
    rows.sum_duplicates()
    rows_of_key: dict[tuple[bytes, bytes], list[int]] = {}
    for row in range(rows.shape[0]):
        part = slice(rows.indptr[row], rows.indptr[row + 1])
        key = rows.indices[part].astype(np.int64).tobytes(), rows.data[part].tobytes()
        rows_of_key.setdefault(key, []).append(row)
    code = np.empty(rows.shape[0], dtype=np.int64)
    ordered = sorted(rows_of_key.items())
    for number, (_, members) in enumerate(ordered):
        code[members] = number
    return np.array([members[0] for _, members in ordered], dtype=np.int64), code


def require_items(items: Integers) -> None:
    """Raise `InputError` if answers name rows that had weight 0 in ``fit``."""
    if len(items) and items.min() < 0:
        raise InputError("pairs name a row that had weight 0 in fit; fit again with this row.")
