from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corank.errors import InputError
from corank.metrics import CONVENTIONS, evaluate

queries = st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=8), min_size=1)


def flat(queries):
    y = [grade for rows in queries for grade, _ in rows]
    scores = [score for rows in queries for _, score in rows]
    return y, scores, [q for q, rows in enumerate(queries) for _ in rows]


@given(queries)
def test_the_best_order_scores_one_and_no_order_more(queries):
    y, scores, qid = flat(queries)
    names = ["nDCG@3", "nDCG", "MeanNDCG", "WTA"]
    best, other = evaluate(y, y, qid, names), evaluate(y, scores, qid, names)
    for name in names:
        defined = ~np.isnan(best[name].values)
        assert best[name].values[defined] == pytest.approx(1.0)
        assert (other[name].values[defined] <= 1 + 1e-12).all()
        assert (np.isnan(other[name].values) == ~defined).all()


@given(queries)
def test_grades_say_which_queries_are_empty(queries):
    y, scores, qid = flat(queries)
    found = evaluate(y, scores, qid, ["nDCG@3", "ERR", "WTA"])
    no_gain = [all(grade == 0 for grade, _ in rows) for rows in queries]
    one_grade = [len({grade for grade, _ in rows}) == 1 for rows in queries]
    assert np.isnan(found["nDCG@3"].values).tolist() == no_gain
    assert np.isnan(found["ERR"].values).tolist() == no_gain
    assert np.isnan(found["WTA"].values).tolist() == one_grade
    assert found.n_single_grade == sum(one_grade)


@given(queries, st.floats(-5, 5), st.floats(0.5, 4))
def test_only_the_order_of_the_scores_matters(queries, shift, scale):
    y, scores, qid = flat(queries)
    names = ["nDCG@3", "MeanNDCG", "ERR@2", "WTA"]
    moved = evaluate(y, np.asarray(scores) * scale + shift, qid, names)
    for name, result in evaluate(y, scores, qid, names).items():
        np.testing.assert_array_equal(result.values, moved[name].values)


def test_winner_take_all_in_a_tie_is_the_share_of_winners():
    assert evaluate([2, 2, 1, 0], [5, 5, 5, 1], None, "WTA")["WTA"].mean == pytest.approx(2 / 3)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_winner_take_all_leaves_out_what_measures_of_pairs_leave_out(convention):
    y, scores, qid = [2, 2, 1, 0, 0, 1, 0], [1, 2, 1, 3, 2, 2, 1], [1, 1, 2, 3, 3, 4, 4]
    docids = [f"d{row}" for row in range(len(y))]
    found = evaluate(y, scores, qid, ["WTA", "kendall"], convention=convention, docids=docids)
    assert np.isnan(found["WTA"].values).tolist() == np.isnan(found["kendall"].values).tolist() == [True] * 3 + [False]
    assert (found["WTA"].mean, found["WTA"].n_used, found["WTA"].n_empty) == (1.0, 1, 3)


def test_the_scale_of_err_ends_at_the_highest_grade_or_where_it_is_said_to():
    y, scores = [1, 2], [2, 1]
    by_hand = 1 / 4 + (1 - 1 / 4) * (3 / 4) / 2
    assert evaluate(y, scores, None, "ERR")["ERR"].mean == pytest.approx(by_hand)
    by_hand = 1 / 16 + (1 - 1 / 16) * (3 / 16) / 2
    assert evaluate(y, scores, None, "ERR(max_grade=4)")["ERR(max_grade=4)"].mean == pytest.approx(by_hand)
    with pytest.raises(InputError, match="ERR has max_grade 1"):
        evaluate(y, scores, None, "ERR(max_grade=1)")
