"""Sums in bins against exact fractions: whatever is added first, and wherever."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.core.exact_sums import LIMBS, WIDTH, Bins, ExactSum, add_rows, square

NUMBERS = st.lists(st.floats(-1e200, 1e200, allow_nan=False), min_size=1, max_size=30)


def grid_of(numbers):
    """The grid on which a sum of these is kept: three limbs of 30 bits, the highest that of the largest number."""
    largest = max(abs(Fraction(x)) for x in numbers)
    top = -30
    while not largest < Fraction(2) ** (WIDTH * (top + 1)):
        top += 1
    return Fraction(2) ** (WIDTH * (top - LIMBS + 1))


@given(NUMBERS, st.randoms())
def test_the_sum_is_that_of_numbers_rounded_to_one_grid(numbers, random):
    grid = grid_of(numbers)
    exact = sum(round(Fraction(x) / grid) for x in numbers) * grid
    shuffled = random.sample(numbers, len(numbers))
    place = random.randint(0, len(numbers))
    parts = [ExactSum.of(np.array(part).reshape(-1, 1)) for part in (shuffled[:place], shuffled[place:])]
    found = (parts[0] + parts[1]).value
    assert found.tobytes() == ExactSum.of(np.array(numbers)[:, None]).value.tobytes()
    assert abs(Fraction(float(found[0])) - exact) <= 2 * Fraction(math.ulp(float(exact))) + Fraction(2) ** -1000


def test_many_more_than_a_float_adds_exactly():
    bins, rows = Bins.of(2), np.full((1 << 17, 2), 1.0)
    rows[:, 1] = 2.0**-20 / 3
    for _ in range(40):  # beyond 2²² of them
        add_rows(rows, bins)
    n = 40 * len(rows)
    assert bins.total().value[0] == n
    assert math.isclose(bins.total().value[1], n * 2.0**-20 / 3, rel_tol=1e-15)


@pytest.mark.parametrize("large", [1e300, np.inf, np.nan])
def test_what_is_too_large_makes_the_sum_no_number(large):
    assert np.isnan((ExactSum.of([[1.0]]) + ExactSum.of([[large]])).value[0])


def test_nothing_and_small_numbers():
    assert ExactSum.of(np.zeros((0, 3))).value.tolist() == [0.0, 0.0, 0.0]
    assert ExactSum.of([[1e-300], [1.0]]).value[0] == 1.0
    assert ExactSum.of([[0.0]]).value[0] == 0.0


def test_a_triangle_becomes_square():
    assert square(np.array([1.0, 2.0, 3.0])).tolist() == [[1.0, 2.0], [2.0, 3.0]]
