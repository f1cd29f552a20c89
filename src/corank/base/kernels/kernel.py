"""Kernel: the interface of all kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from corank.data.rows import as_rows
from corank.errors import InputError
from corank.fitted import Part
from corank.memory import require_memory

Gram = NDArray[Any]
Floats = NDArray[np.float64]

# rows of a block for the diagonal
_DIAGONAL_BLOCK = 64


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
