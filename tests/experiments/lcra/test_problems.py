from __future__ import annotations

import numpy as np
import pytest

from corank.metrics import evaluate
from experiments.lcra.problems import SplitRepeat, _dealt, problems

SYNTHETIC = ("redundant views", "wide redundant views", "split signal")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) for name in problems()])
def test_a_draw_divides_rows_and_columns(name, request):
    if name not in SYNTHETIC:
        request.getfixturevalue("real_data")
    problem = problems()[name]
    draw = problem.draw(np.random.default_rng(3), 0)
    assert sorted([*draw.train, *draw.test]) == list(range(len(draw.y)))
    assert sorted(np.concatenate(draw.views)) == list(range(draw.X.shape[1]))
    if len(np.unique(draw.qid)) > 1:
        assert not set(draw.qid[draw.train]) & set(draw.qid[draw.test])
    again = problem.draw(np.random.default_rng(3), 0)
    np.testing.assert_array_equal(again.X, draw.X)
    np.testing.assert_array_equal(again.test, draw.test)
    if name.startswith(("MQ2008", "MSLR")):
        assert not set(draw.qid) & set(problem.draw(np.random.default_rng(3), 1).qid)


def test_two_halves_share_no_task_and_lose_none():
    first, second = (_dealt([f"task {n}" for n in range(7)], half) for half in (0, 1))
    assert sorted([*first, *second]) == [f"task {n}" for n in range(7)]


def test_many_scorings_are_measured_as_the_library_does():
    rng = np.random.default_rng(0)
    y, qid, scores = rng.integers(0, 3, 60).astype(float), np.repeat(np.arange(12), 5), rng.normal(size=(60, 7))
    y[:5] = 0.0
    draw = SplitRepeat(np.zeros((60, 1)), y, qid, np.arange(0), np.arange(60), [])
    for metric in ("AP", "disagreement"):
        expected = [evaluate(y, column, qid, metric, convention="letor4")[metric].mean for column in scores.T]
        np.testing.assert_allclose(draw.measure(metric, scores), expected)


def test_shares_of_rows_and_whole_queries_are_hidden():
    y, qid = np.tile([0.0, 1.0, 2.0, 0.0, 0.0], 8), np.repeat(np.arange(8), 5)
    draw = SplitRepeat(np.zeros((40, 2)), y, qid, np.arange(40), np.arange(40), [])
    by_query = draw.hidden(3, seed=1)
    kept = ~np.isnan(by_query)
    assert len(set(qid[kept])) == 3
    assert kept.sum() == 15
    np.testing.assert_array_equal(by_query[kept], y[kept])
    assert np.isclose(np.mean(~np.isnan(draw.hidden(0.2, seed=1))), 0.2)


def test_a_rare_grade_is_judged_at_least_once():
    y = np.zeros(50)
    y[49] = 1.0
    draw = SplitRepeat(np.zeros((50, 1)), y, np.zeros(50), np.arange(50), np.arange(50), [])
    for seed in range(5):
        known = draw.hidden(0.05, seed)
        assert set(known[~np.isnan(known)]) == {0.0, 1.0}
