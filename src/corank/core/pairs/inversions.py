"""Count the pairs that a ranking orders wrongly, in O(n log n)."""

from __future__ import annotations

import numpy as np

from corank.core.jit import inline, jit_when_large
from corank.core.rows.blocks import merge_sort


@inline
def _add_row(counts, sums, levels, code, power):  # type: ignore[no-untyped-def]
    """Add a row of grade `levels[code]` to the two Fenwick trees, or to plain counts for other powers."""
    i = code + 1
    if power > 1.0 or 0.0 < power < 1.0:
        counts[i] += 1
        return
    while i < len(counts):
        counts[i] += 1
        sums[i] += levels[code]
        i += i & -i


@inline
def _sum_lower(counts, sums, levels, code, power):  # type: ignore[no-untyped-def]
    """Sum (levels[code] − level)^power over the added rows of a lower level."""
    total = 0.0
    if power > 1.0 or 0.0 < power < 1.0:
        for c in range(code):
            if counts[c + 1] > 0:
                total += counts[c + 1] * (levels[code] - levels[c]) ** power
        return total
    i = code
    count = 0
    while i > 0:
        count += counts[i]
        total += sums[i]
        i -= i & -i
    return float(count) if power == 0.0 else levels[code] * count - total


@jit_when_large
def pair_losses(grades, scores, starts, first, last, power, out):  # type: ignore[no-untyped-def]
    """
    Write to `out[q]` the loss of query q, its pairs of different grade, and its pairs of different score.

    The loss is Σ over pairs with grades l < m of (m − l)^power · [wrong + ½ tie], power ≥ 0. Rows are in
    descending order of score. A row forms a wrong pair with every row of a lower grade and a higher score; counting
    them before and after the ties of the row are added, and halving, counts each tie ½. Costs O(n log n) for power 0
    and 1 (Fenwick trees of counts and sums over the grades), O(n K + n log n) for K distinct grades otherwise.
    """
    longest = 0
    for q in range(first, last):
        longest = max(longest, starts[q + 1] - starts[q])
    values, spare_values = np.empty(longest), np.empty(longest)
    by_grade, spare_rows = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        n = end - begin
        for i in range(n):
            values[i], by_grade[i] = grades[begin + i], i
        merge_sort(values, by_grade, spare_values, spare_rows, n)
        codes = np.empty(n, np.int64)
        # levels are grades relative to the lowest, so that sums stay small
        levels = np.empty(n)
        n_levels, run, same_grade = 0, 0, 0
        for i in range(n):
            grade = grades[begin + by_grade[i]]
            if i == 0 or grade != grades[begin + by_grade[i - 1]]:
                levels[n_levels] = grade - grades[begin + by_grade[0]]
                n_levels += 1
                run = 0
            same_grade += run
            run += 1
            codes[by_grade[i]] = n_levels - 1
        counts = np.zeros(n_levels + 1, np.int64)
        sums = np.zeros(n_levels + 1)
        twice = 0.0
        index, same_score = 0, 0
        while index < n:
            after = index + 1
            while after < n and scores[begin + after] == scores[begin + index]:
                same_score += after - index
                after += 1
            for i in range(index, after):
                twice += _sum_lower(counts, sums, levels, codes[i], power)
            for i in range(index, after):
                _add_row(counts, sums, levels, codes[i], power)
            for i in range(index, after):
                twice += _sum_lower(counts, sums, levels, codes[i], power)
            index = after
        pairs = n * (n - 1) // 2
        out[q, 0] = 0.5 * twice
        out[q, 1] = pairs - same_grade
        out[q, 2] = pairs - same_score
