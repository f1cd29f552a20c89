from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import corank
from corank import CRR
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.errors import InputError

PROBLEM = make_ranking(30, (2, 12), random_state=0)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.2, random_state=0)


def crr(**changes):
    return CRR(**{"alpha": 1e-2, "solver": "sgd", "n_steps": 3000, "random_state": 0, **changes})


@pytest.mark.long  # the laws have it of the exact solvers, whose fit and predict are the same
@parametrize_with_checks(
    [crr()],
    expected_failed_checks=lambda model: {
        "check_sample_weight_equivalence_on_dense_data": "other draws",
        "check_sample_weight_equivalence_on_sparse_data": "other draws",
    },
    xfail_strict=False,
)
def test_scikit_learn_accepts_the_descent(estimator, check):
    check(estimator)


def test_a_column_of_ones_is_the_bias_of_the_paper():
    """The bias is a component of w, so that the penalty covers it."""
    ones, known = np.column_stack([X, np.ones(len(X))]), ~np.isnan(Y)
    model = CRR("squared", 0.4, 0.5, fit_intercept=False, scale=False, solver="exact").fit(ones, Y, qid=QID)
    a, b = np.nonzero((QID[:, None] == QID) & (Y[:, None] > Y))
    D, t, Z = ones[a] - ones[b], Y[a] - Y[b], ones[known]
    A = 0.4 * Z.T @ Z / len(Z) + 0.6 * D.T @ D / len(D) + 0.5 * np.eye(ones.shape[1])
    w = np.linalg.solve(A, 0.4 * Z.T @ Y[known] / len(Z) + 0.6 * D.T @ t / len(D))
    np.testing.assert_allclose(model.coef_, w, rtol=0, atol=1e-8)
    free = CRR("squared", 0.4, 0.5, scale=False, solver="exact").fit(X, Y, qid=QID)
    assert model.intercept_ == 0.0
    assert abs(model.coef_[-1]) < abs(free.intercept_)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "squared_hinge"])
@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_learns_from_rows_and_pairs(loss, mix):
    signs = np.where(np.isnan(Y), np.nan, np.where(Y > 1, 1.0, -1.0))
    y = {"squared": Y, "logistic": Y / np.nanmax(Y), "hinge": signs, "squared_hinge": signs}
    model = crr(loss=loss, mix=mix, n_steps=20_000).fit(X, y[loss], qid=QID)
    assert model.score(X, y[loss], qid=QID) > 0.7
    assert model.objective_trace_[-1, 1] < model.objective_trace_[0, 1]
    assert (model.intercept_ == 0.0) == (mix == 0.0)


@pytest.mark.parametrize("changes", [{}, {"average": True}, {"rate": "adagrad"}, {"mix": 1.0}], ids=str)
def test_a_resumed_run_is_the_whole_run_bit_for_bit(changes, tmp_path):
    whole = crr(n_steps=1900, **changes).fit(X, Y, qid=QID)
    corank.save(crr(n_steps=1100, **changes).fit(X, Y, qid=QID), tmp_path / "model.safetensors")
    resumed = corank.load(tmp_path / "model.safetensors").set_params(n_steps=800).partial_fit(X, Y, qid=QID)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert resumed.intercept_ == whole.intercept_


def test_no_intercept_where_none_is_wanted():
    assert crr(fit_intercept=False).fit(X, Y, qid=QID).intercept_ == 0.0


def test_a_weighted_row_is_drawn_as_often_as_its_copies():
    x, y = np.zeros((4, 1)), np.array([0.0, 1.0, 1.0, 0.0])
    model = crr(mix=1.0, average=True, n_steps=200_000).fit(x, y, sample_weight=[3.0, 1.0, 0.0, 0.0])
    assert model.intercept_ == pytest.approx(0.25, abs=0.01)


