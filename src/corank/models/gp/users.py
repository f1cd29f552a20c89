"""
Population: the prior of all users, f_j ~ N(mean, s_j Σ), learnt from their ratings by expectation maximisation.

s_j is the scale of user j, 1 for grades. E-step: the posterior of user j, who rated the items J, is given by α_j and
M_j over J, see below:

    f̂_j = mean + Σ_{·J} α_j,    Σ̂_j = s_j (Σ − Σ_{·J} M_j Σ_{J·}).

So the sums a = Σ_j α_j/s_j and G = Σ_j (α_jα_jᵀ/s_j − M_j) over users suffice: O(k³) per user with k ratings, not O(N²)
for N items. M-step (eq. 3 for s_j = 1; Yu, Tresp and Schwaighofer, 2005, with a normal-inverse-Wishart prior that
counts as w users), W = Σ_j 1/s_j, k̄ the mean number of ratings of a user:

    mean' = (w mean_0 + Σ_j f̂_j/s_j)/(w + W)
    Σ'    = [w (mean' − mean_0)(mean' − mean_0)ᵀ + w Σ_0 + Σ_j ((f̂_j − mean')(f̂_j − mean')ᵀ + Σ̂_j)/s_j]/(w + n)
    noise' = [w k̄ noise_0 + Σ_j E|y_j − f_j|²/s_j]/[(w + n) k̄]

in one product of N × N matrices. For Gaussian ratings, no iteration decreases Σ_j [log P(y_j) + log P(s_j)] −
w/2 [log|Σ| + tr(Σ_0 Σ⁻¹) + (mean − mean_0)ᵀ Σ⁻¹ (mean − mean_0) + k̄ (log noise + noise_0/noise)].

Likelihoods of one user's ratings under f ~ N(mean, s Σ), the thresholds of each user, and the E-step over all users.

With any likelihood, ratings become sites exp(−½ τ g² + ν g) of g = f − mean at the rated items J, which give α and M:
with C = Σ_JJ + diag(1/τ), M = C⁻¹ and α = M (ν/τ).

Users differ in the width of the scale they use. Gaussian ratings have a scale s per user, y ~ N(mean_J, s C) with
C = Σ_JJ + noise I, whose prior counts as ν = 10 ratings of scale 1: log P(s) = −½ ν (log s + 1/s), a scaled inverse χ²
distribution. With q = (y − mean_J)ᵀ C⁻¹ (y − mean_J) for k ratings, log P(y) + log P(s) is largest at

    s = (ν + q)/(ν + k).

Grades have thresholds per user instead: θ = (b_1, logarithms of the gaps) with the prior N(mean, diag(var)), so users
with few ratings, or without some grade, get the thresholds of the others. They maximise Σ_k log Z_k(θ) + log N(θ), Z_k
the probability of rating k under the user's posterior without it. At a joint fixed point of thresholds and sites, the
gradient of this sum is the gradient of the evidence.

The paper has s = 1 (`has_scales=False`), and thresholds and a noise per user without a prior (`is_free=True`): those
maximise Σ_k log Z_k(θ, noise) alone, inside a box, as a user without some grade has no finite maximum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from corank.core.models.sites import interval_moments
from corank.core.threads import add_up, cut, n_threads
from corank.errors import InputError
from corank.fitted import Part, Relations, Shapes
from corank.models.gp.grades import (
    ends_of,
    free_gradient,
    free_of,
    quantile_thresholds,
    threshold_gradient,
    thresholds_of,
)
from corank.models.gp.propagation import resume, root_of
from corank.models.gp.sites import NOISES, Sites

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# share of the mean variance added to the diagonal before solving
_JITTER = 1e-10


# initial and smallest standard deviation of the thresholds' prior
_START, _MIN_STD = 0.5, 0.05
# bound on a user's thresholds, in standard deviations of the prior; if they are free, the distance from the mean of all
# users, also of the logarithm of the noise
_REACH, _BOX = 8.0, 4.0
# step of finite differences of the gradient
_STEP = 1e-4
# tolerance of expectation propagation
_TOLERANCE = 1e-6
# fixed number of parts for sums over users, so that the result does not depend on the number of threads
_PARTS = 8
# alternations of thresholds and sites, and the change of thresholds at which they end
_TURNS, _STILL = 20, 1e-3
# ν: number of ratings that the prior of a user's scale counts as
_SCALE_WEIGHT = 10.0


@dataclass(frozen=True, eq=False)
class Population:
    """The prior of f over N items for a user with s_j = 1."""

    mean: Floats  # mean (N,), covariance (N, N): of f
    covariance: Floats
    noise: float  # variance of a rating about f

    def among(self, items: Integers) -> Population:
        """The prior of some items."""
        return Population(self.mean[items], self.covariance[np.ix_(items, items)], self.noise)

    def widened(self, factor: float) -> Population:
        """The same distribution with every s_j divided by a factor."""
        return Population(self.mean, factor * self.covariance, factor * self.noise)

    def extended(self, first: Population, items: Integers) -> Population:
        """Extend to all items: these are `items`; the others, given these, keep their initial distribution."""
        n = len(first.mean)
        if len(items) == n:
            return self
        others = np.setdiff1d(np.arange(n), items)
        S, across = first.covariance, first.covariance[np.ix_(items, others)]
        C = coefficients(S[np.ix_(items, items)], across)
        mean, covariance = np.empty(n), np.empty((n, n))
        mean[items], mean[others] = self.mean, first.mean[others] + C.T @ (self.mean - first.mean[items])
        between = self.covariance @ C
        covariance[np.ix_(items, items)], covariance[np.ix_(items, others)] = self.covariance, between
        covariance[np.ix_(others, items)] = between.T
        rest = S[np.ix_(others, others)] - across.T @ C + C.T @ between
        covariance[np.ix_(others, others)] = 0.5 * (rest + rest.T)
        return Population(mean, covariance, self.noise)

    def m_step(self, totals: Totals, first: Population, weight: float) -> Population:
        """The M-step."""
        n, W, S = totals.n_users, totals.weight, self.covariance
        moved = S @ totals.a
        mean = (weight * first.mean + W * self.mean + moved) / (weight + W)
        d, away = mean - self.mean, mean - first.mean
        total = n * S + S @ totals.G @ S - np.outer(moved, d) - np.outer(d, moved) + W * np.outer(d, d)
        if weight > 0.0:
            total += weight * (first.covariance + np.outer(away, away))
        covariance = 0.5 * (total + total.T) / (weight + n)
        noise = self.noise
        if totals.noise is not None:
            noise = (weight * first.noise + totals.noise * n / totals.n_ratings) / (weight + n)
        return Population(mean, covariance, noise)


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over users."""

    a: Floats  # a (N,), G (N, N): Σ α_j/s_j, and Σ α_jα_jᵀ/s_j − M_j
    G: Floats
    weight: float  # Σ 1/s_j
    log_evidence: float  # Σ log P(y_j)
    n_users: int
    n_ratings: int
    noise: float | None  # Σ E|y_j − f_j|²/s_j; None if the noise is not learnt

    def __add__(self, other: Totals) -> Totals:
        noise = None if self.noise is None or other.noise is None else self.noise + other.noise
        return Totals(
            self.a + other.a, self.G + other.G, self.weight + other.weight, self.log_evidence + other.log_evidence,
            self.n_users + other.n_users, self.n_ratings + other.n_ratings, noise,
        )  # fmt: skip


