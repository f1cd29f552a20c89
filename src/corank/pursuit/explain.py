"""What each chosen row does to a score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.pursuit.inner import Floats


class Pull(NamedTuple):
    """
    What one chosen row (or column) does to a score.

    Attributes
    ----------
    chosen : int
        The training row, or the column of X with ``dictionary="columns"``.
    coefficient : float
        Its coefficient, summed over the terms that chose it.
    similarity : float
        How similar the explained row is to it, or its value in that column.
    contribution : float
        The product: above zero it pulls the score up, below zero down.
    """

    chosen: int
    coefficient: float
    similarity: float
    contribution: float


def pulls(chosen: NDArray[np.int64], coefficients: Floats, similarities: Any) -> list[Pull]:
    """
    List what pulls a score up and what pulls it down.

    Parameters
    ----------
    chosen : array of int64, shape (P,)
        Rows or columns, each once.
    coefficients : array of shape (P,)
        Their coefficients; those of zero are left out.
    similarities : ndarray or CSR matrix, shape (1, P)
        Of the explained row to each.

    Returns
    -------
    list of Pull
        The strongest pull upwards first, the strongest downwards last.

    Examples
    --------
    >>> [pull.contribution for pull in pulls(np.array([3, 7, 9]), np.array([-1.0, 0.0, 2.0]), np.ones((1, 3)))]
    [2.0, -1.0]
    """
    values = np.asarray(similarities.toarray() if sparse.issparse(similarities) else similarities)[0]
    made = [
        Pull(int(number), float(a), float(k), float(a * k))
        for number, a, k in zip(chosen, coefficients, values, strict=True)
        if a != 0.0
    ]
    return sorted(made, key=lambda pull: -pull.contribution)
