"""The identities of least-squares ranking: every path to a solution gives the same ranker."""

from __future__ import annotations

import numpy as np
import pytest

from corank.data.make import make_ranking
from corank.data.split import hide_scores
from corank.kernels import GaussianKernel, LinearKernel, PolynomialKernel
from corank.metrics import disagreement_error, evaluate
from corank.rls import CoRankRLS, RankRLS
from corank.views import View
from explicit_rls import (
    co_coefficients,
    dense_coefficients,
    scored_laplacian,
    sparse_coefficients,
    unscored_laplacian,
)

PROBLEM = make_ranking(14, (1, 9), random_state=5)
X, QID = PROBLEM.X[:, :6], PROBLEM.qid
Y = hide_scores(PROBLEM.y, fraction=0.35, random_state=2)
KERNELS = [GaussianKernel(0.1), PolynomialKernel(2), LinearKernel()]
WEIGHTS = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.5], len(Y))
EVERY = np.arange(len(Y))

kernels = pytest.mark.parametrize("kernel", KERNELS, ids=str)
query_weights = pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@kernels
@query_weights
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_every_path_solves_the_same_system(kernel, query_weight, weights):
    L = scored_laplacian(Y, QID, weights=weights, query_weight=query_weight)
    alpha = 0.3 / len(Y) if query_weight == "equal" else 0.3
    expected = kernel(X) @ dense_coefficients(kernel(X), L, Y, alpha)
    how = {"kernel": kernel, "query_weight": query_weight}
    for model in (
        RankRLS(alpha, **how),
        RankRLS(alphas=[alpha], **how),
        RankRLS(alpha, basis=EVERY, **how),
        RankRLS(alphas=[alpha], basis=EVERY, **how),
        CoRankRLS([View(None, kernel)] * 2, coupling=0.0, alpha=alpha, query_weight=query_weight),
    ):
        close(model.fit(X, Y, qid=QID, sample_weight=weights).predict(X), expected)


@kernels
def test_a_basis_gives_the_sparse_solution(kernel):
    basis = np.arange(0, len(Y), 4)
    a = sparse_coefficients(kernel(X), basis, scored_laplacian(Y, QID), Y, 0.3)
    close(RankRLS(0.3, kernel, basis=basis).fit(X, Y, qid=QID).predict(X), kernel(X, X[basis]) @ a)


def test_the_objective_is_least_there():
    K, L = KERNELS[0](X), scored_laplacian(Y, QID)
    model = RankRLS(0.5, KERNELS[0]).fit(X, Y, qid=QID)
    compared = np.flatnonzero(np.diag(L) > 0)
    a = np.zeros(len(Y))
    # dual_coef_ belongs to the compared rows, query by query
    a[compared[np.argsort(QID[compared], kind="stable")]] = model.dual_coef_
    close(K @ a, model.predict(X))

    def objective(a):
        error = np.nan_to_num(Y) - K @ a
        return error @ L @ error + 0.5 * a @ K @ a

    for step in np.random.default_rng(0).normal(size=(20, len(a))):
        assert objective(a) < objective(a + 1e-3 * step)


@kernels
@pytest.mark.parametrize("basis", ["random", EVERY[::3]], ids=["dense", "sparse"])
def test_the_path_is_made_of_direct_solves(kernel, basis):
    alphas = [1e-3, 1.0, 1e3]
    path = RankRLS(kernel=kernel, alphas=alphas, basis=basis).fit(X, Y, qid=QID).predict_path(X)
    for column, alpha in zip(path.T, alphas, strict=True):
        close(column, RankRLS(alpha, kernel, basis=basis).fit(X, Y, qid=QID).predict(X))


