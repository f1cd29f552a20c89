"""What MATHS says must be equal: stochastic and exact, mixed and plain, coupled and apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge

import corank
from corank import CRR, LCRA, SPD, RankRLS
from corank.base.pairs.losses import Loss
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking

PROBLEM = make_ranking(25, (2, 9), random_state=4)
X, QID = PROBLEM.X[:, :6], PROBLEM.qid
Y = PROBLEM.y / PROBLEM.y.max()
HIDDEN = mask_scores(Y, fraction=0.4, random_state=0)
# columns as they are, as the explicit problems of these tests have them
PLAIN = {"scale": False}
DESCENT = {**PLAIN, "solver": "sgd", "rate": "sqrt", "average": True, "n_steps": 2_000_000, "random_state": 0}
EXACT = {**PLAIN, "solver": "exact"}


def pairs(y=Y, qid=QID):
    return np.array([(i, j) for i in range(len(y)) for j in range(len(y)) if qid[i] == qid[j] and y[i] > y[j]])


def unscored(y):
    rows = np.flatnonzero(np.isnan(y))
    return np.array([(i, j) for i in rows for j in rows if QID[i] == QID[j]])


def query_weights(query_weight, a, w):
    """c_q w_a w_b of every pair, normalised, by the words of the definition."""
    codes = QID[a[:, 0]]
    weight = w[a[:, 0]] * w[a[:, 1]]
    for q in np.unique(codes):
        twice = 2 * weight[codes == q].sum()
        weight[codes == q] /= {"pairs": 1.0, "equal": twice, "rows": w[q == QID].sum()}[query_weight]
    return weight / weight.sum()


def optimum(objective, d):
    return minimize(objective, np.zeros(d), method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}).x


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_spd_descends_to_the_optimum_over_all_pairs(loss):
    a, b = pairs().T
    D, t, ell = X[a] - X[b], Loss.of(loss).pair_target(Y[a] - Y[b]), Loss.of(loss)
    best = optimum(lambda w: ell.value(t, D @ w).mean() + 0.05 * w @ w, X.shape[1])
    np.testing.assert_allclose(SPD(loss, alpha=0.1, **DESCENT).fit(X, Y, qid=QID).coef_, best, atol=3e-3)


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_queries_count_as_asked_in_exact_and_stochastic_learning(query_weight, loss):
    w = np.random.default_rng(0).integers(1, 4, len(Y)) / 2
    a = pairs()
    D, t, ell, share = (
        X[a[:, 0]] - X[a[:, 1]],
        Y[a[:, 0]] - Y[a[:, 1]],
        Loss.of(loss),
        query_weights(query_weight, a, w),
    )
    best = optimum(lambda v: share @ ell.value(ell.pair_target(t), D @ v) + 0.05 * v @ v, X.shape[1])
    for settings, close in ((EXACT, 1e-5), ({**DESCENT, "n_steps": 500_000}, 1e-2)):
        model = SPD(loss, alpha=0.1, query_weight=query_weight, **settings).fit(X, Y, qid=QID, sample_weight=w)
        np.testing.assert_allclose(model.coef_, best, atol=close)


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_preferences_count_as_asked_in_exact_and_stochastic_learning(query_weight, loss):
    a = pairs()[::2]
    own = np.random.default_rng(0).integers(1, 4, len(a)) / 2
    D, ell, codes, share = X[a[:, 0]] - X[a[:, 1]], Loss.of(loss), QID[a[:, 0]], own.copy()
    for q in np.unique(codes):
        named = len(np.unique(a[codes == q]))
        share[codes == q] /= {"pairs": 1.0, "equal": 2 * own[codes == q].sum(), "rows": named}[query_weight]
    share /= share.sum()
    best = optimum(lambda v: share @ ell.value(ell.pair_target(np.ones(len(a))), D @ v) + 0.05 * v @ v, X.shape[1])
    for settings, close in ((EXACT, 1e-5), ({**DESCENT, "n_steps": 500_000}, 1e-2)):
        model = SPD(loss, alpha=0.1, query_weight=query_weight, **settings)
        np.testing.assert_allclose(model.fit(X, pairs=a, qid=QID, pair_weight=own).coef_, best, atol=close)


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize("scale", [False, True])
def test_one_alpha_means_one_thing(query_weight, scale):
    """On grades with ties, weighted rows and unjudged rows among them."""
    w = np.random.default_rng(0).integers(1, 4, len(Y)) / 2
    same = {"alpha": 0.3, "query_weight": query_weight, "scale": scale}
    models = SPD("squared", **same), CRR(mix=0.0, **same), LCRA(1, 0.0, **same), RankRLS(kernel="linear", **same)
    one, *others = (model.fit(X, HIDDEN, qid=QID, sample_weight=w).predict(X) for model in models)
    for other in others:
        # a query's scores have no level of their own
        np.testing.assert_allclose(np.ptp(other - one), 0.0, atol=1e-9)


def test_spd_hinge_descends_to_the_optimal_objective():
    a, b = pairs().T
    D = X[a] - X[b]

    def objective(w):
        return np.maximum(0, 1 - D @ w).mean() + 0.05 * w @ w

    found = [
        objective(SPD("hinge", alpha=0.1, **{**DESCENT, **changes}).fit(X, Y, qid=QID).coef_)
        for changes in ({}, {"rate": "pegasos"}, {"rate": "adagrad", "average": False})
    ]
    assert max(found) - min(found) < 2e-3
    rng = np.random.default_rng(0)
    w = SPD("hinge", alpha=0.1, **DESCENT).fit(X, Y, qid=QID).coef_
    assert all(objective(w + 0.1 * rng.standard_normal(6)) > found[0] for _ in range(200))


@pytest.mark.long
def test_spd_with_l1_descends_to_the_optimum():
    a, b = pairs().T
    D, t = X[a] - X[b], Y[a] - Y[b]

    # w = u − v with u, v ≥ 0 makes the penalty smooth
    def objective(uv):
        w = uv[:6] - uv[6:]
        return 0.5 * ((t - D @ w) ** 2).mean() + 0.05 * w @ w + 0.05 * uv.sum()

    uv = minimize(objective, np.zeros(12), bounds=[(0, None)] * 12, options={"maxiter": 5000, "ftol": 1e-15}).x
    for rate in ("sqrt", "adagrad", "pegasos"):
        settings = {**DESCENT, "average": False, "rate": rate}
        w = SPD("squared", alpha=0.1, l1=0.05, **settings).fit(X, Y, qid=QID).coef_
        np.testing.assert_allclose(w, uv[:6] - uv[6:], atol=2e-2)
        assert (w == 0).sum() == (np.abs(uv[:6] - uv[6:]) < 1e-6).sum()


def test_spd_descends_to_the_exact_solution():
    exact = SPD("squared", alpha=0.1, **EXACT).fit(X, Y, qid=QID)
    np.testing.assert_allclose(SPD("squared", alpha=0.1, **DESCENT).fit(X, Y, qid=QID).coef_, exact.coef_, atol=3e-3)
    assert exact.n_iter_ == 0


@pytest.mark.parametrize("mix", [0.3, 1.0])
def test_crr_descends_to_the_exact_solution(mix):
    exact = CRR(mix=mix, alpha=0.1, **EXACT).fit(X, Y, qid=QID)
    model = CRR(mix=mix, alpha=0.1, **DESCENT).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=3e-3)
    assert model.intercept_ == pytest.approx(exact.intercept_, abs=3e-3)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_large_penalty_does_not_starve_the_bias(loss):
    exact, steps = CRR(loss, alpha=5.0, **EXACT), CRR(loss, alpha=5.0, **PLAIN, solver="sgd", random_state=0)
    assert steps.fit(X, Y, qid=QID).intercept_ == pytest.approx(exact.fit(X, Y, qid=QID).intercept_, abs=0.01)


@pytest.mark.parametrize("settings", [EXACT, DESCENT], ids=["exact", "descent"])
def test_mix_one_is_ridge_and_logistic_regression(settings):
    ridge = Ridge(alpha=0.1 * len(Y)).fit(X, Y)
    model = CRR(mix=1.0, alpha=0.1, **settings).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=3e-3)
    assert model.intercept_ == pytest.approx(ridge.intercept_, abs=3e-3)
    relevant = (Y > 0.3).astype(float)
    logistic = LogisticRegression(C=1 / (0.1 * len(Y)), tol=1e-8, max_iter=1000).fit(X, relevant)
    model = CRR("logistic", mix=1.0, alpha=0.1, **settings).fit(X, relevant, qid=QID)
    np.testing.assert_allclose(model.coef_, logistic.coef_[0], atol=1e-2)
    assert model.intercept_ == pytest.approx(logistic.intercept_[0], abs=1e-2)


@pytest.mark.parametrize("model", [corank.LambdaRank("ranknet", n_steps=3000, weight_decay=1e-4, random_state=0),
                                   SPD("logistic", 1e-6)], ids=["LambdaRank", "SPD"])  # fmt: skip
def test_probabilities_of_pairs_are_their_weights_in_both_orders(model):
    """RankNet's cross-entropy, −p log o − (1 − p) log(1 − o): its optimum gives o = p."""
    rng, w = np.random.default_rng(0), np.array([1.0, -1.0, 0.5])
    rows, first = rng.normal(size=(40, 3)), rng.integers(0, 40, 300)
    second = (first + 1 + rng.integers(0, 38, 300)) % 40
    p = 1.0 / (1.0 + np.exp(-(rows[first] - rows[second]) @ w))
    both = np.concatenate([np.column_stack([first, second]), np.column_stack([second, first])])
    model.fit(rows, pairs=both, pair_weight=np.concatenate([p, 1.0 - p]))
    np.testing.assert_allclose(model.coef_, w, atol=1e-3)


