"""
Scores of items: the posterior, averaged over what votes do not determine.

    s = λ c + e,   λ = σ ρ / sd(c),   e ~ N(0, σ² (1 − ρ²) ((1 − h) I + h F Fᵀ)),   c ~ N(ĉ, C) given the cheap votes

σ is the standard deviation of the scores and ρ their correlation with those of the cheap judge: the judge may be good,
useless (0) or reversed (below 0). h is the share of the rest that features F explain. ĉ and C are the posterior of the
same model on the cheap votes alone. Priors: log σ ~ N(0, ½²); atanh ρ is a mixture of three Student's t with 3 degrees
of freedom, one for each kind of judge (`JUDGES`): good ones with the median ρ = 0.98 and half of their mass in 0.94 to
0.99, since leaderboards by language models are published with rank correlations of 0.9 to 0.98 with those by people,
and noise lowers them; useless ones; and reversed ones. The evidence of the votes weighs the points of a grid of
(atanh ρ, log σ, h), which is searched outwards from its best points; inside a cell of the grid, λ is Gaussian. Scores
are medians of the average, and intervals are quantiles of it: uncertain hyper-parameters widen them. Medians follow
wide components less than means do.

Votes about the same prompt, or of the same judge, are not independent. If votes have groups, or else at least three
judges, the covariance V of the scores becomes

    V + V (B − H) V,   B = b Σ_g u_g u_gᵀ + (1 − b) φ H,   φ = tr(V Σ_g u_g u_gᵀ) / tr(V H),   b = G/(G + M),

where u_g is the gradient of the votes of group g, and H their Fisher information. Groups in which all items differ more
or less than elsewhere do not contradict the order: u_g is taken after a factor of all scores was fitted to the group,
and H s = 0 by a projection. With few groups (G) for M items, B is mostly the information times the dispersion φ, an
average over M − 1 directions: errors have (G − 1)(1 + (1 − b)(M − 2)) degrees of freedom. Nothing changes if φ ≤ 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.special import ndtr

from corank.data.io.votes import Votes
from corank.models.votes.laplace import Mode, ScorePrior, VoteCounts, find_mode, information, score_gradients

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Point = tuple[float, float, int]
"""atanh ρ, log σ, and the number of h in `SHARES`."""

MIN_VOTES, MIN_JUDGES = 5, 3
"""Votes from which a judge has a reliability, others are typical; such judges whose votes may depend on each other."""
SIGMA_SPREAD = 0.5
"""Standard deviation of log σ."""
JUDGES = np.array([(0.6, 2.25, 0.6), (0.35, 0.0, 0.4), (0.05, -2.25, 0.6)])
"""Prior of atanh ρ: probability, median and spread for good, useless and reversed judges."""
DEGREES, MAX_Z = 3, 4.0
"""Degrees of freedom of this prior, and the end of the grid."""
SHARES, SHARE_PRIOR = (0.0, 0.5, 0.9), (0.3, 0.35, 0.35)
"""h: share of the unexplained variance of scores that features explain, and its prior."""
OMEGA, MIN_OMEGA, EM_STEPS = 0.4, 0.05, 6
"""Standard deviation of reliabilities: at the start, and at least; and steps to learn it."""
_STEPS, _MAX_LOG_SIGMA, _MIN_TAU = (0.5, 0.35), 2.8, 0.01
_MIN_SHARE, _PEAK, _FINER = 3e-3, 0.7, 4.0


@dataclass(frozen=True, eq=False)
class CheapScores:
    """The posterior of the scores of the cheap judge: mean (M,), which is centred, and covariance (M, M)."""

    mean: Floats
    covariance: Floats

    @property
    def spread(self) -> float:
        """sd(c): standard deviation of the scores over items."""
        return float(np.sqrt(np.mean(self.mean**2) + np.mean(np.diagonal(self.covariance - self.covariance.mean(0)))))


@dataclass(frozen=True, eq=False)
class Hyperprior:
    """The prior of the scores as a function of the hyper-parameters: n_items, cheap scores, and features or None."""

    n_items: int
    cheap: CheapScores | None = None
    features: Floats | None = None

    def slope(self, point: Point) -> float:
        """λ."""
        return 0.0 if self.cheap is None else float(np.exp(point[1]) * np.tanh(point[0]) / self.cheap.spread)

    def tau(self, point: Point) -> float:
        """Standard deviation of e."""
        return max(float(np.exp(point[1]) * np.sqrt(1.0 - np.tanh(point[0]) ** 2)), _MIN_TAU)

    def prior(self, point: Point, step: float) -> ScorePrior:
        """The prior of s; `step` is that of log σ, inside which λ varies."""
        tau, n, share = self.tau(point), self.n_items, SHARES[point[2]]
        if self.cheap is None and not share:
            return ScorePrior.independent(n, tau)
        covariance, mean = (1.0 - share) * tau**2 * np.eye(n), np.zeros(n)
        if share and self.features is not None:
            covariance += share * tau**2 * (self.features @ self.features.T)
        if self.cheap is not None:
            slope, mean = self.slope(point), self.slope(point) * self.cheap.mean
            covariance += slope**2 * self.cheap.covariance + step**2 / 12.0 * np.outer(mean, mean)
        return ScorePrior.of(mean, covariance)

    def log_prior(self, point: Point) -> float:
        """Logarithm of the prior density of a point, up to a constant."""
        log_p = -0.5 * (point[1] / SIGMA_SPREAD) ** 2
        if self.cheap is not None:
            share, median, spread = JUDGES.T
            size = 1.0 + ((point[0] - median) / spread) ** 2 / DEGREES
            log_p += np.log(np.sum(share / spread * size ** (-0.5 * (DEGREES + 1))))
        return float(log_p + (np.log(SHARE_PRIOR[point[2]]) if self.features is not None else 0.0))

    def starts(self) -> list[Point]:
        """Where the search begins: at each kind of judge."""
        return [(0.0, 0.0, 0)] if self.cheap is None else [(float(z), 0.0, 0) for z in JUDGES[:, 1]]

    def neighbours(self, point: Point, scale: float) -> Iterator[Point]:
        """Points at a distance of one step times `scale`."""
        z, u, h = point
        for side in (-1, 1):
            if abs(u + side * scale * _STEPS[1]) <= _MAX_LOG_SIGMA:
                yield z, round(u + side * scale * _STEPS[1], 9), h
            if self.cheap is not None and abs(z + side * scale * _STEPS[0]) <= MAX_Z:
                yield round(z + side * scale * _STEPS[0], 9), u, h
            if self.features is not None and 0 <= h + side < len(SHARES):
                yield z, u, h + side


def average(counts: VoteCounts, hyperprior: Hyperprior) -> tuple[dict[Point, Mode], Floats]:
    """Return the points with most of the posterior, with their modes and weights."""
    omega, start = _learn_omega(counts)
    starts, scale = hyperprior.starts(), 1.0
    while True:
        nodes = _search(partial(_evaluate, counts, hyperprior, omega, scale), hyperprior, starts, scale, start)
        log_weight = np.array([value for value, _ in nodes.values()])
        weights = np.exp(log_weight - log_weight.max())
        weights /= weights.sum()
        if weights.max() < _PEAK or scale < 1.0:
            return {point: mode for point, (_, mode) in nodes.items()}, weights
        point = list(nodes)[int(weights.argmax())]
        starts, scale, start = [point], scale / _FINER, nodes[point][1]


def _evaluate(
    counts: VoteCounts, hyperprior: Hyperprior, omega: float, scale: float, point: Point, start: Mode | None
) -> tuple[float, Mode]:
    mode = find_mode(counts, hyperprior.prior(point, scale * _STEPS[1]), omega, start)
    return mode.log_evidence + hyperprior.log_prior(point), mode


def _search(
    evaluate: Callable[[Point, Mode | None], tuple[float, Mode]], hyperprior: Hyperprior, starts: list[Point],
    scale: float, start: Mode | None,
) -> dict[Point, tuple[float, Mode]]:  # fmt: skip
    """Evaluate a grid outwards from its best points; improbable points are dropped, to save memory."""
    seen, waiting = set(starts), list(starts)
    nodes: dict[Point, tuple[float, Mode]] = {}
    while waiting:
        for point in waiting:
            nodes[point] = evaluate(point, start)
            start = nodes[point][1]
        least = max(value for value, _ in nodes.values()) + np.log(_MIN_SHARE)
        nodes = {point: node for point, node in nodes.items() if node[0] >= least}
        further = {near for point in nodes for near in hyperprior.neighbours(point, scale)}
        waiting = sorted(further - seen)
        seen |= further
    return nodes


def _learn_omega(counts: VoteCounts) -> tuple[float, Mode | None]:
    """Learn the spread of the reliabilities by expectation maximisation; one judge's prior counts as one judge."""
    omega, start = OMEGA, None
    for _ in range(EM_STEPS if counts.n_judges else 0):
        start = find_mode(counts, ScorePrior.independent(counts.n_items, 1.0), omega, start)
        squares = float(np.sum((start.r - 1.0) ** 2 + start.r_var))
        omega = max(float(np.sqrt((squares + OMEGA**2) / (counts.n_judges + 1.0))), MIN_OMEGA)
    return omega, start


