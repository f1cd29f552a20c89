"""
What a margin costs under each loss: one branch a loss, chosen by an integer code.

A function passed to a kernel would be compiled again in every process; a code is not.
"""

from __future__ import annotations

import math

from corank.core.jit import inline, jit

HINGE, SQUARED, LOGISTIC, SQUARED_HINGE = 0, 1, 2, 3


@inline
def pair_target(loss, gap):  # type: ignore[no-untyped-def]
    """Return the target of a pair whose scores differ by `gap` > 0: its sign, unless the loss asks for more."""
    if loss == SQUARED:
        return gap
    if loss == LOGISTIC:
        return 0.5 * (1.0 + gap)
    return 1.0


@inline
def cost(loss, target, margin):  # type: ignore[no-untyped-def]
    """
    Return ℓ, −∂ℓ/∂margin and ∂²ℓ/∂margin²; not a number for a code without a branch.

    A caller that needs one of the three pays for one: the compiler drops the rest, as long as branches call
    nothing but `math.exp`, `math.log`, `math.sqrt`, `abs`, `min` and `max`.
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
        one = 1.0 + e
        # target - σ(margin), without the cancelling of 1 - σ; a sure margin costs e, not the rounding of log(1 + e)
        pull = (target - 1.0) + e / one if margin >= 0.0 else target - e / one
        soft = e if one == 1.0 else math.log(one) * (e / (one - 1.0))
        return soft + (1.0 - target if margin >= 0.0 else -target) * margin, pull, e / (one * one)
    if loss == SQUARED_HINGE:
        short = max(0.0, 1.0 - target * margin)
        return 0.5 * short * short, target * short, target * target if short > 0.0 else 0.0
    return math.nan, math.nan, math.nan


@inline
def pull(loss, target, margin):  # type: ignore[no-untyped-def]
    """Return −∂ℓ/∂margin."""
    return cost(loss, target, margin)[1]


@jit
def pair_targets(loss, gaps, out):  # type: ignore[no-untyped-def]
    """Write the target of each difference of scores."""
    for i in range(len(out)):
        out[i] = pair_target(loss, gaps[i])


@jit
def costs(loss, targets, margins, out):  # type: ignore[no-untyped-def]
    """Write value, pull and second derivative of each margin to the rows of `out`."""
    for i in range(out.shape[1]):
        out[0, i], out[1, i], out[2, i] = cost(loss, targets[i], margins[i])
