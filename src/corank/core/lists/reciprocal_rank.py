"""Expected reciprocal rank at which a user stops (ERR), in expectation over the order of ties."""

from __future__ import annotations

import numpy as np

from corank.core.jit import inline, jit
from corank.core.lists.ranked import retrieved_stop, tie_stop

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
        at = begin
        while at < stop and s < cut:
            after = tie_stop(scores, at, stop, ties)
            m = after - at
            r, total, through = 0, 0.0, 1.0
            for i in range(at, after):
                r += stops[i] > 0.0
                total += stops[i]
                through *= 1.0 - stops[i]
            if m == 1:
                value += reach * total / (s + 1)
            elif m <= SMALL_TIE or s + m > cut:
                deep = min(m, cut - s)
                _pass_probabilities(stops, at, after, deep, True, p)
                for j in range(1, deep + 1):
                    value += reach * (p[j - 1] - p[j]) / (s + j)
            elif r > 0:
                mean = total / r
                # (1 - mean)^deep < 1e-17 mean: the remainder is below the rounding error of the first term
                deep = int(min(1.0 * r, 1.0 + (40.0 - np.log(mean)) / -np.log1p(-mean)))
                _pass_probabilities(stops, at, after, deep, False, p)
                _mean_inverse_ranks(m, r, s, deep, weights)
                for j in range(1, deep + 1):
                    value += reach * (p[j - 1] - p[j]) * weights[j]
            reach *= through
            s += m
            at = after
        out[q] = value if highest > 0.0 else np.nan
