# mypy: disable-error-code="no-untyped-call"
"""
Policies that draw lists of k rows from scores, with the log-propensity of each row given the rows above it.

Plackett–Luce draws each rank in proportion to e^score: the k largest of score + Gumbel noise, in order (Yellott, 1977),
without an exponential that could overflow. ε-greedy takes, at each rank, the best row left (ties at random) or, with
probability ε, any row.
"""

from __future__ import annotations

import math

import numpy as np

from corank.core.jit import inline, jit
from corank.core.random import random_below, random_uniform

PLACKETT_LUCE, EPSILON_GREEDY = 0, 1

_TINY = 1e-300


@inline
def log_add(a, b):  # type: ignore[no-untyped-def]
    """Return log(e^a + e^b)."""
    high, low = max(a, b), min(a, b)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


@jit
def best_first(scores, order, k):  # type: ignore[no-untyped-def]
    """Move the k best of the rows in `order` to its front, best first; ties keep their order."""
    n = len(order)
    for at in range(1, n):
        row = order[at]
        score = scores[row]
        # rows beyond rank k need no order
        place = min(at, k)
        if place == k and not score > scores[order[k - 1]]:
            continue
        while place > 0 and scores[order[place - 1]] < score:
            place -= 1
        # rows from `place` on move down by one; the one that leaves the front takes the place of the new row
        if at > k:
            order[at] = order[k - 1]
            last = k - 1
        else:
            last = at
        for i in range(last, place, -1):
            order[i] = order[i - 1]
        order[place] = row


@jit
def shuffle(order, rng_state):  # type: ignore[no-untyped-def]
    """Shuffle numbers in place."""
    for i in range(len(order) - 1, 0, -1):
        j = np.int64(random_below(rng_state, i + 1))
        order[i], order[j] = order[j], order[i]


@jit
def draw_list(policy, epsilon, scores, rng_state, shown, log_propensities, noisy, order):  # type: ignore[no-untyped-def]
    """Draw a list of len(shown) rows, with the log-propensity of each given those above it."""
    n, k = len(scores), len(shown)
    for i in range(n):
        order[i] = i
    if policy == PLACKETT_LUCE:
        for i in range(n):
            noisy[i] = scores[i] - math.log(max(-math.log1p(-random_uniform(rng_state)), _TINY))
        best_first(noisy, order, k)
        shown[:] = order[:k]
        log_propensities[:] = scores[shown]
        log_left = log_rest(scores, order, k)
        for rank in range(k - 1, -1, -1):
            log_left = log_add(log_left, scores[shown[rank]])
            log_propensities[rank] -= log_left
        return
    shuffle(order, rng_state)
    best_first(scores, order, n)
    for rank in range(k):
        left = n - rank
        explores = random_uniform(rng_state) < epsilon
        at = rank + np.int64(random_below(rng_state, left)) if explores else np.int64(rank)
        row, best = order[at], scores[order[rank]]
        probability = epsilon / left
        if scores[row] == best:
            n_best = 1
            while rank + n_best < n and scores[order[rank + n_best]] == best:
                n_best += 1
            probability += (1.0 - epsilon) / n_best
        for i in range(at, rank, -1):
            order[i] = order[i - 1]
        order[rank] = row
        shown[rank], log_propensities[rank] = row, math.log(probability)


@jit
def log_rest(scores, order, k):  # type: ignore[no-untyped-def]
    """Return log Σ e^score over the rows in `order` from position k on; −∞ without any."""
    highest = -math.inf
    for i in range(k, len(order)):
        highest = max(highest, scores[order[i]])
    if highest == -math.inf:
        return highest
    total = 0.0
    for i in range(k, len(order)):
        total += math.exp(scores[order[i]] - highest)
    return highest + math.log(total)
