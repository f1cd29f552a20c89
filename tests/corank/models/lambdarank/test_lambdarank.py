"""LambdaRank: gradients by finite differences, resumed runs, validation, refused arguments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import corank
from corank import LambdaRank, make_ranking
from corank.base.base import Ranker
from corank.data.ranking import RankingData
from corank.data.splits import mask_scores
from corank.errors import InputError
from corank.metrics import evaluate
from corank.models.lambdarank import Lambda
from corank.models.lambdarank.training import N_CHECKS, Linear, Perceptron, QueryOrder, network_inputs, score_network

PROBLEM = make_ranking(40, (4, 12), random_state=0)
X, QID = PROBLEM.X, PROBLEM.qid
Y = mask_scores(PROBLEM.y, fraction=0.2, random_state=0)
OTHER = make_ranking(30, (4, 12), random_state=0)


def own_lambda(scores, labels):
    """Forces of the tests' own."""
    return labels - labels.mean() - 0.1 * (scores - scores.mean())


@pytest.mark.parametrize("hidden", [(), (3,), (4, 3)])
def test_gradients_of_weights_are_finite_differences(hidden):
    rng = np.random.default_rng(0)
    Z, rows, lambdas = rng.normal(size=(9, 5)), np.array([4, 1, 7, 7]), rng.normal(size=4)
    scorer = Perceptron(Z, hidden) if hidden else Linear(Z)
    parameters = [rng.normal(size=part.shape) for part in scorer.start(rng)]
    found = scorer.gradient(parameters, scorer.score(parameters, rows)[1], lambdas)
    for part, slopes in zip(parameters, found, strict=True):
        for at in np.ndindex(part.shape):
            kept = part[at]
            part[at] = kept + 1e-6
            up = lambdas @ scorer.score(parameters, rows)[0]
            part[at] = kept - 1e-6
            down = lambdas @ scorer.score(parameters, rows)[0]
            part[at] = kept
            assert slopes[at] == pytest.approx((up - down) / 2e-6, abs=1e-7)


def test_linear_ranknet_comes_to_the_minimum_of_its_cost():
    rows = np.flatnonzero(~np.isnan(Y))
    winners, losers = np.array(
        [(i, j) for i in rows for j in rows if QID[i] == QID[j] and Y[i] > Y[j]]
    ).T  # fmt: skip
    D = X[winners] - X[losers]

    def cost(w):
        return np.logaddexp(0.0, -D @ w).sum(), -D.T @ (1.0 / (1.0 + np.exp(D @ w)))

    best = minimize(cost, np.zeros(X.shape[1]), jac=True, tol=1e-12)
    model = LambdaRank("ranknet", n_steps=2000, weight_decay=0.0).fit(X, Y, qid=QID)
    assert cost(model.coef_)[0] <= best.fun * (1 + 1e-4)
    np.testing.assert_allclose(model.coef_, best.x, atol=0.05)


def test_own_lambdas_teach():
    for scorer in ("linear", "mlp", "trees"):
        model = LambdaRank(own_lambda, scorer, n_steps=40, random_state=0).fit(X, Y, qid=QID)
        assert model.score(X, PROBLEM.y, qid=QID) > 0.7
    one = LambdaRank(own_lambda, n_steps=30).fit(X, Y, qid=QID)
    other = LambdaRank(Lambda.of(own_lambda), n_steps=30).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_regression_learns_the_level():
    model = LambdaRank("regression", n_steps=2000, weight_decay=0.0).fit(X, Y, qid=QID)
    judged = ~np.isnan(Y)
    A = np.column_stack([X[judged], np.ones(judged.sum())])
    best = np.linalg.lstsq(A, Y[judged])[0]
    np.testing.assert_allclose(model.predict(X), X @ best[:-1] + best[-1], atol=0.05)


@pytest.mark.parametrize("scorer", ["linear", "mlp"])
def test_steps_go_on_bit_for_bit(scorer, tmp_path):
    whole = LambdaRank("ndcg", scorer, n_steps=30, batch=8, random_state=1).fit(X, Y, qid=QID)
    part = LambdaRank("ndcg", scorer, n_steps=13, batch=8, random_state=1).partial_fit(X, Y, qid=QID)
    corank.save(part, tmp_path / "part.safetensors")
    part = corank.load(tmp_path / "part.safetensors").set_params(n_steps=17).partial_fit(X, Y, qid=QID)
    np.testing.assert_array_equal(part.predict(X), whole.predict(X))
    assert part.n_iter_ == whole.n_iter_ == 30


def test_every_query_comes_once_in_a_pass():
    order = QueryOrder(10, 4, np.arange(4, dtype=np.uint32))
    for n_pass in range(3):
        batches = [order.queries(3 * n_pass + k) for k in range(3)]
        assert sorted(np.concatenate(batches)) == list(range(10))
        assert max(map(len, batches)) <= 4
    np.testing.assert_array_equal(QueryOrder(10, 4, np.arange(4, dtype=np.uint32)).queries(4), order.queries(4))


