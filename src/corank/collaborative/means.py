"""What all users agree on: the means of items, shrunk, and the levels of users, solved for together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.solvers.linear_map import conjugate_gradients

Floats = NDArray[np.float64]

_TOL = 1e-10


def item_means(ratings: Any, shrink: float) -> Floats:
    """
    Minimise Σ (r_ui − level_u − m_i)² + shrink Σ m_i² over the ratings, by conjugate gradients in O(ratings) a step.

    Of m_i = Σ_u (r_ui − r̄_u)/(n_i + shrink), with the users' own means for levels, an item would suffer from standing
    beside good ones.

    ratings: CSR matrix of users × items, each of whom rated something.
    Returns: m, 0 for an item that nobody rated.
    """
    n_items, sizes = ratings.shape[1], np.diff(ratings.indptr)
    rated = sparse.csr_array((np.ones(ratings.nnz), ratings.indices, ratings.indptr), shape=ratings.shape)
    diagonal = np.bincount(ratings.indices, minlength=n_items) + shrink
    diagonal[diagonal == 0.0] = 1.0
    gaps = ratings.data - np.repeat(user_levels(ratings, np.zeros(n_items)), sizes)
    return conjugate_gradients(
        lambda m: diagonal * m - rated.T @ ((rated @ m) / sizes),
        np.bincount(ratings.indices, gaps, n_items).astype(np.float64),
        lambda m: m / diagonal,
        _TOL**2,
        10 * n_items,
    ).x


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
