"""Fitted: the model that a fit of SPD, CRR or LCRA returns, and how weights become predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.rows.scaled import factors_of
from corank.data.problem.ranking import RankingData
from corank.estimator.held_out import HeldOut
from corank.linear.training import Judge

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fitted:
    """
    A linear model, see the attributes of `corank.SPD`.

    coef, intercept, alpha, alpha_from, objective, n_iter, n_skipped_queries: of every model.
    score_range (2,): of a model that learns shares.
    eta0, objective_trace, validation_errors, run: of a stochastic descent.
    """

    coef: Floats
    intercept: float
    alpha: float
    alpha_from: str
    objective: float
    n_iter: int
    n_skipped_queries: int
    score_range: Floats | None = None
    eta0: float | None = None
    objective_trace: Floats | None = None
    validation_errors: Floats | None = None
    run: dict[str, Any] | None = None


def factors(data: RankingData) -> Floats | float:
    """Return what weights of columns as a learner sees them are multiplied by, to be those of the columns as given."""
    scaled = factors_of(data.X)
    return 1.0 if scaled is None else scaled


def judge_of(held: HeldOut, loss: str) -> Judge:
    """
    Return what early stopping asks.

    held: judgements that were set aside.
    loss: name of the loss.
    Returns: takes weights and biases of the views, and returns the error on what was held out.
    """
    rows = held.test.X[held.rows]

    def error(W: Floats, biases: Floats) -> float:
        # what a logistic margin predicts is a probability
        return held.error(rows @ W.mean(axis=0) + biases.mean(), logistic if loss == "logistic" else None)

    return error


def logistic(margins: Floats) -> Floats:
    """
    Return probabilities.

    Returns: σ(m) = (1 + tanh(m/2))/2, which does not overflow.
    """
    return 0.5 * (1.0 + np.tanh(0.5 * margins))
