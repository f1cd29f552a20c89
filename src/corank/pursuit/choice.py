"""Which rows of a problem a dictionary may stand on, and how views share them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.views import View, as_views


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


def deal_rows(rows: NDArray[np.int64], n_views: int, kernel: Any, rng: np.random.Generator) -> list[View]:
    """
    Deal the rows of a dictionary at random to views with the same columns and kernel.

    Parameters
    ----------
    rows : array of int64
        From `choose_rows`.
    n_views : int
        M.
    kernel : str, Kernel or callable
        Of every view.
    rng : numpy.random.Generator
        Deals.

    Returns
    -------
    list of View
        M views, each with its basis.
    """
    if len(rows) < n_views:
        raise InputError(f"views={n_views} needs a row for each, but the dictionary has {len(rows)} rows.")
    return [View(None, kernel, np.sort(part)) for part in np.array_split(rng.permutation(rows), n_views)]


def deal_columns(
    rows: NDArray[np.int64], views: Any, n_features: int, kernel: Any, rng: np.random.Generator
) -> list[View]:
    """
    Make views of columns, each with all rows as its dictionary unless it names a basis.

    Parameters
    ----------
    rows : array of int64
        From `choose_rows`.
    views : int or list
        See `corank.views.as_views`.
    n_features : int
        Number of columns.
    kernel : str, Kernel or callable
        Of views that name none.
    rng : numpy.random.Generator
        Deals columns where `views` is a number.

    Returns
    -------
    list of View
        The views, each with its basis.
    """
    if isinstance(views, Integral) and n_features < int(views):
        raise InputError(
            f"views={views} needs a column for each, but X has n_features = {n_features}; pass fewer views."
        )
    made = as_views(views, n_features, rng, kernel)
    return [View(view.columns, view.kernel, rows if view.basis is None else view.basis) for view in made]
