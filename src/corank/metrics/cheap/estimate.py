"""
Correct a cheap judge by few gold queries: estimates of the mean of each system and of each difference, with
intervals.

Notation: S systems, N queries, n of them with gold grades; h_sq and c_sq are the values of a metric by gold and by
cheap grades. A bar is a mean over the n gold queries, C̄_s the mean of c_sq over all N. A value splits into the
level of a query, its mean over systems, and the deviation of the system from it.

**Correction** (PPI++, the regression estimator of survey sampling): θ̂_s = h̄_s + λ (C̄_s − c̄_s). λ is the
least-squares slope of h on c over the gold queries, cut to [0, 1]: one slope for the levels and one for all
deviations, so that a difference of estimates is the estimate of the difference, and a useless judge has λ ≈ 0.

**Noise.** Leaving out gold query q, with λ estimated again, gives θ̂^(q); the pseudo-values u_sq = −(n −
1)(θ̂_s^(q) − mean) contain the cost of estimating λ. For a mean or a difference w, the variance of wᵀθ̂ is (1 −
n/N) s_w²/n with s_w² = Σ_q (wᵀu_q)²/(n − 1): the error for the N listed queries. For queries like these (N draws of
an infinite population), the variance of the mean over the listed queries is added: var_q(wᵀh_q)/N.

**Few queries.** s_w² of 8 queries is unstable, and 0 if both systems have RR 1 everywhere. It is averaged with a
prior guess that counts for some queries (moderated t, Smyth 2004): for a mean, the mean of s² over systems,
`MEAN_PRIOR` queries; for a difference, the mean of s² over all differences times (1 + r_w)/2, `DIFFERENCE_PRIOR`
queries, where r_w is the variance of the cheap judge's difference over all N queries, divided by its mean over
differences: similar systems differ little. With few systems such means are unstable, too: they count S (S − 1 for
differences) times, and `VALUE_PRIOR` times the mean variance of a value, by gold or by cheap grades, whichever is
larger; for differences times the cheap judge's ratio of the variances of differences and of values, at most 1. t has
n − 1 degrees of freedom for means, whose noise is common to all systems, and `DIFFERENCE_PRIOR`/2 more for
differences.

**Shrinkage** (Stein 1956; Efron and Morris 1973). z_s = deviation of (θ̂_s − C̄_s) is the bias of the judge plus
noise of mean square v. With bias variance τ² over systems, the best estimate keeps the share f = τ²/(τ² + v) of the
correction z. With B = 1 − f, the likelihood of |z|² with ν degrees of freedom, v being estimated with n − 1, is
B^(ν/2) (1 + B x/(n − 1))^(−νn/2), x = |z|²/((S − 1) v). The density of B is ∝ B⁻¹ (1 − B)^(1/ν − 1) a priori: much
weight near no bias and a tail as flat as that of Stein's estimator. ν is the mean of S − 1 and (tr V)²/tr(V²), V
the covariance of u: similar systems have the same noise. f is the posterior mean. The interval stays that of θ̂: no
interval that uses f can be shorter and hold its level whatever the bias is (Pratt 1961; Low 1997).

**Several judges** are combined before. With d_sq the deviation of a system's value from the mean over systems, the
weights w ≥ 0, Σ w_j = 1, minimise Σ_{s,q} (d^h_sq − Σ_j w_j d^j_sq)² + κ Σ_j (w_j − 1/J)²: both the noise and the
bias of a judge count against it. κ is the mean eigenvalue of one average query, so that few gold queries give nearly
equal weights. The values of a gold query are combined with weights learnt from the other gold queries
(cross-fitting), those of all other queries with the weights of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError

Floats = NDArray[np.float64]

MIN_GOLD_QUERIES = 5
MEAN_PRIOR, DIFFERENCE_PRIOR, VALUE_PRIOR = 16.0, 8.0, 2.0
"""Numbers of queries for which the prior guess counts in the variance of a mean and of a difference; and the number of
systems for which a guess from the variance of values counts."""
MIN_SHRUNK_SYSTEMS = 4
"""Number of systems from which the bias of a judge over systems is learnt."""
_TINY = 1e-12


class Interval(NamedTuple):
    """An estimate with its standard error, interval, and two-sided p-value of 0."""

    value: float
    low: float
    high: float
    standard_error: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Estimate:
    """
    Estimates of the means of S systems; `interval` gives those of means and differences.

    values (S,): shrunk estimates. unbiased (S,): centres of the intervals. slopes: λ of the levels and of the
    deviations. noise (S, n): pseudo-values u. gold (S, n): human values of the gold queries. cheap (S, N): values
    by the cheap judge; None without one. n_queries: N. these: whether the N queries themselves are meant. kept: f,
    the share of the correction that is kept. bias: posterior root mean square τ of the judge's bias over systems;
    NaN if it is not learnt.
    """

    values: Floats
    unbiased: Floats
    slopes: tuple[float, float]
    noise: Floats
    gold: Floats
    cheap: Floats | None
    n_queries: int
    these: bool
    kept: float = 1.0
    bias: float = float("nan")

    @property
    def n_gold(self) -> int:
        """Number of gold queries."""
        return int(self.gold.shape[1])

    def interval(self, system: int, base: int | None = None, level: float = 0.95) -> Interval:
        """Return the mean of a system, or its difference from another."""
        bases = None if base is None else np.array([base])
        return Interval(*(float(column[0]) for column in self.intervals(np.array([system]), bases, level)))

    def intervals(
        self, systems: NDArray[np.int64], bases: NDArray[np.int64] | None = None, level: float = 0.95
    ) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return the fields of `Interval` for the means of systems, or their differences from others."""
        from scipy.special import stdtr, stdtrit

        df = self.n_gold - 1 + (0.0 if bases is None else DIFFERENCE_PRIOR / 2.0)
        error = np.sqrt(self.variances(systems, bases))
        centre, value = (_contrast(x, systems, bases) for x in (self.unbiased, self.values))
        half = float(stdtrit(df, 0.5 + level / 2.0)) * error
        t = np.divide(np.abs(centre), error, out=np.where(centre == 0.0, 0.0, np.inf), where=error > 0.0)
        # a shrunk value of a difference with little noise can lie outside; the interval then reaches to it
        return value, np.minimum(centre - half, value), np.maximum(centre + half, value), error, 2.0 * stdtr(df, -t)

    def variances(self, systems: NDArray[np.int64], bases: NDArray[np.int64] | None = None) -> Floats:
        """Return the variances of the errors of means or differences."""
        sampled = self._moderated(self.noise, systems, bases) * (1.0 / self.n_gold - 1.0 / self.n_queries)
        if self.these:
            return sampled
        return np.asarray(sampled + self._moderated(self.gold, systems, bases) / self.n_queries)

    def mean_variance(self) -> float:
        """Return the mean over all differences (the mean of a single system) of the variance of the error."""
        noise, gold = (_pooled(x, len(self.values) > 1) for x in (self.noise, self.gold))
        return noise * (1.0 / self.n_gold - 1.0 / self.n_queries) + (0.0 if self.these else gold / self.n_queries)

    def _moderated(self, x: Floats, systems: NDArray[np.int64], bases: NDArray[np.int64] | None) -> Floats:
        n = x.shape[1]
        own = np.var(_contrast(x, systems, bases), axis=1, ddof=1)
        weight = MEAN_PRIOR if bases is None else DIFFERENCE_PRIOR
        mean, spread = (0.0, 0.0) if self.cheap is None else (_pooled(self.cheap, True), _pooled(self.cheap, False))
        level = max(_pooled(x, False), spread)
        if bases is None:
            guess = np.full(len(systems), (len(x) * _pooled(x, False) + VALUE_PRIOR * level) / (len(x) + VALUE_PRIOR))
        else:
            level *= min(1.0, mean / spread) if mean > _TINY else 1.0
            guess = np.full(len(systems), (len(x) - 1) * _pooled(x, True) + VALUE_PRIOR * level)
            guess /= len(x) - 1 + VALUE_PRIOR
            if self.cheap is not None and mean > _TINY:
                guess *= (1.0 + np.var(_contrast(self.cheap, systems, bases), axis=1, ddof=1) / mean) / 2.0
        return np.asarray((weight * guess + (n - 1) * own) / (weight + n - 1))


