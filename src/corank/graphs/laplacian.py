"""Laplacian: who is compared with whom as a matrix that is applied and never built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.core.centre import FULL, HALF, HALF_T, centre_blocks
from corank.core.threads import cut, n_threads, spread
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.weights import as_weights
from corank.errors import InputError
from corank.graphs.factors import query_factors
from corank.graphs.operands import Array, as_columns, as_dense, as_edges, as_ends, as_given, operands

if TYPE_CHECKING:
    from corank.graphs.pair import PairLaplacian

ROWS = ("all", "scored", "unscored")

# quadratic forms are summed over pieces of about this many entries
_PIECE = 1 << 21


class Laplacian(ABC):
    """
    A symmetric positive semidefinite matrix L with vᵀLv = Σ of w_ij (v_i − v_j)² over the compared pairs.

    Make one with `per_query`, `one_query`, `from_pairs` or `from_graph`. ``L @ V`` takes a vector or a block of
    columns; rows that are compared with nobody give zero.

    Examples
    --------
    >>> L = Laplacian.per_query(Queries.of(["a", "a", "b", "b", "b"], 5))
    >>> L @ np.array([0.0, 1.0, 5.0, 5.0, 8.0])
    array([-1.,  1., -3., -3.,  6.])
    """

    n: int

    @staticmethod
    def per_query(
        data: RankingData | Queries,
        query_weight: str = "pairs",
        rows: str = "all",
        weights: ArrayLike | None = None,
    ) -> QueryLaplacian:
        """
        Compare all rows of a query with each other: L = ⊕_q c_q (W_q diag(w) − w wᵀ), W_q = Σ w.

        Without row weights that is c_q (n_q I − 1 1ᵀ).

        Parameters
        ----------
        data : RankingData or Queries
            The grouping of the rows.
        query_weight : {"pairs", "equal", "rows"}
            c_q, see `query_factors`.
        rows : {"all", "scored", "unscored"}
            The rows that take part; the others give zero. Queries know no scores: "all" only.
        weights : array-like of shape (n_rows,), optional
            Row weights w; a pair weighs w_i w_j.

        Returns
        -------
        QueryLaplacian
            Of shape (n_rows, n_rows), applied in O(n).
        """
        if rows not in ROWS or (rows != "all" and isinstance(data, Queries)):
            known = ROWS if rows not in ROWS else ("all (Queries hold no scores; pass RankingData)",)
            raise InputError(f"rows is {rows!r}; choose one of {', '.join(known)}.")
        queries = data if isinstance(data, Queries) else data.queries
        n = len(queries.codes)
        is_in = np.ones(n, dtype=bool)
        if isinstance(data, RankingData) and rows != "all":
            is_in = data.is_scored if rows == "scored" else ~data.is_scored
        w = np.ones(n) if weights is None else as_weights(weights, n)
        n_q = np.bincount(queries.codes[is_in], minlength=len(queries))
        W_q = np.bincount(queries.codes[is_in], weights=w[is_in], minlength=len(queries))
        # a row alone in its query is compared with nobody, and rows of weight zero have no mean
        compares = (n_q >= 2) & (W_q > 0)
        is_in = is_in & compares[queries.codes]
        order = queries.order[is_in[queries.order]]
        starts = np.append(0, np.cumsum(n_q[compares]))
        squares = np.bincount(queries.codes[is_in], weights=w[is_in] ** 2, minlength=len(queries))
        scale = (query_factors(W_q, query_weight, W_q**2 - squares) * W_q)[compares]
        kept = np.empty(0) if weights is None else w[order]
        return QueryLaplacian(n, order, starts, kept, scale, np.flatnonzero(~is_in))

    @staticmethod
    def one_query(n: int, query_weight: str = "pairs", weights: ArrayLike | None = None) -> QueryLaplacian:
        """
        Compare all of n rows with each other.

        Parameters
        ----------
        n : int
            Number of rows.
        query_weight : {"pairs", "equal", "rows"}
            See `per_query`.
        weights : array-like of shape (n,), optional
            Row weights.

        Returns
        -------
        QueryLaplacian
            Applied in O(n).
        """
        return Laplacian.per_query(Queries.of(None, n), query_weight, weights=weights)

    @staticmethod
    def from_pairs(pairs: ArrayLike, n: int, weights: ArrayLike | None = None) -> PairLaplacian:
        """
        Compare the rows of given pairs: L = BᵀB, where row k of B is √w_k (e_a − e_b).

        Parameters
        ----------
        pairs : array-like of int, shape (m, 2)
            Row numbers; a pair given twice counts twice.
        n : int
            Number of rows.
        weights : array-like of shape (m,), optional
            Pair weights; 1 by default.

        Returns
        -------
        PairLaplacian
            Of shape (n, n), applied in O(m).
        """
        # PairLaplacian is a Laplacian, so its file imports this one
        from corank.graphs.pair import PairLaplacian

        ends = as_ends(pairs, n)
        m = len(ends)
        root = np.sqrt(np.ones(m) if weights is None else as_weights(weights, m, "pair"))
        values = np.stack([root, -root], axis=1).ravel()
        B = sparse.csr_array((values, ends.ravel(), np.arange(0, 2 * m + 1, 2)), shape=(m, n))
        B.sum_duplicates()  # in place; a row compared with itself is compared with nobody
        return PairLaplacian(n, B, (B.T @ B).tocsr())

    @staticmethod
    def from_graph(W: Any) -> PairLaplacian:
        """
        Compare neighbours in a weighted graph: L = diag(W 1) − W.

        Parameters
        ----------
        W : sparse matrix or ndarray, shape (n, n)
            Symmetric non-negative weights; the diagonal has no effect.

        Returns
        -------
        PairLaplacian
            Applied in O(number of edges).
        """
        ends, weights, n = as_edges(W)
        return Laplacian.from_pairs(ends, n, weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns of L."""
        return (self.n, self.n)

    @abstractmethod
    def apply(self, V: Array, out: Array | None = None) -> Array:
        """
        Apply L to a vector or block of columns.

        Parameters
        ----------
        V : array of shape (n,) or (n, k)
            Vector or block.
        out : array, optional
            Where to write the result; may be V where the shapes agree.

        Returns
        -------
        array
            L V.
        """

    @abstractmethod
    def half(self, V: Array, out: Array | None = None) -> Array:
        """
        Apply H, where HᵀH = L.

        Parameters
        ----------
        V : array of shape (n,) or (n, k)
            Vector or block.
        out : array, optional
            Where to write the result; may be V where the shapes agree.

        Returns
        -------
        array
            H V.
        """

    @abstractmethod
    def half_t(self, V: Array, out: Array | None = None) -> Array:
        """
        Apply Hᵀ, where HᵀH = L.

        Parameters
        ----------
        V : array of shape (n,) or (n, k)
            Vector or block; for Hᵀ, with as many rows as H has.
        out : array, optional
            Where to write the result; may be V where the shapes agree.

        Returns
        -------
        array
            Hᵀ V.
        """

    @abstractmethod
    def quad(self, U: Any, V: Any = None) -> Any:
        """
        Compute UᵀLV in float64.

        Parameters
        ----------
        U : array or CSR matrix of n rows
            Vector or block.
        V : array or CSR matrix of n rows, optional
            Vector or block; U by default.

        Returns
        -------
        float or array
            The quadratic form; an axis of a vector is dropped.
        """

    def __matmul__(self, V: Array) -> Array:
        return self.apply(V)

    def toarray(self) -> NDArray[np.float64]:
        """
        Build L as a dense array of n² numbers, for small n.

        Returns
        -------
        array of float64, shape (n, n)
            L.
        """
        return self.apply(np.eye(self.n))


