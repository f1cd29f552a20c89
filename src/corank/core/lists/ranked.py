"""Metrics of result lists and of their first k rows; the rows of each query are in descending order of scores."""

from __future__ import annotations

import numpy as np

from corank.core.jit import inline, jit, jit_when_large

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


@jit_when_large
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


@inline
def tie_stop(scores, at, stop, ties):  # type: ignore[no-untyped-def]
    """Return the end of the tie that begins at row `at`; with the given order, every row is its own tie."""
    after = at + 1
    while ties != GIVEN and after < stop and scores[after] == scores[at]:
        after += 1
    return after


@inline
def retrieved_stop(scores, begin, end):  # type: ignore[no-untyped-def]
    """Return where the rows with score -inf begin: they were not retrieved."""
    stop = end
    while stop > begin and scores[stop - 1] == -np.inf:
        stop -= 1
    return stop


@jit_when_large
def ranked_gains(gains, scores, starts, first, last, discounts, ties, out):  # type: ignore[no-untyped-def]
    """Write the (expected) discounted gain of each query, and the ideal one, to `out[q]`."""
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        stop = retrieved_stop(scores, begin, end)
        earned = 0.0
        index = begin
        while index < stop and index - begin < len(discounts):
            after = tie_stop(scores, index, stop, ties)
            total = 0.0
            for i in range(index, after):
                total += gains[i]
            weight = 0.0
            for rank in range(index - begin, min(after - begin, len(discounts))):
                weight += discounts[rank]
            earned += total / (after - index) * weight
            index = after
        best = np.sort(gains[begin:end])
        ideal = 0.0
        for rank in range(min(end - begin, len(discounts))):
            ideal += discounts[rank] * best[end - begin - 1 - rank]
        out[q, 0] = earned
        out[q, 1] = ideal


@jit_when_large
def mean_of_ndcgs(gains, scores, starts, first, last, discounts, ties, out):  # type: ignore[no-untyped-def]
    """Write the mean over k = 1..n of each query's (expected) NDCG@k to `out[q]`; NaN without any gain."""
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        stop = retrieved_stop(scores, begin, end)
        best = np.sort(gains[begin:end])
        out[q] = np.nan
        if end == begin or best[-1] <= 0.0:
            continue
        earned, ideal, total = 0.0, 0.0, 0.0
        index = begin
        while index < end:
            after = tie_stop(scores, index, stop, ties) if index < stop else end
            mean = 0.0
            if index < stop:
                for i in range(index, after):
                    mean += gains[i]
                mean /= after - index
            for rank in range(index - begin, after - begin):
                earned += discounts[rank] * mean
                ideal += discounts[rank] * best[end - begin - 1 - rank]
                total += earned / ideal
            index = after
        out[q] = total / (end - begin)


@jit_when_large
def precision_sums(relevant, scores, starts, first, last, cut, ties, out):  # type: ignore[no-untyped-def]
    """
    Write Σ over relevant rows at rank i ≤ `cut` of the precision at i, and the number of relevant rows.

    In a tie of m rows, r of them relevant, after h hits in s rows, a random order puts a relevant row at
    rank s + j with probability r/m, and then (j − 1)(r − 1)/(m − 1) others of the tie are expected before
    it. With `ties` BLOCK the m rows arrive at once: each of the r counts the precision (h + r)/(s + m).
    """
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        stop = retrieved_stop(scores, begin, end)
        n_relevant = 0
        for i in range(begin, end):
            n_relevant += relevant[i]
        total, h, s = 0.0, 0, 0
        index = begin
        while index < stop and s < cut:
            after = tie_stop(scores, index, stop, ties)
            m = after - index
            r = 0
            for i in range(index, after):
                r += relevant[i]
            if ties == BLOCK:
                total += r * ((h + r) / (s + m))
            elif r > 0:
                step = (r - 1) / (m - 1) if m > 1 else 0.0
                for j in range(1, min(m, cut - s) + 1):
                    total += r / m * (h + 1 + (j - 1) * step) / (s + j)
            h += r
            s += m
            index = after
        out[q, 0] = total
        out[q, 1] = n_relevant


