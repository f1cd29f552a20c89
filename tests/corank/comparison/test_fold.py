from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corank import RankRLS
from corank.comparison.fold import INNER_FOLDS, Settings, TrainingPart
from corank.comparison.problem import comparable
from corank.metrics import CONVENTIONS

SETTINGS = Settings("nDCG@10", CONVENTIONS["corank"], 0, None)


def trial(y, qid, **settings):
    y = np.asarray(y, dtype=float)
    X = np.random.default_rng(0).normal(size=(len(y), 4))
    return TrainingPart(X, y, np.asarray(qid), Settings(**{**vars(SETTINGS), **settings}), (1, 2))


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0.0, 1.0, np.nan])), min_size=1, max_size=50))
def test_inner_folds_hold_out_whole_queries_each_once(rows):
    qid, y = (np.array(column) for column in zip(*rows, strict=True))
    part = trial(y, qid)
    holds = comparable(y[part.scored], qid[part.scored])
    if len(holds) < 2:
        assert not part.splits or len(part.scored) >= 8
        return
    assert len(part.splits) == min(INNER_FOLDS, len(holds))
    for train, test in part.splits:
        assert not set(qid[train]) & set(qid[test])
        assert len(train) + len(test) == len(y)
        assert len(np.intersect1d(qid[test], holds))
    tested = np.concatenate([test for _, test in part.splits])
    assert set(qid[tested]) == set(holds)
    assert len(tested) == np.isin(qid, holds).sum()


def test_rows_of_a_single_query_are_held_out_where_there_are_enough():
    y = np.arange(12.0)
    few, enough = trial(y[:7], np.zeros(7, int)), trial(y, np.zeros(12, int))
    assert few.splits == []
    assert few.left_out_by is None
    assert [len(test) for _, test in enough.splits] == [4, 4, 4]
    assert enough.left_out_by == "disagreement"
    assert trial([0, 1, 0, 1], [1, 1, 2, 2]).left_out_by == "nDCG@10"


def test_a_search_is_the_ranker_itself_if_no_row_can_be_held_out():
    assert isinstance(trial([0, 1], [0, 0]).searched(RankRLS(), {"alpha": [1.0]}), RankRLS)


def test_parameters_of_a_ranker_on_a_prior_are_searched_under_it():
    part = trial([0, 1] * 6, np.repeat(np.arange(6), 2), prior=(0,))
    found = part.searched(RankRLS(), {"alpha": [0.1, 1.0]}).fit(part.X, part.y, qid=part.qid)
    assert set(found.best_params_) == {"ranker__alpha"}
    assert found.best_estimator_.ranker_.alpha_ == found.best_params_["ranker__alpha"]


def test_forces_serve_the_metric():
    assert trial([0, 1], [0, 0]).lambdas == "ndcg"
    assert trial([0, 1], [0, 0], metric="AP").lambdas == "map"
    assert trial([0, 1], [0, 0], metric="disagreement").lambdas == "ranknet"


def test_unscored_pairs_are_two_rows_of_one_query():
    assert not trial([0, 1, np.nan, np.nan], [0, 0, 0, 1]).has_unscored_pairs
    assert trial([0, 1, np.nan, np.nan], [0, 0, 1, 1]).has_unscored_pairs
