"""Scores known before learning: what every Ranker makes of `prior`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import corank
from corank.base import Calibrated
from corank.base.pairs.losses import Loss
from corank.base.search import QuerySearchCV
from corank.base.transformers import QueryScaler
from corank.clicks import OnlineRanker
from corank.data.ranking import RankingData
from corank.data.splits import QueryKFold, mask_scores
from corank.data.synthetic import make_ranking
from corank.errors import InputError
from corank.metrics import evaluate
from corank.models.auto import AutoRanker
from corank.models.gp import OrdinalGP, PreferenceGP
from corank.models.lambdarank import LambdaRank
from corank.models.linear import CRR, LCRA, SPD, RankSVM
from corank.models.pursuit import CoRankingPursuit, RankingPursuit
from corank.models.rls import CoRankRLS, RankRLS
from helpers.estimators import over
from helpers.explicit_rls import order_of_folds

PROBLEM = make_ranking(12, (2, 9), random_state=3)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.3, random_state=1)
PAIRS = np.array([(i, j) for i in range(len(Y)) for j in range(len(Y)) if QID[i] == QID[j] and Y[i] > Y[j]])
RNG = np.random.default_rng(5)
PRIOR = PROBLEM.utility + RNG.normal(size=len(Y))
# no two of these scores, with the prior or without, are equal: all pairs are compared either way
DISTINCT = np.where(np.isnan(Y), np.nan, PROBLEM.utility + 0.1 * RNG.normal(size=len(Y)))

every = over()


def is_squared(model):
    if isinstance(model, OrdinalGP):
        return model.likelihood == "gaussian"
    return (
        not isinstance(model, RankSVM | AutoRanker | Calibrated | LambdaRank | PreferenceGP | OnlineRanker)
        and getattr(model, "loss", "squared") == "squared"
    )


@every
def test_a_prior_of_zeros_is_none(make):
    nothing = np.zeros(len(Y))
    one = make().fit(X, Y, qid=QID, prior=nothing).predict(X, prior=nothing)
    np.testing.assert_allclose(one, make().fit(X, Y, qid=QID).predict(X), rtol=1e-9, atol=1e-11)


@over(is_squared)
def test_squares_learn_what_the_prior_leaves(make):
    model = make().fit(X, DISTINCT, qid=QID, prior=PRIOR)
    rest = make().fit(X, DISTINCT - PRIOR, qid=QID)
    np.testing.assert_allclose(model.predict(X, prior=PRIOR), PRIOR + rest.predict(X), rtol=1e-6, atol=1e-8)
    if hasattr(model, "objective_"):
        assert model.objective_ == pytest.approx(rest.objective_, rel=1e-9)
    if hasattr(model, "predict_views"):
        views = PRIOR[:, None] + rest.predict_views(X)
        np.testing.assert_allclose(model.predict_views(X, prior=PRIOR), views, rtol=1e-6, atol=1e-8)


@over(lambda model: is_squared(model) and model._learns_from_differences)
def test_a_preference_asks_for_what_the_prior_lacks_of_one(make):
    """Preferences whose rows are known to differ by 1 − t, against PlainRanker's pairs, one by one."""
    model = make().fit(X, pairs=PAIRS, qid=QID, prior=PRIOR)
    again = make().fit(RankingData.of_pairs(X, PAIRS, QID).with_prior(PRIOR))
    np.testing.assert_array_equal(model.predict(X, prior=PRIOR), again.predict(X, prior=PRIOR))
    # a prior that already holds every preference leaves nothing to learn
    done = np.zeros(len(Y))
    pairs = PAIRS[np.unique(PAIRS[:, 0], return_index=True)[1]]
    pairs = pairs[~np.isin(pairs[:, 0], pairs[:, 1])]
    pairs = pairs[~np.isin(pairs[:, 1], pairs[:, 0])]
    done[pairs[:, 0]] = 1.0
    learnt = make().fit(X, pairs=pairs, qid=QID, prior=done).predict(X, prior=done) - done
    np.testing.assert_allclose(learnt, 0.0, atol=1e-10)


