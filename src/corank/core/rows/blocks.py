# mypy: disable-error-code="no-untyped-call"
"""Sort rows and scale columns within blocks of rows, the queries of a problem."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import inline, is_small, jit, jit_when_large
from corank.core.rows.access import list_row

# rows sorted by insertion
_RUN = 16

MINMAX = 0
ZSCORE = 1

# a column whose standard deviation in a block is below this share of its mean absolute value is constant up to rounding
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


def sort_blocks(
    keys: NDArray[np.float64], order: NDArray[np.int64], starts: NDArray[np.int64], first: int, last: int
) -> None:
    """Sort `order` in place by `keys[order]` inside blocks first..last-1; stable, NaN last."""
    begin, end = int(starts[first]), int(starts[last])
    if is_small(end - begin):
        rows = order[begin:end]
        blocks = np.repeat(np.arange(first, last), np.diff(starts[first : last + 1]))
        order[begin:end] = rows[np.lexsort((keys[rows], blocks))]
    else:
        _sort_blocks(keys, order, starts, first, last)


@jit
def _sort_blocks(keys, order, starts, first, last):  # type: ignore[no-untyped-def]
    longest = 0
    for block in range(first, last):
        longest = max(longest, starts[block + 1] - starts[block])
    values, spare_values = np.empty(longest), np.empty(longest)
    rows, spare_rows = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    for block in range(first, last):
        begin = starts[block]
        n = starts[block + 1] - begin
        for k in range(n):
            rows[k] = order[begin + k]
            values[k] = keys[rows[k]]
        merge_sort(values, rows, spare_values, spare_rows, n)
        for k in range(n):
            order[begin + k] = rows[k]


@inline
def _is_after(a, b):  # type: ignore[no-untyped-def]
    """Return whether a comes after b: NaN is last."""
    return a > b or (a != a and b == b)


@jit_when_large
def merge_sort(values, rows, spare_values, spare_rows, n):  # type: ignore[no-untyped-def]
    """
    Sort the first n values and their rows, ascending and stable, NaN last; `spare_*` are as large.

    `np.argsort` in a kernel takes three seconds to compile.
    """
    for begin in range(0, n, _RUN):
        for k in range(begin + 1, min(begin + _RUN, n)):
            value, row, j = values[k], rows[k], k
            while j > begin and _is_after(values[j - 1], value):
                values[j], rows[j] = values[j - 1], rows[j - 1]
                j -= 1
            values[j], rows[j] = value, row
    width = _RUN
    while width < n:
        for begin in range(0, n - width, 2 * width):
            middle, end = begin + width, min(begin + 2 * width, n)
            if not _is_after(values[middle - 1], values[middle]):
                continue
            for k in range(begin, middle):
                spare_values[k], spare_rows[k] = values[k], rows[k]
            i, j, k = begin, middle, begin
            while i < middle and j < end:
                if _is_after(spare_values[i], values[j]):
                    values[k], rows[k] = values[j], rows[j]
                    j += 1
                else:
                    values[k], rows[k] = spare_values[i], spare_rows[i]
                    i += 1
                k += 1
            while i < middle:
                values[k], rows[k] = spare_values[i], spare_rows[i]
                i += 1
                k += 1
        width *= 2


@jit
def scale_blocks(X, out, order, starts, method, first, last):  # type: ignore[no-untyped-def]
    """Write X scaled within blocks first..last-1 to `out`; a constant column of a block becomes 0."""
    n_columns = X.shape[1]
    shift = np.empty(n_columns)
    width = np.empty(n_columns)
    for block in range(first, last):
        rows = order[starts[block] : starts[block + 1]]
        if method == MINMAX:
            _range(X, rows, shift, width)
        else:
            _moments(X, rows, shift, width)
        for i in rows:
            for j in range(n_columns):
                out[i, j] = (X[i, j] - shift[j]) / width[j] if width[j] > 0 else 0.0


@jit
def _range(X, rows, low, width):  # type: ignore[no-untyped-def]
    low[:] = np.inf
    width[:] = -np.inf
    for i in rows:
        for j in range(X.shape[1]):
            low[j] = min(low[j], X[i, j])
            width[j] = max(width[j], X[i, j])
    for j in range(X.shape[1]):
        width[j] -= low[j]


@jit
def _moments(X, rows, mean, deviation):  # type: ignore[no-untyped-def]
    # Welford's update: no cancellation, and exactly 0 for a constant column
    mean[:] = 0.0
    deviation[:] = 0.0
    for k in range(len(rows)):
        for j in range(X.shape[1]):
            step = X[rows[k], j] - mean[j]
            mean[j] += step / (k + 1)
            deviation[j] += step * (X[rows[k], j] - mean[j])
    for j in range(X.shape[1]):
        deviation[j] = np.sqrt(deviation[j] / len(rows))


@jit_when_large
def add_spread(X, w, order, starts, out, first, last):  # type: ignore[no-untyped-def]
    """
    Add the spread of each column within blocks first..last-1 to `out`.

    Row 0: Σ w_i (x_i − mean of the block)², 0 if x is constant up to rounding; row 1: Σ w_i over non-zero entries.
    """
    d = X.shape[1]
    mean, before, inside, level = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    for block in range(first, last):
        total = 0.0
        for j in range(d):
            mean[j], before[j], inside[j], level[j] = 0.0, out[0, j], 0.0, 0.0
        for i in order[starts[block] : starts[block + 1]]:
            if w[i] > 0.0:
                # Welford's update: no cancellation, and exactly 0 for a constant column
                total += w[i]
                share = w[i] / total
                for j in range(d):
                    step = X[i, j] - mean[j]
                    mean[j] += share * step
                    square = w[i] * step * (X[i, j] - mean[j])
                    out[0, j] += square
                    out[1, j] += w[i] * (X[i, j] != 0.0)
                    inside[j] += square
                    level[j] += w[i] * abs(X[i, j])
        for j in range(d):
            if _is_rounding(inside[j], level[j], total):
                out[0, j] = before[j]


@jit
def add_sparse_spread(rows, w, order, starts, out, first, last):  # type: ignore[no-untyped-def]
    """Compute `add_spread` for `CSRRows` without visiting zeros."""
    d = out.shape[1]
    mean, filled = np.zeros(d), np.zeros(d)
    before, inside, level = np.zeros(d), np.zeros(d), np.zeros(d)
    columns, values = np.empty(d + 1, dtype=np.uint64), np.empty(d + 1)
    for block in range(first, last):
        total = 0.0
        for i in order[starts[block] : starts[block + 1]]:
            if w[i] > 0.0:
                total += w[i]
                for k in range(list_row(rows, np.uint64(i), columns, values)):
                    j = columns[k]
                    if filled[j] == 0.0:
                        before[j], inside[j], level[j] = out[0, j], 0.0, 0.0
                    filled[j] += w[i]
                    step = values[k] - mean[j]
                    mean[j] += w[i] / filled[j] * step
                    square = w[i] * step * (values[k] - mean[j])
                    out[0, j] += square
                    inside[j] += square
                    level[j] += w[i] * abs(values[k])
        for i in order[starts[block] : starts[block + 1]]:
            for k in range(list_row(rows, np.uint64(i), columns, values)):
                j = columns[k]
                if filled[j] > 0.0:
                    # add all zeros of the block at once
                    square = filled[j] * (1.0 - filled[j] / total) * mean[j] ** 2
                    out[0, j] += square
                    out[1, j] += filled[j]
                    if _is_rounding(inside[j] + square, level[j], total):
                        out[0, j] = before[j]
                mean[j], filled[j] = 0.0, 0.0


@inline
def _is_rounding(squares, level, total):  # type: ignore[no-untyped-def]
    return total > 0.0 and np.sqrt(squares / total) <= _ROUNDING * (level / total)


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
