"""Laplacian: who is compared with whom as a matrix that is applied and never built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.core.centre import FULL, HALF, HALF_T, INVERSE, centre_blocks
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

# the share of a query's squared weight that its pairs must have, or rounding made them
_LEAST = 1e-12
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
    Pairs inside each query, in O(n): subtract means of the query and of its grades, and scale (see `centre_blocks`).

    H is square, and symmetric where rows carry no weights. A query is cut into runs that are compared with each other,
    its grades; where all its rows are compared it is one run.

    Attributes
    ----------
    n : int
        Number of rows.
    order, starts : arrays of int64
        Query q compares the rows ``order[starts[q]:starts[q + 1]]``, two or more.
    runs : array of int64, shape (n_runs + 1,)
        Where each run begins in `order`.
    keep : array of float64, shape (n_runs,)
        √(1 − W_g/W_q), W_g the weight of the run; 1 where a query is one run.
    weights : array of float64
        Row weights in the order of `order`; empty when all are 1.
    scale : array of float64
        c_q W_q for each query.
    pair_weight : array of float64
        Weight of all pairs of each query.
    idle : array of int64
        Rows that are compared with nobody.
    """

    n: int
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    runs: NDArray[np.int64]
    keep: NDArray[np.float64]
    weights: NDArray[np.float64]
    scale: NDArray[np.float64]
    pair_weight: NDArray[np.float64]
    idle: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        n: int,
        order: NDArray[np.int64],
        query: NDArray[np.int64],
        w: NDArray[np.float64],
        y: NDArray[np.float64] | None,
        query_weight: str,
    ) -> QueryLaplacian:
        """
        Compare rows that stand query by query.

        Parameters
        ----------
        n : int
            Number of all rows.
        order, query : arrays of int64
            Rows that take part, and the query of each, ascending.
        w : array of float64
            Their weights, above zero; empty when all are 1.
        y : array of float64, or None
            Their scores, ascending in each query, where only different ones are compared.
        query_weight : {"pairs", "equal", "rows"}
            c_q, see `query_factors`.

        Returns
        -------
        QueryLaplacian
            The matrix.
        """
        weight = w if len(w) else np.ones(len(order))
        is_start = np.diff(query, prepend=-1) != 0
        is_run = is_start if y is None else is_start | (np.diff(y, prepend=np.nan) != 0)
        code, run = np.cumsum(is_start) - 1, np.cumsum(is_run) - 1
        W_q, W_g = np.bincount(code, weight), np.bincount(run, weight)
        # whose squares are no pairs: rows, or grades
        same = np.bincount(code, weight**2) if y is None else np.bincount(code[is_run], W_g**2)
        twice_pairs = W_q**2 - same
        c = query_factors(W_q, query_weight, twice_pairs)
        compares = (c > 0.0) & (twice_pairs > _LEAST * W_q**2)
        is_in = compares[code]
        kept = np.ones(int((is_run & is_in).sum()))
        if y is not None:
            kept = np.sqrt(1.0 - (W_g / W_q[code[is_run]])[is_in[is_run]])
        order, n_in = order[is_in], int(is_in.sum())
        idle = np.ones(n, dtype=bool)
        idle[order] = False
        return cls(
            n, order, np.append(np.flatnonzero(is_start[is_in]), n_in), np.append(np.flatnonzero(is_run[is_in]), n_in),
            kept, w[is_in] if len(w) else w, (c * W_q)[compares], (c * twice_pairs)[compares] / 2, np.flatnonzero(idle),
        )  # fmt: skip

    @cached_property
    def query_runs(self) -> NDArray[np.int64]:
        """Query q owns runs ``query_runs[q]`` to ``query_runs[q + 1]``."""
        return np.searchsorted(self.runs, self.starts)

    def of_queries(self, first: int, last: int) -> QueryLaplacian:
        """
        Take the block of some queries.

        Parameters
        ----------
        first, last : int
            Queries first to last − 1, in the order of `starts`.

        Returns
        -------
        QueryLaplacian
            Over their rows, in the order of `order`.
        """
        (begin, end), (a, b) = self.starts[[first, last]], self.query_runs[[first, last]]
        return replace(
            self, n=int(end - begin), order=np.arange(end - begin), starts=self.starts[first : last + 1] - begin,
            runs=self.runs[a : b + 1] - begin, keep=self.keep[a:b], weights=self.weights[begin:end],
            scale=self.scale[first:last], pair_weight=self.pair_weight[first:last], idle=np.empty(0, dtype=np.int64),
        )  # fmt: skip

    def apply(self, V: Array, out: Array | None = None) -> Array:
        """Return L V for a vector or block V, in `out` (which may be V) where given."""
        return self._centre(V, out, FULL)

    def half(self, V: Array, out: Array | None = None) -> Array:
        """Return H V, where HᵀH = L."""
        return self._centre(V, out, HALF)

    def half_t(self, V: Array, out: Array | None = None) -> Array:
        """Return Hᵀ V."""
        return self._centre(V, out, HALF_T)

    def half_inverse(self, V: Array, out: Array | None = None) -> Array:
        """
        Undo `half`, up to the mean of each query, which H does not see.

        Parameters
        ----------
        V : array of shape (n,) or (n, k)
            H U.
        out : array, optional
            Where to write the result; may be V.

        Returns
        -------
        array
            U less the weighted mean of each query.
        """
        return self._centre(V, out, INVERSE)

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
            (begin, end), (a, b) = self.starts[[first, last]], self.query_runs[[first, last]]
            run = np.repeat(np.arange(b - a), np.diff(self.runs[a : b + 1]))
            query = np.repeat(np.arange(last - first), np.diff(self.query_runs[first : last + 1]))
            W_g = np.bincount(run, w[begin:end])
            average = sparse.csr_array(
                (w[begin:end] / W_g[run], self.order[begin:end], self.runs[a : b + 1] - begin), shape=(b - a, self.n)
            )
            share, keep = W_g / np.bincount(query, W_g)[query], self.keep[a:b, None]
            of_query = sparse.csr_array((share, (query, np.arange(b - a))), shape=(last - first, b - a))
            # H v = √(s w) (k v − ((k − 1) m_g + m))
            means = [as_dense(average @ block) for block in blocks]
            offsets = [(keep - 1.0) * mean + (of_query @ mean)[query] for mean in means]
            root = np.sqrt(w[begin:end] * self.scale[first + query][run])[:, None]
            for at in range(0, end - begin, length):
                piece = slice(at, at + length)
                rows, own = self.order[begin:end][piece], run[piece]
                H = [
                    root[piece] * (keep[own] * as_dense(block[rows]) - offset[own])
                    for block, offset in zip(blocks, offsets, strict=True)
                ]
                total += H[0].T @ H[-1]
        return as_given(total, U, U if V is None else V)

    def _centre(self, V: Array, out: Array | None, form: int) -> Array:
        block, result = operands(V, out, (self.n, self.n))
        columns, target = as_columns(block, self.n), as_columns(result, self.n)
        rows, starts, runs, owned = (a.view(np.uint64) for a in (self.order, self.starts, self.runs, self.query_runs))
        keep, weights, scale = self.keep, self.weights, self.scale
        spread(
            lambda first, last: centre_blocks(
                columns, target, rows, starts, runs, owned, keep, weights, scale, form, first, last
            ),
            cut(self.starts, n_threads()),
        )
        target[self.idle] = 0.0
        return result
