"""The difference of two rows as a short list of columns and values, for steps that treat each column by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from corank.core.rows import _is_csr, _is_dense

_STEPS: Any = {"error_model": "numpy"}
_ONE = np.uint64(1)


def list_row(rows, i, columns, values):  # type: ignore[no-untyped-def]
    """Write the columns and values of row i, and return how many there are."""
    raise NotImplementedError("for kernels only")


def list_difference(rows, a, b, columns, values):  # type: ignore[no-untyped-def]
    """Write the columns and values of x_a − x_b, each column once, and return how many there are."""
    raise NotImplementedError("for kernels only")


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
