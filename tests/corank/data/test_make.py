from __future__ import annotations

import numpy as np
import pytest

from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.metrics import disagreement_error


def test_shapes_views_and_seed():
    one, two = make_ranking(7, (3, 5), n_views=3, random_state=4), make_ranking(7, (3, 5), n_views=3, random_state=4)
    np.testing.assert_array_equal(one.X, two.X)
    assert one.X.shape[1] == 30
    assert [len(view) for view in one.views] == [10, 10, 10]
    assert set(np.bincount(one.qid)) <= {3, 4, 5}


def test_grades_halve():
    y = make_ranking(400, 50, random_state=0).y
    for g in range(1, 5):
        assert np.mean(y >= g) == pytest.approx(0.5**g, abs=0.01)


def test_best_equals_the_regression_of_the_utility_inside_queries():
    problem = make_ranking(400, 50, random_state=0)
    codes = problem.qid
    centre = np.vstack([np.bincount(codes, weights=column) for column in problem.X.T]).T / 50
    Z, u = problem.X - centre[codes], problem.utility - (np.bincount(codes, weights=problem.utility) / 50)[codes]
    slope = np.linalg.lstsq(Z, u, rcond=None)[0]
    cosine = slope @ problem.best / np.linalg.norm(slope) / np.linalg.norm(problem.best)
    assert cosine > 0.999
    best = disagreement_error(problem.utility, problem.X @ problem.best, problem.qid)
    for view in problem.views:
        alone = problem.X[:, view] @ problem.best[view]
        assert best < disagreement_error(problem.utility, alone, problem.qid) < 0.4


def test_bad_settings_get_one_sentence():
    with pytest.raises(InputError, match="features_per_view is 2, less than n_latent=5"):
        make_ranking(features_per_view=2)
    for bad, sentence in (
        ({"n_queries": 5.5}, r"n_queries is 5\.5; pass a whole number of at least 1"),
        (
            {"rows_per_query": 2.5},
            r"rows_per_query is 2\.5; pass a whole number of at least 1, or a tuple of two of them",
        ),
        (
            {"rows_per_query": (1, 2.5)},
            r"rows_per_query is \(1, 2\.5\); pass a whole number of at least 1, or a tuple of two",
        ),
        ({"features_per_view": "7"}, "features_per_view is '7'; pass a whole number"),
    ):
        with pytest.raises(InputError, match=sentence):
            make_ranking(**bad)
    with pytest.raises(InputError, match="n_grades is 1"):
        make_ranking(n_grades=1)
    for wrong in ({"n_queries": 0}, {"rows_per_query": 0}, {"rows_per_query": (5, 3)}, {"n_views": 0}):
        with pytest.raises(InputError, match=r"pass a whole number of at least 1|an ascending range"):
            make_ranking(**wrong)


def test_numpy_numbers_are_numbers():
    np.testing.assert_array_equal(
        make_ranking(np.int64(3), np.int64(4), random_state=1).X, make_ranking(3, 4, random_state=1).X
    )
