"""The dense dual of RankRLS: (H K Hᵀ + λI) b = H y and a = Hᵀ b, with L = HᵀH and K the Gram matrix of the rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.basis.gram import gram_of
from corank.rls.frame import Frame
from corank.views import View

Floats = NDArray[np.float64]


def dual_system(view: View, X: Any, frame: Frame, basis: Any) -> tuple[Floats, Floats]:
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
    basis : ndarray or CSR matrix
        What `corank.basis.gram.basis_of` gives for them.

    Returns
    -------
    M : array of shape (n, n)
        H K Hᵀ plus the constants' part.
    t : array of shape (n,)
        H y.
    """
    L = frame.laplacian
    M = gram_of(view, X, frame.rows, basis)
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
