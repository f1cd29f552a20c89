from __future__ import annotations

import struct
from fractions import Fraction

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corank.core.parsing.number import (
    BAD,
    FIVES_HIGH,
    FIVES_LOW,
    GOOD,
    HARD,
    MAX_POWER,
    MIN_POWER,
    address,
    nearest,
    read_long_number,
    read_number,
)
from corank.core.parsing.small import PADDING


@numba.njit
def at_start(text, long):
    origin = address(text)
    value, stop, state = read_long_number(origin) if long else read_number(origin)
    return value, stop - origin, state


def read(token: str, long: bool = False) -> tuple[float, int, int]:
    return at_start(np.frombuffer(token.encode() + b" " * PADDING, dtype=np.uint8), long)


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def check(token: str, may_be_hard: bool = True) -> None:
    for long in (False, True):
        value, stop, state = read(token, long)
        assert stop == len(token)
        assert state == GOOD or (may_be_hard and state == HARD)
        if state == GOOD:
            assert bits(value) == bits(float(token)), token


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(0.0)
@example(-0.0)
@example(5e-324)
@example(1.7976931348623157e308)
def test_the_shortest_text_of_any_double(value: float) -> None:
    normal = value == 0 or abs(value) >= 2.3e-308
    check(repr(value), may_be_hard=not normal)


@given(st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_any_well_formed_number(token: str) -> None:
    check(token)


@given(st.integers(0, 10**7 - 1), st.text("0123456789", min_size=0, max_size=10))
def test_numbers_of_usual_length_are_never_hard(whole: int, fraction: str) -> None:
    check(f"{whole}.{fraction}", may_be_hard=False)


@given(st.integers(2**52, 2**53 - 1), st.integers(-3, 10))
def test_half_way_cases_go_to_the_even_neighbour(mantissa: int, power: int) -> None:
    tie = Fraction(2 * mantissa + 1, 2) * Fraction(2) ** power
    digits = f"{tie.numerator // tie.denominator}"
    if tie.denominator == 1 and len(digits) <= 19:
        value, state = nearest(np.uint64(int(digits)), 0)
        assert state == HARD or bits(value) == bits(float(digits))


@pytest.mark.parametrize(
    "token", ["", "-", "+", ".", "-.", "e5", ".e1", "1e", "1e+", "1.5e-", "nan", "inf", "x1", "--1"]
)
def test_what_is_no_number_is_bad(token: str) -> None:
    if token not in ("nan", "inf"):
        with pytest.raises(ValueError, match="could not convert"):
            float(token)
    for long in (False, True):
        assert read(token, long)[2] == BAD


@pytest.mark.parametrize("token", ["1e400", "-1e309", "123456789" * 40, "1e99999999999999999999", "1e-400"])
def test_what_leaves_the_range_is_left_to_exact_arithmetic(token: str) -> None:
    assert read(token) == (0.0, len(token), HARD) or bits(read(token)[0]) == bits(-0.0)


def test_the_powers_of_five_are_within_one_unit() -> None:
    for q in range(MIN_POWER, MAX_POWER + 1):
        scaled = (int(FIVES_HIGH[q - MIN_POWER]) << 64) + int(FIVES_LOW[q - MIN_POWER])
        assert 2**127 <= scaled < 2**128
        exact = Fraction(5) ** q
        while exact < 2**127:
            exact *= 2
        while exact >= 2**128:
            exact /= 2
        assert abs(scaled - exact) <= 1
