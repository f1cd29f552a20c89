"""Masked scores, and equal rows of different groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.columns import MissingValues
from corank.data.inputs import as_numbers
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import has_missing
from corank.data.scoring import first_equals
from corank.errors import InputError
from corank.parameters import check_values, number


def mask_scores(
    y: ArrayLike,
    qid: ArrayLike | None = None,
    fraction: float = 0.8,
    *,
    by: Literal["row", "query"] = "row",
    random_state: int | None = None,
) -> NDArray[np.float64]:
    """
    Replace a share of the scores by NaN, to simulate unjudged rows.

    >>> import numpy as np
    >>> int(np.isnan(mask_scores(np.arange(10), fraction=0.3, random_state=0)).sum())
    3
    """
    check_values({"fraction": fraction}, {"fraction": number(0, 1)})
    masked = as_numbers(y, "y", "score").copy()
    rng = np.random.default_rng(random_state)
    scored = np.flatnonzero(~np.isnan(masked))
    if by == "row":
        masked[rng.permutation(scored)[: round(fraction * len(scored))]] = np.nan
        return masked
    if by != "query":
        raise InputError(f"by is {by!r}; choose 'row' or 'query'.")
    if qid is None:
        raise InputError("by='query' masks whole queries, but qid is missing; pass one query id per row.")
    codes = Queries.of(qid, len(masked)).codes
    judged = np.unique(codes[scored])
    chosen = rng.permutation(judged)[: round(fraction * len(judged))]
    masked[np.isin(codes, chosen)] = np.nan
    return masked


def keep_scores(data: RankingData, kept: NDArray[np.bool_]) -> RankingData:
    """
    Keep the scores of some rows of a problem and mask the others; X is not copied.

    >>> data = RankingData.of([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> keep_scores(data, np.array([True, False, True])).y.tolist()
    [0.0, nan, 2.0]
    """
    assert data.y is not None
    masked = RankingData.of_checked(data.X, np.where(kept, data.y, np.nan), data.queries, data.weights)
    return replace(masked.with_prior(data.prior), has_missing=data.has_missing, filling=data.filling)


def shared_rows(X: Any, groups: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """
    Find equal rows of different groups, such as products without features of the query.

    >>> shared_rows(np.array([[1.0], [2.0], [1.0]]), np.array([0, 0, 1]), np.arange(3)).tolist()
    [0, 1, 0]
    """
    chosen = X[rows]
    # NaN equals nothing: compare filled rows and indicators
    first = first_equals(MissingValues.of(chosen).fill(chosen) if has_missing(chosen) else chosen)
    if first is None or (groups[rows[first]] == groups[rows]).all():
        return None
    result = np.arange(len(groups))
    result[rows] = rows[first]
    return result
