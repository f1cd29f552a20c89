"""
Weights of an average of rankers, chosen on the scores they gave to left-out queries: the mean of two choices.

1. Members are added one at a time, with replacement, whichever raises the mean metric most (Caruana, Niculescu-Mizil,
   Crew and Ksikes, Ensemble selection from libraries of models, ICML 2004). The shares of members are shrunk towards
   weights from a steadier criterion, the mean correlation r_m of scores and grades inside the n left-out queries:

       (n w_selected + n₀ w_r) / (n + n₀),   w_r ∝ exp(β min(n, 10) r_m),   n₀ = 15, β = 5.

2. Nonnegative least squares of standardised grades on scores inside queries (stacking: Breiman, 1996), each query with
   weight 1, shrunk to equal weights:

       min_w≥0 Σ_q mean_i∈q (t_i − w · f(x_i))² + λ |w − μ|²,   λ = 0.03 K for K members, μ = 0.6 / K.

With a prior, only the first choice is made, and shrunk towards the prior alone. Weights below 0.02 are set to 0.

Of a handful of queries, nDCG@10 counts few documents, and correlations and squares count all.
`docs/experiments/defaults.md` compares this rule with others on twenty collections.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.models.auto.left_out import ValidationFolds

Floats = NDArray[np.float64]

# members that a selection adds
_ROUNDS = 8
# n₀, the number of queries that the weights of correlations count as; β, and the most queries that it counts
_CORRELATION_QUERIES, _SHARPNESS, _MAX_EVIDENCE = 15.0, 5.0, 10
# λ / K, and the sum of μ
_PENALTY, _SUM = 0.03, 0.6
# slopes up to this share of the largest are rounding errors
_ROUNDING = 1e-12
# weights below this one are dropped
_MIN_WEIGHT = 0.02
# parts of the lists for the estimate, where each part has its own choice of weights
_NESTED_PARTS = 5
# the average with members that see ranks is tried if their best correlation with the grades is at most this far below
# that of others, and chosen if it is better by this number of standard errors
_NEAR, _ERRORS = 0.05, 0.5


@dataclass(frozen=True, eq=False)
class Average:
    """Averages of groups of candidates. F: scores of the left-out rows by all candidates; prior: which one is it."""

    F: Floats
    left_out: ValidationFolds
    prior: int | None = None

    def of(self, group: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return weights of all candidates, zero but for a group, and `nested_values` of their average."""
        weights, part = np.zeros(self.F.shape[1]), self.F[:, group]
        weights[group] = choose_weights(part, self.left_out, prior=self.prior)
        return weights, nested_values(part, self.left_out, self.prior)

    def choose(self, first: NDArray[np.int64], larger: NDArray[np.int64] | None = None) -> tuple[Floats, Floats]:
        """Return `of` the first group, or of a larger one if left-out queries speak for its further members."""
        result = self.of(first)
        if larger is None:
            return result
        means = np.nanmean(self.left_out.correlations(self.F), axis=0)
        if means[np.setdiff1d(larger, first)].max() < means[first].max() - _NEAR:
            return result
        other = self.of(larger)
        gains = other[1] - result[1]
        gains = gains[~np.isnan(gains)]
        is_better = len(gains) > 1 and gains.mean() > _ERRORS * gains.std(ddof=1) / np.sqrt(len(gains))
        return other if is_better and other[0][np.setdiff1d(larger, first)].any() else result


def nested_values(F: Floats, left_out: ValidationFolds, prior: int | None) -> Floats:
    """Return the metric of the average in each list, with weights that were chosen on other folds."""
    estimated = np.full(left_out.n_lists, np.nan)
    part_of_list = np.zeros(left_out.n_lists, dtype=np.int64)
    part_of_list[left_out.lists] = left_out.folds % _NESTED_PARTS
    for part in range(min(left_out.n_folds, _NESTED_PARTS)):
        is_out = part_of_list == part
        weights = choose_weights(F, left_out, ~is_out if left_out.n_folds > 1 else None, prior=prior)
        estimated[is_out] = left_out.values(F @ weights)[is_out]
    return estimated


