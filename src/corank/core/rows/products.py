"""
Products of rows with vectors, and Gram matrices ZᵀZ on one thread.

For few columns the kernel for ZᵀZ is nearly as fast as single-threaded BLAS. BLAS with several threads synchronises
them in every product, which is slow for thousands of thin products on a busy machine; callers split the rows instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import is_small, jit, relaxed
from corank.core.rows.access import CSRRows, DenseRows, add_scaled, dot

# rows that are transposed at once: 48 columns fill a second-level cache
PIECE = 256
# BLAS is faster above 192 columns, plus a score and a one
MAX_COLUMNS = 194
# BLAS needs no compilation; above this number of products, its threads may wait for each other
FEW_PRODUCTS = 1 << 18
# sums of `score_dense`
LANES = np.uint64(8)


class GramSum:
    """
    A running sum of ± ZᵀZ for blocks Z with d columns.

    d: number of columns.
    """

    def __init__(self, d: int) -> None:
        self.d = d
        side = d if d > MAX_COLUMNS else d + -d % 4
        self._sum = np.zeros((side, side))

    def add(self, Z: NDArray[np.float64], sign: float = 1.0) -> None:
        """Add sign · ZᵀZ."""
        if self.d > MAX_COLUMNS or len(Z) * self.d**2 <= FEW_PRODUCTS:
            self._sum[: self.d, : self.d] += sign * (Z.T @ Z)
        else:
            add_gram(Z, sign, self._sum)

    def total(self) -> NDArray[np.float64]:
        """Return the sum, a symmetric array of shape (d, d)."""
        upper = np.triu(self._sum[: self.d, : self.d])
        return np.asarray(upper + np.triu(upper, 1).T)


# reordered sums are vectorised
_reordering = relaxed("reassoc", "contract", "nsz")


@_reordering
def add_gram(Z, sign, out):  # type: ignore[no-untyped-def]
    """Add sign · ZᵀZ to the upper triangle of `out`, whose size is rounded up to a multiple of four."""
    add_products(Z, sign, np.zeros((len(out), PIECE)), out)


@_reordering
def add_products(Z, sign, T, out):  # type: ignore[no-untyped-def]
    """Compute `add_gram` with a buffer T for PIECE transposed rows, zero in padded columns."""
    n, d = Z.shape
    padded = len(out)
    for first in range(0, n, PIECE):
        m = min(PIECE, n - first)
        for k in range(m):
            for j in range(d):
                T[j, k] = Z[first + k, j]
        for i in range(0, padded, 4):
            for j in range(i, padded, 4):
                _add_tile(T, i, j, m, sign, out)


@_reordering
def _add_tile(T, i, j, m, sign, out):  # type: ignore[no-untyped-def]
    """Add the products of rows i..i+3 and j..j+3 of T, sixteen sums at once."""
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for k in range(m):
        x0, x1, x2, x3 = T[i, k], T[i + 1, k], T[i + 2, k], T[i + 3, k]
        y0, y1, y2, y3 = T[j, k], T[j + 1, k], T[j + 2, k], T[j + 3, k]
        s00 += x0 * y0
        s01 += x0 * y1
        s02 += x0 * y2
        s03 += x0 * y3
        s10 += x1 * y0
        s11 += x1 * y1
        s12 += x1 * y2
        s13 += x1 * y3
        s20 += x2 * y0
        s21 += x2 * y1
        s22 += x2 * y2
        s23 += x2 * y3
        s30 += x3 * y0
        s31 += x3 * y1
        s32 += x3 * y2
        s33 += x3 * y3
    tile = (s00, s01, s02, s03, s10, s11, s12, s13, s20, s21, s22, s23, s30, s31, s32, s33)
    for k in range(16):
        out[i + k // 4, j + k % 4] += sign * tile[k]


@jit
def _dot_in_lanes(x, w):  # type: ignore[no-untyped-def]
    """
    Return x · w for one dense row.

    Eight sums run over every eighth column, which the compiler vectorises without changing their order: all processors
    and `score_small` give the same bits.
    """
    d = np.uint64(len(w))
    whole = d - d % LANES
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    j = np.uint64(0)
    while j < whole:
        s0 += x[j] * w[j]
        s1 += x[j + np.uint64(1)] * w[j + np.uint64(1)]
        s2 += x[j + np.uint64(2)] * w[j + np.uint64(2)]
        s3 += x[j + np.uint64(3)] * w[j + np.uint64(3)]
        s4 += x[j + np.uint64(4)] * w[j + np.uint64(4)]
        s5 += x[j + np.uint64(5)] * w[j + np.uint64(5)]
        s6 += x[j + np.uint64(6)] * w[j + np.uint64(6)]
        s7 += x[j + np.uint64(7)] * w[j + np.uint64(7)]
        j += LANES
    total = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
    for k in range(whole, d):
        total += x[k] * w[k]
    return total


@jit
def score_dense(X, w, out, first, last):  # type: ignore[no-untyped-def]
    """Write x_i · w to `out[i]`, i from first to last-1, with the bits of `score_small`."""
    for i in range(np.uint64(first), np.uint64(last)):
        out[i] = _dot_in_lanes(X[i], w)


def score_small(X: NDArray[np.floating], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores of `score_dense` without numba, bit for bit."""
    products, lanes = X * w, int(LANES)
    whole = len(w) - len(w) % lanes
    sums = np.zeros((len(X), lanes))
    for j in range(0, whole, lanes):
        sums += products[:, j : j + lanes]
    sums = sums[:, :4] + sums[:, 4:]
    sums = sums[:, :2] + sums[:, 2:]
    out: NDArray[np.float64] = sums[:, 0] + sums[:, 1]
    for j in range(whole, len(w)):
        out += products[:, j]
    return out


def score_rows(
    rows: DenseRows | CSRRows,
    order: NDArray[np.integer],
    w: NDArray[np.float64],
    out: NDArray[np.float64],
    first: int,
    last: int,
) -> None:
    """Write x_i · w to `out[k]` for i = order[k], k from first to last-1; rows have no factors."""
    if isinstance(rows, CSRRows):
        _score_sparse_rows(rows, order, w, out, first, last)
    elif is_small((last - first) * len(w)):
        out[first:last] = score_small(rows.values[order[first:last]], w)
    else:
        _score_dense_rows(rows.values, order, w, out, first, last)


@jit
def _score_dense_rows(X, order, w, out, first, last):  # type: ignore[no-untyped-def]
    for k in range(first, last):
        out[k] = _dot_in_lanes(X[order[k]], w)


@jit
def _score_sparse_rows(rows, order, w, out, first, last):  # type: ignore[no-untyped-def]
    for k in range(first, last):
        out[k] = dot(rows, order[k], w)  # type: ignore[no-untyped-call]


def gather_rows(
    rows: DenseRows | CSRRows,
    order: NDArray[np.integer],
    h: NDArray[np.float64],
    out: NDArray[np.float64],
    first: int,
    last: int,
) -> None:
    """Add Σ_k h_k x_i to `out`, i = order[k], k from first to last-1; rows have no factors."""
    if isinstance(rows, DenseRows) and is_small((last - first) * len(out)):
        for k in range(first, last):
            if h[k] != 0.0:
                out += h[k] * rows.values[order[k]]
    else:
        _gather_rows(rows, order, h, out, first, last)


@jit
def _gather_rows(rows, order, h, out, first, last):  # type: ignore[no-untyped-def]
    for k in range(first, last):
        if h[k] != 0.0:
            add_scaled(rows, order[k], h[k], out)  # type: ignore[no-untyped-call]
