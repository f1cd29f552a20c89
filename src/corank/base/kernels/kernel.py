"""Kernel: the interface of all kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from corank.core.rows.access import ScaledRows
from corank.data.rows import as_rows
from corank.errors import InputError
from corank.fitted import Part
from corank.memory import require_memory

Gram = NDArray[Any]
Floats = NDArray[np.float64]

# rows of a block for the diagonal
_DIAGONAL_BLOCK = 64


KERNELS: dict[str, type[Kernel]] = {}
"""Kernels by the names that the parameter `kernel` takes; a subclass of `Kernel` gives its own."""


@dataclass(frozen=True)
class Kernel(Part, ABC):
    """
    A kernel: ``kernel(X, Z)`` returns a Gram matrix, ``kernel(X)`` that of X with itself.

    float32 rows give a float32 Gram matrix. Kernels are compared by value. They can be saved (see
    `corank.deploy.persist`) unless they hold a function.
    """

    # whether k(x, z) = x·z: scores are then sums of weighted columns
    is_linear: ClassVar[bool] = False
    # whether the rows of X already hold similarities to the training rows
    is_precomputed: ClassVar[bool] = False
    # whether the Gram matrix comes from a function of the user
    is_user_function: ClassVar[bool] = False
    # whether the formula guarantees a positive semidefinite Gram matrix; otherwise learners check it
    is_positive_definite: ClassVar[bool] = True
    # whether CSR matrices are accepted
    takes_sparse: ClassVar[bool] = True
    # whether columns may be scaled to a common size first
    scales_columns: ClassVar[bool] = True
    # whether rows may be arbitrary objects instead of numbers
    takes_objects: ClassVar[bool] = False

    def __init_subclass__(cls, names: tuple[str, ...] = (), **more: Any) -> None:
        """Register the kernel under its names."""
        super().__init_subclass__(**more)
        KERNELS.update(dict.fromkeys(names, cls))

    @property
    def theta(self) -> Floats:
        """Logarithms of the parameters that can be learnt from data; empty if there are none."""
        return np.empty(0)

    def with_theta(self, theta: Floats) -> Kernel:
        """Replace the parameters that can be learnt."""
        return self._with_theta(theta) if len(theta) else self

    def theta_gradient(self, rows: Any, K: Floats, Q: Floats) -> Floats:
        """Compute Σ_ij Q_ij ∂K_ij/∂θ for a symmetric Q."""
        return np.empty(0)

    def __call__(self, X: Any, Z: Any = None) -> Gram:
        """Return the Gram matrix of the rows of X and Z (of X with itself by default)."""
        left = self._rows(X)
        right = left if Z is None else self._rows(Z)
        if left.shape[1:] != right.shape[1:]:
            raise InputError(f"X has {left.shape[1]} columns and Z {right.shape[1]}; pass rows with the same columns.")
        return self._gram(left, right)

    def diag(self, X: Any) -> Gram:
        """Compute the similarity of each row with itself."""
        rows = self._rows(X)
        blocks = (rows[start : start + _DIAGONAL_BLOCK] for start in range(0, rows.shape[0], _DIAGONAL_BLOCK))
        return np.concatenate([np.diagonal(self(block)) for block in blocks])

    def fit(self, X: Any, rng: np.random.Generator, weights: NDArray[np.float64] | None = None) -> Kernel:
        """Compute the parameters that depend on data."""
        return self

    def _with_theta(self, theta: Floats) -> Kernel:
        raise NotImplementedError

    @abstractmethod
    def _gram(self, X: Any, Z: Any) -> Gram:
        """Return the Gram matrix of checked rows."""

    def _rows(self, X: Any) -> Any:
        rows = as_rows(X)
        if sparse.issparse(rows) and not self.takes_sparse:
            raise InputError(
                f"X is sparse, but {type(self).__name__} needs dense rows; pass X.toarray(), or use a linear, "
                "polynomial, gaussian or cosine kernel."
            )
        return rows


def products(X: Any, Z: Any) -> Gram:
    """Return x·z for all pairs of rows as a dense array."""
    K = X @ Z.T
    return np.asarray(K.toarray() if sparse.issparse(K) else K)


def squared_norms(X: Any) -> Gram:
    """Return ‖x‖² for each row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))


