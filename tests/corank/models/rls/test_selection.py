from __future__ import annotations

import numpy as np
import pytest

from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.models.rls.frame import ComparedRows
from corank.models.rls.systems import best, candidates, metric_for


def test_the_first_of_equals_is_best_and_nan_is_not():
    assert best(np.array([np.nan, 0.3, 0.5, 0.5]), "nDCG@5") == (2,)
    assert best(np.array([[np.nan, 0.3], [0.2, 0.2]]), "disagreement") == (1, 0)
    with pytest.raises(InputError, match="AP is undefined for every left-out query"):
        best(np.array([np.nan]), "AP")


def test_numbers_are_finite_and_not_negative():
    np.testing.assert_array_equal(candidates((0, 1e3), "alphas"), [0.0, 1e3])
    for bad in ([np.nan], [[1.0]], [-1e-9], ["a"], [None, {}], 1.0):
        with pytest.raises(InputError, match="alphas is"):
            candidates(bad, "alphas")


def test_grades_of_several_queries_are_judged_by_their_gain():
    X = np.zeros((4, 1))

    def chosen(y, qid, metric=None):
        return metric_for(metric, ComparedRows.of(RankingData.of(X, y, qid), "pairs", ties=False))

    assert chosen([0, 1, 2, 0], [0, 0, 1, 1]) == "nDCG@10"
    assert chosen([0, 1, 2, 0], [0, 0, 1, 1], "ap") == "AP"
    # one query, scores that are no grades, preferences
    assert chosen([0, 1, 2, 0], None) == "disagreement"
    assert chosen([0.5, 1, 2, 0], [0, 0, 1, 1]) == "disagreement"
    assert chosen([-1, 1, 2, 0], [0, 0, 1, 1]) == "disagreement"
    assert chosen([1900, 1950, 2, 0], [0, 0, 1, 1]) == "disagreement"
    pairs = RankingData.of_pairs(X, [[0, 1], [2, 3]], [0, 0, 1, 1])
    assert metric_for(None, ComparedRows.of(pairs, "pairs", ties=False)) == "disagreement"
