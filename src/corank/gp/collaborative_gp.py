"""
CollaborativeGP: a Gaussian process for each of many users, with one prior for all that is learnt from them.

S. Yu, K. Yu and Tresp, Collaborative ordinal regression, 2005. What user j thinks of the items is

    f_j ~ N(mean, Σ),   y_ji = f_ji + noise                                    likelihood="gaussian" (CGPR)
                        grade c where b^j_{c−1} < f_ji + noise < b^j_c         likelihood="ordinal"  (CGPOR)

mean and Σ are free, and start from a kernel of the items: half of the variance is the kernel's, half a user's level.
They are found by expectation maximisation (`corank.gp.population`), with expectation propagation inside for grades; a
user's thresholds are drawn about those of all (`corank.gp.pins`). For grades the unit of f is the noise, which is 1.

N items that were rated and users of k ratings cost O(N³ + Σ k³) an iteration; all items together three matrices of
their number squared: some thousands of items. Items that nobody rated take no part in learning, and lose nothing by it:
EM leaves as it is what the kernel says of them given the others, with the prior weight or without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse
from sklearn.utils.validation import check_is_fitted

from corank.basis import Basis
from corank.collaborative.ranker import RatingsRanker
from corank.collaborative.ratings import Ids, coded, positions, ratings_matrix
from corank.core.scaled import ScaledRows, factors_of
from corank.data.deviation import column_factors
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import as_rows
from corank.errors import InputError
from corank.gp.ordinal_gp import chosen_level
from corank.gp.pins import Pins
from corank.gp.population import Population, coefficients
from corank.gp.readers import GaussianReader, OrdinalReader, Reader, Told, read_all, row_of
from corank.gp.thresholds import thresholds_of
from corank.held_out import HeldOut
from corank.kernels import Kernel, as_kernel, is_precomputed
from corank.likelihoods import IntervalProbit
from corank.parameters import Rules, boolean, check_values, kernel, n_jobs, number, one_of, seed, whole
from corank.views import View

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# most grades that a user has thresholds for
_MOST_LEVELS = 20


@dataclass(frozen=True, eq=False)
class FittedCollaborativeGP:
    """What `CollaborativeGP` learns, see there; each field is an attribute of the model."""

    users: Ids
    ratings: Any
    levels: Floats
    item_means: Floats
    item_covariance: Floats
    sigma: float
    level: float
    site_tau: Floats
    site_nu: Floats
    log_evidence: float
    evidence_trace: Floats
    n_iter: int
    first_mean: float
    first_var: float
    pins: Pins | None = None
    user_thresholds: Floats | None = None
    basis: Basis | None = None
    kernel: Kernel | None = None
    item_gram: Floats | None = None
    feature_scale: Floats | None = None


class CollaborativeGP(RatingsRanker):
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
    prior_weight : float
        Number of users that the mean and the kernel at the start count as (a normal-inverse-Wishart prior); 0 is
        maximum likelihood.
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
        Deviation of a rating about f; 1 with the ordinal likelihood, whose unit it is.
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
        "prior_weight": number(0),
        "max_iter": whole(0),
        "tol": number(0),
        "n_jobs": n_jobs,
        "scale": boolean,
        "random_state": seed,
    }

    _learns_from_differences: bool = False
    _needs_pairs: bool = False

    levels_: Floats
    item_covariance_: Floats
    sigma_: float
    site_tau_: Floats
    site_nu_: Floats
    pins_: Pins
    user_thresholds_: Floats
    basis_: Basis
    kernel_: Kernel
    item_gram_: Floats
    first_mean_: float
    first_var_: float

    def __init__(
        self,
        likelihood: str = "ordinal",
        kernel: Any = "gaussian",
        prior_weight: float = 50.0,
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
            rated, order = _in_order(X, items, as_rows(item_features).shape[0])
            rows = self._scaled(self._chosen(as_rows(item_features), order))
            X, y, qid, prior = _with_unrated(X, y, qid, prior, rated, items)
        elif items is not None:
            raise InputError("items came without item_features; pass one row of features for each, or leave both out.")

        def learn(data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedCollaborativeGP:
            if self.likelihood == "ordinal" and data.prior is not None:
                raise InputError("prior came, but grades have no numbers to take it from; use likelihood='gaussian'.")
            return self._em(*ratings_matrix(data), rng, rows)

        return self._learn((X, y, qid, None), (sample_weight, None), prior, goes_on=False, fit=learn)

    def _fit_ratings(self, ratings: Any, users: Ids, rng: np.random.Generator) -> Any:
        return self._em(ratings, users, rng, None)

    def _em(self, ratings: Any, users: Ids, rng: np.random.Generator, rows: Any) -> FittedCollaborativeGP:
        ratings.sort_indices()
        levels = np.unique(ratings.data)
        view = None if rows is None else View(None, as_kernel(self.kernel).fit(rows, rng))
        basis = None if view is None else Basis.of(view, rows, np.arange(rows.shape[0]))
        gram = np.eye(ratings.shape[1]) if basis is None else basis.gram(rows)
        first, reader, given = self._start(ratings, levels, _with_levels(gram, gram))
        # nothing is learnt of items that nobody rated but what those that were rated tell of them
        rated = np.unique(ratings.indices)
        given = given[:, rated]
        population, reader, last, trace = self._learnt(first.among(rated), reader, given)
        told = [reader.settle(population, *row_of(given, user), last[user]) for user in range(len(users))]
        whole_population = population.extended(first, rated)
        pins: dict[str, Any] = (
            {} if isinstance(reader, GaussianReader) else {"pins": reader.pins, "user_thresholds": _thresholds(told)}
        )
        known: dict[str, Any] = {} if view is None else {"basis": basis, "kernel": view.kernel, "item_gram": gram}
        if rows is not None and (factors := factors_of(rows)) is not None:
            known["feature_scale"] = factors
        return FittedCollaborativeGP(
            users=users, ratings=ratings, levels=levels, level=0.0, item_means=whole_population.mean,
            item_covariance=whole_population.covariance, sigma=float(population.noise**0.5),
            site_tau=np.concatenate([user.tau for user in told]), site_nu=np.concatenate([user.nu for user in told]),
            log_evidence=float(sum(user.log_evidence for user in told)), evidence_trace=np.array(trace),
            n_iter=len(trace) - 1, first_mean=float(first.mean[0]),
            first_var=float(np.diagonal(first.covariance).mean()), **pins, **known,
        )  # fmt: skip

    def _learnt(
        self, first: Population, reader: Reader, ratings: Any
    ) -> tuple[Population, Reader, list[Told], list[float]]:
        """Expectation maximisation; what users said last; the log evidence before each iteration and after the last."""
        population, last, trace = first, None, list[float]()
        while True:
            last, totals = read_all(reader, population, ratings, last, self.n_jobs)
            trace.append(totals.log_evidence)
            is_still = len(trace) > 1 and abs(trace[-1] - trace[-2]) < self.tol * abs(trace[-1])
            if len(trace) > self.max_iter or is_still:
                return population, reader, last, trace
            population, reader = population.renewed(totals, first, float(self.prior_weight)), reader.renewed(last)

    def _start(self, ratings: Any, levels: Floats, K: Floats) -> tuple[Population, Reader, Any]:
        """What users are before any is read, who reads, and ratings as they are read."""
        n = len(K)
        if self.likelihood == "gaussian":
            var = 0.5 * float(np.var(ratings.data)) or 1.0
            return Population(np.full(n, float(ratings.data.mean())), var * K, var), GaussianReader(), ratings
        if len(levels) > _MOST_LEVELS:
            raise InputError(
                f"ratings take {len(levels)} different values, and thresholds are learnt for {_MOST_LEVELS} at most; "
                "round them, or use likelihood='gaussian'."
            )
        if len(levels) < 2:
            raise InputError(f"every rating is {levels[0]:g}, which orders nothing; pass ratings that differ.")
        codes = self._coded(ratings, levels)
        counts = np.bincount(codes.data.astype(np.int64), minlength=len(levels)).astype(np.float64)
        return Population(np.zeros(n), K, 1.0), OrdinalReader(Pins.start(counts, float(np.sqrt(2.0)))), codes

    def _coded(self, ratings: Any, levels: Floats) -> Any:
        """Ratings as numbers of grades."""
        at = np.minimum(np.searchsorted(levels, ratings.data), len(levels) - 1)
        if not np.array_equal(levels[at], ratings.data):
            unknown, known = ratings.data[levels[at] != ratings.data][0], ", ".join(f"{level:g}" for level in levels)
            raise InputError(f"a rating is {unknown:g}, which is none of those of fit: {known}.")
        return sparse.csr_array((at.astype(np.float64), ratings.indices, ratings.indptr), shape=ratings.shape)

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
        scores = self._on_top(mean, prior)
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
        return self._shares(self._on_top(mean, prior), var, self._thresholds(users))

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
        mean, var, _ = self._read_new(items, ratings)
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
        return self._shares(*self._read_new(items, ratings))

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
        self._takes_prior(None)
        if not hasattr(self, "basis_"):
            raise InputError("this model was fitted without item_features, so it knows items by their ids alone.")
        rows, gram = as_rows(item_features), self.item_gram_
        if hasattr(self, "feature_scale_"):
            if rows.shape[1] != len(self.feature_scale_):
                raise InputError(
                    f"item_features has {rows.shape[1]} columns, but fit had {len(self.feature_scale_)}; pass the same."
                )
            rows = ScaledRows(rows, self.feature_scale_)[np.arange(rows.shape[0])]
        asked = Queries.of(self.users_ if users is None else users, len(self.users_ if users is None else users))  # type: ignore[arg-type]
        known = self._known(asked)[asked.codes]
        # c with E f(x) = mean + cᵀ(f − mean); what the kernel has beyond that is not known
        k = _with_levels(self.basis_.similarities(rows), gram)
        C = coefficients(_with_levels(gram, gram), k.T)
        # of a precomputed kernel, a new item is taken to be as like itself as others are
        is_given = is_precomputed(self.kernel_)
        own = np.full(len(k), np.diagonal(gram).mean()) if is_given else self.kernel_.diag(rows)
        left = self.first_var_ * np.maximum(_with_levels(own, gram) - np.sum(k.T * C, axis=0), 0.0)
        mean, var = np.empty((len(known), len(k))), np.empty((len(known), len(k)))
        for at, user in enumerate(known):
            f, of_items = self._posterior(user, C)
            mean[at], var[at] = self.first_mean_ + C.T @ (f - self.first_mean_), of_items + left
        return (mean, np.sqrt(var)) if return_std else mean

    def _tastes(self, ratings: Any, levels: Floats) -> tuple[Floats, Floats]:
        W = np.zeros((len(levels), len(self.items_)))
        given = self._read_as(ratings)
        for user in range(len(levels)):
            items, y = row_of(given, user)
            if len(items):
                W[user, items] = self._reader.settle(self._population, items, y).alpha
        return self.item_covariance_, W

    @property
    def _population(self) -> Population:
        return Population(self.item_means_, self.item_covariance_, self.sigma_**2)

    @property
    def _reader(self) -> Reader:
        return OrdinalReader(self.pins_) if hasattr(self, "pins_") else GaussianReader()

    def _read_as(self, ratings: Any) -> Any:
        return self._coded(ratings, self.levels_) if hasattr(self, "pins_") else ratings

    def _chosen(self, rows: Any, order: Integers) -> Any:
        """Features in another order; of similarities, their columns too."""
        if not is_precomputed(self.kernel):
            return rows[order]
        if rows.shape[0] != rows.shape[1]:
            raise InputError(f"item_features has shape {rows.shape}; a precomputed kernel needs a square matrix.")
        return rows[np.ix_(order, order)]

    def _scales_columns(self, data: RankingData) -> bool:
        return False  # of items, which are no features

    def _scaled(self, rows: Any) -> Any:
        """Features divided by their deviation, where that is the kernel's business."""
        if not self.scale or not as_kernel(self.kernel).scales_columns:
            return rows
        n = rows.shape[0]
        return ScaledRows(rows, column_factors(RankingData.of_checked(rows, np.zeros(n), Queries.of(None, n))))

    def _read_new(self, items: ArrayLike, ratings: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Mean and variance of all items for a new user, and the user's thresholds."""
        row = self._row(items, ratings)
        self._takes_prior(None)
        at, y = row_of(self._read_as(row), 0)
        if not len(at):
            return self.item_means_.copy(), np.diagonal(self.item_covariance_).copy(), self._thresholds(np.array([-1]))
        told = self._reader.settle(self._population, at, y)
        S = self.item_covariance_[:, at]
        mean = self.item_means_ + S @ told.alpha
        var = np.maximum(np.diagonal(self.item_covariance_) - np.sum((S @ told.M) * S, axis=1), 0.0)
        return mean, var, self._thresholds(np.array([-1])) if told.free is None else thresholds_of(told.free)[None]

    def _read_rows(self, X: Any, qid: ArrayLike | None, *, with_var: bool) -> tuple[Floats, Floats, Integers]:
        """Mean and variance of each row, and the number of its user, −1 for a new one."""
        check_is_fitted(self)
        items = self._numbers(X)
        asked = Queries.of(qid, len(items))
        users = self._known(asked) if qid is not None else np.full(len(asked), -1)
        mean, var = np.empty(len(items)), np.zeros(len(items))
        typical, diagonal = float(self.item_means_.mean()), np.diagonal(self.item_covariance_)

        def read(first: int, last: int) -> None:
            for q in range(first, last):
                rows = asked.order[asked.starts[q] : asked.starts[q + 1]]
                at = items[rows]
                mean[rows] = np.where(at < 0, typical, self.item_means_[at])
                var[rows] = np.where(at < 0, diagonal.mean(), diagonal[at])
                if users[q] >= 0:
                    seen, told = self._sites(users[q], with_M=with_var)
                    S = np.where(at[:, None] < 0, 0.0, self.item_covariance_[np.ix_(at, seen)])
                    mean[rows] += S @ told.alpha
                    if with_var:
                        var[rows] = np.maximum(var[rows] - np.sum((S @ told.M) * S, axis=1), 0.0)

        self._spread(read, asked.starts)
        return mean, var, users[asked.codes]

    def _sites(self, user: int, *, with_M: bool = True) -> tuple[Integers, Told]:
        """The items that a user of ``fit`` rated, and what that says."""
        part = slice(self.ratings_.indptr[user], self.ratings_.indptr[user + 1])
        items, tau, nu = self.ratings_.indices[part].astype(np.int64), self.site_tau_[part], self.site_nu_[part]
        root = np.sqrt(tau)
        B = np.eye(len(items)) + root[:, None] * self.item_covariance_[np.ix_(items, items)] * root
        factor = linalg.cho_factor(B, lower=True, check_finite=False)
        S_nu = self.item_covariance_[np.ix_(items, items)] @ nu
        alpha = nu - root * linalg.cho_solve(factor, root * S_nu, check_finite=False)
        M = root[:, None] * linalg.cho_solve(factor, np.diag(root), check_finite=False) if with_M else B[:0]
        return items, Told(alpha, M, tau, nu, 0.0)

    def _posterior(self, user: int, C: Floats) -> tuple[Floats, Floats]:
        """Mean of f of a user over all items, and the variance of Cᵀf."""
        S = self.item_covariance_
        mean, var = self.item_means_.copy(), np.sum(C * (S @ C), axis=0)
        if user >= 0:
            items, told = self._sites(user)
            mean += S[:, items] @ told.alpha
            SC = S[items] @ C
            var = np.maximum(var - np.sum(SC * (told.M @ SC), axis=0), 0.0)
        return mean, var

    def _thresholds(self, users: Integers) -> Floats:
        """Thresholds of users, (n, r − 1), −1 for a new one."""
        if not hasattr(self, "pins_"):
            return np.broadcast_to(0.5 * (self.levels_[1:] + self.levels_[:-1]), (len(users), len(self.levels_) - 1))
        common = thresholds_of(self.pins_.mean)
        return np.where((users >= 0)[:, None], self.user_thresholds_[users], common)

    def _shares(self, mean: Floats, var: Floats, thresholds: Floats) -> Floats:
        open_ended = np.full((len(thresholds), 1), np.inf)
        lo, hi = np.hstack([-open_ended, thresholds]), np.hstack([thresholds, open_ended])
        shares = IntervalProbit(lo, hi, self.sigma_**2).probability(mean[:, None], var[:, None])
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _thresholds(told: list[Told]) -> Floats:
    return np.array([thresholds_of(user.free) for user in told if user.free is not None])


def _with_levels(K: Floats, gram: Floats) -> Floats:
    """Similarities in units of those of items with themselves; half of the variance is a user's level."""
    return np.asarray(0.5 * (K / np.diagonal(gram).mean() + 1.0))


def _in_order(X: Any, items: Any, n: int) -> tuple[Integers, Integers]:
    """
    Find out which item each of n rows of features belongs to.

    Returns: the rows that belong to items of X, and all rows in the order that the model has items in: those of X, and
    of a list of ids all others too.
    """
    if sparse.issparse(X):
        if items is not None:
            raise InputError("items came beside a matrix of ratings, whose columns are the items; leave it out.")
        if n != X.shape[1]:
            raise InputError(f"item_features has {n} rows for {X.shape[1]} columns of X; pass one row for each item.")
        return np.arange(n), np.arange(n)
    if items is None:
        raise InputError("item_features came without items; pass the id of the item that each row belongs to.")
    ids, codes = coded(items)
    if len(codes) != n or len(ids) != n:
        raise InputError(f"items holds {len(ids)} different ids for {n} rows of item_features; pass one for each.")
    rated, _ = coded(X.X if isinstance(X, RankingData) else X)
    at = positions(ids, rated)
    if (at < 0).any():
        raise InputError(
            f"item {rated[at < 0].tolist()[0]!r} of X has no row in item_features; pass one for each item."
        )
    row = np.argsort(codes)
    return row[at], row[at] if isinstance(X, RankingData) else row


def _with_unrated(X: Any, y: Any, qid: Any, prior: Any, rated: Integers, items: Any) -> tuple[Any, Any, Any, Any]:
    """Append a row without a rating for each item that nobody rated."""
    if sparse.issparse(X) or isinstance(X, RankingData) or y is None or qid is None:
        return X, y, qid, prior
    ids, codes = coded(items)
    unrated = np.setdiff1d(np.arange(len(codes)), rated)
    own, of_rating = coded(X)
    someone = next(iter(qid), None)
    X = np.concatenate([own[of_rating], ids[codes[unrated]]])
    y = np.concatenate([np.asarray(y, dtype=np.float64), np.full(len(unrated), np.nan)])
    prior = None if prior is None else np.concatenate([np.asarray(prior, dtype=np.float64), np.zeros(len(unrated))])
    return X, y, [*qid, *[someone] * len(unrated)], prior
