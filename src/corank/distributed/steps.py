"""
Steps before a ranker over parts: queries scaled where they are whole, landmarks drawn by the dice of one machine.

A scaler learns nothing of the rows. Landmarks divide column j by √(Σ_i (x_ij − mean_j)² / n), over all rows, which
takes two passes, and fetch the rows that are drawn. Both then work inside each part, in every pass: no row is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.sums.bins import ExactSum
from corank.distributed.parts import Parts
from corank.distributed.summary import rows_of_parts
from corank.distributed.sums import Spread
from corank.distributed.whole import Problem
from corank.errors import InputError
from corank.estimator.contract import check_parameters, install, named_columns
from corank.estimator.landmarks import Landmarks
from corank.estimator.query_scaler import QueryScaler
from corank.kernels import as_kernel
from corank.pairwise.moment_blocks import dense

Floats = NDArray[np.float64]

# numbers that are summed at a time: 8 MiB
_ENTRIES = 1 << 20


def require_steps(steps: Sequence[Any]) -> list[Any]:
    """Raise one sentence for a step that parts cannot teach; return those that do something."""
    used = [step for step in steps if step is not None and step != "passthrough"]
    for step in used:
        if type(step) not in _FITS:
            raise InputError(
                f"the step {type(step).__name__} cannot be learnt from parts; use QueryScaler or Landmarks before the "
                "ranker, or fit it on one machine."
            )
        if isinstance(step, Landmarks) and isinstance(step.basis, str) and step.basis != "random":
            raise InputError(f"landmarks over parts are drawn at random, not by {step.basis!r}; set basis='random'.")
    return used


def fit_steps(steps: Sequence[Any], parts: Parts) -> tuple[list[Any], Parts]:
    """
    Fit copies of transformers to parts, one after the other.

    Returns: the copies, and the parts as the last of them shows the rows.
    """
    fitted = []
    for step in steps:
        fitted.append(_FITS[type(step)](copy(step), parts))
        parts = parts.through(fitted[-1])
    return fitted, parts


def _fit_scaler(step: QueryScaler, parts: Parts) -> QueryScaler:
    check_parameters(step)
    return install(step, None, {**named_columns(parts.n_features, parts.feature_names), "n_queries_": parts.n_queries})


def _fit_landmarks(step: Landmarks, parts: Parts) -> Landmarks:
    check_parameters(step)
    factors = _factors(parts) if step.scale and as_kernel(step.kernel).scales_columns else None
    record = step.choose(rows_of_parts(parts, factors), factors)
    return install(step, record, named_columns(parts.n_features, parts.feature_names))


_FITS: dict[type, Callable[[Any, Parts], Any]] = {QueryScaler: _fit_scaler, Landmarks: _fit_landmarks}


def _factors(parts: Parts) -> Floats:
    """Return the column factors of rows that are one query, see `corank.data.problem.column_scales`."""
    # measured from a row, so that a column that is constant has deviation 0
    origin = parts.origin
    sums: ExactSum = parts.summed(_differences_part, origin, "means of columns")
    spread: Spread = parts.summed(_squares_part, (origin, sums.value / parts.n_rows), "scale of columns")
    return spread.factors


def _differences_part(problems: Iterator[Problem], origin: Floats) -> ExactSum | None:
    """Sum rows as differences from a point, over a part; None where it has none."""
    total = None
    for rows in _blocks(problems):
        own = ExactSum.of(rows - origin)
        total = own if total is None else total + own
    return total


def _squares_part(problems: Iterator[Problem], centre: tuple[Floats, Floats]) -> Spread | None:
    """Sum squares of columns about their means, and what is not zero, over a part; None where it has none."""
    (origin, mean), total = centre, None
    for rows in _blocks(problems):
        own = Spread(len(rows), ExactSum.of(np.hstack([(rows - origin - mean) ** 2, rows != 0.0])))
        total = own if total is None else total + own
    return total


def _blocks(problems: Iterator[Problem]) -> Iterator[Floats]:
    for problem in problems:
        X = problem.data.X
        step = max(_ENTRIES // max(X.shape[1], 1), 1)
        for begin in range(0, X.shape[0], step):
            yield dense(X[begin : begin + step])