@over(lambda model: model._learns_from_differences)
def test_a_constant_added_to_the_prior_of_a_query_teaches_nothing(make):
    shift = RNG.integers(-3, 4, QID.max() + 1)[QID].astype(float)
    one = make().fit(X, Y, qid=QID, prior=PRIOR).predict(X, prior=PRIOR)
    other = make().fit(X, Y, qid=QID, prior=PRIOR + shift).predict(X, prior=PRIOR)
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


@every
def test_order_of_rows_changes_nothing(make):
    order = np.random.default_rng(0).permutation(len(Y))
    one = make().fit(X, Y, qid=QID, prior=PRIOR).predict(X, prior=PRIOR)
    other = make().fit(X[order], Y[order], qid=QID[order], prior=PRIOR[order]).predict(X, prior=PRIOR)
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


@every
def test_a_prior_is_wanted_by_predict_where_fit_had_one_and_only_there(make):
    model = make().fit(X, Y, qid=QID, prior=PRIOR)
    for ask in (model.predict, model.rank, lambda X: model.score(X, PROBLEM.y, qid=QID)):
        with pytest.raises(InputError, match="fitted with a prior"):
            ask(X)
    assert model.score(X, PROBLEM.y, qid=QID, prior=PRIOR) > 0.6
    model.fit(X, Y, qid=QID)
    for ask in (model.predict, model.rank, lambda X, prior: model.score(X, PROBLEM.y, qid=QID, prior=prior)):
        with pytest.raises(InputError, match="prior was given"):
            ask(X, prior=PRIOR)


@pytest.mark.thin(3)
@every
@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (PRIOR[:-1], r"prior has \d+ scores for \d+ rows of X; pass one score per row"),
        (np.where(np.arange(len(Y)) == 4, np.nan, PRIOR), "prior is nan at row 4; pass a finite score for every row"),
        (np.where(np.arange(len(Y)) == 3, np.inf, PRIOR), "prior is inf at row 3; pass a finite score for every row"),
        (np.stack([PRIOR, PRIOR]).T, r"prior has shape \(\d+, 2\); pass one score per row"),
        (1e200 * PRIOR, "too large or too small to be squared"),
    ],
)
def test_a_bad_prior_gets_one_sentence(make, bad, sentence):
    model = make()
    with pytest.raises(InputError, match=sentence):
        model.fit(X, Y, qid=QID, prior=bad)
    model.fit(X, Y, qid=QID, prior=PRIOR)
    with pytest.raises(InputError, match=sentence):
        model.predict(X, prior=bad)


@every
def test_a_saved_model_remembers_that_it_wants_a_prior(make, tmp_path, monkeypatch):
    model = make().fit(X, Y, qid=QID, prior=PRIOR)
    name = type(model).__name__
    monkeypatch.setattr(corank.models, name, type(model), raising=False)
    monkeypatch.setattr(corank.models, "__all__", [*corank.models.__all__, name])
    corank.save(model, tmp_path / "model.safetensors")
    again = corank.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict(X, prior=PRIOR), model.predict(X, prior=PRIOR))
    with pytest.raises(InputError, match="prior is missing"):
        again.predict(X)
    assert not [name for name in vars(clone(model)) if name.endswith("_")]


@every
def test_a_prior_is_routed_by_scikit_learn(make):
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(QueryScaler(), make()).fit(X, PROBLEM.y, qid=QID, prior=PRIOR)
        found = pipeline.predict(X, qid=QID, prior=PRIOR)
        given = {"qid": QID, "prior": PRIOR}
        scores = cross_val_score(pipeline, X, PROBLEM.y, params=given, cv=QueryKFold(2), error_score="raise")
    scaled = QueryScaler().fit_transform(X, qid=QID)
    by_hand = make().fit(scaled, PROBLEM.y, qid=QID, prior=PRIOR)
    np.testing.assert_allclose(found, by_hand.predict(scaled, prior=PRIOR), rtol=1e-9, atol=1e-11)
    assert np.isfinite(scores).all()


