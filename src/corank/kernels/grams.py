"""What learners ask of a Gram matrix: finite numbers, symmetric, those of an inner product; and the root they take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from corank.errors import InputError
from corank.kernels.kernel import Gram, Kernel

# directions of a Gram matrix below this share of its largest eigenvalue are rounding errors
RANK_TOLERANCE = 1e-12
# what a negative eigenvalue may be, relative to the whole, before a kernel is called indefinite
INDEFINITE = 1e-6
# what K and its transpose may differ by, relative to the largest entry
_ASYMMETRIC = 1e-8
# rows that are compared with columns at a time
_BLOCK = 256


def is_precomputed(kernel: Any) -> bool:
    """
    Return whether a user means similarities by the rows of X.

    Parameters
    ----------
    kernel : object
        What the user gave as a kernel.

    Returns
    -------
    bool
        Whether it is "precomputed" or a `PrecomputedKernel`.
    """
    return kernel == "precomputed" if isinstance(kernel, str) else getattr(kernel, "is_precomputed", False) is True


def require_similarities(K: Gram, kernel: Kernel) -> None:
    """
    Raise `InputError` if a kernel gave what is no number.

    Parameters
    ----------
    K : array
        Similarities.
    kernel : Kernel
        What gave them.
    """
    if np.isfinite(K).all():
        return
    if kernel.is_user_function:
        raise InputError("the kernel function returned NaN or infinity; return finite similarities.")
    raise InputError("similarities of the rows exceed what float64 holds; scale the columns of X.")


def require_inner_product(K: NDArray[np.float64], kernel: Kernel) -> None:
    """
    Raise `InputError` unless a Gram matrix is finite, symmetric and positive semidefinite.

    The kernels of corank are symmetric and definite by their formulas; those a user brings are looked at, in O(r³).

    Parameters
    ----------
    K : array of shape (r, r)
        Similarities of rows with themselves; made exactly symmetric.
    kernel : Kernel
        What gave them.
    """
    require_similarities(K, kernel)
    if kernel.is_positive_definite:
        return
    allowed = _ASYMMETRIC * float(max(K.max(initial=0.0), -K.min(initial=0.0)))
    for start in range(0, len(K), _BLOCK):
        rows = slice(start, start + _BLOCK)
        # columns before the block were compared by earlier blocks
        if (np.abs(K[rows, start:] - K[start:, rows].T) > allowed).any():
            raise InputError("the kernel is not symmetric; use one with k(a, b) = k(b, a).")
        mean = (K[rows, start:] + K[start:, rows].T) / 2.0
        K[rows, start:], K[start:, rows] = mean, mean.T
    shifted = K.copy()
    shifted[np.diag_indices_from(shifted)] += INDEFINITE * float(np.linalg.norm(K)) or 1.0
    try:
        linalg.cholesky(shifted.T, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        raise indefinite() from None


def indefinite() -> InputError:
    """
    Return what is raised where similarities are those of no inner product.

    Returns
    -------
    InputError
        One sentence.
    """
    return InputError("the kernel is not positive semidefinite; use one that is an inner product.")


def inverse_root(K: NDArray[np.float64]) -> NDArray[np.float64]:
    """
    Return T = U diag(κ)^(−½) of K = U diag(κ) Uᵀ: K T are rows whose products are those of the kernel.

    Parameters
    ----------
    K : array of shape (r, r)
        Gram matrix, symmetric, finite and positive semidefinite; destroyed.

    Returns
    -------
    array of shape (r, k)
        T, of the rank k that is left without directions of κ below `RANK_TOLERANCE` times the largest.

    Examples
    --------
    >>> T = inverse_root(np.diag([4.0, 0.0]))
    >>> np.abs(np.diag([4.0, 0.0]) @ T).tolist()
    [[2.0], [0.0]]
    """
    kappa, U = linalg.eigh(K, overwrite_a=True, check_finite=False)
    kept = kappa > RANK_TOLERANCE * max(float(kappa[-1]), 0.0)
    return np.asarray(U[:, kept] / np.sqrt(kappa[kept]))