def coefficients(covariance: Floats, across: Floats) -> Floats:
    """Regression coefficients C with E(g | f) = Cᵀf."""
    jitter = _JITTER * float(np.diagonal(covariance).mean())
    return np.asarray(linalg.solve(covariance + jitter * np.eye(len(covariance)), across, assume_a="pos"))


@dataclass(frozen=True, eq=False)
class ThresholdPrior(Part):
    """The prior of users' thresholds."""

    _shapes: ClassVar[Shapes] = {"mean": ("thresholds",), "var": ("thresholds",)}
    _relations: ClassVar[Relations] = {"var is positive": lambda p: (p.var > 0.0).all()}

    mean: Floats  # mean, var (r − 1,): of b_1 and the logarithms of the gaps
    var: Floats

    @classmethod
    def start(cls, counts: Floats, deviation: float) -> ThresholdPrior:
        """Start from thresholds that reproduce the observed shares of the grades."""
        mean = free_of(quantile_thresholds(counts, 0.0, deviation))
        return cls(mean, np.full(len(mean), _START**2))

    def fitted(self, free: Floats, codes: Integers, means: Floats, variances: Floats) -> Floats:
        """Find the thresholds of one user that maximise the posterior."""
        return _minimise(self._loss, free, self.mean, _REACH * np.sqrt(self.var), (codes, means, variances))

    def posterior_var(self, free: Floats, codes: Integers, means: Floats, variances: Floats) -> Floats:
        """Posterior variance of a user's thresholds, from the curvature at `free`."""
        k = len(free)
        steps = _STEP * np.eye(k)
        ratings = codes, means, variances
        differences = [self._loss(free + s, *ratings)[1] - self._loss(free - s, *ratings)[1] for s in steps]
        H = np.array(differences) / (2.0 * _STEP)
        try:
            values, U = np.linalg.eigh(0.5 * (H + H.T))
        except np.linalg.LinAlgError as error:
            raise InputError("the thresholds of a user overflow; check the ratings and fit again.") from error
        # the posterior variance is at most that of the prior
        return np.asarray(np.minimum(np.sum(U**2 / np.maximum(values, 1.0 / self.var.max()), axis=1), self.var))

    def updated(self, free: Floats, variances: Floats) -> ThresholdPrior:
        """The M-step, from the thresholds (n_users, r − 1) of all users and their variances."""
        mean = free.mean(axis=0)
        return ThresholdPrior(mean, np.maximum(((free - mean) ** 2 + variances).mean(axis=0), _MIN_STD**2))

    def _loss(self, free: Floats, codes: Integers, means: Floats, variances: Floats) -> tuple[float, Floats]:
        log_z, gradient, _ = _log_z(free, codes, means, variances)
        away = (free - self.mean) / self.var
        return 0.5 * float(away @ (free - self.mean)) - log_z, away - gradient


