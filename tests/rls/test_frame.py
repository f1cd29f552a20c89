from __future__ import annotations

import numpy as np
import pytest

from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.rls import frame as module
from corank.rls.frame import Frame, PairFrame, frame_of
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


def test_pairs_ask_for_a_difference_of_one():
    pairs = np.array([[0, 1], [4, 5], [2, 1], [3, 4]])
    qid = np.array([0, 0, 0, 1, 1, 1])
    frame = frame_of(RankingData.of_pairs(X[:6], pairs, qid), "pairs", np.array([1, 1, 0, 1, 4, 1.0]))
    assert isinstance(frame, PairFrame)
    ((_, starts, Z, t),) = frame.designs(X, np.asarray)
    assert starts.tolist() == [0, 1, 3]
    np.testing.assert_allclose(Z, [X[0] - X[1], 2 * (X[4] - X[5]), 2 * (X[3] - X[4])])
    np.testing.assert_allclose(t, [1, 2, 2])
    np.testing.assert_allclose(frame.scores(np.array([[1.0, -1], [1, 0], [-1, 1]]), "disagreement"), [0.25, 0.625])


def test_pairs_have_no_grades_and_no_query_weight():
    data = RankingData.of_pairs(X[:3], [[0, 1]])
    with pytest.raises(InputError, match="given pairs weigh alike; use query_weight='pairs'"):
        frame_of(data, "equal", None)
    with pytest.raises(InputError, match="preference pairs have no grades; use metric='disagreement'"):
        frame_of(data, "pairs", None).scores(np.ones((1, 1)), "nDCG@5")
