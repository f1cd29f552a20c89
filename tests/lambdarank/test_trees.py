"""Trees: LightGBM's own lambdas as a rival, its text in our file, and texts that were tampered with."""

from __future__ import annotations

import importlib

import lightgbm
import numpy as np
import pytest

import corank
from corank import LambdaRank, make_ranking
from corank.errors import InputError, UsageWarning
from corank.lambdarank.trees import DEFAULTS, check_trees

PROBLEM = make_ranking(60, 12, random_state=0)
X, Y, QID = PROBLEM.X, PROBLEM.y, PROBLEM.qid


def test_trees_are_newton_steps_of_lightgbm():
    """One tree with our lambdas and LightGBM's regression on a target that asks for the same leaves."""
    lambdas = lambda scores, labels: (labels - labels.mean() - scores, np.ones(len(labels)))  # noqa: E731
    params = {"num_leaves": 6, "lambda_l2": 0.0, "feature_fraction": 1.0, "min_sum_hessian_in_leaf": 5.0}
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


def test_the_text_is_lightgbms(tmp_path):
    model = LambdaRank("ndcg", "trees", n_steps=7, random_state=0).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(lightgbm.Booster(model_str=model.trees_).predict(X), model.predict(X))
    assert lightgbm.Booster(model_str=model.trees_).num_trees() == model.n_iter_ == 7
    corank.save(model, tmp_path / "trees.safetensors")
    again = corank.load(tmp_path / "trees.safetensors")
    assert again.trees_ == model.trees_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_texts_that_lead_astray_are_refused(tmp_path):
    model = LambdaRank("ndcg", "trees", n_steps=3, random_state=0).fit(X, Y, qid=QID)
    check_trees(model.trees_, 20)
    text = model.trees_
    lines = {line.split("=")[0]: line for line in text.split("\nTree=")[1].splitlines() if "=" in line}

    def with_line(name, value):
        return text.replace(lines[name], f"{name}={value}", 1)

    n = int(lines["num_leaves"].split("=")[1])
    bad = [
        "not trees",
        text.replace("max_feature_idx=19", "max_feature_idx=5"),
        with_line("num_leaves", 500),
        with_line("leaf_value", "1 2"),
        with_line("split_feature", " ".join(["77"] * (n - 1))),
        with_line("left_child", " ".join(["0"] * (n - 1))),
        with_line("right_child", " ".join(["99999"] * (n - 1))),
        with_line("leaf_value", " ".join(["nan"] * n)),
        with_line("num_cat", "x"),
    ]
    for forged in bad:
        with pytest.raises((InputError, ValueError, KeyError)):
            check_trees(forged, 20)
        model.trees_ = forged
        corank.save(model, tmp_path / "forged.safetensors", overwrite=True)
        with pytest.raises(InputError, match="whose parts do not fit together"):
            corank.load(tmp_path / "forged.safetensors")


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
        assert model.score(made.X, made.y, qid=made.qid) > 0.9
    with pytest.warns(UsageWarning, match="no tree could be grown"):
        LambdaRank("ranknet", "trees", tree_params={"min_sum_hessian_in_leaf": 1e9}).fit(made.X, made.y, qid=made.qid)
    with pytest.raises(InputError, match="LightGBM refuses tree_params"):
        LambdaRank(scorer="trees", tree_params={"num_leaves": 1}).fit(made.X, made.y, qid=made.qid)
