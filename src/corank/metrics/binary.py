"""Metrics that know relevant and irrelevant rows only: AP, P@k, RR, BEP and AUC, per query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.core.ranked import first_relevant, precision_at_r, precision_sums
from corank.core.top_k import BLOCK, RELEVANT
from corank.errors import InputError
from corank.metrics.earnings import depth, earnings, tie_code
from corank.metrics.judgements import Judgements, PerQuery
from corank.metrics.pairwise import pair_counts


def ap_per_query(judged: Judgements, cut: int | None, rel: float | None) -> PerQuery:
    """
    AP@k = (1/R) Σ over relevant rows at ranks i ≤ k of the precision at i; NaN without a relevant row.

    R is the number of relevant rows, or min(R, k) where the convention says so.

    Parameters
    ----------
    judged : Judgements
        Grades and scores.
    cut : int or None
        k; the whole list if None.
    rel : float or None
        The lowest relevant grade; the convention's if None.

    Returns
    -------
    PerQuery
        Values in [0, 1].
    """
    block = judged.convention.ap_ties == "block"
    if block and cut is not None:
        raise InputError(
            f"AP@{cut} is not defined by the convention {judged.convention.name!r}, whose tied rows arrive at once; "
            "use AP, or another convention."
        )
    relevant, scores = _relevant(judged, judged.ranked.grades, rel), judged.ranked.scores
    ties, deepest = BLOCK if block else tie_code(judged), depth(judged, cut)
    out = np.empty((len(judged.ids), 2))
    judged.run(lambda first, last: precision_sums(relevant, scores, judged.starts, first, last, deepest, ties, out))
    divisors = out[:, 1]
    if cut is not None and judged.convention.ap_cut == "possible":
        # min(R, k, n) = min(R, k), since a query of n rows has R <= n
        divisors = np.minimum(divisors, cut)
    values = np.full(len(divisors), np.nan)
    np.divide(out[:, 0], divisors, out=values, where=divisors > 0)
    return PerQuery(values)


def precision_per_query(judged: Judgements, cut: int, rel: float | None) -> PerQuery:
    """
    P@k = (number of relevant rows among the first k)/k; NaN without a relevant row.

    Parameters
    ----------
    judged : Judgements
        Grades and scores.
    cut : int
        The depth k.
    rel : float or None
        The lowest relevant grade; the convention's if None.

    Returns
    -------
    PerQuery
        Values in [0, 1].
    """
    threshold = judged.convention.relevant_from if rel is None else rel
    hits, possible = earnings(judged, RELEVANT, np.ones(depth(judged, cut)), threshold)
    values = np.where(possible > 0, hits / cut, np.nan)
    if judged.convention.short_precision == "zero":
        values[(judged.sizes < cut) & (possible > 0)] = 0.0
    return PerQuery(values)


def rr_per_query(judged: Judgements, cut: int | None, rel: float | None) -> PerQuery:
    """
    RR@k = 1/(rank of the first relevant row), 0 where that is beyond k; NaN without a relevant row.

    Parameters
    ----------
    judged : Judgements
        Grades and scores.
    cut : int or None
        k; the whole list if None.
    rel : float or None
        The lowest relevant grade; the convention's if None.

    Returns
    -------
    PerQuery
        Values in [0, 1].
    """
    relevant, scores = _relevant(judged, judged.ranked.grades, rel), judged.ranked.scores
    deepest, ties, out = depth(judged, cut), tie_code(judged), np.empty(len(judged.ids))
    judged.run(lambda first, last: first_relevant(relevant, scores, judged.starts, first, last, deepest, ties, out))
    return PerQuery(out)


def bep_per_query(judged: Judgements, rel: float | None) -> PerQuery:
    """
    BEP, the break-even point: precision at rank R, where it equals recall, for R relevant rows (R-precision).

    Parameters
    ----------
    judged : Judgements
        Grades and scores.
    rel : float or None
        The lowest relevant grade; the convention's if None.

    Returns
    -------
    PerQuery
        Values in [0, 1], NaN without a relevant row.
    """
    relevant, scores = _relevant(judged, judged.ranked.grades, rel), judged.ranked.scores
    ties, out = tie_code(judged), np.empty(len(judged.ids))
    judged.run(lambda first, last: precision_at_r(relevant, scores, judged.starts, first, last, ties, out))
    return PerQuery(out)


def auc_per_query(judged: Judgements, rel: float | None) -> PerQuery:
    """
    AUC: the share of (relevant, irrelevant) pairs in the right order, a tie counting ½ in every convention.

    Parameters
    ----------
    judged : Judgements
        Grades and scores.
    rel : float or None
        The lowest relevant grade; the convention's if None.

    Returns
    -------
    PerQuery
        Values in [0, 1], NaN where all rows are relevant or none is; weights are numbers of pairs.
    """
    relevant = _relevant(judged, judged.ranked.grades, rel).astype(np.float64)
    loss, pairs, _ = pair_counts(judged, relevant, 0.0)
    values = np.full(len(loss), np.nan)
    np.divide(pairs - loss, pairs, out=values, where=pairs > 0)
    return PerQuery(values, pairs)


def _relevant(judged: Judgements, grades: NDArray[np.float64], rel: float | None) -> NDArray[np.uint8]:
    return (grades >= (judged.convention.relevant_from if rel is None else rel)).astype(np.uint8)
