"""Growing trees: LightGBM's own lambdas as a rival, and inputs that LightGBM cannot use."""

from __future__ import annotations

import importlib

import lightgbm
import numpy as np
import pytest
from scipy import sparse

import corank
from corank import LambdaRank, make_ranking
from corank.errors import InputError, UsageWarning
from corank.models import LGBMRanker
from corank.models.lambdarank.trees import DEFAULTS

PROBLEM = make_ranking(60, 12, random_state=0)
X, Y, QID = PROBLEM.X, PROBLEM.y, PROBLEM.qid


def test_trees_are_newton_steps_of_lightgbm():
    """One tree with our lambdas and LightGBM's regression on a target that asks for the same leaves."""
    lambdas = lambda scores, labels: (labels - labels.mean() - scores, np.ones(len(labels)))  # noqa: E731
    params = {"num_leaves": 6, "lambda_l2": 0.0, "extra_trees": False, "min_sum_hessian_in_leaf": 5.0}
    model = LambdaRank(lambdas, "trees", n_steps=30, eta0=0.3, tree_params=params).fit(X, Y, qid=QID)
    target = Y - (np.bincount(QID, Y) / np.bincount(QID))[QID]
    data = lightgbm.Dataset(X, target, params={"min_data_in_bin": 1})
    theirs = lightgbm.train(
        {**DEFAULTS, **params, "objective": "l2", "learning_rate": 0.3, "boost_from_average": False, "verbosity": -1},
        data, 30,
    )  # fmt: skip
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), rtol=1e-5, atol=1e-6)


def test_the_lambdas_of_lightgbm_grow_as_good_trees():
    problem = make_ranking(160, 12, random_state=1)
    is_test = problem.qid >= 80
    one, other = (problem.X[~is_test], problem.y[~is_test], problem.qid[~is_test]), problem.X[is_test]
    leaves = {"num_leaves": 8, "feature_fraction": 1.0}
    ours = LambdaRank(None, "trees", n_steps=50, tree_params=leaves, random_state=0).fit(one[0], one[1], qid=one[2])
    theirs = lightgbm.LGBMRanker(n_estimators=50, learning_rate=0.1, num_leaves=8, n_jobs=1, verbosity=-1)
    theirs.fit(one[0], one[1].astype(int), group=np.bincount(one[2]))
    scores = [np.asarray(model.predict(other)) for model in (ours, theirs)]
    found = [corank.metrics.ndcg(problem.y[is_test], s, problem.qid[is_test], k=5) for s in scores]
    assert found[0] > found[1] - 0.02


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [1e-36, 1e-300, 1e-320, 1e308])
def test_values_that_lightgbm_loses_are_refused(kind, scale):
    """LightGBM merges values below 1e-35 with zero, and adds neighbouring values, which overflows above 9e307."""
    rows = X.copy()
    rows[:, 3] *= scale / np.abs(X[:, 3]).max()
    how = "multiply it" if scale < 1 else "divide it"
    with pytest.raises(InputError, match=f"column 3 of X has values of size up to .*{how} by a constant"):
        LambdaRank(scorer="trees", n_steps=2).fit(kind(rows), Y, qid=QID)


def test_tiny_values_in_a_column_of_usual_size_are_zeros():
    tiny, zero = X.copy(), X.copy()
    tiny[::3, 3], zero[::3, 3] = 1e-40, 0.0
    model = LambdaRank(scorer="trees", n_steps=5, random_state=0)
    np.testing.assert_array_equal(*(model.fit(rows, Y, qid=QID).predict(rows) for rows in (tiny, zero)))


@pytest.mark.parametrize("X", [np.zeros_like(X), np.full_like(X, 3.0), sparse.csr_array(X.shape)])
def test_constant_columns_grow_no_tree(X):
    with pytest.warns(UsageWarning, match="no tree could be grown"):
        model = LambdaRank(scorer="trees", n_steps=3).fit(X, Y, qid=QID)
    assert model.n_iter_ == model.trees_.n_trees == 0
    assert not model.predict(X).any()


@pytest.mark.parametrize("params", [{"num_class": 3}, {"categorical_feature": [0]}, {"linear_tree": True}])
def test_other_models_than_sums_of_trees_are_refused(params):
    with pytest.raises(InputError, match="which corank sets or does not support"):
        LambdaRank(scorer="trees", tree_params=params).fit(X, Y, qid=QID)


def test_more_threads_give_the_same_trees():
    one = LambdaRank("ndcg", "trees", n_steps=5, random_state=0).fit(X, Y, qid=QID)
    two = LambdaRank("ndcg", "trees", n_steps=5, random_state=0, n_jobs=2).fit(X, Y, qid=QID)
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=1e-9)


