"""Metrics of whole result lists; the rows of each query are in descending order of scores."""

from __future__ import annotations

import numpy as np

from corank.core.jit import inline, jit
from corank.core.lists.top_k import BLOCK, GIVEN


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


@jit
def ranked_gains(gains, scores, starts, first, last, discounts, ties, out):  # type: ignore[no-untyped-def]
    """Write the (expected) discounted gain of each query, and the ideal one, to `out[q]`."""
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        stop = retrieved_stop(scores, begin, end)
        earned = 0.0
        at = begin
        while at < stop and at - begin < len(discounts):
            after = tie_stop(scores, at, stop, ties)
            total = 0.0
            for i in range(at, after):
                total += gains[i]
            weight = 0.0
            for rank in range(at - begin, min(after - begin, len(discounts))):
                weight += discounts[rank]
            earned += total / (after - at) * weight
            at = after
        best = np.sort(gains[begin:end])
        ideal = 0.0
        for rank in range(min(end - begin, len(discounts))):
            ideal += discounts[rank] * best[end - begin - 1 - rank]
        out[q, 0] = earned
        out[q, 1] = ideal


@jit
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
        at = begin
        while at < end:
            after = tie_stop(scores, at, stop, ties) if at < stop else end
            mean = 0.0
            if at < stop:
                for i in range(at, after):
                    mean += gains[i]
                mean /= after - at
            for rank in range(at - begin, after - begin):
                earned += discounts[rank] * mean
                ideal += discounts[rank] * best[end - begin - 1 - rank]
                total += earned / ideal
            at = after
        out[q] = total / (end - begin)


@jit
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
        at = begin
        while at < stop and s < cut:
            after = tie_stop(scores, at, stop, ties)
            m = after - at
            r = 0
            for i in range(at, after):
                r += relevant[i]
            if ties == BLOCK:
                total += r * ((h + r) / (s + m))
            elif r > 0:
                step = (r - 1) / (m - 1) if m > 1 else 0.0
                for j in range(1, min(m, cut - s) + 1):
                    total += r / m * (h + 1 + (j - 1) * step) / (s + j)
            h += r
            s += m
            at = after
        out[q, 0] = total
        out[q, 1] = n_relevant


@jit
def first_relevant(relevant, scores, starts, first, last, weights, ties, out):  # type: ignore[no-untyped-def]
    """Write the (expected) weight of the rank of the first relevant row, 0 beyond them; NaN without such a row."""
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        stop = retrieved_stop(scores, begin, end)
        any_relevant = False
        for i in range(begin, end):
            any_relevant |= relevant[i] > 0
        value, s = 0.0, 0
        at = begin
        while at < stop:
            after = tie_stop(scores, at, stop, ties)
            m = after - at
            r = 0
            for i in range(at, after):
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
            at = after
        out[q] = value if any_relevant else np.nan


@jit
def precision_at_r(relevant, scores, starts, first, last, ties, out):  # type: ignore[no-untyped-def]
    """Write the (expected) share of relevant rows among the first R, R the number of relevant rows."""
    for q in range(first, last):
        begin, end = starts[q], starts[q + 1]
        stop = retrieved_stop(scores, begin, end)
        big_r = 0
        for i in range(begin, end):
            big_r += relevant[i]
        hits = 0.0
        at = begin
        while at < stop and at - begin < big_r:
            after = tie_stop(scores, at, stop, ties)
            r = 0
            for i in range(at, after):
                r += relevant[i]
            hits += r * (min(after - begin, big_r) - (at - begin)) / (after - at)
            at = after
        out[q] = hits / big_r if big_r > 0 else np.nan


@jit
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
        at = begin
        while at < stop:
            after = tie_stop(scores, at, stop, ties)
            r = 0
            for i in range(at, after):
                r += relevant[i]
            n = after - at - r
            if r > 0:
                above = 0.0
                for j in range(n + 1):
                    above += min(h + j, big_r)
                total += r * (1.0 - above / (n + 1) / limit)
            h += n
            at = after
        out[q] = total / big_r if big_r > 0 else np.nan
