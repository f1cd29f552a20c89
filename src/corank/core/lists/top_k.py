"""Discounted gains of the first k rows of every query, without sorting: one pass keeps the k best."""

from __future__ import annotations

import numpy as np

from corank.core.jit import inline, light

EXPONENTIAL, LINEAR, RELEVANT, BEST = 0, 1, 2, 3
EXPECTED, GIVEN, BLOCK = 0, 1, 2


@inline
def _gain(grade, code, threshold):  # type: ignore[no-untyped-def]
    if code == EXPONENTIAL:
        return np.exp2(grade) - 1.0
    if code == LINEAR:
        return grade
    return 1.0 if grade >= threshold else 0.0


@inline
def _keep(best, value):  # type: ignore[no-untyped-def]
    """Insert a value into a descending list and drop the last one, without branches, which would be unpredictable."""
    for j in range(len(best) - 1, 0, -1):
        best[j] = max(best[j], min(best[j - 1], value))
    best[0] = max(best[0], value)


@light
def top_gains(grades, scores, starts, first, last, discounts, gain, threshold, ties, out):  # type: ignore[no-untyped-def]
    """
    Write the discounted gain of each query's first k rows, and the ideal one, to `out[q]`.

    The gain of rank i ≤ k is weighted by `discounts[i - 1]`. With `ties` EXPECTED the rows of a tie share
    their mean gain, which is the expectation over random orders of the tie; with GIVEN the earlier row comes
    first. Rows with score -inf were not retrieved: they have no gain but belong to the ideal order. One pass
    keeps the k highest grades and scores, a second visits the rows at or above the k-th score: O(n) comparisons
    and, for rows in random order, O(k log(n/k)) insertions of O(k). `starts` is uint64; `gain` BEST counts rows
    of the query's highest grade, RELEVANT rows of grade ≥ `threshold`.
    """
    k = len(discounts)
    best = np.empty(k)
    top = np.empty(k)
    sums = np.empty(k)
    members = np.empty(k, np.int64)
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        best[:] = -np.inf
        top[:] = -np.inf
        for i in range(begin, end):
            if grades[i] > best[k - 1]:
                _keep(best, grades[i])
            if scores[i] > top[k - 1]:
                _keep(top, scores[i])
        limit = best[0] if gain == BEST else threshold
        ideal = 0.0
        for p in range(k):
            if best[p] > -np.inf:
                ideal += discounts[p] * _gain(best[p], gain, limit)
        earned = 0.0
        sums[:] = 0.0
        members[:] = 0
        for i in range(begin, end):
            score = scores[i]
            if score >= top[k - 1] and score > -np.inf:
                # p + 1 is the first rank of the row's tie
                p = 0
                while top[p] > score:
                    p += 1
                value = _gain(grades[i], gain, limit)
                if ties == EXPECTED:
                    sums[p] += value
                elif p + members[p] < k:
                    earned += value * discounts[p + members[p]]
                members[p] += 1
        if ties == EXPECTED:
            for p in range(k):
                weight = 0.0
                for j in range(p, min(p + members[p], k)):
                    weight += discounts[j]
                if members[p] > 0:
                    earned += sums[p] / members[p] * weight
        out[q, 0] = earned
        out[q, 1] = ideal
