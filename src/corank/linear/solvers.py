"""Which problems are solved exactly, and by what."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank import solvers as exact
from corank.core.rows.scaled import plain
from corank.data.problem.ranking import RankingData
from corank.linear.objective import Objective
from corank.pairwise.losses import Loss
from corank.solvers.least_squares import MAX_DENSE, MAX_SUMS

Floats = NDArray[np.float64]

MAX_NUMBERS = 10**9
MAX_PAIRS = 2 * 10**6


class Found(NamedTuple):
    """
    Weights, exact or descended to.

    W (n_views, n_features): weights of each view.
    biases (n,): biases of the views, or their mean.
    objective: the objective there.
    n_iter: steps taken.
    """

    W: Floats
    biases: Floats
    objective: float
    n_iter: int


def can_solve(data: RankingData, loss: Loss) -> bool:
    """
    Decide for ``solver="auto"`` whether the optimum is cheaper than stochastic steps towards it.

    It is, for alpha > 0 and without l1, early stopping, warm starts or ``draw="rows"``:

    * squared loss: at most 4000 columns and n d² ≤ 10¹² (one pass over the rows);
    * squared hinge: at most 10⁹ numbers stored in X (some tens of passes);
    * logistic loss, and others that visit every pair: at most 2·10⁶ pairs, and 10⁹ numbers stored in X;
    * hinge: never.

    Returns: whether to solve exactly.
    """
    n, d, X = data.n_rows, data.n_features, plain(data.X)
    if loss.exact == "system":
        return d <= MAX_DENSE and n * d * d <= MAX_SUMS
    is_small = bool((X.nnz if sparse.issparse(X) else n * d) <= MAX_NUMBERS)
    return is_small and (loss.exact == "sorted" or (loss.exact == "pairs" and data.n_pairs <= MAX_PAIRS))


def solve(data: RankingData, objective: Objective, views: list[NDArray[np.int64]], **newton: Any) -> Found:
    """
    Find the optimum.

    objective: what to minimise; of several views, with the squared loss.
    views: columns of each view.
    newton: `tol`, `max_iter` and `verbose` of Newton's method, see `corank.solvers.smooth_loss`.
    Returns: the optimum; of the views' biases, the mean.
    """
    o = objective
    how: dict[str, Any] = {
        "mix": o.mix, "alpha": o.alpha, "fit_intercept": o.fit_intercept, "query_weight": o.query_weight,
    }  # fmt: skip
    if o.loss.exact == "system":
        found = exact.squared_views(data, views, coupling=o.coupling, **how)
    else:
        found = exact.smooth_loss(data, o.loss.name, **newton, **how)
    W = np.zeros((len(views), data.n_features))
    for w, columns, coef in zip(W, views, found.view_coefs or (found.coef,), strict=True):
        w[columns] = coef
    return Found(W, np.array([found.intercept]), found.objective, found.n_iter)