def test_a_perceptron_predicts_in_blocks(monkeypatch):
    model = LambdaRank("ndcg", "mlp", hidden=(4, 3), n_steps=5, random_state=0).fit(X, Y, qid=QID)
    before = model.predict(X)
    monkeypatch.setattr("corank.models.lambdarank.training._BLOCK", 7)
    np.testing.assert_allclose(model.predict(X), before, rtol=1e-12)
    z = network_inputs(X * model.column_scale_, model.column_mean_)
    by_hand = np.tanh(np.tanh(z @ model.layer_coefs_[0] + model.layer_intercepts_[0]) @ model.layer_coefs_[1]
                      + model.layer_intercepts_[1]) @ model.layer_coefs_[2] + model.layer_intercepts_[2]  # fmt: skip
    np.testing.assert_allclose(before, by_hand[:, 0], rtol=1e-10)
    assert score_network(X[:0], model.column_mean_, []).shape == (0,)


@pytest.mark.parametrize("scorer", ["linear", "mlp", "trees"])
def test_early_stopping_keeps_the_best_check(scorer):
    eval_set = (OTHER.X, OTHER.y, OTHER.qid)
    model = LambdaRank("ndcg@5", scorer, n_steps=60, early_stopping=True, random_state=0)
    model.fit(X, Y, qid=QID, eval_set=eval_set)
    errors = model.validation_errors_
    assert len(errors) <= N_CHECKS
    found = 1 - evaluate(OTHER.y, model.predict(OTHER.X), OTHER.qid, "nDCG@5")["nDCG@5"].mean
    assert found == pytest.approx(errors.min(), abs=1e-9)
    # eval_set only: the last model is kept
    model.set_params(early_stopping=False, metric="AP").fit(X, Y, qid=QID, eval_set=RankingData.of(*eval_set))
    assert len(model.validation_errors_) == N_CHECKS
    found = 1 - evaluate(OTHER.y, model.predict(OTHER.X), OTHER.qid, "AP")["AP"].mean
    assert model.n_iter_ == 60
    assert found == pytest.approx(model.validation_errors_[-1], abs=1e-9)


def test_queries_are_set_aside():
    model = LambdaRank("ranknet", n_steps=50, early_stopping=True, validation_fraction=0.3, random_state=0)
    model.fit(X, Y, qid=QID)
    assert 0 < len(model.validation_errors_) <= N_CHECKS
    pairs = [(i, j) for i in range(len(Y)) for j in range(len(Y)) if QID[i] == QID[j] and Y[i] > Y[j]]
    assert 0 < model.fit(X, pairs=pairs, qid=QID).validation_errors_.min() < 0.5


def test_unscored_rows_and_queries_of_one_grade_teach_nothing():
    judged = ~np.isnan(Y)
    y = Y.copy()
    y[np.flatnonzero(QID == 0)] = 1.0
    model = LambdaRank("ndcg", n_steps=20, scale=False).fit(X, y, qid=QID)
    kept = judged & (QID != 0)
    other = LambdaRank("ndcg", n_steps=20, scale=False).fit(X[kept], y[kept], qid=QID[kept])
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-12)
    grades = [np.unique(y[(q == QID) & ~np.isnan(y)]) for q in np.unique(QID)]
    assert model.n_skipped_queries_ == sum(len(found) == 1 for found in grades)


def test_ctrl_c_keeps_the_steps_so_far(monkeypatch):
    calls = []

    def interrupting(scores, labels):
        calls.append(1)
        if len(calls) > 200:
            raise KeyboardInterrupt
        return own_lambda(scores, labels)

    for scorer in ("linear", "trees"):
        calls.clear()
        model = LambdaRank(interrupting, scorer, n_steps=1000, random_state=0)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y, qid=QID)
        assert 0 < model.n_iter_ < 1000
        assert model.score(X, PROBLEM.y, qid=QID) > 0.5


def test_weighted_sums_and_named_functions_are_saved(tmp_path):
    for at, lambdas in enumerate(("0.5*ndcg@3 + regression", Lambda.of("map") + 2 * Lambda.of("wta"))):
        model = LambdaRank(lambdas, n_steps=5).fit(X, Y, qid=QID)
        corank.save(model, tmp_path / f"{at}.safetensors")
        again = corank.load(tmp_path / f"{at}.safetensors")
        assert again.lambdas == lambdas
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(InputError, match=r"function.* cannot be saved"):
        corank.save(LambdaRank(own_lambda, n_steps=5).fit(X, Y, qid=QID), tmp_path / "own.safetensors")


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"lambdas": "ndgc"}, "did you mean 'ndcg'"),
        ({"lambdas": 3}, "lambdas is 3; pass a Lambda, or a name, or a function, or None"),
        ({"scorer": "tree"}, "scorer is 'tree'; pass 'linear' or 'mlp' or 'trees'"),
        ({"hidden": 3}, "hidden is 3; pass widths of layers"),
        ({"metric": "nDGC"}, "is not a known metric"),
        ({"tree_params": {"num_leaves": 3}}, "tree_params was given, but scorer is 'linear'"),
        (
            {"scorer": "trees", "tree_params": {"num_leafs": 3}},
            "'num_leafs', which is not a LightGBM parameter; did you mean",
        ),
        ({"scorer": "trees", "tree_params": {"n_estimators": 3}}, "which corank sets or does not support; use n_steps"),
    ],
)
def test_parameters_that_make_no_sense(params, sentence):
    with pytest.raises(InputError, match=sentence):
        LambdaRank(**params).fit(X, Y, qid=QID)


