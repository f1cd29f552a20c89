"""
Pins: the thresholds of each of many users, about those that users have in common.

A user's pins are θ = (b_1, logarithms of the gaps), drawn from N(mean, diag(var)) of all users: who rated little, or
never gave some grade, has the pins of the others. They maximise Σ_k log Z_k(θ) + log N(θ), Z_k the probability of
rating k under the user's posterior without it. Where pins come to rest together with expectation propagation, the slope
of that sum is the slope of the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from corank.core.models.sites import interval_moments
from corank.gp.ordinal.thresholds import (
    ends_of,
    free_of,
    free_slopes,
    quantile_thresholds,
    threshold_slopes,
    thresholds_of,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# deviation of pins about the common ones at the start, and the least there is
_START, _LEAST = 0.5, 0.05
# pins stay this many deviations from the common ones
_REACH = 8.0
# step of finite differences of slopes
_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class Pins:
    """
    What users' pins have in common.

    mean, var (r − 1,): of b_1 and the logarithms of the gaps.
    """

    mean: Floats
    var: Floats

    @classmethod
    def start(cls, counts: Floats, deviation: float) -> Pins:
        """Pins that give the grades in their shares, and each user near them."""
        mean = free_of(quantile_thresholds(counts, 0.0, deviation))
        return cls(mean, np.full(len(mean), _START**2))

    def fitted(self, free: Floats, codes: Integers, means: Floats, variances: Floats) -> Floats:
        """
        Move a user's pins to where that user's ratings are likeliest.

        free: where they were.
        codes (k,): grades of the ratings.
        means, variances (k,): what is rated, noise included, without the rating itself.
        """
        low, high = self.mean - _REACH * np.sqrt(self.var), self.mean + _REACH * np.sqrt(self.var)
        found = optimize.minimize(
            self._loss, np.clip(free, low, high), (codes, means, variances), jac=True, method="L-BFGS-B",
            bounds=list(zip(low, high, strict=True)), options={"ftol": 1e-10, "gtol": 1e-4},
        )  # fmt: skip
        return np.asarray(found.x)

    def spread(self, free: Floats, codes: Integers, means: Floats, variances: Floats) -> Floats:
        """Variance of a user's pins about where they are, from the curvature there."""
        k = len(free)
        steps = _STEP * np.eye(k)
        to = codes, means, variances
        H = np.array([self._loss(free + s, *to)[1] - self._loss(free - s, *to)[1] for s in steps]) / (2.0 * _STEP)
        values, U = np.linalg.eigh(0.5 * (H + H.T))
        # nowhere is a user known worse than before rating anything
        return np.asarray(np.minimum(np.sum(U**2 / np.maximum(values, 1.0 / self.var.max()), axis=1), self.var))

    def renewed(self, free: Floats, spreads: Floats) -> Pins:
        """What users' pins (n_users, r − 1), each known to within `spreads`, have in common."""
        mean = free.mean(axis=0)
        return Pins(mean, np.maximum(((free - mean) ** 2 + spreads).mean(axis=0), _LEAST**2))

    def _loss(self, free: Floats, codes: Integers, means: Floats, variances: Floats) -> tuple[float, Floats]:
        lo, hi = ends_of(thresholds_of(free))
        out = np.empty((len(codes), 6))
        interval_moments(means, variances, lo[codes], hi[codes], out)
        of_b = threshold_slopes(codes, out[:, 3], out[:, 4], len(lo))
        away = (free - self.mean) / self.var
        value = float(out[:, 0].sum()) - 0.5 * float(away @ (free - self.mean))
        return -value, away - free_slopes(free, of_b)
