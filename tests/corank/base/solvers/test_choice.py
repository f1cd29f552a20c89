from __future__ import annotations

import numpy as np
import pytest

from corank.base.solvers.choice import ROUNDING, EarlyStopping, choose


def test_the_largest_value_is_chosen():
    assert choose([0.1, 0.5, 0.3]) == (1,)
    assert choose([[0.1, np.nan], [0.3, 0.2]]) == (1, 0)
    assert choose([-np.inf, 3.0, 2.0], [9.0, 1.0, 8.0]) == (1,)


def test_ties_go_to_what_is_preferred():
    values = [1.0 / 3.0, 0.1, (0.1 + 0.2 + 0.7) / 3.0, np.nextafter(1.0 / 3.0, 1.0)]
    assert choose(values) == (0,)
    assert choose(values, [1.0, 50.0, 3.0, 2.0]) == (2,)
    grid = np.zeros((2, 3))
    assert choose(grid, [1.0, 2.0, 2.0], [[1.0], [5.0]]) == (1, 1)


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_differences_above_rounding_errors_count(size):
    assert choose([size, size * (1.0 + 3.0 * ROUNDING)], [2.0, 1.0]) == (1,)
    assert choose([size, size * (1.0 + 0.3 * ROUNDING)], [2.0, 1.0]) == (0,)


def test_small_values_are_compared_at_their_own_size():
    assert choose([-1e-14, -2e-14], [1.0, 2.0], size=0.0) == (0,)
    assert choose([-1e-14, -2e-14], [1.0, 2.0]) == (1,)


def test_an_error_that_is_lower_by_rounding_is_no_improvement():
    stopping = EarlyStopping(2)
    assert stopping.record(0.3)
    assert not stopping.record(np.nextafter(0.3, 0.0))
    assert stopping.record(0.2999)
    assert stopping.best == 2
