"""Metrics of binary relevance: AP, P@k, R@k, Success@k, RR, BEP, Bpref, RBP and AUC."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.core.lists.ranked import BLOCK, RELEVANT, first_relevant, irrelevant_above, precision_at_r, precision_sums
from corank.errors import InputError
from corank.metrics.gains import depth, discounted_gains, tie_code
from corank.metrics.judgements import Judgements, PerQuery, ratio
from corank.metrics.measure import measure
from corank.metrics.pairwise import pair_counts


@measure("AP", "MAP")
def average_precision(judged: Judgements, k: int | None = None, rel: float | None = None) -> PerQuery:
    """
    Average precision: (1/R) Σ over relevant rows at ranks i ≤ k of the precision at i; its mean is MAP.

    R is the number of relevant rows, or min(R, k) if the convention says so; NaN without a relevant row.
    """
    block = judged.convention.ap_ties == "block"
    if block and k is not None:
        raise InputError(
            f"AP@{k} is undefined in the convention {judged.convention.name!r}, which retrieves tied rows together; "
            "use AP, or another convention."
        )
    ties = BLOCK if block else tie_code(judged)
    out = judged.walk(precision_sums, _relevant(judged, rel), depth(judged, k), ties, columns=(2,))
    # min(R, k, n) = min(R, k), since a query of n rows has R <= n
    limit = k if k is not None and judged.convention.ap_cut == "possible" else np.inf
    return PerQuery(ratio(out[:, 0], np.minimum(out[:, 1], limit)))


@measure("P")
def precision(judged: Judgements, k: int, rel: float | None = None) -> PerQuery:
    """Precision: the share of relevant rows among the first k; NaN without a relevant row."""
    hits, possible = discounted_gains(judged, RELEVANT, np.ones(depth(judged, k)), _threshold(judged, rel))
    values = np.where(possible > 0, hits / k, np.nan)
    if judged.convention.short_precision == "zero":
        values[(judged.sizes < k) & (possible > 0)] = 0.0
    return PerQuery(values)


@measure("R")
def recall(judged: Judgements, k: int, rel: float | None = None) -> PerQuery:
    """Recall: the share of the relevant rows among the first k; NaN without a relevant row."""
    threshold = _threshold(judged, rel)
    hits, _ = discounted_gains(judged, RELEVANT, np.ones(depth(judged, k)), threshold)
    return PerQuery(ratio(hits, judged.only(judged.grades >= threshold).sizes.astype(np.float64)))


@measure("Success")
def success(judged: Judgements, k: int, rel: float | None = None) -> PerQuery:
    """
    Success: 1 if a relevant row is among the first k, else 0; NaN without a relevant row.

    With ties by expectation it is a probability.
    """
    weights = np.ones(depth(judged, k))
    return PerQuery(judged.walk(first_relevant, _relevant(judged, rel), weights, tie_code(judged)))


@measure("RR", "MRR")
def reciprocal_rank(judged: Judgements, k: int | None = None, rel: float | None = None) -> PerQuery:
    """Inverse rank of the first relevant row, 0 beyond rank k; NaN without one; its mean is MRR."""
    weights = 1.0 / np.arange(1.0, depth(judged, k) + 1)
    return PerQuery(judged.walk(first_relevant, _relevant(judged, rel), weights, tie_code(judged)))


@measure("BEP", "Rprec")
def break_even_point(judged: Judgements, rel: float | None = None) -> PerQuery:
    """Precision at rank R, where it equals recall, for R relevant rows (R-precision); NaN without one."""
    return PerQuery(judged.walk(precision_at_r, _relevant(judged, rel), tie_code(judged)))


@measure("Bpref")
def bpref(judged: Judgements, rel: float | None = None) -> PerQuery:
    """
    Binary preference: (1/R) Σ over relevant rows of 1 − min(irrelevant rows above it, R)/min(N, R).

    R and N are the numbers of rows judged relevant and irrelevant. Unjudged rows are skipped in every convention, and
    so are negative grades if the convention gives them gain 0. NaN without a relevant row.
    """
    skipped = judged.grades < 0.0 if judged.convention.negative == "zero" else np.zeros(len(judged.grades), bool)
    if judged.unjudged is not None:
        skipped |= judged.unjudged
    pooled = judged.only(~skipped) if skipped.any() else judged
    return PerQuery(pooled.walk(irrelevant_above, _relevant(pooled, rel), tie_code(pooled)))


@measure("RBP")
def rank_biased_precision(
    judged: Judgements, k: int | None = None, p: float = 0.8, rel: float | None = None
) -> PerQuery:
    """
    Rank-biased precision: (1 − p) Σ over relevant rows at ranks i ≤ k of p^(i−1); NaN without a relevant row.

    A reader continues from each row to the next with probability p.
    """
    if not 0.0 <= p < 1.0:
        raise InputError(f"RBP has p {p:g}; pass a number from 0 up to, but not including, 1.")
    weights = (1.0 - p) * np.power(float(p), np.arange(depth(judged, k), dtype=np.float64))
    earned, possible = discounted_gains(judged, RELEVANT, weights, _threshold(judged, rel))
    return PerQuery(np.where(possible > 0, earned, np.nan))


@measure("AUC", fills_empty=False)
def auc(judged: Judgements, rel: float | None = None) -> PerQuery:
    """
    Share of (relevant, irrelevant) pairs in the right order, a tie counting ½ in every convention.

    NaN if all rows are relevant or none is; weights are numbers of pairs.
    """
    loss, pairs, _ = pair_counts(judged, _relevant(judged, rel).astype(np.float64), 0.0)
    return PerQuery(ratio(pairs - loss, pairs), pairs)


def _threshold(judged: Judgements, rel: float | None) -> float:
    return judged.convention.relevant_from if rel is None else rel


def _relevant(judged: Judgements, rel: float | None) -> NDArray[np.bool_]:
    return np.asarray(judged.ranked.grades >= _threshold(judged, rel))
