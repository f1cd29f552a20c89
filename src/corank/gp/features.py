"""
Features: columns in which a prior is white, so that f = Φ w, w ~ N(0, Λ0⁻¹), and what sites see of them.

Exact, without a graph, the posterior leaves the prior in no more directions than there are answers or named items:
whichever are fewer become the columns. With a graph, f has the prior P = (K⁻¹ + L)⁻¹ (eq. 5): K = R Rᵀ turns it into
the precision Λ0 = I + RᵀLR, and no inverse of K is taken. With basis rows, Φ = k(x, B) K_BB^(−½) stands for all of K
(deterministic training conditional), and Λ0 is the same. What Φ leaves of k(x, x) is added to variances in every case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from corank.basis import FeatureMap
from corank.gp.ep import root_of
from corank.gp.items import Items
from corank.gp.sites import Sites
from corank.kernels import PrecomputedKernel
from corank.views import View

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Features:
    """
    A prior over items, in columns.

    phi: rows to columns.
    R (n, r): the columns of what `sites` names.
    sites: answers, as functionals of R.
    precision (r, r): Λ0; None for the identity.
    """

    phi: FeatureMap
    R: Floats
    sites: Sites
    precision: Floats | None = None


def exact(view: View, items: Items, sites: Sites) -> Features:
    """Features of the named items, or of the answers where those are fewer."""
    at, named = sites.among_named()
    return exact_of(items.gram(view, at), view, items, at, named)


def exact_of(K: Floats, view: View, items: Items, at: Integers, named: Sites) -> Features:
    """As `exact`, from the similarities K of the items `at`, among which `named` are sites."""
    # what a new row is like by itself is not known of a precomputed kernel: there, items tell more than answers
    if len(named) >= len(at) or isinstance(view.kernel, PrecomputedKernel):
        R, pivots = root_of(K)
        basis, T = items.basis(view, at[pivots]), _inverse_under(R[pivots])
        return Features(FeatureMap(view, basis, T, R.shape[1]), R, named)
    m = len(named)
    KB = K[:, named.left] - K[:, named.right]
    R, pivots = root_of(KB[named.left] - KB[named.right])
    T, kept = np.zeros((len(at), len(pivots))), _inverse_under(R[pivots])
    np.add.at(T, named.left[pivots], kept)
    np.add.at(T, named.right[pivots], -kept)
    apart = replace(named, left=np.arange(m), right=np.full(m, -1))
    return Features(FeatureMap(view, items.basis(view, at), T, R.shape[1]), R, apart)


def on_graph(view: View, items: Items, sites: Sites, L: Any) -> Features:
    """Features of all items, whose prior knows the graph."""
    return on_graph_of(items.gram(view, np.arange(len(items))), view, items, sites, L)


def on_graph_of(K: Floats, view: View, items: Items, sites: Sites, L: Any) -> Features:
    """As `on_graph`, from the similarities K of all items."""
    R, pivots = root_of(K)
    phi = FeatureMap(view, items.basis(view, pivots), _inverse_under(R[pivots]), R.shape[1])
    return Features(phi, R, sites, np.eye(R.shape[1]) + R.T @ (L @ R))


def on_basis(phi: FeatureMap, items: Items, sites: Sites, L: Any | None) -> Features:
    """Features that basis rows give; only named items are looked at, or all where there is a graph."""
    assert phi.basis is not None
    at, named = sites.among_named()
    if L is not None:
        at, named = np.arange(len(items)), sites
    R = np.empty((len(at), phi.n_features))
    for piece, K in phi.basis.blocks(items.rows, at):
        R[piece] = K @ np.asarray(phi.T)
    return Features(phi, R, named, None if L is None else np.eye(phi.n_features) + R.T @ (L @ R))


def _inverse_under(triangle: Floats) -> Floats:
    """T with k(x, pivots) T the columns of a row x, from the triangle that the pivots' own columns are."""
    return np.asarray(linalg.solve_triangular(triangle, np.eye(len(triangle)), lower=True, check_finite=False).T)
