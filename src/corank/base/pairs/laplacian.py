"""Laplacian of compared pairs, applied without building the matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.base.pairs.losses import query_factors
from corank.core.rows.blocks import FULL, HALF, HALF_T, INVERSE, Blocks, centre_blocks
from corank.core.threads import cut, parallel_map, threads_for
from corank.data.inputs import as_weights
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import InputError

Array = NDArray[Any]

# tolerated asymmetry of weights, relative to the largest
_SYMMETRIC = 1e-12


def operands(V: Any, out: Array | None, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Check V (shape[1] rows) and `out` (shape[0] rows, created if None); float32 stays float32."""
    if sparse.issparse(V):
        raise InputError("the operand is sparse, but its product would be dense; use L @ (X @ v) instead.")
    block = np.asarray(V)
    block = np.ascontiguousarray(block, dtype=np.float32 if block.dtype == np.float32 else np.float64)
    if block.ndim not in (1, 2) or block.shape[0] != shape[1]:
        raise InputError(f"the operand has shape {block.shape}; pass a vector or block of {shape[1]} rows.")
    wanted = (shape[0], *block.shape[1:])
    if out is None:
        return block, np.empty(wanted, dtype=block.dtype)
    if out.shape != wanted or out.dtype != block.dtype or not out.flags.c_contiguous:
        raise InputError(f"out has shape {out.shape} and type {out.dtype}; pass a C-ordered {block.dtype} {wanted}.")
    return block, out


def as_columns(V: Any, n: int) -> Any:
    """Return a vector as one column, and a dense or CSR block unchanged."""
    block = V.tocsr() if sparse.issparse(V) else np.asarray(V)
    if block.ndim not in (1, 2) or block.shape[0] != n:
        raise InputError(f"the operand has shape {block.shape}; pass a vector or block of {n} rows.")
    return block[:, None] if block.ndim == 1 else block


def drop_axes(total: NDArray[np.float64], U: Any, V: Any) -> Any:
    """Drop the axes of operands that were vectors."""
    total = total[0] if np.ndim(U) == 1 and not sparse.issparse(U) else total
    total = total[..., 0] if np.ndim(V) == 1 and not sparse.issparse(V) else total
    return float(total) if total.ndim == 0 else total


def as_dense(block: Any) -> NDArray[np.float64]:
    """Return a block, dense or CSR, as a dense float64 array."""
    return np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)


def as_ends(pairs: ArrayLike, n: int) -> NDArray[np.int64]:
    """Check pairs of row numbers below n, and return a copy of them."""
    ends = np.asarray(pairs)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise InputError(f"pairs has shape {ends.shape} and type {ends.dtype}; pass integers of shape (n_pairs, 2).")
    if ends.size and (ends.min() < 0 or ends.max() >= n):
        worst = ends.min() if ends.min() < 0 else ends.max()
        raise InputError(f"pairs names row {worst}, but there are rows 0 to {n - 1}; pass row numbers.")
    return ends.astype(np.int64)