@dataclass(frozen=True, eq=False)
class Marginals:
    """Distributions of s_i − mean(s): mixtures of `means` (K, M) and `deviations` (K, M) with `weights` (K,)."""

    weights: Floats
    means: Floats
    deviations: Floats
    degrees: float = np.inf

    def quantile(self, level: float) -> Floats:
        """Return a quantile of each item, by bisection."""
        width = 50.0 if np.isfinite(self.degrees) else 10.0
        low = (self.means - width * self.deviations).min(axis=0)
        high = (self.means + width * self.deviations).max(axis=0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            z = (middle - self.means) / np.maximum(self.deviations, 1e-12)
            share = self.weights @ (stats.t.cdf(z, self.degrees) if np.isfinite(self.degrees) else ndtr(z))
            low, high = np.where(share < level, middle, low), np.where(share < level, high, middle)
        return np.asarray(0.5 * (low + high))


@dataclass(frozen=True, eq=False)
class ScoreFit:
    """The average over hyper-parameters: see the attributes of `Leaderboard`. mean: medians, centred."""

    mean: Floats
    covariance: Floats
    marginals: Marginals
    kappa: float
    beta: float
    judges: tuple[str, ...]
    r: Floats
    r_std: Floats
    slope: float
    correlation: float
    tau: float
    dispersion: float

    @classmethod
    def of(cls, votes: Votes, hyperprior: Hyperprior) -> ScoreFit:
        """Average over hyper-parameters, and correct the covariance if votes have groups."""
        n, (judge, judges) = len(votes.items), _own_judges(votes)
        counts = VoteCounts.of(
            votes.first, votes.second, votes.outcome, votes.count.astype(np.float64), n, judge=judge,
            n_judges=len(judges), has_sides=votes.has_sides,
        )  # fmt: skip
        nodes, weights = average(counts, hyperprior)
        points, modes = list(nodes), list(nodes.values())
        means = np.array([mode.s - mode.s.mean() for mode in modes])
        mean, covariance, deviations = weights @ means, np.zeros((n, n)), np.empty_like(means)
        for k, mode in enumerate(modes):
            V = _centred(mode.covariance[:n, :n])
            deviations[k] = np.sqrt(np.maximum(np.diagonal(V), 0.0))
            covariance += weights[k] * (V + np.outer(means[k] - mean, means[k] - mean))
        marginals, dispersion = Marginals(weights, means, deviations), 1.0
        median = marginals.quantile(0.5)
        group = votes.judge if votes.group is None and len(judges) >= MIN_JUDGES else votes.group
        if group is not None and 1 < len(np.unique(group)) < votes.count.sum():
            best = modes[int(np.argmax(weights))]
            covariance, dispersion, degrees = _sandwich(votes, counts, best, covariance, judge, group)
            if dispersion > 1.0:
                covariance = _centred(covariance)
                std = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
                marginals = Marginals(np.ones(1), median[None], std[None], degrees)
        r = weights @ np.array([mode.r for mode in modes])
        r_var = weights @ np.array([mode.r_var + (mode.r - r) ** 2 for mode in modes])
        slope, tau, rho = (
            float(weights @ [part(point) for point in points])
            for part in (hyperprior.slope, hyperprior.tau, lambda point: np.tanh(point[0]))
        )
        kappa, beta = (float(weights @ [getattr(mode, name) for mode in modes]) for name in ("kappa", "beta"))
        return cls(
            median - median.mean(), covariance, marginals, kappa, beta, judges, r, np.sqrt(r_var), slope, rho, tau,
            dispersion,
        )  # fmt: skip


def _centred(V: Floats) -> Floats:
    """Covariance of s_i − mean(s)."""
    V = V - V.mean(axis=0)
    return np.asarray(V - V.mean(axis=1)[:, None])


def _own_judges(votes: Votes) -> tuple[Integers | None, tuple[str, ...]]:
    """Return the number of each vote's judge, −1 for judges with few votes, and the names."""
    if votes.judge is None or len(votes.judges) < 2:
        return None, ()
    n_votes = np.bincount(votes.judge, votes.count, len(votes.judges))
    kept = np.flatnonzero(n_votes >= MIN_VOTES)
    if len(kept) < 2:
        return None, ()
    number = np.full(len(votes.judges), -1)
    number[kept] = np.arange(len(kept))
    return number[votes.judge], tuple(votes.judges[i] for i in kept)


def _sandwich(
    votes: Votes, counts: VoteCounts, mode: Mode, V: Floats, judge: Integers | None, group: Integers
) -> tuple[Floats, float, float]:
    """Correct a covariance for groups; return it with the dispersion φ and the degrees of freedom."""
    # the cell of each vote, by pair, order and judge
    order = np.lexsort((counts.second, counts.first, counts.judge))
    first, second = votes.first, votes.second
    swap = np.zeros(len(first), dtype=bool) if counts.has_sides else first > second
    a, b = np.where(swap, second, first), np.where(swap, first, second)
    n, who = len(votes.items), np.full(len(first), -1) if judge is None else judge
    keys = ((counts.judge + 1) * n + counts.first) * n + counts.second
    cell = order[np.searchsorted(keys[order], ((who + 1) * n + a) * n + b)]
    sign, outcome = np.where(swap, -1.0, 1.0), np.where(swap, 2 - votes.outcome, votes.outcome)
    pull, weight = score_gradients(counts, mode)
    pull, weight = sign * pull[cell, outcome] * votes.count, weight[cell] * votes.count
    groups, i = np.unique(group, return_inverse=True)
    G, M = len(groups), len(votes.items)
    delta = mode.s[votes.first] - mode.s[votes.second]

    def by_group(values: Floats) -> Any:
        places = (np.concatenate([i, i]), np.concatenate([votes.first, votes.second]))
        return sparse.csr_array((np.concatenate([values, -values]), places), shape=(G, M))

    # the scale of a group: the step of s → (1 + t) s that its votes prefer
    step = np.bincount(i, pull * delta, G) / np.maximum(np.bincount(i, weight * delta**2, G), 1e-12)
    U = by_group(pull - step[i] * weight * delta)
    total = np.asarray(U.sum(axis=0)).ravel()
    B = ((U.T @ U).toarray() - np.outer(total, total) / G) * (G / (G - 1.0))
    H = information(counts, mode)
    along = H @ mode.s
    H = H - np.outer(along, along) / max(float(along @ mode.s), 1e-12)
    phi = float(np.sum(V * B) / max(np.sum(V * H), 1e-300))
    if phi <= 1.0:
        return V, 1.0, np.inf
    share = G / (G + M)
    degrees = (G - 1.0) * (1.0 + (1.0 - share) * (M - 2.0))
    return V + V @ (share * B + ((1.0 - share) * phi - 1.0) * H) @ V, phi, degrees
