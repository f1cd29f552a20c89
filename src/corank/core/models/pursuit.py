"""Kernel of pursuits in two views: the joint search over two dictionaries."""

from __future__ import annotations

import numpy as np

from corank.core.jit import jit

TINY = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)
"""Smaller squared norms cannot be divided by."""


@jit
def joint_best(cross, e1, e2, first, last):  # type: ignore[no-untyped-def]
    """
    Find the pair of columns (i, j), first ≤ i < last, that maximises eᵀA⁻¹e, A = [[1, x_ij], [x_ij, 1]].

    eᵀA⁻¹e = (e1² − 2 e1 e2 x + e2²) / (1 − x²); fractions are compared by products. Any 2 × 2 system takes this form
    after division by the roots of its diagonal.

    cross (N1, N2): x.
    e1 (N1,), e2 (N2,): e of the first and second view.
    first, last: the range of columns of the first view.
    Returns: the largest value, i and j.
    """
    top, under = -1.0, 1.0
    at_i = at_j = np.uint64(0)
    for i in range(np.uint64(first), np.uint64(last)):
        square, twice = e1[i] * e1[i], 2.0 * e1[i]
        for j in range(np.uint64(len(e2))):
            x = cross[i, j]
            numerator = square + e2[j] * (e2[j] - twice * x)
            determinant = 1.0 - x * x
            if numerator * under > top * determinant:
                top, under, at_i, at_j = numerator, determinant, np.uint64(i), np.uint64(j)
    return top / under, at_i, at_j
