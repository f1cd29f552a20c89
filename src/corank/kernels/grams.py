"""What learners ask of a Gram matrix: similarities of the training rows, finite, and those of an inner product."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from corank.errors import InputError
from corank.kernels.given import PrecomputedKernel
from corank.kernels.kernel import Gram, Kernel

# what a negative eigenvalue may be, relative to the largest, before a kernel is called indefinite
_INDEFINITE = 1e-6


def is_precomputed(kernel: Any) -> bool:
    """
    Tell whether a user means similarities by the rows of X.

    Parameters
    ----------
    kernel : object
        What the user gave as a kernel.

    Returns
    -------
    bool
        Whether it is "precomputed" or a `PrecomputedKernel`.
    """
    return isinstance(kernel, PrecomputedKernel) or (isinstance(kernel, str) and kernel == "precomputed")


def require_square(X: Any, kernel: Kernel) -> None:
    """
    Raise one sentence where a precomputed kernel is given anything but a Gram matrix.

    Parameters
    ----------
    X : ndarray or CSR matrix
        Training rows.
    kernel : Kernel
        The kernel that will see them.
    """
    if isinstance(kernel, PrecomputedKernel) and X.shape[0] != X.shape[1]:
        raise InputError(
            f"kernel='precomputed' needs the Gram matrix of the training rows, but X has shape {X.shape}; pass a "
            "square X."
        )


def require_finite(K: Gram) -> None:
    """
    Raise one sentence where a kernel gave what is no number.

    Parameters
    ----------
    K : array
        Similarities.
    """
    if not np.isfinite(K).all():
        raise InputError("the kernel gave NaN or infinity; scale the columns of X, or choose other kernel parameters.")


def inverse_root(K: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """
    Return T = U diag(κ)^(−½) of K = U diag(κ) Uᵀ: K T are rows whose products are those of the kernel.

    Parameters
    ----------
    K : array of shape (r, r)
        Gram matrix, symmetric and finite; destroyed.
    least : float
        Directions with κ below this share of the largest are rounding errors, and left out.

    Returns
    -------
    array of shape (r, k)
        T, of the rank k that is left.

    Examples
    --------
    >>> T = inverse_root(np.diag([4.0, 0.0]), 1e-12)
    >>> np.abs(np.diag([4.0, 0.0]) @ T).tolist()
    [[2.0], [0.0]]
    """
    kappa, U = linalg.eigh(K, overwrite_a=True, check_finite=False)
    largest = float(np.abs(kappa).max(initial=0.0))
    if kappa[0] < -max(_INDEFINITE, least) * largest:
        raise InputError(
            f"the kernel is not positive semidefinite: the Gram matrix of the basis has an eigenvalue of "
            f"{kappa[0]:.3g} beside {kappa[-1]:.3g}; use a kernel that is an inner product."
        )
    kept = kappa > least * largest
    return np.asarray(U[:, kept] / np.sqrt(kappa[kept]))
