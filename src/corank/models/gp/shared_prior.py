"""Expectation maximisation of the prior that users share, starting from a kernel of the items; features of items."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.kernels import Kernel, as_kernel
from corank.base.kernels.basis import Basis
from corank.base.kernels.kernel import is_precomputed
from corank.base.kernels.views import View
from corank.core.rows.access import ScaledRows, factors_of
from corank.data.columns import column_factors
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import as_rows
from corank.errors import InputError
from corank.memory import require_memory
from corank.models.gp.grades import thresholds_of
from corank.models.gp.users import (
    GaussianLikelihood,
    OrdinalLikelihood,
    Population,
    ThresholdPrior,
    UserFit,
    UserLikelihood,
    e_step,
    row_of,
)
from corank.models.ratings.ratings import Ids, id_codes, positions

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def item_rows(item_features: Any) -> Any:
    """Check features like rows of X; messages name `item_features`."""
    try:
        return as_rows(item_features)
    except InputError as error:
        raise type(error)(re.sub(r"\bX\b", "item_features", str(error))) from error


def with_levels(K: Floats, gram: Floats, start: str) -> Floats:
    """Kernel with a mean diagonal of 1; half of it is the variance of a user's level if `start` is "levels"."""
    normalised = np.asarray(K / np.diagonal(gram).mean())
    return 0.5 * (normalised + 1.0) if start == "levels" else normalised


def match_items(X: Any, items: Any, n: int) -> tuple[Integers, Integers]:
    """Match n rows of features with items."""
    if sparse.issparse(X):
        if items is not None:
            raise InputError("items was given with a matrix of ratings, whose columns are the items; leave it out.")
        if n != X.shape[1]:
            raise InputError(f"item_features has {n} rows for {X.shape[1]} columns of X; pass one row for each item.")
        return np.arange(n), np.arange(n)
    if items is None:
        raise InputError("item_features was given without items; pass the item id of each row.")
    ids, codes = id_codes(items)
    if len(codes) != n or len(ids) != n:
        raise InputError(f"items holds {len(ids)} distinct ids for {n} rows of item_features; pass one id per row.")
    rated, _ = id_codes(X.X if isinstance(X, RankingData) else X)
    places = positions(ids, rated)
    if (places < 0).any():
        raise InputError(
            f"item {rated[places < 0].tolist()[0]!r} of X has no row in item_features; pass one for each item."
        )
    row = np.argsort(codes)
    return row[places], row[places] if isinstance(X, RankingData) else row


def with_unrated(X: Any, y: Any, qid: Any, prior: Any, rated: Integers, items: Any) -> tuple[Any, Any, Any, Any]:
    """Append a row without a rating (NaN) for each unrated item."""
    if sparse.issparse(X) or isinstance(X, RankingData) or y is None or qid is None:
        return X, y, qid, prior
    ids, codes = id_codes(items)
    unrated = np.setdiff1d(np.arange(len(codes)), rated)
    rated_ids, of_rating = id_codes(X)
    any_user = next(iter(qid), None)
    X = np.concatenate([rated_ids[of_rating], ids[codes[unrated]]])
    y = np.concatenate([np.asarray(y, dtype=np.float64), np.full(len(unrated), np.nan)])
    prior = None if prior is None else np.concatenate([np.asarray(prior, dtype=np.float64), np.zeros(len(unrated))])
    return X, y, [*qid, *[any_user] * len(unrated)], prior


def reordered(rows: Any, order: Integers, kernel: Any) -> Any:
    """Features in another order; for a precomputed kernel, rows and columns."""
    if not is_precomputed(kernel):
        return rows[order]
    if rows.shape[0] != rows.shape[1]:
        raise InputError(f"item_features has shape {rows.shape}; a precomputed kernel needs a square matrix.")
    return rows[np.ix_(order, order)]


def scaled(rows: Any, kernel: Any) -> Any:
    """Features divided by their standard deviation, if the kernel scales columns."""
    if not as_kernel(kernel).scales_columns:
        return rows
    n = rows.shape[0]
    return ScaledRows(rows, column_factors(RankingData.of_checked(rows, np.zeros(n), Queries.of(None, n))))


# square matrices over all items that exist at the same time
_SQUARES = 11
# largest number of distinct grades
_MAX_LEVELS = 20
# σ² of the paper's CGPR, which has no prior, before the first iteration
_PAPER_NOISE = 0.01


@dataclass(frozen=True, eq=False)
class FittedCollaborativeGP:
    """The fitted attributes of `CollaborativeGP`."""

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
    user_scales: Floats
    threshold_prior: ThresholdPrior | None = None
    user_thresholds: Floats | None = None
    user_sigmas: Floats | None = None
    basis: Basis | None = None
    kernel: Kernel | None = None
    item_gram: Floats | None = None
    feature_scale: Floats | None = None


