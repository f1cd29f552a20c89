from __future__ import annotations

import numpy as np
import pytest

from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.rls.least_squares import active_rows, best, candidates
from corank.rls.pair_frame import frame_of


def test_the_first_of_equals_is_best_and_nan_is_not():
    assert best(np.array([np.nan, 0.3, 0.5, 0.5]), "nDCG@5") == (2,)
    assert best(np.array([[np.nan, 0.3], [0.2, 0.2]]), "disagreement") == (1, 0)
    with pytest.raises(InputError, match="AP is defined for no query that was left out"):
        best(np.array([np.nan]), "AP")


def test_numbers_are_finite_and_not_negative():
    np.testing.assert_array_equal(candidates((0, 1e3), "alphas"), [0.0, 1e3])
    for bad in ([np.nan], [[1.0]], [-1e-9], ["a"], [None, {}], 1.0):
        with pytest.raises(InputError, match="alphas is"):
            candidates(bad, "alphas")


def test_active_rows_are_compared_with_another():
    X = np.zeros((6, 1))
    data = RankingData.of(X, [1, 2, np.nan, 3, 4, 5], [0, 0, 0, 1, 2, 2])
    assert active_rows(frame_of(data, "pairs", None)).tolist() == [0, 1, 4, 5]
    pairs = RankingData.of_pairs(X, [[5, 0], [0, 3]])
    assert active_rows(frame_of(pairs, "pairs", None)).tolist() == [0, 3, 5]
