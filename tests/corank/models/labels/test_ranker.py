"""What users ask of an estimator of labels: scikit-learn's contract, every form of y and of predictions, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import corank
from corank.errors import InputError
from corank.models.labels import (
    AutoLabelRanker,
    CalibratedLabelRanker,
    LabelPreferences,
    NeighborLabelRanker,
    OnlineLabelRanker,
    PairwiseLabelRanker,
    kendall_tau,
)

X, SETS = make_multilabel_classification(120, 6, n_classes=4, random_state=0)
RNG = np.random.default_rng(0)
U = StandardScaler().fit_transform(X) @ RNG.normal(size=(6, 4)) + RNG.normal(size=(120, 4))
RANKS = np.argsort(np.argsort(-U, axis=1), axis=1) + 1
TOP = np.where(U > 0, RANKS, 0)
MODELS = [CalibratedLabelRanker(), OnlineLabelRanker(random_state=0), NeighborLabelRanker(), PairwiseLabelRanker()]
AUTO = AutoLabelRanker(cv=2, random_state=0)


@parametrize_with_checks(MODELS[:2])
def test_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks([*MODELS[2:], OnlineLabelRanker(kernel="gaussian"), AUTO])
def test_scikit_learns_contract_of_the_others(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", [*MODELS, AUTO], ids=repr)
def test_predictions_have_the_form_of_y(model):
    for targets, y in (("ranks", RANKS), ("top", TOP), ("relevant", SETS)):
        found = clone(model).set_params(targets=targets).fit(X, y)
        predicted = found.predict(X)
        assert predicted.shape == y.shape
        assert found.kind_ == targets
        u = found.utilities(X)
        np.testing.assert_array_equal(found.decision_function(X), u)
        order = np.argsort(-u, axis=1, kind="stable")
        for i, row in enumerate(found.predict_ranking(X)):
            assert row[order[i]].tolist() == [1, 2, 3, 4]
        if targets == "ranks":
            np.testing.assert_array_equal(predicted, found.predict_ranking(X))
            for method in (found.predict_top, found.predict_relevant):
                with pytest.raises(InputError, match="ranks without a zero point"):
                    method(X)
            continue
        np.testing.assert_array_equal(found.predict_relevant(X), u > 0)
        np.testing.assert_array_equal(predicted > 0, u > 0)
        for i, top in enumerate(found.predict_top(X)):
            assert top.tolist() == [r for r in order[i] if u[i, r] > 0]


def test_a_top_list_may_be_empty():
    top = np.zeros((20, 3), int)
    top[0] = [1, 2, 3]
    model = CalibratedLabelRanker(targets="top").fit(np.zeros((20, 1)), top)
    assert [found.tolist() for found in model.predict_top([[0.0]])] == [[]]
    assert model.predict([[0.0]]).tolist() == [[0, 0, 0]]


def test_two_classes_are_logistic_regression():
    data = load_iris()
    rows, y = data.data[:100, :2], data.target_names[data.target[:100]]
    ours = CalibratedLabelRanker(alpha=0.02, scale=False).fit(rows, y)
    # u = ±w/2 has half the norm of w, twice
    theirs = LogisticRegression(C=1 / (0.01 * 100), tol=1e-10, max_iter=1000).fit(rows, y)
    np.testing.assert_allclose(ours.decision_function(rows), theirs.decision_function(rows), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    assert ours.utilities(rows).shape == (100, 2)
    assert ours.score(rows, y) == theirs.score(rows, y)


def test_score_measures_as_y_asks_for():
    model = CalibratedLabelRanker(targets="ranks").fit(X, RANKS)
    assert model.score(X, RANKS) == pytest.approx(kendall_tau(RANKS, model.predict(X)).mean())
    weights = RNG.random(120)
    expected = np.average(kendall_tau(RANKS, model.predict(X)), weights=weights)
    assert model.score(X, RANKS, sample_weight=weights) == pytest.approx(expected)
    model = CalibratedLabelRanker().fit(X, SETS)
    assert model.score(X, SETS) == pytest.approx((model.predict(X) == SETS).all(axis=1).mean())
    pairs = LabelPreferences.from_pairs([[(0, 1)]] * 120, 4)
    model = CalibratedLabelRanker().fit(X, pairs)
    assert model.score(X, pairs) == 1.0
    with pytest.raises(InputError, match="no pair can be compared"):
        model.score(X, LabelPreferences.from_pairs([[]] * 120, 4))


@pytest.mark.parametrize("y", [RANKS, LabelPreferences.from_ranks(RANKS)], ids=["array", "preferences"])
def test_searches_pipelines_and_frames_take_labels(y):
    targets = "ranks" if isinstance(y, np.ndarray) else "auto"
    pipeline = make_pipeline(StandardScaler(), CalibratedLabelRanker(targets=targets))
    grid = {"calibratedlabelranker__alpha": [0.01, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=KFold(3)).fit(X, y)
    assert search.best_score_ > 0.3
    assert cross_val_score(pipeline, X, y, cv=KFold(3)).shape == (3,)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = CalibratedLabelRanker(targets=targets).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(model.predict(frame), CalibratedLabelRanker(targets=targets).fit(X, y).predict(X))


@pytest.mark.parametrize(
    "model",
    [
        *MODELS,
        OnlineLabelRanker(kernel="gaussian", random_state=0), make_pipeline(StandardScaler(), CalibratedLabelRanker()),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("y", [SETS, np.array(list("abcd"))[RANKS.argmin(axis=1)]], ids=["sets", "classes"])
def test_a_file_keeps_the_model(model, y, tmp_path):
    model = clone(model).fit(X, y)
    corank.save(model, tmp_path / "m.safetensors")
    found = corank.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    np.testing.assert_array_equal(found.decision_function(X), model.decision_function(X))


def test_parts_of_a_file_that_do_not_fit_together_are_found(tmp_path):
    for model, name, value in (
        (CalibratedLabelRanker(), "intercept_", np.zeros(3)),
        (CalibratedLabelRanker(), "coef_", np.zeros((4, 5))),
        (OnlineLabelRanker(), "run_", {"weights": np.zeros((4, 6))}),
        (OnlineLabelRanker(), "kind_", "nothing"),
        (OnlineLabelRanker(kernel="gaussian"), "dual_coef_", np.zeros((1, 4))),
    ):
        model.fit(X, SETS)
        setattr(model, name, value)
        corank.save(model, tmp_path / "m", overwrite=True)
        with pytest.raises(InputError, match="do not fit together"):
            corank.load(tmp_path / "m")


def test_rows_may_be_sparse_or_of_single_precision():
    expected = CalibratedLabelRanker(alpha=0.01).fit(X, SETS).utilities(X)
    for rows in (sparse.csr_array(X), X.astype(np.float32)):
        found = CalibratedLabelRanker(alpha=0.01).fit(rows, SETS).utilities(rows)
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_units_of_columns_do_not_matter():
    units = np.array([1e-3, 1.0, 50.0, 1e4, 3.0, 0.1])
    expected = CalibratedLabelRanker(targets="top").fit(X, TOP).utilities(X)
    found = CalibratedLabelRanker(targets="top").fit(X * units + 7.0, TOP).utilities(X * units + 7.0)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_permuting_rows_or_labels_permutes_the_answer():
    rows, labels = RNG.permutation(120), RNG.permutation(4)
    expected = CalibratedLabelRanker(targets="top").fit(X, TOP).utilities(X)
    found = CalibratedLabelRanker(targets="top").fit(X[rows], TOP[rows][:, labels]).utilities(X)
    np.testing.assert_allclose(found, expected[:, labels], atol=1e-6)


def test_labels_of_unknown_side_are_not_learnt_from():
    hidden = np.where(RNG.random(SETS.shape) < 0.3, np.nan, SETS)
    model = CalibratedLabelRanker(targets="relevant").fit(X, hidden)
    assert model.score(X, hidden) >= model.score(X, SETS)
    nothing = np.column_stack([hidden, np.full(120, np.nan)])
    found = CalibratedLabelRanker(targets="relevant").fit(X, nothing)
    np.testing.assert_allclose(found.coef_[4], 0.0, atol=1e-9)
    np.testing.assert_allclose(found.coef_[:4], model.coef_, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (CalibratedLabelRanker(), RANKS, "numbers other than 0 and 1"),
        (CalibratedLabelRanker(), None, "requires y to be passed"),
        (CalibratedLabelRanker(), SETS[:5], "5 examples for 120 rows"),
        (CalibratedLabelRanker(), np.zeros(120, int), "only one class, 0"),
        (CalibratedLabelRanker(targets="ranks"), np.ones((120, 3)), "orders no two labels"),
        (CalibratedLabelRanker("hinge"), SETS, "loss is 'hinge'"),
        (CalibratedLabelRanker(alpha=0.0), SETS, "alpha is 0.0"),
        (CalibratedLabelRanker(targets="sets"), SETS, "targets is 'sets'"),
    ],
)
def test_bad_input_gets_a_sentence_and_leaves_the_old_model(model, y, message):
    fitted = clone(model).set_params(**CalibratedLabelRanker().get_params(deep=False)).fit(X, SETS)
    before = fitted.coef_
    fitted.set_params(**model.get_params(deep=False))
    with pytest.raises(InputError, match=message):
        fitted.fit(X, y)
    assert fitted.coef_ is before


def test_unknown_labels_in_a_table_and_columns_of_frames():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = np.random.default_rng(0).normal(size=(60, 3))
    table = (rows > 0).astype(float)
    table[0, 1] = np.nan
    named = CalibratedLabelRanker(targets="relevant").fit(rows, table).predict(rows)
    np.testing.assert_array_equal(CalibratedLabelRanker().fit(rows, table).predict(rows), named)
    frame = pandas.DataFrame(table, columns=list("abc"))
    np.testing.assert_array_equal(CalibratedLabelRanker().fit(rows, frame).predict(rows), named)
    classes = ["a", "b"] * 30
    found = CalibratedLabelRanker().fit(rows, polars.Series(classes))
    assert found.classes_.tolist() == CalibratedLabelRanker().fit(rows, classes).classes_.tolist() == ["a", "b"]
