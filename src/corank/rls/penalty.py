"""The weight of the penalty: a closed rule, and the choice among candidates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank.metrics import parse_metric
from corank.rls.frame import Frame, RowFrame

Floats = NDArray[np.float64]

# what the mean squared distance of compared rows is multiplied by
_STRENGTH = 10.0


class Equations(NamedTuple):
    """
    A symmetric system (A + alpha I) x = b.

    Attributes
    ----------
    A : array of shape (k, k)
        The matrix.
    b : array of shape (k,)
        The right side.
    trace : float
        Mean squared distance of the compared rows in the space of the kernel: the trace of A less what was added.
    """

    A: Floats
    b: Floats
    trace: float


def closed_alpha(trace: float, n_differences: int, n_columns: int) -> float:
    """
    Choose alpha without looking at scores: 10 · trace / max(m, d).

    Parameters
    ----------
    trace : float
        Mean squared distance of the compared rows, in the space of the kernel.
    n_differences : int
        m, the number of compared rows less one for each query.
    n_columns : int
        d, the number of columns of a linear kernel; 0 for other kernels, which are not bounded by columns.

    Returns
    -------
    float
        The weight of the penalty.
    """
    return _STRENGTH * trace / max(n_differences, n_columns, 1)


def candidates(values: Any, name: str) -> Floats:
    """
    Check a list of candidates.

    Parameters
    ----------
    values : array-like
        Numbers.
    name : str
        What to call them in messages.

    Returns
    -------
    array of float64
        The numbers.
    """
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.ndim != 1 or not len(numbers) or not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise InputError(f"{name} is {values!r}; pass a list of one or more finite numbers, none below zero.")
    return numbers


def judge(metric: str | None, frame: Frame) -> str:
    """
    Name the metric that chooses.

    Parameters
    ----------
    metric : str or None
        What the user asked for.
    frame : Frame
        What is compared.

    Returns
    -------
    str
        Its canonical name; by default nDCG@10 where whole queries of grades are left out, else disagreement.
    """
    if metric is not None:
        return str(parse_metric(metric))
    if not isinstance(frame, RowFrame) or frame.n_queries < 2:
        return "disagreement"
    are_grades = (frame.y >= 0) & (frame.y <= 10) & (frame.y == np.round(frame.y))
    return "nDCG@10" if are_grades.all() else "disagreement"


def best(scores: Floats, metric: str) -> tuple[int, ...]:
    """
    Find the best candidate.

    Parameters
    ----------
    scores : array
        Means of a metric, NaN where it is not defined.
    metric : str
        Its name.

    Returns
    -------
    tuple of int
        Where the best score is; the first of equals.
    """
    if np.isnan(scores).all():
        raise InputError(
            f"{metric} is defined for no query that was left out; choose another metric, or score more rows."
        )
    sign = 1.0 if parse_metric(metric).measure.larger_is_better else -1.0
    at = int(np.nanargmax(sign * scores))
    return tuple(int(i) for i in np.unravel_index(at, scores.shape))
