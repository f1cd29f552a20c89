from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from corank.base.pairs import moments as walk
from corank.base.solvers import least_squares, smooth_loss, squared, squared_views
from corank.base.solvers import smooth_losses as smooth
from corank.base.solvers.penalty import default_alpha
from helpers.explicit_pairs import KINDS, QUERY_WEIGHTS, pairs_of, problem, rows_of

VIEWS = [[0, 1], [2, 3, 1]]


@pytest.fixture(params=["few columns", "many columns"])
def columns(request, monkeypatch):
    if request.param == "many columns":
        monkeypatch.setattr(least_squares, "MAX_DENSE", 0)
        monkeypatch.setattr(smooth, "_MAX_FULL", 0)


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("query_weight", QUERY_WEIGHTS)
@pytest.mark.parametrize("kind", KINDS)
def test_squared_loss_solves_the_normal_equations_of_all_pairs(kind, query_weight):
    data = problem(kind)
    X, (P, gaps, v) = rows_of(data), pairs_of(data, query_weight)
    D = X[P[:, 0]] - X[P[:, 1]]
    want = np.linalg.solve(D.T @ (v[:, None] * D) + 0.1 * np.eye(4), D.T @ (v * gaps))
    found = squared(data, alpha=0.1, query_weight=query_weight)
    np.testing.assert_allclose(found.coef, want, rtol=1e-6)
    loss = v @ (0.5 * (gaps - D @ want) ** 2) + 0.05 * want @ want
    assert found.objective == pytest.approx(loss)


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("query_weight", QUERY_WEIGHTS)
@pytest.mark.parametrize("kind", ["scores", "scaled", "scaled csr"])
def test_regression_is_not_weighed_by_query(kind, query_weight):
    data = problem(kind, 1)
    X, (P, gaps, v) = rows_of(data), pairs_of(data, query_weight)
    D, w = X[P[:, 0]] - X[P[:, 1]], data.weight_of(data.scored_rows) / data.weight_of(data.scored_rows).sum()
    rows, y = X[data.scored_rows], data.y[data.scored_rows]
    Z, t = rows - w @ rows, y - w @ y
    A = 0.6 * D.T @ (v[:, None] * D) + 0.4 * Z.T @ (w[:, None] * Z) + 0.1 * np.eye(4)
    want = np.linalg.solve(A, 0.6 * D.T @ (v * gaps) + 0.4 * Z.T @ (w * t))
    found = squared(data, mix=0.4, alpha=0.1, fit_intercept=True, query_weight=query_weight)
    np.testing.assert_allclose(found.coef, want, rtol=1e-6)
    assert found.intercept == pytest.approx(w @ y - w @ rows @ want, rel=1e-6)


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("query_weight", QUERY_WEIGHTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_smooth_losses_reach_the_minimum_over_all_pairs(kind, query_weight, loss):
    data = problem(kind, 2)
    X, (P, gaps, v) = rows_of(data), pairs_of(data, query_weight)
    D = X[P[:, 0]] - X[P[:, 1]]

    def objective(w):
        m = D @ w
        if loss == "squared_hinge":
            costs, slopes = 0.5 * np.maximum(0, 1 - m) ** 2, -np.maximum(0, 1 - m)
        else:
            t = 0.5 * (1 + gaps)
            costs, slopes = np.logaddexp(0, m) - t * m, 1 / (1 + np.exp(-m)) - t
        return v @ costs + 0.05 * w @ w, D.T @ (v * slopes) + 0.1 * w

    other = minimize(objective, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-10})
    found = smooth_loss(data, loss, alpha=0.1, query_weight=query_weight, tol=1e-14)
    np.testing.assert_allclose(found.coef, other.x, rtol=1e-5, atol=1e-8)
    assert found.objective == pytest.approx(other.fun)


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("query_weight", QUERY_WEIGHTS)
@pytest.mark.parametrize("kind", ["scores", "scaled csr"])
def test_views_agree_on_unscored_pairs_weighed_by_query(kind, query_weight):
    data = problem(kind, 3, n=60)
    X, (P, gaps, v), (U, _, u) = rows_of(data), pairs_of(data, query_weight), pairs_of(data, query_weight, True)
    D, F = X[P[:, 0]] - X[P[:, 1]], X[U[:, 0]] - X[U[:, 1]]
    found = squared_views(data, VIEWS, alpha=0.1, coupling=0.7, query_weight=query_weight)

    def objective(theta):
        one, other = theta[:2], theta[2:]
        total = 0.1 / 2 * theta @ theta + 2 * 0.7 * u @ (F[:, VIEWS[0]] @ one - F[:, VIEWS[1]] @ other) ** 2
        for view, w in zip(VIEWS, (one, other), strict=True):
            total += v @ (0.5 * (gaps - D[:, view] @ w) ** 2)
        return total

    theta = np.concatenate(found.view_coefs)
    assert found.objective == pytest.approx(objective(theta))
    best = minimize(objective, np.zeros(5), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(theta, best.x, rtol=1e-3, atol=1e-4)


@pytest.mark.thin(3)
@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_change_a_byte(kind, monkeypatch):
    data = problem(kind, 6, n=300)
    monkeypatch.setattr(walk, "LEAF", 25)
    found = []
    for threads in (1, 2, 10):
        monkeypatch.setattr("corank.core.threads.n_threads", lambda n_jobs=None, threads=threads: n_jobs or threads)
        models = (squared(data, alpha=0.1), smooth_loss(data, "squared_hinge", alpha=0.1))
        found.append([*(model.coef.tobytes() for model in models), default_alpha(data)])
    assert found[0] == found[1] == found[2]
