# mypy: disable-error-code="no-untyped-call"
"""
Online updates of a linear ranker from one list and its clicks.

Every clicked row a is preferred to every skipped row b: not clicked, and at or above the rank after the last click.
With f the scores from which the list was drawn and m = f(a) − f(b),

    PDGD           w ← w + η Σ_ab ρ_ab σ(m) σ(−m) (a − b),    ρ_ab = P(R*) / (P(R) + P(R*)),

R the list, R* the list with a and b exchanged (equations 9 and 10 of Oosterhuis and de Rijke, 2018). Between ranks
i < j of the two, both probabilities have the same numerators, so that with D_r the sum of e^f over the rows not above
rank r

    log P(R*)/P(R) = Σ_{r = i+1..j} log D_r − log D*_r,    D*_r = D_r − e^{f of rank j} + e^{f of rank i}.

D* is computed as a sum without the row of rank j, never as a difference, and everything in logarithms. m and ρ are
those at the time the list was drawn: a step depends on its impression alone, and steps may be applied in any order.

    pairs          w ← w + η Σ_ab g(m) (a − b),    g = −ℓ', at the current weights.

A step Δ is shortened so that neither its length nor max Δ·x − min Δ·x over the rows shown exceeds `MAX_STEP`. Weights g
of rows sum to 0, so |Δ|² = η Σ g_r Δ·x_r ≤ η G `MAX_STEP`, G the sum of the positive ones: one list cannot spoil a
model, however large its features. A difference of scores of 100 is a probability of e^−100; smaller steps, which are
all those on columns of ordinary size, are as published.

Policies that draw lists of k rows from scores, with the log-propensity of each row given the rows above it.

Plackett–Luce draws each rank in proportion to e^score: the k largest of score + Gumbel noise, in order (Yellott, 1977),
without an exponential that could overflow. ε-greedy takes, at each rank, the best row left (ties at random) or, with
probability ε, any row.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import inline, jit
from corank.core.pairs.losses import negative_gradient
from corank.core.random import random_below, random_uniform
from corank.core.rows.access import add_scaled, dot

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
    for index in range(1, n):
        row = order[index]
        score = scores[row]
        # rows beyond rank k need no order
        place = min(index, k)
        if place == k and not score > scores[order[k - 1]]:
            continue
        while place > 0 and scores[order[place - 1]] < score:
            place -= 1
        # rows from `place` on move down by one; the one that leaves the front takes the place of the new row
        if index > k:
            order[index] = order[k - 1]
            last = k - 1
        else:
            last = index
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
        index = rank + np.int64(random_below(rng_state, left)) if explores else np.int64(rank)
        row, best = order[index], scores[order[rank]]
        probability = epsilon / left
        if scores[row] == best:
            n_best = 1
            while rank + n_best < n and scores[order[rank + n_best]] == best:
                n_best += 1
            probability += (1.0 - epsilon) / n_best
        for i in range(index, rank, -1):
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


MAX_STEP = 100.0
"""Largest length of a step, and largest change of a difference of two scores of its list."""


class UpdateSettings(NamedTuple):
    """
    Constants of a ranker's updates.

    policy, loss: codes of `corank.core.clicks.updates` and `corank.core.pairs.losses`; the loss is used with ε-greedy
        lists only.
    """

    policy: int
    loss: int
    epsilon: float  # probability of exploration
    eta0: float  # eta0, decay: the learning rate after n lists is eta0 · decay^n
    decay: float


class ListScratch(NamedTuple):
    """One list of k out of n rows, and working memory."""

    scores: NDArray[np.float64]  # (n,): f of each row, prior included
    noisy: NDArray[np.float64]  # noisy (n + 1,), order (n,): working memory
    order: NDArray[np.int64]
    shown: NDArray[np.int64]  # shown, log_propensities, grades, clicks (k,): the list
    log_propensities: NDArray[np.float64]
    grades: NDArray[np.int64]
    clicks: NDArray[np.bool_]
    row_weights: NDArray[np.float64]  # (n,): factor of each row's features in the gradient


def list_scratch(n: int, k: int) -> ListScratch:
    """Allocate memory for lists of up to k of n rows."""
    k = min(n, k)
    order, shown, grades = (np.zeros(size, dtype=np.int64) for size in (n, k, k))
    clicks = np.zeros(k, dtype=np.bool_)
    return ListScratch(np.zeros(n), np.zeros(n + 1), order, shown, np.zeros(k), grades, clicks, np.zeros(n))


@jit
def score_rows(rows, members, prior, w, scores):  # type: ignore[no-untyped-def]
    """Write w · x plus the prior (empty: none) of each member."""
    for i in range(len(members)):
        row = np.uint64(members[i])
        scores[i] = dot(rows, row, w) + (prior[members[i]] if len(prior) > 0 else 0.0)


@jit
def show_list(rows, members, prior, w, settings, rng_state, k, scratch):  # type: ignore[no-untyped-def]
    """Score the members of a query, draw a list of up to k of them, and return its length."""
    n = len(members)
    score_rows(rows, members, prior, w, scratch.scores)
    length = min(n, k)
    draw_list(
        settings.policy, settings.epsilon, scratch.scores[:n], rng_state, scratch.shown[:length],
        scratch.log_propensities[:length], scratch.noisy, scratch.order[:n],
    )  # fmt: skip
    return length


@jit
def n_examined(clicks):  # type: ignore[no-untyped-def]
    """Return how many ranks are assumed to be examined: down to the one after the last click; 0 without clicks."""
    for rank in range(len(clicks) - 1, -1, -1):
        if clicks[rank]:
            return min(rank + 2, len(clicks))
    return 0


@inline
def _logistic_derivative(margin):  # type: ignore[no-untyped-def]
    """Return σ(m) σ(−m)."""
    e = math.exp(-abs(margin))
    return e / ((1.0 + e) * (1.0 + e))


@jit
def exchange_probability(scores, log_tails, i, j):  # type: ignore[no-untyped-def]
    """
    Return P(R*) / (P(R) + P(R*)), where R* is the list with ranks i < j exchanged.

    scores (k,): f of the rows shown, by rank.
    log_tails (k + 1,): log D_r; the last entry is that of the rows not shown.
    """
    log_ratio = 0.0
    # log of the sum over rows from rank r on, with rank i instead of rank j
    log_left = log_add(log_tails[j + 1], scores[i])
    for r in range(j, i, -1):
        if r < j:
            log_left = log_add(log_left, scores[r])
        log_ratio += log_tails[r] - log_left
    e = math.exp(-abs(log_ratio))
    return 1.0 / (1.0 + e) if log_ratio >= 0.0 else e / (1.0 + e)


@jit
def pdgd_gradient(scores, shown, log_unshown, clicks, log_tails, row_weights):  # type: ignore[no-untyped-def]
    """
    Write the factor of each shown row in the PDGD gradient; return whether there is any preference.

    scores (n,): f of the rows of the query.
    log_unshown: log Σ e^f over the rows that were not shown.
    log_tails (k + 1 or more,): working memory.
    """
    k, examined = len(shown), n_examined(clicks)
    row_weights[:k] = 0.0
    if examined == 0:
        return False
    f = scores[shown]
    log_tails[k] = log_unshown
    for r in range(k - 1, -1, -1):
        log_tails[r] = log_add(log_tails[r + 1], f[r])
    any_pair = False
    for a in range(examined):
        if not clicks[a]:
            continue
        for b in range(examined):
            if clicks[b]:
                continue
            any_pair = True
            rho = exchange_probability(f, log_tails, min(a, b), max(a, b))
            g = rho * _logistic_derivative(f[a] - f[b])
            row_weights[a] += g
            row_weights[b] -= g
    return any_pair


@jit
def pairwise_gradient(loss, scores, shown, clicks, row_weights):  # type: ignore[no-untyped-def]
    """Write the factor of each shown row in the gradient of all pairs; return whether any is not zero."""
    k, examined = len(shown), n_examined(clicks)
    row_weights[:k] = 0.0
    is_nonzero = False
    for a in range(examined):
        if not clicks[a]:
            continue
        for b in range(examined):
            if clicks[b]:
                continue
            g = negative_gradient(loss, 1.0, scores[shown[a]] - scores[shown[b]])
            is_nonzero |= g != 0.0
            row_weights[a] += g
            row_weights[b] -= g
    return is_nonzero


@jit
def learn_list(rows, members, prior, w, settings, n_learnt, length, scratch):  # type: ignore[no-untyped-def]
    """Update w in place from the list in `scratch` and its clicks."""
    n = len(members)
    shown, clicks, row_weights = scratch.shown[:length], scratch.clicks[:length], scratch.row_weights
    eta = settings.eta0 * settings.decay**n_learnt
    if settings.policy == PLACKETT_LUCE:
        _unshown_last(shown, n, scratch.order)
        unshown = log_rest(scratch.scores, scratch.order[:n], length)
        moves = pdgd_gradient(scratch.scores, shown, unshown, clicks, scratch.noisy, row_weights)
    else:
        score_rows(rows, members, prior, w, scratch.scores)
        moves = pairwise_gradient(settings.loss, scratch.scores, shown, clicks, row_weights)
    if moves:
        eta *= _step_share(rows, members, shown, row_weights, eta, len(w))
        for rank in range(length):
            if row_weights[rank] != 0.0:
                add_scaled(rows, np.uint64(members[shown[rank]]), eta * row_weights[rank], w)


@jit
def _step_share(rows, members, shown, row_weights, eta, d):  # type: ignore[no-untyped-def]
    """Return the share of a step that is taken, 1 for all of it; a step that overflows is left to the caller."""
    step = np.zeros(d)
    for rank in range(len(shown)):
        if row_weights[rank] != 0.0:
            add_scaled(rows, np.uint64(members[shown[rank]]), eta * row_weights[rank], step)
    squares, low, high = 0.0, math.inf, -math.inf
    for i in range(d):
        squares += step[i] * step[i]
    for rank in range(len(shown)):
        change = dot(rows, np.uint64(members[shown[rank]]), step)
        low, high = min(low, change), max(high, change)
    size = max(math.sqrt(squares), high - low)
    return MAX_STEP / size if MAX_STEP < size < math.inf else 1.0


@jit
def _unshown_last(shown, n, order):  # type: ignore[no-untyped-def]
    """Write the rows shown, then the others."""
    k = len(shown)
    order[:k] = shown
    i = k
    for row in range(n):
        is_shown = False
        for rank in range(k):
            is_shown |= shown[rank] == row
        if not is_shown:
            order[i] = row
            i += 1