def test_a_search_hands_a_prior_on():
    search = QuerySearchCV(RankRLS(), {"alpha": [0.1, 10.0]}, metric="kendall", cv=3)
    search.fit(X, PROBLEM.y, qid=QID, prior=PRIOR)
    model = RankRLS(**search.best_params_).fit(X, PROBLEM.y, qid=QID, prior=PRIOR)
    np.testing.assert_array_equal(search.predict(X, QID, prior=PRIOR), model.predict(X, prior=PRIOR))
    np.testing.assert_array_equal(search.rank(X, QID, prior=PRIOR), model.rank(X, QID, prior=PRIOR))
    assert search.score(X, PROBLEM.y, QID, prior=PRIOR) > 0
    for alpha, mean in zip((0.1, 10.0), search.cv_results_["mean_test_score"], strict=True):
        folds = [
            evaluate(PROBLEM.y[test], RankRLS(alpha).fit(
                X[train], PROBLEM.y[train], qid=QID[train], prior=PRIOR[train]
            ).predict(X[test], prior=PRIOR[test]), QID[test], "kendall")["kendall"].mean
            for train, test in QueryKFold(3).split(X, qid=QID)
        ]  # fmt: skip
        assert mean == pytest.approx(np.mean(folds))


# ---- against the objective written out, pair by pair

SMALL = make_ranking(5, 6, random_state=1)
SX, SQ = SMALL.X[:, :3], SMALL.qid
SP = 3.0 * RNG.normal(size=len(SQ))
ALPHA = 0.1


def written_out(loss, y, mix=0.0, pairs=None):
    """The objective as a function of (w, b), every pair visited."""
    if pairs is None:
        pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if SQ[i] == SQ[j] and y[i] > y[j]]
    a, b = np.array(pairs).T
    gaps = np.ones(len(a)) if y is None else y[a] - y[b]
    ell = Loss.of(loss)

    def objective(theta):
        f = SP + SX @ theta[:3] + theta[3]
        total = (1 - mix) * ell.value(ell.pair_target(gaps), f[a] - f[b]).mean()
        if mix:
            total += mix * ell.value(y, f).mean()
        return total + ALPHA / 2 * theta[:3] @ theta[:3]

    return objective


def least(objective):
    best = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    return minimize(objective, best.x, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20000})


CASES = [
    (loss, mix, pairs)
    for loss in ("squared", "squared_hinge", "logistic")
    for mix, pairs in ((0.0, False), (0.5, False), (0.0, True))
]


@pytest.mark.parametrize(("loss", "mix", "pairs"), CASES)
def test_the_exact_optimum_is_that_of_the_objective_written_out(loss, mix, pairs):
    y = np.where(SMALL.y > np.median(SMALL.y), 1.0, -1.0 if loss == "squared_hinge" else 0.0)
    listed = [(i, j) for i in range(len(y)) for j in range(len(y)) if SQ[i] == SQ[j] and y[i] > y[j]] if pairs else None
    best = least(written_out(loss, None if pairs else y, mix, listed))
    model = CRR(loss, mix, ALPHA, scale=False, solver="exact")
    model = model.fit(SX, None if pairs else y, qid=SQ, pairs=listed, prior=SP)
    assert model.objective_ == pytest.approx(best.fun, rel=1e-7)
    np.testing.assert_allclose(model.coef_, best.x[:3], atol=1e-4)


@pytest.mark.parametrize("n_features", [None, 300])
def test_the_optimum_by_products_is_the_optimum(n_features, monkeypatch):
    """More columns than a matrix of them is built for, and conjugate gradients instead of a factorisation."""
    wide = SX if n_features is None else np.hstack([SX, np.zeros((len(SX), n_features))])
    one = SPD("squared_hinge", ALPHA, scale=False).fit(wide, SMALL.y, qid=SQ, prior=SP)
    assert one.objective_ == pytest.approx(least(written_out("squared_hinge", SMALL.y)).fun, rel=1e-7)
    built = CRR("squared", 0.5, ALPHA, scale=False).fit(wide, SMALL.y, qid=SQ, prior=SP)
    monkeypatch.setattr("corank.base.solvers.least_squares.MAX_DENSE", 1)
    products = CRR("squared", 0.5, ALPHA, scale=False, solver="exact").fit(wide, SMALL.y, qid=SQ, prior=SP)
    np.testing.assert_allclose(built.coef_, products.coef_, atol=1e-8)
    assert (built.intercept_, built.objective_) == pytest.approx((products.intercept_, products.objective_))
    pairs = [(i, j) for i in range(30) for j in range(30) if SQ[i] == SQ[j] and SMALL.y[i] > SMALL.y[j]]
    products = SPD("squared", ALPHA, scale=False, solver="exact").fit(wide, pairs=pairs, qid=SQ, prior=SP)
    assert products.objective_ == pytest.approx(least(written_out("squared", None, 0.0, pairs)).fun, rel=1e-7)


