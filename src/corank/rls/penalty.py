"""The closed rule for the weight of the penalty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    closed_alpha : float
        What the closed rule says of alpha.
    """

    A: Floats
    b: Floats
    closed_alpha: float


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
