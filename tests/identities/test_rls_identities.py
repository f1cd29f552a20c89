"""The identities of least-squares ranking: every path to a solution gives the same ranker."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import cho_factor

from corank.base.kernels import GaussianKernel, LinearKernel, PolynomialKernel
from corank.base.kernels.basis import stack_features
from corank.base.kernels.views import View
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.errors import UsageWarning
from corank.metrics import disagreement_error, evaluate
from corank.models.rls import CoRankRLS, RankRLS, spectrum, summary
from helpers.explicit_rls import (
    co_coefficients,
    dense_coefficients,
    order_of_folds,
    preference_laplacian,
    scored_laplacian,
    sparse_coefficients,
    unscored_laplacian,
)

PROBLEM = make_ranking(14, (1, 9), random_state=5)
X, QID = PROBLEM.X[:, :6], PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.35, random_state=2)
KERNELS = [GaussianKernel(0.1), PolynomialKernel(2), LinearKernel()]
WEIGHTS = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.5], len(Y))
EVERY = np.arange(len(Y))

kernels = pytest.mark.parametrize("kernel", KERNELS, ids=str)
ties_or_not = pytest.mark.parametrize("ties", [False, True], ids=["apart", "ties"])
query_weights = pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@kernels
@query_weights
@ties_or_not
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_every_path_solves_the_same_system(kernel, query_weight, weights, ties):
    L = scored_laplacian(Y, QID, weights=weights, query_weight=query_weight, ties=ties)
    expected = kernel(X) @ dense_coefficients(kernel(X), L, Y, 0.01)
    how = {"kernel": kernel, "query_weight": query_weight, "ties": ties, "scale": False}
    for model in (
        RankRLS(0.01, **how),
        RankRLS(alphas=[0.01], **how),
        RankRLS(0.01, basis=EVERY, **how),
        RankRLS(alphas=[0.01], basis=EVERY, **how),
        CoRankRLS([View(None, kernel)] * 2, 0.0, 0.01, query_weight=query_weight, ties=ties, scale=False),
    ):
        close(model.fit(X, Y, qid=QID, sample_weight=weights).predict(X), expected)


@query_weights
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_a_linear_ranker_is_least_squares_over_differences(query_weight, weights):
    # one row for each pair, never a Laplacian
    w = np.ones(len(Y)) if weights is None else weights
    D, t, v = [], [], []
    for q in np.unique(QID):
        rows = np.flatnonzero((q == QID) & ~np.isnan(Y) & (w > 0))
        pairs = [(i, j) for i in rows for j in rows if Y[i] > Y[j]]
        own = sum(w[i] * w[j] for i, j in pairs)
        size = {"pairs": 1.0, "equal": 2 * own, "rows": w[rows].sum()}[query_weight]
        for i, j in pairs:
            D, t, v = [*D, X[i] - X[j]], [*t, Y[i] - Y[j]], [*v, w[i] * w[j] / size]
    D, root = np.array(D), np.sqrt(np.array(v) / np.sum(v))
    tall = np.vstack([root[:, None] * D, np.sqrt(0.02) * np.eye(6)])
    expected = np.linalg.lstsq(tall, np.append(root * t, np.zeros(6)), rcond=None)[0]
    model = RankRLS(0.02, query_weight=query_weight, scale=False).fit(X, Y, qid=QID, sample_weight=weights)
    close(model.coef_, expected)


@kernels
@query_weights
@pytest.mark.parametrize("how", [{}, {"basis": EVERY}], ids=["free", "basis"])
def test_preferences_solve_the_same_system(kernel, query_weight, how):
    pairs = np.array([(i, j) for i in EVERY for j in EVERY if QID[i] == QID[j] and PROBLEM.y[i] > PROBLEM.y[j]])
    own = np.random.default_rng(1).choice([0.0, 1.0, 2.0], len(pairs))
    weight = own * WEIGHTS[pairs].prod(axis=1)
    named = np.zeros(len(Y), dtype=bool)
    named[pairs[weight > 0]] = True
    query = QID[pairs[:, 0]]
    size = {
        "pairs": np.ones(QID.max() + 1),
        "equal": 2 * np.bincount(query, weight, QID.max() + 1),
        "rows": np.bincount(QID[named], WEIGHTS[named], QID.max() + 1),
    }[query_weight]
    L, side = preference_laplacian(len(Y), pairs, weight / np.where(size > 0, size, 1.0)[query])
    K = kernel(X)
    expected = K @ np.linalg.solve(L @ K + 0.01 * np.eye(len(K)), side)
    for one in ({"alpha": 0.01}, {"alphas": [0.01]}):
        model = RankRLS(kernel=kernel, query_weight=query_weight, scale=False, **one, **how)
        model.fit(X, pairs=pairs, qid=QID, sample_weight=WEIGHTS, pair_weight=own)
        close(model.predict(X), expected)


@kernels
@pytest.mark.parametrize("how", [{}, {"basis": EVERY[::3]}], ids=["free", "basis"])
def test_scaling_inside_is_scaling_by_hand(kernel, how):
    sizes = np.array([1.0, 1e3, 1e-3, 1.0, 50.0, 1.0])
    rows = X * sizes
    model = RankRLS(alphas=[0.01, 1.0], kernel=kernel, **how).fit(rows, Y, qid=QID)
    by_hand = RankRLS(alphas=[0.01, 1.0], kernel=kernel, scale=False, **how)
    by_hand.fit(rows * model.column_scale_, Y, qid=QID)
    close(model.loo_scores_, by_hand.loo_scores_)
    close(model.predict_path(rows), by_hand.predict_path(rows * model.column_scale_))
    both = [
        CoRankRLS([View(None, kernel), View([0, 2])], 0.1, n_basis=9, random_state=0, scale=scale).fit(
            given, Y, qid=QID
        )
        for scale, given in ((True, rows), (False, rows * model.column_scale_))
    ]
    close(both[0].predict_views(rows), both[1].predict_views(rows * model.column_scale_))


@kernels
def test_a_basis_gives_the_sparse_solution(kernel):
    basis = np.arange(0, len(Y), 4)
    a = sparse_coefficients(kernel(X), basis, scored_laplacian(Y, QID), Y, 0.01)
    model = RankRLS(0.01, kernel, basis=basis, scale=False).fit(X, Y, qid=QID)
    close(model.predict(X), kernel(X, X[basis]) @ a)


def test_the_objective_is_least_there():
    K, L = KERNELS[0](X), scored_laplacian(Y, QID)
    model = RankRLS(0.5, KERNELS[0], scale=False).fit(X, Y, qid=QID)
    a = np.zeros(len(Y))
    a[model.basis_.numbers] = model.dual_coef_
    close(K @ a, model.predict(X))

    def objective(a):
        error = np.nan_to_num(Y) - K @ a
        return 0.5 * error @ L @ error + 0.25 * a @ K @ a

    for step in np.random.default_rng(0).normal(size=(20, len(a))):
        assert objective(a) < objective(a + 1e-3 * step)


@kernels
@pytest.mark.parametrize("basis", ["random", EVERY[::3]], ids=["dense", "sparse"])
def test_the_path_is_made_of_direct_solves(kernel, basis):
    alphas = [1e-4, 0.1, 100.0]
    path = RankRLS(kernel=kernel, alphas=alphas, basis=basis).fit(X, Y, qid=QID).predict_path(X)
    for column, alpha in zip(path.T, alphas, strict=True):
        close(column, RankRLS(alpha, kernel, basis=basis).fit(X, Y, qid=QID).predict(X))


@pytest.mark.thin(5)
@kernels
@query_weights
@ties_or_not
@pytest.mark.parametrize("basis", ["random", EVERY[::3]], ids=["dense", "sparse"])
def test_leaving_out_a_query_is_a_second_fit(kernel, query_weight, basis, ties):
    alphas, weights = [1e-4, 0.1, 1e14], np.maximum(WEIGHTS, 0.5)
    how = {"kernel": kernel, "basis": basis, "query_weight": query_weight, "ties": ties, "scale": False}
    found = RankRLS(alphas=alphas, metric="nDCG", **how).fit(X, Y, qid=QID, sample_weight=weights).loo_scores_
    for alpha, score in zip(alphas, found, strict=True):
        held, compared = np.zeros(len(Y)), np.zeros(len(Y), dtype=bool)
        for q in np.unique(QID):
            y = np.where(q == QID, np.nan, Y)
            held[q == QID] = RankRLS(alpha, **how).fit(X, y, qid=QID, sample_weight=weights).predict(X[q == QID])
            own = Y[(q == QID) & ~np.isnan(Y)]
            compared[q == QID] = len(own if ties else np.unique(own)) > 1
        close(score, evaluate(np.where(compared, Y, np.nan), held, QID, "nDCG")["nDCG"].mean)


def test_leaving_out_preferences_of_a_query_is_a_second_fit():
    pairs = np.array([(i, j) for i in EVERY for j in EVERY if QID[i] == QID[j] and PROBLEM.y[i] > PROBLEM.y[j]])
    own = np.random.default_rng(1).choice([1.0, 2.0], len(pairs))
    for query_weight in ("pairs", "equal", "rows"):
        how = {"query_weight": query_weight, "kernel": KERNELS[0]}
        found = (
            RankRLS(alphas=[1e-4, 1.0], scale=False, **how).fit(X, pairs=pairs, qid=QID, pair_weight=own).loo_scores_
        )
        for alpha, score in zip([1e-4, 1.0], found, strict=True):
            errors = []
            for q in np.unique(QID[pairs[:, 0]]):
                out = QID[pairs[:, 0]] == q
                one = RankRLS(alpha, basis=np.unique(pairs), scale=False, **how)
                f = one.fit(X, pairs=pairs[~out], qid=QID, pair_weight=own[~out]).predict(X)
                errors.append(np.mean(f[pairs[out, 0]] < f[pairs[out, 1]]))
            assert score == pytest.approx(np.mean(errors), abs=1e-12)


@pytest.mark.thin(3)
@query_weights
@pytest.mark.parametrize("kernel", [GaussianKernel(0.1), LinearKernel()], ids=str)
@pytest.mark.parametrize("weights", [None, np.repeat([1.0, 2.0], 9)], ids=["plain", "weighted"])
@pytest.mark.parametrize("alpha", [1e-3, 1e14])
@ties_or_not
def test_leaving_out_a_pair_of_rows_is_a_second_fit(kernel, query_weight, weights, alpha, ties):
    rows, y = X[:18], PROBLEM.y[:18] + X[:18, 0]
    y = np.round(y) if ties else y
    how = {"kernel": kernel, "query_weight": query_weight, "scale": False, "ties": ties}
    model = RankRLS(alphas=[alpha], **how).fit(rows, y, sample_weight=weights)
    assert model.alpha_from_ == "leave-pair-out disagreement"
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
    assert model.loo_scores_[0] == pytest.approx(np.mean(wrong), abs=1e-12)


@pytest.mark.parametrize("kernel", [GaussianKernel(0.1), LinearKernel()], ids=str)
@pytest.mark.parametrize("how", [{}, {"basis": EVERY[:9]}], ids=["free", "basis"])
@pytest.mark.parametrize("weights", [None, np.tile([1.0, 2.0, 0.5], 8)], ids=["plain", "weighted"])
def test_leaving_out_a_tenth_of_one_query_is_a_second_fit(kernel, how, weights):
    rows, y = X[:24], np.round(PROBLEM.y[:24] + X[:24, 0])
    how = {"kernel": kernel, "scale": False, **how}
    model = RankRLS(alphas=[1e-3, 10.0], **how).fit(rows, y, sample_weight=weights)
    assert model.alpha_from_ == "10-fold disagreement"
    order, errors = order_of_folds(rows, y, weights), []
    for part in range(10):
        out = order[part::10]
        hidden = y.copy()
        hidden[out] = np.nan
        f = [RankRLS(alpha, **how).fit(rows, hidden, sample_weight=weights).predict(rows) for alpha in (1e-3, 10.0)]
        errors += [[one[i] < one[j] for one in f] for i in out for j in out if y[i] > y[j]]
    np.testing.assert_allclose(model.loo_scores_, np.mean(errors, axis=0))


@pytest.mark.parametrize("n_views", [2, 3])
@query_weights
def test_views_that_agree_solve_the_block_system(n_views, query_weight):
    kernels = [GaussianKernel(0.1), LinearKernel(), PolynomialKernel(2)][:n_views]
    bases = [np.arange(v, len(Y), 3 + v) for v in range(n_views)]
    views = [View(None, kernel, basis) for kernel, basis in zip(kernels, bases, strict=True)]
    L = scored_laplacian(Y, QID, weights=WEIGHTS, query_weight=query_weight)
    L_unscored = unscored_laplacian(Y, QID, weights=WEIGHTS, query_weight=query_weight)
    grams = [kernel(X) for kernel in kernels]
    expected = co_coefficients(grams, bases, L, L_unscored, Y, 0.02, 0.7)
    model = CoRankRLS(views, coupling=0.7, alpha=0.02, query_weight=query_weight, scale=False)
    found = model.fit(X, Y, qid=QID, sample_weight=WEIGHTS).predict_views(X)
    for v in range(n_views):
        np.testing.assert_allclose(found[:, v], grams[v][:, bases[v]] @ expected[v], rtol=1e-6, atol=1e-7)
    close(model.predict(X), found.mean(axis=1))


def test_views_agree_beside_preferences():
    pairs = np.array([(i, j) for i in EVERY for j in EVERY if QID[i] == QID[j] and Y[i] > Y[j]])[::3]
    named = np.isin(EVERY, pairs)
    bases = [EVERY[::3], EVERY[1::4]]
    views = [View(None, kernel, basis) for kernel, basis in zip(KERNELS, bases, strict=False)]
    L, side = preference_laplacian(len(Y), pairs, np.ones(len(pairs)))
    grams, target = [kernel(X) for kernel in KERNELS[:2]], np.linalg.lstsq(L, side, rcond=None)[0]
    L_unscored = unscored_laplacian(np.where(named, 1.0, np.nan), QID)
    expected = co_coefficients(grams, bases, L, L_unscored, target, 0.02, 0.7)
    found = CoRankRLS(views, 0.7, 0.02, scale=False).fit(X, pairs=pairs, qid=QID).predict_views(X)
    for v in range(2):
        np.testing.assert_allclose(found[:, v], grams[v][:, bases[v]] @ expected[v], rtol=1e-6, atol=1e-7)


def test_the_papers_weights_are_those_of_sums():
    # (y − f)ᵀL(y − f) + λ‖f‖² + ν Σ_{v,u} (f_v − f_u)ᵀL̂(f_v − f_u), sums over all pairs, those of equal scores included
    scored, unscored = ~np.isnan(Y), np.isnan(Y)
    P, U = (sum(n * n / 2 for n in np.bincount(QID[is_in])) for is_in in (scored, unscored))
    views = [View(None, kernel, EVERY[::4]) for kernel in KERNELS[:2]]
    model = CoRankRLS(views, coupling=0.3, alpha=0.02, ties=True, scale=False).fit(X, Y, qid=QID)
    lam, nu = 0.02 * P, 2 * 0.3 * P / U
    L, L_hat = P * scored_laplacian(Y, QID, ties=True), U * unscored_laplacian(Y, QID)
    K, a = [kernel(X)[:, EVERY[::4]] for kernel in KERNELS[:2]], model.view_coefs_

    def objective(a):
        f = [one @ own for one, own in zip(K, a, strict=True)]
        loss = sum((np.nan_to_num(Y) - one) @ L @ (np.nan_to_num(Y) - one) for one in f)
        norms = sum(own @ one[EVERY[::4]] @ own for one, own in zip(K, a, strict=True))
        return loss + lam * norms + nu * 2 * (f[0] - f[1]) @ L_hat @ (f[0] - f[1])

    for step in np.random.default_rng(0).normal(size=(20, 2, len(EVERY[::4]))):
        assert objective(a) < objective([own + 1e-3 * one for own, one in zip(a, step, strict=True)])


def test_without_coupling_views_are_independent():
    bases = [EVERY[::3], EVERY[1::3]]
    model = CoRankRLS([View(None, KERNELS[0], basis) for basis in bases], coupling=0.0, alpha=0.04).fit(X, Y, qid=QID)
    for v, basis in enumerate(bases):
        close(model.predict_views(X)[:, v], RankRLS(0.04, KERNELS[0], basis=basis).fit(X, Y, qid=QID).predict(X))


def test_coupling_has_no_effect_on_views_that_are_the_same():
    views = [View(None, KERNELS[0], EVERY[::3])] * 3
    one, other = (CoRankRLS(views, coupling=c, alpha=0.04).fit(X, Y, qid=QID).predict(X) for c in (0.0, 50.0))
    close(one, other)


def test_coupling_makes_views_agree():
    fits = [CoRankRLS(2, coupling=c, alpha=0.04, random_state=0).fit(X, Y, qid=QID) for c in (0.0, 0.1, 10.0, 1e4)]
    gaps = [model.view_gap_ for model in fits]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-2 * gaps[0]
    a, b = (fits[0].predict_views(X)[:, v] for v in (0, 1))
    L = unscored_laplacian(Y, QID)
    assert gaps[0] == pytest.approx((a - b) @ L @ (a - b) / (np.trace(L) / 2), rel=1e-9)


def test_without_unscored_rows_coupling_has_no_effect_and_says_so():
    alone = CoRankRLS(2, coupling=0.0, alpha=0.04, random_state=0).fit(X, PROBLEM.y, qid=QID)
    with pytest.warns(UsageWarning, match="coupling is 7, but no query holds two"):
        coupled = CoRankRLS(2, coupling=7.0, alpha=0.04, random_state=0).fit(X, PROBLEM.y, qid=QID)
    close(alone.predict(X), coupled.predict(X))
    assert np.isnan(coupled.view_gap_)


def test_the_grid_of_views_is_made_of_second_fits():
    views = [View(None, KERNELS[0], EVERY[::3]), View(None, LinearKernel())]
    alphas, couplings = [1e-3, 0.05], [0.0, 0.3, 30.0]
    grid = CoRankRLS(views, alphas=alphas, couplings=couplings, metric="disagreement", scale=False).fit(X, Y, qid=QID)
    assert grid.loo_scores_.shape == (3, 2)
    pairs_of = np.array([np.trace(_sum_laplacian(q)) for q in range(QID.max() + 1)])
    for c, coupling in enumerate(couplings):
        for a, alpha in enumerate(alphas):
            held = np.zeros(len(Y))
            for q in np.unique(QID):
                # agreement keeps its weight beside the sums of the other queries
                left = 1 - pairs_of[q] / pairs_of.sum()
                held[q == QID] = _without(q, alpha, coupling / left)
            assert grid.loo_scores_[c, a] == pytest.approx(disagreement_error(Y, held, QID), abs=1e-9)
    best = np.unravel_index(np.argmin(grid.loo_scores_), (3, 2))
    assert (grid.coupling_, grid.alpha_) == (couplings[best[0]], alphas[best[1]])


def _sum_laplacian(q):
    own = Y[(q == QID) & ~np.isnan(Y)]
    different = own[:, None] != own
    return np.diag(different.sum(axis=1)) - different


def _without(q, alpha, coupling):
    """The block system without the scored rows of q, basis rows kept."""
    y = np.where(q == QID, np.nan, Y)
    grams, bases = [KERNELS[0](X), X @ X.T], [EVERY[::3], EVERY]
    a = co_coefficients(grams, bases, scored_laplacian(y, QID), unscored_laplacian(Y, QID), y, alpha, coupling)
    return np.mean([(K[:, basis] @ one)[q == QID] for K, basis, one in zip(grams, bases, a, strict=True)], axis=0)


@pytest.mark.parametrize("ties", [False, True])
def test_one_rule_for_every_form(ties):
    L, m = scored_laplacian(Y, QID, ties=ties), 0
    for q in np.unique(QID):
        own = Y[(q == QID) & ~np.isnan(Y)]
        m += len(own) - 1 if len(own if ties else np.unique(own)) > 1 else 0
    for kernel, d in ((LinearKernel(), 6), (KERNELS[0], 0)):
        expected = 10 * np.trace(L @ kernel(X)) / max(m, d)
        for how in ({}, {"basis": EVERY}):
            model = RankRLS(kernel=kernel, ties=ties, scale=False, **how).fit(X, Y, qid=QID)
            assert model.alpha_ == pytest.approx(expected, rel=1e-9)
            assert model.alpha_from_ == "pair differences"
        views = CoRankRLS([View(None, kernel)] * 2, ties=ties, scale=False).fit(X, Y, qid=QID)
        # views count side by side
        assert views.alpha_ == pytest.approx(10 * 2 * np.trace(L @ kernel(X)) / max(m, 2 * d), rel=1e-9)
    # a linear kernel of more columns than rows is solved in the dual, by the same rule
    wide = np.hstack([X] * 50)
    model = RankRLS(ties=ties, scale=False).fit(wide, Y, qid=QID)
    assert model.alpha_ == pytest.approx(10 * np.trace(L @ wide @ wide.T) / max(m, 300), rel=1e-9)


@pytest.mark.parametrize(
    "model", [RankRLS(0.3), RankRLS(scale=False), RankRLS(kernel=GaussianKernel(0.1), n_basis=12, random_state=0)]
)
def test_parts_add_up_to_the_whole(model):
    first, second = QID < 5, QID >= 5
    one = model.pair_sums(X[first], Y[first], qid=QID[first])
    two = model.pair_sums(X[second], Y[second], qid=QID[second], like=one)
    parts = model.fit_pair_sums(one + two).predict(X)
    close(parts, model.fit_pair_sums(model.pair_sums(X, Y, qid=QID, like=one)).predict(X))
    # columns are scaled as the first part has them
    if model.n_basis is None and not model.scale:
        close(parts, model.fit(X, Y, qid=QID).predict(X))


def test_operations_grow_linearly_with_unjudged_rows_and_cubically_with_the_basis(monkeypatch):
    """Theorem 1 of Co-RankRLS, O(M³r³ + M²r²l): similarities, products of sums and the factorisation are counted."""
    counts = {}

    def count(name, amount):
        counts[name] = counts.get(name, 0) + amount

    def similarity(a, b):
        count("similarities", len(a) * len(b))
        return np.exp(-((a[:, None, 0] - b[None, :, 0]) ** 2))

    def stacked(maps):
        of_rows, width = stack_features(maps), sum(phi.n_features for phi in maps)

        def counted(rows):
            count("products", rows.shape[0] * width**2)
            return of_rows(rows)

        return counted

    def factorised(A, *args, **kwargs):
        count("factorisation", len(A) ** 3)
        return cho_factor(A, *args, **kwargs)

    monkeypatch.setattr(summary, "stack_features", stacked)
    monkeypatch.setattr(spectrum.linalg, "cho_factor", factorised)

    def cost(n_views, r, n_unjudged):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40 + n_unjudged, 1))
        y = np.append(rng.normal(size=40), np.full(n_unjudged, np.nan))
        counts.clear()
        basis = np.arange(r)
        views = [View(None, similarity, basis) for _ in range(n_views)]
        CoRankRLS(views, 0.1, 1.0, scale=False).fit(X, y, qid=np.zeros(len(y)))
        return dict(counts)

    few, more, most = (cost(2, 6, n) for n in (100, 200, 400))
    for name, slope in (("similarities", 2 * 6), ("products", (2 * 6) ** 2), ("factorisation", 0)):
        assert more[name] - few[name] == slope * 100
        assert most[name] - more[name] == slope * 200
    small, wide, many = cost(2, 5, 100), cost(2, 10, 100), cost(4, 5, 100)
    for bigger in (wide, many):
        assert bigger["products"] == 4 * small["products"]
        assert bigger["factorisation"] == 8 * small["factorisation"]


def test_several_gram_matrices_are_views_of_row_numbers():
    rng = np.random.default_rng(1)
    grams = [Z @ Z.T + np.eye(len(Y)) for Z in rng.normal(size=(2, len(Y), 4))]

    def lookup(K):
        return lambda a, b: K[np.ix_(a[:, 0].astype(int), b[:, 0].astype(int))]

    numbers, basis = np.arange(len(Y))[:, None], np.array([0, 4, 7, 9])
    views = [View(None, lookup(K), basis) for K in grams]
    model = CoRankRLS(views, 0.2, 0.05, ties=True).fit(numbers, Y, qid=QID)
    L, U = scored_laplacian(Y, QID, ties=True), unscored_laplacian(Y, QID)
    a, b = co_coefficients(grams, [basis, basis], L, U, Y, 0.05, 0.2)
    close(model.predict(numbers), (grams[0][:, basis] @ a + grams[1][:, basis] @ b) / 2)


def test_parts_of_views_add_up_to_the_whole():
    model = CoRankRLS(2, coupling=0.5, random_state=0, scale=False)
    parts = [QID < 4, (QID >= 4) & (QID < 9), QID >= 9]
    total = None
    for part in parts:
        one = model.pair_sums(X[part], Y[part], qid=QID[part], like=total)
        total = one if total is None else total + one
    close(model.fit_pair_sums(total).predict(X), model.fit(X, Y, qid=QID).predict(X))
