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

from corank.gp.ep.items import Items
from corank.gp.ep.propagation import root_of
from corank.gp.ep.sites import Sites
from corank.kernels import FeatureMap
from corank.kernels.views import View

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
    R, apart, pivots = exact_columns(items.gram(view, at), view, named)
    kept = _inverse_under(R[pivots])
    if apart is named:
        return Features(FeatureMap(view, items.basis(view, at[pivots]), kept, R.shape[1]), R, named)
    T = np.zeros((len(at), len(pivots)))
    np.add.at(T, named.left[pivots], kept)
    np.add.at(T, named.right[pivots], -kept)
    return Features(FeatureMap(view, items.basis(view, at), T, R.shape[1]), R, apart)


def exact_columns(K: Floats, view: View, named: Sites) -> tuple[Floats, Sites, Integers]:
    """Columns R of items with the similarities K, or of answers where those are fewer; sites in them; pivots of R."""
    # what a new row is like by itself is not known of a precomputed kernel: there, items tell more than answers
    if len(named) >= len(K) or view.kernel.is_precomputed:
        R, pivots = root_of(K)
        return R, named, pivots
    m = len(named)
    KB = K[:, named.left] - K[:, named.right]
    R, pivots = root_of(KB[named.left] - KB[named.right])
    return R, replace(named, left=np.arange(m), right=np.full(m, -1)), pivots


def on_graph(view: View, items: Items, sites: Sites, L: Any) -> Features:
    """Features of all items, whose prior knows the graph."""
    R, precision, pivots = graph_columns(items.gram(view, np.arange(len(items))), L)
    phi = FeatureMap(view, items.basis(view, pivots), _inverse_under(R[pivots]), R.shape[1])
    return Features(phi, R, sites, precision)


def graph_columns(K: Floats, L: Any) -> tuple[Floats, Floats, Integers]:
    """Columns R of all items with the similarities K, Λ0 in them, and pivots of R."""
    R, pivots = root_of(K)
    return R, np.eye(R.shape[1]) + R.T @ (L @ R), pivots


def on_basis(phi: FeatureMap, items: Items, sites: Sites, precision: Floats | None) -> Features:
    """Features that basis rows give, of the items that are named."""
    at, named = sites.among_named()
    return Features(phi, _columns(phi, items, at), named, precision)


def precision_on_basis(phi: FeatureMap, items: Items, L: Any) -> Floats:
    """Λ0 of features that basis rows give, from all items."""
    R = _columns(phi, items, np.arange(len(items)))
    return np.asarray(np.eye(phi.n_features) + R.T @ (L @ R))


def _columns(phi: FeatureMap, items: Items, at: Integers) -> Floats:
    assert phi.basis is not None
    R = np.empty((len(at), phi.n_features))
    for piece, K in phi.basis.blocks(items.rows, at):
        R[piece] = K @ np.asarray(phi.T)
    return R


def _inverse_under(triangle: Floats) -> Floats:
    """T with k(x, pivots) T the columns of a row x, from the triangle that the pivots' own columns are."""
    return np.asarray(linalg.solve_triangular(triangle, np.eye(len(triangle)), lower=True, check_finite=False).T)
