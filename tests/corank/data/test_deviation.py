from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.core import threads
from corank.data.columns import column_factors
from corank.data.ranking import RankingData

rng = np.random.default_rng(0)
QID = rng.integers(0, 7, 60)
X = rng.normal(size=(60, 6)) * (rng.random((60, 6)) < [1.0, 0.5, 0.4, 0.0, 0.1, 0.05]) * [1, 1e6, 1e-6, 1, 3, 20]
W = rng.integers(0, 3, 60).astype(float)


def by_hand(X, w):
    squares = np.zeros(X.shape[1])
    for q in np.unique(QID):
        rows, v = X[q == QID], w[q == QID]
        if v.sum() > 0:
            squares += v @ (rows - np.average(rows, axis=0, weights=v)) ** 2
    squares, filled = squares / w.sum(), w @ (X != 0) / w.sum()
    rare = (filled < 0.2) & (squares > 0)
    divisor = np.where(rare, squares[rare].sum() / filled[rare].sum(), squares) ** 0.5
    return np.where(squares > 0, 1 / np.where(divisor > 0, divisor, 1.0), 1.0)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("w", [None, W])
def test_columns_are_divided_by_their_deviation_and_rare_ones_by_one_of_their_own(kind, w):
    data = RankingData.of(kind(X), np.zeros(60), QID, w)
    np.testing.assert_allclose(column_factors(data), by_hand(X, np.ones(60) if w is None else w), rtol=1e-5)


def test_a_constant_column_keeps_its_size_and_an_offset_costs_nothing():
    shifted = np.column_stack([X[:, 0], np.full(60, 1e9 + 0.1), 1e9 + X[:, 0]])
    for rows in (shifted, sparse.csr_array(shifted)):
        for w in (None, W, rng.random(60)):
            factors = column_factors(RankingData.of(rows, np.zeros(60), QID, w))
            assert factors[1] == 1.0
            assert factors[2] == pytest.approx(factors[0], rel=1e-6)


def test_it_does_not_depend_on_the_number_of_threads(monkeypatch):
    data = RankingData.of(X, np.zeros(60), QID)
    found = []
    for n in (1, 2, 10):
        monkeypatch.setattr(threads, "n_threads", lambda n_jobs=None, n=n: n)
        found.append(column_factors(data).tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_column_that_is_constant_up_to_rounding_is_not_scaled(kind):
    rows = np.random.default_rng(5).normal(size=(40, 3))
    rows[:, 1] = np.where(rows[:, 0] > 0.0, 0.1 + 0.2, 0.3)
    rows[:20, 2], rows[20:, 2] = 1e15, rows[20:, 0]  # large in one query, small and varying in another
    data = RankingData.of(kind(rows), rows[:, 0], np.repeat([1, 2], 20))
    factors = column_factors(data)
    assert factors[1] == 1.0
    np.testing.assert_allclose(factors[2], np.sqrt(2.0) / rows[20:, 0].std(), rtol=1e-9)
