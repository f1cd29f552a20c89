"""Synthetic ratings of a few users, for tests of collaborative rankers."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def draw_ratings(n_users=40, n_items=15, share=0.5, seed=0):
    """CSR matrix of users × items; every user rated something, and a rating may be 0."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_users, 3)) @ rng.normal(size=(3, n_items)) + rng.normal(size=n_items)
    scores = np.round(scores + rng.normal(size=(n_users, 1)))
    seen = rng.random(scores.shape) < share
    seen[np.arange(n_users), rng.integers(0, n_items, n_users)] = True
    user, item = np.nonzero(seen)
    return sparse.csr_array((scores[user, item], (user, item)), shape=scores.shape)


def events(ratings):
    """Items, ratings and users, as ``fit`` takes them."""
    cells = ratings.tocoo()
    return cells.col.copy(), cells.data.copy(), cells.row.copy()
