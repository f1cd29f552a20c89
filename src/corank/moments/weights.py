"""What a query counts, as weights of its rows or preferences."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.graphs import QUERY_WEIGHTS, query_factors

Floats = NDArray[np.float64]
Rows = Literal["scored", "unscored"]


def weigh_queries(data: RankingData, query_weight: str, *, ties: bool = False, rows: Rows = "scored") -> RankingData:
    """
    Weigh rows, or preferences, so that each pair of query q counts c_q times what it did.

    Parameters
    ----------
    data : RankingData
        The problem.
    query_weight : {"pairs", "equal", "rows"}
        c_q = 1; one over twice the weight of the pairs of q; or one over the weight of its rows that take part.
    ties : bool
        Whether two rows of equal score make a pair too.
    rows : {"scored", "unscored"}
        Whose pairs.

    Returns
    -------
    RankingData
        The problem with weights for sums over pairs: √c_q times those of the rows, or c_q times those of preferences.

    Examples
    --------
    >>> data = RankingData.of([[0.0], [1.0], [3.0]], [0, 1, 1])
    >>> (weigh_queries(data, "equal").weights ** 2).round(6).tolist()  # two pairs
    [0.25, 0.25, 0.25]
    """
    if query_weight not in QUERY_WEIGHTS:
        raise InputError(f"query_weight is {query_weight!r}; choose one of {', '.join(QUERY_WEIGHTS)}.")
    if query_weight == "pairs":
        return data
    codes, n_queries = data.queries.codes, len(data.queries)
    members = data.scored_rows if rows == "scored" else data.unscored_rows
    w = data.weight_of(members)
    W_q = np.bincount(codes[members], weights=w, minlength=n_queries)
    if rows == "scored" and data.pairs is not None:
        query = codes[data.pairs[:, 0]]
        of_pairs = np.bincount(query, weights=data.pair_weight, minlength=n_queries)
        share = 2.0 * of_pairs if query_weight == "equal" else W_q
        c = np.divide(1.0, share, out=np.zeros(n_queries), where=of_pairs > 0.0)
        return replace(data, weights=None, pair_weights=data.pair_weight * c[query])
    if rows == "unscored" or ties:
        same = np.bincount(codes[members], weights=w**2, minlength=n_queries)
    else:
        grade = np.repeat(np.arange(len(data.grade_starts)), data.grade_stops - data.grade_starts)
        W_g = np.bincount(grade, weights=data.weight_of(data.order[data.is_scored[data.order]]))
        of_query = np.repeat(np.arange(n_queries), np.diff(data.query_grades))
        same = np.bincount(of_query, weights=W_g**2, minlength=n_queries)
    c = query_factors(W_q, query_weight, W_q**2 - same)
    return replace(data, weights=np.sqrt(c)[codes] * data.weight_of(np.arange(data.n_rows)))
