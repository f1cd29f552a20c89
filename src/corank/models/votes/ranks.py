"""
Read a Gaussian posterior of scores: error bars, sets of ranks, groups, next votes.

Only differences of scores are determined, so that the error bar of an item is that of s_i − mean(s). Ranks are read
from all pairs at once. Let z_ij be the standardised error of s_i − s_j, and q the 95 % quantile of max_{i<j} |z_ij|
over draws of the posterior: the signs of all differences with |E(s_i − s_j)| > q sd_ij are right with probability 95 %.
An item's best rank is 1 + the number of items that are certainly better; its worst rank leaves room for those that are
certainly worse (Mogstad et al., 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from corank.models.votes.laplace import log_probabilities

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MAX_DRAWS, _MAX_WORK = 4000, 100_000_000
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_BEST_DRAWS, _SHORTLIST = 2000, 40
_MAX_VOTES = 1_000_000


@dataclass(frozen=True, eq=False)
class ScorePosterior:
    """
    s ~ N(mean, covariance), or Student's t if votes come from few groups.

    kappa: logarithm of the weight of ties; −inf without ties.
    degrees: degrees of freedom of the errors; inf for a Gaussian.
    seed: of the draws.
    """

    mean: Floats
    covariance: Floats
    kappa: float
    degrees: float = np.inf
    seed: int = 0

    @cached_property
    def std(self) -> Floats:
        """Standard deviation of each item's difference to the mean item."""
        C = self.covariance
        variance = np.diagonal(C) - 2.0 * C.mean(axis=1) + C.mean()
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def quantile(self, level: float) -> float:
        """Half the width of an interval, in standard deviations."""
        return float(stats.t.ppf(0.5 + 0.5 * level, self.degrees))

    def difference(self, a: Integers, b: Integers) -> tuple[Floats, Floats]:
        """Mean and standard deviation of s_a − s_b."""
        C = self.covariance
        variance = C[a, a] + C[b, b] - 2.0 * C[a, b]
        return self.mean[a] - self.mean[b], np.sqrt(np.maximum(variance, 0.0))

    def outcomes(self, a: Integers, b: Integers) -> Floats:
        """P(a wins), P(tie) and P(b wins), averaged over the posterior; shape (n, 3)."""
        mean, sd = self.difference(a, b)
        out = np.zeros((*np.shape(mean), 3))
        for x, weight in zip(_NODES, _WEIGHTS, strict=True):
            out += weight * np.exp(log_probabilities(mean + sd * x, self.kappa))
        return out

    def is_separated(self, q: float) -> NDArray[np.bool_]:
        """Return whether item i is better than item j by more than q standard deviations; shape (M, M)."""
        n = len(self.mean)
        a, b = np.triu_indices(n, 1)
        mean, sd = self.difference(a, b)
        better = np.zeros((n, n), dtype=bool)
        better[a, b], better[b, a] = mean > q * sd, mean < -q * sd
        return better

    def simultaneous_quantile(self, level: float) -> float:
        """Return q: with probability `level`, no difference of two scores is off by more than q standard deviations."""
        n = len(self.mean)
        a, b = np.triu_indices(n, 1)
        sd = np.maximum(self.difference(a, b)[1], 1e-12)
        n_draws = int(np.clip(_MAX_WORK // len(a), 200, _MAX_DRAWS))
        rng = np.random.default_rng(self.seed)
        errors = self._errors(n_draws, rng)
        largest = np.zeros(n_draws)
        for row in range(n - 1):  # by rows of the upper triangle, to save memory
            part = slice(row * n - row * (row + 1) // 2, (row + 1) * n - (row + 1) * (row + 2) // 2)
            z = np.abs(errors[:, row, None] - errors[:, row + 1 :]) / sd[part]
            np.maximum(largest, z.max(axis=1), out=largest)
        return float(np.quantile(largest, level))

    def _errors(self, n_draws: int, rng: np.random.Generator) -> Floats:
        values, U = np.linalg.eigh(self.covariance)
        errors = rng.standard_normal((n_draws, len(values))) @ (U * np.sqrt(np.maximum(values, 0.0))).T
        if np.isfinite(self.degrees):
            errors *= np.sqrt(self.degrees / rng.chisquare(self.degrees, n_draws))[:, None]
        return np.asarray(errors)

    def gains(self, a: Integers, b: Integers, reliability: float = 1.0) -> Floats:
        """Mutual information of a vote and the scores, in nats."""
        mean, sd = self.difference(a, b)
        average, noise = np.zeros((len(a), 3)), np.zeros(len(a))
        for x, weight in zip(_NODES, _WEIGHTS, strict=True):
            p = np.exp(log_probabilities(reliability * (mean + sd * x), self.kappa))
            average += weight * p
            noise += weight * _entropy(p)
        return _entropy(average) - noise

    def best_gains(self, a: Integers, b: Integers, reliability: float = 1.0) -> Floats:
        """
        Value votes for finding the best item: their mutual information with the scores, times √(π_a π_b).

        π is the probability of being the best, from draws. Mutual information with the best item itself, estimated from
        the same draws, found it later than random pairs did: its noise is larger than the differences between pairs.
        """
        rng, n = np.random.default_rng(self.seed), len(self.mean)
        best = (self.mean + self._errors(_BEST_DRAWS, rng)).argmax(axis=1)
        share = (np.bincount(best, minlength=n) + 0.5) / (_BEST_DRAWS + 0.5 * n)
        return self.gains(a, b, reliability) * np.sqrt(share[a] * share[b])

    def next_pairs(self, n: int, goal: str, reliability: float = 1.0) -> Integers:
        """Choose the pairs with the largest gains, greedily with the covariance expected after each vote."""
        posterior, size = self, len(self.mean)
        chosen: list[tuple[int, int]] = []
        if goal == "best":  # items that may be the best
            items = np.argsort(-(self.mean + 2.0 * self.std), kind="stable")[: min(size, _SHORTLIST)]
            a, b = (np.sort(items)[at] for at in np.triu_indices(len(items), 1))
        else:
            a, b = np.triu_indices(size, 1)
        free = np.ones(len(a), dtype=bool)
        for _ in range(n):
            value = posterior.best_gains if goal == "best" else posterior.gains
            if len(chosen) == len(a):
                break
            at = int(np.argmax(np.where(free, value(a, b, reliability), -np.inf)))
            pair, free[at] = (int(a[at]), int(b[at])), False
            chosen.append(pair if self.mean[pair[0]] >= self.mean[pair[1]] else (pair[1], pair[0]))
            posterior = posterior.after(*pair, 1.0, reliability)
        return np.array(chosen, dtype=np.int64).reshape(-1, 2)

    def after(self, a: int, b: int, n_votes: float, reliability: float = 1.0) -> ScorePosterior:
        """Return the posterior with the covariance after further votes on a pair; the expected mean is the same."""
        w = n_votes * reliability**2 * self.vote_information(a, b)
        C = self.covariance
        direction = C[:, a] - C[:, b]
        variance = direction[a] - direction[b]
        reduced = C - np.outer(direction, direction) * (w / (1.0 + w * variance))
        return ScorePosterior(self.mean, reduced, self.kappa, self.degrees, self.seed + 1)

    def vote_information(self, a: int, b: int) -> float:
        """Expected Fisher information of one vote of a typical judge about s_a − s_b."""
        p = self.outcomes(np.array([a]), np.array([b]))[0]
        return float(0.25 * (p[0] + p[2] - (p[0] - p[2]) ** 2))

    def votes_to_separate(self, a: int, b: int, q: float) -> int | None:
        """
        Return how many votes on a pair separate it if its difference stays the same: 0 if it is separated already.

        After n votes the variance v of the difference is 1/(1/v + n w). None if more than a million are needed.
        """
        mean, sd = (float(part[0]) for part in self.difference(np.array([a]), np.array([b])))
        if abs(mean) > q * sd:
            return 0
        if mean == 0.0:
            return None
        n = ((q / mean) ** 2 - sd**-2) / self.vote_information(a, b)
        return int(np.ceil(n)) if n <= _MAX_VOTES else None


def rank_sets(better: NDArray[np.bool_]) -> Integers:
    """Return the best and the worst rank of each item, shape (M, 2)."""
    n = len(better)
    return np.column_stack([1 + better.sum(axis=0), n - better.sum(axis=1)]).astype(np.int64)


def groups_of(better: NDArray[np.bool_], order: Integers) -> list[list[int]]:
    """Return maximal runs of the order in which no two items are separated."""
    apart = (better | better.T)[np.ix_(order, order)]
    groups: list[tuple[int, int]] = []
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and not apart[stop, start:stop].any():
            stop += 1
        if not groups or stop > groups[-1][1]:
            groups.append((start, stop))
    return [order[start:stop].tolist() for start, stop in groups]


def _entropy(p: Floats) -> Floats:
    return np.asarray(-np.sum(p * np.log(np.maximum(p, 1e-300)), axis=-1))
