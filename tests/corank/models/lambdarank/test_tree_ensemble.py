"""Trees as arrays: the scores of LightGBM to the last bit, its text, and forged arrays, texts and files."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace

import lightgbm
import numpy as np
import pandas
import pytest
from scipy import sparse

import corank
from corank import LambdaRank, make_ranking
from corank.core.models.trees import score_small
from corank.errors import InputError
from corank.models.lambdarank import TreeEnsemble
from helpers.forge import forge_model

PROBLEM = make_ranking(60, 12, random_state=0)
X, Y, QID = PROBLEM.X * (np.abs(PROBLEM.X) > 0.3), PROBLEM.y, PROBLEM.qid


def booster(**own):
    params = {"objective": "l2", "num_leaves": 16, "min_data_in_bin": 1, "verbosity": -1, "num_threads": 1, **own}
    return lightgbm.train(params, lightgbm.Dataset(X, Y), 20)


@pytest.fixture(scope="module")
def model():
    return LambdaRank("ndcg", "trees", n_steps=7, random_state=0).fit(X, Y, qid=QID)


PARAMS = [
    {}, {"zero_as_missing": True}, {"use_missing": False}, {"num_leaves": 200, "min_data_in_leaf": 1},
    {"min_data_in_leaf": 5000},
]  # fmt: skip


@pytest.mark.parametrize("params", PARAMS)
def test_scores_are_lightgbms_bit_for_bit(params):
    theirs = booster(**params)
    trees = TreeEnsemble.from_lightgbm(theirs.model_to_string())
    assert trees.n_trees == theirs.num_trees()
    for rows in (X, sparse.csr_matrix(X), X.astype(np.float32), X[:1]):
        expected = theirs.predict(rows, raw_score=True)
        assert trees.score_rows(rows).tobytes() == expected.tobytes()
        if isinstance(rows, np.ndarray):
            assert score_small(trees._arrays, rows).tobytes() == expected.tobytes()


@pytest.mark.thin(3)
@pytest.mark.parametrize("params", PARAMS)
def test_lightgbm_reads_the_text(params):
    theirs = booster(**params)
    text = TreeEnsemble.from_lightgbm(theirs.model_to_string()).to_lightgbm()
    again = lightgbm.Booster(model_str=text)
    assert (again.num_trees(), again.num_feature()) == (theirs.num_trees(), theirs.num_feature())
    assert again.predict(X).tobytes() == theirs.predict(X, raw_score=True).tobytes()
    assert again.predict(X, pred_contrib=True).tobytes() == theirs.predict(X, pred_contrib=True).tobytes()
    for kind in ("split", "gain"):
        np.testing.assert_array_equal(again.feature_importance(kind), theirs.feature_importance(kind))
    assert TreeEnsemble.from_lightgbm(again.model_to_string()).to_lightgbm() == text


def test_an_empty_ensemble_scores_zero():
    trees = TreeEnsemble.empty(3)
    assert repr(trees) == "TreeEnsemble(0 trees, 0 leaves, 3 features)"
    assert trees.score_rows(np.ones((2, 3))).tolist() == [0.0, 0.0]
    assert lightgbm.Booster(model_str=trees.to_lightgbm()).predict(np.ones((2, 3))).tolist() == [0.0, 0.0]


def test_a_model_keeps_its_bits_in_a_file(model, tmp_path):
    assert model.trees_.n_trees == model.n_iter_ == 7
    corank.save(model, tmp_path / "trees.safetensors")
    again = corank.load(tmp_path / "trees.safetensors")
    for field in fields(TreeEnsemble):
        np.testing.assert_array_equal(getattr(again.trees_, field.name), getattr(model.trees_, field.name))
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    theirs = lightgbm.Booster(model_str=again.trees_.to_lightgbm())
    assert theirs.predict(X).tobytes() == model.predict(X).tobytes()


def test_a_saved_model_needs_no_lightgbm(model, tmp_path):
    corank.save(model, tmp_path / "trees.safetensors")
    code = """