@jit_when_large
def first_relevant(relevant, scores, starts, first, last, weights, ties, out):  # type: ignore[no-untyped-def]
    """Write the (expected) weight of the rank of the first relevant row, 0 beyond them; NaN without such a row."""
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        stop = retrieved_stop(scores, begin, end)
        any_relevant = False
        for i in range(begin, end):
            any_relevant |= relevant[i] > 0
        value, s = 0.0, 0
        index = begin
        while index < stop:
            after = tie_stop(scores, index, stop, ties)
            m = after - index
            r = 0
            for i in range(index, after):
                r += relevant[i]
            if r > 0:
                # none of the first j - 1 rows of the tie is relevant, then row j is: r/(m - j + 1)
                none_yet = 1.0
                for j in range(1, min(m - r + 1, len(weights) - s) + 1):
                    hit = r / (m - j + 1)
                    value += none_yet * hit * weights[s + j - 1]
                    none_yet *= 1.0 - hit
                break
            s += m
            index = after
        out[q] = value if any_relevant else np.nan


@jit_when_large
def precision_at_r(relevant, scores, starts, first, last, ties, out):  # type: ignore[no-untyped-def]
    """Write the (expected) share of relevant rows among the first R, R the number of relevant rows."""
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        stop = retrieved_stop(scores, begin, end)
        big_r = 0
        for i in range(begin, end):
            big_r += relevant[i]
        hits = 0.0
        index = begin
        while index < stop and index - begin < big_r:
            after = tie_stop(scores, index, stop, ties)
            r = 0
            for i in range(index, after):
                r += relevant[i]
            hits += r * (min(after - begin, big_r) - (index - begin)) / (after - index)
            index = after
        out[q] = hits / big_r if big_r > 0 else np.nan


@jit_when_large
def irrelevant_above(relevant, scores, starts, first, last, ties, out):  # type: ignore[no-untyped-def]
    """
    Write (1/R) Σ over relevant rows of 1 − min(irrelevant rows above it, R)/min(N, R), the binary preference.

    R and N count the relevant and irrelevant rows. In a tie with n irrelevant rows, after h of them, a random order
    puts h, h + 1, ... or h + n above a relevant row, each with probability 1/(n + 1).
    """
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        stop = retrieved_stop(scores, begin, end)
        big_r = 0
        for i in range(begin, end):
            big_r += relevant[i]
        limit = max(min(end - begin - big_r, big_r), 1)
        total, h = 0.0, 0
        index = begin
        while index < stop:
            after = tie_stop(scores, index, stop, ties)
            r = 0
            for i in range(index, after):
                r += relevant[i]
            n = after - index - r
            if r > 0:
                above = 0.0
                for j in range(n + 1):
                    above += min(h + j, big_r)
                total += r * (1.0 - above / (n + 1) / limit)
            h += n
            index = after
        out[q] = total / big_r if big_r > 0 else np.nan


# up to this many rows the plain sum over a tie's ranks is faster
SMALL_TIE = 64


