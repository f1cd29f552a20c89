"""
Population: the prior of all users, f_j ~ N(mean, s_j Σ), learnt from their ratings by expectation maximisation.

s_j is the scale of user j, 1 for grades. E-step: the posterior of user j, who rated the items J, is given by α_j and
M_j over J (`corank.models.gp.collaborative.user_likelihoods`):

    f̂_j = mean + Σ_{·J} α_j,    Σ̂_j = s_j (Σ − Σ_{·J} M_j Σ_{J·}).

So the sums a = Σ_j α_j/s_j and G = Σ_j (α_jα_jᵀ/s_j − M_j) over users suffice: O(k³) per user with k ratings, not O(N²)
for N items. M-step (eq. 3 for s_j = 1; Yu, Tresp and Schwaighofer, 2005, with a normal-inverse-Wishart prior that
counts as w users), W = Σ_j 1/s_j, k̄ the mean number of ratings of a user:

    mean' = (w mean_0 + Σ_j f̂_j/s_j)/(w + W)
    Σ'    = [w (mean' − mean_0)(mean' − mean_0)ᵀ + w Σ_0 + Σ_j ((f̂_j − mean')(f̂_j − mean')ᵀ + Σ̂_j)/s_j]/(w + n)
    noise' = [w k̄ noise_0 + Σ_j E|y_j − f_j|²/s_j]/[(w + n) k̄]

in one product of N × N matrices. For Gaussian ratings, no iteration decreases Σ_j [log P(y_j) + log P(s_j)] −
w/2 [log|Σ| + tr(Σ_0 Σ⁻¹) + (mean − mean_0)ᵀ Σ⁻¹ (mean − mean_0) + k̄ (log noise + noise_0/noise)].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# share of the mean variance added to the diagonal before solving
_JITTER = 1e-10


@dataclass(frozen=True, eq=False)
class Population:
    """The prior of f over N items for a user with s_j = 1."""

    mean: Floats  # mean (N,), covariance (N, N): of f
    covariance: Floats
    noise: float  # variance of a rating about f

    def among(self, items: Integers) -> Population:
        """The prior of some items."""
        return Population(self.mean[items], self.covariance[np.ix_(items, items)], self.noise)

    def widened(self, factor: float) -> Population:
        """The same distribution with every s_j divided by a factor."""
        return Population(self.mean, factor * self.covariance, factor * self.noise)

    def extended(self, first: Population, items: Integers) -> Population:
        """Extend to all items: these are `items`; the others, given these, keep their initial distribution."""
        n = len(first.mean)
        if len(items) == n:
            return self
        others = np.setdiff1d(np.arange(n), items)
        S, across = first.covariance, first.covariance[np.ix_(items, others)]
        C = coefficients(S[np.ix_(items, items)], across)
        mean, covariance = np.empty(n), np.empty((n, n))
        mean[items], mean[others] = self.mean, first.mean[others] + C.T @ (self.mean - first.mean[items])
        between = self.covariance @ C
        covariance[np.ix_(items, items)], covariance[np.ix_(items, others)] = self.covariance, between
        covariance[np.ix_(others, items)] = between.T
        rest = S[np.ix_(others, others)] - across.T @ C + C.T @ between
        covariance[np.ix_(others, others)] = 0.5 * (rest + rest.T)
        return Population(mean, covariance, self.noise)

    def m_step(self, totals: Totals, first: Population, weight: float) -> Population:
        """The M-step."""
        n, W, S = totals.n_users, totals.weight, self.covariance
        moved = S @ totals.a
        mean = (weight * first.mean + W * self.mean + moved) / (weight + W)
        d, away = mean - self.mean, mean - first.mean
        total = n * S + S @ totals.G @ S - np.outer(moved, d) - np.outer(d, moved) + W * np.outer(d, d)
        if weight > 0.0:
            total += weight * (first.covariance + np.outer(away, away))
        covariance = 0.5 * (total + total.T) / (weight + n)
        noise = self.noise
        if totals.noise is not None:
            noise = (weight * first.noise + totals.noise * n / totals.n_ratings) / (weight + n)
        return Population(mean, covariance, noise)


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over users."""

    a: Floats  # a (N,), G (N, N): Σ α_j/s_j, and Σ α_jα_jᵀ/s_j − M_j
    G: Floats
    weight: float  # Σ 1/s_j
    log_evidence: float  # Σ log P(y_j)
    n_users: int
    n_ratings: int
    noise: float | None  # Σ E|y_j − f_j|²/s_j; None if the noise is not learnt

    def __add__(self, other: Totals) -> Totals:
        noise = None if self.noise is None or other.noise is None else self.noise + other.noise
        return Totals(
            self.a + other.a, self.G + other.G, self.weight + other.weight, self.log_evidence + other.log_evidence,
            self.n_users + other.n_users, self.n_ratings + other.n_ratings, noise,
        )  # fmt: skip


def coefficients(covariance: Floats, across: Floats) -> Floats:
    """Regression coefficients C with E(g | f) = Cᵀf."""
    jitter = _JITTER * float(np.diagonal(covariance).mean())
    return np.asarray(linalg.solve(covariance + jitter * np.eye(len(covariance)), across, assume_a="pos"))
