from __future__ import annotations

import numpy as np
import pytest

from corank import RankRLS
from corank.data import presumed_negatives
from corank.errors import InputError

NAN = np.nan


def test_the_law_of_the_draw_is_uniform_inside_each_judged_query():
    qid = np.array(["a"] * 6 + ["b"] * 4 + ["c"] * 3)
    y = np.array([1, NAN, NAN, NAN, NAN, NAN, 2, 0, NAN, NAN, NAN, NAN, NAN])
    counts = np.zeros(len(y))
    for seed in range(400):
        scores, weights = presumed_negatives(y, qid, n=2, weight=0.25, random_state=seed)
        drawn = np.isnan(y) & ~np.isnan(scores)
        assert [drawn[qid == q].sum() for q in "abc"] == [2, 2, 0]
        np.testing.assert_array_equal(weights, np.where(drawn, 0.25, 1.0))
        np.testing.assert_array_equal(scores, np.where(drawn, 0.0, y))
        counts += drawn
    # each of five rows in 2 of 5 draws, six deviations wide
    np.testing.assert_allclose(counts[1:6] / 400, 0.4, atol=6 * np.sqrt(0.24 / 400))


def test_rows_that_agree_are_learnt_from_as_if_lightly_judged():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.full(30, NAN)
    y[:3] = 1.0
    scores, weights = presumed_negatives(y, n=10, weight=0.2, random_state=1)
    model = RankRLS(alpha=0.5, scale=False).fit(X, scores, sample_weight=weights)
    drawn = np.flatnonzero(weights < 1)
    # each judged row against each presumed one, explicitly: all such pairs weigh the same
    D = (X[:3, None] - X[None, drawn]).reshape(-1, 4)
    w = np.linalg.solve(D.T @ D / len(D) + 0.5 * np.eye(4), D.mean(axis=0))
    np.testing.assert_allclose(model.coef_, w, rtol=1e-10)


def test_edges():
    scores, weights = presumed_negatives([1, NAN], n=5, score=-1)
    assert scores.tolist() == [1.0, -1.0]
    assert weights.tolist() == [1.0, 0.1]
    assert presumed_negatives([1.0, 0.0])[0].tolist() == [1.0, 0.0]
    with pytest.raises(InputError, match="no judged row has a score above 0"):
        presumed_negatives([0.0, NAN])
    with pytest.raises(InputError, match="weight is 0"):
        presumed_negatives([1.0, NAN], weight=0)
    with pytest.raises(InputError, match="one query id per row"):
        presumed_negatives([1.0, NAN], [1, 2, 3])
