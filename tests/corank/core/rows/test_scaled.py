from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.core.rows.access import ScaledRows, factors_of, plain

X = np.arange(12.0).reshape(4, 3)
D = np.array([1.0, 0.5, 2.0])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("rows", [slice(1, 3), np.array([3, 0]), np.array([], dtype=np.int64)])
def test_rows_are_scaled_as_they_are_read(kind, rows):
    given = kind(X)
    scaled = ScaledRows(given, D)
    found = scaled[rows]
    assert found.dtype == np.float64
    assert scaled.dtype == given.dtype
    assert sparse.issparse(found) == sparse.issparse(given)
    dense = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_allclose(dense, (X * D)[rows])
    assert scaled.shape == X.shape


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_products_and_columns(kind):
    scaled, w = ScaledRows(kind(X), D), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(scaled @ w, (X * D) @ w)
    np.testing.assert_allclose(scaled @ np.column_stack([w, -w]), (X * D) @ np.column_stack([w, -w]))
    part = scaled.select([2, 0])[:]
    np.testing.assert_allclose(part.toarray() if sparse.issparse(part) else part, (X * D)[:, [2, 0]])


def test_what_is_behind():
    scaled = ScaledRows(X, D)
    assert plain(scaled) is X
    assert plain(X) is X
    assert factors_of(scaled) is D
    assert factors_of(X) is None