def _log_z(free: Floats, codes: Integers, means: Floats, variances: Floats) -> tuple[float, Floats, float]:
    """Σ_k log Z_k, its gradient in the thresholds' parameters, and its derivative in a variance added to all."""
    lo, hi = ends_of(thresholds_of(free))
    out = np.empty((len(codes), 6))
    interval_moments(means, variances, np.zeros(len(codes)), lo[codes], hi[codes], *NOISES["probit"], out)
    of_b = threshold_gradient(codes, out[:, 3], out[:, 4], len(lo))
    return float(out[:, 0].sum()), free_gradient(free, of_b), float(out[:, 2].sum())


def _free_loss(theta: Floats, codes: Integers, means: Floats, variances: Floats) -> tuple[float, Floats]:
    """−Σ_k log Z_k and its gradient in (b_1, logarithms of the gaps, logarithm of the noise)."""
    noise = float(np.exp(theta[-1]))
    log_z, of_free, of_var = _log_z(theta[:-1], codes, means, variances + noise)
    return -log_z, -np.append(of_free, noise * of_var)


def _minimise(loss: Any, start: Floats, centre: Floats, reach: Floats | float, ratings: tuple[Any, ...]) -> Floats:
    """Minimise a loss with its gradient in the box centre ± reach."""
    low, high = centre - reach, centre + reach
    solution = optimize.minimize(
        loss, np.clip(start, low, high), ratings, jac=True, method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)), options={"ftol": 1e-10, "gtol": 1e-4},
    )  # fmt: skip
    return np.asarray(solution.x)


@dataclass(frozen=True, eq=False)
class UserFit:
    """The posterior of one user."""

    alpha: Floats  # alpha (k,), M (k, k): over the rated items; see `corank.models.gp.users`
    M: Floats
    tau: Floats  # tau, nu (k,): natural parameters of the sites
    nu: Floats
    log_evidence: float  # log P(ratings)
    scale: float = 1.0  # s, the factor of the user's variances
    noise: float | None = None  # e|y − f|²/s; None if the noise is not learnt
    free: Floats | None = None  # the user's thresholds; None without thresholds
    threshold_var: Floats | None = None  # variance of the thresholds; None if they are free
    own_noise: float | None = None  # the user's variance of the noise; None if it is that of all users


@dataclass(frozen=True, eq=False)
class GaussianLikelihood:
    """Ratings y = f + noise."""

    has_scales: bool = True  # whether each user has a scale; otherwise s = 1 (CGPR of the paper)

    def fit(self, population: Population, items: Integers, y: Floats, _: UserFit | None = None) -> UserFit:
        """Find the posterior by one linear system."""
        noise, k, r = population.noise, len(items), y - population.mean[items]
        C = population.covariance[np.ix_(items, items)] + noise * np.eye(k)
        L = linalg.cholesky(C, lower=True, check_finite=False)
        lower, _ = linalg.lapack.dpotri(L, lower=1)
        M = np.tril(lower) + np.tril(lower, -1).T
        alpha = M @ r
        q = float(r @ alpha)
        scale = (_SCALE_WEIGHT + q) / (_SCALE_WEIGHT + k) if self.has_scales else 1.0
        log_z = -0.5 * q / scale - float(np.log(np.diagonal(L)).sum()) - 0.5 * k * np.log(2.0 * np.pi * scale)
        # y − f̂ = noise α, and Σ̂_JJ = s (noise I − noise² M)
        squares = float(noise**2 * (alpha @ alpha / scale - np.trace(M)) + noise * k)
        tau = np.full(k, 1.0 / noise)
        return UserFit(alpha, M, tau, tau * r, log_z, scale, squares)

    def converge(self, population: Population, items: Integers, y: Floats, _: UserFit | None = None) -> UserFit:
        """Same as `fit`, which is exact."""
        return self.fit(population, items, y)

    def updated(self, users: list[UserFit]) -> GaussianLikelihood:
        """The M-step: no parameters."""
        return self


