"""Query weights: factors of the Laplacians of queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.ranking import RankingData
from corank.errors import InputError

QUERY_WEIGHTS = ("pairs", "equal", "rows")


def query_factors(sizes: ArrayLike, query_weight: str, twice_pairs: ArrayLike | None = None) -> NDArray[np.float64]:
    """
    Return c_q, the factor of the Laplacian of each query.

    sizes (n_queries,): n_q, the number of compared rows; with row weights their sum W_q.
    query_weight {"pairs", "equal", "rows"}: equal weight of pairs, c_q = 1; of queries, 1 / (n_q (n_q − 1)); or of
        rows, 1 / n_q.
    twice_pairs (n_queries,): replaces n_q (n_q − 1) if rows have weights (W_q² − Σ w²) or if equal scores are not
        compared. Two copies of a row form a pair, one row of weight 2 does not, so that "equal" treats them slightly
        differently.
    Returns (n_queries,): c_q; 0 for a query without pairs, unless `query_weight` is "pairs".
    """
    require_query_weight(query_weight)
    n_q = np.asarray(sizes, dtype=np.float64)
    if query_weight == "pairs":
        return np.ones_like(n_q)
    pairs = n_q * (n_q - 1) if twice_pairs is None else np.asarray(twice_pairs, dtype=np.float64)
    # rounding may leave a tiny weight in a query without pairs
    return np.divide(
        1.0, pairs if query_weight == "equal" else n_q, out=np.zeros_like(n_q), where=pairs > 1e-12 * n_q**2
    )


def weigh_queries(data: RankingData, query_weight: str, *, ties: bool = False, rows: str = "scored") -> RankingData:
    """
    Multiply the weights of a problem by c_q, so that plain sums over its pairs follow `query_weight`.

    query_weight {"pairs", "equal", "rows"}: c_q = 1; 1 / (twice the weight of the query's pairs); or 1 / (the weight of
        its compared rows).
    ties: whether rows of equal score are compared.
    rows {"scored", "unscored"}: rows whose pairs are used; preferences belong to scored rows.
    Returns: row weights are multiplied by √c_q, or weights of preferences by c_q (and row weights are 1).
    """
    require_query_weight(query_weight)
    if query_weight == "pairs":
        return data
    codes, n_queries = data.queries.codes, len(data.queries)
    members = data.scored_rows if rows == "scored" else data.unscored_rows
    w = data.weight_of(members)
    W_q = np.bincount(codes[members], w, n_queries)
    if rows == "scored" and data.pairs is not None:
        query = codes[data.pairs[:, 0]]
        of_pairs = np.bincount(query, data.pair_weight, n_queries)
        size = 2.0 * of_pairs if query_weight == "equal" else W_q
        c = np.divide(1.0, size, out=np.zeros(n_queries), where=of_pairs > 0.0)
        return replace(data, weights=None, pair_weights=data.pair_weight * c[query])
    if ties or rows == "unscored":
        same = np.bincount(codes[members], w * w, n_queries)
    else:
        grade = np.repeat(np.arange(len(data.grade_starts)), data.grade_stops - data.grade_starts)
        W_g = np.bincount(grade, data.weight_of(data.order[data.is_scored[data.order]]))
        same = np.bincount(np.repeat(np.arange(n_queries), np.diff(data.query_grades)), W_g**2, n_queries)
    c = query_factors(W_q, query_weight, W_q**2 - same)
    return replace(data, weights=np.sqrt(c)[codes] * data.weight_of(np.arange(data.n_rows)))


def drawn_weight(data: RankingData, query_weight: str, rows: str = "scored") -> float:
    """
    Return the total weight of all pairs of rows of one query, including each row with itself: Σ_q c_q W_q² / 2.

    A mean over these pairs does not change if a row of weight 2 is replaced by two copies.

    query_weight {"pairs", "equal", "rows"}: c_q, see `query_factors`.
    """
    members = data.scored_rows if rows == "scored" else data.unscored_rows
    codes, w = data.queries.codes[members], data.weight_of(members)
    W_q = np.bincount(codes, w)
    if query_weight == "rows":
        return float(W_q.sum()) / 2
    return float(query_factors(W_q, query_weight, W_q**2 - np.bincount(codes, w * w)) @ W_q**2) / 2


def require_query_weight(query_weight: str) -> None:
    """Raise `InputError` unless a query weight is one of `QUERY_WEIGHTS`."""
    if query_weight not in QUERY_WEIGHTS:
        raise InputError(f"query_weight is {query_weight!r}; choose one of {', '.join(QUERY_WEIGHTS)}.")
