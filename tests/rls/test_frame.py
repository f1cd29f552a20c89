from __future__ import annotations

import numpy as np
import pytest

from corank.data.ranking import RankingData
from corank.rls import frame as module
from corank.rls.frame import Frame
from explicit_rls import scored_laplacian

RNG = np.random.default_rng(1)
QID = RNG.integers(0, 8, 40)
X = RNG.normal(size=(40, 3))
Y = np.where(RNG.random(40) < 0.3, np.nan, RNG.integers(0, 3, 40))
W = RNG.choice([0.0, 1.0, 2.0], 40)


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("block", [4, 10_000])
def test_designs_are_a_square_root_of_the_laplacian(monkeypatch, query_weight, weights, block):
    monkeypatch.setattr(module, "_BLOCK", block)
    frame = Frame.of(RankingData.of(X, Y, QID), query_weight, weights)
    parts = list(frame.designs(X, np.asarray))
    Z, t = np.vstack([Z for _, _, Z, _ in parts]), np.concatenate([t for *_, t in parts])
    L, y = scored_laplacian(Y, QID, weights=weights, query_weight=query_weight), np.nan_to_num(Y)
    np.testing.assert_allclose(Z.T @ Z, X.T @ L @ X, rtol=1e-10)
    np.testing.assert_allclose(Z.T @ t, X.T @ L @ y, rtol=1e-10)
    np.testing.assert_allclose(t @ t, y @ L @ y, rtol=1e-10)
    dense = np.zeros((40, 40))
    dense[np.ix_(frame.rows, frame.rows)] = frame.laplacian.toarray()
    np.testing.assert_allclose(dense, L, atol=1e-12)


def test_the_metric_sees_predictions_without_their_scale():
    frame = Frame.of(RankingData.of(X, Y, QID), "pairs", np.maximum(W, 0.5))
    ((*_, t),) = frame.designs(X, np.asarray)
    assert frame.scores(t[:, None], "disagreement")[0] == 0.0
    assert frame.scores(-t[:, None], "disagreement")[0] == 1.0
    assert frame.scores(0 * t[:, None], "disagreement")[0] == 0.5


def test_a_query_whose_weight_is_all_in_one_row_is_not_compared():
    weights = np.array([1e10, 1e-9, 1.0, 2.0])
    frame = Frame.of(RankingData.of(X[:4], [0, 1, 0, 1], [0, 0, 1, 1]), "equal", weights)
    assert frame.rows.tolist() == [2, 3]
    # 1 / (2 · 1 · 2) times the sum of the weights
    np.testing.assert_allclose(frame.scale, [0.75])
