"""Metrics of graded relevance: DCG, nDCG, MeanNDCG, ERR and winner-take-all."""

from __future__ import annotations

import numpy as np

from corank.core.lists.ranked import BEST, EXPONENTIAL, LINEAR, cascade, mean_of_ndcgs
from corank.errors import InputError
from corank.metrics.gains import depth, discounted_gains, discounts_of, gradable, ranked_gain_values, tie_code
from corank.metrics.judgements import Judgements, PerQuery, ratio
from corank.metrics.measure import measure


@measure("nDCG")
def ndcg(judged: Judgements, k: int | None = None) -> PerQuery:
    """Normalised discounted cumulative gain: DCG@k / (DCG@k of the ideal order); NaN if no row has a gain."""
    earned, ideal = discounted_gains(judged, _gain_code(judged), discounts_of(judged, k))
    values = ratio(earned, ideal)
    if k is not None and judged.convention.short_ndcg == "zero":
        values[(judged.sizes < k) & (ideal > 0)] = 0.0
    return PerQuery(values)


@measure("MeanNDCG")
def mean_ndcg(judged: Judgements) -> PerQuery:
    """Mean over all depths, as LETOR 4.0 defines it: (1/n) Σ_{k=1..n} nDCG@k for a query of n rows."""
    gains = ranked_gain_values(judged, _gain_code(judged))
    return PerQuery(judged.walk(mean_of_ndcgs, gains, discounts_of(judged, None), tie_code(judged)))


@measure("DCG")
def dcg(judged: Judgements, k: int | None = None) -> PerQuery:
    """Discounted cumulative gain: Σ_{i ≤ k} gain(y of rank i) · discount(i); NaN if no row has a gain."""
    earned, ideal = discounted_gains(judged, _gain_code(judged), discounts_of(judged, k))
    return PerQuery(np.where(ideal > 0, earned, np.nan))


@measure("ERR")
def expected_reciprocal_rank(judged: Judgements, k: int | None = None, max_grade: float | None = None) -> PerQuery:
    """
    Expected reciprocal rank: Σ_{i ≤ k} (1/i) R_i Π_{j<i} (1 − R_j), R = (2^y − 1)/2^M.

    M is `max_grade`, or else the highest grade among all judged rows. Ties by expectation are exact, at
    O(m + r · min(r, 1/R)) for a tie of m rows, r of them with R > 0 and R on average; O(m · k) if it goes beyond k.
    """
    grades = gradable(judged, judged.ranked.grades, EXPONENTIAL)
    highest = float(grades.max(initial=0.0))
    if max_grade is not None and max_grade < highest:
        raise InputError(f"ERR has max_grade {max_grade:g}, but y has grade {highest:g}; raise max_grade.")
    stops = (np.exp2(grades) - 1.0) / np.exp2(highest if max_grade is None else max_grade)
    return PerQuery(judged.walk(cascade, stops, depth(judged, k), tie_code(judged)))


@measure("WTA", fills_empty=False)
def winner_take_all(judged: Judgements) -> PerQuery:
    """
    Winner-take-all: 1 if the first row has the highest grade of its query; the share of such rows among ties.

    A query with a single grade is NaN in every convention, since every order of it wins.
    """
    values, _ = discounted_gains(judged, BEST, np.ones(1))
    lowest, highest = judged.extremes
    values[judged.sizes == 0] = np.nan
    values[np.flatnonzero(judged.sizes)[lowest == highest]] = np.nan
    return PerQuery(values)


def _gain_code(judged: Judgements) -> int:
    return EXPONENTIAL if judged.convention.gain == "exp" else LINEAR