@inline
def _mean_inverse_ranks(m, r, s, deep, out):  # type: ignore[no-untyped-def]
    """
    Write the mean of 1/(s + rank) of the i-th of r marked rows among m in random order to `out[i]`, i = 1..deep ≤ r.

    P_i(rank) = C(rank − 1, i − 1) C(m − rank, r − i)/C(m, r), whence i ((m − r + i + 1 + s) out[i + 1] − 1) =
    (r − i) (1 − (i + s) out[i]): O(deep) steps, outward from the i at which neither direction enlarges errors; the mean
    at that i is a sum outward from the likeliest rank.
    """
    n_unmarked = m - r
    start = 1
    while start < deep and (r - start) * (start + s) > start * (n_unmarked + start + 1 + s):
        start += 1
    likeliest = min(max(start * (m + 1) // (r + 1), start), n_unmarked + start)
    total, mean = 1.0, 1.0 / (s + likeliest)
    probability, rank = 1.0, likeliest
    while rank < n_unmarked + start and probability > 1e-18 * total:
        probability *= rank / (rank - start + 1) * (n_unmarked - rank + start) / (m - rank)
        rank += 1
        total += probability
        mean += probability / (s + rank)
    probability, rank = 1.0, likeliest
    while rank > start and probability > 1e-18 * total:
        rank -= 1
        probability *= (rank - start + 1) / rank * (m - rank) / (n_unmarked - rank + start)
        total += probability
        mean += probability / (s + rank)
    out[start] = mean / total
    for i in range(start, deep):
        out[i + 1] = (1.0 + (r - i) / i * (1.0 - (i + s) * out[i])) / (n_unmarked + i + 1 + s)
    for i in range(start - 1, 0, -1):
        out[i] = (1.0 - i / (r - i) * ((n_unmarked + i + 1 + s) * out[i + 1] - 1.0)) / (i + s)


@inline
def _pass_probabilities(stops, at, after, deep, every, p):  # type: ignore[no-untyped-def]
    """
    Write the probability of passing j random rows of `stops[at:after]` to `p[j]`, j = 0..deep.

    Rows with a stopping probability of zero are included if `every`. p_j = e_j(u)/C(t, j) of t rows, e_j the elementary
    symmetric polynomial of u = 1 − stops; adding row t to the means is p_j ← (1 − j/t) p_j + (j/t) u_t p_{j−1}, without
    cancellation: O(t · deep).
    """
    p[: deep + 1] = 0.0
    p[0] = 1.0
    t = 0
    for i in range(at, after):
        if every or stops[i] > 0.0:
            t += 1
            u, share = 1.0 - stops[i], 1.0 / t
            for j in range(min(t, deep), 0, -1):
                p[j] = (1.0 - j * share) * p[j] + j * share * u * p[j - 1]


@jit
def cascade(stops, scores, starts, first, last, cut, ties, out):  # type: ignore[no-untyped-def]
    """
    Write Σ_{i ≤ cut} (1/i) P(the user stops at rank i), with the stopping probability `stops[row]` of a row.

    In a tie of m rows the user passes j random ones with probability p_j and stops at the j-th with p_{j−1} − p_j. In a
    large tie that the cut does not divide, only the r rows that may stop the user are visited, and the j-th of them
    has a mean inverse rank. By Maclaurin's inequality p_j ≤ (1 − R)^j, R their mean of `stops`, so that O(1/R) of them
    suffice: O(m + r · min(r, 1/R)), and O(m · cut) for the one tie that the cut divides.
    """
    longest = 0
    for q in range(first, last):
        longest = max(longest, starts[q + 1] - starts[q])
    p, weights = np.empty(min(longest, cut) + 1), np.empty(min(longest, cut) + 1)
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        stop = retrieved_stop(scores, begin, end)
        value, reach, s = 0.0, 1.0, 0
        highest = 0.0
        for i in range(begin, end):
            highest = max(highest, stops[i])
        index = begin
        while index < stop and s < cut:
            after = tie_stop(scores, index, stop, ties)
            m = after - index
            r, total, through = 0, 0.0, 1.0
            for i in range(index, after):
                r += stops[i] > 0.0
                total += stops[i]
                through *= 1.0 - stops[i]
            if m == 1:
                value += reach * total / (s + 1)
            elif m <= SMALL_TIE or s + m > cut:
                deep = min(m, cut - s)
                _pass_probabilities(stops, index, after, deep, True, p)
                for j in range(1, deep + 1):
                    value += reach * (p[j - 1] - p[j]) / (s + j)
            elif r > 0:
                mean = total / r
                # (1 - mean)^deep < 1e-17 mean: the remainder is below the rounding error of the first term
                deep = int(min(1.0 * r, 1.0 + (40.0 - np.log(mean)) / -np.log1p(-mean)))
                _pass_probabilities(stops, index, after, deep, False, p)
                _mean_inverse_ranks(m, r, s, deep, weights)
                for j in range(1, deep + 1):
                    value += reach * (p[j - 1] - p[j]) * weights[j]
            reach *= through
            s += m
            index = after
        out[q] = value if highest > 0.0 else np.nan
