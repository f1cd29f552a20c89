"""Gaussian, ARD, Laplacian and chi-square kernels, with the median heuristic."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.kernels.kernel import Floats, Gram, Kernel, products, require_positive, squared_norms
from corank.core.rows.access import ScaledRows
from corank.errors import InputError


def centre_of(Z: Any) -> Any:
    """Return the mean of each column; for a CSR matrix, 0 for columns that are mostly zero."""
    if not sparse.issparse(Z):
        return Z.mean(axis=0, dtype=np.float64)
    is_stored = Z.data != 0.0
    columns, values = Z.indices[is_stored], Z.data[is_stored].astype(np.float64)
    counts = np.bincount(columns, minlength=Z.shape[1])
    means = np.bincount(columns, values, Z.shape[1]) / np.maximum(counts, 1)
    return sparse.csr_array(np.where(2 * counts > Z.shape[0], means, 0.0)[None, :])


def subtract_centre(centre: Any, rows: Any) -> Any:
    """Subtract a centre in float64; the result is sparse if both are."""
    if not sparse.issparse(rows):
        return rows - (centre.toarray() if sparse.issparse(centre) else centre)
    if not sparse.issparse(centre):
        return rows.toarray() - centre
    if not centre.nnz:
        return rows
    n = rows.shape[0]
    repeated = (np.tile(centre.data, n), np.tile(centre.indices, n), np.arange(n + 1) * centre.nnz)
    return sparse.csr_array(rows, dtype=np.float64) - sparse.csr_array(repeated, shape=rows.shape)


# largest tolerated error of a similarity before differences are computed row by row
_VISIBLE = 1e-12
# pairs of rows from which the median is computed
_MEDIAN_PAIRS = 5000


@dataclass(frozen=True)
class _Radial(Kernel):
    """k(x, z) = exp(−gamma D(x, z)); "median" sets gamma to `at_median` / the median of D."""

    gamma: float | str = "median"

    at_median: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if self.gamma != "median":
            require_positive(self.gamma, "gamma", ' or "median"')

    def fit(self, X: Any, rng: np.random.Generator, weights: NDArray[np.float64] | None = None) -> Self:
        """Replace "median" by ``at_median`` / the median D of pairs of different rows (a sample if there are many)."""
        if self.gamma != "median":
            return self
        rows = X if isinstance(X, ScaledRows) else self._rows(X)
        present = np.arange(rows.shape[0]) if weights is None else np.flatnonzero(weights > 0.0)
        n = len(present)
        if n < 2:
            raise InputError(f"the median distance of {n} rows is undefined; pass gamma as a number.")
        if n * (n - 1) // 2 <= _MEDIAN_PAIRS:
            a, b = np.triu_indices(n, 1)
        else:
            a = rng.integers(0, n, _MEDIAN_PAIRS)
            b = (a + rng.integers(1, n, _MEDIAN_PAIRS)) % n
        a, b = present[a], present[b]
        A, B = self._rows(rows[a]), self._rows(rows[b])
        with np.errstate(over="ignore"):
            D = self._distances(A, B)
        share = (D > 0) if weights is None else (D > 0) * weights[a] * weights[b]
        if not share.any():
            # all rows are equal: any gamma gives the same kernel
            if not abs(A - B).max() > 0.0:
                return replace(self, gamma=1.0)
            share = np.ones(len(D))
        order = np.argsort(D)
        reached = np.cumsum(share[order])
        median = float(D[order][np.searchsorted(reached, 0.5 * reached[-1])])
        with np.errstate(over="ignore", divide="ignore"):
            gamma = np.float64(self.at_median) / median
        if not 0.0 < gamma < np.inf:
            size = "large" if gamma == 0.0 else "small"
            raise InputError(
                f"X has numbers so {size} that distances of rows overflow or underflow in float64; rescale the columns."
            )
        return replace(self, gamma=float(gamma))

    def diag(self, X: Any) -> Gram:
        """Return 1 for each row."""
        rows = self._rows(X)
        return np.ones(rows.shape[0], dtype=rows.dtype)

    def _number(self) -> float:
        if isinstance(self.gamma, str):
            raise InputError('gamma is "median", which depends on data; call kernel.fit(X, rng) first.')
        return self.gamma

    @abstractmethod
    def _distances(self, A: Any, B: Any) -> NDArray[np.float64]:
        """D(a_i, b_i) row by row."""


@dataclass(frozen=True)
class GaussianKernel(_Radial, names=("gaussian", "rbf")):
    """
    k(x, z) = exp(−gamma ‖x − z‖²); "median" gamma is 1 / (2σ²), σ twice the median distance.

    Distances are computed in float64 after subtracting the mean of Z, so that a common offset causes no cancellation.

    gamma: Positive; "median" is resolved by `fit`.
    """

    # with half of this σ, rankers with few judgements lost up to 0.02 in AP against the best width
    at_median: ClassVar[float] = 0.125

    @property
    def theta(self) -> Floats:
        """Logarithm of gamma."""
        return np.log([self._number()])

    def theta_gradient(self, rows: Any, K: Floats, Q: Floats) -> Floats:
        """Compute Σ_ij Q_ij ∂K_ij/∂log gamma; K = exp(−gamma D), so ∂K/∂log gamma = K log K."""
        log_K = np.log(K, out=np.zeros_like(K), where=K > 0.0)
        return np.array([np.sum(Q * K * log_K)])

    def _with_theta(self, theta: Floats) -> Kernel:
        return replace(self, gamma=float(np.exp(theta[0])))

    def _gram(self, X: Any, Z: Any) -> Gram:
        K = _squared_distances(X, Z, _VISIBLE / self._number())
        K *= -self._number()
        return np.asarray(np.exp(K, out=K), dtype=np.result_type(X.dtype, Z.dtype))

    def _distances(self, A: Any, B: Any) -> NDArray[np.float64]:
        return squared_norms(A.astype(np.float64) - B)


@dataclass(frozen=True)
class LaplacianKernel(_Radial, names=("laplacian",)):
    """
    k(x, z) = exp(−gamma ‖x − z‖₁); "median" gamma is 1 / the median L1 distance.

    gamma: Positive; "median" is resolved by `fit`.
    """

    takes_sparse: ClassVar[bool] = False

    def _gram(self, X: Any, Z: Any) -> Gram:
        from scipy.spatial.distance import cdist

        return np.asarray(np.exp(-self._number() * cdist(X, Z, "cityblock")), dtype=np.result_type(X, Z))

    def _distances(self, A: Any, B: Any) -> NDArray[np.float64]:
        return np.asarray(np.abs(A - B).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class ChiSquareKernel(_Radial, names=("chi-square",)):
    """
    k(x, z) = exp(−gamma Σ_j (x_j − z_j)²/(x_j + z_j)) for histograms; "median" gamma is 1 / the median sum.

    gamma: Positive; "median" is resolved by `fit`.
    """

    takes_sparse: ClassVar[bool] = False
    scales_columns: ClassVar[bool] = False

    def _gram(self, X: Any, Z: Any) -> Gram:
        from sklearn.metrics.pairwise import chi2_kernel  # takes a second to import

        return np.asarray(chi2_kernel(X, Z, gamma=self._number()), dtype=np.result_type(X, Z))

    def _distances(self, A: Any, B: Any) -> NDArray[np.float64]:
        total = A + B
        return np.asarray(np.divide((A - B) ** 2, total, out=np.zeros_like(total), where=total > 0).sum(axis=1))

    def _rows(self, X: Any) -> Any:
        rows = super()._rows(X)
        if rows.size and rows.min() < 0:
            row, column = np.argwhere(rows < 0)[0]
            raise InputError(
                f"X is {rows[row, column]} at row {row}, column {column}; the chi-square kernel compares histograms; "
                "pass counts or shares of at least 0."
            )
        return rows


def _squared_distances(X: Any, Z: Any, allowed: float) -> NDArray[np.float64]:
    """Compute ‖x − z‖² for all pairs of rows, after subtracting a centre of Z to avoid cancellation."""
    centre = centre_of(Z)
    right = subtract_centre(centre, Z)
    left = right if X is Z else subtract_centre(centre, X)
    of_right = squared_norms(right)
    of_left = of_right if left is right else squared_norms(left)
    farthest = float(of_left.max(initial=0.0) + of_right.max(initial=0.0))
    if not np.isfinite(farthest):
        # callers report similarities that are not finite
        return np.full((left.shape[0], right.shape[0]), np.nan)
    are_dense = not (sparse.issparse(left) or sparse.issparse(right))
    if are_dense and np.finfo(np.float64).eps * farthest > allowed:
        from scipy.spatial import distance  # takes long to import

        return np.asarray(distance.cdist(left, right, "sqeuclidean"))
    D = products(left, right)
    D *= -2.0
    D += of_left[:, None]
    D += of_right
    np.maximum(D, 0.0, out=D)
    if left is right:
        np.fill_diagonal(D, 0.0)
    return D


@dataclass(frozen=True)
class ARDKernel(Kernel, names=("ard",)):
    """
    k(x, z) = exp(−Σ_j gamma_j (x_j − z_j)²): automatic relevance determination (ARD), one width per column.

    `PreferenceGP` learns the widths. In other estimators "median" gives all columns the gamma of `GaussianKernel`.
    """

    gammas: tuple[float, ...] | str = "median"  # one positive number per column; "median" is resolved by `fit`

    def __post_init__(self) -> None:
        if self.gammas != "median":
            if isinstance(self.gammas, str) or not len(self.gammas):
                raise InputError(f"gammas is {self.gammas!r}; pass one positive number per column, or 'median'.")
            for gamma in self.gammas:
                require_positive(gamma, "a gamma")
            object.__setattr__(self, "gammas", tuple(map(float, self.gammas)))

    def fit(self, X: Any, rng: np.random.Generator, weights: NDArray[np.float64] | None = None) -> Kernel:
        """Replace "median" by the gamma of `GaussianKernel`, for every column."""
        if self.gammas != "median":
            return self
        common = GaussianKernel().fit(X, rng, weights)
        return replace(self, gammas=(float(common.gamma),) * X.shape[1])

    @property
    def theta(self) -> Floats:
        """Logarithms of gammas."""
        return np.log(np.array(self.gammas, dtype=np.float64))

    def theta_gradient(self, rows: Any, K: Floats, Q: Floats) -> Floats:
        """Compute Σ_ij Q_ij ∂K_ij/∂log gamma_k for each column k."""
        X, W = rows - rows.mean(axis=0), Q * K
        # Σ W_ij (x_i − x_j)² = 2 (Σ_i x_i² Σ_j W_ij − xᵀWx), column by column
        return np.asarray(-2.0 * np.array(self.gammas) * (W.sum(axis=1) @ X**2 - np.sum(X * (W @ X), axis=0)))

    def _with_theta(self, theta: Floats) -> Kernel:
        return replace(self, gammas=tuple(np.exp(theta).tolist()))

    def diag(self, X: Any) -> Gram:
        """Return 1 for each row."""
        return GaussianKernel(1.0).diag(X)

    def _gram(self, X: Any, Z: Any) -> Gram:
        if isinstance(self.gammas, str):
            raise InputError('gammas is "median", which depends on data; call kernel.fit(X, rng) first.')
        if len(self.gammas) != X.shape[1]:
            raise InputError(f"gammas has {len(self.gammas)} numbers for {X.shape[1]} columns; pass one per column.")
        size = np.sqrt(np.array(self.gammas))
        left = _times(X, size)
        return GaussianKernel(1.0)._gram(left, left if Z is X else _times(Z, size))


def _times(X: Any, size: Floats) -> Any:
    """Multiply columns."""
    return X.multiply(size).tocsr() if sparse.issparse(X) else X * size
