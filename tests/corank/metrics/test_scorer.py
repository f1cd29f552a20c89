from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline

from corank import SPD, QueryKFold, QueryScaler, QuerySearchCV, RankRLS
from corank.base import Landmarks
from corank.errors import InputError
from corank.metrics import evaluate, scorer

FOLDS = QueryKFold(4)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def problem():
    """Queries on scales of their own, in mixed order: without qid a scaler puts them together and is useless."""
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(20), 10))
    X = rng.normal(size=(200, 4))
    y = np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=200)), 0, 2)
    X[:, 0] = X[:, 0] * 10.0 ** (qid % 3) + 100 * qid
    return X, y, np.array([f"query {q}" for q in qid])


def by_hand(make, problem, name, scale=True):
    """Scores of the folds, every step taken by hand."""
    X, y, qid = problem
    for train, test in FOLDS.split(X, qid=qid):
        parts = [QueryScaler().fit_transform(X[rows], qid=qid[rows]) if scale else X[rows] for rows in (train, test)]
        model = make()
        model.fit(parts[0], y[train], **({"qid": qid[train]} if isinstance(model, SPD) else {}))
        yield evaluate(y[test], model.predict(parts[1]), qid[test], name)[name].mean


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize(("name", "sign"), [("nDCG@5", 1), ("disagreement", -1), ("R(rel=2)@3", 1)])
@pytest.mark.parametrize("make", [lambda: SPD(alpha=0.1, random_state=0), Ridge], ids=["SPD", "Ridge"])
def test_query_ids_reach_the_scaler_the_ranker_and_the_metric(problem, name, sign, make):
    X, y, qid = problem
    for scale in (True, False):
        model = make_pipeline(QueryScaler(), make()) if scale else make()
        # a regressor asks for no qid: the folds and the scorer do
        found = cross_val_score(model, X, y, params={"qid": qid}, cv=FOLDS, scoring=scorer(name), error_score="raise")
        assert found == pytest.approx([sign * score for score in by_hand(make, problem, name, scale)])


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_with_landmarks_and_two_metrics(problem, n_jobs):
    X, y, qid = problem
    model = make_pipeline(QueryScaler(), Landmarks(20, random_state=0), Ridge())
    two = {"gain": scorer("nDCG@5"), "pairs": scorer("disagreement")}
    search = GridSearchCV(
        model, {"ridge__alpha": [0.1, 10.0]}, scoring=two, refit="gain", cv=FOLDS, n_jobs=n_jobs, error_score="raise"
    ).fit(X, y, qid=qid)
    assert "scorer('nDCG@5', convention='corank')" in repr(search)
    for at, alpha in enumerate([0.1, 10.0]):
        for name, key, sign in (("nDCG@5", "gain", 1), ("disagreement", "pairs", -1)):
            want = by_hand(lambda: make_pipeline(Landmarks(20, random_state=0), Ridge(alpha=alpha)), problem, name)  # noqa: B023
            found = [search.cv_results_[f"split{k}_test_{key}"][at] for k in range(4)]
            assert found == pytest.approx([sign * value for value in want])
    best = search.best_estimator_
    assert search.score(X, y, qid=qid) == scorer("nDCG@5")(best, X, y, qid=qid)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("kind", [GridSearchCV, QuerySearchCV])
def test_a_search_inside_cross_validation(problem, kind):
    X, y, qid = problem
    model, grid = make_pipeline(QueryScaler(), Ridge()), {"ridge__alpha": [0.1, 100.0]}
    inner = (
        GridSearchCV(model, grid, scoring=scorer("nDCG@5"), cv=QueryKFold(3))
        if kind is GridSearchCV
        else QuerySearchCV(model, grid, metric="nDCG@5", cv=3)
    )
    found = cross_validate(
        inner, X, y, params={"qid": qid}, cv=FOLDS, scoring=scorer("AP"), error_score="raise", return_estimator=True
    )
    for k, (_, test) in enumerate(FOLDS.split(X, qid=qid)):
        scores = found["estimator"][k].best_estimator_.predict(X[test], qid=qid[test])
        assert found["test_score"][k] == evaluate(y[test], scores, qid[test], "AP")["AP"].mean


