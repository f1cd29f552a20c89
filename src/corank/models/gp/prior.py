"""
The distinct rows of a problem (items), and finite features of a Gaussian process prior: f = Φ w, w ~ N(0, Λ0⁻¹).

Without a graph and basis, the posterior differs from the prior in at most as many directions as there are answers or
named items; the smaller of the two gives the columns. With a graph, f has the prior P = (K⁻¹ + L)⁻¹ (eq. 5): K = R Rᵀ
turns it into the precision Λ0 = I + RᵀLR, without an inverse of K. With basis rows, Φ = k(x, B) K_BB^(−½) approximates
K (deterministic training conditional), and Λ0 has the same form. Variances include the part of k(x, x) outside Φ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.neighbors import NearestNeighbors

from corank.base.kernels.basis import Basis, FeatureMap, as_doubles, auto_basis, choose_basis
from corank.base.kernels.kernel import require_inner_product
from corank.base.kernels.views import View
from corank.base.pairs import Laplacian
from corank.errors import InputError
from corank.fitted import Part, Relations, Shapes, are_below
from corank.memory import require_memory
from corank.models.gp.propagation import RANK, root_of
from corank.models.gp.sites import Sites

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

AUTO_BASIS = 500
"""Number of basis rows by default, and of rows above which they are used."""


# arrays as large as the Gram matrix that learning needs at the same time
_GRAMS = 10


@dataclass(frozen=True, eq=False)
class DistinctRows(Part):
    """
    The distinct rows of X (items).

    rows: one row of X for each item, in float64, or objects; for a precomputed kernel, similarities to all rows of X.
    """

    _shapes: ClassVar[Shapes] = {"rows": ("items", "..."), "numbers": ("items",), "of_row": ("rows",)}
    _relations: ClassVar[Relations] = {
        "of_row names items": lambda r: are_below(r.of_row, len(r), -1),
        "numbers names rows": lambda r: are_below(r.numbers, len(r.of_row)),
        "rows are numbers": lambda r: r.rows.dtype in (np.float64, object),
    }

    rows: Any
    numbers: Integers  # (n,): row numbers in X
    of_row: Integers  # (n_rows,): the item of each row of X; −1 for rows of weight 0

    @classmethod
    def of(cls, X: Any, is_used: NDArray[np.bool_]) -> DistinctRows:
        """Find the distinct rows among those marked in `is_used`."""
        numbers = np.flatnonzero(is_used)
        rows = as_doubles(X[numbers])
        first, code = _distinct(rows)
        of_row = np.full(X.shape[0], -1)
        of_row[numbers] = code
        return cls(rows[first], numbers[first], of_row)

    def __len__(self) -> int:
        return len(self.numbers)

    def pairs(self, pairs: Integers, weight: Floats, offset: Floats) -> tuple[Integers, Floats, Floats]:
        """Turn pairs of rows into pairs of items, without pairs of weight 0 and of equal rows."""
        of_items = self.of_row[pairs]
        is_used = (weight > 0.0) & (of_items >= 0).all(axis=1) & (of_items[:, 0] != of_items[:, 1])
        return of_items[is_used], weight[is_used], offset[is_used]

    def are_in(self, rows: Any) -> bool:
        """Whether these are the rows of X."""
        same = as_doubles(rows[self.numbers])
        if sparse.issparse(same) or sparse.issparse(self.rows):
            return bool(abs(sparse.csr_array(same) - sparse.csr_array(self.rows)).max() == 0.0)
        return bool(np.array_equal(same, self.rows))

    def gram(self, view: View, chosen: Integers) -> Floats:
        """Gram matrix of the items `chosen`; raises `InputError` if learning needs more than the free memory."""
        require_memory(len(chosen), 8.0 * _GRAMS * len(chosen) ** 2, "set n_basis to 1,000")
        with np.errstate(over="ignore", invalid="ignore"):
            if view.kernel.is_precomputed:
                K = self.rows[np.ix_(chosen, self.numbers[chosen])]
            else:
                K = view.kernel(self.rows[chosen])
        K = np.array(K, dtype=np.float64, order="C")
        require_inner_product(K, view.kernel)
        return K

    def basis(self, view: View, chosen: Integers) -> Basis:
        """The items `chosen` as a basis."""
        numbers = self.numbers[chosen]
        return Basis(view, numbers, numbers if view.kernel.is_precomputed else self.rows[chosen])

    def laplacian(self, view: View, n_neighbors: int) -> Any:
        """Sparse Laplacian of the graph of nearest neighbours (eq. 4), with edges of weight 1."""
        n = len(self)
        k = min(n_neighbors, n - 1)
        if k < 1:
            return sparse.csr_array((n, n))
        if view.kernel.is_precomputed or self.rows.ndim == 1:
            K = self.gram(view, np.arange(n))
            size = np.diagonal(K)
            squares = np.maximum(size[:, None] + size - 2.0 * K, 0.0)
            np.fill_diagonal(squares, 0.0)
            near = NearestNeighbors(n_neighbors=k, metric="precomputed").fit(np.sqrt(squares)).kneighbors_graph()
        else:
            near = NearestNeighbors(n_neighbors=k).fit(self.rows).kneighbors_graph()
        return Laplacian.from_graph(near.maximum(near.T)).L


def _distinct(rows: Any) -> tuple[Integers, Integers]:
    """Return the positions of the sorted distinct rows, and the number of the distinct row that equals each row."""
    if rows.ndim == 1:  # objects are assumed to be distinct
        return np.arange(len(rows)), np.arange(len(rows))
    if not sparse.issparse(rows):
        _, first, code = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        return first, code.ravel()
    rows.sum_duplicates()
    rows_of_key: dict[tuple[bytes, bytes], list[int]] = {}
    for row in range(rows.shape[0]):
        part = slice(rows.indptr[row], rows.indptr[row + 1])
        key = rows.indices[part].astype(np.int64).tobytes(), rows.data[part].tobytes()
        rows_of_key.setdefault(key, []).append(row)
    code = np.empty(rows.shape[0], dtype=np.int64)
    ordered = sorted(rows_of_key.items())
    for number, (_, members) in enumerate(ordered):
        code[members] = number
    return np.array([members[0] for _, members in ordered], dtype=np.int64), code


def require_items(items: Integers) -> None:
    """Raise `InputError` if answers name rows that had weight 0 in ``fit``."""
    if len(items) and items.min() < 0:
        raise InputError("pairs name a row that had weight 0 in fit; fit again with this row.")


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
    coefficients = _inverse_under(R[pivots])
    if feature_sites is named:
        return PriorFeatures(
            FeatureMap(view, items.basis(view, items_named[pivots]), coefficients, R.shape[1]), R, named
        )
    T = np.zeros((len(items_named), len(pivots)))
    np.add.at(T, named.left[pivots], coefficients)
    np.add.at(T, named.right[pivots], -coefficients)
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
