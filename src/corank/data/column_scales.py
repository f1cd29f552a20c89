"""Column scales: divide columns by their standard deviation within queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank._lazy import is_sparse
from corank.core.rows.access import as_core_rows
from corank.core.rows.blocks import add_sparse_spread, add_spread
from corank.core.rows.scaled import plain
from corank.core.threads import add_up, cut, threads_for
from corank.data.ranking import RankingData

Floats = NDArray[np.float64]

# a fixed number of pieces, so that sums do not depend on the number of threads
_PIECES = 16
# smallest share of non-zero rows for a column to have its own scale
_OFTEN = 0.2


def column_factors(data: RankingData) -> Floats:
    """
    Return the factors that bring columns to a common scale.

    A column is divided by its standard deviation within queries, √(Σ_i w_i (x_i − mean of its query)² / Σ_i w_i), over
    scored and unjudged rows. Columns that are zero in more than 80 % of the rows (words, rare flags) share one divisor,
    √(Σ squared deviations / Σ shares of non-zero rows); otherwise the rarest columns would get the largest factors.
    """
    X, w = plain(data.X), data.weight_of(np.arange(data.n_rows))
    add, rows = (add_sparse_spread, as_core_rows(X)) if is_sparse(X) else (add_spread, X)
    order, starts = data.queries.order, data.starts

    def piece(first: int, last: int) -> Floats:
        out = np.zeros((2, data.n_features))
        add(rows, w, order, starts, out, first, last)
        return out

    n_jobs = threads_for(X.nnz if is_sparse(X) else X.size)
    return factors_of_spread(add_up(piece, cut(starts, _PIECES), n_jobs) / w.sum())


def factors_of_spread(spread: Floats) -> Floats:
    """
    Return the factors of columns from their mean squared deviations within queries and shares of non-zero rows.

    spread (2, n_features): these two, one per row.
    """
    squares, filled = spread
    varies = squares > 0.0
    often = filled >= _OFTEN
    rare = varies & ~often
    divisors = np.sqrt(np.where(often, squares, squares[rare].sum() / max(float(filled[rare].sum()), 1e-300)))
    return np.asarray(np.divide(1.0, divisors, out=np.ones_like(divisors), where=varies & np.isfinite(divisors)))