def test_it_can_be_pickled_compared_and_shown():
    score = scorer("map", convention="letor4")
    assert pickle.loads(pickle.dumps(score)) == score == scorer("AP", convention="letor4")
    assert repr(score) == "scorer('AP', convention='letor4')"
    assert score.__name__ == "AP"


def test_routing_is_not_needed_where_qid_is_given_and_the_configuration_is_left_alone(problem):
    X, y, qid = problem
    before = sklearn.get_config()
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(QueryScaler(), Ridge()).fit(X, y, qid=qid)
        scores = model.predict(X, qid=qid)
    assert scorer("AP")(model, X, y, qid=qid) == evaluate(y, scores, qid, "AP")["AP"].mean
    assert sklearn.get_config() == before


def test_a_search_that_cannot_pass_qid_warns(problem):
    X, y, qid = problem
    splits = list(GroupKFold(3).split(X, y, qid))
    search = GridSearchCV(SPD(alpha=1.0, random_state=0), {}, scoring=scorer("AP"), cv=splits, error_score="raise")
    with pytest.warns(UserWarning, match="AP treats all rows as one"):
        search.fit(X, y, qid=qid)
    search.set_params(cv=QueryKFold(3))
    with pytest.raises(InputError, match="QueryKFold needs query ids"):
        search.fit(X, y, qid=qid)


def test_an_index_named_qid_reaches_folds_ranker_and_metric_without_routing(problem):
    X, y, qid = problem
    frame = pd.DataFrame(X, index=pd.MultiIndex.from_arrays([qid, np.arange(len(y))], names=["qid", "docid"]))
    frame.columns = frame.columns.astype(str)
    grid = {"alpha": [0.1, 1e4]}
    search = GridSearchCV(RankRLS(), grid, scoring=scorer("nDCG@5"), cv=FOLDS, error_score="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(frame, y)
        scores = cross_val_score(RankRLS(1.0), frame, y, cv=FOLDS)
    for k, (train, test) in enumerate(FOLDS.split(X, qid=qid)):
        for at, alpha in enumerate(grid["alpha"]):
            model = RankRLS(alpha).fit(X[train], y[train], qid=qid[train])
            want = evaluate(y[test], model.predict(X[test]), qid[test], "nDCG@5")["nDCG@5"].mean
            assert search.cv_results_[f"split{k}_test_score"][at] == pytest.approx(want)
        model = RankRLS(1.0).fit(X[train], y[train], qid=qid[train])
        assert scores[k] == pytest.approx(model.score(X[test], y[test], qid[test]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline = make_pipeline(QueryScaler(), RankRLS(1.0)).set_output(transform="pandas").fit(frame, y)
    by_hand_ = RankRLS(1.0).fit(QueryScaler().fit_transform(X, qid=qid), y, qid=qid)
    np.testing.assert_allclose(pipeline[-1].coef_, by_hand_.coef_)
    np.testing.assert_array_equal(pipeline[-1].rank(frame), pipeline[-1].rank(frame.reset_index(drop=True), qid))


@pytest.mark.usefixtures("routing")
def test_with_routing_on_rows_without_qid_are_one_query(problem):
    X, y, _ = problem
    model = Ridge().fit(X, y)
    assert scorer("AP")(model, X, y) == evaluate(y, model.predict(X), None, "AP")["AP"].mean


def test_a_wrong_name_is_noticed_at_once():
    with pytest.raises(InputError, match="not a known metric"):
        scorer("nDGC@10")
    with pytest.raises(InputError, match="not a known convention"):
        scorer("nDCG@10", convention="letor5")