def learn_shared(model: Any, ratings: Any, users: Ids, rows: Any, view: View | None) -> FittedCollaborativeGP:
    """Learn from ratings with the parameters of a `CollaborativeGP`."""
    n = ratings.shape[1]
    require_memory(n, 8.0 * _SQUARES * n**2, "leave out items with few ratings, or use Collaborative")
    ratings.sort_indices()
    levels = np.unique(ratings.data)
    basis = None if view is None else Basis.of(view, rows, np.arange(rows.shape[0]))
    gram = np.eye(ratings.shape[1]) if basis is None else basis.gram(rows)
    first, likelihood, observed = initial(model, ratings, levels, gram)
    # items without ratings follow from the rated ones
    rated = np.unique(ratings.indices)
    observed = observed[:, rated]
    population, likelihood, last, trace = _maximised(model, first.among(rated), likelihood, observed)
    # normalise the scales to a mean of 1, so that unrated items keep their initial variance
    population = population.widened(len(users) / sum(1.0 / user.scale for user in last))
    fits = [likelihood.converge(population, *row_of(observed, user), last[user]) for user in range(len(users))]
    own_noise = np.array([user.own_noise for user in fits if user.own_noise is not None])
    if len(own_noise):  # an unknown user has the geometric mean
        population = replace(population, noise=float(np.exp(np.log(own_noise).mean())))
        likelihood = likelihood.updated(fits)
    every_item = population.extended(first, rated)
    optional: dict[str, Any] = {}
    if isinstance(likelihood, OrdinalLikelihood):
        free = [user.free for user in fits if user.free is not None]
        optional |= {
            "threshold_prior": likelihood.threshold_prior,
            "user_thresholds": np.array([thresholds_of(of_user) for of_user in free]),
        }
    if len(own_noise):
        optional["user_sigmas"] = np.sqrt(own_noise)
    if view is not None:
        optional |= {"basis": basis, "kernel": view.kernel, "item_gram": gram, "feature_scale": factors_of(rows)}
    return FittedCollaborativeGP(
        users=users, ratings=ratings, levels=levels, level=0.0, item_means=every_item.mean,
        item_covariance=every_item.covariance, sigma=float(population.noise**0.5),
        site_tau=np.concatenate([user.tau for user in fits]), site_nu=np.concatenate([user.nu for user in fits]),
        log_evidence=float(sum(user.log_evidence for user in fits)), evidence_trace=np.array(trace),
        n_iter=len(trace) - 1, first_mean=float(first.mean[0]),
        first_var=float(np.diagonal(first.covariance).mean()),
        user_scales=np.array([user.scale for user in fits]), **optional,
    )  # fmt: skip


def initial(model: Any, ratings: Any, levels: Floats, gram: Floats) -> tuple[Population, UserLikelihood, Any]:
    """Return the initial population, the likelihood, and the ratings in the form that the likelihood takes."""
    n, K = len(gram), with_levels(gram, gram, model.start)
    size = float(np.diagonal(gram).mean())  # K · size is the kernel itself
    if model.likelihood == "gaussian":
        likelihood = GaussianLikelihood(model.user_scales)
        var = 0.5 * float(np.var(ratings.data)) or 1.0
        if model.start == "kernel":
            # where EM starts is also the mean of the prior, and so small a noise would be a strong one
            noise = _PAPER_NOISE if model.prior_weight == 0.0 else var
            return Population(np.zeros(n), size * K, noise), likelihood, ratings
        return Population(np.full(n, float(ratings.data.mean())), var * K, var), likelihood, ratings
    if len(levels) > _MAX_LEVELS:
        raise InputError(
            f"ratings take {len(levels)} distinct values, but likelihood='ordinal' takes at most {_MAX_LEVELS}; "
            "round the ratings, or use likelihood='gaussian'."
        )
    if len(levels) < 2:
        raise InputError(f"every rating is {levels[0]:g}, so no order can be learnt; pass ratings that differ.")
    codes = grade_numbers(ratings, levels)
    counts = np.bincount(codes.data.astype(np.int64), minlength=len(levels)).astype(np.float64)
    var = size if model.start == "kernel" else 1.0
    prior = ThresholdPrior.start(counts, float(np.sqrt(1.0 + var)))
    return Population(np.zeros(n), var * K, 1.0), OrdinalLikelihood(prior, model.free_thresholds), codes


def _maximised(
    model: Any, first: Population, likelihood: UserLikelihood, ratings: Any
) -> tuple[Population, UserLikelihood, list[UserFit], list[float]]:
    """Run the iterations; return the log evidence before each and after the last, too."""
    weight = float(ratings.shape[1] if model.prior_weight is None else model.prior_weight)
    population, last, trace = first, None, list[float]()
    while True:
        last, totals = e_step(likelihood, population, ratings, last, model.n_jobs)
        trace.append(totals.log_evidence)
        has_converged = len(trace) > 1 and abs(trace[-1] - trace[-2]) < model.tol * abs(trace[-1])
        if len(trace) > model.max_iter or has_converged:
            return population, likelihood, last, trace
        population, likelihood = population.m_step(totals, first, weight), likelihood.updated(last)


def grade_numbers(ratings: Any, levels: Floats) -> Any:
    """Ratings as indices of grades."""
    codes = np.minimum(np.searchsorted(levels, ratings.data), len(levels) - 1)
    if not np.array_equal(levels[codes], ratings.data):
        unknown, known = ratings.data[levels[codes] != ratings.data][0], ", ".join(f"{level:g}" for level in levels)
        raise InputError(f"a rating is {unknown:g}, which did not occur in fit; pass one of {known}.")
    return sparse.csr_array((codes.astype(np.float64), ratings.indices, ratings.indptr), shape=ratings.shape)
