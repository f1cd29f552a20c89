"""Metrics that read grades: (n)DCG, MeanNDCG, ERR and winner-take-all, per query."""

from __future__ import annotations

import numpy as np

from corank.core.ranked import cascade, mean_ndcg
from corank.core.top_k import BEST, EXPONENTIAL, LINEAR
from corank.errors import InputError
from corank.metrics.earnings import depth, discounts_of, earnings, gradable, ranked_gain_values, tie_code
from corank.metrics.judgements import Judgements, PerQuery


def ndcg_per_query(judged: Judgements, cut: int | None) -> PerQuery:
    """
    nDCG@k = DCG@k / (DCG@k of the best order), NaN where no row has a gain.

    Parameters
    ----------
    judged : Judgements
        Grades and scores.
    cut : int or None
        k; the whole list if None.

    Returns
    -------
    PerQuery
        Values in [0, 1].
    """
    earned, ideal = earnings(judged, _gain_code(judged), discounts_of(judged, cut))
    values = np.full(len(ideal), np.nan)
    np.divide(earned, ideal, out=values, where=ideal > 0)
    if cut is not None and judged.convention.short_ndcg == "zero":
        values[(judged.sizes < cut) & (ideal > 0)] = 0.0
    return PerQuery(values)


def dcg_per_query(judged: Judgements, cut: int | None) -> PerQuery:
    """
    DCG@k = Σ_{i ≤ k} gain(y of rank i) · discount(i), NaN where no row has a gain.

    Parameters
    ----------
    judged : Judgements
        Grades and scores.
    cut : int or None
        k; the whole list if None.

    Returns
    -------
    PerQuery
        Values ≥ 0.
    """
    earned, ideal = earnings(judged, _gain_code(judged), discounts_of(judged, cut))
    return PerQuery(np.where(ideal > 0, earned, np.nan))


def mean_ndcg_per_query(judged: Judgements) -> PerQuery:
    """
    MeanNDCG = (1/n) Σ_{k=1..n} nDCG@k for a query of n rows, as LETOR 4.0 defines it.

    Parameters
    ----------
    judged : Judgements
        Grades and scores.

    Returns
    -------
    PerQuery
        Values in [0, 1].
    """
    gains, scores = ranked_gain_values(judged, _gain_code(judged)), judged.ranked.scores
    discounts, ties = discounts_of(judged, None), tie_code(judged)
    out = np.empty(len(judged.ids))
    judged.run(lambda first, last: mean_ndcg(gains, scores, judged.starts, first, last, discounts, ties, out))
    return PerQuery(out)


def err_per_query(judged: Judgements, cut: int | None, max_grade: float | None) -> PerQuery:
    """
    ERR@k = Σ_{i ≤ k} (1/i) R_i Π_{j<i} (1 − R_j), R = (2^y − 1)/2^M: the expected reciprocal rank.

    M is `max_grade`, or else the highest grade among all judged rows. Ties by expectation are exact, at
    O(m · min(m, k)) for a tie of m rows.

    Parameters
    ----------
    judged : Judgements
        Grades and scores.
    cut : int or None
        k; the whole list if None.
    max_grade : float or None
        The highest grade of the scale.

    Returns
    -------
    PerQuery
        Values in [0, 1).
    """
    grades, scores = gradable(judged, judged.ranked.grades, EXPONENTIAL), judged.ranked.scores
    highest = float(grades.max(initial=0.0))
    if max_grade is not None and max_grade < highest:
        raise InputError(f"ERR has max_grade {max_grade:g}, but y holds grade {highest:g}; raise max_grade.")
    stops = (np.exp2(grades) - 1.0) / np.exp2(highest if max_grade is None else max_grade)
    deepest, ties, out = depth(judged, cut), tie_code(judged), np.empty(len(judged.ids))
    judged.run(lambda first, last: cascade(stops, scores, judged.starts, first, last, deepest, ties, out))
    return PerQuery(out)


def wta_per_query(judged: Judgements) -> PerQuery:
    """
    WTA: whether the first row has the query's highest grade, in ties the share of such rows.

    A query of one grade says nothing and is NaN.

    Parameters
    ----------
    judged : Judgements
        Grades and scores.

    Returns
    -------
    PerQuery
        Values in [0, 1].
    """
    values, _ = earnings(judged, BEST, np.ones(1))
    lowest, highest = judged.extremes
    values[judged.sizes == 0] = np.nan
    values[np.flatnonzero(judged.sizes)[lowest == highest]] = np.nan
    return PerQuery(values)


def _gain_code(judged: Judgements) -> int:
    return EXPONENTIAL if judged.convention.gain == "exp" else LINEAR
