"""The result of exact solvers, checks of their inputs, and targets of losses that use an order or a share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from corank.data.ranking import RankingData
from corank.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Solution:
    """The optimum of a convex problem."""

    coef: Floats  # w; with views, the mean of their weights, zero for columns outside a view
    intercept: float  # b; the mean over views
    objective: float  # value of the objective
    n_iter: int  # number of Newton or conjugate-gradient steps; 0 for a factorisation
    view_coefs: tuple[Floats, ...] = ()  # weights of each view, in the order of its columns; empty without views


def require(data: RankingData, mix: float, alpha: float, lowest: str = "zero or more") -> None:
    """Raise if a problem or its parameters are not valid; `lowest` is "zero or more" or "above zero", for alpha."""
    if not 0.0 <= mix <= 1.0:
        raise InputError(f"mix is {mix}; pass a share of regression between 0 and 1.")
    if not np.isfinite(alpha) or alpha < 0.0 or (alpha == 0.0 and lowest == "above zero"):
        raise InputError(f"alpha is {alpha}; pass a finite weight of the penalty, {lowest}.")
    if mix > 0.0 and data.y is None:
        raise InputError(f"mix is {mix}, but preference pairs have no scores for regression; pass mix=0 or scores.")
    if mix < 1.0:
        data.require_pairs()
    elif data.n_scored == 0:
        raise InputError(f"y is NaN for all {data.n_rows} rows; score at least one row.")


def require_products(sums: Floats) -> None:
    """Raise if sums of products of the numbers in X overflowed."""
    if not np.isfinite(sums).all():
        raise InputError("X holds numbers so large, or so small, that their products overflow; scale its columns.")


Range = tuple[float, float]


def ordered(data: RankingData) -> RankingData:
    """Return the same problem with scores 0, 1, 2, ... inside each query, for a loss that uses only the order."""
    if data.y is None:
        return data
    y, grades = data.y.copy(), np.diff(data.query_grades)
    sizes = data.grade_stops - data.grade_starts
    rank = np.arange(len(sizes)) - np.repeat(data.query_grades[:-1], grades)
    y[data.order[data.is_scored[data.order]]] = np.repeat(rank, sizes)
    return replace(data, y=y)


def unit_range(data: RankingData, rows: bool) -> Range:
    """Return the scores that are mapped to 0 and 1 by a loss that learns shares."""
    if data.y is None:
        return 0.0, 1.0
    if rows:
        y = data.y[data.scored_rows]
        low, high = float(y.min()), float(y.max())
        return (low, high) if low < 0.0 or high > 1.0 else (0.0, 1.0)
    # sorted by score inside queries
    learns = np.zeros(data.n_rows, dtype=bool)
    learns[data.scored_rows] = True
    by_score = data.order[learns[data.order]]
    y, codes = data.y[by_score], data.queries.codes[by_score]
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    return 0.0, max(1.0, float((y[np.append(first[1:], len(y)) - 1] - y[first]).max()))


def in_unit(data: RankingData, limits: Range) -> RankingData:
    """Return the same problem with scores mapped to shares."""
    if data.y is None or limits == (0.0, 1.0):
        return data
    low, high = limits
    return replace(data, y=(data.y - low) / (high - low) if low < high else data.y - low + 0.5)
