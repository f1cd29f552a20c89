"""
Collaborative: many users' few ratings, and new users at once.

All users share the means m of the items and one kernel of the items, K = V diag(e^power) Vᵀ: e and V are the largest
eigenvalues and eigenvectors of EᵀE, E the ratings minus the means of items and the levels of users (0 where there is no
rating). A user with ratings r of the items J then minimises over b and g

    ‖r − m_J − b − g_J‖² + alpha ‖g‖²_K,    scores = m + b + K_{·J} (K_JJ + alpha I)⁻¹ (r − m_J − b).

One truncated decomposition serves everybody: O(q · ratings) a step of the Lanczos method for q directions. A user of k
ratings costs O(k² q + k³), or O(k q² + q³) where k is above q; nothing is refitted for a new one.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from corank.collaborative.item_kernel import ALPHAS, POWERS, ItemSpectrum, choose
from corank.collaborative.item_mean import item_means, residuals, user_levels
from corank.collaborative.ranker import FittedRatings, Floats, RatingsRanker
from corank.collaborative.ratings import Ids
from corank.core.models.user_ridge import ridge_users
from corank.parameters import Rules, n_jobs, none, number, seed, whole


class Collaborative(RatingsRanker):
    """
    Order items for each of many users, from a few ratings of each: means for all, and a taste of one's own.

    ``fit(X, y, qid=user)`` takes one row for each rating: X holds item ids (numbers or strings, a vector or one
    column), y the ratings, qid the users, so that a user is a query and every metric and splitter of rows applies.
    ``fit(R)`` takes a scipy.sparse matrix of users × items instead: what is stored is a rating, zeros too; ids are
    then numbers of rows and columns. ``predict(X, qid)`` scores items for users of ``fit``; `predict_user` scores all
    items for anybody.

    Parameters
    ----------
    alpha : float, optional
        Weight of the penalty beside the sum over a user's ratings (not their mean: who rated more is trusted more).
        K is scaled so that K_ii is 1 in the mean over ratings: alpha is the variance of a rating about a user's taste,
        in units of the taste's own, and has no unit. None chooses.
    power : float, optional
        Power of the eigenvalues: 0 is a projection, 1 the covariance of the ratings as they are, more trusts the large
        directions more. None chooses.
    n_basis : int
        Most directions.
    shrink : float
        So many ratings of no opinion are added to each item's before its mean is taken.
    n_jobs : int, optional
        Threads that predictions for many users are made on; None is one, −1 every processor.
    random_state : int, optional
        Draws the users that alpha and power are chosen on: a fifth, 300 at most, by the squared error of ratings, each
        predicted from nine others. Where both are given nothing is drawn, and nothing decomposed twice. Where there are
        fewer than 20 users, or none of the drawn gave two ratings, alpha is 2 and power 1.5.

    Attributes
    ----------
    items_, users_ : arrays of numbers or strings
        The ids, in order.
    ratings_ : CSR array of shape (n_users, n_items)
        What was learnt from.
    item_means_ : array of shape (n_items,)
        m: how far above a user's level an item is rated.
    level_ : float
        Mean level of the users, for those who gave no rating.
    item_features_ : array of shape (n_items, q)
        Z with K = ZZᵀ.
    alpha_, power_ : float
        What was used.
    alpha_from_ : str
        What alpha and power were chosen from: "given", "held-out users" or "default".

    Notes
    -----
    All other methods work as in any `Ranker`, except that ids have no columns: weights, pairs, scaling and kernels have
    no meaning here. Ratings of users who were not there in ``fit`` are handed to `predict_user`, not to ``predict``.

    Examples
    --------
    >>> items, user = ["tea", "milk", "ale", "rum"] * 3, [1] * 4 + [2] * 4 + [3] * 4
    >>> y = [5, 4, 1, 2, 4, 5, 2, 1, 1, 2, 5, 4]
    >>> model = Collaborative(alpha=0.1).fit(items, y, qid=user)
    >>> model.recommend_user(["ale", "tea"], [5, 2], n=1)
    array(['rum'], dtype='<U4')
    """

    _rules: ClassVar[Rules] = {
        "alpha": number(0, inside="()") | none,
        "power": number(0) | none,
        "n_basis": whole(1),
        "shrink": number(0),
        "n_jobs": n_jobs,
        "random_state": seed,
    }

    item_features_: Floats
    alpha_: float
    power_: float
    alpha_from_: str

    def __init__(
        self,
        alpha: float | None = None,
        power: float | None = None,
        n_basis: int = 100,
        *,
        shrink: float = 2.0,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.power = power
        self.n_basis = n_basis
        self.shrink = shrink
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_ratings(self, ratings: Any, users: Ids, rng: np.random.Generator) -> FittedRatings:
        alphas = ALPHAS if self.alpha is None else (float(self.alpha),)
        powers = POWERS if self.power is None else (float(self.power),)
        alpha, power, source = choose(ratings, self.shrink, int(self.n_basis), alphas, powers, rng)
        m = item_means(ratings, self.shrink)
        Z = ItemSpectrum.of(residuals(ratings, m), int(self.n_basis)).features(power)
        level = float(user_levels(ratings, m).mean())
        return FittedRatings(users, ratings, m, level, Z, alpha, power, source)

    def _user_coefs(self, ratings: Any, levels: Floats) -> tuple[Floats, Floats]:
        coefs = np.zeros((len(levels), self.item_features_.shape[1]))
        t = ratings.data - self.item_means_[ratings.indices]
        items, starts = ratings.indices.astype(np.int64, copy=False), ratings.indptr.astype(np.int64, copy=False)
        ridge_users(self.item_features_, items, starts, t, self.alpha_, coefs, levels)
        return self.item_features_, coefs
