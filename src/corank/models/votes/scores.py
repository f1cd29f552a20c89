"""
Scores of items from votes: the average over hyper-parameters, and errors of votes that depend on each other.

Votes about the same prompt are not independent. If votes have groups, the covariance V of the scores becomes

    V + V (B − H) V,   B = b Σ_g u_g u_gᵀ + (1 − b) φ H,   φ = tr(V Σ_g u_g u_gᵀ) / tr(V H),   b = G/(G + M),

where u_g is the gradient of the votes of group g, and H their Fisher information. Groups in which all items differ more
or less than elsewhere do not contradict the order: u_g is taken after a factor of all scores was fitted to the group,
and H s = 0 by a projection. With few groups (G) for M items, B is mostly the information times the dispersion φ, an
average over M − 1 directions: errors have (G − 1)(1 + (1 − b)(M − 2)) degrees of freedom. Nothing changes if φ ≤ 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.data.io.votes import Votes
from corank.models.votes.hyper import CheapScores, Explanation, average
from corank.models.votes.laplace import Mode, VoteCounts, information, score_gradients

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MIN_VOTES = 5
"""Votes from which a judge has a reliability of their own; others count as typical judges."""


@dataclass(frozen=True, eq=False)
class ScoreFit:
    """The average over hyper-parameters: see the attributes of `Leaderboard`."""

    mean: Floats
    covariance: Floats
    kappa: float
    beta: float
    judges: tuple[str, ...]
    r: Floats
    r_std: Floats
    slope: float
    tau: float
    dispersion: float
    degrees: float


def fit_scores(votes: Votes, cases: list[Explanation], cheap: CheapScores | None = None) -> ScoreFit:
    """Average over the cases, and correct the covariance if votes have groups."""
    n, (judge, judges) = len(votes.items), _own_judges(votes)
    counts = VoteCounts.of(
        votes.first, votes.second, votes.outcome, votes.count.astype(np.float64), n, judge=judge, n_judges=len(judges),
        has_sides=votes.has_sides,
    )  # fmt: skip
    nodes, weights, _ = average(counts, cases)
    modes = [node.mode for node in nodes]
    mean = sum(w * mode.s for w, mode in zip(weights, modes, strict=True))
    r = weights @ np.array([mode.r for mode in modes])
    r_var = weights @ np.array([mode.r_var + (mode.r - r) ** 2 for mode in modes])
    covariance = np.zeros((n, n))
    for w, mode in zip(weights, modes, strict=True):
        covariance += w * (mode.covariance[:n, :n] + np.outer(mode.s - mean, mode.s - mean))
    dispersion, degrees = 1.0, np.inf
    if votes.group is not None and 1 < len(np.unique(votes.group)) < votes.count.sum():
        best = modes[int(np.argmax(weights))]
        covariance, dispersion, degrees = _sandwich(votes, counts, best, covariance, judge)
    slopes = [0.0 if cheap is None else node.case.slope_given(node.mode.s, node.tau, cheap) for node in nodes]
    return ScoreFit(
        mean, covariance, float(weights @ [mode.kappa for mode in modes]) if counts.has_ties else -np.inf,
        float(weights @ [mode.beta for mode in modes]), judges, r, np.sqrt(r_var), float(weights @ slopes),
        float(weights @ [node.tau for node in nodes]), dispersion, degrees,
    )  # fmt: skip


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
    return number[votes.judge], tuple(votes.judges[at] for at in kept)


def _sandwich(
    votes: Votes, counts: VoteCounts, mode: Mode, V: Floats, judge: Integers | None
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
    groups, at = np.unique(np.asarray(votes.group), return_inverse=True)
    G, M = len(groups), len(votes.items)
    delta = mode.s[votes.first] - mode.s[votes.second]

    def by_group(values: Floats) -> Any:
        places = (np.concatenate([at, at]), np.concatenate([votes.first, votes.second]))
        return sparse.csr_array((np.concatenate([values, -values]), places), shape=(G, M))

    # the scale of a group: the step of s → (1 + t) s that its votes prefer
    step = np.bincount(at, pull * delta, G) / np.maximum(np.bincount(at, weight * delta**2, G), 1e-12)
    U = by_group(pull - step[at] * weight * delta)
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
