"""
LambdaRank gradients weighted by whole lists: Δ_ij is the change of a query's metric if rows i and j are swapped.

Δ_ij weights the logistic gradient of each pair of rows of different grade (see `pair_lambdas`). Tied rows: nDCG uses
the expected discounts of the tie's ranks. The other metrics use the worst order of the tie, and its rows of equal grade
share their λ, so that λ does not depend on the order of rows.
"""

from __future__ import annotations

import numpy as np

from corank.core.jit import inline, jit, relaxed
from corank.core.lists.pair_lambdas import LOGISTIC, pair_gradient
from corank.core.rows.blocks import merge_sort

AP, RR, ERR = 0, 1, 2

# scores that differ by less than this share of the largest count as equal
_ROUNDING = 1e-12
_WIDE = 600.0

_reordering = relaxed("reassoc", "contract", "nsz")


@inline
def tie_after(s, at, n, tolerance):  # type: ignore[no-untyped-def]
    """Return the end of the tie that begins at row `at`; rows are in descending order of scores."""
    after = at + 1
    while after < n and s[after - 1] - s[after] <= tolerance:
        after += 1
    return after


@inline
def discount_between(discounts, low, high):  # type: ignore[no-untyped-def]
    """Return the sum of discounts of the ranks from `low` to `high`; the last discount holds for all further ranks."""
    total = 0.0
    i = low
    while i < high:
        place = min(int(i), len(discounts) - 1)
        stop = high if place == len(discounts) - 1 else min(high, place + 1.0)
        total += (stop - i) * discounts[place]
        i = stop
    return total


@inline
def discount_gap(discounts, low, places):  # type: ignore[no-untyped-def]
    """Return the expected |D(a) − D(b)| of two different ranks among `places` ranks from `low` on."""
    total, i, high = 0.0, low, low + places
    while i < high:
        place = min(int(i), len(discounts) - 1)
        stop = high if place == len(discounts) - 1 else min(high, place + 1.0)
        total += discounts[place] * (places * (stop - i) - (stop - low) ** 2 + (i - low) ** 2)
        i = stop
    # of m² choices of two ranks, m are the same rank twice
    return 2.0 * total / (places * (places - 1.0))


@_reordering
def _add_row(i, begin, end, gap, near, s, e, g, w, D, lambdas, curvatures):  # type: ignore[no-untyped-def]
    """Add the pairs of row i and the rows begin..end-1 to λ and curvatures of the latter; return those of row i."""
    s_i, e_i, g_i, w_i, D_i = s[i], e[i], g[i], w[i], D[i]
    lambda_i, curvature_i = 0.0, 0.0
    for j in range(begin, end):
        change = w_i * w[j] * (g_i - g[j]) * (gap + (D_i - D[j]))
        change *= 1.0 / (near + s_i - s[j]) if near > 0.0 else 1.0
        part = 1.0 / (e_i + e[j])
        gradient = change * part * (e[j] if change > 0.0 else e_i)
        curvature = abs(change) * part * part * e_i * e[j]
        lambda_i += gradient
        curvature_i += curvature
        lambdas[j] -= gradient
        curvatures[j] += curvature
    return lambda_i, curvature_i


