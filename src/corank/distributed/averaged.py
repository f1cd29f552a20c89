"""
Stochastic descent over parts: independent runs, one a part and seeded by it, and the mean of their weights.

Zinkevich, Weimer, Li and Smola, Parallelized stochastic gradient descent, NIPS 2010. A run sees its own part only, so
that the mean is no optimum of all rows; its weight in the mean is that of its pairs, or rows with mix=1. Scale of
columns, alpha, views and the range of scores are those of all parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from corank.core.rows.scaled import ScaledRows
from corank.distributed.parts import Parts
from corank.distributed.whole import Problem
from corank.solvers.targets import Range, in_unit

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Runs:
    """
    Sums over runs, each times the weight of its examples.

    weight: of all of them.
    coefs: weights of the scaled columns, of each view where there are some, times those.
    intercept, objective: the same of these.
    n_iter: steps.
    """

    weight: float
    coefs: Floats
    intercept: float
    objective: float
    n_iter: int

    def __add__(self, other: Runs) -> Runs:
        return Runs(
            self.weight + other.weight, self.coefs + other.coefs, self.intercept + other.intercept,
            self.objective + other.objective, self.n_iter + other.n_iter,
        )  # fmt: skip


def average_runs(parts: Parts, model: Any, seed: int, factors: Floats, limits: Range | None) -> Runs | None:
    """
    Descend in every part.

    model: with alpha and views given.
    seed: beside which the number of a part's first row seeds its run.
    Returns: sums over the runs; None where no part has an example.
    """
    model = clone(model).set_params(scale=False)
    found: Runs | None = parts.summed(_descend_part, (model, seed, factors, limits), "descent")
    return found


def _descend_part(problems: Iterator[Problem], told: tuple[Any, int, Floats, Range | None]) -> Runs | None:
    model, seed, factors, limits = told
    total = None
    for problem in problems:
        data = problem.data if limits is None else in_unit(problem.data, limits)
        weight = float(data.n_pairs if model.mix < 1.0 else data.n_scored)
        if not weight:
            continue
        dice = int(np.random.default_rng([seed, int(problem.numbers.min())]).integers(2**31))
        run = clone(model).set_params(random_state=dice)
        run.fit(replace(data, X=ScaledRows(data.X, factors)))
        # a model has the weights of columns as they were given
        coefs = np.atleast_2d(getattr(run, "view_coefs_", run.coef_)) / factors
        own = Runs(weight, weight * coefs, weight * run.intercept_, weight * run.objective_, run.n_iter_)
        total = own if total is None else total + own
    return total
