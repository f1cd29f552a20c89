"""
CollaborativeGP: one Gaussian process per user, with a prior shared by all users that is learnt from their ratings.

S. Yu, K. Yu and Tresp, Collaborative ordinal regression, 2005. The values f_j of the items for user j are

    f_j ~ N(mean, s_j Σ),   y_ji = f_ji + noise of variance s_j sigma²           likelihood="gaussian" (CGPR)
    f_j ~ N(mean, Σ),       grade c where b^j_{c−1} < f_ji + noise < b^j_c       likelihood="ordinal"  (CGPOR)

mean and Σ are free, and start from a kernel of the items: half of the variance is the kernel's, half a user's level.
Expectation maximisation learns them (`corank.models.gp.users`), with expectation propagation for
grades. Each user has a scale s_j with a prior around 1, or thresholds with a prior common to all users
(`corank.models.gp.users`). For grades, the unit of f is the noise, whose variance is 1.

The paper's models have no priors on mean, Σ and the users' parameters, and start from mean 0 and the kernel itself:

    CollaborativeGP("gaussian", prior_weight=0, user_scales=False, start="kernel")                                CGPR
    CollaborativeGP("ordinal", prior_weight=0, free_thresholds=True, start="kernel")                             CGPOR

An iteration over N rated items and users with k ratings costs O(N³ + Σ k³). Memory holds three square matrices over all
items, so a few thousand items fit. Unrated items are left out of the iterations, which changes nothing: EM keeps their
distribution given the rated items.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from corank.base.docs import shared_parameters
from corank.base.held_out import HeldOut
from corank.base.kernels import as_kernel
from corank.base.kernels.views import View
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.fitted import Relations, Shapes, is_ascending
from corank.models.gp.collaborative_posterior import CollaborativePosterior
from corank.models.gp.shared_prior import (
    FittedCollaborativeGP,
    item_rows,
    learn_shared,
    match_items,
    reordered,
    scaled,
    with_unrated,
)
from corank.models.ratings.ratings import Ids, ratings_matrix
from corank.parameters import Likelihood, Rules, boolean, integer, kernel, n_jobs, none, number, one_of, seed


@shared_parameters
@dataclass(eq=False, repr=False)
class CollaborativeGP(CollaborativePosterior):
    """
    Rank items for each of many users, with error bars: one Gaussian process per user, and one prior for all.

    Takes the same input as `Collaborative`, and optionally features of the items, from which scores of unrated items
    follow.

    Parameters
    ----------
    likelihood : {"ordinal", "gaussian"}
        Whether ratings are grades between thresholds, which are learnt per user, or numbers with Gaussian noise.
    kernel : str, Kernel or callable
        Similarity of items by their features; "precomputed" if `item_features` holds similarities.
    prior_weight : float, optional
        Number of users that the initial mean, kernel and noise count as (a normal-inverse-Wishart prior). None means
        the number of rated items, the smallest value for which the prior is proper; 0 is maximum likelihood, as in the
        paper.
    user_scales : bool
        Whether each user has a scale, with a prior around 1 (Gaussian likelihood); the paper has none.
    free_thresholds : bool
        Whether the thresholds and a noise of each user maximise the likelihood, as in the paper, instead of having a
        common prior and the noise 1 (ordinal likelihood).
    start : {"levels", "kernel"}
        Where the mean and Σ start. "levels": the mean of all ratings, and a covariance of which half is the kernel and
        half a level per user. "kernel": mean 0 and the kernel itself, as in the paper, for ratings minus each user's
        mean (Gaussian). There sigma starts from 0.1 without a prior, as in the paper; with one, from the ratings.
    max_iter : int
        Largest number of iterations of expectation maximisation; 0 learns only the users' thresholds.
    tol : float
        Iterations stop when the log evidence changes by less than this share.
    {n_jobs}
    scale : bool
        Whether to divide columns of `item_features` by their standard deviation.
    {random_state}

    Attributes
    ----------
    items_, users_, ratings_
        As in `Collaborative`.
    item_means_ : array of shape (n_items,)
        Mean of f over users.
    item_covariance_ : array of shape (n_items, n_items)
        Σ: covariance of f over users.
    sigma_ : float
        Standard deviation of a rating about f for a user of scale 1; 1 with the ordinal likelihood, unless the
        thresholds are free.
    user_scales_ : array of shape (n_users,)
        s: factor of each user's variances; 1 with the ordinal likelihood.
    levels_ : array of shape (n_levels,)
        The distinct ratings, ascending.
    threshold_prior_ : ThresholdPrior
        Prior of the users' thresholds (ordinal); its mean is that of the users if they are free.
    user_thresholds_ : array of shape (n_users, n_levels - 1)
        Upper ends of the grades but the last, for each user (ordinal).
    user_sigmas_ : array of shape (n_users,)
        Standard deviation of each user's noise, whose geometric mean is `sigma_` (with `free_thresholds`).
    site_tau_, site_nu_ : arrays of shape (n_ratings,)
        Natural parameters of the sites, one for each of `ratings_`.
    log_evidence_ : float
        Sum of the log evidences of all users.
    evidence_trace_ : array of shape (n_iter_ + 1,)
        The same before each iteration and at the end.
    n_iter_ : int
        Number of iterations of expectation maximisation.
    level_, first_mean_, first_var_ : float
        0, and the initial mean and variance of f.
    basis_, kernel_, item_gram_
        The items' features, the kernel with its parameters, and the Gram matrix (with `item_features`).
    feature_scale_ : array of shape (d,)
        Factors that columns of `item_features` are multiplied by.

    Notes
    -----
    A `prior` is allowed only with the Gaussian likelihood, whose ratings are numbers.

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
        "kernel": kernel,
        "prior_weight": number(0) | none,
        "user_scales": boolean,
        "free_thresholds": boolean,
        "start": one_of("levels", "kernel"),
        "max_iter": integer(0),
        "tol": number(0),
        "n_jobs": n_jobs,
        "scale": boolean,
        "random_state": seed,
    }

    _shapes: ClassVar[Shapes] = {
        "levels_": ("levels",),
        "item_covariance_": ("items", "items"),
        "user_scales_": ("users",),
        "user_sigmas_": ("users",),
        "site_tau_": ("sites",),
        "site_nu_": ("sites",),
        "user_thresholds_": ("users", "levels - 1"),
        "item_gram_": ("items", "items"),
        "feature_scale_": ("features",),
    }
    _relations: ClassVar[Relations] = {
        "levels_ ascends": lambda m: is_ascending(m.levels_),
        "site_tau_ has the ratings": lambda m: len(m.site_tau_) == m.ratings_.nnz and (m.site_tau_ >= 0.0).all(),
        "sigma_, user_scales_ and user_sigmas_ are positive": lambda m: (
            m.sigma_ > 0.0
            and (m.user_scales_ > 0.0).all()
            and (getattr(m, "user_sigmas_", np.ones(1)) > 0.0).all()
            and hasattr(m, "user_sigmas_") == (m.likelihood == "ordinal" and m.free_thresholds)
        ),
        "threshold_prior_ has the levels": lambda m: (
            hasattr(m, "threshold_prior_") == hasattr(m, "user_thresholds_")
            and (not hasattr(m, "threshold_prior_") or len(m.threshold_prior_.mean) == len(m.levels_) - 1)
        ),
        "basis_ has the items": lambda m: (
            not hasattr(m, "basis_")
            or (len(m.basis_) == len(m.item_gram_) and hasattr(m, "kernel_") and m.first_mean_ + m.first_var_ < np.inf)
        ),
        "item_means_ is moderate": lambda m: np.abs(m.item_means_).max() < 1e100,
        "item_covariance_ and item_gram_ are covariances": lambda m: (
            _is_covariance(m.item_covariance_) and _is_covariance(getattr(m, "item_gram_", np.zeros((0, 0))))
        ),
    }

    _learns_from_differences = False
    _needs_pairs = False

    likelihood: Likelihood = "ordinal"
    kernel: Any = "gaussian"
    prior_weight: float | None = None
    _: KW_ONLY
    user_scales: bool = True
    free_thresholds: bool = False
    start: str = "levels"
    max_iter: int = 20
    tol: float = 1e-4
    n_jobs: int | None = None
    scale: bool = True
    random_state: Any = None

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
            The ratings; NaN means no rating.
        qid : array-like of shape (n_ratings,)
            The user of each rating.
        prior : array-like of shape (n_ratings,), optional
            Prior ratings, with the Gaussian likelihood.
        items : array-like of shape (n,), optional
            Item ids of the rows of `item_features`; they contain all items of X and may contain unrated ones. Not
            needed if X is a matrix, whose columns are the items.
        item_features : array-like or CSR matrix of shape (n, d), optional
            One row for each item; similarities to all items if the kernel is "precomputed".
        sample_weight : None
            Not supported; present for scikit-learn's metadata routing.

        Returns
        -------
        self
            The fitted ranker.
        """
        rows: Any = None
        if item_features is not None:
            rows = item_rows(item_features)
            rated, order = match_items(X, items, rows.shape[0])
            rows = reordered(rows, order, self.kernel)
            rows = scaled(rows, self.kernel) if self.scale else rows
            X, y, qid, prior = with_unrated(X, y, qid, prior, rated, items)
        elif items is not None:
            raise InputError("items was given without item_features; pass one row of features per item, or neither.")

        def learn(data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedCollaborativeGP:
            if self.likelihood == "ordinal" and data.prior is not None:
                raise InputError("prior was given, but grades are not numbers; use likelihood='gaussian'.")
            return self._shared(*ratings_matrix(data), rng, rows)

        return self._learn((X, y, qid, None), (sample_weight, None), prior, continues=False, fit=learn)

    def _fit_ratings(self, ratings: Any, users: Ids, rng: np.random.Generator) -> Any:
        return self._shared(ratings, users, rng, None)

    def _shared(self, ratings: Any, users: Ids, rng: np.random.Generator, rows: Any) -> FittedCollaborativeGP:
        view = None if rows is None else View(None, as_kernel(self.kernel).fit(rows, rng))
        return learn_shared(self, ratings, users, rows, view)

    def _scales_columns(self, data: RankingData) -> bool:
        return False  # columns are item ids


def _is_covariance(matrix: NDArray[np.float64]) -> bool:
    """Return whether a matrix is symmetric and positive semidefinite, up to rounding."""
    size = np.abs(np.diagonal(matrix)).max(initial=0.0)
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-8 * size:
        return False
    try:
        linalg.cholesky(matrix + 1e-8 * size * np.eye(len(matrix)), lower=True, check_finite=False)
    except linalg.LinAlgError:
        return bool(size == 0.0)
    return True