def _contrast(x: Floats, systems: NDArray[np.int64], bases: NDArray[np.int64] | None) -> Floats:
    return x[systems] if bases is None else np.asarray(x[systems] - x[bases])


def _pooled(x: Floats, differences: bool) -> float:
    """Return the mean variance over all rows or over all differences of two rows: 2/(S − 1) Σ_s var(x_s − x̄)."""
    if not differences or len(x) < 2:
        return float(np.mean(np.var(x, axis=1, ddof=1)))
    return 2.0 * float(np.var(x - x.mean(axis=0), axis=1, ddof=1).sum()) / (len(x) - 1)


def human_only(gold: Floats, n_queries: int, *, these: bool = False) -> Estimate:
    """Estimate the means of systems by gold queries alone."""
    _check(gold)
    means = gold.mean(axis=1)
    return Estimate(means, means, (0.0, 0.0), gold - means[:, None], gold, None, n_queries, these)


def corrected(gold: Floats, cheap: Floats, queries: NDArray[np.int64], *, these: bool = False) -> Estimate:
    """
    Estimate the means of systems by gold queries and a cheap judge.

    gold (S, n): values by gold grades. cheap (S, N): values by cheap grades. queries (n,): the gold queries among
    the N.
    """
    _check(gold)
    known, C = cheap[:, queries], cheap.mean(axis=1)
    levels = _Part.of(gold.mean(axis=0)[None], known.mean(axis=0)[None], C.mean(keepdims=True))
    deviations = _Part.of(gold - gold.mean(axis=0), known - known.mean(axis=0), C - C.mean())
    z = deviations.estimate - (C - C.mean())
    kept, bias = _kept_share(z, deviations.noise, cheap.shape[1])
    unbiased = levels.estimate + deviations.estimate
    slopes, noise = (levels.slope, deviations.slope), levels.noise + deviations.noise
    return Estimate(
        unbiased - (1.0 - kept) * z, unbiased, slopes, noise, gold, cheap, cheap.shape[1], these, kept, bias
    )


