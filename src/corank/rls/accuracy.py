"""
Held-out values and how accurate they are: what is nearer than rounding errors is equal.

A model that does not see a query may hold two of its rows equal, or all of them where nothing is left to learn from.
Computed values then differ by rounding errors, and a ranking by them would be one of dice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.rows.blocks import sort_blocks

Floats = NDArray[np.float64]

UNIT = 8.0 * float(np.finfo(np.float64).eps)
"""Rounding error of a sum beside its terms: bounds are of first order, and sums have many terms."""


@dataclass(frozen=True)
class Sizes:
    """
    What rounding errors are relative to.

    targets: ‖t‖, t the targets of the least-squares problem.
    similarities: Σ of the squared lengths of its rows before means were subtracted, for features that are computed
        from similarities; 0 for columns, which are given.
    inflation: what errors of similarities grow by in features, see `corank.kernels.FeatureMap.inflation`.
    """

    targets: float
    similarities: float = 0.0
    inflation: float = 1.0

    def of_features(self, seen: Floats, solution: Floats | float, root: float, rows: Floats) -> Floats:
        """
        Bound what errors of similarities make of a prediction by features, beside u.

        They are errors of features, or errors of K beside coefficients of rows; each bound is far too large where the
        other is not.

        seen: size of the row seen through (A + λI)⁻¹.
        solution: size of the solution.
        root: √ of that of A.
        rows: size of the coefficients that the solution is of all rows, times that of the row's coefficients.
        """
        blur = self.inflation * np.sqrt(self.similarities)
        by_features = blur * (seen * (self.targets + root * solution) + solution)
        return np.asarray(np.minimum(self.similarities * rows, by_features))


class Held(NamedTuple):
    """
    Predictions by models that did not see what they predict.

    values (n, m): one column for each candidate.
    noise (n, m): what each may be wrong by.
    """

    values: Floats
    noise: Floats

    @classmethod
    def empty(cls, n: int, m: int) -> Held:
        """Make room for n predictions of m candidates."""
        return cls(np.empty((n, m)), np.empty((n, m)))


def level(values: Floats, noise: Floats, starts: NDArray[np.int64]) -> Floats:
    """
    Make values equal that rounding errors cannot tell apart: neighbours in a query nearer than both their errors.

    values, noise (n,): one candidate's.
    starts (n_queries + 1,): where each query begins.
    Returns: the values, those that are equal given that of the lowest of them.

    >>> level(np.array([0.3, 0.1, 0.1 + 1e-16]), np.full(3, 1e-15), np.array([0, 3])).tolist()
    [0.3, 0.1, 0.1]
    """
    order = np.arange(len(values))
    sort_blocks(values, order, starts, 0, len(starts) - 1)
    f, u = values[order], noise[order]
    is_new = np.ones(len(f), dtype=bool)
    is_new[1:] = f[1:] - f[:-1] > u[1:] + u[:-1]
    is_new[starts[:-1]] = True
    out = np.empty_like(f)
    out[order] = f[is_new][np.cumsum(is_new) - 1]
    return out
