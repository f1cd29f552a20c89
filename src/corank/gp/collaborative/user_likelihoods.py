"""
Readers: what a user's ratings say of f ~ N(mean, s Σ), under one likelihood.

Whatever the likelihood, ratings become sites exp(−½ τ g² + ν g) of g = f − mean at the items J that were rated, from
which α and M follow: with C = Σ_JJ + diag(1/τ), M = C⁻¹ and α = M (ν/τ).

Some users rate widely and some narrowly, what they think and their noise alike. So Gaussian ratings have a scale s of
the user's own, y ~ N(mean_J, s C) with C = Σ_JJ + noise I, which is drawn about 1 as if it had been seen in ν = 10
ratings: log P(s) = −½ ν (log s + 1/s), a scaled inverse χ² law of log s. With q = (y − mean_J)ᵀ C⁻¹ (y − mean_J) of k
ratings, log P(y) + log P(s) is largest at

    s = (ν + q)/(ν + k),

in closed form. Grades have each user's thresholds instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from corank.core.threads import add_up, cut, n_threads
from corank.gp.collaborative.population import Population, Totals
from corank.gp.collaborative.user_thresholds import Pins
from corank.gp.ep.propagation import propagate, root_of
from corank.gp.ep.sites import Sites
from corank.gp.ordinal.thresholds import ends_of, thresholds_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# how still sites have to be
_TOLERANCE = 1e-6
# users are added up in so many parts whatever the number of threads, so that it does not matter
_PARTS = 8
# pins of a user and sites take turns no more often than this, and until pins move by less than this
_TURNS, _STILL = 20, 1e-3
# ν: ratings that speak for a user's scale of 1
_LIKE_OTHERS = 10.0


@dataclass(frozen=True, eq=False)
class Told:
    """
    What the ratings of one user say.

    alpha (k,), M (k, k): see `corank.gp.collaborative.population`; over the items rated.
    tau, nu (k,): sites.
    log_evidence: log P(ratings).
    scale: s, what the user's variances are multiplied by.
    noise: E|y − f|²/s; None where the noise is not learnt.
    free: the user's pins; None where there are none.
    spread: variance of the pins.
    """

    alpha: Floats
    M: Floats
    tau: Floats
    nu: Floats
    log_evidence: float
    scale: float = 1.0
    noise: float | None = None
    free: Floats | None = None
    spread: Floats | None = None


@dataclass(frozen=True, eq=False)
class GaussianReader:
    """Ratings y = f + noise, of each user's scale."""

    def read(self, population: Population, items: Integers, y: Floats, _: Told | None = None) -> Told:
        """By one linear system."""
        noise, k, r = population.noise, len(items), y - population.mean[items]
        C = population.covariance[np.ix_(items, items)] + noise * np.eye(k)
        L = linalg.cholesky(C, lower=True, check_finite=False)
        lower, _ = linalg.lapack.dpotri(L, lower=1)
        M = np.tril(lower) + np.tril(lower, -1).T
        alpha = M @ r
        q = float(r @ alpha)
        scale = (_LIKE_OTHERS + q) / (_LIKE_OTHERS + k)
        log_z = -0.5 * q / scale - float(np.log(np.diagonal(L)).sum()) - 0.5 * k * np.log(2.0 * np.pi * scale)
        # y − f̂ = noise α, and Σ̂_JJ = s (noise I − noise² M)
        squares = float(noise**2 * (alpha @ alpha / scale - np.trace(M)) + noise * k)
        tau = np.full(k, 1.0 / noise)
        return Told(alpha, M, tau, tau * r, log_z, scale, squares)

    def settle(self, population: Population, items: Integers, y: Floats, _: Told | None = None) -> Told:
        """What a user has said in the end."""
        return self.read(population, items, y)

    def renewed(self, told: list[Told]) -> GaussianReader:
        """Nothing more is learnt of users."""
        return self


