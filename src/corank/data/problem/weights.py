"""Weights of rows or pairs: finite, not negative, one each, not all zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError

LARGEST = 1e40
"""Largest weight of a row or pair, and the inverse of the smallest: a pair's is a product of three, and is squared."""


def as_weights(weights: ArrayLike, n: int, what: str = "row", name: str = "weights") -> NDArray[np.float64]:
    """
    Check weights.

    weights (n,): the weights; a number weighs all alike.
    n: how many there must be.
    what: what is weighted, for the message.
    name: how the caller calls the weights, for the message.

    >>> as_weights([1, -2], 2)
    Traceback (most recent call last):
    corank.errors.InputError: weights is -2.0 at row 1; pass finite weights of at least 0.
    """
    try:
        w = np.asarray(weights, dtype=np.float64)
        w = np.full(n, w) if w.ndim == 0 else w
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


def require_moderate(w: NDArray[np.float64], what: str, name: str) -> None:
    """
    Raise one sentence where weights are so large or small that products of them, and sums of those, would be lost.

    w: checked weights.
    what, name: as in `as_weights`.
    """
    bad = np.flatnonzero((w > LARGEST) | ((w > 0.0) & (w < 1.0 / LARGEST)))
    if len(bad):
        raise InputError(
            f"{name} is {w[bad[0]]:g} at {what} {bad[0]}, too large or too small to be multiplied with others; keep "
            f"weights between {1.0 / LARGEST:g} and {LARGEST:g}, or 0."
        )


def require_weight(total: float, what: str) -> None:
    """
    Raise one sentence where weights leave nothing to learn from.

    total: sum of the weights, or number of those above zero.
    what: what they weigh.
    """
    if not total > 0.0:
        raise InputError(f"the weights leave no {what} of positive weight; give some rows more than zero.")