import sys
sys.modules["lightgbm"] = None
import corank
model = corank.load(sys.argv[1])
print(model.predict([[0.5] * 20])[0], model.trees_.to_lightgbm().startswith("tree"))
corank.save(model, sys.argv[1], overwrite=True)
print([name for name in sys.modules if name.startswith("lightgbm.")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "trees.safetensors"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{model.predict([[0.5] * 20])[0]} True\n[]\n"


def test_a_wrong_number_of_columns_is_refused(model):
    for rows in (X[:, :5], sparse.csr_array(X[:, :5])):
        with pytest.raises(InputError, match="X has 5 features, but the trees have 20"):
            model.trees_.score_rows(rows)


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


FORGED = {
    "no node": ("children", lambda a: changed(a, (0, 0), 99999)),
    "no leaf": ("children", lambda a: changed(a, (0, 0), -99999)),
    "cycle": ("children", lambda a: changed(a, (3, 1), 0)),
    "children of doubles": ("children", lambda a: a.astype(float)),
    "children in a row": ("children", np.ravel),
    "feature": ("features", lambda a: changed(a, 3, 20)),
    "features of doubles": ("features", lambda a: a.astype(float)),
    "feature too few": ("features", lambda a: a[1:]),
    "threshold nan": ("thresholds", lambda a: changed(a, 0, np.nan)),
    "threshold inf": ("thresholds", lambda a: changed(a, 0, np.inf)),
    "threshold list": ("thresholds", lambda a: a.tolist()),
    "flag 1": ("flags", lambda a: changed(a, 2, 1)),
    "flag 12": ("flags", lambda a: changed(a, 2, 12)),
    "value nan": ("values", lambda a: changed(a, -1, np.nan)),
    "values overflow": ("values", lambda a: np.full_like(a, 1e308)),
    "value too many": ("values", lambda a: np.r_[a, 0.0]),
    "no start": ("starts", lambda a: a[:0]),
    "starts late": ("starts", lambda a: changed(a, 0, 1)),
    "starts fall": ("starts", lambda a: changed(a, 2, 1)),
    "starts end": ("starts", lambda a: changed(a, -1, 10**9)),
    "starts below zero": ("starts", lambda a: changed(a, 1, -(2**63))),
    "starts of int32": ("starts", lambda a: a.astype(np.int32)),
    "count": ("node_counts", lambda a: changed(a, 0, -1)),
    "gain": ("gains", lambda a: changed(a, 0, np.inf)),
    "features 0": ("n_features", lambda a: 0),
    "features 2^40": ("n_features", lambda a: 2**40),
    "features true": ("n_features", lambda a: True),
    "features 1.5": ("n_features", lambda a: 20.5),
}


@pytest.mark.parametrize("name", FORGED)
def test_invalid_arrays_are_refused(model, name, tmp_path):
    field, change = FORGED[name]
    value = change(getattr(model.trees_, field))
    with pytest.raises(InputError, match="trees"):
        replace(model.trees_, **{field: value})
    corank.save(model, tmp_path / "m")

    def forge(header, tensors):
        trees = header["state"]["trees_"]["noun"]["fields"]
        if isinstance(value, np.ndarray):
            tensors[trees[field]["array"]] = np.ascontiguousarray(value)
        else:
            tensors.pop(f"trees_.{field}", None)
            trees[field] = value

    forge_model(tmp_path / "m", forge)
    with pytest.raises(InputError, match="contains an invalid value"):
        corank.load(tmp_path / "m")


@pytest.mark.parametrize("value", ["", "tree\nversion=v4", 5, None, []])
def test_models_whose_trees_are_no_ensemble_are_refused(model, value, tmp_path):
    corank.save(model, tmp_path / "m")

    def forge(header, tensors):
        header["state"]["trees_"] = value
        tensors.clear()

    forge_model(tmp_path / "m", forge)
    with pytest.raises(InputError, match="parts do not fit together"):
        corank.load(tmp_path / "m")


def test_trees_of_other_columns_are_refused(model, tmp_path):
    corank.save(model, tmp_path / "m")
    forge_model(tmp_path / "m", lambda header, tensors: header["state"].update(n_features_in_=19))
    with pytest.raises(InputError, match="trees_ is not of 19 features"):
        corank.load(tmp_path / "m")


def test_texts_that_crash_lightgbm_are_refused(model):
    text = model.trees_.to_lightgbm()
    lines = {line.split("=")[0]: line for line in text.split("\nTree=1")[0].splitlines() if "=" in line}

    def with_line(name, value):
        return text.replace(lines[name], f"{name}={value}", 1)

    first = lines["split_feature"].split("=")[1].split()
    left = lines["left_child"].split("=")[1].split()
    bad = [
        "", "tree", "not trees", text.replace("max_feature_idx=19", "max_feature_idx=5"),
        *(with_line("num_tree_per_iteration", n) for n in (0, -1, 10**9)),
        *(with_line("num_leaves", n) for n in (500, -1, 10**18, "9" * 5000, "x")),
        with_line("split_feature", " ".join(["99999999e-8", *first[1:]])),
        with_line("left_child", " ".join(["9999999e-7", *left[1:]])),
        with_line("left_child", " ".join(["1e300", *left[1:]])),
        with_line("decision_type", " ".join(["1e400"] * len(left))),
        with_line("leaf_value", "1 2"), with_line("leaf_value", "nan " * 16), with_line("num_cat", "1"),
        with_line("is_linear", "1"), text.replace("\nTree=1\n", "\rTree=1\n"),
        text.replace("label_index=0", "average_output"),
    ]  # fmt: skip
    for forged in bad:
        with pytest.raises(InputError, match="not a LightGBM model that corank can read"):
            TreeEnsemble.from_lightgbm(forged)
    # sizes of trees in bytes are not used
    again = TreeEnsemble.from_lightgbm(with_line("tree_sizes", "1 -1 99999999999"))
    assert again.score_rows(X).tobytes() == model.predict(X).tobytes()


def categorical_problem(n_queries, seed):
    rng = np.random.default_rng(seed)
    codes, number = rng.integers(0, 40, 12 * n_queries), rng.normal(size=12 * n_queries)
    worth = np.random.default_rng(5).normal(size=40)[codes] + number + 0.3 * rng.normal(size=len(codes))
    colours = pandas.Categorical([f"c{code:02}" for code in codes], categories=[f"c{k:02}" for k in range(40)])
    X = pandas.DataFrame({"number": number, "colour": colours, "shape": colours.codes % 2 == 0})
    return X.astype({"shape": "category"}), np.digitize(worth, [0.0, 1.0]), np.repeat(np.arange(n_queries), 12)


@pytest.fixture(scope="module")
def of_categories():
    X, y, qid = categorical_problem(30, 0)
    with pytest.warns(UserWarning, match="columns of categories"):
        return LambdaRank(scorer="trees", n_steps=30, random_state=0).fit(X, y, qid=qid)


def test_trees_split_columns_of_categories_into_sets(of_categories, tmp_path):
    trees, (X, y, qid) = of_categories.trees_, categorical_problem(30, 1)
    assert trees.groups.tolist() == [[1, 41], [41, 43]]
    assert (trees.sets[:, :40].sum(axis=1) > 1).any()
    scores = of_categories.predict(X)
    # LightGBM itself, with codes of categories
    codes = np.zeros((len(X), 43))
    codes[:, [0, 1, 41]] = np.column_stack([X["number"], X["colour"].cat.codes, X["shape"].cat.codes])
    theirs = lightgbm.Booster(model_str=trees.to_lightgbm())
    assert theirs.predict(codes, raw_score=True).tobytes() == scores.tobytes()
    assert score_small(trees._arrays, trees.coded(one_hot(X))).tobytes() == scores.tobytes()
    assert trees.score_rows(sparse.csr_array(one_hot(X))).tobytes() == scores.tobytes()
    assert TreeEnsemble.from_lightgbm(trees.to_lightgbm(), trees.groups).to_lightgbm() == trees.to_lightgbm()
    # contributions add up; a category that was not in fit is as a missing one
    contributions = of_categories.predict(X, pred_contrib=True)
    np.testing.assert_allclose(contributions.sum(axis=1), scores)
    new, missing = X.astype({"colour": object}), X.astype({"colour": object})
    new["colour"], missing["colour"] = "other", None
    assert of_categories.predict(new).tobytes() == of_categories.predict(missing).tobytes()
    corank.save(of_categories, tmp_path / "model")
    assert corank.load(tmp_path / "model").predict(X).tobytes() == scores.tobytes()
    # better than one category at a time, with 30 queries of 40 categories
    plain = LambdaRank(scorer="trees", n_steps=30, random_state=0, tree_params={"categorical_feature": ""})
    plain.fit(*categorical_problem(30, 0)[:2], qid=categorical_problem(30, 0)[2])
    assert plain.trees_.groups is None
    assert of_categories.score(X, y, qid=qid) > plain.score(X, y, qid=qid)


def one_hot(X):
    return np.hstack([X[["number"]], pandas.get_dummies(X[["colour", "shape"]])]).astype(float)


def test_targets_refuse_sets_of_categories(of_categories):
    with pytest.raises(InputError, match="categorical_feature"):
        corank.deploy.export_model(of_categories, "model.onnx", to="onnx")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"groups": None}, "missing"), ({"sets": None}, "missing"), ({"groups": np.array([[1, 99]])}, "ranges"),
        ({"groups": np.array([[41, 43], [1, 41]])}, "ranges"), ({"groups": np.array([[1, 1]])}, "empty"),
        ({"groups": np.array([[1, 41, 43]])}, "ranges"),
        ({"groups": np.array([1, 41])}, "dimensions"), ({"sets": np.zeros((1, 2, 3), bool)}, "dimensions"),
        ({"sets": np.zeros((0, 40), bool)}, "do not exist"), ({"groups": np.array([[2, 41]])}, "outside"),
    ],
)  # fmt: skip
def test_forged_sets_are_refused(of_categories, change, why):
    with pytest.raises(InputError, match=why):
        replace(of_categories.trees_, **change)
