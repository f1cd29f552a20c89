"""
Expectation propagation: a Gaussian approximation of a posterior whose sites are intervals of linear functionals.

    p(f) Π_k P(lo_k < b_kᵀf + noise_k < hi_k)^weight_k,  f = R w,  w ~ N(0, Λ0⁻¹)

with b_k = e_left − e_right (a preference) or e_left (a grade of one item). Each site is exp(−½ τ g² + ν g) of the
scalar g = bᵀf: the 2 × 2 matrices of the paper have rank one and are never built. The posterior of w has the precision
Λ = Λ0 + RᵀSR, S = Bᵀ diag(weight τ) B. Λ is never below Λ0, so its Cholesky factor exists even for duplicate rows.

A sweep updates all sites with one Cholesky factor, O(n r² + m r) for n items, m sites and r columns of R, and is damped
if sites oscillate. A site of weight w represents w equal sites with the same τ and ν, at the cost of one. Sweeps run
in the smallest space that contains the sites: over the items they name, or over their own scalars if those are fewer.

    log Z = ½ hᵀμ − ½ log|Λ|/|Λ0| + Σ_k weight_k (log Z_k − log ∫ cavity_k · site_k)

is stationary in τ and ν, so its gradient is that with the sites held fixed (eq. 11 of Chu and Ghahramani, Extensions of
Gaussian processes for ranking, 2005; Rasmussen and Williams, Gaussian processes for machine learning, 5.5.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from corank.core.models import sites as kernels
from corank.errors import InputError, warn
from corank.models.gp.process import Posterior
from corank.models.gp.sites import Sites

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# convergence: largest change of a site's marginal posterior in a sweep, in standard deviations
TOLERANCE = 1e-7
MAX_SWEEPS = 400
# directions with less than this share of the largest variance are rounding errors
RANK = 1e-13
# the same while hyper-parameters are learnt: the evidence changes by less than it differs between samples of answers
RANK_WHILE_LEARNING = 1e-8
# columns of RᵀSR computed at a time
_BLOCK = 128
# smallest damping factor
_MIN_STEP = 0.01
# answers of one site above which steps that failed are tried again, and a change that deserves a warning
_MANY_EQUAL, _VISIBLE = 3.0, 0.1
# below this change, an oscillation lowers the limit of the steps, and steps are accelerated (Anderson, 1965) from this
# many sweeps, by at most this factor
_NEAR, _MEMORY, _STRIDE = 0.3, 6, 3.0


def assemble(R: Floats, sites: Sites, tau: Floats, nu: Floats, precision: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean of w, the lower Cholesky factor of its precision Λ, and h = Λ mean."""
    try:
        factor = linalg.cholesky(_add_sites(precision, R, sites, tau), lower=True, check_finite=False)
    except linalg.LinAlgError as error:
        raise InputError(
            "the posterior is not determined, its numbers differ too much in size; scale the columns and fit again."
        ) from error
    h = R.T @ sites.shift(nu, len(R))
    return linalg.cho_solve((factor, True), h, check_finite=False), factor, h


def _add_sites(precision: Floats, R: Floats, sites: Sites, tau: Floats) -> Floats:
    """Λ0 + RᵀSR; only its lower triangle is complete, for half of the cost."""
    t = sites.weight * tau
    if (sites.right < 0).all():  # S is diagonal, and the product symmetric
        root = np.sqrt(np.bincount(sites.left, t, len(R)))[:, None] * R
        return np.asarray(precision + root.T @ root)
    SR, total = np.zeros_like(R), precision.copy()
    kernels.spread_sites(R, sites.left, sites.right, t, SR)
    for start in range(0, R.shape[1], _BLOCK):
        total[start:, start : start + _BLOCK] += R[:, start:].T @ SR[:, start : start + _BLOCK]
    return total


