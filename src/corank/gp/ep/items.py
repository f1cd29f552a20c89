"""
Items: the different rows of a problem, in an order of their own, so that the order in which they came does not matter.

Two equal rows are one item. With a graph over items, each is joined to its nearest ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from corank.errors import InputError
from corank.kernels import Basis, as_doubles, require_inner_product
from corank.kernels.views import View
from corank.pairwise import Laplacian

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Items:
    """
    The items that a model was told of.

    rows: one row of X for each, in float64, or objects; for a precomputed kernel, similarities to all rows of X.
    numbers (n,): which rows of X they are.
    of_row (n_rows,): the item of each row of X; −1 for rows of no weight.
    """

    rows: Any
    numbers: Integers
    of_row: Integers

    @classmethod
    def of(cls, X: Any, kept: NDArray[np.bool_]) -> Items:
        """Find the different ones among the rows that are kept."""
        at = np.flatnonzero(kept)
        rows = as_doubles(X[at])
        first, code = _distinct(rows)
        of_row = np.full(X.shape[0], -1)
        of_row[at] = code
        return cls(rows[first], at[first], of_row)

    def __len__(self) -> int:
        return len(self.numbers)

    def pairs(self, pairs: Integers, weight: Floats, known: Floats) -> tuple[Integers, Floats, Floats]:
        """
        Pairs of rows as pairs of items, without those of no weight and of equal rows, which tell nothing.

        weight, known (m,): of each pair, and by how much its first row is better before anything is learnt.
        """
        of_items = self.of_row[pairs]
        told = (weight > 0.0) & (of_items >= 0).all(axis=1) & (of_items[:, 0] != of_items[:, 1])
        return of_items[told], weight[told], known[told]

    def are_in(self, rows: Any) -> bool:
        """Whether rows are those that the items were found among."""
        found = as_doubles(rows[self.numbers])
        if sparse.issparse(found) or sparse.issparse(self.rows):
            return bool(abs(sparse.csr_array(found) - sparse.csr_array(self.rows)).max() == 0.0)
        return bool(np.array_equal(found, self.rows))

    def gram(self, view: View, at: Integers) -> Floats:
        """Similarities of some items."""
        with np.errstate(over="ignore", invalid="ignore"):
            K = self.rows[np.ix_(at, self.numbers[at])] if view.kernel.is_precomputed else view.kernel(self.rows[at])
        K = np.array(K, dtype=np.float64, order="C")
        require_inner_product(K, view.kernel)
        return K

    def basis(self, view: View, at: Integers) -> Basis:
        """Some items as rows that others are compared with."""
        numbers = self.numbers[at]
        return Basis(view, numbers, numbers if view.kernel.is_precomputed else self.rows[at])

    def laplacian(self, view: View, n_neighbors: int) -> Any:
        """L of the graph that joins each item to its nearest ones (eq. 4): sparse, every edge of weight 1."""
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
    """The first of each kind of row, in an order that only the rows decide, and the kind of each row."""
    if rows.ndim == 1:  # objects are told apart by nobody
        return np.arange(len(rows)), np.arange(len(rows))
    if not sparse.issparse(rows):
        _, first, code = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        return first, code.ravel()
    rows.sum_duplicates()
    kinds: dict[tuple[bytes, bytes], list[int]] = {}
    for row in range(rows.shape[0]):
        part = slice(rows.indptr[row], rows.indptr[row + 1])
        kinds.setdefault((rows.indices[part].astype(np.int64).tobytes(), rows.data[part].tobytes()), []).append(row)
    code = np.empty(rows.shape[0], dtype=np.int64)
    ordered = sorted(kinds.items())
    for number, (_, members) in enumerate(ordered):
        code[members] = number
    return np.array([members[0] for _, members in ordered], dtype=np.int64), code


def require_items(items: Integers) -> None:
    """Raise one sentence where answers name rows that no model knows."""
    if len(items) and items.min() < 0:
        raise InputError("pairs name a row that had no weight when the model was fitted; fit it again with that row.")