def test_probabilities_are_the_logistic_function_of_the_score():
    y = Y / np.nanmax(Y)
    model = crr(loss="logistic").fit(X, y, qid=QID)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-model.predict(X))))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert not hasattr(crr(), "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        crr().predict_proba(X)


@pytest.mark.parametrize("solver", ["exact", "sgd"])
@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_the_logistic_loss_takes_grades_for_shares(mix, solver):
    y = np.round(Y)
    low, high = (np.nanmin(y), np.nanmax(y)) if mix else (0.0, np.nanmax(y) - np.nanmin(y))
    assert high - low > 1.0
    how = {"loss": "logistic", "mix": mix, "solver": solver, "alpha": 0.01, "n_steps": 2000}
    by_grades = crr(**how).fit(X, y, qid=np.zeros(len(y)))
    by_shares = crr(**how).fit(X, (y - low) / (high - low), qid=np.zeros(len(y)))
    np.testing.assert_allclose(by_grades.predict(X), by_shares.predict(X), rtol=1e-9)
    np.testing.assert_allclose(by_grades.score_range_, [low, high])
    np.testing.assert_array_equal(by_shares.score_range_, [0.0, 1.0])
    # two grades are two classes, whatever they are called
    if mix == 1.0 and solver == "exact":
        top = np.where(np.isnan(y), np.nan, np.where(y > np.nanmedian(y), 7.0, 3.0))
        D = ~np.isnan(y)
        model = crr(**{**how, "scale": False, "tol": 1e-14}).fit(X, top)
        other = LogisticRegression(C=1 / (0.01 * D.sum()), tol=1e-10, max_iter=10_000).fit(X[D], top[D])
        np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-5)


def test_a_descent_goes_on_with_the_range_that_it_began_with():
    y = np.round(Y)
    how = {"loss": "logistic", "solver": "sgd", "n_steps": 500, "alpha": 0.01, "random_state": 0, "scale": False}
    once = crr(**{**how, "n_steps": 1000}).fit(X, y, qid=QID)
    twice = crr(**how).fit(X, y, qid=QID).partial_fit(X, y, qid=QID)
    np.testing.assert_array_equal(twice.coef_, once.coef_)
    low, high = twice.score_range_
    with pytest.raises(InputError, match=f"but this model was started with scores from {low:g} to {high:g}; scale"):
        twice.partial_fit(X, 2 * y, qid=QID)
    # early stopping judges shares by shares
    stopped = crr(**{**how, "mix": 1.0, "early_stopping": True}).fit(X, y, qid=QID)
    assert (stopped.validation_errors_ <= 1.0).all()


def test_one_grade_is_enough_for_regression_alone():
    model = crr(mix=1.0).fit(X, np.ones(len(X)), qid=QID)
    assert model.n_skipped_queries_ == 0
    with pytest.raises(InputError, match="no two of the"):
        crr(mix=0.5).fit(X, np.ones(len(X)), qid=QID)


@pytest.mark.parametrize(
    ("changes", "y", "sentence"),
    [
        ({"loss": "hinge"}, Y, "hinge loss on single rows needs scores −1 and 1"),
        ({}, np.full(len(Y), np.nan), r"y is NaN for all \d+ rows|none of the \d+ rows has a score"),
    ],
)
def test_scores_that_do_not_fit_get_one_sentence(changes, y, sentence):
    with pytest.raises(InputError, match=sentence):
        crr(**changes).fit(X, y, qid=QID)
    with pytest.raises(InputError, match=sentence):
        crr(**changes, mix=1.0).fit(X, y, qid=QID)


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
def test_queries_without_a_pair_count_alike_for_regression_alone(query_weight):
    y, how = np.round(Y), {"loss": "logistic", "mix": 1.0, "solver": "exact"}
    one = crr(**how).fit(X, y, qid=QID)
    alone = crr(**how, query_weight=query_weight, scale=False).fit(X * one.column_scale_, y, qid=np.arange(len(y)))
    np.testing.assert_allclose(alone.predict(X * one.column_scale_), one.predict(X), rtol=1e-3, atol=1e-4)


def test_single_scores_are_compared_with_nothing_so_no_query_ids_are_asked_for():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        crr(mix=1.0).fit(X, np.arange(len(X)) % 2)


def test_preferences_have_no_scores_to_regress_on():
    for mix in (0.5, 1.0):
        with pytest.raises(InputError, match=r"mix is \S+, but preference pairs"):
            crr(mix=mix).fit(X, pairs=[[0, 1]])
    assert crr(mix=0.0).fit(X, pairs=[[0, 1]]).predict(X[:2]) @ [1, -1] > 0


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_regression_alone_stops_early_by_the_squared_error(loss):
    y = Y / np.nanmax(Y)
    model = crr(loss=loss, mix=1.0, alpha=1e-3, early_stopping=True, n_steps=20_000).fit(X, y, qid=QID)
    assert (model.validation_errors_ < np.nanvar(y) + np.nanmean(y) ** 2).all()
    assert model.n_iter_ == 1000 * (np.argmin(model.validation_errors_) + 1)
