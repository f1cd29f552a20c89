"""ItemMean: shrunk means of items, and levels of users, as a baseline that is not personalised."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from corank.base.solvers.conjugate import conjugate_gradients
from corank.models.ratings.ranker import FittedRatings, Floats, RatingsRanker
from corank.models.ratings.ratings import Ids
from corank.parameters import Rules, number

_TOL = 1e-10


def item_means(ratings: Any, shrink: float) -> Floats:
    """
    Minimise Σ (r_ui − level_u − m_i)² + shrink Σ m_i² over the ratings, by conjugate gradients in O(ratings) per step.

    The simpler m_i = Σ_u (r_ui − r̄_u)/(n_i + shrink), with the users' means as levels, would penalise items that are
    rated together with good ones.
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
    """Mean difference between each user's ratings and the items' means."""
    n = np.diff(ratings.indptr)
    user = np.repeat(np.arange(len(n)), n)
    return np.asarray(np.bincount(user, ratings.data - m[ratings.indices], len(n)) / np.maximum(n, 1))


def residuals(ratings: Any, m: Floats) -> Any:
    """Subtract the means of items and the levels of users."""
    rest = ratings.copy()
    rest.data = ratings.data - m[ratings.indices] - np.repeat(user_levels(ratings, m), np.diff(ratings.indptr))
    return rest


class ItemMean(RatingsRanker):
    """
    Rank items by their mean ratings, in the same order for all users: a baseline for personalised rankers.

    Minimises Σ (r_ui − level_u − m_i)² + shrink Σ m_i² over all ratings. A user's own ratings change only the level of
    the scores. Takes the same input as `Collaborative`. Fitting takes some tens of steps of O(ratings).

    Parameters
    ----------
    shrink : float
        Number of neutral ratings added to each item.

    Attributes
    ----------
    items_, users_, ratings_, item_means_, level_
        As in `Collaborative`.

    Examples
    --------
    >>> items, y, user = ["tea", "milk", "tea", "ale", "milk", "ale"], [5, 3, 4, 1, 4, 2], [1, 1, 2, 2, 3, 3]
    >>> model = ItemMean().fit(items, y, qid=user)
    >>> model.rank(["ale", "tea", "milk"])
    array([3, 1, 2])
    """

    _rules: ClassVar[Rules] = {"shrink": number(0)}

    def __init__(self, shrink: float = 2.0) -> None:
        self.shrink = shrink

    def _fit_ratings(self, ratings: Any, users: Ids, rng: np.random.Generator) -> FittedRatings:
        m = item_means(ratings, self.shrink)
        return FittedRatings(users, ratings, m, float(user_levels(ratings, m).mean()))

    def _user_coefs(self, ratings: Any, levels: Floats) -> tuple[Floats, Floats]:
        rated = np.diff(ratings.indptr) > 0
        levels[rated] = user_levels(ratings, self.item_means_)[rated]
        return np.zeros((len(self.item_means_), 0)), np.zeros((len(levels), 0))
