from __future__ import annotations

import numpy as np
import pytest

from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.rls.pair_frame import PairFrame, frame_of

X = np.random.default_rng(1).normal(size=(6, 3))


def test_pairs_ask_for_a_difference_of_one():
    pairs = np.array([[0, 1], [4, 5], [2, 1], [3, 4]])
    qid = np.array([0, 0, 0, 1, 1, 1])
    frame = frame_of(RankingData.of_pairs(X, pairs, qid), "pairs", np.array([1, 1, 0, 1, 4, 1.0]))
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
