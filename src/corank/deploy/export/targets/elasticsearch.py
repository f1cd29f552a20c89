"""
Elasticsearch and OpenSearch: models of the learning-to-rank plugin, linear or trees, and a feature set to fill in.

A linear model is `model/linear`, a string of weights; trees are `model/xgboost+json`. The plugin computes in float32
and sends a row left if its value is *below* the threshold, so that the least float32 above corank's threshold is
written. A linear model has no intercept: a shift is the weight of a feature that is always 1.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.deploy.export.describe import Description
from corank.deploy.export.scorers import LinearScorer, TreeScorer, missing_goes_left
from corank.deploy.export.target import (
    CONSTANT,
    TARGETS,
    Export,
    ExportOptions,
    above32,
    as_json,
    refuse,
    require_no_constant,
    single_bound,
    single_text,
    target,
    to_single,
    walk_tree,
)

Floats = NDArray[np.float64]


@target("elasticsearch", "Elasticsearch", "linear models and trees")
def write_elasticsearch(described: Description, options: ExportOptions, name: str = "elasticsearch") -> Export:
    """Return the body of `_createmodel`, and that of a feature set with the names filled in."""
    scorer, names, label = described.scorer, described.names, TARGETS[name].label
    shift = 0.0 if options.shift is None else float(options.shift)
    remarks: list[str] = []
    require_no_constant(names)
    if isinstance(scorer, LinearScorer):
        weights = {name: float(single_text(w)) for name, w in zip(names, scorer.weights, strict=True)}
        if shift:
            weights[CONSTANT] = float(single_text(shift))
        model = {"type": "model/linear", "definition": json.dumps(weights, ensure_ascii=False)}
        if scorer.intercept:
            remarks.append(f"the intercept {scorer.intercept:.6g} is left out: linear models of the plugin have none.")
        offset = shift - scorer.intercept
    elif isinstance(scorer, TreeScorer):
        scorer.require_no_missing_zeros(label)
        model, offset = _trees(scorer, names, shift), shift
    else:
        raise refuse(name, scorer, "fit LambdaRank(scorer='trees'), or export to onnx or json")
    if options.shift is None:
        remarks.append(f"{label} refuses negative scores: set a shift, so that no score is below 0.")
    body = {"model": {"name": options.name, "model": model}}
    needs_constant = isinstance(scorer, LinearScorer) and shift != 0.0
    files = {"": as_json(body), ".features.json": as_json(feature_set(names, needs_constant))}

    def evaluate(rows: Floats) -> Floats:
        return evaluate_plugin(json.loads(files[""]), names, rows, missing=name == "opensearch")

    return Export(
        target=name, files=files, evaluate=evaluate,
        bound=lambda rows: single_bound(scorer, rows, shift), remarks=tuple(remarks), offset=offset,
        engine=f"the rules of {label}'s plugin in float32",
    )  # fmt: skip


target("opensearch", "OpenSearch", "linear models and trees")(partial(write_elasticsearch, name="opensearch"))


def feature_set(names: tuple[str, ...], constant: bool = False) -> dict[str, Any]:
    """Return the body of `PUT _ltr/_featureset/NAME`: one template per feature, to be replaced by the real ones."""
    features: list[dict[str, Any]] = [
        {
            "name": name,
            "params": ["keywords"],
            "template_language": "mustache",
            "template": {"match": {name: "{{keywords}}"}},
        }
        for name in names
    ]
    if constant:
        always = {"name": CONSTANT, "params": [], "template_language": "mustache", "template": {"match_all": {}}}
        features.append(always)
    return {"featureset": {"features": features}}


def _trees(scorer: TreeScorer, names: tuple[str, ...], shift: float) -> dict[str, Any]:
    trees = scorer.trees
    thresholds = above32(trees.thresholds)
    left = missing_goes_left(trees.flags, trees.thresholds)

    def node(t: int, at: int, own: int, used: list[int], depth: int) -> dict[str, Any]:
        if at < 0:
            return {"nodeid": own, "leaf": float(single_text(trees.values[int(trees.starts[t]) + t - at - 1]))}
        k = int(trees.starts[t]) + at
        # siblings have adjacent numbers, as in XGBoost
        yes, no = used[0], used[0] + 1
        used[0] += 2
        children = [
            node(t, int(child), number, used, depth + 1)
            for child, number in zip(trees.children[k], (yes, no), strict=True)
        ]
        return {
            "nodeid": own, "depth": depth, "split": names[trees.features[k]],
            "split_condition": float(single_text(thresholds[k])), "yes": yes, "no": no,
            "missing": yes if left[k] else no, "children": children,
        }  # fmt: skip

    empty = np.diff(trees.starts) == 0
    splits = [node(t, -1 if empty[t] else 0, 0, [1], 0) for t in range(trees.n_trees)]
    if shift + scorer.intercept or not splits:
        splits.append({"nodeid": 0, "leaf": float(single_text(shift + scorer.intercept))})
    return {
        "type": "model/xgboost+json",
        "definition": json.dumps({"objective": "rank:pairwise", "splits": splits}, ensure_ascii=False),
    }


def evaluate_plugin(body: dict[str, Any], names: tuple[str, ...], rows: Floats, *, missing: bool) -> Floats:
    """Score rows by the plugin's arithmetic, from the body of a request."""
    model = body["model"]["model"]
    definition = json.loads(model["definition"])
    X = to_single(rows)
    columns = {name: X[:, column] for column, name in enumerate(names)}
    columns[CONSTANT] = np.ones(len(X), dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.zeros(len(X), dtype=np.float32)
        if model["type"] == "model/linear":
            for name, weight in definition.items():
                total = total + columns[name] * np.float32(weight)
            return total.astype(np.float64)

        def look(node: dict[str, Any], rows: NDArray[np.int64]) -> Any:
            if "leaf" in node:
                return np.float32(node["leaf"])
            values = columns[node["split"]][rows]
            goes_left = values < np.float32(node["split_condition"])
            if missing:
                goes_left = np.where(np.isnan(values), node["missing"] == node["yes"], goes_left)
            return goes_left, *node["children"]

        for tree in definition["splits"]:
            leaves = np.empty(len(X), dtype=np.float32)
            walk_tree(tree, np.arange(len(X)), leaves, look)
            total = total + leaves
    return total.astype(np.float64)
