"""
Decimal text to the nearest double, in three steps of rising cost.

A decimal is ±m·10^q with an integer m of at most 19 digits. (1) m ≤ 2^53 and |q| ≤ 22: both m and 10^|q| are
doubles, so one multiplication or division rounds correctly [Clinger, PLDI 1990]. (2) Otherwise m times a 128-bit
approximation of 5^q decides the nearest double except near a tie [Lemire, Software: Practice and Experience 51,
2021]. (3) The rest (more than 19 digits, subnormal or undecided) is called *hard*: the caller parses it again
with exact arithmetic.

Bytes of a text are loaded eight at a time, unaligned; bit operations find and parse the digits of one word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from corank.core.jit import intrinsic, jit

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


GOOD, BAD, HARD = 0, 1, 2

PLUS, MINUS, POINT, EXPONENT, ZERO = ord("+"), ord("-"), ord("."), ord("e"), ord("0")
LOWER = 32  # turns E into e

MAX_DIGITS = 19  # 10^19 < 2^64
EXACT_MANTISSA = np.uint64(1 << 53)
EXACT_POWER = 22
MIN_POWER, MAX_POWER = -342, 308
NINE = np.uint64(9)
ONE, TWO = np.uint64(1), np.uint64(2)
TIE_BITS = np.uint64(0x1FF)
ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
SIGN_SHIFT, MANTISSA_SHIFT = np.uint64(63), np.uint64(52)
IMPLICIT = np.uint64(1 << 52)

POWERS = np.array([10**k for k in range(MAX_DIGITS + 1)], dtype=np.uint64)
EXACT_POWERS = np.array([float(10**k) for k in range(EXACT_POWER + 1)])


def _powers_of_five() -> tuple[np.ndarray, np.ndarray]:
    """Return the high and low halves of 5^q scaled to [2^127, 2^128): rounded down, but up where 5^-q fits 64 bits."""
    high, low = [], []
    for q in range(MIN_POWER, MAX_POWER + 1):
        if q >= 0:
            scaled = (5**q << 128) >> (5**q).bit_length()
        else:
            bits = (5**-q - 1).bit_length()
            scaled = (1 << (bits + 127)) // 5**-q + (q >= -27)
        high.append(scaled >> 64)
        low.append(scaled & 0xFFFFFFFFFFFFFFFF)
    return np.array(high, dtype=np.uint64), np.array(low, dtype=np.uint64)


FIVES_HIGH, FIVES_LOW = _powers_of_five()


@jit
def nearest(m, q):  # type: ignore[no-untyped-def]
    """
    Return the double nearest to m·10^q and whether it is sure (GOOD) or not (HARD).

    With w = m·2^l, its highest bit set, and T ≈ 5^q·2^s, the product w·T has 128 leading bits of which the first
    64 hold the 53 bits of the result, the rounding bit and 9 or 10 more; only if those are all ones can the error of
    T reach the rounding bit, and then the second half of T is used, too.
    """
    if m == 0:
        return 0.0, GOOD
    if m <= EXACT_MANTISSA and -EXACT_POWER <= q <= EXACT_POWER:
        exact = np.float64(m)
        if q < 0:
            return exact / EXACT_POWERS[np.uint64(-q)], GOOD
        return exact * EXACT_POWERS[np.uint64(q)], GOOD
    if q < MIN_POWER or q > MAX_POWER:
        return 0.0, HARD
    shift = leading_zeros(m)
    w = m << shift
    k = np.uint64(q - MIN_POWER)
    high, low = high_product(w, FIVES_HIGH[k]), w * FIVES_HIGH[k]
    if high & TIE_BITS == TIE_BITS:
        more = high_product(w, FIVES_LOW[k])
        low += more
        if low < more:
            high += ONE
        if low == ALL_ONES and (q < -27 or q > 55):
            return 0.0, HARD
    upper = high >> SIGN_SHIFT
    cut = upper + np.uint64(9)
    mantissa = high >> cut
    # floor(q·log2(10)) in fixed point, exact over the range of q
    power = ((217706 * q) >> 16) + 1086 + np.int64(upper) - np.int64(shift)
    if power <= 0:
        return 0.0, HARD
    # an exact half-way case is possible only for these q; it goes to the even neighbour
    if low <= ONE and -4 <= q <= 23 and mantissa & THREE == ONE and mantissa << cut == high:
        mantissa &= ~ONE
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    if mantissa >= IMPLICIT << ONE:
        mantissa = IMPLICIT
        power += 1
    if power >= 2047:
        return 0.0, HARD
    return from_bits((mantissa & ~IMPLICIT) | (np.uint64(power) << MANTISSA_SHIFT)), GOOD


@jit
def read_number(begin):  # type: ignore[no-untyped-def]
    """
    Read the decimal number that starts at `begin`: sign, digits, point, digits, exponent, as Python's `float`.

    Returns the value, the position after the number, and GOOD, BAD (no number here) or HARD (well formed; needs
    exact arithmetic).
    """
    i = begin
    c = byte(i)
    if c in (MINUS, PLUS):
        i += 1
    n = 1
    m = np.uint64(byte(i) - ZERO)
    # a single digit before the point is the usual case, and a guess costs less than a count
    if byte(i + 1) != POINT or m > NINE:
        w = word(i)
        n = count_digits(w)
        m = read_digits(w, n)
        if n == 8:
            return read_long_number(begin)
    i += n
    digits = n
    q = 0
    if byte(i) == POINT:
        i += 1
        n = 8
        while n == 8:
            w = word(i)
            n = count_digits(w)
            digits += n
            if digits > MAX_DIGITS:
                return read_long_number(begin)
            m = m * POWERS[np.uint64(n)] + read_digits(w, n)
            i += n
            q -= n
    if digits == 0:
        return 0.0, begin, BAD
    if byte(i) | LOWER == EXPONENT:
        return read_long_number(begin)
    if m <= EXACT_MANTISSA:
        value, state = np.float64(m) / EXACT_POWERS[np.uint64(-q)], GOOD
    else:
        value, state = nearest(m, q)
    return (-value if c == MINUS else value), i, state


@jit
def read_long_number(begin):  # type: ignore[no-untyped-def]
    """Read a number of any length, digit by digit; see `read_number`."""
    i = begin
    sign = byte(i)
    if sign in (MINUS, PLUS):
        i += 1
    m = np.uint64(0)
    q = 0
    digits, significant = 0, 0
    after_point, lost = False, False
    while True:
        d = byte(i) - ZERO
        if d < 0 or d > 9:
            if after_point or d != POINT - ZERO:
                break
            after_point = True
        else:
            digits += 1
            if significant == MAX_DIGITS:
                lost |= d > 0
                q += 0 if after_point else 1
            else:
                m = m * TEN + np.uint64(d)
                significant += 1 if m > 0 else 0
                q -= 1 if after_point else 0
        i += 1
    if digits == 0:
        return 0.0, begin, BAD
    if byte(i) | LOWER == EXPONENT:
        j = i + 1
        turn = byte(j)
        if turn in (MINUS, PLUS):
            j += 1
        d = byte(j) - ZERO
        if d < 0 or d > 9:
            return 0.0, begin, BAD
        exponent = 0
        while 0 <= d <= 9:
            exponent = min(10 * exponent + d, 1 << 30)
            j += 1
            d = byte(j) - ZERO
        q += -exponent if turn == MINUS else exponent
        i = j
    if lost:
        return 0.0, i, HARD
    value, state = nearest(m, q)
    return (-value if sign == MINUS else value), i, state


if TYPE_CHECKING:
    from llvmlite import ir
    from numba.core import types
