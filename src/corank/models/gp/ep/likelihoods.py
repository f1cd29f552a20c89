"""IntervalProbit: probability that a Gaussian variable plus Gaussian noise lies in an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.models.sites import interval_moments
from corank.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LogZ:
    """log Z = log P(lo < x < hi) of x ~ N(mean, var), and its derivatives."""

    log_z: Floats
    gradient: Floats  # gradient, var_gradient: derivatives in the mean and in the variance
    var_gradient: Floats
    lo_gradient: Floats  # lo_gradient, hi_gradient: derivatives in the ends of the interval; 0 where an end is infinite
    hi_gradient: Floats
    curvature: Floats  # minus the second derivative in the mean; at least 0, and below 1/var


@dataclass(frozen=True)
class IntervalProbit:
    """
    P(lo < g + noise < hi) of a Gaussian g.

    A preference is the interval (0, ∞) of a difference; a grade is the interval between two thresholds. Computed in
    logarithms and without cancellation: at least ten digits in both tails and for intervals of any width.
    """

    lo: ArrayLike = 0.0  # lo, hi: ends of the interval, lo < hi; either may be infinite
    hi: ArrayLike = np.inf
    noise: ArrayLike = 0.0  # variance of the noise

    def __post_init__(self) -> None:
        if not np.all(np.asarray(self.lo) < np.asarray(self.hi)):
            raise InputError("an interval has lo >= hi; pass lo < hi.")
        if not np.all(np.asarray(self.noise) >= 0.0):
            raise InputError("noise has negative entries; it is a variance, so pass numbers of at least 0.")

    def __call__(self, mean: ArrayLike, var: ArrayLike) -> LogZ:
        """Return log Z and its derivatives for g ~ N(mean, var); var + noise must be positive."""
        parts = (mean, var, self.lo, self.hi, self.noise)
        arrays = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in parts))
        m, v, lo, hi, noise = (array.flatten() for array in arrays)
        out = np.empty((len(m), 6))
        interval_moments(m, v + noise, lo, hi, out)
        return LogZ(*(out[:, j].reshape(arrays[0].shape) for j in range(6)))

    def probability(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return P(lo < g + noise < hi) for g ~ N(mean, var)."""
        return np.asarray(np.exp(self(mean, var).log_z))
