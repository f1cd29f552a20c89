"""Subtract the weighted mean of each query from its rows: the Laplacian of all pairs in O(n)."""

from __future__ import annotations

import numpy as np

from corank.core.jit import jit

FULL = 0
"""out = L v."""
HALF = 1
"""out = H v, with HᵀH = L."""
HALF_T = 2
"""out = Hᵀ v."""


@jit
def centre_blocks(V, out, rows, starts, weights, scale, form, first, last):  # type: ignore[no-untyped-def]
    """
    Apply the Laplacian of all pairs, or one of its halves, inside blocks first..last-1.

    With row weights w, W = Σ w and u = √w, a block has L = (s/W) (W diag(w) − w wᵀ) and
    H = √s (I − u uᵀ/W) diag(u), where s is the block's scale. For a column v and its mean m = Σ w v / W,

    * L v = s w (v − m),
    * H v = √s u (v − m),
    * Hᵀ v = √s u (v − u Σ u v / W).

    Parameters
    ----------
    V, out : arrays, shape (n, r)
        Operand and result; they may be the same array.
    rows, starts : arrays of uint64
        Block b owns the rows ``rows[starts[b]:starts[b + 1]]``; every other row of `out` is left alone.
    weights : array of float64
        Weight at each position of `rows`, or empty for weights 1.
    scale : array of float64
        s for each block.
    form : int
        FULL, HALF or HALF_T.
    first, last : int
        The run of blocks.
    """
    r = np.uint64(V.shape[1])
    mean = np.empty(r, dtype=np.float64)
    for block in range(np.uint64(first), np.uint64(last)):
        begin, end = starts[block], starts[block + np.uint64(1)]
        if r == 1 and len(weights) == 0:
            _centre_vector(V, out, rows[begin:end], scale[block] if form == FULL else np.sqrt(scale[block]))
            continue
        mean[:] = 0.0
        total = 0.0
        for p in range(begin, end):
            w = weights[p] if len(weights) > 0 else 1.0
            share = np.sqrt(w) if form == HALF_T else w
            total += w
            for c in range(r):
                mean[c] += share * V[rows[p], c]
        for c in range(r):
            mean[c] /= total
        for p in range(begin, end):
            w = weights[p] if len(weights) > 0 else 1.0
            left = scale[block] * w if form == FULL else np.sqrt(scale[block] * w)
            right = np.sqrt(w) if form == HALF_T else 1.0
            for c in range(r):
                out[rows[p], c] = left * (V[rows[p], c] - right * mean[c])


@jit
def _centre_vector(V, out, rows, left):  # type: ignore[no-untyped-def]
    """Centre one unweighted column: without the loop over columns, several times faster."""
    zero = np.uint64(0)
    total = 0.0
    for p in range(np.uint64(len(rows))):
        total += V[rows[p], zero]
    mean = total / len(rows)
    for p in range(np.uint64(len(rows))):
        out[rows[p], zero] = left * (V[rows[p], zero] - mean)
