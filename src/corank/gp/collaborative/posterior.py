"""UserPosterior: what Gaussian processes of many users say of items: scores, error bars, chances of ratings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from corank.collaborative.ranker import RatingsRanker
from corank.core.rows.scaled import ScaledRows
from corank.data.problem.queries import Queries
from corank.errors import InputError
from corank.gp.collaborative.item_rows import item_rows, with_levels
from corank.gp.collaborative.population import Population, coefficients
from corank.gp.collaborative.shared_prior import grade_numbers
from corank.gp.collaborative.user_likelihoods import GaussianReader, OrdinalReader, row_of
from corank.gp.collaborative.user_posteriors import Opinions
from corank.gp.collaborative.user_thresholds import Pins
from corank.gp.ordinal.ordinal_gp import chosen_level
from corank.gp.ordinal.thresholds import thresholds_of
from corank.kernels import Basis, Kernel, is_precomputed
from corank.parameters import check_values, one_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class UserPosterior(RatingsRanker):
    """Base class of `CollaborativeGP`, which learns what this reads."""

    levels_: Floats
    item_covariance_: Floats
    sigma_: float
    user_scales_: Floats
    site_tau_: Floats
    site_nu_: Floats
    pins_: Pins
    user_thresholds_: Floats
    basis_: Basis
    kernel_: Kernel
    item_gram_: Floats
    first_mean_: float
    first_var_: float

    def predict(
        self, X: Any, qid: ArrayLike | None = None, return_std: bool = False, *, prior: ArrayLike | None = None
    ) -> Any:
        """
        Score items, each for a user: the expected f, on the scale of ratings with the Gaussian likelihood.

        Parameters
        ----------
        X : array-like of shape (n_rows,) or (n_rows, 1)
            Item ids. One that was not there in ``fit`` scores as the mean item; see `predict_new`.
        qid : array-like of shape (n_rows,), optional
            The user of each row. Of one who gave no rating in ``fit``, as of everyone where there is no qid, nothing is
            known but what users have in common.
        return_std : bool
            Whether to return the standard deviation of f too, without the noise of a rating.
        prior : array-like of shape (n_rows,), optional
            Scores of these rows known before learning; wanted where ``fit`` had a prior, and only there.

        Returns
        -------
        array of shape (n_rows,), or two of them
            Scores in input order, higher is better, and how unsure they are.
        """
        mean, var, _ = self._read_rows(X, qid, with_var=return_std)
        scores = self._add_prior(mean, prior)
        return (scores, np.sqrt(var)) if return_std else scores

    def predict_proba(self, X: Any, qid: ArrayLike | None = None, *, prior: ArrayLike | None = None) -> Floats:
        """
        Compute how likely each rating is.

        Parameters
        ----------
        X, qid, prior
            As in `predict`.

        Returns
        -------
        array of shape (n_rows, n_levels)
            Probabilities of `levels_`; each row adds up to 1.
        """
        mean, var, users = self._read_rows(X, qid, with_var=True)
        known = self._opinions
        return known.shares(self._add_prior(mean, prior), var, known.thresholds[users], known.scales[users])

    def predict_level(
        self, X: Any, qid: ArrayLike | None = None, by: str = "mode", *, prior: ArrayLike | None = None
    ) -> Floats:
        """
        Name a rating for each row.

        Parameters
        ----------
        X, qid, prior
            As in `predict`.
        by : {"mode", "median"}
            As in `OrdinalGP.predict_level`.

        Returns
        -------
        array of shape (n_rows,)
            One of `levels_` for each row.
        """
        check_values({"by": by}, {"by": one_of("mode", "median")})
        return self.levels_[chosen_level(self.predict_proba(X, qid, prior=prior), by)]

    def predict_user(self, items: ArrayLike, ratings: ArrayLike, return_std: bool = False) -> Any:
        """
        Score all items for anybody, from a few ratings.

        Parameters
        ----------
        items : array-like of shape (k,)
            Ids of the items rated; those that were not there in ``fit`` say nothing and are left out.
        ratings : array-like of shape (k,)
            The ratings; NaN is none.
        return_std : bool
            Whether to return standard deviations too.

        Returns
        -------
        array of shape (n_items,), or two of them
            Scores of `items_`, and how unsure they are.
        """
        mean, var, _, _ = self._read_new(items, ratings)
        return (mean, np.sqrt(var)) if return_std else mean

    def predict_user_proba(self, items: ArrayLike, ratings: ArrayLike) -> Floats:
        """
        Compute how likely anybody is to rate all items how, from a few ratings.

        Parameters
        ----------
        items, ratings : array-like of shape (k,)
            As in `predict_user`.

        Returns
        -------
        array of shape (n_items, n_levels)
            Probabilities of `levels_`.
        """
        return self._opinions.shares(*self._read_new(items, ratings))

    def predict_new(self, item_features: Any, users: ArrayLike | None = None, return_std: bool = False) -> Any:
        """
        Score items that were not there in ``fit``: what was learnt of items, mapped back to their features.

        Parameters
        ----------
        item_features : array-like or CSR matrix of shape (n, d)
            One row for each new item; similarities to the items of ``fit``, in the order of `items_`, where the kernel
            is "precomputed".
        users : array-like of shape (n_users,), optional
            Ids of users of ``fit``; all of them by default.
        return_std : bool
            Whether to return standard deviations too.

        Returns
        -------
        array of shape (n_users, n), or two of them
            Scores, and how unsure they are.
        """
        check_is_fitted(self)
        self._check_prior(None)
        if not hasattr(self, "basis_"):
            raise InputError("this model was fitted without item_features, so it knows items by their ids alone.")
        rows, gram, opinions = item_rows(item_features), self.item_gram_, self._opinions
        if hasattr(self, "feature_scale_"):
            if rows.shape[1] != len(self.feature_scale_):
                raise InputError(
                    f"item_features has {rows.shape[1]} columns, but fit had {len(self.feature_scale_)}; pass the same."
                )
            rows = ScaledRows(rows, self.feature_scale_)[np.arange(rows.shape[0])]
        asked = Queries.of(self.users_ if users is None else users, len(self.users_ if users is None else users))  # type: ignore[arg-type]
        known = self._known(asked)[asked.codes]
        # c with E f(x) = mean + cᵀ(f − mean); what the kernel has beyond that is not known
        k = with_levels(self.basis_.similarities(rows), gram)
        C = coefficients(with_levels(gram, gram), k.T)
        # of a precomputed kernel, a new item is taken to be as like itself as others are
        is_given = is_precomputed(self.kernel_)
        own = np.full(len(k), np.diagonal(gram).mean()) if is_given else self.kernel_.diag(rows)
        left = self.first_var_ * np.maximum(with_levels(own, gram) - np.sum(k.T * C, axis=0), 0.0)
        mean, var = np.empty((len(known), len(k))), np.empty((len(known), len(k)))
        for at, user in enumerate(known):
            f, of_items = opinions.combined(user, C)
            mean[at] = self.first_mean_ + C.T @ (f - self.first_mean_)
            var[at] = of_items + opinions.scales[user] * left
        return (mean, np.sqrt(var)) if return_std else mean

    def _tastes(self, ratings: Any, levels: Floats) -> tuple[Floats, Floats]:
        W, known = np.zeros((len(levels), len(self.items_))), self._opinions
        given = self._read_as(ratings)
        for user in range(len(levels)):
            items, y = row_of(given, user)
            if len(items):
                W[user, items] = known.reader.settle(known.population, items, y).alpha
        return self.item_covariance_, W

    @property
    def _opinions(self) -> Opinions:
        """What was learnt of users, and of the stranger."""
        population = Population(self.item_means_, self.item_covariance_, self.sigma_**2)
        told = self.ratings_, self.site_tau_, self.site_nu_, np.append(self.user_scales_, 1.0)
        if hasattr(self, "pins_"):
            thresholds = np.vstack([self.user_thresholds_, thresholds_of(self.pins_.mean)])
            return Opinions(population, OrdinalReader(self.pins_), *told, thresholds)
        halfway = 0.5 * (self.levels_[1:] + self.levels_[:-1])
        return Opinions(population, GaussianReader(), *told, np.tile(halfway, (len(self.users_) + 1, 1)))

    def _read_as(self, ratings: Any) -> Any:
        return grade_numbers(ratings, self.levels_) if hasattr(self, "pins_") else ratings

    def _read_new(self, items: ArrayLike, ratings: ArrayLike) -> tuple[Floats, Floats, Floats, float]:
        """Mean and variance of all items for a new user, and the user's thresholds and scale."""
        row = self._row(items, ratings)
        self._check_prior(None)
        return self._opinions.of_new(*row_of(self._read_as(row), 0))

    def _read_rows(self, X: Any, qid: ArrayLike | None, *, with_var: bool) -> tuple[Floats, Floats, Integers]:
        """Mean and variance of each row, and the number of its user, −1 for a new one."""
        check_is_fitted(self)
        items, known = self._numbers(X), self._opinions
        asked = Queries.of(qid, len(items))
        users = self._known(asked) if qid is not None else np.full(len(asked), -1)
        mean, var = np.empty(len(items)), np.zeros(len(items))

        def read(first: int, last: int) -> None:
            for q in range(first, last):
                rows = asked.order[asked.starts[q] : asked.starts[q + 1]]
                mean[rows], var[rows] = known.of_items(int(users[q]), items[rows], with_var=with_var)

        self._spread(read, asked.starts)
        return mean, var, users[asked.codes]
