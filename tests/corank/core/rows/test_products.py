from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.core.rows.products import MAX_COLUMNS, PIECE, GramSum


@given(st.lists(st.integers(0, 2 * PIECE + 3), max_size=3), st.integers(1, 10), st.integers(0, 99))
def test_blocks_add_up_to_the_product(lengths, d, seed):
    rng = np.random.default_rng(seed)
    found, want = GramSum(d), np.zeros((d, d))
    for length in lengths:
        Z, sign = rng.normal(size=(length, d)), rng.choice([-1.0, 1.0])
        found.add(Z, sign)
        want += sign * Z.T @ Z
    np.testing.assert_allclose(found.total(), want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d", [MAX_COLUMNS, MAX_COLUMNS + 1])
def test_many_columns_and_part_of_a_buffer(d):
    Z = np.random.default_rng(0).normal(size=(300, d))
    found = GramSum(d)
    found.add(Z[:170])
    found.add(Z[170:])
    np.testing.assert_allclose(found.total(), Z.T @ Z, rtol=1e-10, atol=1e-10)
