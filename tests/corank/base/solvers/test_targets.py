"""Scores as losses see them, against loops over queries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank import SPD, RankSVM, make_ranking
from corank.base.solvers.solution import in_unit, ordered, unit_range
from corank.data.ranking import RankingData

NAN = float("nan")
ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([NAN, -1e300, 0.0, 1.0, 2.5, 1e300]), st.integers(0, 2)), min_size=1
)


def problem(rows):
    qid, y, w = (np.array(column) for column in zip(*rows, strict=True))
    if not w.any():
        w = w + 1
    return RankingData.of(np.zeros((len(y), 1)), y, qid, w), qid, y, w


@given(ROWS)
def test_only_the_order_is_left(rows):
    data, qid, y, _ = problem(rows)
    expected = [
        np.nan if np.isnan(y[i]) else len({v for v, q in zip(y, qid, strict=True) if q == qid[i] and v < y[i]})
        for i in range(len(y))
    ]
    np.testing.assert_array_equal(ordered(data).y, expected)


@given(ROWS)
def test_what_stands_for_zero_and_one(rows):
    data, qid, y, w = problem(rows)
    kept = ~np.isnan(y) & (w > 0)
    if not kept.any():
        return
    widths = [np.ptp(y[kept & (qid == q)]) for q in np.unique(qid[kept])]
    assert unit_range(data, rows=False) == (0.0, max(1.0, *widths))
    low, high = unit_range(data, rows=True)
    shares = in_unit(data, (low, high)).y[kept]
    assert shares.min() >= 0.0
    assert shares.max() <= 1.0
    if y[kept].min() >= 0.0 and y[kept].max() <= 1.0:
        np.testing.assert_array_equal(shares, y[kept])


@pytest.mark.parametrize("model", [RankSVM(), RankSVM(kernel="gaussian"), SPD(), SPD("hinge", n_steps=500)])
def test_where_the_order_is_all_scores_may_be_any(model):
    problem = make_ranking(5, 8, random_state=0)
    model.set_params(random_state=0)
    plain = model.fit(problem.X, problem.y, qid=problem.qid).predict(problem.X)
    for scale in (1e-300, 1e160, 1e300):
        with np.errstate(all="raise", under="ignore"):
            again = model.fit(problem.X, scale * problem.y, qid=problem.qid).predict(problem.X)
        np.testing.assert_array_equal(again, plain)