class _Part(NamedTuple):
    """Regression estimate of levels or deviations, and its jackknife pseudo-values."""

    estimate: Floats
    noise: Floats
    slope: float

    @classmethod
    def of(cls, h: Floats, c: Floats, everywhere: Floats) -> _Part:
        n = h.shape[1]
        mean_h, mean_c = h.mean(axis=1, keepdims=True), c.mean(axis=1, keepdims=True)
        x, y = c - mean_c, h - mean_h
        xx, xy = (x * x).sum(axis=0), (x * y).sum(axis=0)
        slope = _slope(xy.sum(), xx.sum())
        # without query q, Σ (c − c̄)² falls by n/(n − 1) (c_q − c̄)²
        slopes = _slope(xy.sum() - n / (n - 1) * xy, xx.sum() - n / (n - 1) * xx)
        left_h, left_c = ((n * mean - item) / (n - 1) for mean, item in ((mean_h, h), (mean_c, c)))
        left_out = left_h + slopes * (everywhere[:, None] - left_c)
        noise = -(n - 1) * (left_out - left_out.mean(axis=1, keepdims=True))
        return cls(mean_h[:, 0] + float(slope) * (everywhere - mean_c[:, 0]), noise, float(slope))


def _slope(xy: Floats, xx: Floats) -> Floats:
    return np.clip(np.divide(xy, xx, out=np.zeros_like(xy), where=xx > _TINY), 0.0, 1.0)