@kernels
@query_weights
@pytest.mark.parametrize("basis", ["random", EVERY[::3]], ids=["dense", "sparse"])
def test_leaving_out_a_query_is_a_second_fit(kernel, query_weight, basis):
    alphas = [1e-2, 10.0, 1e16]
    model = RankRLS(kernel=kernel, alphas=alphas, basis=basis, query_weight=query_weight, metric="nDCG")
    found = model.fit(X, Y, qid=QID, sample_weight=np.maximum(WEIGHTS, 0.5)).loo_scores_
    for alpha, score in zip(alphas, found, strict=True):
        held = np.zeros(len(Y))
        for q in np.unique(QID):
            y = np.where(q == QID, np.nan, Y)
            one = RankRLS(alpha, kernel, basis=basis, query_weight=query_weight)
            one.fit(X, y, qid=QID, sample_weight=np.maximum(WEIGHTS, 0.5))
            held[q == QID] = one.predict(X[q == QID])
        compared = np.bincount(QID[~np.isnan(Y)], minlength=QID.max() + 1)[QID] > 1
        close(score, evaluate(np.where(compared, Y, np.nan), held, QID, "nDCG")["nDCG"].mean)


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize("kernel", [GaussianKernel(0.1), LinearKernel()], ids=str)
@pytest.mark.parametrize("weights", [None, np.repeat([1.0, 2.0], 9)], ids=["plain", "weighted"])
@pytest.mark.parametrize("alpha", [0.05, 1e16])
def test_leaving_out_a_pair_of_rows_is_a_second_fit(kernel, query_weight, weights, alpha):
    rows, y = X[:18], np.round(PROBLEM.y[:18] + X[:18, 0])
    how = {"kernel": kernel, "query_weight": query_weight}
    found = RankRLS(alphas=[alpha], **how).fit(rows, y, sample_weight=weights).loo_scores_[0]
    wrong = []
    for i in range(18):
        for j in range(i):
            kept = np.delete(np.arange(18), [i, j])
            if y[i] != y[j]:
                one = RankRLS(alpha, **how).fit(
                    rows[kept], y[kept], sample_weight=None if weights is None else weights[kept]
                )
                a, b = one.predict(rows[[i, j]])
                wrong.append((a - b) * (y[i] - y[j]) < 0)
    assert found == pytest.approx(np.mean(wrong), abs=1e-12)


@pytest.mark.parametrize("n_views", [2, 3])
@query_weights
def test_views_that_agree_solve_the_block_system(n_views, query_weight):
    kernels = [GaussianKernel(0.1), LinearKernel(), PolynomialKernel(2)][:n_views]
    bases = [np.arange(v, len(Y), 3 + v) for v in range(n_views)]
    views = [View(None, kernel, basis) for kernel, basis in zip(kernels, bases, strict=True)]
    L = scored_laplacian(Y, QID, weights=WEIGHTS, query_weight=query_weight)
    L_unscored = unscored_laplacian(Y, QID, weights=WEIGHTS, query_weight=query_weight)
    grams = [kernel(X) for kernel in kernels]
    expected = co_coefficients(grams, bases, L, L_unscored, Y, 0.2, 0.7)
    model = CoRankRLS(views, coupling=0.7, alpha=0.2, query_weight=query_weight)
    found = model.fit(X, Y, qid=QID, sample_weight=WEIGHTS).predict_views(X)
    for v in range(n_views):
        np.testing.assert_allclose(found[:, v], grams[v][:, bases[v]] @ expected[v], rtol=1e-6, atol=1e-7)
    close(model.predict(X), found.mean(axis=1))


def test_without_coupling_views_are_independent():
    bases = [EVERY[::3], EVERY[1::3]]
    model = CoRankRLS([View(None, KERNELS[0], basis) for basis in bases], coupling=0.0, alpha=0.4).fit(X, Y, qid=QID)
    for v, basis in enumerate(bases):
        close(model.predict_views(X)[:, v], RankRLS(0.4, KERNELS[0], basis=basis).fit(X, Y, qid=QID).predict(X))


