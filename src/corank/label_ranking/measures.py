"""
How good predicted labels are, one number an example: orders with ties and top lists, sets, and utilities of labels.

Orders are compared as tables of positions, 1 for the best, in which equal positions are ties: Fagin, Kumar, Mahdian,
Sivakumar and Vee, Comparing and aggregating rankings with ties, 2004. A top list over known labels is such an order,
whose other labels share the last bucket (`top_positions`). Means, and tests that compare two models example by example,
are the caller's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.labels import orders as label_orders
from corank.core.labels.orders import compare_orders
from corank.errors import InputError
from corank.label_ranking.tables import as_indicator, as_positions

Floats = NDArray[np.float64]


def kendall_distance(true: Any, predicted: Any) -> Floats:
    """
    Share of pairs of labels that two orders do not order alike: Fagin's K^(½) over d(d − 1)/2.

    Parameters
    ----------
    true, predicted : array-like of shape (n, d)
        Positions, 1 for the best; equal ones are ties, NaN is left out. A pair that is tied in one order only counts
        one half.

    Returns
    -------
    array of shape (n,)
        Between 0 and 1; NaN where fewer than two labels are known.

    Examples
    --------
    >>> kendall_distance([[1, 2, 3, 4, 5, 6]], [[6, 2, 3, 4, 5, 1]]).tolist()
    [0.6]
    """
    return _compared(label_orders.KENDALL, true, predicted)


def footrule_distance(true: Any, predicted: Any) -> Floats:
    """
    Sum of the differences of positions over its largest value, ⌊d²/2⌋; labels that are tied share a mean position.

    Parameters
    ----------
    true, predicted : array-like of shape (n, d)
        Positions, as in `kendall_distance`.

    Returns
    -------
    array of shape (n,)
        Between 0 and 1; NaN where fewer than two labels are known.
    """
    return _compared(label_orders.FOOTRULE, true, predicted)


def kendall_tau(true: Any, predicted: Any) -> Floats:
    """
    Kendall's τ-b: 1 − 2 · `kendall_distance` where nothing is tied.

    Parameters
    ----------
    true, predicted : array-like of shape (n, d)
        Positions, as in `kendall_distance`.

    Returns
    -------
    array of shape (n,)
        Between −1 and 1; NaN where all labels of an order are tied.
    """
    return _compared(label_orders.TAU, true, predicted)


def spearman_rho(true: Any, predicted: Any) -> Floats:
    """
    Spearman's ρ, the correlation of average positions.

    Parameters
    ----------
    true, predicted : array-like of shape (n, d)
        Positions, as in `kendall_distance`.

    Returns
    -------
    array of shape (n,)
        Between −1 and 1; NaN where all labels of an order are tied.
    """
    return _compared(label_orders.RHO, true, predicted)


def top_positions(positions: Any) -> Floats:
    """
    Turn top lists into orders of all labels, so that they can be compared.

    Parameters
    ----------
    positions : array-like of shape (n, d)
        Position of each relevant label, 1 for the best; 0 or NaN for irrelevant ones.

    Returns
    -------
    array of float64, shape (n, d)
        The same, with irrelevant labels tied behind all others.
    """
    found = as_positions(positions, "positions")
    return np.where((found == 0.0) | np.isnan(found), found.shape[1] + 1.0, found)


def hamming_loss(true: Any, predicted: Any) -> Floats:
    """
    Share of labels on the wrong side.

    Parameters
    ----------
    true, predicted : array-like of 0 and 1, shape (n, d)
        Which labels are relevant.

    Returns
    -------
    array of shape (n,)
        Between 0 and 1.
    """
    a, b = _indicators(true, predicted)
    return np.asarray((a != b).mean(axis=1))


def subset_loss(true: Any, predicted: Any) -> Floats:
    """
    Whether any label is on the wrong side.

    Parameters
    ----------
    true, predicted : array-like of 0 and 1, shape (n, d)
        Which labels are relevant.

    Returns
    -------
    array of shape (n,)
        0 or 1.
    """
    a, b = _indicators(true, predicted)
    return np.asarray((a != b).any(axis=1), dtype=np.float64)


def f1(true: Any, predicted: Any) -> Floats:
    """
    Twice the labels that are relevant in both, over those of either; 1 where both are empty.

    Parameters
    ----------
    true, predicted : array-like of 0 and 1, shape (n, d)
        Which labels are relevant.

    Returns
    -------
    array of shape (n,)
        Between 0 and 1.
    """
    a, b = _indicators(true, predicted)
    either = a.sum(axis=1) + b.sum(axis=1)
    return np.asarray(np.divide(2 * (a & b).sum(axis=1), either, out=np.ones(len(a)), where=either > 0))


def ranking_loss(true: Any, utilities: Any) -> Floats:
    """
    Share of pairs of a relevant and an irrelevant label that are ordered wrongly; a tie counts as wrong.

    Parameters
    ----------
    true : array-like of 0 and 1, shape (n, d)
        Which labels are relevant.
    utilities : array-like of shape (n, d)
        Higher is better.

    Returns
    -------
    array of shape (n,)
        Between 0 and 1; 0 where there is no such pair.
    """
    a, u = _scored(true, utilities)
    wrong = np.zeros(len(a))
    for r in range(a.shape[1]):
        wrong += a[:, r] * (~a & (u >= u[:, [r]])).sum(axis=1)
    pairs = a.sum(axis=1) * (~a).sum(axis=1)
    return np.asarray(wrong / np.maximum(pairs, 1))


def one_error(true: Any, utilities: Any) -> Floats:
    """
    Whether the best label is not relevant; where several are best, the share of them that are not.

    Parameters
    ----------
    true : array-like of 0 and 1, shape (n, d)
        Which labels are relevant.
    utilities : array-like of shape (n, d)
        Higher is better.

    Returns
    -------
    array of shape (n,)
        Between 0 and 1; NaN where no label is relevant.
    """
    a, u = _scored(true, utilities)
    best = u == u.max(axis=1, keepdims=True)
    return np.where(a.any(axis=1), (best & ~a).sum(axis=1) / best.sum(axis=1), np.nan)


def coverage(true: Any, utilities: Any) -> Floats:
    """
    How far down the order the last relevant label is: the number of labels with utilities as high as its own.

    Parameters
    ----------
    true : array-like of 0 and 1, shape (n, d)
        Which labels are relevant.
    utilities : array-like of shape (n, d)
        Higher is better.

    Returns
    -------
    array of shape (n,)
        From 1 to d; 0 where no label is relevant.
    """
    a, u = _scored(true, utilities)
    lowest = np.where(a, u, np.inf).min(axis=1, keepdims=True)
    return np.asarray((u >= lowest).sum(axis=1), dtype=np.float64)


def average_precision(true: Any, utilities: Any) -> Floats:
    """
    Mean over relevant labels of the share of relevant ones among those as high as it or higher.

    Parameters
    ----------
    true : array-like of 0 and 1, shape (n, d)
        Which labels are relevant.
    utilities : array-like of shape (n, d)
        Higher is better.

    Returns
    -------
    array of shape (n,)
        Between 0 and 1; 1 where no label is relevant, or every one.
    """
    a, u = _scored(true, utilities)
    total = np.zeros(len(a))
    for r in range(a.shape[1]):
        as_high = u >= u[:, [r]]
        total += a[:, r] * (as_high & a).sum(axis=1) / as_high.sum(axis=1)
    relevant = a.sum(axis=1)
    return np.asarray(np.divide(total, relevant, out=np.ones(len(a)), where=relevant > 0))


def _compared(kind: int, true: Any, predicted: Any) -> Floats:
    a, b = as_positions(true, "true"), as_positions(predicted, "predicted")
    _require_same(a, b)
    out = np.empty(len(a))
    compare_orders(kind, -a, -b, out)
    return out


def _indicators(true: Any, predicted: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    a, b = as_indicator(true), as_indicator(predicted)
    _require_same(a, b)
    _require_known(a, b)
    return a == 1.0, b == 1.0


def _scored(true: Any, utilities: Any) -> tuple[NDArray[np.bool_], Floats]:
    a, u = as_indicator(true), as_positions(utilities, "utilities")
    _require_same(a, u)
    _require_known(a, u)
    return a == 1.0, u


def _require_same(a: Floats, b: Floats) -> None:
    if a.shape != b.shape:
        raise InputError(
            f"the truth has shape {a.shape} and the prediction {b.shape}; pass the same examples and labels."
        )


def _require_known(*tables: Floats) -> None:
    if any(np.isnan(table).any() for table in tables):
        raise InputError("the truth or the prediction has NaN; compare labels that are known.")
