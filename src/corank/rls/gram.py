"""The Gram matrix of basis rows: of the dense dual's rows, or of those that stand for all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank.kernels import CallableKernel, PrecomputedKernel
from corank.views import View

Floats = NDArray[np.float64]

# what K and its transpose may differ by, relative to the largest entry
_SYMMETRY_TOLERANCE = 1e-8
# rows that are compared with columns at a time
_BLOCK = 256


def basis_of(view: View, X: Any, rows: NDArray[np.int64]) -> Any:
    """
    Take basis rows from the training rows, as the view's kernel wants them.

    Parameters
    ----------
    view : View
        Columns and kernel.
    X : ndarray or CSR matrix
        All training rows.
    rows : array of int64
        Numbers of the basis rows.

    Returns
    -------
    ndarray or CSR matrix
        The rows in the view's columns; their numbers for a precomputed kernel.
    """
    return rows if isinstance(view.kernel, PrecomputedKernel) else as_doubles(view.select(X[rows]))


def gram_of(view: View, X: Any, rows: NDArray[np.int64], basis: Any) -> Floats:
    """
    Compute the Gram matrix of basis rows.

    Parameters
    ----------
    view : View
        Columns and kernel.
    X : ndarray or CSR matrix
        All training rows.
    rows : array of int64
        Numbers of the basis rows.
    basis : ndarray or CSR matrix
        What `basis_of` gives for them.

    Returns
    -------
    array of float64, shape (r, r)
        The matrix, in C order.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        K = view.kernel(X[rows], basis) if isinstance(view.kernel, PrecomputedKernel) else view.kernel(basis)
    if isinstance(view.kernel, CallableKernel):
        # the function may keep what it returned, and callers overwrite it
        K = np.array(K, dtype=np.float64)
        if not np.isfinite(K).all():
            raise InputError("the kernel function returned NaN or infinity; return finite similarities.")
    elif not np.isfinite(np.diagonal(K)).all():
        raise InputError("similarities of the rows exceed what float64 holds; scale the columns of X.")
    if isinstance(view.kernel, CallableKernel | PrecomputedKernel):
        _require_symmetry(K)
    return np.ascontiguousarray(K, dtype=np.float64)


def as_doubles(rows: Any) -> Any:
    """
    Return rows in float64, so that a Gram matrix is not rounded to single precision; objects stay as they are.

    Parameters
    ----------
    rows : ndarray or CSR matrix
        Rows.

    Returns
    -------
    ndarray or CSR matrix
        The rows themselves where nothing has to change.
    """
    return rows.astype(np.float64) if rows.dtype == np.float32 else rows


def _require_symmetry(K: Floats) -> None:
    allowed = _SYMMETRY_TOLERANCE * float(max(K.max(initial=0.0), -K.min(initial=0.0)))
    for start in range(0, len(K), _BLOCK):
        rows = slice(start, start + _BLOCK)
        # columns before the block were compared by earlier blocks
        if (np.abs(K[rows, start:] - K[start:, rows].T) > allowed).any():
            raise InputError("the kernel's Gram matrix is not symmetric; use a kernel with k(a, b) = k(b, a).")
