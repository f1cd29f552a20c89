"""What all users agree on: the means of items, shrunk, and the levels of users, solved for together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_TOL = 1e-10
_MOST_SWEEPS = 1000


def item_means(ratings: Any, shrink: float) -> Floats:
    """
    Minimise Σ (r_ui − level_u − m_i)² + shrink Σ m_i² over the ratings, by turns; a sweep costs O(ratings).

    With the first sweep alone, m_i = Σ_u (r_ui − r̄_u)/(n_i + shrink), an item that is rated by users of high means
    because they like what they rate would pass for a poor one.

    ratings: CSR matrix of users × items.
    Returns: m, 0 for an item that nobody rated.
    """
    n_items = ratings.shape[1]
    user = np.repeat(np.arange(ratings.shape[0]), np.diff(ratings.indptr))
    size = np.maximum(np.bincount(ratings.indices, minlength=n_items) + shrink, 1.0)
    m = np.zeros(n_items)
    for _ in range(_MOST_SWEEPS):
        levels = user_levels(ratings, m)
        sums = np.bincount(ratings.indices, ratings.data - levels[user], n_items)
        last, m = m, sums / size
        if np.abs(m - last).max(initial=0.0) <= _TOL * np.abs(m).max(initial=0.0):
            break
    return m


def user_levels(ratings: Any, m: Floats) -> Floats:
    """
    Say by how much each user rates above the items' means.

    ratings: CSR matrix of users × items, each of whom rated something.
    m (n_items,): means of the items.
    """
    n = np.diff(ratings.indptr)
    user = np.repeat(np.arange(len(n)), n)
    return np.asarray(np.bincount(user, ratings.data - m[ratings.indices], len(n)) / np.maximum(n, 1))


def residuals(ratings: Any, m: Floats) -> Any:
    """
    Take off what the means of items and the levels of users explain.

    Returns: CSR matrix of the same entries.
    """
    rest = ratings.copy()
    rest.data = ratings.data - m[ratings.indices] - np.repeat(user_levels(ratings, m), np.diff(ratings.indptr))
    return rest