def test_a_missing_extra_is_named(monkeypatch):
    real = importlib.import_module

    def refuse(name, *args):
        if name.startswith("lightgbm"):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr("corank.errors.importlib.import_module", refuse)
    with pytest.raises(ImportError, match=r"pip install 'corank\[trees\]'"):
        LambdaRank("ndcg", "trees").fit(X, Y, qid=QID)


def test_lambdas_of_one_sign_still_grow_trees():
    made = make_ranking(30, 10, random_state=0)
    for own in (lambda s, y: y - s, lambda s, y: (y - y.mean(), -np.ones(len(s)))):
        model = LambdaRank(own, "trees", n_steps=20, random_state=0).fit(made.X, made.y, qid=made.qid)
        assert model.n_iter_ == 20
        assert model.score(made.X, made.y, qid=made.qid) > 0.85
    with pytest.warns(UsageWarning, match="no tree could be grown"):
        LambdaRank("ranknet", "trees", tree_params={"min_sum_hessian_in_leaf": 1e9}).fit(made.X, made.y, qid=made.qid)
    with pytest.raises(InputError, match="LightGBM refuses tree_params"):
        LambdaRank(scorer="trees", tree_params={"num_leaves": 1}).fit(made.X, made.y, qid=made.qid)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_trees_learn_from_missing_values(kind):
    """Rows whose value is missing are the best ones; a fill by the mean without a mark would lose them."""
    rows = np.random.default_rng(0).normal(size=(600, 3))
    y, qid = (rows[:, 1] > 0.8).astype(float), np.arange(600) // 20
    rows[rows[:, 1] > 0.8, 1] = np.nan
    model = LambdaRank(scorer="trees", n_steps=20, random_state=0).fit(kind(rows), y, qid=qid)
    assert model.score(kind(rows), y, qid=qid) > 0.99
    booster = lightgbm.Booster(model_str=model.trees_.to_lightgbm())
    np.testing.assert_array_equal(model.predict(kind(rows)), booster.predict(rows))


def test_small_data_stays_on_one_thread(monkeypatch):
    used, make = [], lightgbm.Booster
    monkeypatch.setattr(lightgbm, "Booster", lambda params, data: used.append(params) or make(params, data))
    one, two = (LambdaRank(scorer="trees", n_steps=3, n_jobs=n, random_state=0).fit(X, Y, qid=QID) for n in (1, 2))
    assert [params["num_threads"] for params in used] == [1, 1]
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_importances_are_those_of_lightgbm_and_group_is_qid():
    order = np.argsort(QID, kind="stable")
    model = LambdaRank(scorer="trees", n_steps=5, random_state=0).fit(X[order], Y[order], qid=QID[order])
    booster = lightgbm.Booster(model_str=model.trees_.to_lightgbm())
    for kind in ("gain", "split"):
        np.testing.assert_allclose(model.trees_.importances(kind), booster.feature_importance(kind), rtol=1e-6)
    np.testing.assert_allclose(
        model.feature_importances_, booster.feature_importance("gain") / booster.feature_importance("gain").sum()
    )
    sizes = np.unique(QID, return_counts=True)[1]
    again = LambdaRank(scorer="trees", n_steps=5, random_state=0).fit(X[order], Y[order], group=sizes)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(InputError, match="qid and group were both given"):
        model.fit(X, Y, qid=QID, group=sizes)


def test_names_of_lightgbm_are_those_of_corank():
    """A script for LGBMRanker: sizes of queries, lists of validation rows, and names of parameters."""
    problem = make_ranking(30, 10, random_state=0)
    train = problem.qid < 20
    X, y, sizes = problem.X[train], problem.y[train], [10] * 20
    held = problem.X[~train], problem.y[~train]
    theirs = LambdaRank(
        scorer="trees", n_estimators=20, learning_rate=0.3, num_leaves=5, early_stopping=True, random_state=0
    ).fit(X, y, group=sizes, eval_set=[held], eval_group=[[10] * 10])
    ours = LambdaRank(
        scorer="trees", n_steps=20, eta0=0.3, tree_params={"num_leaves": 5}, early_stopping=True, random_state=0
    ).fit(X, y, qid=problem.qid[train], eval_set=(*held, problem.qid[~train]))
    np.testing.assert_array_equal(theirs.predict(X), ours.predict(X))
    assert theirs.best_iteration_ == theirs.trees_.n_trees
    contributions = theirs.predict(X[:7], pred_contrib=True)
    np.testing.assert_allclose(contributions.sum(axis=1), theirs.predict(X[:7]), atol=1e-9)
    for wrong, word in (
        ({"init_score": y}, "prior"),
        ({"categorical_feature": [0]}, "category"),
        ({"eval_metric": "map"}, "metric"),
    ):
        with pytest.raises(TypeError, match=word):
            LambdaRank(scorer="trees").fit(X, y, group=sizes, **wrong)
    for parameters, word in (
        ({"num_leaves": 3}, "num_leaves"),
        ({"scorer": "trees", "n_steps": 3, "n_estimators": 4}, "n_estimators and n_steps"),
    ):
        with pytest.raises(InputError, match=word):
            LambdaRank(**parameters).fit(X, y, group=sizes)
    with pytest.raises(InputError, match="eval_group"):
        LambdaRank(scorer="trees").fit(X, y, group=sizes, eval_set=[held])