def choose_weights(
    F: Floats, left_out: ValidationFolds, shown: NDArray[np.bool_] | None = None, *, prior: int | None = None
) -> Floats:
    """
    Choose the weights of members.

    shown: lists to choose by; None for all.
    prior: number of the member that is the prior, if there is one.
    """
    shown = np.ones(left_out.n_lists, dtype=bool) if shown is None else shown
    single = left_out.values(F)
    is_defined = shown & ~np.isnan(single).any(axis=1)
    n, K = int(is_defined.sum()), F.shape[1]
    if K == 1 or n == 0:
        return np.full(K, 1.0 / K)
    known = _from_correlations(left_out.correlations(F)[shown]) if prior is None else np.eye(K)[prior]
    selected = _select(F, left_out, single, is_defined)
    weights = (n * selected + _CORRELATION_QUERIES * known) / (n + _CORRELATION_QUERIES)
    if prior is None:
        weights = 0.5 * (weights + _least_squares(F, left_out, shown))
    weights[weights < min(_MIN_WEIGHT, weights.max())] = 0.0
    return np.asarray(weights / weights.sum())


def _from_correlations(correlations: Floats) -> Floats:
    """Return w_r; equal weights if no correlation is defined."""
    known = correlations[~np.isnan(correlations).any(axis=1)]
    evidence = _SHARPNESS * known.sum(axis=0) * min(1.0, _MAX_EVIDENCE / max(len(known), 1))
    weights = np.exp(evidence - evidence.max())
    return np.asarray(weights / weights.sum())


def _least_squares(F: Floats, left_out: ValidationFolds, shown: NDArray[np.bool_]) -> Floats:
    """Return the weights of nonnegative least squares, with sum 1."""
    Z, t, lists = left_out.standardised(F)
    Z, t, K = Z[shown[lists]], t[shown[lists]], F.shape[1]
    weights = nonnegative_minimum(Z.T @ Z + _PENALTY * K * np.eye(K), Z.T @ t + _PENALTY * _SUM)
    total = weights.sum()
    return np.asarray(weights / total) if total > 0.0 else np.full(K, 1.0 / K)


def nonnegative_minimum(A: Floats, b: Floats) -> Floats:
    """Return the w ≥ 0 of the least wᵀAw/2 − bᵀw (Lawson and Hanson, 1974); `scipy.optimize` takes long to import."""
    w, is_free = np.zeros(len(b)), np.zeros(len(b), dtype=bool)
    for _ in range(3 * len(b)):
        slopes = np.where(is_free, -np.inf, b - A @ w)
        if slopes.max() <= _ROUNDING * np.abs(b).max():
            break
        is_free[np.argmax(slopes)] = True
        while True:
            target = np.zeros(len(b))
            target[is_free] = np.linalg.solve(A[np.ix_(is_free, is_free)], b[is_free])
            falls = is_free & (target <= 0.0)
            if not falls.any():
                w = target
                break
            # as far as the first weight that reaches 0
            steps = np.divide(w, w - target, out=np.full(len(b), np.inf), where=falls & (w > target))
            first = int(np.argmin(np.where(falls, np.where(w > 0.0, steps, 0.0), np.inf)))
            w = w + (0.0 if w[first] <= 0.0 else steps[first]) * (target - w)
            is_free[first], w[first] = False, 0.0
    return w


def _select(F: Floats, left_out: ValidationFolds, single: Floats, is_defined: NDArray[np.bool_]) -> Floats:
    """Return the shares of members in a greedy selection."""
    counts = np.zeros(F.shape[1])
    counts[np.argmax(single[is_defined].mean(axis=0))] = 1.0
    total, kept = F @ counts, counts.copy()
    best = -np.inf
    for _ in range(_ROUNDS):
        means = left_out.values(total[:, None] + F)[is_defined].mean(axis=0)
        j = int(np.argmax(means))
        counts[j] += 1.0
        total = total + F[:, j]
        if means[j] > best:
            best, kept = means[j], counts.copy()
    return np.asarray(kept / kept.sum())
