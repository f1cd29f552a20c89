"""
LambdaRank gradients λ and curvatures of the rows of queries, pair by pair.

A pair of rows i, j with grades y_i > y_j and scores s adds Δ_ij ρ(s_i − s_j) to λ_i and subtracts it from λ_j, with
ρ(x) = 1/(1 + eˣ) (RankNet's gradient) or the ramp of Burges (2005), and adds Δ_ij ρ(1 − ρ), or the ramp's weight, to
the curvature of both. With e_i = e^{s_i}, ρ(s_i − s_j) = e_j/(e_i + e_j): one exponential per row, one division per
pair.

Rows are grouped by query, query q from `starts[q]` to `starts[q + 1]`. `out[0]` collects λ, `out[1]` curvatures.
"""

from __future__ import annotations

import numpy as np

from corank.core.jit import inline, jit, relaxed

LOGISTIC, RAMP = 0, 1

# beyond this range of scores the quotients of exponentials lose small terms
_WIDE = 600.0

# sums in any order can be vectorised
_reordering = relaxed("reassoc", "contract", "nsz")


@inline
def pair_gradient(code, delta, x):  # type: ignore[no-untyped-def]
    """Return λ and curvature of the better row of a pair, if its score is higher by x."""
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
        # the curvature of the parabola that bounds the cost from above, with its minimum at the margin
        return 1.0, 1.0 / (delta - x)
    return delta - x, 1.0


@jit
def add_preferences(code, delta, factor, scores, pairs, weights, out, first, last):  # type: ignore[no-untyped-def]
    """Add λ of the weighted preferences `pairs[first:last]`, winner first."""
    for m in range(first, last):
        i, j = pairs[m, 0], pairs[m, 1]
        gradient, curvature = pair_gradient(code, delta, scores[i] - scores[j])
        gradient *= factor * weights[m]
        curvature *= factor * weights[m]
        out[0, i] += gradient
        out[0, j] -= gradient
        out[1, i] += curvature
        out[1, j] += curvature


@_reordering
def add_pairs(code, delta, factor, scores, labels, weights, starts, out, first, last):  # type: ignore[no-untyped-def]
    """Add λ of every pair of rows of different grade; the weight of a pair is the product of its rows' weights."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, starts[q + 1] - starts[q])
    e, y, w = np.empty(longest), np.empty(longest), np.empty(longest)
    lambdas, curvatures = np.empty(longest), np.empty(longest)
    for q in range(first, last):
        begin, n = starts[q], starts[q + 1] - starts[q]
        if n < 2:
            continue
        s = scores[begin : begin + n]
        low, high = s.min(), s.max()
        lambdas[:n] = 0.0
        curvatures[:n] = 0.0
        if code != LOGISTIC or high - low > _WIDE:
            for i in range(n):
                for j in range(n):
                    if labels[begin + i] > labels[begin + j]:
                        gradient, curvature = pair_gradient(code, delta, s[i] - s[j])
                        both = weights[begin + i] * weights[begin + j]
                        lambdas[i] += both * gradient
                        lambdas[j] -= both * gradient
                        curvatures[i] += both * curvature
                        curvatures[j] += both * curvature
        else:
            for i in range(n):
                e[i] = np.exp(s[i] - high)
                y[i] = labels[begin + i]
                w[i] = weights[begin + i]
            for i in range(n - 1):
                e_i, y_i, w_i = e[i], y[i], w[i]
                lambda_i, curvature_i = 0.0, 0.0
                for j in range(i + 1, n):
                    both = 0.0 if y_i == y[j] else w_i * w[j]
                    part = 1.0 / (e_i + e[j])
                    gradient = both * part * (e[j] if y_i > y[j] else -e_i)
                    curvature = both * part * part * e_i * e[j]
                    lambda_i += gradient
                    curvature_i += curvature
                    lambdas[j] -= gradient
                    curvatures[j] += curvature
                lambdas[i] += lambda_i
                curvatures[i] += curvature_i
        for i in range(n):
            out[0, begin + i] += factor * lambdas[i]
            out[1, begin + i] += factor * curvatures[i]


@jit
def add_winner(factor, scores, labels, weights, starts, out, first, last):  # type: ignore[no-untyped-def]
    """
    Add λ of −log P(winner), where P is the share of the rows W of the highest grade in Σ e^{s_i}.

    λ_i = [i ∈ W] e_i/Σ_W e − e_i/Σ e: rows near the top have larger λ, as equation (1) requires.
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
            gradient = -share
            if labels[i] == best:
                gradient += np.exp(scores[i] - top) / winners
            out[0, i] += factor * weights[i] * gradient
            out[1, i] += factor * weights[i] * share * (1.0 - share)
