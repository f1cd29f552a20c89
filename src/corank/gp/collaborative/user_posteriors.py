"""Opinions: what each user of a population thinks, known by the ratings that were learnt from or by a few new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from corank.gp.collaborative.population import Population
from corank.gp.collaborative.user_likelihoods import Reader, Told
from corank.gp.ep.likelihoods import IntervalProbit
from corank.gp.ordinal.thresholds import thresholds_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Opinions:
    """
    Users, and the stranger of whom nothing is known but what users have in common; that one's number is −1.

    population, reader: what users have in common, and how ratings are read.
    ratings: CSR matrix of users × items.
    tau, nu: sites, one for each rating.
    scales (n_users + 1,), thresholds (n_users + 1, r − 1): of each user, the stranger last.
    """

    population: Population
    reader: Reader
    ratings: Any
    tau: Floats
    nu: Floats
    scales: Floats
    thresholds: Floats

    def of_items(self, user: int, at: Integers, *, with_var: bool) -> tuple[Floats, Floats]:
        """
        Mean and variance of f for some items; of the mean item where the number is −1.

        with_var: whether the variance is wanted; else it is not that of what the user said.
        """
        S, h = self.population.covariance, self.population.mean
        diagonal = np.diagonal(S)
        mean, var = np.where(at < 0, h.mean(), h[at]), np.where(at < 0, diagonal.mean(), diagonal[at])
        if user < 0:
            return mean, var
        seen, told = self._said(user, with_M=with_var)
        across = np.where(at[:, None] < 0, 0.0, S[np.ix_(at, seen)])
        mean = mean + across @ told.alpha
        if with_var:
            var = self.scales[user] * np.maximum(var - np.sum((across @ told.M) * across, axis=1), 0.0)
        return mean, var

    def combined(self, user: int, C: Floats) -> tuple[Floats, Floats]:
        """Mean of f over all items, and the variance of Cᵀf."""
        S = self.population.covariance
        mean, var = self.population.mean.copy(), np.sum(C * (S @ C), axis=0)
        if user >= 0:
            items, told = self._said(user)
            mean += S[:, items] @ told.alpha
            SC = S[items] @ C
            var = np.maximum(var - np.sum(SC * (told.M @ SC), axis=0), 0.0)
        return mean, self.scales[user] * var

    def of_new(self, items: Integers, y: Floats) -> tuple[Floats, Floats, Floats, float]:
        """Mean and variance of all items for a new user, and that user's thresholds and scale."""
        S, h = self.population.covariance, self.population.mean
        if not len(items):
            return h.copy(), np.diagonal(S).copy(), self.thresholds[-1], 1.0
        told = self.reader.settle(self.population, items, y)
        across = S[:, items]
        var = np.maximum(np.diagonal(S) - np.sum((across @ told.M) * across, axis=1), 0.0)
        thresholds = self.thresholds[-1] if told.free is None else thresholds_of(told.free)
        return h + across @ told.alpha, told.scale * var, thresholds, told.scale

    def shares(self, mean: Floats, var: Floats, thresholds: Floats, scale: Floats | float) -> Floats:
        """
        How likely each grade is, (n, r).

        thresholds (n, r − 1) or (r − 1,), scale (n,) or a number: of the user of each row.
        """
        noise = np.broadcast_to(self.population.noise * np.asarray(scale), mean.shape)[:, None]
        inner = np.broadcast_to(thresholds, (len(mean), thresholds.shape[-1]))
        ends = np.full((len(mean), 1), np.inf)
        lo, hi = np.hstack([-ends, inner]), np.hstack([inner, ends])
        found = IntervalProbit(lo, hi, noise).probability(mean[:, None], var[:, None])
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _said(self, user: int, *, with_M: bool = True) -> tuple[Integers, Told]:
        """The items that a user rated, and what that says."""
        part = slice(self.ratings.indptr[user], self.ratings.indptr[user + 1])
        items, tau, nu = self.ratings.indices[part].astype(np.int64), self.tau[part], self.nu[part]
        S, root = self.population.covariance[np.ix_(items, items)], np.sqrt(tau)
        B = np.eye(len(items)) + root[:, None] * S * root
        factor = linalg.cho_factor(B, lower=True, check_finite=False)
        alpha = nu - root * linalg.cho_solve(factor, root * (S @ nu), check_finite=False)
        M = root[:, None] * linalg.cho_solve(factor, np.diag(root), check_finite=False) if with_M else B[:0]
        return items, Told(alpha, M, tau, nu, 0.0)