def as_edges(W: Any) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Check a symmetric graph; return its edges, their weights and the number of rows."""
    graph = sparse.csr_array(W, dtype=np.float64)
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1]:
        raise InputError(f"the graph has shape {graph.shape}; pass a square matrix of weights.")
    if not (np.isfinite(graph.data) & (graph.data >= 0)).all():
        raise InputError("the graph has a negative or infinite weight or NaN; pass finite weights of at least 0.")
    asymmetry = abs(graph - graph.T)
    if asymmetry.nnz and asymmetry.max() > _SYMMETRIC * graph.max():
        raise InputError("the graph is not symmetric; pass W with W[i, j] = W[j, i], such as (W + W.T) / 2.")
    edges = sparse.triu(graph, k=1, format="coo")
    linked = edges.data > 0
    ends = np.stack([edges.row[linked], edges.col[linked]], axis=1).astype(np.int64)
    return ends, edges.data[linked], graph.shape[0]


ROWS = ("all", "scored", "unscored")


class Laplacian(ABC):
    """
    A symmetric positive semidefinite matrix L with vᵀLv = Σ w_ij (v_i − v_j)² over the compared pairs.

    Create one with `per_query`, `one_query`, `from_pairs` or `from_graph`. ``L @ V`` takes a vector or a block of
    columns; the result is zero for rows that are not compared.
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
        Compare the rows of each query: L = ⊕_q c_q (W_q diag(w) − w wᵀ), W_q = Σ w.

        Without row weights this is c_q (n_q I − 1 1ᵀ). Scored rows are compared if their scores differ:
        c_q (W_g diag(w) − w wᵀ) is then subtracted for each grade g of the query.
        """
        # imported here because of a cycle

        if rows not in ROWS or (rows != "all" and isinstance(data, Queries)):
            allowed = ROWS if rows not in ROWS else ("all (Queries have no scores; pass RankingData)",)
            raise InputError(f"rows is {rows!r}; choose one of {', '.join(allowed)}.")
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
        """Compare all pairs of n rows."""
        return Laplacian.per_query(Queries.of(None, n), query_weight, weights=weights)

    @staticmethod
    def from_pairs(pairs: ArrayLike, n: int, weights: ArrayLike | None = None) -> PairLaplacian:
        """Compare given pairs: L = BᵀB, where row k of B is √w_k (e_a − e_b)."""
        ends = as_ends(pairs, n)
        m = len(ends)
        root = np.sqrt(np.ones(m) if weights is None else as_weights(weights, m, "pair"))
        values = np.stack([root, -root], axis=1).ravel()
        B = sparse.csr_array((values, ends.ravel(), np.arange(0, 2 * m + 1, 2)), shape=(m, n))
        B.sum_duplicates()  # in place; a row compared with itself gives zero
        return PairLaplacian(n, B, (B.T @ B).tocsr())

    @staticmethod
    def from_graph(W: Any) -> PairLaplacian:
        """Compare neighbours in a weighted graph: L = diag(W 1) − W."""
        ends, weights, n = as_edges(W)
        return Laplacian.from_pairs(ends, n, weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns of L."""
        return (self.n, self.n)

    @abstractmethod
    def apply(self, V: Array, out: Array | None = None) -> Array:
        """Apply L to a vector or block of columns."""

    @abstractmethod
    def half(self, V: Array, out: Array | None = None) -> Array:
        """Apply H, where HᵀH = L."""

    @abstractmethod
    def half_t(self, V: Array, out: Array | None = None) -> Array:
        """Apply Hᵀ, where HᵀH = L."""

    @abstractmethod
    def quad(self, U: Any, V: Any = None) -> Any:
        """Compute UᵀLV in float64."""

    def __matmul__(self, V: Array) -> Array:
        return self.apply(V)

    def toarray(self) -> NDArray[np.float64]:
        """Return L as a dense array."""
        return self.apply(np.eye(self.n))


@dataclass(frozen=True, eq=False)
class PairLaplacian(Laplacian):
    """Laplacian of given pairs or of the edges of a graph, as sparse matrices: L = BᵀB, H = B."""

    n: int  # number of rows
    B: Any  # √w_k (e_a − e_b) for each pair
    L: Any  # BᵀB

    def apply(self, V: Array, out: Array | None = None) -> Array:
        """Return L V for a vector or block V, written to `out` if given (which may be V)."""
        return self._product(self.L, V, out)

    def half(self, V: Array, out: Array | None = None) -> Array:
        """Return H V, one row per pair, where HᵀH = L."""
        return self._product(self.B, V, out)

    def half_t(self, V: Array, out: Array | None = None) -> Array:
        """Return Hᵀ V."""
        return self._product(self.B.T, V, out)

    def quad(self, U: Any, V: Any = None) -> Any:
        """Return UᵀLV in float64 (V = U by default); U and V may be vectors, blocks or CSR matrices."""
        left = as_columns(U, self.n)
        right = left if V is None else as_columns(V, self.n)
        total = as_dense(left.T @ (self.L @ right))
        return drop_axes((total + total.T) / 2 if V is None else total, U, U if V is None else V)

    @staticmethod
    def _product(matrix: Any, V: Array, out: Array | None) -> Array:
        block, result = operands(V, out, matrix.shape)
        result[...] = matrix @ block
        return result


# smallest weight of the pairs of a query, relative to its squared weight, that is not a rounding error
_MIN_SHARE = 1e-12
# entries of a piece of a quadratic form
_PIECE = 1 << 21