@_reordering
def add_ndcg(factor, near, discounts, scores, labels, weights, starts, out, first, last):  # type: ignore[no-untyped-def]
    """
    Add λ of nDCG: Δ_ij = |g_i − g_j| |D_i − D_j|/(best DCG), g = 2^y − 2^min(0, lowest y).

    With `near` above 0, a pair is multiplied by 1/(near + |s_i − s_j|), which reduces the weight of pairs that are far
    apart and that no small step can swap. discounts[p] is the discount D of rank p + 1; the last one is that of all
    further ranks (0 beyond a cut). A row of weight w takes w ranks, but at least one.
    """
    longest = 0
    for q in range(first, last):
        longest = max(longest, starts[q + 1] - starts[q])
    s, e, g, w = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    D, gap = np.empty(longest), np.empty(longest)
    lambdas, curvatures = np.empty(longest), np.empty(longest)
    stops, order = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    spare_rows = np.empty(longest, dtype=np.int64)
    beyond = discounts[len(discounts) - 1]
    for q in range(first, last):
        begin, n = starts[q], starts[q + 1] - starts[q]
        if n < 2:
            continue
        grades = labels[begin : begin + n]
        low, high = min(0.0, grades[0]), grades[0]
        for i in range(1, n):
            low, high = min(low, grades[i]), max(high, grades[i])
        # ideal DCG, grade by grade; there are few grades
        index, ideal, grade = 0.0, 0.0, high
        while grade > low and (beyond > 0.0 or index < len(discounts)):
            places, below = 0.0, low
            for i in range(n):
                if grades[i] == grade:
                    places += max(weights[begin + i], 1.0)
                elif grades[i] < grade and grades[i] > below:
                    below = grades[i]
            ideal += (np.exp2(grade - high) - np.exp2(low - high)) * discount_between(discounts, index, index + places)
            index += places
            grade = below
        if ideal <= 0.0:
            continue
        for i in range(n):
            lambdas[i], order[i] = -scores[begin + i], i
        merge_sort(lambdas, order, curvatures, spare_rows, n)
        for i in range(n):
            row = begin + order[i]
            s[i], w[i] = scores[row], weights[row]
            g[i] = (np.exp2(labels[row] - high) - np.exp2(low - high)) / ideal
        is_wide = s[0] - s[n - 1] > _WIDE
        tolerance = _ROUNDING * max(abs(s[0]), abs(s[n - 1]))
        index, group, last_counted = 0.0, 0, 0
        while group < n:
            after = tie_after(s, group, n, tolerance)
            places = 0.0
            for i in range(group, after):
                places += max(w[i], 1.0)
            mean = discount_between(discounts, index, index + places) / places
            apart = discount_gap(discounts, index, places) if after > group + 1 else 0.0
            for i in range(group, after):
                D[i], gap[i], stops[i] = mean, apart, after
                e[i] = np.exp(max(s[i] - s[0], -_WIDE))
                lambdas[i], curvatures[i] = 0.0, 0.0
            # rows beyond the cut have the same discount, so only pairs with a row before it count
            if mean > beyond:
                last_counted = after
            index += places
            group = after
        for i in range(last_counted):
            stop = stops[i]
            lambda_i, curvature_i = 0.0, 0.0
            if is_wide:
                s_i, g_i, w_i, D_i = s[i], g[i], w[i], D[i]
                for j in range(i + 1, n):
                    change = w_i * w[j] * (g_i - g[j]) * (gap[i] if j < stop else D_i - D[j])
                    if near > 0.0:
                        change /= near + s_i - s[j]
                    lead = s_i - s[j] if change > 0.0 else s[j] - s_i
                    gradient, curvature = pair_gradient(LOGISTIC, 1.0, lead)
                    lambda_i += change * gradient
                    curvature_i += abs(change) * curvature
                    lambdas[j] -= change * gradient
                    curvatures[j] += abs(change) * curvature
            else:
                lambda_i, curvature_i = _add_row(i, i + 1, stop, gap[i], near, s, e, g, w, D, lambdas, curvatures)
                more, further = _add_row(i, stop, n, 0.0, near, s, e, g, w, D, lambdas, curvatures)
                lambda_i += more
                curvature_i += further
            lambdas[i] += lambda_i
            curvatures[i] += curvature_i
        for i in range(n):
            out[0, begin + order[i]] += factor * lambdas[i]
            out[1, begin + order[i]] += factor * curvatures[i]


@inline
def _sort_inside(order, y, group, after):  # type: ignore[no-untyped-def]
    """Sort the rows of a tie by ascending grade, the worst order."""
    for i in range(group + 1, after):
        j = i
        while j > group and y[order[j - 1]] > y[order[j]]:
            order[j - 1], order[j] = order[j], order[j - 1]
            j -= 1


@inline
def binary_change(code, a, b, up, hits, sums, firsts):  # type: ignore[no-untyped-def]
    """
    Return the change of AP or RR if rows a < b of a list, one of them relevant (a if `up`), are swapped.

    With h_p relevant rows up to p and S_p = Σ 1/p over them, the change of AP times the number of relevant rows is
    h_a/a − h_b/b + S_b − S_a if a is relevant, (h_a + 1)/a − h_b/b + S_{b−1} − S_a if b is. For RR only the
    first two relevant rows matter.
    """
    if code == AP:
        if up:
            change = hits[a + 1] / (a + 1) - hits[b + 1] / (b + 1) + sums[b + 1] - sums[a + 1]
        else:
            change = (hits[a + 1] + 1.0) / (a + 1) - hits[b + 1] / (b + 1) + sums[b] - sums[a + 1]
        return change / hits[len(hits) - 1]
    if up:
        return 1.0 / (a + 1) - 1.0 / (min(b, firsts[1]) + 1) if a == firsts[0] else 0.0
    return 1.0 / (a + 1) - 1.0 / (firsts[0] + 1) if a < firsts[0] else 0.0


