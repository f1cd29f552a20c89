"""The evidence of answers as a function of a kernel's numbers and of sigma, with its slopes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from corank.gp.ep.features import exact_columns, graph_columns
from corank.gp.ep.hyper import dense, maximise
from corank.gp.ep.items import Items
from corank.gp.ep.propagation import Approximation, propagate
from corank.gp.ep.sites import Sites
from corank.kernels.views import View

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# where learning sigma starts
_SIGMA = 0.3
# how still sites have to be while numbers are tried
_TOLERANCE = 1e-3
# sweeps after which numbers were too different for sites to start from where they were
_PATIENCE = 20


@dataclass
class Evidence:
    """
    log Z of answers; called with θ, the logarithms of what is learnt.

    n_theta: how many parameters of the kernel are learnt; 0 for a fixed kernel.
    items, at, sites: the items that take part, and answers among them.
    L: Laplacian over them, or None.
    sigma: None where its logarithm is the last of θ.
    start: what sites became for the θ before, from which they start again.
    """

    view: View
    n_theta: int
    items: Items
    at: Integers
    sites: Sites
    L: Any
    sigma: float | None
    start: tuple[Floats, Floats] | None = None
    rows: Any = field(init=False)

    def __post_init__(self) -> None:
        self.rows = dense(self.items.rows[self.at])

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """log Z and its slopes."""
        of_kernel = theta[: self.n_theta]
        sigma = self.sigma if self.sigma is not None else float(np.exp(theta[-1]))
        view = replace(self.view, kernel=self.view.kernel.with_theta(of_kernel))
        K = self.items.gram(view, self.at)
        sites = replace(self.sites, noise=np.full(len(self.sites), 2.0 * sigma**2))
        precision = None
        if self.L is None:
            R, sites, _ = exact_columns(K, view, sites)
        else:
            R, precision, _ = graph_columns(K, self.L)
        found = self._propagate(R, sites, precision)
        slopes = np.empty(0)
        if len(of_kernel):
            slopes = view.kernel.theta_gradient(self.rows, K, self._pull(R, precision, found))
        if self.sigma is None:
            slopes = np.append(slopes, 2.0 * float(found.noise_slope @ sites.noise))
        return found.log_evidence, slopes

    def _propagate(self, R: Floats, sites: Sites, precision: Floats | None) -> Approximation:
        how: dict[str, Any] = {"precision": precision, "tol": _TOLERANCE, "quiet": True}
        if self.start is not None:
            found = propagate(R, sites, start=self.start, max_sweeps=_PATIENCE, **how)
            if found.gap <= _TOLERANCE:
                self.start = found.tau, found.nu
                return found
        found = propagate(R, sites, **how)
        self.start = (found.tau, found.nu) if found.gap <= _TOLERANCE else None
        return found

    def _pull(self, R: Floats, precision: Floats | None, found: Approximation) -> Floats:
        """∂ log Z/∂K over the items."""
        alpha, M = found.pull(R)
        if found.sites.left is not self.sites.left:  # the columns are answers
            m = len(self.sites)
            signs = np.concatenate([np.ones(m), -np.ones(m)])
            places = (np.tile(np.arange(m), 2), np.concatenate([self.sites.left, self.sites.right]))
            B = sparse.csr_array((signs, places), shape=(m, len(self.at)))
            alpha, M = B.T @ alpha, B.T @ (B.T @ M).T
        Q = 0.5 * (np.outer(alpha, alpha) - M)
        if self.L is None:
            return Q
        # P = (K⁻¹ + L)⁻¹ changes by Fᵀ ∂K F, F = (I + LK)⁻¹
        F = np.eye(len(R)) - (self.L @ R) @ linalg.solve(precision, R.T, assume_a="pos", check_finite=False)
        return np.asarray(F @ Q @ F.T)


def learnt(
    view: View,
    items: Items,
    told: tuple[Integers, Floats, Floats],
    L: Any,
    sigma: float | None,
    *,
    learn: bool,
    n_restarts: int,
    rng: np.random.Generator,
) -> tuple[View, float, int]:
    """
    The view with the numbers that answers speak for, sigma, and how often the evidence was asked.

    told: pairs of items, their weights, and what is known of them, as from `Items.pairs`.
    """
    of_kernel = view.kernel.theta if learn else np.empty(0)
    pairs, weight, known = told
    sites = Sites.preferences(pairs, 1.0, weight, known)
    at, named = sites.among_named()
    if L is not None:
        at, named = np.arange(len(items)), sites
    begin = of_kernel if sigma is not None else np.append(of_kernel, np.log(_SIGMA))
    if not len(begin):
        assert sigma is not None
        return view, sigma, 0
    evidence = Evidence(view, len(of_kernel), items, at, named, L, sigma)
    theta, _, calls = maximise(evidence, begin, n_restarts, rng)
    found = replace(view, kernel=view.kernel.with_theta(theta[: len(of_kernel)]))
    return found, float(np.exp(theta[-1])) if sigma is None else sigma, calls
