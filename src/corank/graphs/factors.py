"""How much each query counts in a Laplacian."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.ranking import RankingData
from corank.errors import InputError

QUERY_WEIGHTS = ("pairs", "equal", "rows")


def query_factors(sizes: ArrayLike, query_weight: str, twice_pairs: ArrayLike | None = None) -> NDArray[np.float64]:
    """
    Return c_q, what the Laplacian of each query is multiplied by.

    Parameters
    ----------
    sizes : array-like of shape (n_queries,)
        n_q, the number of rows that take part; with row weights their sum W_q.
    query_weight : {"pairs", "equal", "rows"}
        c_q = 1, every pair weighs the same; 1 / (n_q (n_q − 1)), every query does; 1 / n_q, every row does.
    twice_pairs : array-like of shape (n_queries,), optional
        What stands for n_q (n_q − 1) where rows carry weights, W_q² − Σ w², or where equal scores are not compared.
        Two copies of a row are a pair more than one row of weight 2 is: with "equal" they do not mean quite the same.

    Returns
    -------
    array of float64, shape (n_queries,)
        c_q; 0 for a query that holds no pair unless all pairs weigh the same.

    Examples
    --------
    >>> query_factors([1, 2, 5], "equal").tolist()
    [0.0, 0.5, 0.05]
    """
    if query_weight not in QUERY_WEIGHTS:
        raise InputError(f"query_weight is {query_weight!r}; choose one of {', '.join(QUERY_WEIGHTS)}.")
    n_q = np.asarray(sizes, dtype=np.float64)
    if query_weight == "pairs":
        return np.ones_like(n_q)
    pairs = n_q * (n_q - 1) if twice_pairs is None else np.asarray(twice_pairs, dtype=np.float64)
    # rounding may leave a trace of weight in a query without a pair
    return np.divide(
        1.0, pairs if query_weight == "equal" else n_q, out=np.zeros_like(n_q), where=pairs > 1e-12 * n_q**2
    )


def require_alike(data: RankingData, query_weight: str) -> None:
    """
    Raise one sentence where preferences come with a weight of queries that they cannot have.

    Parameters
    ----------
    data : RankingData
        The problem.
    query_weight : str
        What the user asked for.
    """
    if data.pairs is not None and query_weight != "pairs":
        raise InputError(f"query_weight is {query_weight!r}, but given pairs weigh alike; use query_weight='pairs'.")


def pair_factors(data: RankingData, query_weight: str) -> NDArray[np.float64]:
    """
    Return c_q for each preference of a problem.

    Parameters
    ----------
    data : RankingData
        A problem given by preferences.
    query_weight : {"pairs", "equal", "rows"}
        c_q = 1; one over twice the weight of the preferences of q; one over the weight of the rows they name.

    Returns
    -------
    array of float64, shape (n_pairs,)
        The factors.
    """
    assert data.pairs is not None
    query, n_queries = data.queries.codes[data.pairs[:, 0]], len(data.queries)
    named = data.scored_rows
    W_q = np.bincount(data.queries.codes[named], data.weight_of(named), n_queries)
    return query_factors(W_q, query_weight, 2.0 * np.bincount(query, data.pair_weight, n_queries))[query]