@pytest.mark.thin(11)
@pytest.mark.parametrize("loss", ["hinge", "squared", "squared_hinge", "logistic"])
@pytest.mark.parametrize("mix", [0.0, 0.5])
@pytest.mark.parametrize("how", [{}, {"rate": "adagrad", "eta0": 0.3}, {"project": True}], ids=str)
def test_stochastic_steps_go_to_the_same_place(loss, mix, how):
    y = np.where(SMALL.y > np.median(SMALL.y), 1.0, -1.0 if "hinge" in loss else 0.0)
    objective = written_out(loss, y, mix)
    model = CRR(loss, mix, ALPHA, scale=False, solver="sgd", n_steps=200_000, random_state=0, **how)
    model.fit(SX, y, qid=SQ, prior=SP)
    found, least_value = objective(np.append(model.coef_, model.intercept_)), least(objective).fun
    assert found <= 1.01 * least_value
    # and the reported objective is that of s₀ + g
    assert model.objective_ == pytest.approx(found, rel=0.1)
    without = clone(model).fit(SX, y, qid=SQ)
    assert objective(np.append(without.coef_, without.intercept_)) > 1.01 * least_value


def test_views_go_to_the_same_place_by_steps():
    y = mask_scores(PROBLEM.utility, fraction=0.5, random_state=0)
    how = {"views": [[0, 1, 2], [3, 4, 5]], "alpha": 1.0, "coupling": 0.1, "scale": False}
    exact = LCRA(**how).fit(X[:, :6], y, qid=QID, prior=PRIOR)
    steps = LCRA(**how, solver="sgd", n_steps=300_000, random_state=0).fit(X[:, :6], y, qid=QID, prior=PRIOR)
    np.testing.assert_allclose(steps.coef_, exact.coef_, atol=0.02)


def test_more_steps_keep_the_prior():
    how = {"loss": "hinge", "alpha": 0.1, "random_state": 0}
    once = SPD(**how, n_steps=400).fit(X, Y, qid=QID, prior=PRIOR)
    twice = SPD(**how, n_steps=200).fit(X, Y, qid=QID, prior=PRIOR)
    with pytest.raises(InputError, match="prior is missing"):
        twice.partial_fit(X, Y, qid=QID)
    twice.partial_fit(X, Y, qid=QID, prior=PRIOR)
    np.testing.assert_array_equal(once.predict(X, prior=PRIOR), twice.predict(X, prior=PRIOR))
    with pytest.raises(InputError, match="fitted without one"):
        SPD(**how).fit(X, Y, qid=QID).partial_fit(X, Y, qid=QID, prior=PRIOR)


# ---- what is judged by held-out judgements is s₀ + g


@pytest.mark.parametrize(
    "model",
    [SPD("hinge", random_state=0), CRR(mix=1.0, solver="sgd", random_state=0), RankingPursuit(5), CoRankingPursuit(5)],
    ids=str,
)
@pytest.mark.parametrize("pairs", [None, PAIRS], ids=["scores", "preferences"])
def test_early_stopping_judges_the_whole(model, pairs):
    if pairs is not None and getattr(model, "mix", 0.0):
        pytest.skip("preferences hold no scores")
    told = PROBLEM.y if pairs is None else None
    model = clone(model).set_params(early_stopping=True, random_state=0)
    model.fit(X, told, qid=QID, pairs=pairs, prior=1.0 * PROBLEM.y)
    assert model.validation_errors_[0] == 0.0


