"""
Losses of a margin, chosen by an integer code, and their sums over all pairs of a query.

An integer code instead of a function keeps kernels in the disk cache.
"""

from __future__ import annotations

import math

from corank.core.jit import inline, jit

HINGE, SQUARED, LOGISTIC, SQUARED_HINGE = 0, 1, 2, 3


@inline
def pair_target(loss, gap):  # type: ignore[no-untyped-def]
    """Return the target of a pair whose scores differ by `gap` > 0."""
    if loss == SQUARED:
        return gap
    if loss == LOGISTIC:
        return 0.5 * (1.0 + gap)
    return 1.0


@inline
def cost(loss, target, margin):  # type: ignore[no-untyped-def]
    """
    Return ℓ, −∂ℓ/∂margin and ∂²ℓ/∂margin²; NaN for an unknown code.

    The compiler drops values that a caller does not use, as long as branches call only `math.exp`, `math.log`,
    `math.sqrt`, `abs`, `min` and `max`.
    """
    if loss == HINGE:
        short = 1.0 - target * margin
        return max(0.0, short), target if short > 0.0 else 0.0, 0.0
    if loss == SQUARED:
        short = target - margin
        return 0.5 * short * short, short, 1.0
    if loss == LOGISTIC:
        # exp of a number ≤ 0 only: no overflow
        e = math.exp(-abs(margin))
        item = 1.0 + e
        # target - σ(margin) without the cancellation in 1 - σ; log(1 + e) is accurate for small e
        negative = (target - 1.0) + e / item if margin >= 0.0 else target - e / item
        soft = e if item == 1.0 else math.log(item) * (e / (item - 1.0))
        return soft + (1.0 - target if margin >= 0.0 else -target) * margin, negative, e / (item * item)
    if loss == SQUARED_HINGE:
        short = max(0.0, 1.0 - target * margin)
        return 0.5 * short * short, target * short, target * target if short > 0.0 else 0.0
    return math.nan, math.nan, math.nan


@inline
def negative_gradient(loss, target, margin):  # type: ignore[no-untyped-def]
    """Return −∂ℓ/∂margin."""
    return cost(loss, target, margin)[1]


@jit
def pair_targets(loss, gaps, out):  # type: ignore[no-untyped-def]
    """Write the target of each difference of scores."""
    for i in range(len(out)):
        out[i] = pair_target(loss, gaps[i])


@jit
def costs(loss, targets, margins, out):  # type: ignore[no-untyped-def]
    """Write value, negative gradient and second derivative of each margin to the rows of `out`."""
    for i in range(out.shape[1]):
        out[0, i], out[1, i], out[2, i] = cost(loss, targets[i], margins[i])


@jit
def all_pairs_loss(loss, block, s, first, last, gradient):  # type: ignore[no-untyped-def]
    """Return Σ w_i w_j ℓ over the pairs of queries first..last-1, and write its gradient."""
    total = 0.0
    for q in range(first, last):
        begin, end = block.starts[q], block.starts[q + 1]
        gradient[begin:end] = 0.0
        lower = begin
        for i in range(begin, end):
            if block.grade[i] != block.grade[lower]:
                lower = i
            # rows ascend by grade: all rows before the first row of i's grade are lower
            own, costs = 0.0, 0.0
            for j in range(begin, lower):
                value, negative, _ = cost(loss, pair_target(loss, block.y[i] - block.y[j]), s[i] - s[j])
                costs += block.weight[j] * value
                own += block.weight[j] * negative
                gradient[j] += block.weight[i] * block.weight[j] * negative
            gradient[i] -= block.weight[i] * own
            total += block.weight[i] * costs
    return total


@jit
def all_pairs_hessian_product(loss, block, s, z, first, last, out):  # type: ignore[no-untyped-def]
    """Write the Hessian times z: w_i Σ_j w_j ℓ'' (z_i − z_j) over the partners j of i."""
    for q in range(first, last):
        begin, end = block.starts[q], block.starts[q + 1]
        out[begin:end] = 0.0
        lower = begin
        for i in range(begin, end):
            if block.grade[i] != block.grade[lower]:
                lower = i
            own = 0.0
            for j in range(begin, lower):
                _, _, curvature = cost(loss, pair_target(loss, block.y[i] - block.y[j]), s[i] - s[j])
                change = block.weight[j] * curvature * (z[i] - z[j])
                own += change
                out[j] -= block.weight[i] * change
            out[i] += block.weight[i] * own
