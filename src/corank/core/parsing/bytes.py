"""Bytes of a text, eight at a time: unaligned loads, and bit operations that find and parse digits in one word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from corank.core.jit import intrinsic, jit

if TYPE_CHECKING:
    from llvmlite import ir
    from numba.core import types

ONES = np.uint64(0x0101010101010101)
HIGHS = np.uint64(0x8080808080808080)
LOWS = np.uint64(0x7F7F7F7F7F7F7F7F)
ZEROS = np.uint64(0x3030303030303030)
PAST_NINE = np.uint64(0x7676767676767676)
PAIRS = np.uint64(0x000000FF000000FF)
WEIGHTS_HIGH = np.uint64(0x000F424000000064)  # 10^6 and 10^2
WEIGHTS_LOW = np.uint64(0x0000271000000001)  # 10^4 and 10^0
TEN, EIGHT, SIXTEEN, THIRTY_TWO = np.uint64(10), np.uint64(8), np.uint64(16), np.uint64(32)
THREE, SIXTY_THREE, SIXTY_FOUR = np.uint64(3), np.uint64(63), np.uint64(64)


@intrinsic
def address(typingctx, text):  # type: ignore[no-untyped-def]
    """
    Return the memory address of a C-contiguous array.

    Reading by address keeps arrays, with their reference counts and fields, out of inner loops; the calling kernel must
    have the array as an argument.
    """

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(struct.data, ir.IntType(64))

    return types.int64(text), codegen


@intrinsic
def byte(typingctx, at):  # type: ignore[no-untyped-def]
    """Return the byte at an address as a signed integer."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(pointer), ir.IntType(64))

    return types.int64(types.int64), codegen


@intrinsic
def word(typingctx, at):  # type: ignore[no-untyped-def]
    """Return the eight bytes from an address on as one word, the first byte in the lowest bits."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(types.int64), codegen


@intrinsic
def trailing_zeros(typingctx, x):  # type: ignore[no-untyped-def]
    """Return the number of zero bits below the lowest one; 64 for zero."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@intrinsic
def leading_zeros(typingctx, x):  # type: ignore[no-untyped-def]
    """Return the number of zero bits above the highest one; 64 for zero."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@intrinsic
def count_ones(typingctx, x):  # type: ignore[no-untyped-def]
    """Return the number of one bits."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), codegen


@intrinsic
def high_product(typingctx, a, b):  # type: ignore[no-untyped-def]
    """Return the upper 64 bits of the 128-bit product a·b."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        wide = ir.IntType(128)
        a, b = (builder.zext(argument, wide) for argument in arguments)
        return builder.trunc(builder.lshr(builder.mul(a, b), ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def from_bits(typingctx, bits):  # type: ignore[no-untyped-def]
    """Return the double with these IEEE 754 bits."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), codegen


@jit
def matches(w, pattern):  # type: ignore[no-untyped-def]
    """Mark with 0x80 every byte of `w` that equals the (repeated) byte of `pattern`, and no other."""
    t = w ^ pattern
    return ~(((t & LOWS) + LOWS) | t | LOWS)


@jit
def count_digits(w):  # type: ignore[no-untyped-def]
    """Return the number of decimal digits at the start of a word, 0 to 8."""
    t = w ^ ZEROS
    # a byte above 9 sets its high bit; a carry affects only bytes after the first such one
    stops = ((t + PAST_NINE) | t) & HIGHS
    return np.int64(trailing_zeros(stops) >> THREE)


@jit
def read_digits(w, n):  # type: ignore[no-untyped-def]
    """Return the value of the first `n` digits of a word, combining digits to pairs, fours and eights."""
    if n == 0:
        return np.uint64(0)
    t = (w ^ ZEROS) << ((SIXTY_FOUR - (np.uint64(n) << THREE)) & SIXTY_THREE)
    t = t * TEN + (t >> EIGHT)
    return ((t & PAIRS) * WEIGHTS_HIGH + ((t >> SIXTEEN) & PAIRS) * WEIGHTS_LOW) >> THIRTY_TWO