@pytest.mark.parametrize("model", [RankRLS(), RankRLS(kernel="gaussian"), RankRLS(ties=True)], ids=str)
@pytest.mark.parametrize("pairs", [None, PAIRS], ids=["scores", "preferences"])
def test_leaving_out_a_query_predicts_it_with_its_prior(model, pairs):
    alphas, told, known = [0.03, 3.0], Y if pairs is None else None, 0.3 * PRIOR
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    model = clone(model).set_params(alphas=alphas, metric="disagreement", scale=False)
    if model.kernel == "gaussian":
        model.set_params(kernel=corank.base.kernels.GaussianKernel(0.05))
    model.fit(rows, told, qid=QID, pairs=pairs, prior=known)
    for alpha, score in zip(alphas, model.loo_scores_, strict=True):
        wrong = []
        for q in np.unique(QID[PAIRS[:, 0]]):
            left = clone(model).set_params(alphas=None, alpha=alpha)
            inside, kept = PAIRS[QID[PAIRS[:, 0]] == q], QID[PAIRS[:, 0]] != q
            data = RankingData.of_pairs(rows, PAIRS[kept], QID) if pairs is not None else None
            data = data or RankingData.of(rows, np.where(q == QID, np.nan, Y), QID)
            f = left.fit(data.with_prior(known)).predict(rows, prior=known)
            wrong.append(np.mean(f[inside[:, 0]] < f[inside[:, 1]]))
        assert score == pytest.approx(np.mean(wrong), abs=1e-9)


@pytest.mark.thin(3)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("graded", [False, True])
def test_leaving_out_rows_of_one_query_predicts_them_with_their_prior(ties, graded):
    rows, known = X[:25, :4], 0.5 * PRIOR[:25]
    y = PROBLEM.y[:25] if graded else PROBLEM.utility[:25]
    model = RankRLS(alphas=[0.1], ties=ties, scale=False).fit(rows, y, qid=np.zeros(25), prior=known)
    single = RankRLS(0.1, ties=ties, scale=False)
    wrong, order = [], order_of_folds(rows, y, prior=known)
    if ties or not graded:
        parts = [(i, j) for i in range(25) for j in range(i) if y[i] != y[j]]
    else:
        parts = [order[part::10] for part in range(10)]
    for part in parts:
        hidden = y.astype(float).copy()
        hidden[list(part)] = np.nan
        f = single.fit(rows, hidden, qid=np.zeros(25), prior=known).predict(rows, prior=known)
        wrong += [f[i] < f[j] for i in part for j in part if y[i] > y[j]]
    assert model.loo_scores_[0] == pytest.approx(np.mean(wrong))


def test_couplings_are_judged_with_the_prior():
    y = mask_scores(PROBLEM.y, fraction=0.5, random_state=0)
    how = {"views": [[0, 1, 2], [3, 4, 5]], "scale": False}
    model = CoRankRLS(**how, couplings=[0.0], alphas=[1.0], metric="disagreement").fit(X, y, qid=QID, prior=PRIOR)
    wrong = []
    for q in np.unique(QID):
        a, b = np.nonzero((y[:, None] > y) & (QID[:, None] == q) & (q == QID))
        if len(a):
            left = CoRankRLS(**how, coupling=0.0, alpha=1.0)
            hidden = np.where(q == QID, np.nan, y)
            weight = np.where((q == QID) & ~np.isnan(y), 0.0, 1.0)
            f = left.fit(X, hidden, qid=QID, prior=PRIOR, sample_weight=weight).predict(X, prior=PRIOR)
            wrong.append(np.mean(f[a] < f[b]))
    assert model.loo_scores_[0, 0] == pytest.approx(np.mean(wrong), abs=1e-9)


def test_a_margin_rests_on_pairs_that_the_prior_does_not_settle():
    settled = np.where(np.isnan(Y), 0.0, 100.0 * np.nan_to_num(Y))
    assert RankSVM().fit(X, Y, qid=QID, prior=settled).n_support_pairs_ == 0
    assert RankSVM().fit(X, pairs=PAIRS, qid=QID, prior=settled).n_support_pairs_ == 0


def test_a_summary_refuses_a_prior():
    with pytest.raises(InputError, match="a summary does not support a prior"):
        RankRLS().pair_sums(RankingData.of(X, Y, QID).with_prior(PRIOR))