@jit
def count_hits(relevant, hits, sums, firsts):  # type: ignore[no-untyped-def]
    """Write the number of relevant rows (1, others 0) up to each rank, Σ 1/rank over them, and the first two."""
    n = len(relevant)
    firsts[:] = n
    for p in range(n):
        hits[p + 1] = hits[p] + relevant[p]
        sums[p + 1] = sums[p] + relevant[p] / (p + 1)
        if relevant[p] > 0.0 and firsts[0] == n:
            firsts[0] = p
        elif relevant[p] > 0.0 and firsts[1] == n:
            firsts[1] = p


@jit
def add_swaps(code, parameter, factor, scores, labels, weights, starts, out, first, last):  # type: ignore[no-untyped-def]
    """
    Add λ of AP, RR or ERR; a query has the weight of its first row.

    `parameter` is the lowest relevant grade of AP and RR, or the highest grade, M of ERR. There, with R = (2^y −
    1)/2^M, swapping rows a < b changes ERR by Π_{l<a}(1 − R_l) (R_a − R_b) (1/a − T − Q/b), T the expected reciprocal
    rank at which users stop between them, and Q the probability that they do not stop there.
    """
    for q in range(first, last):
        begin, n = starts[q], starts[q + 1] - starts[q]
        if n < 2:
            continue
        grades, s, y, order = np.empty(n), np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
        lambdas, curvatures, spare_rows = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
        for i in range(n):
            grade = labels[begin + i]
            grades[i] = grade if code == ERR else 1.0 if grade >= parameter else 0.0
            lambdas[i], order[i] = -scores[begin + i], i
        merge_sort(lambdas, order, curvatures, spare_rows, n)
        for i in range(n):
            s[i] = scores[begin + order[i]]
        tolerance = _ROUNDING * max(abs(s[0]), abs(s[n - 1]))
        group = 0
        while group < n:
            after = tie_after(s, group, n, tolerance)
            _sort_inside(order, grades, group, after)
            group = after
        for i in range(n):
            s[i], y[i] = scores[begin + order[i]], grades[order[i]]
            lambdas[i], curvatures[i] = 0.0, 0.0
        chances, hits, sums, firsts = np.zeros(n), np.zeros(n + 1), np.zeros(n + 1), np.empty(2, dtype=np.int64)
        if code == ERR:
            for i in range(n):
                chances[i] = np.exp2(max(y[i], 0.0) - parameter) - np.exp2(-parameter)
        else:
            count_hits(y, hits, sums, firsts)
        passed = 1.0
        for a in range(n):
            T, Q = 0.0, 1.0
            for b in range(a + 1, n):
                up, change = y[a] > y[b], 0.0
                if code == ERR:
                    change = abs(passed * (chances[a] - chances[b]) * (1.0 / (a + 1) - T - Q / (b + 1)))
                    T += Q * chances[b] / (b + 1)
                    Q *= 1.0 - chances[b]
                elif y[a] != y[b]:
                    change = binary_change(code, a, b, up, hits, sums, firsts)
                if change > 0.0:
                    gradient, curvature = pair_gradient(LOGISTIC, 1.0, s[a] - s[b] if up else s[b] - s[a])
                    gradient *= change if up else -change
                    lambdas[a] += gradient
                    lambdas[b] -= gradient
                    curvatures[a] += change * curvature
                    curvatures[b] += change * curvature
            passed *= 1.0 - chances[a]
        weight = factor * weights[begin]
        group = 0
        while group < n:
            after = group + 1
            while after < n and y[after] == y[group] and abs(s[after - 1] - s[after]) <= tolerance:
                after += 1
            gradient, curvature = 0.0, 0.0
            for i in range(group, after):
                gradient += weight * lambdas[i] / (after - group)
                curvature += weight * curvatures[i] / (after - group)
            for i in range(group, after):
                out[0, begin + order[i]] += gradient
                out[1, begin + order[i]] += curvature
            group = after
