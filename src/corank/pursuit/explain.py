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

    chosen: the training row, or the column of X with ``dictionary="columns"``.
    coefficient: its coefficient, summed over the terms that chose it.
    similarity: how similar the explained row is to it, or its value in that column.
    contribution: the product: above zero it pulls the score up, below zero down.
    """

    chosen: int
    coefficient: float
    similarity: float
    contribution: float


def pulls(chosen: NDArray[np.int64], coefficients: Floats, similarities: Any) -> list[Pull]:
    """
    List what pulls a score up and what pulls it down.

    chosen (P,): rows or columns, each once.
    coefficients (P,): their coefficients; those of zero are left out.
    similarities (1, P): of the explained row to each.
    Returns: the strongest pull upwards first, the strongest downwards last.

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