def scalars(R: Floats, sites: Sites, mu: Floats, factor: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of each site's g."""
    means, variances = np.empty(len(sites)), np.empty(len(sites))
    kernels.gaps(under(factor, R), R @ mu, sites.left, sites.right, variances, means)
    return means, variances


def under(factor: Floats, R: Floats) -> Any:
    """R L⁻ᵀ, in C order."""
    return np.ascontiguousarray(linalg.solve_triangular(factor, R.T, lower=True, check_finite=False).T)


def root_of(K: Floats, tol: float = RANK) -> tuple[Floats, Integers]:
    """
    Factor a covariance K = R Rᵀ by a pivoted Cholesky factorisation of rank r.

    K (n, n): positive semidefinite; equal rows are allowed.
    tol: directions with less than this share of the largest variance are left out.
    Returns: R (n, r), and the r pivots, whose rows of R are triangular.
    """
    n = len(K)
    largest = float(np.max(np.diagonal(K), initial=0.0))
    if not largest > 0.0:
        return np.zeros((n, 0)), np.empty(0, dtype=np.int64)
    factor, pivots, rank, _ = linalg.lapack.dpstrf(K, tol=tol * largest, lower=1)
    order = pivots.astype(np.int64) - 1
    R = np.empty((n, rank))
    R[order] = np.tril(factor)[:, :rank]
    return R, order[:rank]


@dataclass(frozen=True, eq=False)
class Approximation:
    """
    The Gaussian that expectation propagation found.

    noise_gradient, lo_gradient, hi_gradient (m,): derivatives of log Z in the noise and the ends of each site.
    """

    sites: Sites  # as given
    tau: Floats  # tau, nu (m,): natural parameters of one copy of each site
    nu: Floats
    mu: Floats  # mu (r,), factor (r, r): mean of w, and the lower Cholesky factor of its precision
    factor: Floats
    log_evidence: float  # log Z
    noise_gradient: Floats
    lo_gradient: Floats
    hi_gradient: Floats
    n_sweeps: int  # n_sweeps, gap: number of sweeps, and the largest change in the last one
    gap: float

    def features(self, R: Floats) -> Floats:
        """V with V Vᵀ the covariance of R w."""
        return np.asarray(under(self.factor, R))

    def posterior(self, R: Floats) -> Posterior:
        """The Gaussian of f = R w, for the items of the sites or any others."""
        V = self.features(R)
        return Posterior(R @ self.mu, V @ V.T)

    def posterior_weights(self, R: Floats) -> tuple[Floats, Floats]:
        """
        Return α (n,) and M (n, n): the posterior is P α and P − P M P for the prior P = R Λ0⁻¹ Rᵀ of the items.

        So ∂ log Z = ½ tr((α αᵀ − M) ∂P).
        """
        n, sites = len(R), self.sites
        S = sites.precision(self.tau, n)
        V = self.features(R)
        SV = np.zeros_like(V)
        kernels.spread_sites(V, sites.left, sites.right, sites.weight * self.tau, SV)
        alpha = sites.shift(self.nu, n) - S @ (R @ self.mu)
        return np.asarray(alpha), np.asarray(S - SV @ SV.T)


def propagate(
    R: Floats,
    sites: Sites,
    *,
    precision: Floats | None = None,
    start: tuple[Floats, Floats] | None = None,
    max_sweeps: int = MAX_SWEEPS,
    tol: float = TOLERANCE,
    quiet: bool = False,
    first_step: float = 1.0,
) -> Approximation:
    """
    Run sweeps until the sites converge; warn if they do not.

    R (n, r): features of the items, f = R w; `root_of` computes them from a covariance.
    precision (r, r): Λ0; the identity by default.
    start: initial τ and ν, for example those of a similar problem; 0 by default.
    first_step: first damping factor. With 1, the sites of 100,000 equal answers overshoot, and damping does not bring
        them back; so what does not converge is tried again with a first step of about one answer.
    """
    m = len(sites)
    tau, nu = (np.zeros(m), np.zeros(m)) if start is None else (start[0].copy(), start[1].copy())
    prior = np.eye(R.shape[1]) if precision is None else linalg.cholesky(precision, lower=True, check_finite=False)
    rows, named = _smallest_space(R if precision is None else under(prior, R), sites)
    eye, change = np.eye(rows.shape[1]), np.empty((2, m))
    gap, n_sweeps, last, step, max_step = np.inf, 0, np.inf, first_step, 1.0
    history: list[tuple[Floats, Floats]] = []  # sites and their changes in past sweeps
    while gap > tol and n_sweeps < max_sweeps:
        mu, factor, _ = assemble(rows, named, tau, nu, eye)
        means, variances = scalars(rows, named, mu, factor)
        gap, size = kernels.match_sites(means, variances, *named.intervals, named.weight, tau, nu, *change)
        if size > (1.0 - 0.1 * step) * last:  # shorter steps while sites oscillate
            step = max(0.5 * step, _MIN_STEP)
            max_step = max(0.7 * max_step, _MIN_STEP) if gap < _NEAR else max_step
            history.clear()
        else:
            step, max_step = min(1.4 * step, max_step), min(1.1 * max_step, 1.0)
        now = np.stack([tau, nu])
        move = change - now
        if gap < _NEAR:
            history = [*history[1 - _MEMORY :], (now, move)]
            move = _accelerated(history, named.weight * np.stack([variances, np.sqrt(variances)]), step)
        else:
            move = step * move
        tau, nu, last, n_sweeps = np.maximum(tau + move[0], 0.0), nu + move[1], size, n_sweeps + 1
    if gap > tol and not quiet:
        heaviest = float(sites.weight.max())
        if first_step == 1.0 and heaviest > _MANY_EQUAL:
            more: dict[str, Any] = {"max_sweeps": 2 * max_sweeps, "tol": tol, "first_step": _MANY_EQUAL / heaviest}
            return propagate(R, sites, precision=precision, **more)
        if gap > _VISIBLE:
            warn(
                f"expectation propagation did not converge in {n_sweeps} sweeps: sites still move by {gap:.1e} "
                "standard deviations. Raise sigma, or scale the columns.",
                ConvergenceWarning,
            )
    return _approximation(R, sites, tau, nu, prior, n_sweeps, gap)


def resume(
    R: Floats,
    sites: Sites,
    start: tuple[Floats, Floats] | None,
    *,
    tol: float,
    precision: Floats | None = None,
    warm_sweeps: int = MAX_SWEEPS,
    quiet: bool = False,
) -> Approximation:
    """Run `propagate` from the sites of a similar problem, and from 0 if there are none or that does not converge."""
    if start is not None:
        result = propagate(R, sites, precision=precision, start=start, max_sweeps=warm_sweeps, tol=tol, quiet=True)
        if result.gap <= tol:
            return result
    return propagate(R, sites, precision=precision, tol=tol, quiet=quiet)


def _accelerated(history: list[tuple[Floats, Floats]], unit: Floats, step: float) -> Floats:
    """The step of Anderson acceleration; the plain damped step if that is much shorter."""
    now, change = history[-1]
    if len(history) < 2:
        return step * change
    moves, turns = (
        np.stack([part - old for old in earlier])
        for part, earlier in zip((now, change), zip(*history[:-1], strict=True), strict=True)
    )
    share, *_ = linalg.lstsq((turns * unit).reshape(len(turns), -1).T, (change * unit).ravel(), cond=1e-10)
    move = step * change - np.tensordot(share, moves + step * turns, 1)
    return move if np.linalg.norm(unit * move) < _STRIDE * np.linalg.norm(unit * change) else step * change


def _smallest_space(R: Floats, sites: Sites) -> tuple[Floats, Sites]:
    """Rows of the named items, or of the differences if those are fewer, in as few columns as possible; their sites."""
    items, named = sites.compacted()
    rows, m = R[items], len(named)
    if m < len(rows):
        rows = rows[named.left] - np.where(named.right[:, None] >= 0, rows[named.right], 0.0)
        named = replace(named, left=np.arange(m), right=np.full(m, -1))
    if len(rows) < rows.shape[1]:
        rows = root_of(rows @ rows.T)[0]
    return np.ascontiguousarray(rows), named


def _approximation(
    R: Floats, sites: Sites, tau: Floats, nu: Floats, prior: Floats, n_sweeps: int, gap: float
) -> Approximation:
    items, named = sites.compacted()
    rows, gradient = np.ascontiguousarray(R[items]), np.empty((len(sites), 3))
    mu, factor, h = assemble(rows, named, tau, nu, prior @ prior.T)
    means, variances = scalars(rows, named, mu, factor)
    of_sites = float(kernels.site_evidence(means, variances, *named.intervals, named.weight, tau, nu, gradient))
    volume = float(np.log(np.diagonal(factor)).sum() - np.log(np.diagonal(prior)).sum())
    log_z = 0.5 * float(h @ mu) - volume + of_sites
    of_noise, of_lo, of_hi = gradient.T.copy()
    return Approximation(sites, tau, nu, mu, factor, log_z, of_noise, of_lo, of_hi, n_sweeps, gap)
