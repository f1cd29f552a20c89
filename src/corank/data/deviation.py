"""How much each column varies inside queries, and what columns of very different size are divided by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.blocks import add_squares
from corank.core.scaled import plain
from corank.core.threads import cut, spread
from corank.data.ranking import RankingData

Floats = NDArray[np.float64]

# queries are summed in a fixed number of pieces, so that sums do not depend on the number of threads
_PIECES = 16


def within_query_deviation(data: RankingData) -> Floats:
    """
    Return √(Σ_i w_i (x_i − mean of its query)² / Σ_i w_i) for each column, over all rows, scored or not.

    Parameters
    ----------
    data : RankingData
        The problem; its rows are read once.

    Returns
    -------
    array of float64, shape (n_features,)
        The deviations; 0 for a column that is constant in every query.

    Examples
    --------
    >>> data = RankingData.of([[1.0, 5.0], [3.0, 5.0], [7.0, 9.0], [7.0, 9.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2])
    >>> (within_query_deviation(data) ** 2).round(6).tolist()
    [0.5, 0.0]
    """
    X, w = plain(data.X), data.weight_of(np.arange(data.n_rows))
    total = float(w.sum())
    if sparse.issparse(X):
        return np.asarray(np.sqrt(_sparse_squares(data, X, w) / total))
    order, starts = data.queries.order, data.starts

    def piece(first: int, last: int) -> Floats:
        out = np.zeros(data.n_features)
        add_squares(X, w, order, starts, out, first, last)
        return out

    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt(np.sum(spread(piece, cut(starts, _PIECES)), axis=0) / total))


def column_factors(data: RankingData) -> Floats:
    """
    Return what each column is multiplied by before learning, so that no column counts by its unit alone.

    Parameters
    ----------
    data : RankingData
        The problem.

    Returns
    -------
    array of float64, shape (n_features,)
        One over `within_query_deviation`; 1 for a column that does not vary.
    """
    deviation = within_query_deviation(data)
    return np.divide(1.0, deviation, out=np.ones_like(deviation), where=deviation > 0.0)


def _sparse_squares(data: RankingData, X: sparse.csr_array, w: Floats) -> Floats:
    """Σ w x² − Σ_q (Σ_q w x)² / W_q, without visiting zeros; what rounding leaves of a constant column is none."""
    n_queries = len(data.queries)
    sums = sparse.csr_array((w, (data.queries.codes, np.arange(data.n_rows))), shape=(n_queries, data.n_rows)) @ X
    W_q = np.bincount(data.queries.codes, weights=w, minlength=n_queries)
    inverse = np.divide(1.0, W_q, out=np.zeros_like(W_q), where=W_q > 0.0)
    whole = np.asarray(X.power(2).astype(np.float64).T @ w).ravel()
    left = whole - np.asarray(sparse.csr_array(sums).power(2).T @ inverse).ravel()
    return np.where(left > 1e-10 * whole, left, 0.0)
