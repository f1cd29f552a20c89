"""Gram matrices: check that they are finite, symmetric and positive semidefinite; their inverse root."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from corank.base.kernels.kernel import Gram, Kernel
from corank.errors import InputError
from corank.memory import require_memory

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