def require_positive(value: Any, name: str, otherwise: str = "") -> None:
    """Raise `InputError` unless a parameter is a positive number."""
    if not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise InputError(f"{name} is {value!r}; pass a positive number{otherwise}.")


# smaller eigenvalues, relative to the largest, are rounding errors
RANK_TOLERANCE = 1e-12
# largest negative eigenvalue, relative to the norm, of a kernel that counts as definite
INDEFINITE = 1e-6
# largest difference between K and its transpose, relative to the largest entry
_ASYMMETRIC = 1e-8
# rows that are compared with columns at once
_BLOCK = 256


def is_precomputed(kernel: Any) -> bool:
    """Return whether the argument `kernel` of an estimator is "precomputed" or a `PrecomputedKernel`."""
    return kernel == "precomputed" if isinstance(kernel, str) else getattr(kernel, "is_precomputed", False) is True


def require_square(n: int, n_arrays: float) -> None:
    """Raise `InputError` if this number of Gram matrices of n rows does not fit in memory."""
    require_memory(n, 8.0 * n_arrays * n * n, "set n_basis to fewer rows")


def require_similarities(K: Gram, kernel: Kernel) -> None:
    """Raise `InputError` if similarities are not finite."""
    if np.isfinite(K).all():
        return
    if kernel.is_user_function:
        raise InputError("the kernel function returned NaN or infinity; return finite similarities.")
    raise InputError("similarities of the rows overflow float64; rescale the columns of X.")


