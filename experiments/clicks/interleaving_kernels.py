# mypy: disable-error-code="no-untyped-call"
"""
Probabilistic interleaving (Hofmann et al., 2011; Schuth et al., 2015) and pairwise preference multileaving (Oosterhuis
and de Rijke, 2017) of m rankings of n rows into one list of k rows, and the credit of clicks on it.

A ranking is an array of row numbers, best first; ranks are its inverse, 0 for the best.
"""

from __future__ import annotations

import numpy as np

from corank.core.clicks.sessions import is_among
from corank.core.clicks.updates import n_examined
from corank.core.jit import jit
from corank.core.random import random_below, random_uniform


@jit
def invert(rankings, ranks):  # type: ignore[no-untyped-def]
    """Write the rank of each row in each ranking."""
    for j in range(len(rankings)):
        for rank in range(rankings.shape[1]):
            ranks[j, rankings[j, rank]] = rank


@jit
def interleave_probabilistic(ranks, softmax, rng_state, shown, log_propensities, left):  # type: ignore[no-untyped-def]
    """
    Draw each row from a ranking chosen at random, with probability proportional to softmax[rank] over the rows left.

    softmax (n,): (rank + 1)^−τ.
    left (n,): working memory.
    """
    m, n = ranks.shape
    left[:] = True
    for i in range(len(shown)):
        j = np.int64(random_below(rng_state, m))
        total = 0.0
        for row in range(n):
            if left[row]:
                total += softmax[ranks[j, row]]
        aim = random_uniform(rng_state) * total
        chosen = -1
        for row in range(n):
            if left[row]:
                chosen = row
                aim -= softmax[ranks[j, row]]
                if aim < 0.0:
                    break
        shown[i] = chosen
        left[chosen] = False
    log_propensities[:] = 0.0
    for of_ranking in ranks:
        of_left = _sum_left(of_ranking, softmax, left)
        for i in range(len(shown) - 1, -1, -1):
            own = softmax[of_ranking[shown[i]]]
            of_left += own
            log_propensities[i] += own / of_left
    log_propensities[:] = np.log(log_propensities / m)


@jit
def _sum_left(ranks, softmax, left):  # type: ignore[no-untyped-def]
    """
    Return Σ softmax over the rows left.

    Callers add the rows of a list from its end to its beginning; subtracting from the other end would cancel.
    """
    total = 0.0
    for row in range(len(ranks)):
        if left[row]:
            total += softmax[ranks[row]]
    return total


@jit
def assign_clicks(ranks, softmax, shown, clicks, left, shares):  # type: ignore[no-untyped-def]
    """
    Write, for each click, the probability that each ranking contributed its row; return the number of clicks.

    left (n,): working memory.
    shares (k, m): one line per click.
    """
    n_clicks = 0
    for i in range(len(shown)):
        n_clicks += clicks[i]
    if n_clicks == 0:
        return 0
    left[:] = True
    for i in range(len(shown)):
        left[shown[i]] = False
    for j in range(len(ranks)):
        of_left = _sum_left(ranks[j], softmax, left)
        line = n_clicks
        for i in range(len(shown) - 1, -1, -1):
            own = softmax[ranks[j, shown[i]]]
            of_left += own
            if clicks[i]:
                line -= 1
                shares[line, j] = own / of_left
    for line in range(n_clicks):
        total = 0.0
        for j in range(len(ranks)):
            total += shares[line, j]
        for j in range(len(ranks)):
            shares[line, j] /= total
    return n_clicks


@jit
def expected_sign(shares, n_clicks, i, j, law, new):  # type: ignore[no-untyped-def]
    """
    Return E sign(clicks of ranking i − clicks of ranking j), each click assigned to a ranking by its shares.

    The difference is a random walk of n_clicks steps of −1, 0 or 1; its distribution is updated exactly.

    law, new (2 k + 1,): working memory.
    """
    c = n_clicks
    law[: 2 * c + 1] = 0.0
    law[c] = 1.0
    for click in range(n_clicks):
        up, down = shares[click, i], shares[click, j]
        stay = 1.0 - up - down
        for index in range(c - click - 1, c + click + 2):
            moved = 0.0
            if index > 0:
                moved = up * law[index - 1]
            if index < 2 * c:
                moved += down * law[index + 1]
            # in this order the law of rankings with equal shares is symmetric to the last bit: the sign is exactly 0
            new[index] = stay * law[index] + moved
        for index in range(c - click - 1, c + click + 2):
            law[index] = new[index]
    value = 0.0
    for index in range(1, c + 1):
        value += law[c + index] - law[c - index]
    return value


@jit
def interleave_pairwise(rankings, rng_state, shown):  # type: ignore[no-untyped-def]
    """Draw rank r uniformly from the rows that some ranking has among its best r and that are not shown yet."""
    m = len(rankings)
    choices = np.empty(m * len(shown), dtype=np.int64)
    for i in range(len(shown)):
        n_choices = list_choices(rankings, shown, i, choices)
        shown[i] = choices[np.int64(random_below(rng_state, n_choices))]


@jit
def list_choices(rankings, shown, at, choices):  # type: ignore[no-untyped-def]
    """Write the rows that may be drawn at rank `at`, and return their number."""
    n_choices = 0
    for rank in range(at + 1):
        for j in range(len(rankings)):
            row = rankings[j, rank]
            if not is_among(row, shown, at) and not is_among(row, choices, n_choices):
                choices[n_choices] = row
                n_choices += 1
    return n_choices


@jit
def credit_pairwise(rankings, ranks, shown, clicks, out):  # type: ignore[no-untyped-def]
    """
    Credit each ranking with ± a weight for every pair of a clicked and a skipped row, by its order of the two.

    A pair counts if both rows could have been drawn at the higher of their two ranks, so that both orders were equally
    likely. The weight is the inverse probability that the row available earlier was not drawn before both were
    available (Oosterhuis and de Rijke, 2017).
    """
    m, k = len(rankings), len(shown)
    out[:] = 0.0
    examined = n_examined(clicks)
    if examined == 0:
        return
    choices = np.empty(m * k, dtype=np.int64)
    stays, first = np.empty(k), np.empty(k, dtype=np.int64)
    for i in range(k):
        stays[i] = 1.0 - 1.0 / list_choices(rankings, shown, i, choices)
        first[i] = k
        for j in range(m):
            first[i] = min(first[i], ranks[j, shown[i]])
    for a in range(examined):
        if not clicks[a]:
            continue
        for b in range(examined):
            if clicks[b]:
                continue
            early, late = min(first[a], first[b]), max(first[a], first[b])
            if late > min(a, b):
                continue
            probability = 1.0
            for i in range(early, late):
                probability *= stays[i]
            for j in range(m):
                out[j] += 1.0 / probability if ranks[j, shown[a]] < ranks[j, shown[b]] else -1.0 / probability
