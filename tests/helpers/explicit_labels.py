"""Reference for label ranking: constraints as sets of pairs, Algorithm 1 of the paper, objectives as plain sums."""

from __future__ import annotations

import numpy as np


def constraints(levels, sides, pairs=(), conversion="all", above_zero="all"):
    """The set of (winner, loser) of one example; label d is the zero point."""
    d = len(levels)
    known = sorted({level for level in levels if level >= 0})
    found = set(map(tuple, pairs))
    for r in range(d):
        for s in range(d):
            if levels[r] < 0 or levels[s] < 0 or levels[r] <= levels[s]:
                continue
            if conversion == "all" or known.index(levels[r]) == known.index(levels[s]) + 1:
                found.add((r, s))
    P, N = [r for r in range(d) if sides[r] == 1], [r for r in range(d) if sides[r] == -1]
    found |= {(r, s) for r in P for s in N}
    ranked = [levels[r] for r in P if levels[r] >= 0]
    found |= {(r, d) for r in P if above_zero == "all" or levels[r] < 0 or levels[r] == min(ranked)}
    return found | {(d, r) for r in N}


def algorithm_1(X, d, examples, loss, average=False):
    """
    Algorithm 1, line by line; X has a column of ones where there is an intercept.

    examples: sets of constraints; loss: takes the number of an example and its utilities.
    Returns the weights (their mean after every example, where averaged), and the sum of the losses.
    """
    W, total, cumulated = np.zeros((d + 1, X.shape[1])), 0.0, 0.0
    for t, x in enumerate(X):
        u = W @ x
        violated = [(r, s) for r, s in examples[t] if u[r] <= u[s]]
        if violated and (cost := loss(t, u[:d])) > 0:
            cumulated += cost
            beta = np.zeros(d + 1)
            for r, s in violated:
                beta[r] += 1
                beta[s] -= 1
            beta[d] = 0.0
            W = W + cost * np.outer(beta / len(violated), x)
        total = total + W
    return (total / len(X) if average else W)[:d], cumulated


def objective(X, examples, loss, W, b, alpha, weights=None):
    """Mean loss over constraints plus the penalty."""
    U = np.hstack([X @ W.T + b, np.zeros((len(X), 1))])
    weights = np.ones(len(X)) if weights is None else weights
    total = sum(weights[i] * loss(U[i, r] - U[i, s]) for i, one in enumerate(examples) for r, s in one)
    return total / sum(weights[i] * len(one) for i, one in enumerate(examples)) + alpha / 2 * np.sum(W**2)


LOSSES = {
    "hinge": lambda m: max(0.0, 1 - m),
    "squared": lambda m: 0.5 * (1 - m) ** 2,
    "squared_hinge": lambda m: 0.5 * max(0.0, 1 - m) ** 2,
    "logistic": lambda m: np.logaddexp(0.0, -m),
}
