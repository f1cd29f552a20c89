"""
Likelihoods of graded rows under a Gaussian process f ~ GP(0, k), thresholds between grades, and the evidence.

Ordinal (Chu and Ghahramani, Gaussian processes for ordinal regression, 2005): grade c is observed if
b_{c−1} < f(x) + noise < b_c, noise ~ N(0, sigma²); expectation propagation gives log Z.

Gaussian: y = intercept + amplitude (f(x) + noise). With S = weights/sigma², C = K + S⁻¹, r = (y − intercept)/amplitude,

    log Z = −½ N log 2π sigma² amplitude² − ½ log|I + SK| − ½ (rᵀC⁻¹r + Q/(sigma amplitude)²)

for N observations, y their means over equal rows and Q the sum of squares about these means. The intercept and the
amplitude maximise log Z: 1ᵀC⁻¹y/1ᵀC⁻¹1, and the root of the last bracket divided by N. The result is stored as sites
with known τ and ν.

Thresholds b_1 < ... < b_{r−1} are parametrised by b_1 and the logarithms of the gaps (`free`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from corank.base.kernels.views import View
from corank.data.ranking import RankingData
from corank.models.gp.hyper import Evidence, EvidenceOf, maximise
from corank.models.gp.prior import DistinctRows
from corank.models.gp.propagation import RANK_WHILE_LEARNING, TOLERANCE, Approximation, assemble, resume, root_of
from corank.models.gp.sites import IntervalProbability, Sites

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# initial sigma, in units of f
SIGMA = 0.3
# tolerance of expectation propagation while hyper-parameters are learnt
_TOLERANCE = 1e-5
# lower bound of a learnt sigma, in units of f: with duplicate rows of equal grades it would fall to 0
_MIN_NOISE = 0.01


def thresholds_of(free: Floats) -> Floats:
    """b_1 < ... < b_{r−1} from b_1 and the logarithms of the gaps."""
    return np.asarray(free[0] + np.concatenate([[0.0], np.cumsum(np.exp(free[1:]))]))


def free_of(thresholds: Floats) -> Floats:
    """b_1 and the logarithms of the gaps."""
    return np.concatenate([thresholds[:1], np.log(np.diff(thresholds))])


def free_gradient(free: Floats, gradient: Floats) -> Floats:
    """Gradient in b_1 and the logarithms of the gaps, from the gradient in the thresholds."""
    above = np.cumsum(gradient[::-1])[::-1]
    return np.concatenate([above[:1], np.exp(free[1:]) * above[1:]])


def ends_of(thresholds: Floats) -> tuple[Floats, Floats]:
    """Lower and upper ends of the grades' intervals; the first and the last are infinite."""
    return np.concatenate([[-np.inf], thresholds]), np.concatenate([thresholds, [np.inf]])


def grade_shares(mean: Floats, var: Floats, thresholds: Floats, noise: Floats | float) -> Floats:
    """
    Probability of each grade of f ~ N(mean, var) plus noise, (n, r).

    thresholds (n, r − 1) or (r − 1,), noise (n,) or a number: of each row, or of all.
    """
    inner = np.broadcast_to(thresholds, (len(mean), thresholds.shape[-1]))
    ends = np.full((len(mean), 1), np.inf)
    each = IntervalProbability(
        np.hstack([-ends, inner]), np.hstack([inner, ends]), np.broadcast_to(noise, mean.shape)[:, None]
    )
    shares = each.probability(mean[:, None], var[:, None])
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def chosen_level(shares: Floats, by: str) -> Integers:
    """Index of the most probable grade of each row, or of the median grade."""
    if by == "mode":
        return np.asarray(shares.argmax(axis=1))
    return np.asarray((np.cumsum(shares, axis=1)[:, :-1] < 0.5).sum(axis=1))


def threshold_gradient(codes: Integers, lo_gradient: Floats, hi_gradient: Floats, n_levels: int) -> Floats:
    """Gradient in the thresholds, from the gradient in the ends of the intervals of the grades `codes`."""
    of_hi, of_lo = np.bincount(codes, hi_gradient, n_levels), np.bincount(codes, lo_gradient, n_levels)
    return np.asarray(of_hi[:-1] + of_lo[1:])


def quantile_thresholds(counts: Floats, mean: float, deviation: float) -> Floats:
    """Thresholds for which a normal variable has the observed distribution of grades."""
    counts = np.maximum(counts, 0.5)
    return np.asarray(mean + deviation * special.ndtri(np.cumsum(counts)[:-1] / counts.sum()))


