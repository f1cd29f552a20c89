from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from corank import ColumnMean, LambdaRank, QueryScaler, QuerySearchCV, RankRLS
from corank.comparison import METHODS, methods
from corank.comparison.methods import (
    BASELINES,
    DEFAULT,
    INNER_FOLDS,
    QUICK,
    LightGBM,
    RandomOrder,
    Settings,
    TrainingPart,
    find_methods,
)
from corank.comparison.problem import comparable
from corank.comparison.runner import chosen_of
from corank.data.routing import fit_with_qid, predict_with_qid
from corank.data.splits import mask_scores
from corank.deploy.persist import load, save
from corank.errors import InputError
from corank.metrics import CONVENTIONS


def part_of(made, prior=None, convention="corank", hidden=0.3):
    y = mask_scores(made.y, fraction=hidden, random_state=0)
    return TrainingPart(made.X, y, made.qid, Settings("nDCG@5", CONVENTIONS[convention], 0, prior), (0,))


@pytest.mark.thin(5)
@pytest.mark.parametrize(
    ("name", "prior"),
    [(name, None) for name in METHODS] + [(name, (0, 1)) for name in ("columns", "rankrls", "crr", "lightgbm")],
)
def test_every_method_fits_and_reports_its_tuned_parameters(made, name, prior):
    method, part = METHODS[name], part_of(made, prior)
    if not method.is_installed:
        pytest.skip(f"needs {method.module}")
    y = np.full(len(part.y), np.nan) if method.is_label_free else part.y
    model = fit_with_qid(method.make(part), part.X, y, part.qid)
    scores = predict_with_qid(model, part.X, part.qid)
    assert scores.shape == (len(made.y),)
    assert np.isfinite(scores).all()
    chosen = chosen_of(model)
    assert ("alpha" in method.tuning) <= ("alpha" in chosen)
    assert (name in BASELINES) == method.is_label_free


@pytest.mark.parametrize("name", ["columns", "rankrls", "crr", "lcra", "lightgbm"])
def test_methods_take_missing_values(made, name):
    part = part_of(made)
    X = np.where(np.random.default_rng(0).random(made.X.shape) < 0.1, np.nan, made.X)
    part = TrainingPart(X, part.y, part.qid, part.settings, (0,))
    y = np.full(len(part.y), np.nan) if METHODS[name].is_label_free else part.y
    model = fit_with_qid(METHODS[name].make(part), X, y, part.qid)
    assert np.isfinite(predict_with_qid(model, X, part.qid)).all()


@pytest.mark.parametrize("name", ["rankrls", "ranksvm", "crr", "co-rankrls", "lcra", "ranking-pursuit"])
def test_methods_learn_from_a_handful_of_rows_and_from_one_query(made, name):
    for rows in (made.qid == 0, made.qid < 2, np.arange(len(made.y)) < 5):
        part = TrainingPart(made.X[rows], made.y[rows], made.qid[rows], part_of(made).settings, (0,))
        model = fit_with_qid(METHODS[name].make(part), part.X, part.y, part.qid)
        assert np.isfinite(predict_with_qid(model, part.X, part.qid)).all()


def test_names_are_found_in_any_spelling_and_baselines_are_added():
    assert list(find_methods(["CRR", "Rank_RLS"], None)) == ["random", "columns", "rankrls", "crr"]
    assert list(find_methods("co-ranking-pursuit", None)) == ["random", "columns", "co-ranking-pursuit"]
    assert list(find_methods(["crr"], None, is_sparse=True)) == ["random", "crr"]
    assert find_methods(["crr"], (1, 2))["columns"].title == "mean of 2 columns"
    assert set(QUICK) | set(DEFAULT) <= set(METHODS)
    with pytest.raises(InputError, match="there is no model 'lcar'"):
        find_methods(["lcar"], None)
    with pytest.raises(InputError, match="models is empty"):
        find_methods([], None)


def test_estimators_keep_their_order():
    ridge = make_pipeline(QueryScaler(), Ridge())
    found = find_methods({"ridge": ridge, "mine": RankRLS(), "free": ColumnMean([0])}, None)
    assert list(found) == ["random", "columns", "ridge", "mine", "free"]
    assert [found[name].takes_unscored for name in ("ridge", "mine")] == [False, True]
    assert found["free"].is_label_free
    assert found["mine"].signature != find_methods({"mine": RankRLS(alpha=1.0)}, None)["mine"].signature
    inside = find_methods({"search": QuerySearchCV(RankRLS(), {"alpha": [1.0]})}, None)
    assert inside["search"].takes_unscored
    with pytest.raises(InputError, match="the model 'x' is 3; pass an estimator"):
        find_methods({"x": 3}, None)
    with pytest.raises(InputError, match="a model is called 'random'"):
        find_methods({"random": RankRLS()}, None)


def test_a_random_order_is_expected_or_drawn(made):
    expected, drawn = (METHODS["random"].make(part_of(made, convention=name)) for name in ("corank", "letor4"))
    assert isinstance(expected, RandomOrder)
    assert not expected.fit(made.X).predict(made.X).any()
    scores = drawn.fit(made.X).predict(made.X)
    assert len(np.unique(scores)) == len(made.y)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_lightgbm_is_lightgbm_and_can_be_saved(made, tmp_path, kind):
    lightgbm = pytest.importorskip("lightgbm")
    y = mask_scores(made.y, fraction=0.3, random_state=0)
    rows = np.random.default_rng(0).permutation(len(y))
    X, y, qid = made.X[rows], y[rows], made.qid[rows]
    model = LightGBM(random_state=3).fit(kind(X), y, qid=qid)
    scored = np.flatnonzero(~np.isnan(y))
    groups = [scored[qid[scored] == query] for query in dict.fromkeys(qid[scored].tolist())]
    order = np.concatenate(groups)
    theirs = lightgbm.LGBMRanker(verbosity=-1, n_jobs=1, random_state=3)
    theirs.fit(kind(X[order]), y[order], group=[len(group) for group in groups])
    np.testing.assert_array_equal(model.predict(kind(X)), theirs.predict(kind(X)))
    assert isinstance(model.ranker_, LambdaRank)
    save(model.ranker_, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "m.safetensors").predict(kind(X)), model.predict(kind(X)))
    for shift in (-0.5, -1.0, 31.0):
        with pytest.raises(InputError, match="accepts whole grades from 0 to 30 only"):
            LightGBM().fit(X, y + shift, qid=qid)
    with pytest.raises(InputError, match="column 0 of X has values of size up to"):
        LightGBM().fit(kind(X * 1e-300), y, qid=qid)
    alone = LightGBM().fit(kind(X * 0.0), y, qid=qid)
    assert alone.ranker_.trees_.n_trees == 1
    assert len(np.unique(alone.predict(kind(X)))) == 1


def test_a_missing_optional_dependency_is_detected(monkeypatch):
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    assert not METHODS["lightgbm"].is_installed
    assert METHODS["rankrls"].is_installed


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


def test_views_agree_on_two_unscored_rows_of_one_query():
    assert trial([0, 1, np.nan, np.nan], [0, 0, 0, 1]).couplings == [0.0]
    assert len(trial([0, 1, np.nan, np.nan], [0, 0, 1, 1]).couplings) > 1
