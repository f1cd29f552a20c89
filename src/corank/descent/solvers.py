"""Which problems are solved exactly, and by what."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank import exact
from corank.data.ranking import RankingData
from corank.descent.objective import Objective
from corank.exact.least_squares import MAX_DENSE, MAX_SUMS
from corank.losses import Loss

MAX_NUMBERS = 10**9
MAX_PAIRS = 2 * 10**6


def can_solve(data: RankingData, loss: str, alpha: float) -> bool:
    """
    Decide for ``solver="auto"`` whether the optimum is cheaper than stochastic steps towards it.

    It is, for alpha > 0 and without l1, early stopping, warm starts or another law than ``sampling="pairs"``:

    * squared loss: at most 4000 columns and n d² ≤ 10¹² (one pass over the rows);
    * squared hinge: at most 10⁹ numbers stored in X (some tens of passes);
    * logistic loss, and others that visit every pair: at most 2·10⁶ pairs, and 10⁹ numbers stored in X;
    * hinge: never.

    Parameters
    ----------
    data : RankingData
        The problem.
    loss : str
        Name of the loss.
    alpha : float
        Weight of the penalty.

    Returns
    -------
    bool
        Whether to solve exactly.
    """
    n, d = data.n_rows, data.n_features
    numbers = data.X.nnz if sparse.issparse(data.X) else n * d
    if not alpha > 0.0:
        return False
    match Loss.of(loss).exact:
        case "system":
            return d <= MAX_DENSE and n * d * d <= MAX_SUMS
        case "sorted":
            return bool(numbers <= MAX_NUMBERS)
        case "pairs":
            return bool(numbers <= MAX_NUMBERS and data.n_pairs <= MAX_PAIRS)
        case _:
            return False


def solve(data: RankingData, objective: Objective, weights: NDArray[np.float64] | None) -> Any:
    """
    Find the optimum of one weight vector.

    Parameters
    ----------
    data : RankingData
        The problem.
    objective : Objective
        What to minimise.
    weights : array of shape (n_rows,), optional
        Row weights.

    Returns
    -------
    corank.exact.Solution
        The optimum.
    """
    alpha, mix = objective.alpha, objective.mix
    bias = objective.fit_intercept and mix > 0.0
    if objective.loss.exact == "system":
        return exact.squared(data, mix=mix, alpha=alpha, fit_intercept=bias, weights=weights)
    return exact.smooth_loss(data, objective.loss.name, mix=mix, alpha=alpha, fit_intercept=bias, weights=weights)