def test_what_would_change_nothing_is_refused():
    sizes = np.unique(QID, return_counts=True)[1]
    for given, word in (
        ({"eval_at": "x"}, "eval_at is 'x'"), ({"eval_at": []}, "eval_at"), ({"callbacks": [3]}, "cannot be called"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=word):
            LGBMRanker(2).fit(X, Y, group=sizes, **given)
    for name, value in (("label_gain", [0, 1]), ("lambdarank_truncation_level", 10), ("sigmoid", 2.0)):
        with pytest.raises(InputError, match=f"'{name}', which belongs to LightGBM's objectives"):
            LGBMRanker(2, **{name: value}).fit(X, Y, group=sizes)
    with pytest.raises(InputError, match="scorer was given"):
        LGBMRanker(2, scorer="linear")
    assert not LGBMRanker(2, verbose=None).verbose


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_a_script_for_lightgbm_runs_with_another_import():
    """The same calls give a model of LightGBM, and a model of corank with these parameters."""
    train, held, seen = QID < 30, QID >= 30, {}
    parameters = {
        "objective": "lambdarank", "metric": "ndcg", "n_estimators": 30, "learning_rate": 0.2, "num_leaves": 6,
        "min_child_samples": 4, "random_state": 0, "verbose": -1, "n_jobs": 1,
    }  # fmt: skip
    order = np.argsort(QID, kind="stable")
    first, last = order[train[order]], order[held[order]]
    sizes = [np.unique(QID[rows], return_counts=True)[1] for rows in (first, last)]
    for kind in (lightgbm.LGBMRanker, LGBMRanker):
        model = kind(**parameters).fit(
            X[first], Y[first], group=sizes[0], eval_set=[(X[last], Y[last])], eval_group=[sizes[1]], eval_at=[5],
            callbacks=[lightgbm.early_stopping(5, verbose=False), lightgbm.record_evaluation(seen)],
        )  # fmt: skip
        assert model.predict(X).shape == (len(Y),)
        assert 0 < model.best_iteration_ <= 30
    own = LambdaRank(
        scorer="trees", n_steps=30, eta0=0.2, metric="nDCG@5", random_state=0,
        tree_params={"min_child_samples": 4, "num_leaves": 6},
    ).fit(X[train], Y[train], qid=QID[train], eval_set=(X[held], Y[held], QID[held]),
          callbacks=[lightgbm.early_stopping(5, verbose=False)])  # fmt: skip
    np.testing.assert_array_equal(model.predict(X), own.predict(X))
    with pytest.raises(InputError, match="objective is 'rank_xendcg'"):
        LGBMRanker(objective="rank_xendcg")


def test_callbacks_of_lightgbm_see_the_validation_metric_of_every_tree():
    valid, seen = QID >= 40, {}
    model = LambdaRank(scorer="trees", metric="nDCG@10", n_estimators=60, random_state=0)
    sets = {"eval_set": (X[valid], Y[valid], QID[valid])}
    callbacks = [lightgbm.early_stopping(5, verbose=False), lightgbm.record_evaluation(seen)]
    model.fit(X[~valid], Y[~valid], qid=QID[~valid], callbacks=callbacks, **sets)
    values = seen["valid_0"]["nDCG@10"]
    np.testing.assert_allclose(values, 1.0 - model.validation_errors_)
    assert model.n_iter_ == 1 + int(np.argmax(values)) == len(values) - 5
    last = corank.evaluate(Y[valid], model.predict(X[valid]), QID[valid], "nDCG@10")["nDCG@10"].mean
    assert last == pytest.approx(max(values))
    rates = [lightgbm.reset_parameter(learning_rate=lambda i: 0.12 if i < 10 else 1e-9)]
    model.set_params(n_estimators=20).fit(X, Y, qid=QID, callbacks=rates)
    ten = LambdaRank(scorer="trees", n_estimators=10, random_state=0).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.predict(X), ten.predict(X), atol=1e-6)
    with pytest.raises(InputError, match="callbacks"):
        LambdaRank().fit(X, Y, qid=QID, callbacks=rates)
