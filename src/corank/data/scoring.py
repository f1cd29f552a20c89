"""
Scores of rows by which equal rows get equal bits, wherever they are in X.

A product by BLAS computes the rows at the end of a block in another order than the others, and equal rows get scores
that differ in the last bit. A ranking would order them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank._lazy import is_sparse
from corank.core.jit import is_small
from corank.core.rows.access import plain
from corank.core.rows.products import score_dense, score_small
from corank.core.rows.structure import find_csr, find_dense, hash_csr, hash_dense
from corank.core.threads import parallel_map, threads_for

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# rows of a product with several weights
_ROWS = 4096


def score_columns(rows: Any, weights: Floats) -> Floats:
    """Score rows by weights of their columns, summed in float64."""
    if is_sparse(rows):
        return np.asarray(rows @ weights, dtype=np.float64)
    if weights.ndim == 1 and is_small(rows.size):
        return score_small(rows, weights)
    out = np.empty((len(rows), *weights.shape[1:]))
    if weights.ndim == 1:
        _in_pieces(lambda first, last: score_dense(rows, weights, out, first, last), len(rows), rows.size)
        return out
    for begin in range(0, len(out), _ROWS):
        block = slice(begin, begin + _ROWS)
        out[block] = rows[block].astype(np.float64, copy=False) @ weights
    return repeat_first(rows, out)


def repeat_first(rows: Any, values: NDArray[Any]) -> NDArray[Any]:
    """Give equal rows the values of the first of them."""
    first = first_equals(rows)
    return values if first is None else values[first]


def first_equals(rows: Any) -> Integers | None:
    """Find equal rows."""
    X = plain(rows)
    n = X.shape[0]
    if n < 2 or X.ndim != 2:
        return None
    if not is_sparse(X) and is_small(X.size):
        return _first_equals(X)
    hashes, out, n_numbers = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.int64), X.size
    values = X.data if is_sparse(X) else np.ascontiguousarray(X)
    bits = values.view(np.uint64 if values.itemsize == 8 else np.uint32)
    sign = bits.dtype.type(1 << (8 * values.itemsize - 1))
    table = np.full(1 << int(2 * n - 1).bit_length(), -1, dtype=np.int64)
    if is_sparse(X):
        parts = X.indices.astype(np.uint32, copy=False), X.indptr.astype(np.uint64, copy=False)
        _in_pieces(lambda first, last: hash_csr(bits, sign, *parts, hashes, first, last), n, n_numbers)
        n_repeated = find_csr(hashes, values, *parts, table, out)
    else:
        _in_pieces(lambda first, last: hash_dense(bits, sign, hashes, first, last), n, n_numbers)
        n_repeated = find_dense(hashes, values, table, out)
    return out if n_repeated else None


def _first_equals(X: NDArray[np.floating]) -> Integers | None:
    """Find equal rows without numba; a row with NaN equals none."""
    seen: dict[bytes, int] = {}
    # adding zero makes −0 equal to 0
    out = np.array([seen.setdefault(row.tobytes(), i) for i, row in enumerate(X + 0.0)])
    unknown = np.flatnonzero(np.isnan(X).any(axis=1))
    out[unknown] = unknown
    return out if (out < np.arange(len(X))).any() else None


def _in_pieces(function: Any, n: int, n_numbers: int) -> None:
    """Call a kernel for pieces of n rows, on threads if they hold many numbers."""
    n_jobs = threads_for(n_numbers)
    if n_jobs == 1:
        function(0, n)
        return
    ends = np.linspace(0, n, n_jobs + 1).astype(np.int64)
    parallel_map(function, [(int(a), int(b)) for a, b in pairwise(ends) if b > a], n_jobs)
