"""Rows as kernels see them: a dense array or CSR arrays; the two meet only here, chosen by type at compile time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import overload
from numpy.typing import NDArray

from corank.core.jit import prefetch

# sums may be reordered, which vector instructions need; the order is fixed when the kernel is compiled
_SUMS: Any = {"fastmath": {"reassoc", "nsz", "contract"}, "error_model": "numpy"}
_STEPS: Any = {"error_model": "numpy"}
_ONE = np.uint64(1)
_LINE_BYTES = 64


class CSRRows(NamedTuple):
    """
    The arrays of a CSR matrix with unsigned indices.

    Attributes
    ----------
    data : array of float32 or float64
        Values.
    indices : array of uint32
        Column of each value, ascending inside a row.
    indptr : array of uint64, shape (n_rows + 1,)
        Where each row begins.
    """

    data: NDArray[Any]
    indices: NDArray[np.uint32]
    indptr: NDArray[np.uint64]


def as_core_rows(X: Any) -> Any:
    """
    Hand rows to kernels: a C-contiguous array as it is, a CSR matrix as `CSRRows`.

    Parameters
    ----------
    X : ndarray or CSR matrix
        As `corank.data.rows.as_rows` returns it. Values are never copied; 32-bit column numbers and 64-bit row
        pointers are reinterpreted in place, others are converted.

    Returns
    -------
    ndarray or CSRRows
        What `dot` and its siblings take.

    Examples
    --------
    >>> X = np.eye(2)
    >>> as_core_rows(X) is X
    True
    """
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X)
    indices = X.indices.view(np.uint32) if X.indices.dtype == np.int32 else X.indices.astype(np.uint32)
    indptr = X.indptr.view(np.uint64) if X.indptr.dtype == np.int64 else X.indptr.astype(np.uint64)
    return CSRRows(X.data, indices, indptr)


def dot(rows, i, w):  # type: ignore[no-untyped-def]
    """Return x_i · w, summed in float64."""
    raise NotImplementedError("for kernels only")


def dot_difference(rows, a, b, w):  # type: ignore[no-untyped-def]
    """Return (x_a − x_b) · w, summed in float64."""
    raise NotImplementedError("for kernels only")


def add_scaled(rows, i, scale, w):  # type: ignore[no-untyped-def]
    """Add scale · x_i to w."""
    raise NotImplementedError("for kernels only")


def add_difference(rows, a, b, scale, w):  # type: ignore[no-untyped-def]
    """Add scale · (x_a − x_b) to w."""
    raise NotImplementedError("for kernels only")


def list_row(rows, i, columns, values):  # type: ignore[no-untyped-def]
    """Write the columns and values of row i, and return how many there are."""
    raise NotImplementedError("for kernels only")


def list_difference(rows, a, b, columns, values):  # type: ignore[no-untyped-def]
    """Write the columns and values of x_a − x_b, each column once, and return how many there are."""
    raise NotImplementedError("for kernels only")


def prefetch_row(rows, i):  # type: ignore[no-untyped-def]
    """Ask for the cache lines of row i ahead of its use."""
    raise NotImplementedError("for kernels only")


def _is_dense(rows: Any) -> bool:
    return isinstance(rows, types.Array) and rows.ndim == 2 and rows.layout == "C"


def _is_csr(rows: Any) -> bool:
    return isinstance(rows, types.NamedTuple) and rows.instance_class is CSRRows


@overload(dot, jit_options=_SUMS)
def _dot(rows, i, w):  # type: ignore[no-untyped-def]
    if _is_dense(rows):

        def dense(rows, i, w):  # type: ignore[no-untyped-def]
            total = 0.0
            for j in range(np.uint64(rows.shape[1])):
                total += rows[i, j] * w[j]
            return total

        return dense
    if _is_csr(rows):

        def csr(rows, i, w):  # type: ignore[no-untyped-def]
            total = 0.0
            for k in range(rows.indptr[i], rows.indptr[i + _ONE]):
                total += rows.data[k] * w[rows.indices[k]]
            return total

        return csr
    return None


@overload(dot_difference, jit_options=_SUMS)
def _dot_difference(rows, a, b, w):  # type: ignore[no-untyped-def]
    if _is_dense(rows):

        def dense(rows, a, b, w):  # type: ignore[no-untyped-def]
            total = 0.0
            for j in range(np.uint64(rows.shape[1])):
                total += (rows[a, j] - rows[b, j]) * w[j]
            return total

        return dense
    if _is_csr(rows):

        def csr(rows, a, b, w):  # type: ignore[no-untyped-def]
            total = 0.0
            for k in range(rows.indptr[a], rows.indptr[a + _ONE]):
                total += rows.data[k] * w[rows.indices[k]]
            for k in range(rows.indptr[b], rows.indptr[b + _ONE]):
                total -= rows.data[k] * w[rows.indices[k]]
            return total

        return csr
    return None


@overload(add_scaled, jit_options=_STEPS)
def _add_scaled(rows, i, scale, w):  # type: ignore[no-untyped-def]
    if _is_dense(rows):

        def dense(rows, i, scale, w):  # type: ignore[no-untyped-def]
            for j in range(np.uint64(rows.shape[1])):
                w[j] += scale * rows[i, j]

        return dense
    if _is_csr(rows):

        def csr(rows, i, scale, w):  # type: ignore[no-untyped-def]
            for k in range(rows.indptr[i], rows.indptr[i + _ONE]):
                w[rows.indices[k]] += scale * rows.data[k]

        return csr
    return None


@overload(add_difference, jit_options=_STEPS)
def _add_difference(rows, a, b, scale, w):  # type: ignore[no-untyped-def]
    if _is_dense(rows):

        def dense(rows, a, b, scale, w):  # type: ignore[no-untyped-def]
            for j in range(np.uint64(rows.shape[1])):
                w[j] += scale * (rows[a, j] - rows[b, j])

        return dense
    if _is_csr(rows):

        def csr(rows, a, b, scale, w):  # type: ignore[no-untyped-def]
            for k in range(rows.indptr[a], rows.indptr[a + _ONE]):
                w[rows.indices[k]] += scale * rows.data[k]
            for k in range(rows.indptr[b], rows.indptr[b + _ONE]):
                w[rows.indices[k]] -= scale * rows.data[k]

        return csr
    return None


@overload(list_row, jit_options=_STEPS)
def _list_row(rows, i, columns, values):  # type: ignore[no-untyped-def]
    if _is_dense(rows):

        def dense(rows, i, columns, values):  # type: ignore[no-untyped-def]
            n = np.uint64(0)
            for j in range(np.uint64(rows.shape[1])):
                columns[n], values[n] = j, rows[i, j]
                n += np.uint64(values[n] != 0.0)
            return n

        return dense
    if _is_csr(rows):

        def csr(rows, i, columns, values):  # type: ignore[no-untyped-def]
            n = np.uint64(0)
            for k in range(rows.indptr[i], rows.indptr[i + _ONE]):
                columns[n], values[n] = rows.indices[k], rows.data[k]
                n += np.uint64(values[n] != 0.0)
            return n

        return csr
    return None


@overload(list_difference, jit_options=_STEPS)
def _list_difference(rows, a, b, columns, values):  # type: ignore[no-untyped-def]
    if _is_dense(rows):

        def dense(rows, a, b, columns, values):  # type: ignore[no-untyped-def]
            n = np.uint64(0)
            for j in range(np.uint64(rows.shape[1])):
                columns[n], values[n] = j, rows[a, j] - rows[b, j]
                n += np.uint64(values[n] != 0.0)
            return n

        return dense
    if _is_csr(rows):

        def csr(rows, a, b, columns, values):  # type: ignore[no-untyped-def]
            data, indices = rows.data, rows.indices
            i, i_end = rows.indptr[a], rows.indptr[a + _ONE]
            j, j_end = rows.indptr[b], rows.indptr[b + _ONE]
            n = np.uint64(0)
            # columns ascend inside a row: merge
            while i < i_end or j < j_end:
                if j >= j_end or (i < i_end and indices[i] < indices[j]):
                    columns[n], values[n] = indices[i], data[i]
                    i += _ONE
                elif i >= i_end or indices[j] < indices[i]:
                    columns[n], values[n] = indices[j], -data[j]
                    j += _ONE
                else:
                    columns[n], values[n] = indices[i], data[i] - data[j]
                    i += _ONE
                    j += _ONE
                n += np.uint64(values[n] != 0.0)
            return n

        return csr
    return None


@overload(prefetch_row, jit_options=_STEPS)
def _prefetch_row(rows, i):  # type: ignore[no-untyped-def]
    if _is_dense(rows):
        values_a_line = _per_line(rows)

        def dense(rows, i):  # type: ignore[no-untyped-def]
            d = np.uint64(rows.shape[1])
            for j in range(np.uint64(0), d, values_a_line):
                prefetch(rows, i * d + j)  # type: ignore[call-arg]

        return dense
    if _is_csr(rows):
        values_a_line, indices_a_line = _per_line(rows[0]), _per_line(rows[1])

        def csr(rows, i):  # type: ignore[no-untyped-def]
            begin, end = rows.indptr[i], rows.indptr[i + _ONE]
            for k in range(begin, end, values_a_line):
                prefetch(rows.data, k)  # type: ignore[call-arg]
            for k in range(begin, end, indices_a_line):
                prefetch(rows.indices, k)  # type: ignore[call-arg]

        return csr
    return None


def _per_line(array: Any) -> np.uint64:
    """Entries of an array type in one cache line: a constant to the compiler."""
    return np.uint64(8 * _LINE_BYTES // array.dtype.bitwidth)