@dataclass(frozen=True, eq=False)
class OrdinalReader:
    """
    Grades between each user's pins, noise included.

    pins: what users' pins have in common.
    """

    pins: Pins

    def read(self, population: Population, items: Integers, codes: Floats, last: Told | None = None) -> Told:
        """By expectation propagation, which goes on from `last`; then the pins are moved once."""
        grades = codes.astype(np.int64)
        free = self.pins.mean if last is None or last.free is None else last.free
        mean = population.mean[items]
        lo, hi = (ends[grades] - mean for ends in ends_of(thresholds_of(free)))
        sites = Sites.grades(np.arange(len(items)), lo, hi, population.noise)
        R, _ = root_of(population.covariance[np.ix_(items, items)])
        start = None if last is None else (last.tau, last.nu)
        found = propagate(R, sites, start=start, tol=_TOLERANCE, quiet=True)
        if found.gap > _TOLERANCE:
            found = propagate(R, sites, tol=_TOLERANCE)
        alpha, M = found.pull(R)
        # mean and variance of g without the site itself
        c, own = np.sum(found.features(R) ** 2, axis=1), R @ found.mu
        rest = np.maximum(1.0 - found.tau * c, 1e-8)
        to = grades, mean + (own - c * found.nu) / rest, c / rest + population.noise
        moved = self.pins.fitted(free, *to)
        return Told(alpha, M, found.tau, found.nu, found.log_evidence, 1.0, None, moved, self.pins.spread(moved, *to))

    def settle(self, population: Population, items: Integers, codes: Floats, last: Told | None = None) -> Told:
        """Sites and pins take turns until they rest, from where they were in `last`."""
        last = self.read(population, items, codes, last)
        for _ in range(_TURNS):
            told = self.read(population, items, codes, last)
            assert told.free is not None
            assert last.free is not None
            if np.abs(told.free - last.free).max() < _STILL:
                # the pins under which the sites were found
                return replace(told, free=last.free)
            last = told
        return last

    def renewed(self, told: list[Told]) -> OrdinalReader:
        """The pins that users have in common now."""
        free = np.array([user.free for user in told])
        return OrdinalReader(self.pins.renewed(free, np.array([user.spread for user in told])))


Reader = GaussianReader | OrdinalReader


def read_all(
    reader: Reader, population: Population, ratings: Any, last: list[Told] | None, n_jobs: int | None
) -> tuple[list[Told], Totals]:
    """
    The E-step: read every user, on threads, and add up.

    ratings: CSR matrix of users × items.
    last: what the E-step before found.
    """
    n_users, n_items = ratings.shape
    told: list[Any] = [None] * n_users
    starts = ratings.indptr.astype(np.int64)

    def read(first: int, stop: int) -> Totals:
        a, G, weight, log_z, noise = np.zeros(n_items), np.zeros((n_items, n_items)), 0.0, 0.0, 0.0
        for user in range(first, stop):
            items, y = row_of(ratings, user)
            # M is large, and wanted here only
            found = reader.read(population, items, y, None if last is None else last[user])
            told[user] = replace(found, M=found.M[:0])
            of_mean = found.alpha / found.scale
            a[items] += of_mean
            G[np.ix_(items, items)] += np.outer(found.alpha, of_mean) - found.M
            weight += 1.0 / found.scale
            log_z += found.log_evidence
            noise += found.noise or 0.0
        is_gaussian = isinstance(reader, GaussianReader)
        n_ratings = int(starts[stop] - starts[first])
        return Totals(a, G, weight, log_z, stop - first, n_ratings, noise if is_gaussian else None)

    return told, add_up(read, cut(starts, _PARTS), n_threads(n_jobs or 1))


def row_of(ratings: Any, user: int) -> tuple[Integers, Floats]:
    """Items and ratings of one user."""
    part = slice(ratings.indptr[user], ratings.indptr[user + 1])
    return ratings.indices[part].astype(np.int64), ratings.data[part]
