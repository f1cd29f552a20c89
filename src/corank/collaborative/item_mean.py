"""ItemMean: the means of items, shrunk, for a user of whom nothing is known."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from corank.collaborative.means import item_means, user_levels
from corank.collaborative.ranker import FittedRatings, Floats, RatingsRanker
from corank.collaborative.ratings import Ids
from corank.parameters import Rules, number


class ItemMean(RatingsRanker):
    """
    Order items for everybody alike, by what others thought of them: the bar that a personal ranker has to pass.

    Minimises Σ (r_ui − level_u − m_i)² + shrink Σ m_i² over all ratings. A user's own ratings set the level of the
    scores, and nothing else. Reads what `Collaborative` reads; a sweep over the ratings costs O(ratings), and some tens
    do.

    Parameters
    ----------
    shrink : float
        So many ratings of no opinion are added to each item's.

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

    def _tastes(self, ratings: Any, levels: Floats) -> tuple[Floats, Floats]:
        rated = np.diff(ratings.indptr) > 0
        levels[rated] = user_levels(ratings, self.item_means_)[rated]
        return np.zeros((len(self.item_means_), 0)), np.zeros((len(levels), 0))