@dataclass(frozen=True, eq=False)
class OrdinalLikelihood:
    """
    Grades between each user's thresholds, with noise.

    is_free: whether thresholds and noise of each user maximise the likelihood, without a prior (CGPOR of the paper).
    """

    threshold_prior: ThresholdPrior  # of all users' thresholds
    is_free: bool = False

    def fit(self, population: Population, items: Integers, codes: Floats, last: UserFit | None = None) -> UserFit:
        """Run expectation propagation, starting from `last`, and then update the thresholds once."""
        grades, prior = codes.astype(np.int64), self.threshold_prior
        free = prior.mean if last is None or last.free is None else last.free
        noise = population.noise if last is None or last.own_noise is None else last.own_noise
        mean = population.mean[items]
        lo, hi = (ends[grades] - mean for ends in ends_of(thresholds_of(free)))
        sites = Sites.grades(np.arange(len(items)), lo, hi, noise)
        R, _ = root_of(population.covariance[np.ix_(items, items)])
        start = None if last is None else (last.tau, last.nu)
        approximation = resume(R, sites, start, tol=_TOLERANCE)
        alpha, M = approximation.posterior_weights(R)
        # cavity: mean and variance of g without the site itself
        c, means = np.sum(approximation.features(R) ** 2, axis=1), R @ approximation.mu
        rest = np.maximum(1.0 - approximation.tau * c, 1e-8)
        cavity_mean, cavity_var = mean + (means - c * approximation.nu) / rest, c / rest
        fit = UserFit(alpha, M, approximation.tau, approximation.nu, approximation.log_evidence)
        if self.is_free:
            centre, now = np.append(prior.mean, np.log(population.noise)), np.append(free, np.log(noise))
            theta = _minimise(_free_loss, now, centre, _BOX, (grades, cavity_mean, cavity_var))
            return replace(fit, free=theta[:-1], own_noise=float(np.exp(theta[-1])))
        cavity = grades, cavity_mean, cavity_var + noise
        moved = prior.fitted(free, *cavity)
        return replace(fit, free=moved, threshold_var=prior.posterior_var(moved, *cavity))

    def converge(self, population: Population, items: Integers, codes: Floats, last: UserFit | None = None) -> UserFit:
        """Alternate sites and thresholds until they converge, starting from `last`."""
        last = self.fit(population, items, codes, last)
        for _ in range(_TURNS):
            user = self.fit(population, items, codes, last)
            assert user.free is not None
            assert last.free is not None
            if np.abs(user.free - last.free).max() < _STILL:
                # the thresholds and the noise under which the sites were found
                return replace(user, free=last.free, own_noise=last.own_noise)
            last = user
        return last

    def updated(self, users: list[UserFit]) -> OrdinalLikelihood:
        """The M-step: update the prior of the thresholds; only its mean, where the search starts, if they are free."""
        free = np.array([user.free for user in users])
        if self.is_free:
            return replace(self, threshold_prior=replace(self.threshold_prior, mean=free.mean(axis=0)))
        return OrdinalLikelihood(self.threshold_prior.updated(free, np.array([user.threshold_var for user in users])))


UserLikelihood = GaussianLikelihood | OrdinalLikelihood


def e_step(
    likelihood: UserLikelihood, population: Population, ratings: Any, last: list[UserFit] | None, n_jobs: int | None
) -> tuple[list[UserFit], Totals]:
    """Find the posteriors of all users, in threads, and add up their statistics."""
    n_users, n_items = ratings.shape
    users: list[Any] = [None] * n_users
    starts = ratings.indptr.astype(np.int64)

    def fit_part(first: int, stop: int) -> Totals:
        a, G, weight, log_z, noise = np.zeros(n_items), np.zeros((n_items, n_items)), 0.0, 0.0, 0.0
        for user in range(first, stop):
            items, y = row_of(ratings, user)
            fit = likelihood.fit(population, items, y, None if last is None else last[user])
            users[user] = replace(fit, M=fit.M[:0])  # M is large and not needed later
            of_mean = fit.alpha / fit.scale
            a[items] += of_mean
            G[np.ix_(items, items)] += np.outer(fit.alpha, of_mean) - fit.M
            weight += 1.0 / fit.scale
            log_z += fit.log_evidence
            noise += fit.noise or 0.0
        is_gaussian = isinstance(likelihood, GaussianLikelihood)
        n_ratings = int(starts[stop] - starts[first])
        return Totals(a, G, weight, log_z, stop - first, n_ratings, noise if is_gaussian else None)

    return users, add_up(fit_part, cut(starts, _PARTS), n_threads(n_jobs or 1))


def row_of(ratings: Any, user: int) -> tuple[Integers, Floats]:
    """Items and ratings of one user."""
    part = slice(ratings.indptr[user], ratings.indptr[user + 1])
    return ratings.indices[part].astype(np.int64), ratings.data[part]
