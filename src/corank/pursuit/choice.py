"""Which rows of a problem a dictionary may stand on."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.ranking import RankingData
from corank.errors import InputError


def choose_rows(
    dictionary: Any, data: RankingData, weights: NDArray[np.float64] | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """
    Choose the rows of a dictionary; rows of weight zero are as if they were not there.

    Parameters
    ----------
    dictionary : {"scored", "all"}, int or array-like of int
        The scored rows (all, where the problem is given by pairs), all rows, so many random rows, or those named.
    data : RankingData
        The problem.
    weights : array of shape (n_rows,), optional
        Row weights.
    rng : numpy.random.Generator
        Draws random rows.

    Returns
    -------
    array of int64
        Row numbers, ascending unless the user named them.

    Examples
    --------
    >>> data = RankingData.of([[0.0], [1.0], [2.0]], [1, 0, float("nan")])
    >>> choose_rows("scored", data, None, np.random.default_rng(0)).tolist()
    [0, 1]
    """
    present = np.ones(data.n_rows, dtype=bool) if weights is None else weights > 0.0
    if isinstance(dictionary, str):
        kept = present & data.is_scored if dictionary == "scored" and data.pairs is None else present
        return np.flatnonzero(kept)
    if isinstance(dictionary, Integral):
        rows = np.flatnonzero(present)
        if int(dictionary) >= len(rows):
            return rows
        return np.sort(rng.choice(rows, int(dictionary), replace=False))
    rows = np.asarray(dictionary)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        raise InputError(f"dictionary is {dictionary!r}; pass row numbers, a number of rows, 'scored' or 'all'.")
    if rows.min() < 0 or rows.max() >= data.n_rows:
        worst = rows.min() if rows.min() < 0 else rows.max()
        raise InputError(f"dictionary names row {worst}, but X has rows 0 to {data.n_rows - 1}.")
    if len(np.unique(rows)) < len(rows):
        raise InputError("dictionary names a row twice; name each row once.")
    return rows.astype(np.int64)