@dataclass(frozen=True, eq=False)
class QueryLaplacian(Laplacian):
    """
    Laplacian of the pairs within queries, applied in O(n) by subtracting means of queries and grades.

    See `corank.core.rows.blocks.centre_blocks`. H is square, and symmetric without row weights. The grades of a query
    are runs that are compared with each other; if all its rows are compared, the query is one run.
    """

    n: int  # number of rows
    order: NDArray[np.int64]  # order, starts: query q compares the rows ``order[starts[q]:starts[q + 1]]``, two or more
    starts: NDArray[np.int64]
    runs: NDArray[np.int64]  # where each run begins in `order`
    keep: NDArray[np.float64]  # √(1 − W_g/W_q), W_g the weight of the run; 1 if a query is one run
    weights: NDArray[np.float64]  # row weights in the order of `order`; empty if all are 1
    scale: NDArray[np.float64]  # c_q W_q for each query
    pair_weight: NDArray[np.float64]  # weight of all pairs of each query
    idle: NDArray[np.int64]  # rows that are not compared

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
        """Compare rows that are sorted by query."""
        weight = w if len(w) else np.ones(len(order))
        is_start = np.diff(query, prepend=-1) != 0
        is_run = is_start if y is None else is_start | (np.diff(y, prepend=np.nan) != 0)
        code, run = np.cumsum(is_start) - 1, np.cumsum(is_run) - 1
        W_q, W_g = np.bincount(code, weight), np.bincount(run, weight)
        # squares that are not pairs: of rows, or of grades
        same = np.bincount(code, weight**2) if y is None else np.bincount(code[is_run], W_g**2)
        twice_pairs = W_q**2 - same
        c = query_factors(W_q, query_weight, twice_pairs)
        compares = (c > 0.0) & (twice_pairs > _MIN_SHARE * W_q**2)
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
        """Return the block of some queries."""
        (begin, end), (a, b) = self.starts[[first, last]], self.query_runs[[first, last]]
        return replace(
            self, n=int(end - begin), order=np.arange(end - begin), starts=self.starts[first : last + 1] - begin,
            runs=self.runs[a : b + 1] - begin, keep=self.keep[a:b], weights=self.weights[begin:end],
            scale=self.scale[first:last], pair_weight=self.pair_weight[first:last], idle=np.empty(0, dtype=np.int64),
        )  # fmt: skip

    def apply(self, V: Array, out: Array | None = None) -> Array:
        """Return L V for a vector or block V, written to `out` if given (which may be V)."""
        return self._centre(V, out, FULL)

    def half(self, V: Array, out: Array | None = None) -> Array:
        """Return H V, where HᵀH = L."""
        return self._centre(V, out, HALF)

    def half_t(self, V: Array, out: Array | None = None) -> Array:
        """Return Hᵀ V."""
        return self._centre(V, out, HALF_T)

    def half_inverse(self, V: Array, out: Array | None = None) -> Array:
        """Invert `half`, up to the mean of each query, which H maps to zero."""
        return self._centre(V, out, INVERSE)

    def quad(self, U: Any, V: Any = None) -> Any:
        """Return UᵀLV in float64, summed in pieces without a (dense) copy of U."""
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
            for i in range(0, end - begin, length):
                piece = slice(i, i + length)
                rows, own = self.order[begin:end][piece], run[piece]
                H = [
                    root[piece] * (keep[own] * as_dense(block[rows]) - offset[own])
                    for block, offset in zip(blocks, offsets, strict=True)
                ]
                total += H[0].T @ H[-1]
        return drop_axes(total, U, U if V is None else V)

    def _centre(self, V: Array, out: Array | None, form: int) -> Array:
        block, result = operands(V, out, (self.n, self.n))
        columns, target = as_columns(block, self.n), as_columns(result, self.n)
        rows, starts, runs, owned = (a.view(np.uint64) for a in (self.order, self.starts, self.runs, self.query_runs))
        blocks = Blocks(rows, starts, runs, owned, self.keep, self.weights, self.scale)
        parallel_map(
            lambda first, last: centre_blocks(columns, target, blocks, form, first, last),
            cut(self.starts, threads_for(columns.size)),
        )
        target[self.idle] = 0.0
        return result
