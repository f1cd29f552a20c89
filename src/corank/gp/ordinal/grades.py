"""
Grades: scores of single rows, as a Gaussian process f ~ GP(0, k) sees them, and the evidence for what they leave open.

Ordinal (Chu and Ghahramani, Gaussian processes for ordinal regression, 2005): grade c was seen where
b_{c−1} < f(x) + noise < b_c, noise ~ N(0, sigma²); log Z by expectation propagation, in the thresholds b and sigma.

Gaussian: y = intercept + amplitude (f(x) + noise). With S = weights/sigma², C = K + S⁻¹, r = (y − intercept)/amplitude,

    log Z = −½ N log 2π sigma² amplitude² − ½ log|I + SK| − ½ (rᵀC⁻¹r + Q/(sigma amplitude)²)

for N observations, y their means over equal rows and Q the squares that are left about these. intercept and amplitude
are where it is largest: 1ᵀC⁻¹y/1ᵀC⁻¹1, and the root of the last bracket's mean. The Gaussian is the limit of many
grades; it is held as sites of expectation propagation that are known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from corank.data.problem.ranking import RankingData
from corank.gp.ep.items import Items
from corank.gp.ep.propagation import TOLERANCE, Approximation, propagate
from corank.gp.ep.sites import Sites
from corank.gp.ep.sweeps import assemble
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

# where learning sigma starts, in units of f
SIGMA = 0.3


@dataclass(frozen=True, eq=False)
class Reading:
    """
    What grades say under one kernel, one sigma and one choice of what else is free.

    approximation: the posterior, whose log_evidence is log Z.
    free, free_slopes: what the likelihood leaves open besides sigma, and the slopes of log Z in it.
    sigma_slope: the slope of log Z in log sigma.
    intercept, amplitude: what turns f into a score.
    """

    approximation: Approximation
    free: Floats
    free_slopes: Floats
    sigma_slope: float
    intercept: float = 0.0
    amplitude: float = 1.0

    def pull(self, R: Floats) -> Floats:
        """∂ log Z/∂K over the items."""
        alpha, M = self.approximation.pull(R)
        return np.asarray(0.5 * (np.outer(alpha, alpha) - M))


@dataclass(eq=False)
class OrdinalGrades:
    """
    Different grades.

    item, code, prior, weight (m,): the item, the number of its grade, what is known of it before, how often seen.
    n_levels: number of grades.
    sites: what sites became for the numbers before, from which they start again.
    """

    item: Integers
    code: Integers
    prior: Floats
    weight: Floats
    n_levels: int
    sites: tuple[Floats, Floats] | None = None

    @classmethod
    def of(cls, data: RankingData, items: Items, levels: Floats) -> OrdinalGrades:
        """Gather the grades of scored rows; equal ones of equal rows are one, in the order of the items."""
        rows = data.scored_rows
        assert data.y is not None
        code = np.searchsorted(levels, data.y[rows])
        (item, prior, level), weight = _merged(
            items.of_row[rows], data.prior_of(rows), code, weight=data.weight_of(rows)
        )
        return cls(item.astype(np.int64), level.astype(np.int64), prior, weight, len(levels))

    def start(self, size: float, sigma: float) -> Floats:
        """Where learning of thresholds starts, for f of deviation `size`: they give the grades in their shares."""
        counts = np.bincount(self.code, self.weight, self.n_levels).astype(np.float64)
        mean = float(np.average(self.prior, weights=self.weight))
        spread = size**2 + sigma**2 + float(np.average((self.prior - mean) ** 2, weights=self.weight))
        return free_of(quantile_thresholds(counts, mean, np.sqrt(spread)))

    def read(self, R: Floats, sigma: float, free: Floats, *, tol: float = TOLERANCE, quiet: bool = False) -> Reading:
        """Find the posterior of items with K = R Rᵀ by expectation propagation, which goes on from where it was."""
        lo, hi = ends_of(thresholds_of(free))
        lo, hi = lo[self.code] - self.prior, hi[self.code] - self.prior
        sites = Sites.grades(self.item, lo, hi, sigma**2, self.weight)
        found = propagate(R, sites, start=self.sites, tol=tol, quiet=True)
        if found.gap > tol:
            found = propagate(R, sites, tol=tol, quiet=quiet)
        self.sites = (found.tau, found.nu) if found.gap <= tol else None
        of_b = threshold_slopes(self.code, found.lo_slope, found.hi_slope, self.n_levels)
        return Reading(found, free, free_slopes(free, of_b), 2.0 * sigma**2 * float(found.noise_slope.sum()))

    def among(self, at: Integers) -> OrdinalGrades:
        """Some of the grades, of items that are numbered anew, ascending."""
        _, item = np.unique(self.item[at], return_inverse=True)
        return replace(self, item=item, code=self.code[at], prior=self.prior[at], weight=self.weight[at], sites=None)


@dataclass(frozen=True, eq=False)
class GaussianGrades:
    """
    Different scores.

    item, value, weight (m,): the item, its score, how often it was seen.
    """

    item: Integers
    value: Floats
    weight: Floats

    @classmethod
    def of(cls, data: RankingData, items: Items) -> GaussianGrades:
        """Gather the scores of scored rows, less what is known of them, in the order of the items."""
        rows = data.scored_rows
        assert data.targets is not None
        (item, value), weight = _merged(items.of_row[rows], data.targets[rows], weight=data.weight_of(rows))
        return cls(item.astype(np.int64), value, weight)

    def start(self, size: float, sigma: float) -> Floats:
        """Nothing: intercept and amplitude are found with the posterior."""
        return np.empty(0)

    def read(self, R: Floats, sigma: float, free: Floats, **how: Any) -> Reading:
        """Find the posterior of items with K = R Rᵀ by one linear system; there is nothing to say about how."""
        n, N, noise = len(R), float(self.weight.sum()), sigma**2
        W = np.asarray(np.bincount(self.item, self.weight, n), dtype=np.float64)
        y = np.bincount(self.item, self.weight * self.value, n) / W
        about = float(self.weight @ (self.value - y[self.item]) ** 2)
        items, tau = np.arange(n), np.full(n, 1.0 / noise)
        sites = Sites.grades(items, -np.inf, np.inf, noise, W)
        eye = np.eye(R.shape[1])
        _, factor, _ = assemble(R, sites, tau, np.zeros(n), eye)

        def under_C(v: Floats) -> Floats:
            inner = linalg.cho_solve((factor, True), R.T @ (W * v), check_finite=False)
            return np.asarray(W * (v - R @ inner / noise) / noise)

        of_one = under_C(np.ones(n))
        intercept = float(of_one @ y / of_one.sum())
        alpha = under_C(y - intercept)
        amplitude = float(np.sqrt((about / noise + alpha @ (y - intercept)) / N))
        nu = tau * (y - intercept) / amplitude
        mu, factor, _ = assemble(R, sites, tau, nu, eye)
        volume = 2.0 * float(np.log(np.diagonal(factor)).sum())
        log_z = -0.5 * N * float(np.log(2.0 * np.pi * noise * amplitude**2) + 1.0) - 0.5 * volume
        V = linalg.solve_triangular(factor, R.T, lower=True, check_finite=False)
        # tr C⁻¹W⁻¹, W of the weights, times noise
        rest = n - float(W @ np.sum(V**2, axis=0)) / noise
        in_noise = (about / noise + noise * float(alpha @ (alpha / W))) / amplitude**2 - N + n - rest
        zeros = np.zeros(n)
        found = Approximation(sites, tau, nu, mu, factor, log_z, zeros, zeros, zeros, 1, 0.0)
        return Reading(found, free, np.empty(0), in_noise, intercept, amplitude)

    def among(self, at: Integers) -> GaussianGrades:
        """Some of the scores, of items that are numbered anew, ascending."""
        _, item = np.unique(self.item[at], return_inverse=True)
        return GaussianGrades(item, self.value[at], self.weight[at])


Grades = OrdinalGrades | GaussianGrades


def _merged(*columns: Floats | Integers, weight: Floats) -> tuple[Any, Floats]:
    """The different rows of a table, in order, column by column; and the sum of the weights of each."""
    kinds, at = np.unique(np.column_stack(columns).astype(np.float64), axis=0, return_inverse=True)
    return kinds.T, np.asarray(np.bincount(at.ravel(), weight, len(kinds)), dtype=np.float64)
