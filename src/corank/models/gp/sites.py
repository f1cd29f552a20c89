"""
Observations that a Gaussian variable plus noise lies in an interval: their probability, and as sites of a posterior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.models.sites import interval_moments
from corank.fitted import Part, Relations, Shapes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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


@dataclass(frozen=True, eq=False)
class Sites(Part):
    """Intervals of f_left − f_right + noise, each observed `weight` times."""

    _may_be_infinite: ClassVar[frozenset[str]] = frozenset(["lo", "hi"])

    _shapes: ClassVar[Shapes] = dict.fromkeys(("left", "right", "lo", "hi", "noise", "weight"), ("sites",))
    _relations: ClassVar[Relations] = {
        "lo is below hi": lambda s: (s.lo < s.hi).all(),
        "noise and weight are positive": lambda s: (s.noise > 0.0).all() and (s.weight > 0.0).all(),
        "likelihood is known": lambda s: s.likelihood in NOISES,
    }

    left: Integers  # left, right (m,): items; right is −1 for the value of a single item
    right: Integers
    lo: Floats  # lo, hi (m,): ends of the intervals, minus the prior mean of the difference
    hi: Floats
    noise: Floats  # (m,): variance of the noise
    weight: Floats  # (m,): number of observations; any positive number
    likelihood: str = "probit"  # the distribution of the noise, a name of `NOISES`

    @classmethod
    def preferences(
        cls, pairs: ArrayLike, sigma: float, weight: ArrayLike | None = None, offset: ArrayLike | None = None, *,
        likelihood: str = "probit",
    ) -> Sites:  # fmt: skip
        """
        Build sites of preferences, the preferred item first: (−offset, ∞) of the difference, noise variance 2 sigma².

        Equal preferences become one site with the sum of their weights, sorted by item: repeated answers cost nothing,
        and the order of the answers does not matter.

        offset (m,): prior mean of the difference; 0 by default.
        """
        all_pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        weights = np.ones(len(all_pairs)) if weight is None else np.asarray(weight, dtype=np.float64)
        offsets = np.zeros(len(all_pairs)) if offset is None else np.asarray(offset, dtype=np.float64)
        keys = np.column_stack([all_pairs, offsets])[weights > 0.0]
        distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
        summed = np.bincount(inverse.ravel(), weights[weights > 0.0], len(distinct)).astype(np.float64)
        left, right = (np.ascontiguousarray(distinct[:, side]).astype(np.int64) for side in (0, 1))
        m = len(distinct)
        noise, hi = np.full(m, 2.0 * sigma**2), np.full(m, np.inf)
        return cls(left, right, 0.0 - distinct[:, 2], hi, noise, summed, likelihood)

    @classmethod
    def grades(cls, items: ArrayLike, lo: ArrayLike, hi: ArrayLike, noise: ArrayLike, weight: ArrayLike = 1.0) -> Sites:
        """Build sites of single items, such as grades."""
        left = np.ascontiguousarray(items, dtype=np.int64)
        ends = [np.array(np.broadcast_to(part, left.shape), dtype=np.float64) for part in (lo, hi, noise, weight)]
        return cls(left, np.full(len(left), -1), ends[0], ends[1], ends[2], ends[3])

    def __len__(self) -> int:
        return len(self.left)

    @property
    def intervals(self) -> tuple[Floats, ...]:
        """`lo`, `hi`, `noise` and its mixture, in the order of the kernels' arguments."""
        return self.lo, self.hi, self.noise, *NOISES[self.likelihood]

    def compacted(self) -> tuple[Integers, Sites]:
        """Return the items that sites name, ascending, and the sites with positions in this list as items."""
        items = np.unique(np.concatenate([self.left, self.right[self.right >= 0]]))
        right = np.where(self.right >= 0, np.searchsorted(items, self.right), -1)
        return items, replace(self, left=np.searchsorted(items, self.left), right=right)

    def carry_over(self, old: Sites, values: Floats) -> Floats:
        """Return the values of other preferences for those that are also here, and 0 for the rest."""
        keys = np.concatenate([np.column_stack([part.left, part.right, part.lo]) for part in (self, old)])
        distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
        carried = np.zeros(len(distinct))
        carried[inverse.ravel()[len(self) :]] = values
        return carried[inverse.ravel()[: len(self)]]

    def shift(self, nu: Floats, n: int) -> Floats:
        """Bᵀ(weight ν), over n items."""
        weighted, is_pair = self.weight * nu, self.right >= 0
        of_left = np.bincount(self.left, weighted, n)
        return np.asarray(of_left - np.bincount(self.right[is_pair], weighted[is_pair], n))

    def precision(self, tau: Floats, n: int) -> Any:
        """S = Bᵀ diag(weight τ) B, over n items."""
        t, is_pair = self.weight * tau, self.right >= 0
        i, j, both = self.left[is_pair], self.right[is_pair], t[is_pair]
        S = np.zeros((n, n))
        np.add.at(S, (self.left, self.left), t)
        np.add.at(S, (j, j), both)
        np.add.at(S, (i, j), -both)
        np.add.at(S, (j, i), -both)
        return S
