"""
Columns: means that replace missing values, and factors by which columns are scaled.

Let m_j be the mean of column j over the training rows that have a value. A row becomes (x̃, r): x̃_j = x_j, or m_j where
x_j is missing, and r_j = 1 where it is missing, for each column that has missing values in training. A linear ranker
thus learns w_j x_j for a present value and w_j m_j + v_j for a missing one. v_j is free, so m_j only decides how the
penalty sees the two; m_j is fixed in ``fit``. The mean of the row's own query would be as neutral, but ``predict``
scores each row alone, without query ids, and equal rows must get equal scores.

m_j never leaves the range of the values: a rounded mean of equal values would differ from them in the last bits, and a
column of one value and gaps would get a huge weight. It is constant after filling, and its indicator is the feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corank._lazy import is_sparse
from corank.core.rows.access import as_core_rows, plain
from corank.core.rows.blocks import add_sparse_spread, add_spread
from corank.core.threads import add_up, cut, threads_for

if TYPE_CHECKING:
    from corank.data.ranking import RankingData

Floats = NDArray[np.float64]

# rows per block
_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class MissingValues:
    """How missing values are filled."""

    columns: NDArray[np.int64]  # (m,): numbers of the columns with missing values in training, ascending
    means: Floats  # (n_features,): means of all columns; 0 for a column without any value

    @classmethod
    def of(cls, X: Any) -> MissingValues:
        """Find the columns with missing values, and all means."""
        n, d = X.shape
        n_missing, total = np.zeros(d, dtype=np.int64), np.zeros(d)
        low, high = np.full(d, np.inf), np.full(d, -np.inf)
        for begin in range(0, n, _BLOCK):
            block = X[begin : begin + _BLOCK]
            if is_sparse(block):
                is_nan = np.isnan(block.data)
                n_missing += np.bincount(block.indices[is_nan], minlength=d)
                # divided before they are added, so that sums of large values stay finite
                total += np.bincount(block.indices[~is_nan], block.data[~is_nan] / n, minlength=d)
                has_zero = np.bincount(block.indices, minlength=d) < block.shape[0]
                low[has_zero], high[has_zero] = np.minimum(low[has_zero], 0.0), np.maximum(high[has_zero], 0.0)
                np.fmin.at(low, block.indices, block.data)
                np.fmax.at(high, block.indices, block.data)
            else:
                n_missing += np.isnan(block).sum(axis=0)
                total += np.nansum(block / np.float64(n), axis=0)
                low = np.fmin(low, np.fmin.reduce(block, axis=0))
                high = np.fmax(high, np.fmax.reduce(block, axis=0))
        means = total * (n / np.maximum(n - n_missing, 1))
        return cls(np.flatnonzero(n_missing), np.where(low <= high, np.clip(means, low, high), means))

    def one_valued(self, X: Any) -> NDArray[np.int64]:
        """Return which of `columns` have one value and gaps: only whether it is missing can be learnt from."""
        X = X[:, self.columns]
        rows = X.toarray() if is_sparse(X) else X
        is_mean = (rows == self.means[self.columns]) | np.isnan(rows)
        columns: NDArray[np.int64] = self.columns[is_mean.all(axis=0) & ~np.isnan(rows).all(axis=0)]
        return columns

    def fill(self, X: Any) -> Any:
        """Return rows without missing values, followed by one indicator for each of `columns`."""
        rows, columns = self._positions(X)
        filled = X.copy()
        if is_sparse(X):
            stored = np.isnan(X.data)
            filled.data[stored] = self.means[X.indices[stored]]
        else:
            filled[rows, columns] = self.means[columns]
        if not len(self.columns):
            return filled
        known = np.isin(columns, self.columns)
        place = np.searchsorted(self.columns, columns[known])
        shape = (X.shape[0], len(self.columns))
        from scipy import sparse  # takes long to import

        marks = sparse.csr_array((np.ones(len(place), X.dtype), (rows[known], place)), shape=shape)
        if is_sparse(X):
            return sparse.hstack([filled, marks], format="csr")
        return np.ascontiguousarray(np.hstack([filled, marks.toarray()]))

    @staticmethod
    def _positions(X: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows and columns of the missing values."""
        if not is_sparse(X):
            rows, columns = np.nonzero(np.isnan(X))
            return rows, columns
        i = np.flatnonzero(np.isnan(X.data))
        return np.searchsorted(X.indptr, i, side="right") - 1, X.indices[i]

    def names(self, names: list[str]) -> list[str]:
        """Return the names of all columns."""
        return [*names, *(f"{names[j]} is missing" for j in self.columns)]


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
