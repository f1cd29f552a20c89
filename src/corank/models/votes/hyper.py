"""
Average over what votes do not determine: how far scores differ, and how much cheap votes and features say about them.

    s = λ c + F w + e,   e_i ~ N(0, τ²),   w ~ N(0, φ² I),   c ~ N(ĉ, C) given the cheap votes

ĉ and C are the posterior of the same model on the cheap votes alone. λ is the slope between the cheap scale and that of
people. In units of t = λ · sd(c), the standard deviation of the scores that the cheap votes explain, its prior is a
mixture: the cheap judge agrees with people, t ~ N(0.8 √sd(c), half of that); is of any sign, t ~ N(0, 1); or is
useless, λ = 0. In each case λ and w are Gaussian, so that s ~ N(m, Σ) with

    m = E[λ] ĉ,   Σ = τ² I + E[λ²] C + Var[λ] ĉ ĉᵀ + φ² F Fᵀ,

and the evidence of the votes weighs the cases, τ and φ. log τ is normal; if something explains the scores, its median
is smaller. τ is searched on a grid, outwards from its best point, with smaller steps if one point has most of the
posterior. The average of the Gaussians is replaced by the Gaussian with its mean and covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.models.votes.laplace import Mode, ScorePrior, VoteCounts, find_mode

Floats = NDArray[np.float64]

TAU, TAU_EXPLAINED, TAU_ANY_SIGN, TAU_SPREAD = 1.0, 0.15, 0.5, 1.0
"""Medians of τ: alone, beside an explanation, and beside a judge of any sign; and the standard deviation of log τ."""
AGREES, ANY_SIGN, USELESS = 0.75, 0.15, 0.10
"""Prior probabilities of the three cases of a cheap judge."""
SLOPE, SLOPE_SPREAD = 0.8, 0.5
"""Mean of t in units of √sd(c) if the cheap judge agrees, and its standard deviation relative to the mean."""
PHIS, PHI_PRIOR = (0.0, 0.3, 1.0), (0.3, 0.35, 0.35)
"""φ: standard deviation of the scores that features explain."""
OMEGA = 0.4
"""Initial standard deviation of reliabilities."""
_STEP, _MIN_SHARE, _PEAK, _REFINEMENTS = np.log(2.0), 1e-3, 0.7, 3
_MIN_TAU, _MAX_TAU = 0.01, 10.0
_MIN_OMEGA, _EM_STEPS = 0.05, 6


@dataclass(frozen=True, eq=False)
class CheapScores:
    """The posterior of the scores of the cheap judge: mean (M,), which is centred, and covariance (M, M)."""

    mean: Floats
    covariance: Floats

    @property
    def spread(self) -> float:
        """Standard deviation of the scores over items, errors removed from neither."""
        centred = self.covariance - self.covariance.mean(axis=0)
        return float(np.sqrt(np.mean(self.mean**2) + np.mean(np.diagonal(centred))))


@dataclass(frozen=True, eq=False)
class Explanation:
    """
    One case: mean and variance of λ, whether cheap votes and features are used, and its prior probability.

    covariance (M, M): Σ without τ² I; None if it is 0.
    tau: prior median of τ.
    """

    slope: float
    slope_var: float
    mean: Floats
    covariance: Floats | None
    probability: float
    tau: float

    def prior(self, tau: float) -> ScorePrior:
        """N(m, Σ)."""
        if self.covariance is None:
            return ScorePrior.independent(len(self.mean), tau)
        return ScorePrior.of(self.mean, self.covariance + tau**2 * np.eye(len(self.mean)))

    def slope_given(self, s: Floats, tau: float, cheap: CheapScores) -> float:
        """E[λ | s]."""
        if self.slope_var == 0.0:
            return self.slope
        return self.slope + self.slope_var * float(cheap.mean @ self.prior(tau).precision @ (s - self.mean))


def explanations(n_items: int, cheap: CheapScores | None, features: Floats | None) -> list[Explanation]:
    """Return the cases: those of the cheap judge times those of φ."""
    cases = [(0.0, 0.0, 1.0)]
    if cheap is not None:
        sd = cheap.spread
        agreeing = SLOPE / np.sqrt(sd)
        cases = [(agreeing, (SLOPE_SPREAD * agreeing) ** 2, AGREES), (0.0, sd**-2, ANY_SIGN), (0.0, 0.0, USELESS)]
    phis = [(0.0, 1.0)] if features is None else list(zip(PHIS, PHI_PRIOR, strict=True))
    out = []
    for slope, var, probability in cases:
        for phi, share in phis:
            mean, covariance = np.zeros(n_items), None
            if cheap is not None and (slope or var):
                mean = slope * cheap.mean
                covariance = (slope**2 + var) * cheap.covariance + var * np.outer(cheap.mean, cheap.mean)
            if features is not None and phi:
                explained = phi**2 * features @ features.T
                covariance = explained if covariance is None else covariance + explained
            tau = TAU if covariance is None else TAU_EXPLAINED if slope or phi else TAU_ANY_SIGN
            out.append(Explanation(slope, var, mean, covariance, probability * share, tau))
    return out


@dataclass(frozen=True, eq=False)
class Node:
    """One choice of case and τ: its mode, and the logarithm of its posterior weight."""

    case: Explanation
    tau: float
    mode: Mode
    log_weight: float


def average(counts: VoteCounts, cases: list[Explanation]) -> tuple[list[Node], Floats, float]:
    """Return the choices with most of the posterior, their weights, and ω."""
    omega, start = _learn_omega(counts, cases)
    nodes: list[Node] = []
    for case in cases:
        nodes += _search(counts, case, omega, start)
    log_weight = np.array([node.log_weight for node in nodes])
    weights = np.exp(log_weight - log_weight.max())
    kept = np.flatnonzero(weights >= _MIN_SHARE)
    return [nodes[at] for at in kept], weights[kept] / weights[kept].sum(), omega


def _search(counts: VoteCounts, case: Explanation, omega: float, start: Mode | None) -> list[Node]:
    """Evaluate log τ on a grid around its best point."""
    centre = np.log(case.tau)

    def evaluate(log_tau: float, step: float) -> Node:
        nonlocal start
        tau = float(np.exp(log_tau))
        start = find_mode(counts, case.prior(tau), omega, start)
        log_prior = np.log(case.probability * step) - 0.5 * ((log_tau - centre) / TAU_SPREAD) ** 2
        return Node(case, tau, start, start.log_evidence + float(log_prior))

    at, step = float(centre), float(_STEP)
    for _ in range(_REFINEMENTS):
        nodes = _outwards(evaluate, at, step)
        log_weight = np.array([node.log_weight for node in nodes])
        weights = np.exp(log_weight - log_weight.max())
        if weights.max() / weights.sum() < _PEAK:
            break
        at, step = float(np.log(nodes[int(weights.argmax())].tau)), step / 4.0
    return nodes


def _outwards(evaluate: Callable[[float, float], Node], at: float, step: float) -> list[Node]:
    nodes = {0: evaluate(at, step)}
    while True:
        best = max(node.log_weight for node in nodes.values())
        ends = [(min(nodes), -1), (max(nodes), 1)]
        further = [
            end + side for end, side in ends
            if nodes[end].log_weight > best + np.log(_MIN_SHARE)
            and np.log(_MIN_TAU) <= at + (end + side) * step <= np.log(_MAX_TAU)
        ]  # fmt: skip
        if not further:
            return [nodes[place] for place in sorted(nodes)]
        for place in further:
            nodes[place] = evaluate(at + place * step, step)


def _learn_omega(counts: VoteCounts, cases: list[Explanation]) -> tuple[float, Mode | None]:
    """Learn the spread of the reliabilities by expectation maximisation; one judge's prior counts as one judge."""
    if not counts.n_judges:
        return OMEGA, None
    omega, start = OMEGA, None
    prior = cases[0].prior(TAU)
    for _ in range(_EM_STEPS):
        start = find_mode(counts, prior, omega, start)
        squares = float(np.sum((start.r - 1.0) ** 2 + start.r_var))
        omega = max(float(np.sqrt((squares + OMEGA**2) / (counts.n_judges + 1.0))), _MIN_OMEGA)
    return omega, start