@dataclass(frozen=True, eq=False)
class QueryLaplacian(Laplacian):
    """
    All pairs inside each query, in O(n): subtract the query's mean and scale (see `Laplacian.per_query`).

    H is square, and symmetric where rows carry no weights: H_q = √(c_q n_q) (I − 1 1ᵀ/n_q).

    Attributes
    ----------
    n : int
        Number of rows.
    order, starts : arrays of int64
        Query q compares the rows ``order[starts[q]:starts[q + 1]]``, two or more.
    weights : array of float64
        Row weights in the order of `order`; empty when all are 1.
    scale : array of float64
        c_q W_q for each query.
    idle : array of int64
        Rows that are compared with nobody.
    """

    n: int
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    weights: NDArray[np.float64]
    scale: NDArray[np.float64]
    idle: NDArray[np.int64]

    def apply(self, V: Array, out: Array | None = None) -> Array:
        """Return L V for a vector or block V, in `out` (which may be V) where given."""
        return self._centre(V, out, FULL)

    def half(self, V: Array, out: Array | None = None) -> Array:
        """Return H V, where HᵀH = L."""
        return self._centre(V, out, HALF)

    def half_t(self, V: Array, out: Array | None = None) -> Array:
        """Return Hᵀ V."""
        return self._centre(V, out, HALF_T)

    def quad(self, U: Any, V: Any = None) -> Any:
        """Return UᵀLV in float64, summed over pieces: no copy of U is made, nor a dense one of a CSR matrix."""
        if np.ndim(U) == 1 and np.ndim(V) == (V is not None):
            h = self.half(np.asarray(U, dtype=np.float64))
            return float(h @ (h if V is None else self.half(np.asarray(V, dtype=np.float64))))
        blocks = [as_columns(block, self.n) for block in ((U,) if V is None else (U, V))]
        total = np.zeros((blocks[0].shape[1], blocks[-1].shape[1]))
        length = max(_PIECE // max(*total.shape, 1), 1)
        w = self.weights if len(self.weights) else np.ones(len(self.order))
        for first, last in cut(self.starts, len(self.order) // length + 1):
            begin, end = self.starts[first], self.starts[last]
            query = np.repeat(np.arange(last - first), np.diff(self.starts[first : last + 1]))
            share = w[begin:end] / np.bincount(query, weights=w[begin:end])[query]
            average = sparse.csr_array(
                (share, self.order[begin:end], self.starts[first : last + 1] - begin), shape=(last - first, self.n)
            )
            means = [as_dense(average @ block) for block in blocks]
            root = np.sqrt(w[begin:end] * self.scale[first + query])[:, None]
            for at in range(0, end - begin, length):
                piece = slice(at, at + length)
                rows = self.order[begin:end][piece]
                H = [
                    root[piece] * (as_dense(block[rows]) - mean[query[piece]])
                    for block, mean in zip(blocks, means, strict=True)
                ]
                total += H[0].T @ H[-1]
        return as_given(total, U, U if V is None else V)

    def _centre(self, V: Array, out: Array | None, form: int) -> Array:
        block, result = operands(V, out, (self.n, self.n))
        columns, target = as_columns(block, self.n), as_columns(result, self.n)
        rows, starts = self.order.view(np.uint64), self.starts.view(np.uint64)
        weights, scale = self.weights, self.scale
        spread(
            lambda first, last: centre_blocks(columns, target, rows, starts, weights, scale, form, first, last),
            cut(self.starts, n_threads()),
        )
        target[self.idle] = 0.0
        return result
