# mypy: disable-error-code="no-untyped-call"
"""What kernels compile for the functions of `corank.core.rows.access`, by the type of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types
from numba.extending import overload

from corank.core.jit import intrinsic
from corank.core.rows.access import (
    CSRRows,
    DenseRows,
    add_difference,
    add_scaled,
    dot,
    dot_difference,
    list_difference,
    list_row,
    prefetch_row,
)

# sums may be reordered for vectorisation; the order is fixed at compile time
_SUMS: Any = {"fastmath": {"reassoc", "nsz", "contract"}, "error_model": "numpy"}
_STEPS: Any = {"error_model": "numpy"}
_ONE = np.uint64(1)
_LINE_BYTES = 64


def _choose(rows: Any, dense: Any, csr: Any) -> Any:
    """Return the implementation for the type of rows, or None (a compile error) for other types."""
    bodies: dict[Any, Any] = {DenseRows: dense, CSRRows: csr}
    return bodies.get(rows.instance_class) if isinstance(rows, types.NamedTuple) else None


def _scaled(value, factors, j):  # type: ignore[no-untyped-def]
    """Return a value of column j times its factor, if there are factors."""
    raise NotImplementedError("for kernels only")


@overload(_scaled, inline="always", jit_options=_STEPS)
def _scaled_value(value, factors, j):  # type: ignore[no-untyped-def]
    if isinstance(factors, types.NoneType):
        return lambda value, factors, j: value
    return lambda value, factors, j: value * factors[j]


@overload(dot, jit_options=_SUMS)
def _dot(rows, i, w):  # type: ignore[no-untyped-def]
    def dense(rows, i, w):  # type: ignore[no-untyped-def]
        x, f = rows.values, rows.factors
        total = 0.0
        for j in range(np.uint64(x.shape[1])):
            total += _scaled(x[i, j], f, j) * w[j]
        return total

    def csr(rows, i, w):  # type: ignore[no-untyped-def]
        x, f = rows.data, rows.factors
        total = 0.0
        for k in range(rows.indptr[i], rows.indptr[i + _ONE]):
            j = rows.indices[k]
            total += _scaled(x[k], f, j) * w[j]
        return total

    return _choose(rows, dense, csr)


@overload(dot_difference, jit_options=_SUMS)
def _dot_difference(rows, a, b, w):  # type: ignore[no-untyped-def]
    def dense(rows, a, b, w):  # type: ignore[no-untyped-def]
        x, f = rows.values, rows.factors
        total = 0.0
        for j in range(np.uint64(x.shape[1])):
            total += _scaled(x[a, j] - x[b, j], f, j) * w[j]
        return total

    return _choose(rows, dense, lambda rows, a, b, w: dot(rows, a, w) - dot(rows, b, w))


@overload(add_scaled, jit_options=_STEPS)
def _add_scaled(rows, i, scale, w):  # type: ignore[no-untyped-def]
    def dense(rows, i, scale, w):  # type: ignore[no-untyped-def]
        x, f = rows.values, rows.factors
        for j in range(np.uint64(x.shape[1])):
            w[j] += scale * _scaled(x[i, j], f, j)

    def csr(rows, i, scale, w):  # type: ignore[no-untyped-def]
        x, f = rows.data, rows.factors
        for k in range(rows.indptr[i], rows.indptr[i + _ONE]):
            j = rows.indices[k]
            w[j] += scale * _scaled(x[k], f, j)

    return _choose(rows, dense, csr)


@overload(add_difference, jit_options=_STEPS)
def _add_difference(rows, a, b, scale, w):  # type: ignore[no-untyped-def]
    def dense(rows, a, b, scale, w):  # type: ignore[no-untyped-def]
        x, f = rows.values, rows.factors
        for j in range(np.uint64(x.shape[1])):
            w[j] += scale * _scaled(x[a, j] - x[b, j], f, j)

    def csr(rows, a, b, scale, w):  # type: ignore[no-untyped-def]
        add_scaled(rows, a, scale, w)
        add_scaled(rows, b, -scale, w)

    return _choose(rows, dense, csr)


@overload(list_row, jit_options=_STEPS)
def _list_row(rows, i, columns, values):  # type: ignore[no-untyped-def]
    def dense(rows, i, columns, values):  # type: ignore[no-untyped-def]
        x, f = rows.values, rows.factors
        n = np.uint64(0)
        for j in range(np.uint64(x.shape[1])):
            columns[n], values[n] = j, _scaled(x[i, j], f, j)
            n += np.uint64(values[n] != 0.0)
        return n

    def csr(rows, i, columns, values):  # type: ignore[no-untyped-def]
        x, f = rows.data, rows.factors
        n = np.uint64(0)
        for k in range(rows.indptr[i], rows.indptr[i + _ONE]):
            j = rows.indices[k]
            columns[n], values[n] = j, _scaled(x[k], f, j)
            n += np.uint64(values[n] != 0.0)
        return n

    return _choose(rows, dense, csr)


@overload(list_difference, jit_options=_STEPS)
def _list_difference(rows, a, b, columns, values):  # type: ignore[no-untyped-def]
    def dense(rows, a, b, columns, values):  # type: ignore[no-untyped-def]
        x, f = rows.values, rows.factors
        n = np.uint64(0)
        for j in range(np.uint64(x.shape[1])):
            columns[n], values[n] = j, _scaled(x[a, j] - x[b, j], f, j)
            n += np.uint64(values[n] != 0.0)
        return n

    def csr(rows, a, b, columns, values):  # type: ignore[no-untyped-def]
        x, f, indices = rows.data, rows.factors, rows.indices
        i, i_end = rows.indptr[a], rows.indptr[a + _ONE]
        j, j_end = rows.indptr[b], rows.indptr[b + _ONE]
        n = np.uint64(0)
        # columns ascend inside a row: merge
        while i < i_end or j < j_end:
            if j >= j_end or (i < i_end and indices[i] < indices[j]):
                columns[n], values[n] = indices[i], _scaled(x[i], f, indices[i])
                i += _ONE
            elif i >= i_end or indices[j] < indices[i]:
                columns[n], values[n] = indices[j], -_scaled(x[j], f, indices[j])
                j += _ONE
            else:
                columns[n], values[n] = indices[i], _scaled(x[i] - x[j], f, indices[i])
                i += _ONE
                j += _ONE
            n += np.uint64(values[n] != 0.0)
        return n

    return _choose(rows, dense, csr)


@overload(prefetch_row, jit_options=_STEPS)
def _prefetch_row(rows, i):  # type: ignore[no-untyped-def]
    # constants to the compiler
    values_a_line, indices_a_line = _per_line(rows[0]), _per_line(rows[1])

    def dense(rows, i):  # type: ignore[no-untyped-def]
        x = rows.values
        d = np.uint64(x.shape[1])
        for j in range(np.uint64(0), d, values_a_line):
            prefetch(x, i * d + j)

    def csr(rows, i):  # type: ignore[no-untyped-def]
        begin, end = rows.indptr[i], rows.indptr[i + _ONE]
        for k in range(begin, end, values_a_line):
            prefetch(rows.data, k)
        for k in range(begin, end, indices_a_line):
            prefetch(rows.indices, k)

    return _choose(rows, dense, csr)


def _per_line(array: Any) -> np.uint64:
    """Return the entries of an array type per cache line; 1 for other types."""
    return np.uint64(8 * _LINE_BYTES // array.dtype.bitwidth if isinstance(array, types.Array) else 1)


if TYPE_CHECKING:
    from llvmlite import ir
    from numba.core import types


@intrinsic
def prefetch(typingctx, array, position):  # type: ignore[no-untyped-def]
    """Prefetch the cache line of `array.flat[position]` (C-contiguous)."""
    signature = types.void(array, position)

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array_type = signature.args[0]
        struct = context.make_array(array_type)(context, builder, arguments[0])
        pointer = builder.gep(struct.data, [arguments[1]])
        address = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        int32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), int32, int32, int32])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [ir.IntType(8).as_pointer()], kind)
        # read, high locality, data cache
        builder.call(hint, [address, int32(0), int32(3), int32(1)])
        return context.get_dummy_value()

    return signature, codegen
