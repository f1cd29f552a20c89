"""How much each column varies inside queries, and what columns of very different size are divided by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.blocks import add_spread
from corank.core.scaled import plain
from corank.core.threads import cut, spread, threads_for
from corank.data.ranking import RankingData

Floats = NDArray[np.float64]

# queries are summed in a fixed number of pieces, so that sums do not depend on the number of threads
_PIECES = 16
# share of rows that a column must say something about to be measured by itself
_OFTEN = 0.2


def column_factors(data: RankingData) -> Floats:
    """
    Return what each column is multiplied by before learning, so that none counts by its unit alone.

    A column is divided by its deviation inside queries, √(Σ_i w_i (x_i − mean of its query)² / Σ_i w_i) over all rows,
    scored or not. Columns that are zero in more than four rows of five (words of a text, rare flags) share one divisor,
    √(Σ squared deviations / Σ shares of rows where they are not zero): one by one, the rarest would be blown up most.

    data: the problem; its rows are read once.
    Returns: the factors; 1 for a column that is constant in every query.

    >>> data = RankingData.of([[1.0, 5.0], [3.0, 5.0], [7.0, 9.0], [7.0, 9.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2])
    >>> (column_factors(data) ** 2).round(6).tolist()
    [2.0, 1.0]
    """
    X, w = plain(data.X), data.weight_of(np.arange(data.n_rows))
    with np.errstate(over="ignore"):
        squares, filled = (_sparse_spread if sparse.issparse(X) else _dense_spread)(data, X, w) / w.sum()
    varies = squares > 0.0
    often = filled >= _OFTEN
    rare = varies & ~often
    divisors = np.sqrt(np.where(often, squares, squares[rare].sum() / max(float(filled[rare].sum()), 1e-300)))
    return np.asarray(np.divide(1.0, divisors, out=np.ones_like(divisors), where=varies & np.isfinite(divisors)))


def _dense_spread(data: RankingData, X: NDArray[np.floating], w: Floats) -> Floats:
    order, starts = data.queries.order, data.starts

    def piece(first: int, last: int) -> Floats:
        out = np.zeros((2, X.shape[1]))
        add_spread(X, w, order, starts, out, first, last)
        return out

    return np.asarray(np.sum(spread(piece, cut(starts, _PIECES), threads_for(X.size)), axis=0))


def _sparse_spread(data: RankingData, X: sparse.csr_array, w: Floats) -> Floats:
    """Σ w x² − Σ_q (Σ_q w x)² / W_q, without visiting zeros; what rounding leaves of a constant column is none."""
    codes, n_queries = data.queries.codes, len(data.queries)
    sums = sparse.csr_array((w, (codes, np.arange(data.n_rows))), shape=(n_queries, data.n_rows)) @ X
    W_q = np.bincount(codes, weights=w, minlength=n_queries)
    inverse = np.divide(1.0, W_q, out=np.zeros_like(W_q), where=W_q > 0.0)
    whole = np.asarray(X.astype(np.float64).power(2).T @ w).ravel()
    left = whole - np.asarray(sparse.csr_array(sums).power(2).T @ inverse).ravel()
    filled = np.asarray((X != 0.0).T @ w, dtype=np.float64).ravel()
    return np.stack([np.where(left > 1e-10 * whole, left, 0.0), filled])
