"""
Finite features of a Gaussian process prior: f = Φ w, w ~ N(0, Λ0⁻¹).

Without a graph and basis, the posterior differs from the prior in at most as many directions as there are answers or
named items; the smaller of the two gives the columns. With a graph, f has the prior P = (K⁻¹ + L)⁻¹ (eq. 5): K = R Rᵀ
turns it into the precision Λ0 = I + RᵀLR, without an inverse of K. With basis rows, Φ = k(x, B) K_BB^(−½) approximates
K (deterministic training conditional), and Λ0 has the same form. Variances include the part of k(x, x) outside Φ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from corank.base.kernels.basis import Basis, FeatureMap, auto_basis, choose_basis
from corank.base.kernels.views import View
from corank.models.gp.ep.items import DistinctRows
from corank.models.gp.ep.propagation import RANK, Sites, root_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

AUTO_BASIS = 500
"""Number of basis rows by default, and of rows above which they are used."""


@dataclass(frozen=True, eq=False)
class PriorFeatures:
    """A prior in finite features, and the sites in these features."""

    phi: FeatureMap  # maps rows to features
    R: Floats  # (n, r): features of the items (or answers) that `sites` name
    sites: Sites  # the observations, as functionals of R
    precision: Floats | None = None  # (r, r): Λ0; None for the identity


def exact(view: View, items: DistinctRows, sites: Sites) -> PriorFeatures:
    """Features of the named items, or of the answers if those are fewer."""
    items_named, named = sites.compacted()
    R, feature_sites, pivots = exact_columns(items.gram(view, items_named), view, named)
    kept = _inverse_under(R[pivots])
    if feature_sites is named:
        return PriorFeatures(FeatureMap(view, items.basis(view, items_named[pivots]), kept, R.shape[1]), R, named)
    T = np.zeros((len(items_named), len(pivots)))
    np.add.at(T, named.left[pivots], kept)
    np.add.at(T, named.right[pivots], -kept)
    return PriorFeatures(FeatureMap(view, items.basis(view, items_named), T, R.shape[1]), R, feature_sites)


def exact_columns(K: Floats, view: View, named: Sites, tol: float = RANK) -> tuple[Floats, Sites, Integers]:
    """Features R of items with the Gram matrix K, or of answers if those are fewer; sites in them; pivots of R."""
    # k(x, x) of a new row is unknown for a precomputed kernel, and features of items cover more of it than of answers
    if len(named) >= len(K) or view.kernel.is_precomputed:
        R, pivots = root_of(K, tol)
        return R, named, pivots
    m = len(named)
    KB = K[:, named.left] - K[:, named.right]
    R, pivots = root_of(KB[named.left] - KB[named.right], tol)
    return R, replace(named, left=np.arange(m), right=np.full(m, -1)), pivots


def on_graph(view: View, items: DistinctRows, sites: Sites, L: Any) -> PriorFeatures:
    """Features of all items, with the prior of the graph."""
    R, precision, pivots = graph_columns(items.gram(view, np.arange(len(items))), L)
    phi = FeatureMap(view, items.basis(view, pivots), _inverse_under(R[pivots]), R.shape[1])
    return PriorFeatures(phi, R, sites, precision)


def graph_columns(K: Floats, L: Any) -> tuple[Floats, Floats, Integers]:
    """Features R of all items with the Gram matrix K, Λ0 in them, and pivots of R."""
    R, pivots = root_of(K)
    return R, np.eye(R.shape[1]) + R.T @ (L @ R), pivots


def basis_of(model: Any, view: View, X: Any, size: int, candidates: Integers, rng: np.random.Generator) -> Basis | None:
    """The basis of a model by its parameters, None for all rows; size: rows or answers that determine the cost."""
    n_basis = None
    if isinstance(model.basis, str):
        n_basis = auto_basis(model.n_basis, size, most=AUTO_BASIS, n_auto=AUTO_BASIS)
        if n_basis is None:
            return None
    return Basis.of(view, X, choose_basis(view, X, candidates, n_basis, model.basis, rng))


def basis_features(basis: Basis, view: View, X: Any) -> FeatureMap:
    """Features from basis rows, with the kernel of a view."""
    phi = FeatureMap.on_basis(replace(basis, view=view), X)
    # C order, as after loading from a file: products round differently in another order
    return replace(phi, T=np.ascontiguousarray(phi.T))


def on_basis(phi: FeatureMap, items: DistinctRows, sites: Sites, precision: Floats | None) -> PriorFeatures:
    """Features of the named items, from basis rows."""
    items_named, named = sites.compacted()
    return PriorFeatures(phi, _columns(phi, items, items_named), named, precision)


def precision_on_basis(phi: FeatureMap, items: DistinctRows, L: Any) -> Floats:
    """Λ0 of the features from basis rows, over all items."""
    R = _columns(phi, items, np.arange(len(items)))
    return np.asarray(np.eye(phi.n_features) + R.T @ (L @ R))


def _columns(phi: FeatureMap, items: DistinctRows, chosen: Integers) -> Floats:
    assert phi.basis is not None
    R = np.empty((len(chosen), phi.n_features))
    for piece, K in phi.basis.blocks(items.rows, chosen):
        R[piece] = K @ np.asarray(phi.T)
    return R


def _inverse_under(triangle: Floats) -> Floats:
    """T with k(x, pivots) T the features of a row x, from the triangular features of the pivots."""
    return np.asarray(linalg.solve_triangular(triangle, np.eye(len(triangle)), lower=True, check_finite=False).T)
