from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from corank.base.solvers import smooth_loss
from corank.base.solvers import smooth_losses as smooth
from corank.data.ranking import RankingData
from corank.errors import InputError


def problem(seed, n=40, d=4, grades=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.array([1.0, 5.0, 0.1, 3.0])[:d] + 2
    y = np.clip(np.round(X @ rng.normal(size=d) * 0.2 + rng.normal(size=n)), 0, grades) / grades
    y[rng.random(n) < 0.2] = np.nan
    return X, y, rng.integers(0, 5, n), rng.integers(0, 3, n).astype(float)


def ordered_pairs(y, qid):
    rows = np.flatnonzero(~np.isnan(y))
    return np.array([(i, j) for i, j in itertools.permutations(rows, 2) if qid[i] == qid[j] and y[i] > y[j]])


def hinge_objective(w, X, P, v, alpha):
    short = np.maximum(0.0, 1.0 - (X[P[:, 0]] - X[P[:, 1]]) @ w)
    return np.average(0.5 * short**2, weights=v) + alpha / 2 * w @ w


def logistic_objective(theta, X, y, P, v, weights, mix, alpha):
    w, b = theta[: X.shape[1]], theta[X.shape[1] :].sum()
    D = ~np.isnan(y)
    m, t = (X[P[:, 0]] - X[P[:, 1]]) @ w, 0.5 * (1 + y[P[:, 0]] - y[P[:, 1]])
    s = X[D] @ w + b
    rows = np.average(np.logaddexp(0, s) - y[D] * s, weights=weights[D])
    return mix * rows + (1 - mix) * np.average(np.logaddexp(0, m) - t * m, weights=v) + alpha / 2 * w @ w


@pytest.fixture(params=["full", "diagonal"])
def preconditioner(request, monkeypatch):
    if request.param == "diagonal":
        monkeypatch.setattr(smooth, "_MAX_FULL", 0)


@pytest.mark.usefixtures("preconditioner")
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("grades", [1, 4, 1000])
def test_squared_hinge_is_the_linear_svm_on_differences(kind, grades):
    X, y, qid, weights = problem(grades, grades=grades)
    P = ordered_pairs(y, qid)
    v = weights[P].prod(axis=1)
    found = smooth_loss(RankingData.of(kind(X), y, qid, weights), "squared_hinge", alpha=0.01, tol=1e-14)
    assert found.objective == pytest.approx(hinge_objective(found.coef, X, P, v, 0.01), rel=1e-10)
    D, side = X[P[:, 0]] - X[P[:, 1]], np.where(np.arange(len(P)) % 2, 1.0, -1.0)
    svm = LinearSVC(
        loss="squared_hinge", C=1 / (2 * 0.01), fit_intercept=False, dual=False, tol=1e-10, max_iter=100_000
    )
    svm.fit(side[:, None] * D, side, sample_weight=v / v.sum())
    np.testing.assert_allclose(found.coef, svm.coef_[0], rtol=1e-4, atol=1e-6)
    assert found.objective <= hinge_objective(svm.coef_[0], X, P, v, 0.01) * (1 + 1e-9)


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 5]), st.sampled_from([1e-4, 1e-2, 1.0]))
def test_squared_hinge_has_no_slope_at_its_answer(seed, grades, alpha):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 30))
    # few different rows: scores tie, and margins sit on the corner
    X, y = rng.integers(0, 3, (n, 3)).astype(float), rng.integers(0, grades + 1, n).astype(float)
    qid = rng.integers(0, 3, n)
    P = ordered_pairs(y, qid)
    if len(P) == 0:
        return
    found = smooth_loss(RankingData.of(X, y, qid), "squared_hinge", alpha=alpha, tol=1e-14)
    D = X[P[:, 0]] - X[P[:, 1]]
    short = np.maximum(0.0, 1.0 - D @ found.coef)
    slope = alpha * found.coef - D.T @ short / len(P)
    np.testing.assert_allclose(slope, 0.0, atol=1e-8)
    assert found.objective == pytest.approx(hinge_objective(found.coef, X, P, np.ones(len(P)), alpha), rel=1e-9)