@dataclass(frozen=True, eq=False)
class GradePosterior:
    """
    Posterior and evidence for one kernel, one sigma and one set of thresholds.

    free, free_gradient: the thresholds' parameters, and the gradient of log Z in them; empty for Gaussian grades.
    """

    approximation: Approximation  # the posterior; its log_evidence is log Z
    free: Floats
    free_gradient: Floats
    sigma_gradient: float  # the derivative of log Z in log sigma
    intercept: float = 0.0  # intercept, amplitude: scores are intercept + amplitude f
    amplitude: float = 1.0


@dataclass(eq=False)
class OrdinalGrades:
    """
    Distinct grades of items, with an ordinal likelihood.

    item, code, prior, weight (m,): the item, the index of its grade, its prior score, its number of observations.
    """

    item: Integers
    code: Integers
    prior: Floats
    weight: Floats
    n_levels: int  # number of grades
    sites: tuple[Floats, Floats] | None = None  # τ and ν of the last evaluation, used as a warm start

    @classmethod
    def of(cls, data: RankingData, items: DistinctRows, levels: Floats) -> OrdinalGrades:
        """Collect the grades of scored rows, sorted by item; equal grades of equal rows are merged."""
        rows = data.scored_rows
        assert data.y is not None
        code = np.searchsorted(levels, data.y[rows])
        (item, prior, level), weight = _merged(
            items.of_row[rows], data.prior_of(rows), code, weight=data.weight_of(rows)
        )
        return cls(item.astype(np.int64), level.astype(np.int64), prior, weight, len(levels))

    def start(self, size: float, sigma: float) -> Floats:
        """Initial thresholds for f of standard deviation `size`: they reproduce the observed shares of the grades."""
        counts = np.bincount(self.code, self.weight, self.n_levels).astype(np.float64)
        mean = float(np.average(self.prior, weights=self.weight))
        spread = size**2 + sigma**2 + float(np.average((self.prior - mean) ** 2, weights=self.weight))
        return free_of(quantile_thresholds(counts, mean, np.sqrt(spread)))

    def posterior(
        self, R: Floats, sigma: float, free: Floats, *, tol: float = TOLERANCE, quiet: bool = False
    ) -> GradePosterior:
        """Find the posterior of items with K = R Rᵀ by expectation propagation, with a warm start."""
        lo, hi = ends_of(thresholds_of(free))
        lo, hi = lo[self.code] - self.prior, hi[self.code] - self.prior
        sites = Sites.grades(self.item, lo, hi, sigma**2, self.weight)
        approximation = resume(R, sites, self.sites, tol=tol, quiet=quiet)
        self.sites = (approximation.tau, approximation.nu) if approximation.gap <= tol else None
        of_b = threshold_gradient(self.code, approximation.lo_gradient, approximation.hi_gradient, self.n_levels)
        return GradePosterior(
            approximation, free, free_gradient(free, of_b), 2.0 * sigma**2 * float(approximation.noise_gradient.sum())
        )

    def among(self, chosen: Integers) -> OrdinalGrades:
        """A subset of the grades, with items renumbered in ascending order."""
        _, item = np.unique(self.item[chosen], return_inverse=True)
        return OrdinalGrades(item, self.code[chosen], self.prior[chosen], self.weight[chosen], self.n_levels)


