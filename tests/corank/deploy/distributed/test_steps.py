"""Scaled queries over parts, against the same pipeline on one machine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from corank import QueryScaler, RankRLS, load, make_ranking, save
from corank.data import mask_scores, write_letor
from corank.data.routing import predict_with_qid
from corank.deploy.distributed import Parts, fit_parts, predict_parts
from corank.errors import InputError

PROBLEM = make_ranking(40, 12, random_state=0)
X = PROBLEM.X * np.geomspace(0.01, 100, PROBLEM.X.shape[1]) + 3.0
X[:, 3] = 0.1  # constant, and its mean is rounded
X[::2, 4] = 0.0
Y = mask_scores(PROBLEM.y, fraction=0.5, random_state=0)
QID = PROBLEM.qid
CUT = (30, 31, 31, 200)


def pieces(*places, X=X):
    return [(X[part], Y[part], QID[part]) for part in np.split(np.arange(len(Y)), places)]


def alone(model, X=X):
    with config_context(enable_metadata_routing=True):
        return clone(model).fit(X, Y, qid=QID)


def scores_of(model, X=X):
    return predict_with_qid(model, X, QID)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(QueryScaler(), RankRLS()),
        make_pipeline(QueryScaler("zscore"), RankRLS(alphas=[0.01, 1.0])),
        make_pipeline(QueryScaler(), RankRLS(kernel="gaussian", n_basis=15, random_state=1)),
        Pipeline([("as_it_is", "passthrough"), ("scale", QueryScaler()), ("rank", RankRLS())]),
    ],
    ids=str,
)
def test_a_pipeline_fitted_to_parts_is_that_of_all_rows(model):
    whole, found = alone(model), fit_parts(clone(model), pieces(*CUT))
    np.testing.assert_allclose(scores_of(found), scores_of(whole), rtol=1e-9, atol=1e-11 * abs(scores_of(whole)).max())
    for (name, one), (_, other) in zip(found.steps, whole.steps, strict=True):
        if one == "passthrough":
            continue
        assert vars(one).keys() == vars(other).keys(), name
        assert one.n_features_in_ == other.n_features_in_
        if isinstance(one, QueryScaler):
            assert one.n_queries_ == other.n_queries_ == 40


@pytest.mark.parametrize("method", ["minmax", "zscore"])
def test_no_cut_changes_a_byte_of_what_scaled_queries_teach(method):
    model = make_pipeline(QueryScaler(method), RankRLS())
    found = [fit_parts(clone(model), pieces(*places))[-1] for places in ((), CUT, (36, 300, 301))]
    assert found[0].coef_.tobytes() == found[1].coef_.tobytes() == found[2].coef_.tobytes()
    scaled = [QueryScaler(method).fit_transform(X, qid=QID), Y, QID]
    assert fit_parts(RankRLS(), [scaled]).coef_.tobytes() == found[0].coef_.tobytes()


def test_single_precision_and_sparse_rows():
    model, single = make_pipeline(QueryScaler("zscore"), RankRLS()), X.astype(np.float32)
    whole = scores_of(alone(model, single), single)
    for given in (single, sparse.csr_matrix(single)):
        found = fit_parts(clone(model), pieces(*CUT, X=given))
        np.testing.assert_allclose(scores_of(found, single), whole, rtol=1e-5, atol=1e-5 * abs(whole).max())


def test_wide_text_of_many_zeros_is_scaled_too(tmp_path):
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(len(Y), 250)).astype(np.float32) * (rng.random((len(Y), 250)) < 0.05)
    scores = PROBLEM.y
    for at, part in enumerate(np.split(np.arange(len(Y)), [100, 300])):
        write_letor(tmp_path / f"{at}.txt", sparse.csr_matrix(wide[part]), scores[part], QID[part])
    found = fit_parts(make_pipeline(QueryScaler(), RankRLS()), tmp_path)
    whole = RankRLS().fit(QueryScaler().fit_transform(wide, qid=QID), scores, qid=QID)
    np.testing.assert_allclose(found[-1].coef_, whole.coef_, rtol=1e-6, atol=1e-8 * abs(whole.coef_).max())
    np.testing.assert_allclose(predict_parts(found, tmp_path), scores_of(found, wide), rtol=1e-6, atol=1e-9)


def test_a_fitted_pipeline_scores_parts(tmp_path):
    model = fit_parts(make_pipeline(QueryScaler(), RankRLS()), pieces(*CUT))
    save(model, tmp_path / "model")
    model, parts = load(tmp_path / "model"), Parts(pieces(50, 300))
    scores = scores_of(model)
    np.testing.assert_allclose(predict_parts(model, parts), scores, rtol=1e-12, atol=1e-12 * abs(scores).max())


def test_rows_seen_through_a_scaler_are_those_of_whole_queries():
    parts = Parts(pieces(*CUT))
    fitted = QueryScaler().fit(X, qid=QID)
    seen = parts.scaled(fitted)
    numbers = np.array([479, 29, 30, 31, 0, 200, 199, 30])
    assert seen.rows(numbers).tolist() == fitted.transform(X, QID)[numbers].tolist()
    assert parts.rows(numbers).tolist() == X[numbers].tolist()
    assert [one.name for one in parts.passes] == ["query ids", "straddling rows"]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (make_pipeline(StandardScaler(), RankRLS()), "StandardScaler cannot be fitted to parts"),
        (make_pipeline(QueryScaler(), QueryScaler(), RankRLS()), "QueryScaler cannot be fitted to parts"),
        (make_pipeline(QueryScaler("other"), RankRLS()), "method is 'other'"),
        (make_pipeline(QueryScaler(), StandardScaler()), "StandardScaler cannot be fitted to parts"),
    ],
    ids=str,
)
def test_steps_that_parts_cannot_teach(model, said):
    with pytest.raises(InputError, match=said):
        fit_parts(model, pieces(100))


def test_a_fit_that_fails_leaves_every_step_as_it_was():
    model = make_pipeline(QueryScaler(), RankRLS())
    before = [dict(vars(step)) for _, step in model.steps]
    with pytest.raises(InputError, match="two scored rows"):
        fit_parts(model, [(X[:1], [1.0], [1]), (X[1:2], [2.0], [2])])
    assert [vars(step) for _, step in model.steps] == before
