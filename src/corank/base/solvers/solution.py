"""The result of exact solvers, and checks of their inputs."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Raise if a problem or its parameters are not valid; `lowest` is the range of alpha."""
    require_numbers(mix, alpha, lowest)
    if mix > 0.0 and data.y is None:
        raise InputError(f"mix is {mix}, but preference pairs have no scores for regression; pass mix=0 or scores.")
    if mix < 1.0:
        data.require_pairs()
    elif data.n_scored == 0:
        raise InputError(f"y is NaN for all {data.n_rows} rows; score at least one row.")


def require_numbers(mix: float, alpha: float, lowest: str = "zero or more") -> None:
    """Raise if parameters are out of range; `lowest` is "zero or more" or "above zero", the range of alpha."""
    if not 0.0 <= mix <= 1.0:
        raise InputError(f"mix is {mix}; pass a share of regression between 0 and 1.")
    if not np.isfinite(alpha) or alpha < 0.0 or (alpha == 0.0 and lowest == "above zero"):
        raise InputError(f"alpha is {alpha}; pass a finite weight of the penalty, {lowest}.")


def require_products(sums: Floats) -> None:
    """Raise if sums of products of the numbers in X overflowed."""
    if not np.isfinite(sums).all():
        raise InputError("X holds numbers so large, or so small, that their products overflow; scale its columns.")
