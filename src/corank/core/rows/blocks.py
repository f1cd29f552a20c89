# mypy: disable-error-code="no-untyped-call"
"""Sort rows and scale columns within blocks of rows, the queries of a problem."""

from __future__ import annotations

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