def require_inner_product(K: NDArray[np.float64], kernel: Kernel) -> None:
    """
    Raise `InputError` unless a Gram matrix is finite, symmetric and positive semidefinite.

    Kernels with `is_positive_definite` are only checked for finite values; others are checked in O(r³).

    K (r, r): Gram matrix; made exactly symmetric in place.
    """
    require_similarities(K, kernel)
    if kernel.is_positive_definite:
        return
    allowed = _ASYMMETRIC * float(max(K.max(initial=0.0), -K.min(initial=0.0)))
    for start in range(0, len(K), _BLOCK):
        rows = slice(start, start + _BLOCK)
        # earlier blocks compared the columns before this one
        if (np.abs(K[rows, start:] - K[start:, rows].T) > allowed).any():
            raise InputError("the kernel is not symmetric; use a kernel with k(a, b) = k(b, a).")
        mean = (K[rows, start:] + K[start:, rows].T) / 2.0
        K[rows, start:], K[start:, rows] = mean, mean.T
    shifted = K.copy()
    shifted[np.diag_indices_from(shifted)] += INDEFINITE * float(np.linalg.norm(K)) or 1.0
    try:
        linalg.cholesky(shifted.T, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        raise indefinite() from None


def indefinite() -> InputError:
    """Return the error for a Gram matrix that is not positive semidefinite."""
    return InputError("the kernel is not positive semidefinite; use a kernel that is an inner product.")


def inverse_root(K: NDArray[np.float64]) -> NDArray[np.float64]:
    """
    Return T = U diag(κ)^(−½) for K = U diag(κ) Uᵀ; the rows of K T have the Gram matrix K.

    K (r, r): symmetric, finite, positive semidefinite Gram matrix; overwritten.
    Returns (r, k): T; eigenvalues below `RANK_TOLERANCE` times the largest are dropped, k are left.
    """
    kappa, U = linalg.eigh(K, overwrite_a=True, check_finite=False)
    kept = kappa > RANK_TOLERANCE * max(float(kappa[-1]), 0.0)
    return np.asarray(U[:, kept] / np.sqrt(kappa[kept]))


@dataclass(frozen=True)
class LinearKernel(Kernel, names=("linear",)):
    """k(x, z) = x·z."""

    is_linear: ClassVar[bool] = True

    def _gram(self, X: Any, Z: Any) -> Gram:
        return products(X, Z)

    def diag(self, X: Any) -> Gram:
        """Compute ‖x‖² for each row."""
        return squared_norms(self._rows(X))


@dataclass(frozen=True)
class PolynomialKernel(Kernel, names=("polynomial",)):
    """k(x, z) = (gamma x·z + coef0)^degree."""

    degree: int = 2  # at least 1
    gamma: float = 1.0  # positive
    coef0: float = 1.0  # at least 0

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or int(self.degree) != self.degree or self.degree < 1:
            raise InputError(f"degree is {self.degree}; pass a whole number of at least 1.")
        require_positive(self.gamma, "gamma")
        coef0: Any = self.coef0
        if not (isinstance(coef0, Real) and 0 <= float(coef0) < np.inf):
            raise InputError(f"coef0 is {self.coef0}; pass a number of at least 0, so that the kernel is definite.")

    def _gram(self, X: Any, Z: Any) -> Gram:
        K = products(X, Z)
        K *= self.gamma
        K += self.coef0
        K **= self.degree
        return K

    def diag(self, X: Any) -> Gram:
        """Compute (gamma ‖x‖² + coef0)^degree for each row."""
        return np.asarray((self.gamma * squared_norms(self._rows(X)) + self.coef0) ** self.degree)


@dataclass(frozen=True)
class CosineKernel(Kernel, names=("cosine",)):
    """k(x, z) = x·z / (‖x‖ ‖z‖); 0 if a row is zero."""

    scales_columns: ClassVar[bool] = False

    def _gram(self, X: Any, Z: Any) -> Gram:
        from sklearn.metrics.pairwise import cosine_similarity  # takes a second to import

        return np.asarray(cosine_similarity(X, Z))


@dataclass(frozen=True)
class SumKernel(Kernel):
    """
    k(x, z) = Σ_v c_v k_v(x, z), where each kernel uses its own columns.

    columns: Columns of each kernel, None for all columns; None uses all columns for every kernel.
    """

    kernels: tuple[Kernel, ...]  # the parts k_v
    weights: tuple[float, ...]  # c_v, at least 0
    columns: tuple[tuple[int, ...] | None, ...] | None = None

    def __post_init__(self) -> None:
        n = len(self.kernels)
        if not n or len(self.weights) != n or (self.columns is not None and len(self.columns) != n):
            raise InputError(f"there are {n} kernels and {len(self.weights)} weights; pass one weight per kernel.")
        if not all(np.isfinite(c) and c >= 0 for c in self.weights):
            raise InputError(f"weights is {self.weights}; pass finite numbers of at least 0.")
        if any(kernel.is_precomputed for kernel in self.kernels):
            raise InputError("a precomputed kernel cannot be part of a sum; add the Gram matrices and pass their sum.")

    # class attributes of other kernels; here they depend on the parts
    @property
    def scales_columns(self) -> bool:  # type: ignore[override]
        """Whether columns may be scaled to a common size."""
        return all(kernel.scales_columns for kernel in self.kernels)

    @property
    def takes_objects(self) -> bool:  # type: ignore[override]
        """Whether rows may be arbitrary objects."""
        return all(kernel.takes_objects for kernel in self.kernels)

    def diag(self, X: Any) -> Gram:
        """Add up the diagonals."""
        rows = self._rows(X)
        parts = [c * kernel.diag(self._select(v, rows)) for v, (kernel, c) in self._used]
        return np.asarray(sum(parts, start=np.zeros(rows.shape[0])))

    def fit(self, X: Any, rng: np.random.Generator, weights: NDArray[np.float64] | None = None) -> Kernel:
        """Compute the parameters of every kernel."""
        parts = zip(self.kernels, rng.spawn(len(self.kernels)), strict=True)
        return replace(self, kernels=tuple(k.fit(self._select(v, X), own, weights) for v, (k, own) in enumerate(parts)))

    def _rows(self, X: Any) -> Any:
        return X if self.takes_objects and getattr(X, "ndim", 2) == 1 else super()._rows(X)

    def _gram(self, X: Any, Z: Any) -> Gram:
        total = np.zeros((X.shape[0], Z.shape[0]))
        for v, (kernel, c) in self._used:
            own = self._select(v, X)
            # kernels are more accurate if both sides are the same array
            K = kernel(own, None if Z is X else self._select(v, Z))
            if Z is X and not kernel.is_positive_definite:
                require_inner_product(np.asarray(K, dtype=np.float64), kernel)
            total += c * K
        return total

    @property
    def _used(self) -> list[tuple[int, tuple[Kernel, float]]]:
        return [part for part in enumerate(zip(self.kernels, self.weights, strict=True)) if part[1][1] > 0.0]

    def _select(self, v: int, X: Any) -> Any:
        columns = None if self.columns is None else self.columns[v]
        if columns is None:
            return X
        return X.select(list(columns)) if isinstance(X, ScaledRows) else X[:, list(columns)]
