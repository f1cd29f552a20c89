from __future__ import annotations

import struct

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corank.core.parsing.number import (
    ONES,
    address,
    byte,
    count_digits,
    count_ones,
    from_bits,
    high_product,
    leading_zeros,
    matches,
    read_digits,
    trailing_zeros,
    word,
)

words = st.integers(0, 2**64 - 1)


@numba.njit
def bit_counts(x):
    return trailing_zeros(x), leading_zeros(x), count_ones(x)


@numba.njit
def product(a, b):
    return high_product(a, b)


@numba.njit
def double(x):
    return from_bits(x)


@numba.njit
def load(text, i):
    return byte(address(text) + i), word(address(text) + i)


@given(st.binary(min_size=8, max_size=40), st.data())
def test_bytes_and_words_are_read_at_any_place(text: bytes, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, len(text) - 8))
    expected = text[i], int.from_bytes(text[i : i + 8], "little")
    assert load(np.frombuffer(text, dtype=np.uint8), i) == expected


@given(words)
def test_bits_are_counted(x: int) -> None:
    low = (x & -x).bit_length() - 1 if x else 64
    assert bit_counts(np.uint64(x)) == (low, 64 - x.bit_length(), x.bit_count())


@given(words, words)
def test_the_upper_half_of_a_product(a: int, b: int) -> None:
    assert product(np.uint64(a), np.uint64(b)) == (a * b) >> 64


@given(st.floats(allow_nan=False))
def test_a_double_from_its_bits(value: float) -> None:
    assert double(np.uint64(int.from_bytes(struct.pack("<d", value), "little"))) == value


@given(st.binary(min_size=8, max_size=8), st.sampled_from(b"\n#:0\x80\xff"))
def test_equal_bytes_are_marked_and_no_others(text: bytes, wanted: int) -> None:
    marks = matches(np.frombuffer(text, dtype=np.uint64)[0], ONES * np.uint64(wanted))
    assert int(marks).to_bytes(8, "little") == bytes(0x80 if c == wanted else 0 for c in text)


@given(st.text("0123456789", max_size=8), st.binary(min_size=8, max_size=8))
def test_the_digits_of_a_word(digits: str, rest: bytes) -> None:
    text = (digits.encode() + rest)[:8]
    n = len(text) - len(text.lstrip(b"0123456789"))
    w = np.frombuffer(text, dtype=np.uint64)[0]
    assert count_digits(w) == n
    assert read_digits(w, n) == int(text[:n] or b"0")