def test_what_cannot_be_learnt_from():
    pairs = [(0, 1)]
    with pytest.raises(InputError, match="'ndcg', which needs grades"):
        LambdaRank("ndcg").fit(X, pairs=pairs, qid=np.zeros(len(X)))
    with pytest.raises(InputError, match=r"'map\(rel=9\)' is zero for all \d+ judged rows"):
        LambdaRank("map(rel=9)").fit(X, Y, qid=QID)
    weights = np.random.default_rng(0).random(len(Y))
    with pytest.raises(InputError, match="'map' is a function of whole lists"):
        LambdaRank("map").fit(X, Y, qid=QID, sample_weight=weights)
    LambdaRank("map", n_steps=2).fit(X, Y, qid=QID, sample_weight=weights[QID])
    with pytest.raises(InputError, match="raise max_grade"):
        LambdaRank("err(max_grade=1)").fit(X, Y, qid=QID)
    with pytest.raises(InputError, match=r"eval_set must be one tuple \(X, y, qid\)"):
        LambdaRank().fit(X, Y, qid=QID, eval_set=(X, Y))
    with pytest.raises(InputError, match="eval_set has 3 features, but X has 20"):
        LambdaRank().fit(X, Y, qid=QID, eval_set=(X[:, :3], Y, QID))
    with pytest.raises(InputError, match=r"AP\(rel=9\) is not defined for any"):
        LambdaRank(metric="AP(rel=9)", n_steps=2).fit(X, Y, qid=QID, eval_set=(X, Y, QID))
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'"):
        LambdaRank(scorer="trees").partial_fit  # noqa: B018
    model = LambdaRank(scorer="mlp", n_steps=2, random_state=0).fit(X, Y, qid=QID).set_params(hidden=(5,))
    with pytest.raises(InputError, match="fitted with another scorer or other widths"):
        model.partial_fit(X, Y, qid=QID)


def test_no_steps_are_a_model_too():
    for scorer in ("linear", "trees"):
        model = LambdaRank(scorer=scorer, n_steps=0).fit(X, Y, qid=QID)
        assert not model.predict(X).any()
        assert isinstance(model, Ranker)


@pytest.mark.parametrize("scorer", ["linear", "trees"])
def test_a_prior_is_where_scores_begin(scorer):
    known, met = PROBLEM.utility, []

    def recorded(scores, labels):
        met.extend(scores)
        return own_lambda(scores, labels)

    model = LambdaRank(recorded, scorer, n_steps=1, batch=99).fit(X, Y, qid=QID, prior=known)
    assert len(met) >= 200
    assert set(met) <= set(known[~np.isnan(Y)])
    np.testing.assert_array_equal(model.predict(X, prior=known), known + model._score_rows(X))


@pytest.mark.parametrize("scorer", ["linear", "mlp", "trees"])
def test_rows_to_watch_are_judged_with_their_prior(scorer):
    known = OTHER.utility
    model = LambdaRank("ndcg@5", scorer, n_steps=5, random_state=0)
    model.fit(X, Y, qid=QID, prior=PROBLEM.utility, eval_set=(OTHER.X, OTHER.y, OTHER.qid, known))
    found = evaluate(OTHER.y, model.predict(OTHER.X, prior=known), OTHER.qid, "nDCG@5")["nDCG@5"].mean
    assert 1 - found == pytest.approx(model.validation_errors_[-1], abs=1e-9)
    with pytest.raises(InputError, match="prior was given for only one of X and"):
        model.fit(X, Y, qid=QID, eval_set=(OTHER.X, OTHER.y, OTHER.qid, known))


def test_with_rows_to_watch_nothing_is_set_aside():
    one = np.zeros(len(QID))  # a query of which nothing could be set aside
    model = LambdaRank("ranknet", early_stopping=True, n_steps=20, random_state=0)
    model.fit(X[:3], [0, 1, 2], qid=one[:3], eval_set=(X, Y, QID))
    with pytest.raises(InputError):
        model.fit(X[:3], [0, 1, 2], qid=one[:3])


@pytest.mark.parametrize("own", [lambda s, y: s[:1] + 1, lambda s, y: 0.5, lambda s, y: None, lambda s, y: "ab"])
def test_own_lambdas_are_one_per_row(own):
    with pytest.raises(InputError, match=r"returned .*, not one number per row"):
        LambdaRank(own).fit(X, Y, qid=QID)
