"""Weights of rows or pairs: finite, not negative, one each, not all zero; and what they leave to learn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.ranking import RankingData
from corank.errors import InputError


def as_weights(weights: ArrayLike, n: int, what: str = "row", name: str = "weights") -> NDArray[np.float64]:
    """
    Check weights.

    Parameters
    ----------
    weights : array-like of shape (n,)
        The weights.
    n : int
        How many there must be.
    what : str
        What is weighted, for the message.
    name : str
        How the caller calls the weights, for the message.

    Returns
    -------
    array of float64, shape (n,)
        The weights.

    Examples
    --------
    >>> as_weights([1, -2], 2)
    Traceback (most recent call last):
    corank.errors.InputError: weights is -2.0 at row 1; pass finite weights of at least 0.
    """
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must hold numbers, one per {what} ({error}).") from error
    if w.shape != (n,):
        raise InputError(f"{name} has shape {w.shape} for {n} {what}s; pass one weight per {what}, a 1D array.")
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise InputError(f"{name} is {w[bad[0]]} at {what} {bad[0]}; pass finite weights of at least 0.")
    if n and not w.any():
        raise InputError(f"{name} is zero for all {n} {what}s; give some of them a positive weight.")
    return w


def require_weight(total: float, what: str) -> None:
    """
    Raise one sentence where weights leave nothing to learn from.

    Parameters
    ----------
    total : float
        Sum of the weights, or number of those above zero.
    what : str
        What they weigh.
    """
    if not total > 0.0:
        raise InputError(f"the weights leave no {what} of positive weight; give some rows more than zero.")


def rows_to_learn_from(data: RankingData, weights: NDArray[np.float64] | None) -> NDArray[np.int64]:
    """
    Collect the rows that are compared or regressed on.

    Parameters
    ----------
    data : RankingData
        The problem.
    weights : array of shape (n_rows,), optional
        Row weights.

    Returns
    -------
    array of int64
        Ascending numbers of the scored rows of positive weight, or of the rows of pairs of positive weight.

    Examples
    --------
    >>> data = RankingData.of_pairs(np.zeros((5, 1)), [[3, 1], [3, 4]])
    >>> rows_to_learn_from(data, None).tolist(), rows_to_learn_from(data, np.array([1, 0, 1, 1, 1])).tolist()
    ([1, 3, 4], [3, 4])
    """
    counts = np.ones(data.n_rows, dtype=bool) if weights is None else weights > 0.0
    if data.pairs is None:
        return np.flatnonzero(data.is_scored & counts)
    return np.unique(data.pairs[counts[data.pairs].all(axis=1)])
