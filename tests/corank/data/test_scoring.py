from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.core.rows.access import ScaledRows
from corank.data.scoring import first_equals, repeat_first, score_columns


def plain_first_equals(X):
    rows = [tuple(row) for row in np.asarray(X).tolist()]
    return [rows.index(row) for row in rows]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("as_sparse", "is_small"), [(False, True), (False, False), (True, False)])
@pytest.mark.parametrize(
    ("n", "d", "n_values"), [(1, 3, 2), (2, 1, 1), (300, 1, 40), (300, 3, 6), (301, 40, 2), (50, 2, 9)]
)
def test_equal_rows_are_found(n, d, n_values, as_sparse, is_small, dtype, monkeypatch):
    monkeypatch.setattr("corank.data.scoring.is_small", lambda _: is_small)
    rng = np.random.default_rng(n + d)
    X = (rng.integers(0, n_values, (n, d)) - 1.0).astype(dtype)
    X[rng.random((n, d)) < 0.2] = -0.0
    X = X[rng.integers(0, n, n)]
    expected = plain_first_equals(X)
    found = first_equals(sparse.csr_array(X) if as_sparse else X)
    if found is None:
        assert expected == list(range(n))
    else:
        assert found.tolist() == expected


def test_stored_zeros_do_not_make_rows_differ():
    X = sparse.csr_array(([1.0, 0.0, 2.0, 1.0, 2.0, 0.0], [0, 1, 2, 0, 2, 3], [0, 3, 6]), shape=(2, 4))
    assert first_equals(X).tolist() == [0, 0]


@pytest.mark.parametrize("is_small", [False, True])
def test_rows_with_nan_equal_none(is_small, monkeypatch):
    monkeypatch.setattr("corank.data.scoring.is_small", lambda _: is_small)
    X = np.array([[np.nan, 1.0], [2.0, 1.0], [np.nan, 1.0], [2.0, 1.0]])
    assert first_equals(X).tolist() == [0, 1, 2, 1]


def test_numbers_that_differ_in_one_bit_differ():
    X = np.array([[1.0, 2.0], [1.0, np.nextafter(2.0, 3.0)], [2.0, 1.0], [1.0, 2.0]])
    assert first_equals(X).tolist() == [0, 1, 2, 0]
    assert first_equals(X[:3]) is None


def test_rows_that_share_a_hash_are_compared(monkeypatch):
    from corank.data import scoring

    def same_hash(bits, sign, out, first, last):
        out[first:last] = 7

    monkeypatch.setattr(scoring, "hash_dense", same_hash)
    X = np.random.default_rng(0).integers(0, 3, (60, 2)).astype(float)
    assert first_equals(X).tolist() == plain_first_equals(X)


def test_scaled_rows_and_objects():
    X = np.array([[1.0], [2.0], [1.0]])
    assert first_equals(ScaledRows(X, np.array([3.0]))).tolist() == [0, 1, 0]
    assert first_equals(np.array(["a", "b", "a"], dtype=object)) is None


def test_values_of_the_first_are_repeated():
    X, values = np.array([[1.0], [2.0], [1.0]]), np.arange(6.0).reshape(3, 2)
    assert repeat_first(X, values).tolist() == [[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]]
    assert repeat_first(X[:2], values[:2]) is not values
    assert np.array_equal(repeat_first(X[:2], values[:2]), values[:2])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("m", [None, 1, 3])
def test_scores_are_products(m, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 7)).astype(dtype)
    W = rng.normal(size=7) if m is None else rng.normal(size=(7, m))
    expected = X.astype(np.float64) @ W
    for rows in (X, sparse.csr_array(X), X[:1], X[:0]):
        scores = score_columns(rows, W)
        assert scores.dtype == np.float64
        np.testing.assert_allclose(scores, expected[: rows.shape[0]], rtol=1e-12, atol=1e-12)
