"""Laplacians of the pairs within queries, applied in O(n) by subtracting means of queries and grades."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import jit_when_large

FULL = 0
"""out = L v."""
HALF = 1
"""out = H v, with HᵀH = L."""
HALF_T = 2
"""out = Hᵀ v."""
INVERSE = 3
"""out = u minus its mean in each block, for v = H u."""


class Blocks(NamedTuple):
    """
    Blocks of rows, split into runs.

    runs, block_runs: run g begins at ``runs[g]``; block b has the runs ``block_runs[b]`` to ``block_runs[b + 1]``.
    """

    rows: NDArray[np.uint64]  # rows, starts: block b has the rows ``rows[starts[b]:starts[b + 1]]``
    starts: NDArray[np.uint64]
    runs: NDArray[np.uint64]
    block_runs: NDArray[np.uint64]
    keep: NDArray[np.float64]  # k of each run
    weights: NDArray[np.float64]  # row weights in the order of `rows`; empty if all are 1
    scale: NDArray[np.float64]  # s of each block


@jit_when_large
def centre_blocks(V, out, blocks, form, first, last):  # type: ignore[no-untyped-def]
    """
    Apply the Laplacian of the pairs of a block, or one of its halves, inside blocks first..last-1.

    A block consists of runs. With row weights w, W = Σ w, the weighted means m of the block and m_g of a run, and the
    block's scale s, H v = √(s w) (k_g (v − m_g) + (m_g − m)). With k_g² = 1 − W_g/W this compares rows of different
    runs; a block of one run with k = 1 compares all its rows. In the coordinates √w v both parts are orthogonal
    projections, so that L v = s w (k_g² (v − m_g) + (m_g − m)), and H is inverted, up to the mean, by dividing the
    first part by k_g.

    V, out (n, r): operand and result; may be the same array. Rows outside the blocks are not changed.
    form: FULL, HALF, HALF_T or INVERSE.
    """
    rows, starts, runs, block_runs = blocks.rows, blocks.starts, blocks.runs, blocks.block_runs
    keep, weights, scale = blocks.keep, blocks.weights, blocks.scale
    item, r = np.uint64(1), np.uint64(V.shape[1])
    mean, own = np.empty(r, dtype=np.float64), np.empty(r, dtype=np.float64)
    for block in range(np.uint64(first), np.uint64(last)):
        begin, end = starts[block], starts[block + item]
        first_run, last_run = block_runs[block], block_runs[block + item]
        is_integer = last_run - first_run == item
        if r == 1 and len(weights) == 0 and form != INVERSE:
            left = scale[block] if form == FULL else np.sqrt(scale[block])
            mean[0] = _mean_of_vector(V, rows, begin, end)
            for run in range(first_run, last_run):
                k = keep[run] * keep[run] if form == FULL else keep[run]
                _centre_vector(V, out, rows, runs[run], runs[run + item], is_integer, left, k, mean[0])
            continue
        if form == INVERSE:
            mean[:] = 0.0
        else:
            _mean(V, rows, weights, begin, end, form, mean)
        for run in range(first_run, last_run):
            for c in range(r):  # an assignment of arrays takes two seconds to compile
                own[c] = mean[c]
            if not is_integer:
                _mean(V, rows, weights, runs[run], runs[run + item], form, own)
            k = keep[run] * keep[run] if form == FULL else 1.0 / keep[run] if form == INVERSE else keep[run]
            for p in range(runs[run], runs[run + item]):
                w = weights[p] if len(weights) > 0 else 1.0
                left = scale[block] * w if form == FULL else np.sqrt(scale[block] * w)
                left = 1.0 / left if form == INVERSE else left
                right = np.sqrt(w) if form >= HALF_T else 1.0
                for c in range(r):
                    out[rows[p], c] = left * (k * (V[rows[p], c] - right * own[c]) + right * (own[c] - mean[c]))


@jit_when_large
def _mean(V, rows, weights, begin, end, form, mean):  # type: ignore[no-untyped-def]
    """Write the mean Σ w v / Σ w over a range, or Σ √w v / Σ w if v is in the scale of H u."""
    mean[:] = 0.0
    total = 0.0
    for p in range(begin, end):
        w = weights[p] if len(weights) > 0 else 1.0
        right = np.sqrt(w) if form >= HALF_T else 1.0
        total += w
        # Welford's update: the mean of equal numbers is exact
        share = w / (right * total)
        for c in range(len(mean)):
            mean[c] += share * (V[rows[p], c] - right * mean[c])


@jit_when_large
def _mean_of_vector(V, rows, begin, end):  # type: ignore[no-untyped-def]
    """Return the mean of one unweighted column, several times faster than `_mean`."""
    total, zero = 0.0, np.uint64(0)
    first = np.float64(V[rows[begin], zero])
    for p in range(begin, end):
        total += V[rows[p], zero] - first
    return first + total / (end - begin)


@jit_when_large
def _centre_vector(V, out, rows, begin, end, is_integer, left, k, mean):  # type: ignore[no-untyped-def]
    """Write the result for a run of one unweighted column."""
    zero = np.uint64(0)
    own = mean if is_integer else _mean_of_vector(V, rows, begin, end)
    for p in range(begin, end):
        out[rows[p], zero] = left * (k * (V[rows[p], zero] - own) + (own - mean))
