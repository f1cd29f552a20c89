"""
Weights of an average of rankers, chosen on the scores they gave to left-out queries.

Members are added one at a time, with replacement, whichever raises the mean metric most (Caruana, Niculescu-Mizil,
Crew and Ksikes, Ensemble selection from libraries of models, ICML 2004). So that few queries do not decide by chance,
the selection is repeated on random weights of the n queries (Bayesian bootstrap: Dirichlet(1, ..., 1)), the shares of
members are averaged, and the average is shrunk towards weights from a steadier criterion, the mean correlation r_m of
scores and grades inside left-out queries:

    w = (n w_selected + n₀ w_r) / (n + n₀),   w_r ∝ exp(β min(n, 10) r_m),   n₀ = 15, β = 5,

or, with a prior, towards the prior alone. Weights below 0.05 are set to 0.

Of a handful of queries, nDCG@10 counts few documents and correlation counts all. `docs/experiments/defaults.md`
compares this rule with others on twenty collections.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

REPEATS = 4
"""Number of random weightings of the queries."""

# members that a selection adds
_ROUNDS = 8
# n₀, the number of queries that the weights of correlations count as; β, and the most queries that it counts
_CORRELATION_QUERIES, _SHARPNESS, _MAX_EVIDENCE = 15.0, 5.0, 10
# weights below this one are dropped
_MIN_WEIGHT = 0.05
# number of queries from which one selection suffices
_MANY_QUERIES = 300


def choose_weights(
    F: Floats,
    values: Callable[[Floats], Floats],
    correlations: Floats,
    rng: np.random.Generator,
    repeats: int = REPEATS,
    *,
    prior: int | None = None,
) -> Floats:
    """
    Choose the weights of members.

    values: takes scores (n_rows, m) and returns their metric in each query (n_queries, m), larger is better, NaN where
        it is not defined.
    correlations: correlation of scores and grades in each query (n_queries, m), NaN where it is not defined.
    prior: number of the member that is the prior, if there is one.
    """
    single = values(F)
    is_defined = np.asarray(~np.isnan(single).any(axis=1))
    n = int(is_defined.sum())
    if F.shape[1] == 1 or n == 0:
        return np.full(F.shape[1], 1.0 / F.shape[1])
    shares = rng.dirichlet(np.ones(n), repeats) if n < _MANY_QUERIES else np.full((1, n), 1.0 / n)
    selected = np.mean([_select(F, values, single, is_defined, share) for share in shares], axis=0)
    known = _from_correlations(correlations) if prior is None else np.eye(F.shape[1])[prior]
    weights = (n * selected + _CORRELATION_QUERIES * known) / (n + _CORRELATION_QUERIES)
    weights[weights < min(_MIN_WEIGHT, weights.max())] = 0.0
    return np.asarray(weights / weights.sum())


def _from_correlations(correlations: Floats) -> Floats:
    """Return w_r; equal weights if no correlation is defined."""
    known = correlations[~np.isnan(correlations).any(axis=1)]
    evidence = _SHARPNESS * known.sum(axis=0) * min(1.0, _MAX_EVIDENCE / max(len(known), 1))
    weights = np.exp(evidence - evidence.max())
    return np.asarray(weights / weights.sum())


def _select(
    F: Floats, values: Callable[[Floats], Floats], single: Floats, is_defined: NDArray[np.bool_], share: Floats
) -> Floats:
    """Return the shares of members in a greedy selection, for one weighting of the queries."""
    counts = np.zeros(F.shape[1])
    counts[np.argmax(share @ single[is_defined])] = 1.0
    total, kept = F @ counts, counts.copy()
    best = -np.inf
    for _ in range(_ROUNDS):
        means = share @ values(total[:, None] + F)[is_defined]
        j = int(np.argmax(means))
        counts[j] += 1.0
        total = total + F[:, j]
        if means[j] > best:
            best, kept = means[j], counts.copy()
    return np.asarray(kept / kept.sum())
