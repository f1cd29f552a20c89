"""
The metrics: of graded relevance, of binary relevance, of pairs, and errors of scores.

Each is one function of `Judgements`, ``k`` if a depth is allowed, and its parameters; its name and parameters are those
of the strings that `parse_metric` accepts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.core.lists.ranked import (
    BEST,
    BLOCK,
    EXPECTED,
    EXPONENTIAL,
    GIVEN,
    LINEAR,
    RELEVANT,
    cascade,
    first_relevant,
    irrelevant_above,
    mean_of_ndcgs,
    precision_at_r,
    precision_sums,
    ranked_gains,
    top_gains,
)
from corank.core.pairs.inversions import pair_losses
from corank.errors import InputError
from corank.metrics.judgements import Judgements, PerQuery, measure, ratio

Floats = NDArray[np.float64]

# beyond this depth, selecting the k best rows is slower than sorting all
SELECT_AT_MOST = 64
# 2^y is finite below this grade
_GRADE_LIMIT = 1024.0


def discounted_gains(judged: Judgements, gain: int, discounts: Floats, threshold: float = 0.0) -> tuple[Floats, Floats]:
    """Sum discount(i) · gain(row of rank i) over the first ``len(discounts)`` ranks of each query."""
    ties = tie_code(judged)
    if len(discounts) <= SELECT_AT_MOST:
        grades = gradable(judged, judged.grades, gain) if gain in (EXPONENTIAL, LINEAR) else judged.grades
        starts, out = judged.starts.view(np.uint64), np.empty((len(judged.ids), 2))
        judged.run(
            lambda first, last: top_gains(
                grades, judged.scores, starts, first, last, discounts, gain, threshold, ties, out
            )
        )
    else:
        gains = ranked_gain_values(judged, gain, threshold)
        out = judged.walk(ranked_gains, gains, discounts, ties, columns=(2,))
    return out[:, 0], out[:, 1]


def ranked_gain_values(judged: Judgements, gain: int, threshold: float = 0.0) -> Floats:
    """Return the gains of the rows of ``judged.ranked``, in order of falling score."""
    if gain == RELEVANT:
        return (judged.ranked.grades >= threshold).astype(np.float64)
    grades = gradable(judged, judged.ranked.grades, gain)
    return grades if gain == LINEAR else np.exp2(grades) - 1.0


def gradable(judged: Judgements, grades: Floats, gain: int) -> Floats:
    """
    Return grades ≥ 0; raise `InputError` for negative grades, unless the convention allows them, and for overflow.
    """
    lowest, highest = judged.extremes
    ids = judged.ids[judged.sizes > 0]
    if gain == EXPONENTIAL and (highest >= _GRADE_LIMIT).any():
        i = int(np.argmax(highest))
        raise InputError(
            f"y has grade {highest[i]:g} in query {ids[i]}, whose gain 2^y - 1 is not finite; rescale the grades."
        )
    if not (lowest < 0).any():
        return grades
    if judged.convention.negative == "zero":
        return np.maximum(grades, 0.0)
    i = int(np.argmin(lowest))
    raise InputError(
        f"y has the negative grade {lowest[i]:g} in query {ids[i]}, but gains need grades >= 0; "
        "shift the grades, or use NaN for unjudged rows."
    )


def discounts_of(judged: Judgements, cut: int | None) -> Floats:
    """Return the weights of rank 1, 2, ... up to `cut` or the longest list, under the convention."""
    ranks = np.arange(1, depth(judged, cut) + 1, dtype=np.float64)
    if judged.convention.discount == "letor":
        return 1.0 / np.log2(np.maximum(ranks, 2.0))
    return 1.0 / np.log2(ranks + 1.0)


def depth(judged: Judgements, cut: int | None) -> int:
    """Return the last rank to visit: `cut`, or the length of the longest list if that is smaller; at least 1."""
    longest = max(int(judged.sizes.max(initial=1)), 1)
    return longest if cut is None else min(cut, longest)


def tie_code(judged: Judgements) -> int:
    """Return the tie code of `corank.core.lists.ranked`; rows are already sorted by docid if ties need it."""
    return EXPECTED if judged.convention.ties == "expectation" else GIVEN


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


@measure("disagreement", larger_is_better=False, fills_empty=False)
def disagreement_error(judged: Judgements) -> PerQuery:
    """Share of wrongly ordered pairs among those of different grade, a predicted tie counting ½; NaN without a pair."""
    loss, pairs, _ = pair_counts(judged, judged.ranked.grades, 0.0)
    return PerQuery(ratio(loss, pairs), pairs)


@measure("kpartite", "k-partite", larger_is_better=False, fills_empty=False)
def kpartite_error(judged: Judgements, alpha: float = 1.0) -> PerQuery:
    """
    Share of wrongly ordered pairs, each weighted by its difference of grades to the power alpha.

    R̂_α = (1/C) Σ_{l<m} Σ (m − l)^α [wrong + ½ tie], C the number of pairs with different grades l < m.

    O(n log n) for α = 0 (the disagreement error) and α = 1; O(n K + n log n) for K grades otherwise. With α > 0,
    exchanging grades 4 and 0 costs more than exchanging 1 and 0.
    """
    if alpha < 0.0:
        raise InputError(f"kpartite has alpha {alpha:g}; pass a number >= 0.")
    loss, pairs, _ = pair_counts(judged, judged.ranked.grades, alpha)
    return PerQuery(ratio(loss, pairs), pairs)


@measure("kendall", fills_empty=False)
def kendall_tau(judged: Judgements) -> PerQuery:
    """
    Kendall's τ-b: (right − wrong)/√(pairs that differ in grade · pairs that differ in score).

    NaN for a query with a single grade; 0 if all its scores are equal.
    """
    loss, pairs, ordered = pair_counts(judged, judged.ranked.grades, 0.0)
    return PerQuery(np.where((pairs > 0) & (ordered == 0), 0.0, tau_b(loss, pairs, ordered)))


@measure("MSE", larger_is_better=False, fills_empty=False)
def mean_squared_error(judged: Judgements) -> PerQuery:
    """Mean of (y − score)² over the rows of a query; the micro average is the error over all rows."""
    return _mean_of(judged, _errors(judged) ** 2)


@measure("MAE", larger_is_better=False, fills_empty=False)
def mean_absolute_error(judged: Judgements) -> PerQuery:
    """Mean of |y − score| over the rows of a query; the micro average is the error over all rows."""
    return _mean_of(judged, np.abs(_errors(judged)))


def tau_b(loss: Floats, pairs: Floats, ordered: Floats) -> Floats:
    """Return Kendall's τ-b from counts of pairs; NaN if all grades or all scores are equal."""
    # loss = wrong + tie/2 and right + wrong + tie = pairs, hence right − wrong = pairs − 2 loss
    values = np.full(len(pairs), np.nan)
    np.divide(pairs - 2.0 * loss, np.sqrt(pairs * ordered), out=values, where=(pairs > 0) & (ordered > 0))
    return values


def pair_counts(judged: Judgements, grades: Floats, power: float) -> tuple[Floats, Floats, Floats]:
    """Return the weighted loss, the pairs that differ in grade, and the pairs that differ in score, of each query."""
    out = judged.walk(pair_losses, grades, float(power), columns=(3,))
    return out[:, 0], out[:, 1], out[:, 2]


def _errors(judged: Judgements) -> Floats:
    if np.isneginf(judged.scores).any():
        raise InputError("MSE and MAE need a score for every row, but some rows were not retrieved; leave these out.")
    return judged.grades - judged.scores


def _mean_of(judged: Judgements, errors: Floats) -> PerQuery:
    has_rows = judged.sizes > 0
    values = np.full(len(judged.ids), np.nan)
    if has_rows.any():
        values[has_rows] = np.add.reduceat(errors, judged.starts[:-1][has_rows]) / judged.sizes[has_rows]
    return PerQuery(values, judged.sizes.astype(np.float64))
