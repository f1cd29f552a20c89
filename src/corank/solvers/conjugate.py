"""The linear system of the squared loss by conjugate gradients: products with X only, for many columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from corank.data.problem.ranking import RankingData
from corank.errors import warn
from corank.solvers.comparisons import scored_comparisons, unscored_comparisons
from corank.solvers.linear_map import LinearMap
from corank.solvers.solution import Floats

TOLERANCE = 1e-10
"""Residual, relative to the right-hand side, at which conjugate gradients stop."""
MAX_STEPS = 5000
"""Steps after which they give up with a warning."""


def solve_by_products(
    data: RankingData,
    columns: list[NDArray[Any]],
    mix: float,
    alpha: float,
    coupling: float,
    centred: bool,
    query_weight: str,
) -> tuple[Floats, float, int, tuple[Floats, float]]:
    """
    Solve the block system of `corank.solvers.squared_views` for the weights of all views, one after the other.

    columns: columns of each view.
    mix, alpha, coupling: share of regression, weight of the penalty, weight of the agreement.
    centred: whether an intercept absorbs the mean of the regression part.
    query_weight {"pairs", "equal", "rows"}: how much a query counts.
    Returns: the weights, the objective, the steps taken, and the means of the scored rows and of their scores.
    """
    loss = scored_comparisons(data, mix, centred, query_weight)
    agreement = unscored_comparisons(data, query_weight) if coupling > 0.0 and len(columns) > 1 else None
    M, d = len(columns), data.n_features
    bounds = np.cumsum([0, *(len(c) for c in columns)])

    def spread_out(theta: Floats, v: int) -> Floats:
        w = np.zeros(d)
        np.add.at(w, columns[v], theta[bounds[v] : bounds[v + 1]])
        return w

    def product(theta: Floats) -> Floats:
        theta = theta.ravel()
        out = alpha * theta
        for v in range(M):
            part = loss.rows.gather(loss.apply(loss.rows.scores(spread_out(theta, v))))
            out[bounds[v] : bounds[v + 1]] += part[columns[v]]
        if agreement is not None:
            margins = [agreement.rows.scores(spread_out(theta, v)) for v in range(M)]
            total = np.sum(margins, axis=0)
            for v in range(M):
                part = agreement.rows.gather(agreement.apply(M * margins[v] - total))
                out[bounds[v] : bounds[v + 1]] += 4.0 * coupling * part[columns[v]]
        return out

    slots = np.concatenate(columns)
    b = loss.rows.gather(loss.pull)[slots]
    # an upper bound of the diagonal, up to rounding: rows are not centred
    diagonal = alpha + loss.rows.gather_squares(loss.diagonal)[slots]
    if agreement is not None:
        diagonal += 4.0 * coupling * (M - 1) * agreement.rows.gather_squares(agreement.diagonal)[slots]
    inverse = 1.0 / np.where(diagonal > 0.0, diagonal, 1.0)
    steps: list[None] = []
    A = LinearOperator((len(b), len(b)), matvec=product, dtype=np.float64)
    P = LinearOperator((len(b), len(b)), matvec=lambda r: inverse * r.ravel(), dtype=np.float64)
    theta, failed = cg(A, b, rtol=TOLERANCE, atol=0.0, maxiter=MAX_STEPS, M=P, callback=lambda _: steps.append(None))
    if failed:
        warn(
            f"conjugate gradients stopped after {MAX_STEPS} steps short of the optimum; scale X or raise alpha.",
            ConvergenceWarning,
        )
    objective = float(0.5 * theta @ A.matvec(theta) - b @ theta + 0.5 * M * loss.constant)
    return theta, objective, len(steps), _means(data) if centred else (np.zeros(d), 0.0)


def _means(data: RankingData) -> tuple[Floats, float]:
    assert data.targets is not None
    rows = data.scored_rows
    share = data.weight_of(rows) / data.weight_of(rows).sum()
    return LinearMap(data.X, rows).gather(share), float(share @ data.targets[rows])
