"""The dense dual of RankRLS: (H K Hᵀ + λI) b = H y and a = Hᵀ b, with L = HᵀH and K the Gram matrix of the rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank.kernels import CallableKernel
from corank.rls.features import as_doubles, basis_of
from corank.rls.frame import Frame
from corank.views import View

Floats = NDArray[np.float64]


def dual_system(view: View, X: Any, frame: Frame) -> tuple[Floats, Floats]:
    """
    Build the system of one view, in O(n²) beside the Gram matrix and at most twice its memory.

    H K Hᵀ is zero along the constant of each query, where H y has no part: those directions are given a value near the
    mean of the diagonal, so that small λ do not make the system singular. No solution changes.

    Parameters
    ----------
    view : View
        Columns and a kernel whose parameters are numbers.
    X : ndarray or CSR matrix
        All rows.
    frame : Frame
        The compared rows.

    Returns
    -------
    M : array of shape (n, n)
        H K Hᵀ plus the constants' part.
    t : array of shape (n,)
        H y.
    """
    L = frame.laplacian
    M = _gram(view, X, frame)
    L.half(M, out=M)
    # K is symmetric: (H K)ᵀ = K Hᵀ
    L.half(M.T, out=M)
    level = float(np.trace(M)) / len(M) or 1.0
    # values that differ: a decomposition that meets one value many times is several times slower
    levels = level * np.linspace(0.5, 1.5, len(frame.scale))
    for own, (begin, end) in zip(levels, pairwise(frame.starts), strict=True):
        u = np.sqrt(frame.w[begin:end] / frame.w[begin:end].sum())
        M[begin:end, begin:end] += own * np.outer(u, u)
    return M, L.half(frame.y)


def _gram(view: View, X: Any, frame: Frame) -> Floats:
    K = view.kernel(as_doubles(view.select(X[frame.rows])), basis_of(view, X, frame.rows))
    if isinstance(view.kernel, CallableKernel):
        # the function may keep what it returned, and we overwrite it
        K = np.array(K, dtype=np.float64)
        if not np.isfinite(K).all():
            raise InputError("the kernel function returned NaN or infinity; return finite similarities.")
    return np.ascontiguousarray(K, dtype=np.float64)
