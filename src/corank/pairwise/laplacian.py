"""Laplacian: who is compared with whom as a matrix that is applied and never built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.data.problem.queries import Queries
from corank.data.problem.ranking import RankingData
from corank.data.problem.weights import as_weights
from corank.errors import InputError
from corank.pairwise.operands import Array, as_edges, as_ends

if TYPE_CHECKING:
    from corank.pairwise.pair_graph import PairLaplacian
    from corank.pairwise.query_graph import QueryLaplacian

ROWS = ("all", "scored", "unscored")


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
        *,
        ties: bool = False,
        weights: ArrayLike | None = None,
    ) -> QueryLaplacian:
        """
        Compare the rows of a query with each other: L = ⊕_q c_q (W_q diag(w) − w wᵀ), W_q = Σ w.

        Without row weights that is c_q (n_q I − 1 1ᵀ). Scored rows are compared where their scores differ: the same
        less c_q (W_g diag(w) − w wᵀ) for each grade g of the query.

        Parameters
        ----------
        data : RankingData or Queries
            The grouping of the rows.
        query_weight : {"pairs", "equal", "rows"}
            c_q, see `query_factors`.
        rows : {"all", "scored", "unscored"}
            The rows that take part; the others give zero. Queries know no scores: "all" only.
        ties : bool
            Whether two scored rows of equal score are compared; all other rows are, whatever they are.
        weights : array-like of shape (n_rows,), optional
            Row weights w, a pair weighs w_i w_j; those of a RankingData by default.

        Returns
        -------
        QueryLaplacian
            Of shape (n_rows, n_rows), applied in O(n).
        """
        # its file imports this one
        from corank.pairwise.query_graph import QueryLaplacian

        if rows not in ROWS or (rows != "all" and isinstance(data, Queries)):
            known = ROWS if rows not in ROWS else ("all (Queries hold no scores; pass RankingData)",)
            raise InputError(f"rows is {rows!r}; choose one of {', '.join(known)}.")
        queries = data if isinstance(data, Queries) else data.queries
        n, order, y = len(queries.codes), queries.order, None
        w = None if weights is None else as_weights(weights, n)
        is_in = np.ones(n, dtype=bool)
        if isinstance(data, RankingData):
            w = data.weights if w is None else w
            if rows != "all":
                is_in = data.is_scored if rows == "scored" else ~data.is_scored
            if rows == "scored" and not ties and data.y is not None:
                order, y = data.order, data.y
        if w is not None:
            is_in = is_in & (w > 0.0)
        order = order[is_in[order]]
        w = np.empty(0) if w is None else w[order]
        return QueryLaplacian.of(n, order, queries.codes[order], w, None if y is None else y[order], query_weight)

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
        # its file imports this one
        from corank.pairwise.pair_graph import PairLaplacian

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