@pytest.mark.usefixtures("preconditioner")
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("mix", "fit_intercept"), [(0.0, True), (0.4, False), (0.4, True)])
def test_logistic_is_the_minimum(kind, mix, fit_intercept):
    X, y, qid, weights = problem(2)
    P = ordered_pairs(y, qid)
    v = weights[P].prod(axis=1)
    found = smooth_loss(
        RankingData.of(kind(X), y, qid, weights),
        "logistic",
        mix=mix,
        alpha=0.01,
        fit_intercept=fit_intercept,
        tol=1e-14,
    )
    learns_b = fit_intercept and mix > 0

    def objective(theta):
        return logistic_objective(theta, X, y, P, v, weights, mix, 0.01)

    other = minimize(objective, np.zeros(4 + learns_b), method="BFGS", options={"gtol": 1e-8})
    assert found.objective == pytest.approx(objective(np.append(found.coef, found.intercept)), rel=1e-10)
    assert found.objective <= other.fun + 1e-10
    np.testing.assert_allclose(found.coef, other.x[:4], rtol=1e-3, atol=1e-4)
    assert learns_b or found.intercept == 0.0


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_all_regression_is_logistic_regression(fit_intercept):
    X, y, qid, weights = problem(3, grades=1)
    D = ~np.isnan(y)
    C = 1 / (0.05 * weights[D].sum())
    other = LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000)
    other.fit(X[D], y[D], sample_weight=weights[D])
    found = smooth_loss(
        RankingData.of(X, y, qid, weights),
        "logistic",
        mix=1.0,
        alpha=0.05,
        fit_intercept=fit_intercept,
        tol=1e-14,
    )
    np.testing.assert_allclose(found.coef, other.coef_[0], rtol=1e-4, atol=1e-6)
    assert found.intercept == pytest.approx(np.ravel(other.intercept_)[0] if fit_intercept else 0.0, rel=1e-4)


def test_preferences_equal_the_pairs_that_scores_imply():
    X, y, qid, weights = problem(4)
    P = ordered_pairs(y, qid)
    by_scores = smooth_loss(RankingData.of(X, y, qid, weights), "squared_hinge", alpha=0.01, tol=1e-14)
    by_pairs = smooth_loss(RankingData.of_pairs(X, P, qid, weights), "squared_hinge", alpha=0.01, tol=1e-14)
    np.testing.assert_allclose(by_scores.coef, by_pairs.coef, rtol=1e-6)
    # targets of preferences are 1, as are those of scores 0 and 1
    binary = np.where(np.isnan(y), np.nan, y > np.nanmin(y))
    P = ordered_pairs(binary, qid)
    by_scores = smooth_loss(RankingData.of(X, binary, qid, weights), "logistic", alpha=0.01, tol=1e-14)
    by_pairs = smooth_loss(RankingData.of_pairs(X, P, qid, weights), "logistic", alpha=0.01, tol=1e-14)
    np.testing.assert_allclose(by_scores.coef, by_pairs.coef, rtol=1e-6)


def test_float32_and_rows_far_from_zero():
    X, y, qid, _ = problem(5)
    for loss in ("squared_hinge", "logistic"):
        want = smooth_loss(RankingData.of(X, y, qid), loss, alpha=0.01, tol=1e-14)
        near = smooth_loss(RankingData.of(X.astype(np.float32), y, qid), loss, alpha=0.01)
        far = smooth_loss(RankingData.of(X + 1000, y, qid), loss, alpha=0.01)
        np.testing.assert_allclose(near.coef, want.coef, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(far.coef, want.coef, rtol=1e-4, atol=1e-6)


def test_one_query_of_many_rows_and_scores():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(20_000, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=20_000)
    found = smooth_loss(RankingData.of(X, y), "squared_hinge", alpha=1e-3)
    assert np.corrcoef(X @ found.coef, X @ [1.0, -2.0, 0.5])[0, 1] > 0.99


def test_it_says_when_it_stops_short():
    X, y, qid, _ = problem(7)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps"):
        smooth_loss(RankingData.of(X, y, qid), "squared_hinge", alpha=1e-5, max_iter=1)


def test_bad_input(monkeypatch):
    X, y, qid, _ = problem(8)
    data = RankingData.of(X, y, qid)
    for loss in ("squared_hinge", "logistic"):
        with pytest.raises(InputError, match=r"alpha is 0\.0; pass a finite weight of the"):
            smooth_loss(data, loss, alpha=0.0)
    with pytest.raises(InputError, match="logistic loss needs scores that differ by at most 1"):
        smooth_loss(RankingData.of(X, y * 9, qid), "logistic", alpha=1.0)
    monkeypatch.setattr(smooth, "MAX_PAIRS", 3)
    for loss in ("logistic", "squared"):
        with pytest.raises(InputError, match=f"exact {loss} solver visits at most 3; use solver='sgd'"):
            smooth_loss(data, loss, alpha=1.0)
    assert smooth_loss(data, "squared_hinge", alpha=1.0).objective > 0.0