def _kept_share(z: Floats, noise: Floats, n_queries: int) -> tuple[float, float]:
    """Return the posterior means of f = τ²/(τ² + v) and, as its root, of τ²."""
    S, n = noise.shape
    gram = noise.T @ noise / (n - 1)
    trace = float(np.trace(gram))
    v = trace / (S - 1) / n * (1.0 - n / n_queries) if S > 1 else 0.0
    if S < MIN_SHRUNK_SYSTEMS or v <= _TINY**2:
        return 1.0, float("nan")
    # an unbiased estimate of tr(V²) from n queries of a normal distribution
    squares = (float((gram * gram).sum()) - trace**2 / (n - 1)) * (n - 1) ** 2 / ((n - 2) * (n + 1))
    nu = (S - 1 + trace**2 / max(squares, trace**2 / (S - 1))) / 2.0
    t = np.geomspace(1e-3, 1e4, 141)  # τ²/v, on a grid of equal steps of log t: dB = t B² dlog t
    B = 1.0 / (1.0 + t)
    x = float(z @ z) / ((S - 1) * v)
    log = -np.log(B) + (1.0 / nu - 1.0) * np.log1p(-B) + np.log(t * B * B)
    log += nu / 2.0 * np.log(B) - nu * n / 2.0 * np.log1p(x * B / (n - 1))
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    return float(weights @ (1.0 - B)), float(np.sqrt(weights @ np.minimum(t, 1e2) * v))


def _check(gold: Floats) -> None:
    if gold.shape[1] < MIN_GOLD_QUERIES:
        raise InputError(
            f"{gold.shape[1]} queries have gold grades; grade at least {MIN_GOLD_QUERIES} queries, drawn at random."
        )


def stack(gold: Floats, cheap: Floats, queries: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """
    Return the values of the combined judge, shape (S, N), and the weights of the judges.

    gold (S, n): values by gold grades. cheap (J, S, N): values by each judge. queries (n,): the gold queries among
    the N.
    """
    J = len(cheap)
    if J == 1:
        return cheap[0], np.ones(1)
    d = cheap[:, :, queries] - cheap[:, :, queries].mean(axis=1, keepdims=True)
    h = gold - gold.mean(axis=0)
    A, b = np.einsum("jsq,ksq->qjk", d, d), np.einsum("jsq,sq->qj", d, h)
    total, target = A.sum(axis=0), b.sum(axis=0)
    kappa = float(np.trace(total)) / J / len(A)
    weights = simplex_weights(total, target, kappa)
    combined = np.einsum("j,jsq->sq", weights, cheap)
    for i, query in enumerate(queries.tolist()):
        left_out = simplex_weights(total - A[i], target - b[i], kappa)
        combined[:, query] = np.einsum("j,js->s", left_out, cheap[:, :, query])
    return combined, weights


def simplex_weights(A: Floats, b: Floats, kappa: float) -> Floats:
    """Minimise wᵀAw − 2 bᵀw + κ |w − 1/J|² over w ≥ 0, Σ w = 1, leaving out negative weights in turn."""
    J = len(b)
    H, g = A + kappa * np.eye(J), b + kappa / J
    free = np.ones(J, dtype=bool)
    while True:
        k = int(free.sum())
        # stationarity with the multiplier of Σ w = 1
        system = np.zeros((k + 1, k + 1))
        system[:k, :k], system[k, :k], system[:k, k] = H[np.ix_(free, free)], 1.0, 1.0
        w = np.zeros(J)
        w[free] = np.linalg.lstsq(system, np.append(g[free], 1.0), rcond=None)[0][:k]
        if (w >= -1e-12).all():
            w = np.maximum(w, 0.0)
            return np.asarray(w / w.sum())
        free[int(np.argmin(w))] = False
