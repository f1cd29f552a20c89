"""
Measures of predicted labels, one number per example: of orders with ties, top lists, sets, and utilities.

Orders are tables of positions, 1 for the best; equal positions are ties (Fagin, Kumar, Mahdian, Sivakumar and Vee,
Comparing and aggregating rankings with ties, 2004). A top list is an order whose other labels share the last position
(`top_positions`). Take means, or compare two models example by example, with the numbers returned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.labels.constraints import FOOTRULE, KENDALL, RHO, compare_orders
from corank.core.pairs.inversions import pair_losses
from corank.errors import InputError
from corank.metrics.pairwise import tau_b
from corank.models.labels.preferences import as_indicator, as_positions

Floats = NDArray[np.float64]


def kendall_distance(true: Any, predicted: Any) -> Floats:
    """Share of pairs of labels that two orders rank differently: Fagin's K^(½) over d(d − 1)/2."""
    return _compared(KENDALL, true, predicted)


def footrule_distance(true: Any, predicted: Any) -> Floats:
    """
    Spearman's footrule: sum of the differences of positions over its largest value, ⌊d²/2⌋; ties share a mean position.
    """
    return _compared(FOOTRULE, true, predicted)


def kendall_tau(true: Any, predicted: Any) -> Floats:
    """Kendall's τ-b; equal to 1 − 2 · `kendall_distance` without ties."""
    a, b = as_positions(true, "true"), as_positions(predicted, "predicted")
    _require_same(a, b)
    known = ~(np.isnan(a) | np.isnan(b))
    order = np.argsort(np.where(known, b, np.nan), axis=1, kind="stable")
    counted = np.arange(a.shape[1]) < known.sum(axis=1)[:, None]
    grades, scores = (np.take_along_axis(-side, order, axis=1)[counted] for side in (a, b))
    starts, out = np.append(0, np.cumsum(counted.sum(axis=1))), np.empty((len(a), 3))
    pair_losses(grades, scores, starts, 0, len(a), 0.0, out)
    return tau_b(*out.T)


def spearman_rho(true: Any, predicted: Any) -> Floats:
    """Spearman's ρ, the correlation of average positions."""
    return _compared(RHO, true, predicted)


def top_positions(positions: Any) -> Floats:
    """Convert top lists to orders of all labels, so that they can be compared."""
    values = as_positions(positions, "positions")
    return np.where((values == 0.0) | np.isnan(values), values.shape[1] + 1.0, values)


def hamming_loss(true: Any, predicted: Any) -> Floats:
    """Hamming loss: share of labels predicted wrongly."""
    a, b = _indicators(true, predicted)
    return np.asarray((a != b).mean(axis=1))


def subset_loss(true: Any, predicted: Any) -> Floats:
    """Subset 0/1 loss: whether any label is predicted wrongly."""
    a, b = _indicators(true, predicted)
    return np.asarray((a != b).any(axis=1), dtype=np.float64)


def f1(true: Any, predicted: Any) -> Floats:
    """F1 of sets: twice the number of labels in both over the sum of their sizes; 1 if both are empty."""
    a, b = _indicators(true, predicted)
    either = a.sum(axis=1) + b.sum(axis=1)
    return np.asarray(np.divide(2 * (a & b).sum(axis=1), either, out=np.ones(len(a)), where=either > 0))


def ranking_loss(true: Any, utilities: Any) -> Floats:
    """Ranking loss: share of pairs of a relevant and an irrelevant label in the wrong order; a tie is wrong."""
    a, u = _scored(true, utilities)
    wrong = np.zeros(len(a))
    for r in range(a.shape[1]):
        wrong += a[:, r] * (~a & (u >= u[:, [r]])).sum(axis=1)
    pairs = a.sum(axis=1) * (~a).sum(axis=1)
    return np.asarray(wrong / np.maximum(pairs, 1))


def one_error(true: Any, utilities: Any) -> Floats:
    """One-error: whether the best label is irrelevant; among several best labels, the share of irrelevant ones."""
    a, u = _scored(true, utilities)
    best = u == u.max(axis=1, keepdims=True)
    return np.where(a.any(axis=1), (best & ~a).sum(axis=1) / best.sum(axis=1), np.nan)


def coverage(true: Any, utilities: Any) -> Floats:
    """Coverage: number of labels with a utility at least that of the lowest relevant label."""
    a, u = _scored(true, utilities)
    lowest = np.where(a, u, np.inf).min(axis=1, keepdims=True)
    return np.asarray((u >= lowest).sum(axis=1), dtype=np.float64)


def average_precision(true: Any, utilities: Any) -> Floats:
    """
    Average precision: mean over relevant labels of the share of relevant ones among those ranked at least as high.
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
        raise InputError("the truth or the prediction contains NaN; compare labels that are known.")
