"""
Sweeps: the sites of expectation propagation, moved towards the moments they should have, all at once or in turn.

Sites are moved in the smallest space that holds them: over the items they name, or over their own scalars where those
are fewer, in as many columns as differ there. The fixed point does not depend on that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from corank.core.models import sites as kernels
from corank.gp.ep.sites import Sites

Floats = NDArray[np.float64]

# directions of less than this share of the largest variance are rounding errors
_RANK = 1e-13
# a sweep is damped no further than this
_LEAST_STEP = 0.01
# sites that move by less than this are near enough for what past sweeps tell of the next
_NEAR = 0.3
# weight of all sites at the beginning, for each item; what it grows by; and how still sites must be for that
_FIRST, _GROWTH, _SETTLED = 4.0, 4.0, 1.0
# how much farther than their way sites may be sent by what past sweeps tell
_STRIDE = 3.0
# past sweeps that are remembered
_MEMORY = 6
# most sites of which a rank-one step each costs less than factors and products of matrices
FEW = 16


@dataclass(eq=False)
class Sweeps:
    """
    Sweeps over the sites of one problem; called with τ and ν, it moves them and returns how far they had to go.

    R (n, r), sites: the items that are named, w ~ N(0, I).
    most: what a site may weigh so far; grows until all weigh what they weigh.
    step, largest: how much of the way sites go, and may go: less after each time they swung near rest.
    last: how far all of them had to go in the sweep before.
    past: what sites were, and the way they had to go, in the sweeps before (Anderson, 1965).
    """

    R: Floats
    sites: Sites
    most: float = np.inf
    step: float = 1.0
    largest: float = 1.0
    last: float = np.inf
    past: list[tuple[Floats, Floats]] = field(default_factory=list)

    @classmethod
    def of(cls, R: Floats, sites: Sites, *, is_warm: bool = False) -> Sweeps:
        """Find the smallest space; sites that come from nowhere are let in by and by, so that none overshoots."""
        items, named = sites.among_named()
        rows = R[items]
        m = len(named)
        if m < len(rows):
            rows = rows[named.left] - np.where(named.right[:, None] >= 0, rows[named.right], 0.0)
            named = replace(named, left=np.arange(m), right=np.full(m, -1))
        if len(rows) < rows.shape[1]:
            rows = root_of(rows @ rows.T)[0]
        most = np.inf if is_warm else min(1.0, _FIRST * len(items) / max(m, 1))
        return cls(np.ascontiguousarray(rows), named, most)

    def __call__(self, tau: Floats, nu: Floats) -> float:
        """Move τ and ν; infinite while sites do not weigh what they weigh."""
        heaviest = float(self.sites.weight.max(initial=0.0))
        all_of_them = self.sites
        self.sites = replace(all_of_them, weight=np.minimum(all_of_them.weight, self.most))
        gap = self.in_turn(tau, nu) if len(self.sites) <= FEW else self.in_parallel(tau, nu)
        self.sites = all_of_them
        if self.most >= heaviest:
            return gap
        if gap < _SETTLED:
            self.most, self.step, self.largest = _GROWTH * self.most, 1.0, 1.0
            self.past.clear()
        return np.inf

    def in_parallel(self, tau: Floats, nu: Floats) -> float:
        """One Cholesky factor for all sites; O(n r² + m r)."""
        s, m = self.sites, len(self.sites)
        mu, factor, _ = assemble(self.R, s, tau, nu, np.eye(self.R.shape[1]))
        means, variances = scalars(self.R, s, mu, factor)
        now, way = np.concatenate([tau, nu]), np.empty(2 * m)
        gap, size = kernels.match_all(means, variances, *s.intervals, s.weight, tau, nu, way[:m], way[m:])
        way -= now
        self.damp(size, is_near=gap < _NEAR)
        move = self.step * way
        if gap < _NEAR:
            self.past.append((now, way))
            del self.past[:-_MEMORY]
            unit = np.tile(s.weight, 2) * np.concatenate([variances, np.sqrt(variances)])
            further = _extrapolated(self.past, unit, self.step)
            if np.linalg.norm(unit * further) < _STRIDE * np.linalg.norm(unit * way):
                move = further
        np.maximum(now[:m] + move[:m], 0.0, out=tau)
        nu[:] = now[m:] + move[m:]
        return float(gap)

    def in_turn(self, tau: Floats, nu: Floats) -> float:
        """A rank-one step for each site; O(m r²)."""
        s = self.sites
        mu, factor, _ = assemble(self.R, s, tau, nu, np.eye(self.R.shape[1]))
        inverse = linalg.solve_triangular(factor, np.eye(len(mu)), lower=True, check_finite=False)
        cov = inverse.T @ inverse
        to = self.R, s.left, s.right, *s.intervals, s.weight, tau, nu, self.step
        gap, size = kernels.match_in_turn(*to, cov, mu)
        self.damp(size, is_near=gap < _NEAR)
        return float(gap)

    def damp(self, size: float, *, is_near: bool) -> None:
        """Take smaller steps while sites swing, and larger ones as they come to rest."""
        if size > (1.0 - 0.1 * self.step) * self.last:
            self.step = max(0.5 * self.step, _LEAST_STEP)
            if is_near:
                self.largest = max(0.7 * self.largest, _LEAST_STEP)
            self.past.clear()
        else:
            self.step, self.largest = min(1.4 * self.step, self.largest), min(1.1 * self.largest, 1.0)
        self.last = size


def _extrapolated(past: list[tuple[Floats, Floats]], unit: Floats, step: float) -> Floats:
    """The move that would end in rest if ways went on to change as they did over the past sweeps."""
    now, way = past[-1]
    if len(past) < 2:
        return step * way
    moves = np.array([now - then for then, _ in past[:-1]]).T
    turns = np.array([way - old for _, old in past[:-1]]).T
    share, *_ = linalg.lstsq(turns * unit[:, None], way * unit, cond=1e-10, check_finite=False)
    return np.asarray(step * way - (moves + step * turns) @ share)


def assemble(R: Floats, sites: Sites, tau: Floats, nu: Floats, precision: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean of w, the lower factor of its precision Λ, and h = Λ mean."""
    SR = np.zeros_like(R)
    kernels.spread_sites(R, sites.left, sites.right, sites.weight * tau, SR)
    factor = linalg.cholesky(precision + R.T @ SR, lower=True, overwrite_a=True, check_finite=False)
    h = R.T @ sites.shift(nu, len(R))
    return linalg.cho_solve((factor, True), h, check_finite=False), factor, h


def scalars(R: Floats, sites: Sites, mu: Floats, factor: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of each site's g."""
    means, variances = np.empty(len(sites)), np.empty(len(sites))
    kernels.gaps(under(factor, R), R @ mu, sites.left, sites.right, variances, means)
    return means, variances


def under(factor: Floats, R: Floats) -> Any:
    """R L⁻ᵀ, its rows one after the other."""
    return np.ascontiguousarray(linalg.solve_triangular(factor, R.T, lower=True, check_finite=False).T)


def root_of(K: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """
    Factor a covariance K = R Rᵀ by a Cholesky factor with pivots, of as many columns as K has directions.

    K (n, n): positive semidefinite; equal rows are welcome.
    Returns: R (n, r), and the r items whose rows of R are a triangle.
    """
    n = len(K)
    largest = float(np.max(np.diagonal(K), initial=0.0))
    if not largest > 0.0:
        return np.zeros((n, 0)), np.empty(0, dtype=np.int64)
    factor, pivots, rank, _ = linalg.lapack.dpstrf(K, tol=_RANK * largest, lower=1)
    at = pivots.astype(np.int64) - 1
    R = np.empty((n, rank))
    R[at] = np.tril(factor)[:, :rank]
    return R, at[:rank]
