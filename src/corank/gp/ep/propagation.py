"""
Expectation propagation: a Gaussian in the place of a posterior whose sites are intervals of linear functionals.

    p(f) Π_k P(lo_k < b_kᵀf + noise_k < hi_k)^weight_k,  f = R w,  w ~ N(0, Λ0⁻¹)

with b_k = e_left − e_right (a preference) or e_left (a grade of one item). Each site is exp(−½ τ g² + ν g) of the
scalar g = bᵀf: the 2 × 2 matrices of the paper are of rank one and are never built. The posterior of w has the
precision Λ = Λ0 + RᵀSR, S = Bᵀ diag(weight τ) B, which is never below Λ0: its Cholesky factor exists whatever the rows
are, equal rows among them.

A sweep in parallel costs one Cholesky factor, O(n r² + m r) for n items, m sites and r columns of R, and is damped
where sites swing; a sweep site by site takes rank-one steps, O(m r²), and is chosen where sites are few. A site of
weight w stands for w equal ones, each with the same τ and ν, and costs as one.

    log Z = ½ hᵀμ − ½ log|Λ|/|Λ0| + Σ_k weight_k (log Z_k − log ∫ q_k without the site · its Gaussian)

is stationary in τ and ν, so that its slopes are those with the sites held fixed (eq. 11 of Chu and Ghahramani,
Extensions of Gaussian processes for ranking, 2005; Rasmussen and Williams, Gaussian processes for machine learning,
5.5.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from corank.core.models import sites as kernels
from corank.errors import warn
from corank.gp.ep.posterior import Posterior
from corank.gp.ep.sites import Sites
from corank.gp.ep.sweeps import Sweeps, assemble, root_of, scalars, under

Floats = NDArray[np.float64]

__all__ = ["Approximation", "propagate", "root_of"]

# what a site may still move its posterior by, in standard deviations, when sweeping ends
TOLERANCE = 1e-7
MAX_SWEEPS = 400


@dataclass(frozen=True, eq=False)
class Approximation:
    """
    The Gaussian that expectation propagation arrived at.

    sites: as given.
    tau, nu (m,): what the sites became, a copy's share where a site weighs more than one.
    mu (r,), factor (r, r): mean of w, and the lower Cholesky factor of its precision.
    log_evidence: log Z.
    noise_slope, lo_slope, hi_slope (m,): slopes of log Z in the noise and the ends of each site.
    n_sweeps, gap: sweeps, and how far sites still moved in the last one.
    """

    sites: Sites
    tau: Floats
    nu: Floats
    mu: Floats
    factor: Floats
    log_evidence: float
    noise_slope: Floats
    lo_slope: Floats
    hi_slope: Floats
    n_sweeps: int
    gap: float

    @property
    def has_converged(self) -> bool:
        """Whether sites came to rest."""
        return self.gap <= TOLERANCE

    def features(self, R: Floats) -> Floats:
        """V with V Vᵀ the covariance of R w."""
        return np.asarray(under(self.factor, R))

    def posterior(self, R: Floats) -> Posterior:
        """The Gaussian of f = R w, for the items of the sites or any others."""
        V = self.features(R)
        return Posterior(R @ self.mu, V @ V.T)

    def pull(self, R: Floats) -> tuple[Floats, Floats]:
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
) -> Approximation:
    """
    Find the Gaussian, and say so where sites would not come to rest.

    R (n, r): the items in the columns in which w lives; `root_of` finds it for a covariance.
    precision (r, r): Λ0; the identity by default.
    start: τ and ν to begin from, such as those of a problem that was a little different; 0 by default.
    quiet: whether to leave it to the caller to look at `gap`.
    """
    m = len(sites)
    tau, nu = (np.zeros(m), np.zeros(m)) if start is None else (start[0].copy(), start[1].copy())
    prior = np.eye(R.shape[1]) if precision is None else linalg.cholesky(precision, lower=True, check_finite=False)
    sweeps = Sweeps.of(R if precision is None else under(prior, R), sites, is_warm=start is not None)
    gap, n_sweeps = np.inf, 0
    while gap > tol and n_sweeps < max_sweeps:
        gap = sweeps(tau, nu)
        n_sweeps += 1
    if gap > tol and not quiet:
        warn(
            f"expectation propagation still moves by {sweeps.last:.1e} standard deviations after {n_sweeps} sweeps; "
            "raise sigma, or allow more.",
            ConvergenceWarning,
        )
    return _approximation(R, sites, tau, nu, prior, n_sweeps, gap)


def _approximation(
    R: Floats, sites: Sites, tau: Floats, nu: Floats, prior: Floats, n_sweeps: int, gap: float
) -> Approximation:
    items, named = sites.among_named()
    rows, slopes = np.ascontiguousarray(R[items]), np.empty((len(sites), 3))
    mu, factor, h = assemble(rows, named, tau, nu, prior @ prior.T)
    means, variances = scalars(rows, named, mu, factor)
    of_sites = float(kernels.site_evidence(means, variances, *named.intervals, named.weight, tau, nu, slopes))
    volume = float(np.log(np.diagonal(factor)).sum() - np.log(np.diagonal(prior)).sum())
    log_z = 0.5 * float(h @ mu) - volume + of_sites
    of_noise, of_lo, of_hi = slopes.T.copy()
    return Approximation(sites, tau, nu, mu, factor, log_z, of_noise, of_lo, of_hi, n_sweeps, gap)
