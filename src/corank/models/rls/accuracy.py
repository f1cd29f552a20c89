"""
Held-out predictions and bounds of their rounding errors; predictions that differ by less are ties.

A model that has not seen a query may score two of its rows, or all of them, equally. Computed values then differ by
rounding errors, and a ranking by them would be arbitrary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.rows.blocks import sort_blocks

Floats = NDArray[np.float64]

UNIT = 8.0 * float(np.finfo(np.float64).eps)
"""Relative rounding error of a sum: bounds are of first order, and sums have many terms."""


@dataclass(frozen=True)
class ErrorScales:
    """
    Scales of rounding errors.

    similarities: Σ of the squared lengths of its rows before centring, for features computed from similarities; 0 for
        columns.
    inflation: growth of errors of similarities in features, see `corank.base.kernels.basis.FeatureMap.inflation`.
    """

    targets: float  # ‖t‖, t the targets of the least-squares problem
    similarities: float = 0.0
    inflation: float = 1.0

    def of_features(self, response: Floats, solution: Floats | float, root: float, rows: Floats) -> Floats:
        """
        Bound the effect of errors of similarities on a prediction by features, in units of u.

        They are errors of features, or errors of K times coefficients of rows; the smaller of the two bounds holds.
        """
        blur = self.inflation * np.sqrt(self.similarities)
        by_features = blur * (response * (self.targets + root * solution) + solution)
        return np.asarray(np.minimum(self.similarities * rows, by_features))


class LeaveOutScores(NamedTuple):
    """Predictions by models that have not seen the predicted rows."""

    values: Floats  # (n, m): one column per candidate
    noise: Floats  # (n, m): bounds of their rounding errors

    @classmethod
    def empty(cls, n: int, m: int) -> LeaveOutScores:
        """Allocate n predictions of m candidates."""
        return cls(np.empty((n, m)), np.empty((n, m)))


def merge_ties(values: Floats, noise: Floats, starts: NDArray[np.int64]) -> Floats:
    """Make values of a query equal whose difference is below their rounding errors."""
    order = np.arange(len(values))
    sort_blocks(values, order, starts, 0, len(starts) - 1)
    f, u = values[order], noise[order]
    is_new = np.ones(len(f), dtype=bool)
    is_new[1:] = f[1:] - f[:-1] > u[1:] + u[:-1]
    is_new[starts[:-1]] = True
    out = np.empty_like(f)
    out[order] = f[is_new][np.cumsum(is_new) - 1]
    return out
