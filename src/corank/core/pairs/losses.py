"""
Losses of a margin, chosen by an integer code, and their sums over all pairs of a query.

An integer code instead of a function keeps kernels in the disk cache.

The squared hinge takes O(n log n) for all pairs of a query. For a row i of a higher grade than j, m_ij = 1 − s_i + s_j,
and the pair is active if m_ij > 0. With rows in ascending order of s, the active losers of a winner have s_j > s_i − 1,
and the active winners of a loser have s_i < s_j + 1: both sets grow along a sweep, and a Fenwick tree over the grades
adds them up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import inline, jit, jit_when_large
from corank.core.rows.blocks import merge_sort

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


class GradedBlock(NamedTuple):
    """Rows sorted by query and ascending score."""

    starts: NDArray[np.int64]  # (n_queries + 1,): where each query begins
    grade: NDArray[np.int64]  # rank of a row's score among the distinct scores of its query, from 0
    y: NDArray[np.float64]
    weight: NDArray[np.float64]  # row weights


@inline
def _add(tree, at, value):  # type: ignore[no-untyped-def]
    """Add a value at position `at` (from 1)."""
    while at < len(tree):
        tree[at] += value
        at += at & -at


@inline
def _sum_up_to(tree, at):  # type: ignore[no-untyped-def]
    """Return the sum of the values at positions 1..at."""
    total = 0.0
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total


@jit_when_large
def squared_hinge_loss(block, s, first, last, order, gradient, degree):  # type: ignore[no-untyped-def]
    """
    Return Σ ½ w_i w_j m_ij² over active pairs of queries first..last-1, and write its derivatives.

    Outputs: `order`, the rows of each query in ascending order of s; `gradient[i]`, the derivative by s_i; `degree[i]`,
    the weight w_i Σ w_j of i's active partners. Since Σ gradient_i s_i = Σ m² − Σ m over active pairs, the
    loss needs no sums of squares.
    """
    loss, longest = 0.0, 0
    for q in range(first, last):
        longest = max(longest, block.starts[q + 1] - block.starts[q])
    values, spare_values, spare_rows = np.empty(longest), np.empty(longest), np.empty(longest, dtype=np.int64)
    for q in range(first, last):
        begin, end = block.starts[q], block.starts[q + 1]
        n = end - begin
        if n == 0:
            continue
        n_grades = block.grade[end - 1] + 1
        for k in range(n):
            values[k] = s[begin + k]
            order[begin + k] = begin + k
        merge_sort(values, order[begin:end], spare_values, spare_rows, n)
        middle = s[order[begin + n // 2]]
        counts, sums = np.zeros(n_grades + 1), np.zeros(n_grades + 1)
        entered = n - 1
        for k in range(n - 1, -1, -1):
            i = order[begin + k]
            # relative to the middle of the query, sums stay small and cancel little
            u = s[i] - middle
            while entered >= 0 and s[i] - s[order[begin + entered]] < 1.0:
                j = order[begin + entered]
                _add(counts, block.grade[j] + 1, block.weight[j])
                _add(sums, block.grade[j] + 1, block.weight[j] * (s[j] - middle))
                entered -= 1
            count = _sum_up_to(counts, block.grade[i])
            m = count * (1.0 - u) + _sum_up_to(sums, block.grade[i])
            gradient[i] = -block.weight[i] * m
            degree[i] = block.weight[i] * count
            loss += 0.5 * block.weight[i] * m
        counts[:] = 0.0
        sums[:] = 0.0
        entered = 0
        for k in range(n):
            i = order[begin + k]
            u = s[i] - middle
            while entered < n and s[order[begin + entered]] - s[i] < 1.0:
                j = order[begin + entered]
                _add(counts, n_grades - block.grade[j], block.weight[j])
                _add(sums, n_grades - block.grade[j], block.weight[j] * (s[j] - middle))
                entered += 1
            count = _sum_up_to(counts, n_grades - 1 - block.grade[i])
            m = count * (1.0 + u) - _sum_up_to(sums, n_grades - 1 - block.grade[i])
            gradient[i] += block.weight[i] * m
            degree[i] += block.weight[i] * count
            loss += 0.5 * gradient[i] * u
    return loss


@jit_when_large
def squared_hinge_hessian_product(block, s, z, first, last, order, degree, out):  # type: ignore[no-untyped-def]
    """
    Write the Hessian of the loss times z: w_i Σ_j w_j (z_i − z_j) over the active partners j of i.

    `order` and `degree` are outputs of `squared_hinge_loss` for the scores s.
    """
    for q in range(first, last):
        begin, end = block.starts[q], block.starts[q + 1]
        n = end - begin
        if n == 0:
            continue
        n_grades = block.grade[end - 1] + 1
        middle = z[order[begin + n // 2]]
        below, above = np.zeros(n_grades + 1), np.zeros(n_grades + 1)
        entered = n - 1
        for k in range(n - 1, -1, -1):
            i = order[begin + k]
            while entered >= 0 and s[i] - s[order[begin + entered]] < 1.0:
                j = order[begin + entered]
                _add(below, block.grade[j] + 1, block.weight[j] * (z[j] - middle))
                entered -= 1
            out[i] = degree[i] * (z[i] - middle) - block.weight[i] * _sum_up_to(below, block.grade[i])
        entered = 0
        for k in range(n):
            i = order[begin + k]
            while entered < n and s[order[begin + entered]] - s[i] < 1.0:
                j = order[begin + entered]
                _add(above, n_grades - block.grade[j], block.weight[j] * (z[j] - middle))
                entered += 1
            out[i] -= block.weight[i] * _sum_up_to(above, n_grades - 1 - block.grade[i])
