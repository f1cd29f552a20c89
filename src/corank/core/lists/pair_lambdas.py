"""
Forces on the rows of queries, pair by pair: how hard each is pulled up or down, and how fast that changes.

A pair of rows i, j with grades y_i > y_j and scores s pulls i up and j down by Δ_ij ρ(s_i − s_j), ρ(x) = 1/(1 + eˣ)
(RankNet's slope) or the ramp of Burges (2005), and adds Δ_ij ρ(1 − ρ), or the ramp's weight, to the curvature of both.
With e_i = e^{s_i}, ρ(s_i − s_j) = e_j/(e_i + e_j): one exponential a row, one division a pair.

Rows stand query by query, query q from `starts[q]` to `starts[q + 1]`. `out[0]` collects forces, `out[1]` curvatures.
"""

from __future__ import annotations

import numpy as np

from corank.core.jit import inline, jit, relaxed

LOGISTIC, RAMP = 0, 1

# beyond this range of scores the quotients of exponentials lose what is small
_WIDE = 600.0

# sums in any order fill the lanes of a vector
_reordering = relaxed("reassoc", "contract", "nsz")


@inline
def slope(code, delta, x):  # type: ignore[no-untyped-def]
    """Return how hard a winner that leads by x is pulled up, and the curvature of that pull."""
    if code == LOGISTIC:
        if x > 0.0:
            e = np.exp(-x)
            rho = e / (1.0 + e)
        else:
            rho = 1.0 / (1.0 + np.exp(x))
        return rho, rho * (1.0 - rho)
    # equations (4) to (6) of the paper, as printed: a jump at 0 unless delta is 1
    if x > delta:
        return 0.0, 0.0
    if x < 0.0:
        # the curvature of the steepest parabola that lies above the cost and has its minimum at the margin
        return 1.0, 1.0 / (delta - x)
    return delta - x, 1.0


@jit
def add_preferences(code, delta, factor, scores, pairs, weights, out, first, last):  # type: ignore[no-untyped-def]
    """Add the pulls of preferences `pairs[first:last]`, winner first, of their weights."""
    for m in range(first, last):
        i, j = pairs[m, 0], pairs[m, 1]
        pull, curve = slope(code, delta, scores[i] - scores[j])
        pull *= factor * weights[m]
        curve *= factor * weights[m]
        out[0, i] += pull
        out[0, j] -= pull
        out[1, i] += curve
        out[1, j] += curve


@_reordering
def add_pairs(code, delta, factor, scores, labels, weights, starts, out, first, last):  # type: ignore[no-untyped-def]
    """Add the pulls of every pair of rows of different grade, a pair weighing the product of its rows."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, starts[q + 1] - starts[q])
    e, y, w = np.empty(longest), np.empty(longest), np.empty(longest)
    pulls, curves = np.empty(longest), np.empty(longest)
    for q in range(first, last):
        begin, n = starts[q], starts[q + 1] - starts[q]
        if n < 2:
            continue
        s = scores[begin : begin + n]
        low, high = s.min(), s.max()
        pulls[:n] = 0.0
        curves[:n] = 0.0
        if code != LOGISTIC or high - low > _WIDE:
            for i in range(n):
                for j in range(n):
                    if labels[begin + i] > labels[begin + j]:
                        pull, curve = slope(code, delta, s[i] - s[j])
                        both = weights[begin + i] * weights[begin + j]
                        pulls[i] += both * pull
                        pulls[j] -= both * pull
                        curves[i] += both * curve
                        curves[j] += both * curve
        else:
            for i in range(n):
                e[i] = np.exp(s[i] - high)
                y[i] = labels[begin + i]
                w[i] = weights[begin + i]
            for i in range(n - 1):
                e_i, y_i, w_i = e[i], y[i], w[i]
                pull_i, curve_i = 0.0, 0.0
                for j in range(i + 1, n):
                    both = 0.0 if y_i == y[j] else w_i * w[j]
                    part = 1.0 / (e_i + e[j])
                    pull = both * part * (e[j] if y_i > y[j] else -e_i)
                    curve = both * part * part * e_i * e[j]
                    pull_i += pull
                    curve_i += curve
                    pulls[j] -= pull
                    curves[j] += curve
                pulls[i] += pull_i
                curves[i] += curve_i
        for i in range(n):
            out[0, begin + i] += factor * pulls[i]
            out[1, begin + i] += factor * curves[i]


@jit
def add_winner(factor, scores, labels, weights, starts, out, first, last):  # type: ignore[no-untyped-def]
    """
    Add the pulls of −log P(winner): P the share of e^{s_i} that the rows W of the highest grade hold.

    λ_i = [i ∈ W] e_i/Σ_W e − e_i/Σ e: the nearer the top a row is, the more it is pulled, as equation (1) asks.
    """
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        if end - begin < 2:
            continue
        high, best, worst = -np.inf, -np.inf, np.inf
        for i in range(begin, end):
            if weights[i] > 0.0:
                high, best, worst = max(high, scores[i]), max(best, labels[i]), min(worst, labels[i])
        if not best > worst:
            continue
        top = -np.inf
        for i in range(begin, end):
            if labels[i] == best and weights[i] > 0.0:
                top = max(top, scores[i])
        every, winners = 0.0, 0.0
        for i in range(begin, end):
            every += weights[i] * np.exp(scores[i] - high)
            if labels[i] == best:
                winners += weights[i] * np.exp(scores[i] - top)
        for i in range(begin, end):
            share = np.exp(scores[i] - high) / every
            pull = -share
            if labels[i] == best:
                pull += np.exp(scores[i] - top) / winners
            out[0, i] += factor * weights[i] * pull
            out[1, i] += factor * weights[i] * share * (1.0 - share)
