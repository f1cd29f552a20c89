"""
The default weight of the penalty: a closed rule from the size and number of differences of rows.

With A the weighted mean over compared pairs of (a − b)(a − b)ᵀ, d columns, and m the number of free differences of the
compared rows, Σ over queries of (rows − 1):

    alpha = 10 trace(A) / max(m, d),

and 10 trace(A) / m for a kernel, with A in its space; 1 instead of 10 for a single query.

It follows the units of X: trace(A)/d is the mean squared difference of a column. The fewer differences per column, the
stronger the penalty, up to ten times that size. Of the rules compared, this one came closest to the best alpha on test
rows in AP, nDCG and disagreement, for every loss, with scaled columns and 2 to 100 % of the rows judged, on MQ2008,
MSLR, Jester, Reuters, the ordinal sets and generated problems. Fixed shares of trace(A)/d, cross-validation,
leave-query-out and the evidence were worse, on small problems much worse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corank.base.pairs.moments import pair_squares
from corank.base.solvers.solution import require_products
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.fitted import Part

# factor for several queries and for a single one
_MANY_QUERIES, _ONE_QUERY = 10.0, 1.0


@dataclass(frozen=True)
class Freedom(Part):
    """
    Number of free differences and of queries; those of parts without common queries add up.

    differences: m, Σ over queries with a pair of (W_q − 1). W_q is the weight of the compared rows, so that a row of
        weight 2 counts like the row written twice; below 2, W_q / 2 replaces W_q − 1, which could be negative.
    """

    differences: float
    n_queries: int  # number of queries with a pair

    def __add__(self, other: Freedom) -> Freedom:
        return Freedom(self.differences + other.differences, self.n_queries + other.n_queries)


def default_alpha(
    data: RankingData, query_weight: str = "pairs", ties: bool = False, n_columns: int | None = None
) -> float:
    """Choose alpha for a model that is linear in the columns of X, in one scan and without a d × d matrix."""
    squares, pair_weight = pair_squares(data, ties=ties, query_weight=query_weight)
    if not pair_weight > 0.0 and data.y is not None:
        data, ties = RankingData.of_checked(data.X, data.y, Queries.of(None, data.n_rows), data.weights), True
        squares, pair_weight = pair_squares(data, ties=True, query_weight=query_weight)
    require_products(squares)
    trace = float(np.sum(squares)) / pair_weight if pair_weight > 0.0 else 0.0
    return alpha_of(trace, data.n_features if n_columns is None else n_columns, freedom(data, ties))


def alpha_of(trace: float, n_columns: int, free: Freedom) -> float:
    """Apply the rule."""
    share = _MANY_QUERIES if free.n_queries > 1 else _ONE_QUERY
    return share * trace / max(free.differences, n_columns) if trace > 0.0 else 1.0


def freedom(data: RankingData, ties: bool = False) -> Freedom:
    """Count the free differences of a problem."""
    rows = data.scored_rows
    codes, n_queries = data.queries.codes[rows], len(data.queries)
    W_q = np.bincount(codes, weights=data.weight_of(rows), minlength=n_queries)
    if data.y is not None:
        # a query has a pair if it has two rows or, sorted by score, its first differs from its last
        counts = np.bincount(codes, minlength=n_queries)
        last = np.cumsum(counts) - 1
        is_in = data.is_scored if data.weights is None else data.is_scored & (data.weights > 0.0)
        y = np.append(data.y[data.order[is_in[data.order]]], np.nan)
        W_q = W_q * (counts > 1 if ties else (counts > 1) & (y[last - counts + 1] != y[last]))
    return Freedom(float(np.sum(np.maximum(W_q - 1.0, W_q / 2.0))), int(np.count_nonzero(W_q)))
