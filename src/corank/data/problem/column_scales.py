"""How much each column varies inside queries, and what columns of very different size are divided by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.rows.access import as_core_rows
from corank.core.rows.blocks import add_sparse_spread, add_spread
from corank.core.rows.scaled import plain
from corank.core.threads import add_up, cut, threads_for
from corank.data.problem.ranking import RankingData

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
    add, rows = (add_sparse_spread, as_core_rows(X)) if sparse.issparse(X) else (add_spread, X)
    order, starts = data.queries.order, data.starts

    def piece(first: int, last: int) -> Floats:
        out = np.zeros((2, data.n_features))
        add(rows, w, order, starts, out, first, last)
        return out

    n_jobs = threads_for(X.nnz if sparse.issparse(X) else X.size)
    return factors_of_spread(add_up(piece, cut(starts, _PIECES), n_jobs) / w.sum())


def factors_of_spread(spread: Floats) -> Floats:
    """
    Return what columns are multiplied by, from sums over the rows.

    spread (2, n_features): means over rows of squared deviations inside queries, and of what is not zero.
    """
    squares, filled = spread
    varies = squares > 0.0
    often = filled >= _OFTEN
    rare = varies & ~often
    divisors = np.sqrt(np.where(often, squares, squares[rare].sum() / max(float(filled[rare].sum()), 1e-300)))
    return np.asarray(np.divide(1.0, divisors, out=np.ones_like(divisors), where=varies & np.isfinite(divisors)))
