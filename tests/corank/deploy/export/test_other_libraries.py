"""The JSON of trees in the libraries that define it: XGBoost reads the trees, LightGBM writes the dump."""

from __future__ import annotations

import json

import numpy as np
import pytest

from corank.deploy.export.describe import Description
from corank.deploy.export.target import ExportOptions, to_single
from corank.deploy.export.targets.elasticsearch import write_elasticsearch
from corank.deploy.export.targets.vespa import evaluate_dump, write_vespa
from helpers.hostile_models import rows, trees


def xgboost_model(xgboost, splits, names):
    """A model of XGBoost with the trees of an export, in place of those of a model that it trained itself."""
    X = np.random.default_rng(0).normal(size=(20, len(names)))
    data = xgboost.DMatrix(X, label=X[:, 0])
    booster = xgboost.train({"base_score": 0.0, "objective": "reg:squarederror", "nthread": 1}, data, 1)
    model = json.loads(booster.save_raw("json").decode())
    inner = model["learner"]["gradient_booster"]["model"]
    base = model["learner"]["learner_model_param"]
    base["base_score"] = "[0E0]" if base["base_score"].startswith("[") else "0E0"
    pattern = inner["trees"][0]
    inner["trees"] = [_flat(tree, number, pattern, names) for number, tree in enumerate(splits)]
    inner["tree_info"] = [0] * len(splits)
    inner["iteration_indptr"] = list(range(len(splits) + 1))
    inner["gbtree_model_param"]["num_trees"] = str(len(splits))
    found = xgboost.Booster({"nthread": 1})
    found.load_model(bytearray(json.dumps(model).encode()))
    return found


def _flat(tree, number, pattern, names):
    nodes = {}

    def walk(node, parent):
        nodes[node["nodeid"]] = (node, parent)
        for child in node.get("children", ()):
            walk(child, node["nodeid"])

    walk(tree, 2147483647)
    listed = [nodes[k] for k in range(len(nodes))]
    n = len(listed)
    return {
        **pattern, "id": number, "tree_param": {**pattern["tree_param"], "num_nodes": str(n)},
        "left_children": [node.get("yes", -1) for node, _ in listed],
        "right_children": [node.get("no", -1) for node, _ in listed],
        "parents": [parent for _, parent in listed],
        "split_indices": [names.index(node["split"]) if "split" in node else 0 for node, _ in listed],
        "split_conditions": [node.get("split_condition", node.get("leaf")) for node, _ in listed],
        "default_left": [int("split" in node and node["missing"] == node["yes"]) for node, _ in listed],
        "base_weights": [0.0] * n, "loss_changes": [0.0] * n, "sum_hessian": [1.0] * n, "split_type": [0] * n,
    }  # fmt: skip


@pytest.mark.thin(4)
@pytest.mark.parametrize("seed", range(20))
def test_xgboost_scores_and_dumps_the_same_trees(seed):
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    scorer, names = trees(rng, d), tuple(f"x{j}" for j in range(d))
    export = write_elasticsearch(Description(names, scorer), ExportOptions(), "opensearch")
    definition = json.loads(json.loads(export.files[""])["model"]["model"]["definition"])
    X = rows(rng, 200, d, scorer, missing=True)
    booster = xgboost_model(xgboost, definition["splits"], list(names))
    leaves = booster.predict(xgboost.DMatrix(to_single(X)), pred_leaf=True).reshape(len(X), -1)
    values = [{node["nodeid"]: node["leaf"] for node in _all(tree) if "leaf" in node} for tree in definition["splits"]]
    found = np.array([[values[t][int(leaf)] for t, leaf in enumerate(row)] for row in leaves])
    # the leaves that XGBoost reaches, by its strict comparison in float32, are those of the model
    expected = scorer.leaves(to_single(X).astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(found.astype(np.float32), expected)
    margins = booster.predict(xgboost.DMatrix(to_single(X)), output_margin=True)
    np.testing.assert_allclose(margins, export.evaluate(X), rtol=1e-5, atol=1e-5)
    # XGBoost's own dump has the fields of the plugin's format
    dumped = [json.loads(text) for text in booster.get_dump(dump_format="json")]
    fields = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
    for ours, theirs in zip(definition["splits"], dumped, strict=True):
        for a, b in zip(_all(ours), _all(theirs), strict=True):
            assert set(a) <= set(b)
            assert set(a) in (fields, {"nodeid", "leaf"})
            for key in ("nodeid", "yes", "no", "missing"):
                assert a.get(key) == b.get(key)
            for key in ("split_condition", "leaf"):
                if key in a:
                    assert np.float32(a[key]) == np.float32(b[key])


def _all(tree):
    yield tree
    for child in sorted(tree.get("children", ()), key=lambda child: child["nodeid"]):
        yield from _all(child)


@pytest.mark.thin(4)
@pytest.mark.parametrize("seed", range(20))
def test_lightgbm_scores_the_model_and_dumps_the_export(seed):
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    scorer = trees(rng, d)
    X = rows(rng, 200, d, scorer, missing=True)
    # LightGBM reads numbers up to 1e-35 as zero
    X[np.abs(X) <= 1.1e-35] = 0.0
    theirs = lightgbm.Booster(model_str=scorer.trees.to_lightgbm()).predict(X, num_threads=1)
    np.testing.assert_array_equal(scorer.score(X), theirs)
    export = write_vespa(Description(tuple(f"x{j}" for j in range(d)), scorer), ExportOptions(name="m"))
    dump = json.loads(export.files[""])
    assert dump["feature_names"] == [f"attribute(x{j})" for j in range(d)]
    np.testing.assert_array_equal(evaluate_dump(dump, X), theirs)
    # what Vespa's importer requires
    assert {"objective", "pandas_categorical", "tree_info"} <= dump.keys()
    assert all("tree_structure" in tree for tree in dump["tree_info"])
    assert 'lightgbm("m.json")' in export.files[".profile"].decode()