@dataclass(frozen=True, eq=False)
class GaussianGrades:
    """Distinct scores of items, with a Gaussian likelihood."""

    item: Integers  # item, value, weight (m,): the item, its score, its number of observations
    value: Floats
    weight: Floats

    @classmethod
    def of(cls, data: RankingData, items: DistinctRows) -> GaussianGrades:
        """Collect the scores of scored rows minus their prior, sorted by item."""
        rows = data.scored_rows
        assert data.targets is not None
        (item, value), weight = _merged(items.of_row[rows], data.targets[rows], weight=data.weight_of(rows))
        return cls(item.astype(np.int64), value, weight)

    def start(self, size: float, sigma: float) -> Floats:
        """No parameters: intercept and amplitude have closed forms."""
        return np.empty(0)

    def posterior(self, R: Floats, sigma: float, free: Floats, **options: Any) -> GradePosterior:
        """Find the posterior of items with K = R Rᵀ by one linear system; `options` have no effect."""
        n, N, noise = len(R), float(self.weight.sum()), sigma**2
        W = np.asarray(np.bincount(self.item, self.weight, n), dtype=np.float64)
        y = np.bincount(self.item, self.weight * self.value, n) / W
        residual_squares = float(self.weight @ (self.value - y[self.item]) ** 2)
        items, tau = np.arange(n), np.full(n, 1.0 / noise)
        sites = Sites.grades(items, -np.inf, np.inf, noise, W)
        eye = np.eye(R.shape[1])
        _, factor, _ = assemble(R, sites, tau, np.zeros(n), eye)

        def solve_C(v: Floats) -> Floats:
            inner = linalg.cho_solve((factor, True), R.T @ (W * v), check_finite=False)
            return np.asarray(W * (v - R @ inner / noise) / noise)

        of_one = solve_C(np.ones(n))
        intercept = float(of_one @ y / of_one.sum())
        alpha = solve_C(y - intercept)
        amplitude = float(np.sqrt((residual_squares / noise + alpha @ (y - intercept)) / N))
        nu = tau * (y - intercept) / amplitude
        mu, factor, _ = assemble(R, sites, tau, nu, eye)
        volume = 2.0 * float(np.log(np.diagonal(factor)).sum())
        log_z = -0.5 * N * float(np.log(2.0 * np.pi * noise * amplitude**2) + 1.0) - 0.5 * volume
        V = linalg.solve_triangular(factor, R.T, lower=True, check_finite=False)
        # tr C⁻¹W⁻¹, W of the weights, times noise
        rest = n - float(W @ np.sum(V**2, axis=0)) / noise
        in_noise = (residual_squares / noise + noise * float(alpha @ (alpha / W))) / amplitude**2 - N + n - rest
        zeros = np.zeros(n)
        approximation = Approximation(sites, tau, nu, mu, factor, log_z, zeros, zeros, zeros, 1, 0.0)
        return GradePosterior(approximation, free, np.empty(0), in_noise, intercept, amplitude)

    def among(self, chosen: Integers) -> GaussianGrades:
        """A subset of the scores, with items renumbered in ascending order."""
        _, item = np.unique(self.item[chosen], return_inverse=True)
        return GaussianGrades(item, self.value[chosen], self.weight[chosen])


def _merged(*columns: Floats | Integers, weight: Floats) -> tuple[Any, Floats]:
    """Columns of the sorted distinct rows of a table, and the sum of the weights of each row."""
    distinct, inverse = np.unique(np.column_stack(columns).astype(np.float64), axis=0, return_inverse=True)
    return distinct.T, np.asarray(np.bincount(inverse.ravel(), weight, len(distinct)), dtype=np.float64)


Grades = OrdinalGrades | GaussianGrades


def evidence_of(grades: Grades, K: Floats, sigma: float, free: Floats) -> Evidence:
    """The evidence of items with the Gram matrix K, as accurately as learning needs."""
    R, _ = root_of(K, RANK_WHILE_LEARNING)
    result = grades.posterior(R, sigma, free, tol=_TOLERANCE, quiet=True)

    def gram_gradient() -> Floats:
        alpha, M = result.approximation.posterior_weights(R)
        return np.asarray(0.5 * (np.outer(alpha, alpha) - M))

    return Evidence(result.approximation.log_evidence, gram_gradient, result.sigma_gradient, result.free_gradient)


def fit_hyperparameters(
    view: View,
    items: DistinctRows,
    grades: Grades,
    sigma: float | None,
    *,
    max_grades: int | None,
    learn: bool,
    n_restarts: int,
    rng: np.random.Generator,
) -> tuple[View, float, Floats, int]:
    """Maximise the evidence over the kernel's parameters, sigma and the thresholds."""
    item_numbers = np.arange(len(items))
    if max_grades is not None and max_grades < len(grades.item):
        chosen = np.sort(rng.choice(len(grades.item), max_grades, replace=False))
        item_numbers, grades = np.unique(grades.item[chosen]), grades.among(chosen)
    n_theta = len(view.kernel.theta) if learn else 0
    size = float(np.sqrt(np.diagonal(items.gram(view, item_numbers)).mean()))  # of f, the unit of sigma
    first = SIGMA * size if sigma is None else sigma
    of_sigma = [np.log(first)] if sigma is None else []
    theta, calls = np.concatenate([view.kernel.theta[:n_theta], of_sigma, grades.start(size, first)]), 0
    evidence = EvidenceOf(view, n_theta, items, item_numbers, partial(evidence_of, grades), sigma, _MIN_NOISE * size)
    if len(theta):
        theta, _, calls = maximise(evidence, theta, n_restarts, rng)
    return *evidence.parts(theta), calls
