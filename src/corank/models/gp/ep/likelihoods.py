"""IntervalProbability: probability that a Gaussian variable plus noise lies in an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.models.sites import interval_moments
from corank.errors import InputError

Floats = NDArray[np.float64]

_LOGISTIC_SHARES = (
    0.003246343272134, 0.051517477033972, 0.195077912673858, 0.315569823632818,
    0.274149576158423, 0.131076880695470, 0.027912418727972, 0.001449567805354,
)  # fmt: skip
_LOGISTIC_SLOPES = (
    1.365340806296348, 1.059523971016916, 0.830791313765644, 0.650732166639391,
    0.508135425366489, 0.396313345166341, 0.308904252267995, 0.238212616409306,
)  # fmt: skip
_VARIANCE = np.pi**2 / 3.0

NOISES: dict[str, tuple[Floats, Floats]] = {
    "probit": (np.ones(1), np.ones(1)),
    "logistic": (np.array(_LOGISTIC_SHARES), np.array(_LOGISTIC_SLOPES) ** -2.0 / _VARIANCE),
}
"""
Noises of a judgement as mixtures of Gaussians: probabilities, and variances as shares of the variance of the noise.

1/(1 + exp(−x)) is Σ_i p_i Φ(s_i x) within 3e-8 (Monahan and Stefanski, Normal scale mixture approximations to F*(z) and
computation of the logistic-normal integral, 1992), and its density has the variance π²/3.
"""


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
class IntervalProbability:
    """
    P(lo < g + noise < hi) of a Gaussian g, for any of `NOISES`.

    A preference is the interval (0, ∞) of a difference; a grade is the interval between two thresholds. Computed in
    logarithms; for Gaussian noise at least ten digits in both tails and for intervals of any width.
    """

    lo: ArrayLike = 0.0  # lo, hi: ends of the interval, lo < hi; either may be infinite
    hi: ArrayLike = np.inf
    noise: ArrayLike = 0.0  # variance of the noise
    likelihood: str = "probit"  # a name of `NOISES`

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
        interval_moments(m, v, noise, lo, hi, *NOISES[self.likelihood], out)
        return LogZ(*(out[:, j].reshape(arrays[0].shape) for j in range(6)))

    def probability(self, mean: ArrayLike, var: ArrayLike) -> Floats:
        """Return P(lo < g + noise < hi) for g ~ N(mean, var)."""
        return np.asarray(np.exp(self(mean, var).log_z))
