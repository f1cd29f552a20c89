"""QueryLaplacian: the Laplacian of pairs within queries, of all rows or of rows with different scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.pairs.factors import query_factors
from corank.base.pairs.laplacian import Array, Laplacian, as_columns, as_dense, drop_axes, operands
from corank.core.rows.centre import FULL, HALF, HALF_T, INVERSE, Blocks, centre_blocks
from corank.core.threads import cut, parallel_map, threads_for

# smallest weight of the pairs of a query, relative to its squared weight, that is not a rounding error
_LEAST = 1e-12
# entries of a piece of a quadratic form
_PIECE = 1 << 21


@dataclass(frozen=True, eq=False)
class QueryLaplacian(Laplacian):
    """
    Laplacian of the pairs within queries, applied in O(n) by subtracting means of queries and grades.

    See `corank.core.rows.centre.centre_blocks`. H is square, and symmetric without row weights. The grades of a query
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
            for at in range(0, end - begin, length):
                piece = slice(at, at + length)
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
