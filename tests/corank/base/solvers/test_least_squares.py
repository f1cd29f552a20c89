from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import Ridge

from corank.base.solvers import Solution, least_squares, squared, squared_views
from corank.data.ranking import RankingData
from corank.errors import InputError

VIEWS = [[0, 1], [2, 3, 1]]


def problem(seed, n=40, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 20.0, 0.1, 3.0][:d] + 5
    y = np.round(X @ rng.normal(size=d) * 0.2 + rng.normal(size=n))
    y[rng.random(n) < 0.3] = np.nan
    return X, y, rng.integers(0, 6, n), rng.integers(0, 3, n).astype(float)


def pairs_of(y, qid, unscored=False):
    rows = np.flatnonzero(np.isnan(y) == unscored)
    for i, j in itertools.combinations(rows, 2):
        if qid[i] == qid[j] and (unscored or y[i] != y[j]):
            yield (i, j)


def one_view(w, b, X, y, qid, weights, mix, alpha):
    """The objective of the module's docstring, pair by pair."""
    P = np.array(list(pairs_of(y, qid)))
    pair_weights = weights[P].prod(axis=1)
    gaps = y[P[:, 0]] - y[P[:, 1]] - (X[P[:, 0]] - X[P[:, 1]]) @ w
    D = ~np.isnan(y)
    rows = np.average(0.5 * (y[D] - X[D] @ w - b) ** 2, weights=weights[D])
    return mix * rows + (1 - mix) * np.average(0.5 * gaps**2, weights=pair_weights) + alpha / 2 * w @ w


def all_views(theta, views, X, y, qid, weights, mix, alpha, coupling, intercepts=False):
    cuts = np.cumsum([0, *map(len, views)])
    w = [theta[cuts[v] : cuts[v + 1]] for v in range(len(views))]
    b = theta[cuts[-1] :] if intercepts else np.zeros(len(views))
    total = sum(one_view(w[v], b[v], X[:, c], y, qid, weights, mix, alpha) for v, c in enumerate(views))
    U = np.array(list(pairs_of(y, qid, unscored=True)))
    m = [(X[U[:, 0]] - X[U[:, 1]])[:, c] @ w[v] for v, c in enumerate(views)]
    for v, u in itertools.product(range(len(views)), repeat=2):
        total += coupling * np.average((m[v] - m[u]) ** 2, weights=weights[U].prod(axis=1))
    return total


