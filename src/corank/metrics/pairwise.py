"""Pairwise metrics (disagreement, k-partite error, Kendall's τ-b) and regression errors (MSE, MAE)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.core.pairs.inversions import pair_losses
from corank.errors import InputError
from corank.metrics.judgements import Judgements, PerQuery, ratio
from corank.metrics.measure import measure


@measure("disagreement", larger_is_better=False, fills_empty=False)
def disagreement_error(judged: Judgements) -> PerQuery:
    """Share of wrongly ordered pairs among those of different grade, a predicted tie counting ½; NaN without a pair."""
    loss, pairs, _ = pair_counts(judged, judged.ranked.grades, 0.0)
    return PerQuery(ratio(loss, pairs), pairs)


@measure("kpartite", "k-partite", larger_is_better=False, fills_empty=False)
def kpartite_error(judged: Judgements, alpha: float = 1.0) -> PerQuery:
    """
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


def tau_b(loss: NDArray[np.float64], pairs: NDArray[np.float64], ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Kendall's τ-b from counts of pairs; NaN if all grades or all scores are equal."""
    # loss = wrong + tie/2 and right + wrong + tie = pairs, hence right − wrong = pairs − 2 loss
    values = np.full(len(pairs), np.nan)
    np.divide(pairs - 2.0 * loss, np.sqrt(pairs * ordered), out=values, where=(pairs > 0) & (ordered > 0))
    return values


def pair_counts(
    judged: Judgements, grades: NDArray[np.float64], power: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the weighted loss, the pairs that differ in grade, and the pairs that differ in score, of each query."""
    out = judged.walk(pair_losses, grades, float(power), columns=(3,))
    return out[:, 0], out[:, 1], out[:, 2]


def _errors(judged: Judgements) -> NDArray[np.float64]:
    if np.isneginf(judged.scores).any():
        raise InputError("MSE and MAE need a score for every row, but some rows were not retrieved; leave these out.")
    return judged.grades - judged.scores


def _mean_of(judged: Judgements, errors: NDArray[np.float64]) -> PerQuery:
    has_rows = judged.sizes > 0
    values = np.full(len(judged.ids), np.nan)
    if has_rows.any():
        values[has_rows] = np.add.reduceat(errors, judged.starts[:-1][has_rows]) / judged.sizes[has_rows]
    return PerQuery(values, judged.sizes.astype(np.float64))
