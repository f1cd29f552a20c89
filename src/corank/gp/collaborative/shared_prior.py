"""Shared prior: what users have in common, learnt from their ratings by expectation maximisation from a kernel on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.collaborative.ratings import Ids
from corank.core.rows.scaled import factors_of
from corank.errors import InputError
from corank.gp.collaborative.item_rows import with_levels
from corank.gp.collaborative.population import Population
from corank.gp.collaborative.user_likelihoods import GaussianReader, OrdinalReader, Reader, Told, read_all, row_of
from corank.gp.collaborative.user_thresholds import Pins
from corank.gp.ordinal.thresholds import thresholds_of
from corank.kernels import Basis, Kernel
from corank.kernels.views import View

Floats = NDArray[np.float64]

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
    user_scales: Floats
    pins: Pins | None = None
    user_thresholds: Floats | None = None
    basis: Basis | None = None
    kernel: Kernel | None = None
    item_gram: Floats | None = None
    feature_scale: Floats | None = None


@dataclass(frozen=True)
class SharedPrior:
    """
    How a prior is learnt; the parameters of `CollaborativeGP`, see there.

    likelihood, prior_weight, max_iter, tol, n_jobs: as there.
    """

    likelihood: str
    prior_weight: float | None
    max_iter: int
    tol: float
    n_jobs: int | None

    def fitted(self, ratings: Any, users: Ids, rows: Any, view: View | None) -> FittedCollaborativeGP:
        """
        Learn from ratings.

        ratings: CSR matrix of users × items, each of whom rated something.
        rows, view: features of the items, and how they are seen; None where there are none.
        """
        ratings.sort_indices()
        levels = np.unique(ratings.data)
        basis = None if view is None else Basis.of(view, rows, np.arange(rows.shape[0]))
        gram = np.eye(ratings.shape[1]) if basis is None else basis.gram(rows)
        first, reader, given = start(self.likelihood, ratings, levels, with_levels(gram, gram))
        # nothing is learnt of items that nobody rated but what those that were rated tell of them
        rated = np.unique(ratings.indices)
        given = given[:, rated]
        population, reader, last, trace = self._learnt(first.among(rated), reader, given)
        # of items that nobody rated, the typical user knows what the start says: so that one's scale is 1
        population = population.widened(len(users) / sum(1.0 / user.scale for user in last))
        told = [reader.settle(population, *row_of(given, user), last[user]) for user in range(len(users))]
        every_item = population.extended(first, rated)
        kept: dict[str, Any] = {}
        if isinstance(reader, OrdinalReader):
            free = [user.free for user in told if user.free is not None]
            kept |= {"pins": reader.pins, "user_thresholds": np.array([thresholds_of(of_user) for of_user in free])}
        if view is not None:
            kept |= {"basis": basis, "kernel": view.kernel, "item_gram": gram, "feature_scale": factors_of(rows)}
        return FittedCollaborativeGP(
            users=users, ratings=ratings, levels=levels, level=0.0, item_means=every_item.mean,
            item_covariance=every_item.covariance, sigma=float(population.noise**0.5),
            site_tau=np.concatenate([user.tau for user in told]), site_nu=np.concatenate([user.nu for user in told]),
            log_evidence=float(sum(user.log_evidence for user in told)), evidence_trace=np.array(trace),
            n_iter=len(trace) - 1, first_mean=float(first.mean[0]),
            first_var=float(np.diagonal(first.covariance).mean()),
            user_scales=np.array([user.scale for user in told]), **kept,
        )  # fmt: skip

    def _learnt(
        self, first: Population, reader: Reader, ratings: Any
    ) -> tuple[Population, Reader, list[Told], list[float]]:
        """Expectation maximisation; what users said last; the log evidence before each iteration and after the last."""
        weight = float(ratings.shape[1] if self.prior_weight is None else self.prior_weight)
        population, last, trace = first, None, list[float]()
        while True:
            last, totals = read_all(reader, population, ratings, last, self.n_jobs)
            trace.append(totals.log_evidence)
            is_still = len(trace) > 1 and abs(trace[-1] - trace[-2]) < self.tol * abs(trace[-1])
            if len(trace) > self.max_iter or is_still:
                return population, reader, last, trace
            population, reader = population.renewed(totals, first, weight), reader.renewed(last)


def start(likelihood: str, ratings: Any, levels: Floats, K: Floats) -> tuple[Population, Reader, Any]:
    """
    What users are before any is read, who reads, and ratings as they are read.

    K: similarities of the items, 1 in the mean on the diagonal.
    """
    n = len(K)
    if likelihood == "gaussian":
        var = 0.5 * float(np.var(ratings.data)) or 1.0
        return Population(np.full(n, float(ratings.data.mean())), var * K, var), GaussianReader(), ratings
    if len(levels) > _MOST_LEVELS:
        raise InputError(
            f"ratings take {len(levels)} different values, and thresholds are learnt for {_MOST_LEVELS} at most; "
            "round them, or use likelihood='gaussian'."
        )
    if len(levels) < 2:
        raise InputError(f"every rating is {levels[0]:g}, which orders nothing; pass ratings that differ.")
    codes = grade_numbers(ratings, levels)
    counts = np.bincount(codes.data.astype(np.int64), minlength=len(levels)).astype(np.float64)
    return Population(np.zeros(n), K, 1.0), OrdinalReader(Pins.start(counts, float(np.sqrt(2.0)))), codes


def grade_numbers(ratings: Any, levels: Floats) -> Any:
    """Ratings as numbers of grades."""
    at = np.minimum(np.searchsorted(levels, ratings.data), len(levels) - 1)
    if not np.array_equal(levels[at], ratings.data):
        unknown, known = ratings.data[levels[at] != ratings.data][0], ", ".join(f"{level:g}" for level in levels)
        raise InputError(f"a rating is {unknown:g}, which is none of those of fit: {known}.")
    return sparse.csr_array((at.astype(np.float64), ratings.indices, ratings.indptr), shape=ratings.shape)
