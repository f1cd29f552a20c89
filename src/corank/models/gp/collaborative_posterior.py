"""Posteriors of the users of a CollaborativeGP, and its predictions: scores, error bars, probabilities of ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.utils.validation import check_is_fitted

from corank.base.kernels import Kernel
from corank.base.kernels.basis import Basis
from corank.base.kernels.kernel import is_precomputed
from corank.core.rows.access import ScaledRows
from corank.data.queries import Queries
from corank.errors import InputError
from corank.fitted import Predictions
from corank.models.gp.grades import chosen_level, grade_shares, thresholds_of
from corank.models.gp.shared_prior import grade_numbers, item_rows, with_levels
from corank.models.gp.users import (
    GaussianLikelihood,
    OrdinalLikelihood,
    Population,
    ThresholdPrior,
    UserFit,
    UserLikelihood,
    coefficients,
    row_of,
)
from corank.models.ratings.ranker import RatingsRanker
from corank.parameters import check_values, one_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class UserPosteriors:
    """
    Posteriors of all users; user −1 is an unknown user, who has the prior.

    scales, noises (n_users + 1,), thresholds (n_users + 1, r − 1): of each user, the unknown user last.
    """

    population: Population  # population, likelihood: the prior of f, and the likelihood of ratings
    likelihood: UserLikelihood
    ratings: Any  # CSR matrix of users × items
    tau: Floats  # tau, nu: sites, one for each rating
    nu: Floats
    scales: Floats
    noises: Floats
    thresholds: Floats

    def of_items(self, user: int, items: Integers, *, with_var: bool) -> tuple[Floats, Floats]:
        """Mean and variance of f for some items; −1 is the average item."""
        S, h = self.population.covariance, self.population.mean
        diagonal = np.diagonal(S)
        mean, var = np.where(items < 0, h.mean(), h[items]), np.where(items < 0, diagonal.mean(), diagonal[items])
        if user < 0:
            return mean, var
        rated, fit = self._user_fit(user, with_M=with_var)
        across = np.where(items[:, None] < 0, 0.0, S[np.ix_(items, rated)])
        mean = mean + across @ fit.alpha
        if with_var:
            var = self.scales[user] * np.maximum(var - np.sum((across @ fit.M) * across, axis=1), 0.0)
        return mean, var

    def combined(self, user: int, C: Floats) -> tuple[Floats, Floats]:
        """Mean of f over all items, and the variance of Cᵀf."""
        S = self.population.covariance
        mean, var = self.population.mean.copy(), np.sum(C * (S @ C), axis=0)
        if user >= 0:
            items, fit = self._user_fit(user)
            mean += S[:, items] @ fit.alpha
            SC = S[items] @ C
            var = np.maximum(var - np.sum(SC * (fit.M @ SC), axis=0), 0.0)
        return mean, self.scales[user] * var

    def of_new(self, items: Integers, y: Floats) -> tuple[Floats, Floats, Floats, float]:
        """Mean and variance of all items for a new user, and that user's thresholds and noise."""
        S, h = self.population.covariance, self.population.mean
        if not len(items):
            return h.copy(), np.diagonal(S).copy(), self.thresholds[-1], float(self.noises[-1])
        fit = self.likelihood.converge(self.population, items, y)
        across = S[:, items]
        var = np.maximum(np.diagonal(S) - np.sum((across @ fit.M) * across, axis=1), 0.0)
        thresholds = self.thresholds[-1] if fit.free is None else thresholds_of(fit.free)
        noise = fit.scale * self.population.noise if fit.own_noise is None else fit.own_noise
        return h + across @ fit.alpha, fit.scale * var, thresholds, noise

    def _user_fit(self, user: int, *, with_M: bool = True) -> tuple[Integers, UserFit]:
        """The items that a user rated, and the user's posterior."""
        part = slice(self.ratings.indptr[user], self.ratings.indptr[user + 1])
        items, tau, nu = self.ratings.indices[part].astype(np.int64), self.tau[part], self.nu[part]
        S, root = self.population.covariance[np.ix_(items, items)], np.sqrt(tau)
        B = np.eye(len(items)) + root[:, None] * S * root
        factor = linalg.cho_factor(B, lower=True, check_finite=False)
        alpha = nu - root * linalg.cho_solve(factor, root * (S @ nu), check_finite=False)
        M = root[:, None] * linalg.cho_solve(factor, np.diag(root), check_finite=False) if with_M else B[:0]
        return items, UserFit(alpha, M, tau, nu, 0.0)


