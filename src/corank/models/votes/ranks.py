"""
Read a posterior of scores: win probabilities, sets of ranks, groups, next votes.

Only differences of scores are determined, so that the error bar of an item is that of s_i − mean(s). Sets of ranks come
from draws of the posterior: each holds the ranks between two quantiles, whose level is chosen on other draws such that
all sets together hold the ranks of a draw with the probability `level`. Items whose sets do not overlap are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from corank.models.votes.laplace import log_probabilities
from corank.models.votes.scores import Marginals

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

N_DRAWS, MAX_DRAWN = 4000, 20_000_000
"""Number of draws, fewer if there are very many items, and the largest number of drawn scores."""
MAX_VOTES = 1_000_000
"""Largest number of votes that is said to separate two items."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_SHORTLIST = 40


@dataclass(frozen=True, eq=False)
class ScorePosterior:
    """
    Scores with mean, covariance, and marginals; errors are Student's t if votes come from few groups.

    kappa: logarithm of the weight of ties; −inf without ties.
    seed: of the draws.
    """

    mean: Floats
    covariance: Floats
    kappa: float
    marginals: Marginals | None = None
    seed: int = 0

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the errors; inf for a Gaussian."""
        return np.inf if self.marginals is None else self.marginals.degrees

    @property
    def std(self) -> Floats:
        """Standard deviation of each item's difference to the mean item."""
        C = self.covariance
        return np.asarray(np.sqrt(np.maximum(np.diagonal(C) - 2.0 * C.mean(axis=1) + C.mean(), 0.0)))

    def difference(self, a: Integers, b: Integers) -> tuple[Floats, Floats]:
        """Mean and standard deviation of s_a − s_b."""
        C = self.covariance
        variance = C[a, a] + C[b, b] - 2.0 * C[a, b]
        return self.mean[a] - self.mean[b], np.sqrt(np.maximum(variance, 0.0))

    def p_better(self, a: int, b: int) -> float:
        """P(s_a > s_b)."""
        mean, sd = self.difference(np.array([a]), np.array([b]))
        return float(stats.t.cdf(mean[0] / sd[0], self.degrees)) if sd[0] > 0.0 else 0.5

    def outcomes(self, a: Integers, b: Integers) -> Floats:
        """P(a wins), P(tie) and P(b wins), averaged over the posterior; shape (n, 3)."""
        mean, sd = self.difference(a, b)
        out = np.zeros((*np.shape(mean), 3))
        for x, weight in zip(_NODES, _WEIGHTS, strict=True):
            out += weight * np.exp(log_probabilities(mean + sd * x, self.kappa))
        return out

    def draws(self) -> Floats:
        """Draw scores; shape (draws, M)."""
        values, U = np.linalg.eigh(self.covariance)
        rng, n_draws = np.random.default_rng(self.seed), int(min(N_DRAWS, MAX_DRAWN // len(values)))
        errors = rng.standard_normal((n_draws, len(values))) @ (U * np.sqrt(np.maximum(values, 0.0))).T
        if np.isfinite(self.degrees):
            errors *= np.sqrt(self.degrees / rng.chisquare(self.degrees, n_draws))[:, None]
        return np.asarray(self.mean + errors)

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
        drawn = self.draws()
        share = np.bincount(drawn.argmax(axis=1), minlength=drawn.shape[1]) + 0.5
        share /= share.sum()
        return self.gains(a, b, reliability) * np.sqrt(share[a] * share[b])

    def next_pairs(self, n: int, goal: str, reliability: float = 1.0) -> Integers:
        """Choose the pairs with the largest gains, greedily with the covariance expected after each vote."""
        posterior, items = self, np.arange(len(self.mean))
        if goal == "best":  # items that may be the best
            items = np.sort(np.argsort(-(self.mean + 2.0 * self.std), kind="stable")[:_SHORTLIST])
        a, b = (items[i] for i in np.triu_indices(len(items), 1))
        free, chosen = np.ones(len(a), dtype=bool), []
        for _ in range(min(n, len(a))):
            value = posterior.best_gains if goal == "best" else posterior.gains
            index = int(np.argmax(np.where(free, value(a, b, reliability), -np.inf)))
            pair, free[index] = (int(a[index]), int(b[index])), False
            chosen.append(pair if self.mean[pair[0]] >= self.mean[pair[1]] else pair[::-1])
            posterior = posterior.after(*pair, 1.0, reliability)
        return np.array(chosen, dtype=np.int64).reshape(-1, 2)

    def after(self, a: int, b: int, n_votes: float, reliability: float = 1.0) -> ScorePosterior:
        """Return the posterior with the covariance after further votes on a pair; the expected mean is the same."""
        w = n_votes * reliability**2 * self.vote_information(a, b)
        C = self.covariance
        direction = C[:, a] - C[:, b]
        reduced = C - np.outer(direction, direction) * (w / (1.0 + w * (direction[a] - direction[b])))
        return replace(self, covariance=reduced, seed=self.seed + 1)

    def vote_information(self, a: int, b: int) -> float:
        """Expected Fisher information of one vote of a typical judge about s_a − s_b."""
        p = self.outcomes(np.array([a]), np.array([b]))[0]
        return float(0.25 * (p[0] + p[2] - (p[0] - p[2]) ** 2))

    def votes_to_separate(self, a: int, b: int, level: float) -> int | None:
        """
        Return how many votes on a pair separate it if its difference stays the same: 0 if its interval excludes 0.

        After n votes the variance v of the difference is 1/(1/v + n w). None if more than a million are needed.
        """
        mean, sd = (float(part[0]) for part in self.difference(np.array([a]), np.array([b])))
        q = float(stats.t.ppf(0.5 + 0.5 * level, self.degrees))
        if abs(mean) > q * sd:
            return 0
        n = ((q / mean) ** 2 - sd**-2) / self.vote_information(a, b) if mean else np.inf
        return int(np.ceil(n)) if n <= MAX_VOTES else None


def rank_sets(draws: Floats, level: float) -> Integers:
    """Return the best and the worst rank of each item, shape (M, 2); `draws` are scores of shape (draws, M)."""
    ranks = (np.argsort(np.argsort(-draws, axis=1), axis=1) + 1).astype(np.int32)
    half, n = len(ranks) // 2, ranks.shape[1]
    ordered, others = np.sort(ranks[:half], axis=0), ranks[half:]

    def sets(t: int) -> Integers:
        """The sets without t draws at either end; the sets of all draws, wider by −t ranks, if t is negative."""
        k = max(t, 0)
        both = np.column_stack([ordered[k] + min(t, 0), ordered[half - 1 - k] - min(t, 0)])
        return np.asarray(np.clip(both, 1, n), dtype=np.int64)

    low, high = -n, int(0.5 * (1.0 - level) * half) + 1  # the widest sets hold always; each alone needs its level
    while high - low > 1:
        middle = (low + high) // 2
        both = sets(middle)
        holds = np.mean(np.all((others >= both[:, 0]) & (others <= both[:, 1]), axis=1)) >= level
        low, high = (middle, high) if holds else (low, middle)
    return sets(low)


def groups_of(ranks: Integers) -> list[list[int]]:
    """Return maximal runs of items, the best first, whose sets of ranks overlap pairwise."""
    groups: list[tuple[int, int]] = []
    for start in range(len(ranks)):
        stop = start + 1
        while stop < len(ranks) and ranks[start : stop + 1, 0].max() <= ranks[start : stop + 1, 1].min():
            stop += 1
        if not groups or stop > groups[-1][1]:
            groups.append((start, stop))
    return [list(range(start, stop)) for start, stop in groups]


def _entropy(p: Floats) -> Floats:
    return np.asarray(-np.sum(p * np.log(np.maximum(p, 1e-300)), axis=-1))
