"""
Print doubles as the shortest decimal text that reads back to them, like Python's `repr`.

A double v = c·2^q is printed as the decimal d·10^k of fewest digits inside the interval of reals that round to v, the
nearest to v of those [Giulietti, The Schubfach way to render doubles, 2020]. With g ≈ 10^-k·2^r in 126 bits, the ends
of the interval and v are compared with multiples of 10^k by one product each; a sticky last bit represents the dropped
bits, so every comparison is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import jit
from corank.core.parsing.number import high_product

LONGEST = 25
"""Bytes of the longest text, -2.2250738585072014e-308, and a newline."""

MIN_POWER, MAX_POWER = -292, 324
ONE, TWO, FOUR, TEN, FORTY = (np.uint64(k) for k in (1, 2, 4, 10, 40))
FRACTION_BITS, FRACTION = np.uint64(52), np.uint64((1 << 52) - 1)
EXPONENT_BITS, SIGN_BIT = np.uint64(2047), np.uint64(63)
IMPLICIT = np.uint64(1 << 52)
BIAS = 1075
ZERO, POINT, MINUS, PLUS, EXPONENT, NEWLINE = (ord(c) for c in "0.-+e\n")


def _powers_of_ten() -> tuple[np.ndarray, np.ndarray]:
    """Return the high and low halves of 10^k scaled to [2^127, 2^128), rounded up."""
    high, low = [], []
    for k in range(MIN_POWER, MAX_POWER + 1):
        shift = ((k * 1741647) >> 19) - 127
        above, below = 10 ** max(k, 0) << max(-shift, 0), 10 ** max(-k, 0) << max(shift, 0)
        scaled = -(-above // below)
        high.append(scaled >> 64)
        low.append(scaled & 0xFFFFFFFFFFFFFFFF)
    return np.array(high, dtype=np.uint64), np.array(low, dtype=np.uint64)


TENS_HIGH, TENS_LOW = _powers_of_ten()


@jit
def _product(k, c):  # type: ignore[no-untyped-def]
    """Return the first 64 of the 192 bits of a power of ten times c; the last bit is set if a dropped one is."""
    low, high = TENS_HIGH[k] * c, high_product(TENS_HIGH[k], c)
    more = high_product(TENS_LOW[k], c)
    low += more
    if low < more:
        high += ONE
    return high | np.uint64(low > ONE)


@jit
def shortest(bits):  # type: ignore[no-untyped-def]
    """Return d and k of a positive finite double, given as its bits: d·10^k, where d may end in zeros."""
    fraction, exponent = bits & FRACTION, np.int64((bits >> FRACTION_BITS) & EXPONENT_BITS)
    c, q = (fraction | IMPLICIT, exponent - BIAS) if exponent else (fraction, np.int64(1 - BIAS))
    if 0 <= -q <= 52:
        whole = c >> np.uint64(-q)
        if whole << np.uint64(-q) == c:
            return whole, np.int64(0)
    is_odd = c & ONE
    # below a power of two the neighbour is half as distant
    is_close = fraction == 0 and exponent > 1
    k = (q * 1262611 - (524031 if is_close else 0)) >> 22
    h = np.uint64(q + ((-k * 1741647) >> 19) + 1)
    i = np.uint64(-k - MIN_POWER)
    lower = _product(i, (FOUR * c - TWO + np.uint64(is_close)) << h) + is_odd
    v = _product(i, (FOUR * c) << h)
    upper = _product(i, (FOUR * c + TWO) << h) - is_odd
    s = v >> TWO
    if s >= TEN:
        shorter = s // TEN
        below, above = lower <= FORTY * shorter, FORTY * shorter + FORTY <= upper
        if below != above:
            return shorter + np.uint64(above), k + 1
    below, above = lower <= FOUR * s, FOUR * s + FOUR <= upper
    if below != above:
        return s + np.uint64(above), k
    middle = FOUR * s + TWO
    return s + np.uint64(v > middle or (v == middle and s & ONE == ONE)), k


def number_lines(values: NDArray[np.float64]) -> bytes:
    """Return one line for each double: its `repr` and a newline."""
    if not np.isfinite(values).all():
        return "".join(f"{value!r}\n" for value in values.tolist()).encode()
    out = np.empty(len(values) * LONGEST, dtype=np.uint8)
    return out[: write_lines(np.ascontiguousarray(values).view(np.uint64), out)].tobytes()


@jit
def write_lines(values, out):  # type: ignore[no-untyped-def]
    """
    Write finite numbers, one per line.

    values (n,): bits of doubles.
    out (n·LONGEST,): bytes, filled from the first.
    Returns: number of bytes written.
    """
    digits = np.empty(20, dtype=np.uint8)
    index = 0
    for i in range(len(values)):
        bits = values[i]
        if bits >> SIGN_BIT:
            out[index] = MINUS
            index += 1
        bits = bits & ~(ONE << SIGN_BIT)
        d, k = (np.uint64(0), np.int64(0)) if bits == 0 else shortest(bits)
        n = 0
        while n == 0 or d > 0:
            rest = d // TEN
            digits[n] = ZERO + np.int64(d - TEN * rest)
            d = rest
            n += 1
        # digits are stored last first; trailing zeros become powers of ten
        first = 0
        while first < n - 1 and digits[first] == ZERO:
            first += 1
        index = _lay_out(digits, first, n, n + k, out, index)
        out[index] = NEWLINE
        index += 1
    return index


@jit
def _lay_out(digits, first, n, point, out, at):  # type: ignore[no-untyped-def]
    """Write digits n-1 down to `first`, with the point after `point` digits, like `repr`; return the next index."""
    if point > 16 or point < -3:
        out[at] = digits[n - 1]
        at += 1
        if first < n - 1:
            out[at] = POINT
            at += 1
            for j in range(n - 2, first - 1, -1):
                out[at] = digits[j]
                at += 1
        power = point - 1
        out[at], out[at + 1] = EXPONENT, MINUS if power < 0 else PLUS
        at += 2
        power = abs(power)
        if power >= 100:
            out[at] = ZERO + power // 100
            at += 1
        out[at], out[at + 1] = ZERO + power // 10 % 10, ZERO + power % 10
        return at + 2
    if point <= 0:
        out[at], out[at + 1] = ZERO, POINT
        at += 2
        for _ in range(-point):
            out[at] = ZERO
            at += 1
        for j in range(n - 1, first - 1, -1):
            out[at] = digits[j]
            at += 1
        return at
    for j in range(point):
        out[at] = digits[n - 1 - j] if n - 1 - j >= first else ZERO
        at += 1
    out[at] = POINT
    at += 1
    if n - point <= first:
        out[at] = ZERO
        return at + 1
    for j in range(n - 1 - point, first - 1, -1):
        out[at] = digits[j]
        at += 1
    return at
