"""
CollaborativeGP: a Gaussian process for each of many users, with one prior for all that is learnt from them.

S. Yu, K. Yu and Tresp, Collaborative ordinal regression, 2005. What user j thinks of the items is

    f_j ~ N(mean, s_j Σ),   y_ji = f_ji + noise of variance s_j sigma²           likelihood="gaussian" (CGPR)
    f_j ~ N(mean, Σ),       grade c where b^j_{c−1} < f_ji + noise < b^j_c       likelihood="ordinal"  (CGPOR)

mean and Σ are free, and start from a kernel of the items: half of the variance is the kernel's, half a user's level.
They are found by expectation maximisation (`corank.gp.collaborative.population`), with expectation propagation inside
for grades. Users do not use the same part of a scale: each has a scale s_j drawn about 1
(`corank.gp.collaborative.user_likelihoods`; the paper has s_j = 1), or thresholds drawn about those of all
(`corank.gp.collaborative.user_thresholds`). For grades the unit of f is the noise, which is 1.

N items that were rated and users of k ratings cost O(N³ + Σ k³) an iteration; all items together three matrices of
their number squared: some thousands of items. Items that nobody rated take no part in learning, and lose nothing by it:
EM leaves as it is what the kernel says of them given the others, with the prior weight or without.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from corank.collaborative.ratings import Ids, ratings_matrix
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.estimator.held_out import HeldOut
from corank.gp.collaborative.item_rows import in_order, item_rows, reordered, scaled, with_unrated
from corank.gp.collaborative.posterior import UserPosterior
from corank.gp.collaborative.shared_prior import FittedCollaborativeGP, SharedPrior
from corank.kernels import as_kernel
from corank.kernels.views import View
from corank.parameters import Rules, boolean, kernel, n_jobs, none, number, one_of, seed, whole


class CollaborativeGP(UserPosterior):
    """
    Order items for each of many users, with error bars: a Gaussian process a user, and one prior learnt from all.

    Reads what `Collaborative` reads, and rows of features of the items if there are any: items that nobody rated are
    then known by those who rated similar ones.

    Parameters
    ----------
    likelihood : {"ordinal", "gaussian"}
        Whether ratings are grades between each user's thresholds, which are learnt, or numbers with Gaussian noise.
    kernel : str, Kernel or callable
        Similarity of items by their features; "precomputed" where `item_features` holds similarities.
    prior_weight : float, optional
        Number of users that the mean, the kernel and the noise at the start count as (a normal-inverse-Wishart prior);
        None is one for each item that was rated, the least of which such a prior is a law; 0 is maximum likelihood.
    max_iter : int
        Most iterations of expectation maximisation; 0 learns nothing that users have in common but thresholds.
    tol : float
        Learning stops when an iteration raises the log evidence by less than this share of it.
    n_jobs : int, optional
        Threads that users are read on; None is one, −1 every processor. The number changes nothing in the result.
    scale : bool
        Whether columns of `item_features` are divided by their deviation before the kernel sees them.
    random_state : int, optional
        Seed of the kernel's median.

    Attributes
    ----------
    items_, users_, ratings_
        As in `Collaborative`.
    item_means_ : array of shape (n_items,)
        Mean of f over users.
    item_covariance_ : array of shape (n_items, n_items)
        Σ: how users differ from it.
    sigma_ : float
        Deviation of a rating about f, of a user of scale 1; 1 with the ordinal likelihood, whose unit it is.
    user_scales_ : array of shape (n_users,)
        s: what variances are multiplied by, user by user; 1 with the ordinal likelihood.
    levels_ : array of shape (n_levels,)
        The different ratings, ascending.
    pins_ : Pins
        What users' thresholds have in common (ordinal).
    user_thresholds_ : array of shape (n_users, n_levels - 1)
        Where grades end, user by user (ordinal).
    site_tau_, site_nu_ : arrays of shape (n_ratings,)
        What expectation propagation made of each of `ratings_`.
    log_evidence_ : float
        Sum of the log evidences of all users.
    evidence_trace_ : array of shape (n_iter_ + 1,)
        The same, before each iteration and at the end.
    n_iter_ : int
        Iterations of expectation maximisation.
    level_, first_mean_, first_var_ : float
        0, and the mean and the variance of f at the start.
    basis_, kernel_, item_gram_
        The items' features, the kernel with its numbers, and their similarities (with `item_features`).
    feature_scale_ : array of shape (d,)
        What columns of `item_features` were multiplied by: they are divided by their deviation.

    Notes
    -----
    A `prior` is taken with the Gaussian likelihood only: grades have no numbers to take it from.

    Examples
    --------
    >>> from corank import CollaborativeGP
    >>> items, user = ["tea", "milk", "ale", "rum"] * 3, [1] * 4 + [2] * 4 + [3] * 4
    >>> y = [5, 4, 1, 2, 4, 5, 2, 1, 1, 2, 5, 4]
    >>> model = CollaborativeGP("gaussian", prior_weight=1.0).fit(items, y, qid=user)  # three users only
    >>> model.recommend_user(["ale", "tea"], [5, 2], n=1)
    array(['rum'], dtype='<U4')
    >>> mean, std = model.predict(["rum"], qid=[1], return_std=True)
    """

    _rules: ClassVar[Rules] = {
        "likelihood": one_of("ordinal", "gaussian"),
        "kernel": kernel,
        "prior_weight": number(0) | none,
        "max_iter": whole(0),
        "tol": number(0),
        "n_jobs": n_jobs,
        "scale": boolean,
        "random_state": seed,
    }

    _learns_from_differences: bool = False
    _needs_pairs: bool = False

    def __init__(
        self,
        likelihood: str = "ordinal",
        kernel: Any = "gaussian",
        prior_weight: float | None = None,
        *,
        max_iter: int = 20,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        scale: bool = True,
        random_state: Any = None,
    ) -> None:
        self.likelihood = likelihood
        self.kernel = kernel
        self.prior_weight = prior_weight
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.scale = scale
        self.random_state = random_state

    @property
    def _learns_sizes(self) -> bool:  # type: ignore[override]
        return self.likelihood == "gaussian"

    @property
    def _is_pairwise(self) -> bool:
        return False  # rows are ratings, not items

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        prior: ArrayLike | None = None,
        items: ArrayLike | None = None,
        item_features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """
        Learn from ratings.

        Parameters
        ----------
        X : array-like of item ids, sparse matrix of users × items, or RankingData
            As in `Collaborative`.
        y : array-like of shape (n_ratings,)
            The ratings; NaN is none.
        qid : array-like of shape (n_ratings,)
            The user of each rating.
        prior : array-like of shape (n_ratings,), optional
            Ratings known before learning, with the Gaussian likelihood.
        items : array-like of shape (n,), optional
            Ids of the items that `item_features` belong to, rated or not; every item of X among them. Numbers of
            columns where X is a matrix, and then not needed.
        item_features : array-like or CSR matrix of shape (n, d), optional
            One row for each item; their similarities with each other where the kernel is "precomputed".
        sample_weight : None
            There so that scikit-learn can route to this method; weights are refused.

        Returns
        -------
        self
            The fitted ranker.
        """
        rows: Any = None
        if item_features is not None:
            rows = item_rows(item_features)
            rated, order = in_order(X, items, rows.shape[0])
            rows = reordered(rows, order, self.kernel)
            rows = scaled(rows, self.kernel) if self.scale else rows
            X, y, qid, prior = with_unrated(X, y, qid, prior, rated, items)
        elif items is not None:
            raise InputError("items came without item_features; pass one row of features for each, or leave both out.")

        def learn(data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedCollaborativeGP:
            if self.likelihood == "ordinal" and data.prior is not None:
                raise InputError("prior came, but grades have no numbers to take it from; use likelihood='gaussian'.")
            return self._shared(*ratings_matrix(data), rng, rows)

        return self._learn((X, y, qid, None), (sample_weight, None), prior, continues=False, fit=learn)

    def _fit_ratings(self, ratings: Any, users: Ids, rng: np.random.Generator) -> Any:
        return self._shared(ratings, users, rng, None)

    def _shared(self, ratings: Any, users: Ids, rng: np.random.Generator, rows: Any) -> FittedCollaborativeGP:
        view = None if rows is None else View(None, as_kernel(self.kernel).fit(rows, rng))
        how = SharedPrior(self.likelihood, self.prior_weight, self.max_iter, self.tol, self.n_jobs)
        return how.fitted(ratings, users, rows, view)

    def _scales_columns(self, data: RankingData) -> bool:
        return False  # of items, which are no features