@pytest.fixture(params=["factorised", "by products"])
def both_ways(request, monkeypatch):
    if request.param == "by products":
        monkeypatch.setattr(least_squares, "MAX_DENSE", 0)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_it_is_the_minimum(kind, mix, fit_intercept):
    for seed in range(2):
        X, y, qid, weights = problem(seed)
        data = RankingData.of(kind(X), y, qid, weights)
        found = squared(data, mix=mix, alpha=0.1, fit_intercept=fit_intercept)
        learns_b = fit_intercept and mix > 0

        def objective(theta):
            return one_view(theta[:4], theta[4] if learns_b else 0.0, X, y, qid, weights, mix, 0.1)  # noqa: B023

        start = np.append(found.coef, found.intercept)
        assert found.objective == pytest.approx(objective(start), rel=1e-9)
        other = minimize(objective, start + 0.1, method="BFGS", options={"gtol": 1e-9})
        assert found.objective <= other.fun + 1e-10
        np.testing.assert_allclose(found.coef, other.x[:4], rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(("mix", "fit_intercept"), [(0.0, False), (0.4, False), (0.4, True)])
def test_views_reach_the_minimum(mix, fit_intercept):
    X, y, qid, weights = problem(3)
    found = squared_views(
        RankingData.of(X, y, qid, weights), VIEWS, mix=mix, alpha=0.1, coupling=0.7, fit_intercept=fit_intercept
    )

    def objective(theta):
        return all_views(theta, VIEWS, X, y, qid, weights, mix, 0.1, 0.7, fit_intercept)

    other = minimize(objective, np.zeros(5 + 2 * fit_intercept), method="BFGS", options={"gtol": 1e-9})
    theta = np.concatenate(found.view_coefs)
    np.testing.assert_allclose(theta, other.x[:5], rtol=1e-3, atol=1e-4)
    assert found.objective == pytest.approx(other.fun, rel=1e-6)
    want = np.zeros(4)
    for view, w in zip(VIEWS, found.view_coefs, strict=True):
        want[view] += w / 2
    np.testing.assert_allclose(found.coef, want)
    assert found.intercept == pytest.approx(np.mean(other.x[5:]) if fit_intercept else 0.0, abs=1e-3)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("alpha", [0.2, [0.2, 3.0]], ids=["one penalty", "a penalty of each view"])
def test_without_coupling_every_view_is_alone(alpha):
    X, y, qid, _ = problem(4)
    together = squared_views(RankingData.of(X, y, qid), [slice(0, 2), [2, 3]], alpha=alpha, coupling=0.0)
    for view, own, w in zip(([0, 1], [2, 3]), np.broadcast_to(alpha, 2), together.view_coefs, strict=True):
        np.testing.assert_allclose(squared(RankingData.of(X[:, view], y, qid), alpha=own).coef, w, rtol=1e-7)


def test_identical_views_agree_whatever_the_coupling():
    X, y, qid, _ = problem(5)
    data = RankingData.of(X, y, qid)
    alone = squared(data, alpha=0.3)
    found = squared_views(data, [np.arange(4)] * 3, alpha=0.3, coupling=5.0)
    np.testing.assert_allclose(found.coef, alone.coef, rtol=1e-8)
    assert found.objective == pytest.approx(3 * alone.objective)


def test_all_rows_scored_leave_nothing_to_agree_on():
    X, y, qid, _ = problem(6)
    data = RankingData.of(X, np.nan_to_num(y), qid)
    one, other = (squared_views(data, VIEWS, alpha=0.1, coupling=c) for c in (0.0, 9.0))
    np.testing.assert_array_equal(one.coef, other.coef)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_all_regression_is_ridge(fit_intercept):
    X, y, qid, weights = problem(7)
    D = ~np.isnan(y)
    ridge = Ridge(alpha=0.4 * weights[D].sum(), fit_intercept=fit_intercept)
    ridge.fit(X[D], y[D], sample_weight=weights[D])
    found = squared(RankingData.of(X, y, qid, weights), mix=1.0, alpha=0.4, fit_intercept=fit_intercept)
    np.testing.assert_allclose(found.coef, ridge.coef_, rtol=1e-7)
    assert found.intercept == pytest.approx(ridge.intercept_, rel=1e-7)


@pytest.mark.usefixtures("both_ways")
def test_preferences_ask_for_a_difference_of_one():
    rng = np.random.default_rng(8)
    X, pairs, weights = rng.normal(size=(20, 3)), rng.integers(0, 20, (15, 2)), rng.random(20)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    D, v = X[pairs[:, 0]] - X[pairs[:, 1]], weights[pairs].prod(axis=1)
    ridge = Ridge(alpha=0.2 * v.sum(), fit_intercept=False).fit(D, np.ones(len(D)), sample_weight=v)
    found = squared(RankingData.of_pairs(X, pairs, weights=weights), alpha=0.2)
    np.testing.assert_allclose(found.coef, ridge.coef_, rtol=1e-7)
    assert found.objective == pytest.approx(
        np.average(0.5 * (1 - D @ found.coef) ** 2, weights=v) + 0.1 * found.coef @ found.coef
    )


def test_float32_and_a_large_offset_of_rows():
    X, y, qid, _ = problem(9)
    want = squared(RankingData.of(X, y, qid), mix=0.5, alpha=0.1, fit_intercept=True)
    near = squared(RankingData.of(X.astype(np.float32), y, qid), mix=0.5, alpha=0.1, fit_intercept=True)
    np.testing.assert_allclose(near.coef, want.coef, rtol=1e-4)
    far = squared(RankingData.of(X + 1e6, y, qid), mix=0.5, alpha=0.1, fit_intercept=True)
    np.testing.assert_allclose(far.coef, want.coef, rtol=1e-7)


def test_without_penalty_the_shortest_solution():
    X, y, qid, _ = problem(10)
    twice = np.column_stack([X, X[:, 0], np.zeros(len(X))])
    found = squared(RankingData.of(twice, y, qid), alpha=0.0)
    alone = squared(RankingData.of(X * [np.sqrt(2), 1, 1, 1], y, qid), alpha=0.0)
    np.testing.assert_allclose(found.coef[[0, 4]], alone.coef[0] / np.sqrt(2), rtol=1e-8)
    assert found.coef[5] == 0.0
    assert isinstance(found, Solution)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"alpha": -1.0}, "alpha is -1.0; pass a finite weight"),
        ({"alpha": np.nan}, "alpha is nan"),
        ({"alpha": 1.0, "mix": 1.5}, "mix is 1.5; pass a share"),
        ({"alpha": 1.0, "query_weight": "size"}, "query_weight is 'size'; choose one of"),
    ],
)
def test_bad_parameters(arguments, sentence):
    X, y, qid, _ = problem(0)
    with pytest.raises(InputError, match=sentence):
        squared(RankingData.of(X, y, qid), **arguments)


def test_bad_problems():
    X, y, qid, _ = problem(0)
    with pytest.raises(InputError, match="have no scores for regression"):
        squared(RankingData.of_pairs(X, [[0, 1]]), mix=0.5, alpha=1.0)
    with pytest.raises(InputError, match="no two of the"):
        squared(RankingData.of(X, np.ones(40), qid), alpha=1.0)
    with pytest.raises(InputError, match="coupling is -1"):
        squared_views(RankingData.of(X, y, qid), VIEWS, alpha=1.0, coupling=-1)
    with pytest.raises(InputError, match="pass at least one view"):
        squared_views(RankingData.of(X, y, qid), [[]], alpha=1.0, coupling=1)
    with pytest.raises(InputError, match="a view has columns that X does not have"):
        squared_views(RankingData.of(X, y, qid), [[0], [4]], alpha=1.0, coupling=1)


def test_more_columns_than_a_matrix_could_hold():
    rng = np.random.default_rng(11)
    X = sparse.random_array((60, 200_000), density=2e-4, format="csr", rng=rng)
    y, qid = rng.integers(0, 3, 60).astype(float), np.repeat(np.arange(6), 10)
    found = squared(RankingData.of(X, y, qid), alpha=0.01)
    # w = Xᵀ a: the same problem in 60 unknowns, with the pairs as an explicit matrix
    P = np.array(list(pairs_of(y, qid)))
    B = np.zeros((len(P), 60))
    B[np.arange(len(P)), P[:, 0]], B[np.arange(len(P)), P[:, 1]] = 1.0, -1.0
    G = B @ (X @ X.T).toarray() @ B.T
    a = np.linalg.solve(G + 0.01 * len(P) * np.eye(len(P)), B @ y)
    np.testing.assert_allclose(X @ found.coef, X @ (X.T @ (B.T @ a)), rtol=1e-6, atol=1e-9)
    assert 0 < found.n_iter < 200