def test_coupling_has_no_effect_on_views_that_are_the_same():
    views = [View(None, KERNELS[0], EVERY[::3])] * 3
    one, other = (CoRankRLS(views, coupling=c, alpha=0.4).fit(X, Y, qid=QID).predict(X) for c in (0.0, 50.0))
    close(one, other)


def test_coupling_makes_views_agree():
    fits = [CoRankRLS(2, coupling=c, alpha=0.4, random_state=0).fit(X, Y, qid=QID) for c in (0.0, 0.1, 10.0, 1e4)]
    disagreements = [model.disagreement_ for model in fits]
    assert disagreements == sorted(disagreements, reverse=True)
    assert disagreements[-1] < 1e-2 * disagreements[0]
    a, b = (fits[0].predict_views(X)[:, v] for v in (0, 1))
    L = unscored_laplacian(Y, QID)
    assert disagreements[0] == pytest.approx((a - b) @ L @ (a - b) / (np.trace(L) / 2), rel=1e-9)


def test_without_unscored_rows_coupling_has_no_effect():
    one, other = (CoRankRLS(2, coupling=c, alpha=0.4, random_state=0).fit(X, PROBLEM.y, qid=QID) for c in (0.0, 7.0))
    close(one.predict(X), other.predict(X))
    assert np.isnan(other.disagreement_)


def test_the_grid_of_views_is_made_of_second_fits():
    views = [View(None, KERNELS[0], EVERY[::3]), View(None, LinearKernel())]
    alphas, couplings = [0.1, 5.0], [0.0, 0.3, 30.0]
    grid = CoRankRLS(views, alphas=alphas, couplings=couplings).fit(X, Y, qid=QID)
    assert grid.loo_scores_.shape == (3, 2)
    for c, coupling in enumerate(couplings):
        for a, alpha in enumerate(alphas):
            held = np.zeros(len(Y))
            for q in np.unique(QID):
                held[q == QID] = _without(q, alpha, coupling)
            assert grid.loo_scores_[c, a] == pytest.approx(disagreement_error(Y, held, QID), abs=1e-9)
    best = np.unravel_index(np.argmin(grid.loo_scores_), (3, 2))
    assert (grid.coupling_, grid.alpha_) == (couplings[best[0]], alphas[best[1]])


def _without(q, alpha, coupling):
    """The block system without the scored rows of q, basis rows kept."""
    y = np.where(q == QID, np.nan, Y)
    grams, bases = [KERNELS[0](X), X @ X.T], [EVERY[::3], EVERY]
    a = co_coefficients(grams, bases, scored_laplacian(y, QID), unscored_laplacian(Y, QID), y, alpha, coupling)
    return np.mean([(K[:, basis] @ one)[q == QID] for K, basis, one in zip(grams, bases, a, strict=True)], axis=0)


@pytest.mark.parametrize("model", [RankRLS(0.3), RankRLS(0.3, GaussianKernel(0.1), n_basis=12, random_state=0)])
def test_parts_add_up_to_the_whole(model):
    first, second = QID < 5, QID >= 5
    one = model.summary(X[first], Y[first], qid=QID[first])
    two = model.summary(X[second], Y[second], qid=QID[second], like=one)
    parts = model.fit_summary(one + two).predict(X)
    close(parts, model.fit_summary(model.summary(X, Y, qid=QID, like=one)).predict(X))
    if model.n_basis is None:
        close(parts, model.fit(X, Y, qid=QID).predict(X))


def test_parts_of_views_add_up_to_the_whole():
    model = CoRankRLS(2, coupling=0.5, random_state=0)
    parts = [QID < 4, (QID >= 4) & (QID < 9), QID >= 9]
    total = None
    for part in parts:
        one = model.summary(X[part], Y[part], qid=QID[part], like=total)
        total = one if total is None else total + one
    close(model.fit_summary(total).predict(X), model.fit(X, Y, qid=QID).predict(X))
