"""What `Ranker` gives every subclass, on the smallest one; the laws hold for all of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import corank
from corank.data.io.stores import open_store, write_store
from corank.data.ranking import RankingData
from corank.data.synthetic import make_ranking
from corank.errors import InputError, UsageWarning
from helpers.plain_ranker import PlainRanker

PROBLEM = make_ranking(6, 5, random_state=0)


class DenseOnly(PlainRanker):
    _accepts_sparse = False


@pytest.mark.parametrize("wrap", [lambda X: X, lambda X: RankingData.of(X, PROBLEM.y, PROBLEM.qid)])
def test_sparse_rows_are_refused_however_they_come(wrap):
    rows = wrap(sparse.csr_matrix(PROBLEM.X))
    y, qid = (None, None) if isinstance(rows, RankingData) else (PROBLEM.y, PROBLEM.qid)
    with pytest.raises(InputError, match="X is sparse, but DenseOnly needs dense rows"):
        DenseOnly().fit(rows, y, qid=qid)


def test_a_problem_is_passed_alone():
    with pytest.raises(InputError, match="y, qid or pairs was given with a RankingData"):
        PlainRanker().fit(RankingData.of(PROBLEM.X, PROBLEM.y, PROBLEM.qid), PROBLEM.y)


def test_sizes_of_queries_replace_ids():
    sizes, data = [5] * 6, RankingData.of(PROBLEM.X, PROBLEM.y, PROBLEM.qid)
    wanted = PlainRanker().fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid).coef_
    for rows in (PROBLEM.X, PROBLEM.X.tolist(), pd.DataFrame(PROBLEM.X)):
        np.testing.assert_array_equal(PlainRanker().fit(rows, PROBLEM.y, group=sizes).coef_, wanted)
    with pytest.raises(InputError, match="group has sum 25, but X has 30 rows"):
        PlainRanker().fit(PROBLEM.X, PROBLEM.y, group=sizes[1:])
    for kind in (PlainRanker, corank.LambdaRank):
        with pytest.raises(TypeError, match="qid=qid"):
            kind().fit(PROBLEM.X, PROBLEM.y, PROBLEM.qid)
    for arguments in ((PROBLEM.X, PROBLEM.y), (data,)):
        with pytest.raises(InputError, match="group was given in addition to query ids"):
            PlainRanker().fit(*arguments, qid=None if len(arguments) == 1 else PROBLEM.qid, group=sizes)


def test_arrays_an_indexed_problem_and_a_store_teach_the_same(tmp_path):
    write_store(tmp_path / "store", PROBLEM.X, PROBLEM.y, PROBLEM.qid)
    data = RankingData.of(PROBLEM.X, PROBLEM.y, PROBLEM.qid)
    wanted = PlainRanker().fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid).coef_
    for problem in (data, open_store(tmp_path / "store").data):
        np.testing.assert_array_equal(PlainRanker().fit(problem).coef_, wanted)


def test_columns_are_remembered_by_name_and_number():
    frame = pd.DataFrame(PROBLEM.X, columns=[f"c{k}" for k in range(20)])
    model = PlainRanker().fit(frame, PROBLEM.y, qid=PROBLEM.qid)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="X has 19 features"):
        PlainRanker().fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid).predict(PROBLEM.X[:, 1:])


def test_score_refuses_weights():
    model = PlainRanker().fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid)
    with pytest.raises(InputError, match="score counts pairs unweighted"):
        model.score(PROBLEM.X, PROBLEM.y, PROBLEM.qid, np.ones(30))


def test_many_grades_without_query_ids_are_asked_about_in_score_too():
    many = make_ranking(12, 10, random_state=0)
    model = PlainRanker().fit(many.X, many.y, qid=many.qid)
    with pytest.warns(UsageWarning, match="qid was not given, so all 120 rows are"):
        model.score(many.X, many.y)


def test_a_problem_says_what_it_is_in_one_line():
    data = RankingData.of(PROBLEM.X, PROBLEM.y, PROBLEM.qid)
    assert repr(data) == "RankingData(30 rows, 30 scored, 6 queries, X of shape (30, 20))"
    pairs = RankingData.of_pairs(PROBLEM.X, [[0, 1]])
    assert repr(pairs) == "RankingData(30 rows, 1 preferences, 1 queries, X of shape (30, 20))"


def test_rows_without_a_feature_are_refused(tmp_path):
    (tmp_path / "rows.txt").write_text("1 qid:1\n0 qid:1\n")
    data = corank.read(tmp_path / "rows.txt").data
    for ranker in (corank.SPD(), corank.SPD(solver="sgd"), corank.RankRLS()):
        with pytest.raises(InputError, match="X has 2 rows of 0 features"):
            ranker.fit(data)