def test_mix_zero_is_spd():
    one = CRR("squared", mix=0.0, alpha=0.1, solver="sgd", random_state=0).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(one.coef_, SPD("squared", 0.1, solver="sgd", random_state=0).fit(X, Y, qid=QID).coef_)


@pytest.mark.parametrize("rate", ["pegasos", "sqrt", "adagrad"])
def test_uncoupled_views_are_spd_on_the_columns_of_each_view(rate):
    """The pairs come from one set of dice, so every view sees the pairs that an SPD with the same seed sees."""
    views = [[0, 2, 3], [1, 4, 5]]
    settings = {
        "loss": "hinge", "alpha": 0.1, "rate": rate, "eta0": 0.5, "solver": "sgd", "random_state": 7, "n_steps": 5000,
    }  # fmt: skip
    model = LCRA(views, coupling=0.0, **settings).fit(X, Y, qid=QID)
    for w, columns in zip(model.view_coefs_, views, strict=True):
        alone = SPD(**settings).fit(X[:, columns], Y, qid=QID)
        np.testing.assert_allclose(w[columns], alone.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_identical_views_agree_whatever_the_coupling(loss):
    views = [list(range(6))] * 3
    settings = {"loss": loss, "alpha": 0.1, "eta0": 0.01, "solver": "sgd", "random_state": 7, "n_steps": 5000}
    apart = LCRA(views, coupling=0.0, **settings).fit(X, HIDDEN, qid=QID)
    coupled = LCRA(views, coupling=2.0, **settings).fit(X, HIDDEN, qid=QID)
    np.testing.assert_allclose(coupled.view_coefs_, apart.view_coefs_, atol=1e-12)
    assert coupled.view_gap_ == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize("settings", [EXACT, {**DESCENT, "n_steps": 400_000, "rate": "constant"}])
@pytest.mark.parametrize("mix", [0.0, 0.4])
def test_lcra_minimises_its_objective(settings, mix):
    views = [np.array([0, 2, 3]), np.array([1, 3, 4, 5])]
    a, b = pairs(HIDDEN).T
    D, t = X[a] - X[b], HIDDEN[a] - HIDDEN[b]
    c, e = unscored(HIDDEN).T
    U, scored = X[c] - X[e], ~np.isnan(HIDDEN)

    def objective(z):
        w, biases = [z[:3], z[3:7]], z[7:]
        total = 0.0
        for v in range(2):
            total += (1 - mix) * 0.5 * ((t - D[:, views[v]] @ w[v]) ** 2).mean() + 0.05 * w[v] @ w[v]
            total += mix * 0.5 * ((HIDDEN[scored] - X[scored][:, views[v]] @ w[v] - biases[v]) ** 2).mean()
        # both orders of the two views
        return total + 2 * 0.2 * ((U[:, views[0]] @ w[0] - U[:, views[1]] @ w[1]) ** 2).mean()

    best = optimum(objective, 9)
    model = LCRA(views, coupling=0.2, loss="squared", mix=mix, alpha=0.1, **settings).fit(X, HIDDEN, qid=QID)
    found = np.concatenate([w[columns] for w, columns in zip(model.view_coefs_, views, strict=True)])
    np.testing.assert_allclose(found, best[:7], atol=5e-3)
    assert model.intercept_ == pytest.approx(best[7:].mean() if mix else 0.0, abs=5e-3)


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize("scale", [True, False])
def test_agreeing_views_are_one_model_in_two_rooms(query_weight, scale):
    made = corank.make_ranking(20, 8, random_state=1)
    y = corank.data.mask_scores(made.y, fraction=0.5, random_state=0)
    how = {"views": list(made.views), "coupling": 0.3, "query_weight": query_weight, "scale": scale}
    one, other = (kind(**how).fit(made.X, y, qid=made.qid) for kind in (corank.LCRA, corank.CoRankRLS))
    assert one.alpha_ == pytest.approx(other.alpha_)
    np.testing.assert_allclose(one.predict(made.X), other.predict(made.X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one.predict_views(made.X), other.predict_views(made.X), rtol=1e-9, atol=1e-12)
