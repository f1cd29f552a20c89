from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from corank.core import threads
from corank.data.deviation import column_factors, within_query_deviation
from corank.data.ranking import RankingData

rng = np.random.default_rng(0)
QID = rng.integers(0, 7, 60)
X = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.5) * [1.0, 1e6, 1e-6, 0.0]
W = rng.integers(0, 3, 60).astype(float)


def by_hand(X, w):
    total = np.zeros(X.shape[1])
    for q in np.unique(QID):
        rows, v = X[q == QID], w[q == QID]
        if v.sum() > 0:
            total += v @ (rows - np.average(rows, axis=0, weights=v)) ** 2
    return np.sqrt(total / w.sum())


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("w", [None, W])
def test_it_is_the_deviation_from_the_mean_of_the_query(kind, w):
    data = RankingData.of(kind(X), np.zeros(60), QID, w)
    np.testing.assert_allclose(within_query_deviation(data), by_hand(X, np.ones(60) if w is None else w), rtol=1e-5)


def test_a_constant_column_has_none_and_keeps_its_size():
    shifted = np.column_stack([X[:, 0], np.full(60, 1e9 + 0.1), 1e9 + X[:, 0]])
    for rows in (shifted, sparse.csr_array(shifted)):
        data = RankingData.of(rows, np.zeros(60), QID)
        assert within_query_deviation(data)[1] == 0.0
        assert column_factors(data)[1] == 1.0
    dense = RankingData.of(shifted, np.zeros(60), QID)
    assert within_query_deviation(dense)[2] == pytest.approx(within_query_deviation(dense)[0], rel=1e-6)


def test_it_does_not_depend_on_the_number_of_threads(monkeypatch):
    data = RankingData.of(X, np.zeros(60), QID)
    found = []
    for n in (1, 2, 10):
        monkeypatch.setattr(threads, "n_threads", lambda n_jobs=None, n=n: n)
        found.append(within_query_deviation(data).tobytes())
    assert len(set(found)) == 1
