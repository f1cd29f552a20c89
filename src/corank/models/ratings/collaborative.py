"""
Collaborative: collaborative filtering by ridge regression per user, on a kernel of items learnt from all ratings.

All users share the means m of the items and one kernel of the items, K = V diag(e^power) Vᵀ: e and V are the largest
eigenvalues and eigenvectors of EᵀE, E the ratings minus the means of items and the levels of users (0 for missing
ratings). A user with ratings r of the items J minimises over b and g

    ‖r − m_J − b − g_J‖² + alpha ‖g‖²_K,    scores = m + b + K_{·J} (K_JJ + alpha I)⁻¹ (r − m_J − b).

One truncated decomposition serves all users: O(q · ratings) per Lanczos step for q directions. A user with k ratings
costs O(k² q + k³), or O(k q² + q³) for k > q; new users need no refit.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from corank.base.docs import shared_parameters
from corank.core.models.user_ridge import ridge_users
from corank.errors import InputError
from corank.models.ratings.item_kernel import ALPHAS, POWERS, ItemSpectrum, choose
from corank.models.ratings.item_mean import item_means, residuals, user_levels
from corank.models.ratings.ranker import FittedRatings, Floats, RatingsRanker
from corank.models.ratings.ratings import Ids
from corank.parameters import Rules, integer, n_jobs, none, number, seed


@shared_parameters
class Collaborative(RatingsRanker):
    """
    Rank items for each of many users from few ratings per user: collaborative filtering by ridge regression.

    ``fit(X, y, qid=user)`` takes one row for each rating: X holds item ids (numbers or strings, a vector or one
    column), y the ratings, qid the users. A user is a query, so every metric and splitter applies. ``fit(R)`` takes a
    scipy.sparse matrix of users × items instead: every stored entry is a rating, including zeros; ids are row and
    column numbers. ``predict(X, qid)`` scores items for users of ``fit``; `predict_user` scores all items for a new
    user.

    Parameters
    ----------
    alpha : float, optional
        Weight of the penalty against the sum over a user's ratings (not their mean, so the penalty matters less for
        users with many ratings). K is scaled so that the mean of K_ii over ratings is 1: alpha is the variance of the
        noise of a rating relative to that of g. None chooses it.
    power : float, optional
        Power of the eigenvalues: 0 is a projection, 1 the covariance of the ratings; higher powers favour the leading
        directions. None chooses it.
    n_basis : int
        Largest number of directions.
    shrink : float
        Number of neutral ratings added to each item before its mean is taken.
    {n_jobs}
    random_state : int, optional
        Random seed of the users that alpha and power are chosen on: a fifth of the users, 300 at most, by the squared
        error of ratings that are each predicted from nine others. With fewer than 20 users, or if no drawn user has
        two ratings, alpha is 2 and power 1.5.

    Attributes
    ----------
    items_, users_ : arrays of numbers or strings
        The ids, in order.
    ratings_ : CSR array of shape (n_users, n_items)
        The ratings.
    item_means_ : array of shape (n_items,)
        m: mean of an item's ratings relative to the users' levels.
    level_ : float
        Mean level of the users, used for users without ratings.
    item_features_ : array of shape (n_items, q)
        Z with K = ZZᵀ.
    alpha_, power_ : float
        The values in use.
    alpha_from_ : str
        Source of alpha and power: "given", "held-out users" or "default".

    Notes
    -----
    All other methods work as in any `Ranker`, except that item ids are not features: weights, pairs, scaling and
    kernels do not apply. Pass the ratings of new users to `predict_user`, not to ``predict``.

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
        "n_basis": integer(1),
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
        try:
            ridge_users(self.item_features_, items, starts, t, self.alpha_, coefs, levels)
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"alpha_ is {self.alpha_:g}, so small that the weights of a user are not determined; fit with a larger "
                "alpha."
            ) from error
        return self.item_features_, coefs