class CollaborativePosterior(RatingsRanker):
    """Base class of `CollaborativeGP`: predictions from its fitted attributes."""

    _predictions: ClassVar[Predictions] = {
        "predict_proba": lambda model, X: model.predict_proba(X[:1], model.users_[:1]),
        "predict_user_proba": lambda model, X: model.predict_user_proba(X[:1], [model.levels_[0]]),
        "predict_new": lambda model, X: model.predict_new(_new_item(model), model.users_[:1], return_std=True),
    }

    levels_: Floats
    item_covariance_: Floats
    sigma_: float
    user_scales_: Floats
    site_tau_: Floats
    site_nu_: Floats
    threshold_prior_: ThresholdPrior
    user_thresholds_: Floats
    user_sigmas_: Floats
    user_scales: bool
    free_thresholds: bool
    start: str
    basis_: Basis
    kernel_: Kernel
    item_gram_: Floats
    first_mean_: float
    first_var_: float
    feature_scale_: Floats
    log_evidence_: float
    evidence_trace_: Floats
    n_iter_: int

    def predict(
        self, X: Any, qid: ArrayLike | None = None, return_std: bool = False, *, prior: ArrayLike | None = None
    ) -> Any:
        """
        Score items for users by the mean of f, on the scale of ratings with the Gaussian likelihood.

        X: item ids; an item that was not in ``fit`` gets the score of the average item, see `predict_new`.
        qid: the user of each row; users without ratings in ``fit``, and all rows without qid, get the scores of the
            prior.
        return_std: whether to return the standard deviation of f too, without the noise of a rating.
        """
        mean, var, _ = self._user_rows(X, qid, with_var=return_std)
        scores = self._add_prior(mean, prior)
        return (scores, np.sqrt(var)) if return_std else scores

    def predict_proba(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """Compute the probability of each rating of `levels_`; each row sums to 1."""
        mean, var, users = self._user_rows(X, qid, with_var=True)
        posteriors, scores = self._user_posteriors, self._add_prior(mean, prior)
        return grade_shares(scores, var, posteriors.thresholds[users], posteriors.noises[users])

    def predict_level(
        self, X: Any, qid: ArrayLike | None = None, by: str = "mode", *, prior: ArrayLike | None = None
    ) -> Floats:
        """Predict a rating for each row, one of `levels_`."""
        check_values({"by": by}, {"by": one_of("mode", "median")})
        return self.levels_[chosen_level(self.predict_proba(X, qid, prior=prior), by)]

    def predict_user(self, items: ArrayLike, ratings: ArrayLike, return_std: bool = False) -> Any:
        """
        Score `items_` for a new user from a few ratings, on request with standard deviations; unknown items are
        ignored.
        """
        mean, var, _, _ = self._new_user(items, ratings)
        return (mean, np.sqrt(var)) if return_std else mean

    def predict_user_proba(self, items: ArrayLike, ratings: ArrayLike) -> Floats:
        """Compute the probability of each of `levels_` of all items for a new user, from a few ratings."""
        return grade_shares(*self._new_user(items, ratings))

    def predict_new(self, item_features: Any, users: ArrayLike | None = None, return_std: bool = False) -> Any:
        """
        Score items that were not in ``fit``, shape (n_users, n), by regression of f on the items' features.

        item_features: one row for each new item; similarities to the items of ``fit``, in the order of `items_`, if the
            kernel is "precomputed".
        users: ids of users of ``fit``; all of them by default.
        """
        check_is_fitted(self)
        self._check_prior(None)
        if not hasattr(self, "basis_"):
            raise InputError("this model was fitted without item_features; fit it with them to score new items.")
        rows, gram, posteriors = item_rows(item_features), self.item_gram_, self._user_posteriors
        if hasattr(self, "feature_scale_"):
            if rows.shape[1] != len(self.feature_scale_):
                raise InputError(
                    f"item_features has {rows.shape[1]} columns, but had {len(self.feature_scale_)} in fit; pass the "
                    "same columns."
                )
            rows = ScaledRows(rows, self.feature_scale_)[np.arange(rows.shape[0])]
        queries = Queries.of(self.users_ if users is None else users, len(self.users_ if users is None else users))  # type: ignore[arg-type]
        user_indices = self._user_indices(queries)[queries.codes]
        # c with E f(x) = mean + cᵀ(f − mean)
        k = with_levels(self.basis_.similarities(rows), gram, self.start)
        C = coefficients(with_levels(gram, gram, self.start), k.T)
        # a precomputed kernel has no k(x, x) of new items: assume the mean of the others
        has_no_diagonal = is_precomputed(self.kernel_)
        diagonal = np.full(len(k), np.diagonal(gram).mean()) if has_no_diagonal else self.kernel_.diag(rows)
        prior_var = with_levels(diagonal, gram, self.start)
        residual_var = self.first_var_ * np.maximum(prior_var - np.sum(k.T * C, axis=0), 0.0)
        mean, var = np.empty((len(user_indices), len(k))), np.empty((len(user_indices), len(k)))
        for i, user in enumerate(user_indices):
            f, of_items = posteriors.combined(user, C)
            mean[i] = self.first_mean_ + C.T @ (f - self.first_mean_)
            var[i] = of_items + posteriors.scales[user] * residual_var
        return (mean, np.sqrt(var)) if return_std else mean

    def _user_coefs(self, ratings: Any, levels: Floats) -> tuple[Floats, Floats]:
        W, posteriors = np.zeros((len(levels), len(self.items_))), self._user_posteriors
        encoded = self._encoded(ratings)
        for user in range(len(levels)):
            items, y = row_of(encoded, user)
            if len(items):
                W[user, items] = posteriors.likelihood.converge(posteriors.population, items, y).alpha
        return self.item_covariance_, W

    @property
    def _user_posteriors(self) -> UserPosteriors:
        """Posteriors of the users of ``fit``, and of an unknown user."""
        population = Population(self.item_means_, self.item_covariance_, self.sigma_**2)
        scales = np.append(self.user_scales_, 1.0)
        noises = population.noise * scales
        if hasattr(self, "threshold_prior_"):
            thresholds = np.vstack([self.user_thresholds_, thresholds_of(self.threshold_prior_.mean)])
            likelihood: UserLikelihood = OrdinalLikelihood(self.threshold_prior_, self.free_thresholds)
            if self.free_thresholds:
                noises = np.append(self.user_sigmas_, self.sigma_) ** 2
        else:
            thresholds = np.tile(0.5 * (self.levels_[1:] + self.levels_[:-1]), (len(self.users_) + 1, 1))
            likelihood = GaussianLikelihood(self.user_scales)
        return UserPosteriors(
            population, likelihood, self.ratings_, self.site_tau_, self.site_nu_, scales, noises, thresholds
        )

    def _encoded(self, ratings: Any) -> Any:
        return grade_numbers(ratings, self.levels_) if hasattr(self, "threshold_prior_") else ratings

    def _new_user(self, items: ArrayLike, ratings: ArrayLike) -> tuple[Floats, Floats, Floats, float]:
        """Mean and variance of all items for a new user, and the user's thresholds and noise."""
        row = self._row(items, ratings)
        self._check_prior(None)
        return self._user_posteriors.of_new(*row_of(self._encoded(row), 0))

    def _user_rows(self, X: Any, qid: ArrayLike | None, *, with_var: bool) -> tuple[Floats, Floats, Integers]:
        """Mean and variance of each row, and the index of its user, −1 if unknown."""
        check_is_fitted(self)
        items, posteriors = self._item_indices(X), self._user_posteriors
        queries = Queries.of(qid, len(items))
        users = self._user_indices(queries) if qid is not None else np.full(len(queries), -1)
        mean, var = np.empty(len(items)), np.zeros(len(items))

        def predict_part(first: int, last: int) -> None:
            for q in range(first, last):
                rows = queries.order[queries.starts[q] : queries.starts[q + 1]]
                mean[rows], var[rows] = posteriors.of_items(int(users[q]), items[rows], with_var=with_var)

        self._in_parallel(predict_part, queries.starts)
        return mean, var, users[queries.codes]


def _new_item(model: Any) -> Any:
    """Return features of a new item, those of an old one; similarities to all items for a precomputed kernel."""
    basis = getattr(model, "basis_", None)
    return np.zeros((1, len(model.items_))) if basis is None or basis.view.kernel.is_precomputed else basis.rows[:1]
