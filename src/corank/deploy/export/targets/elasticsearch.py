"""
Elasticsearch and OpenSearch: models of the learning-to-rank plugin, linear or trees, and a feature set to fill in.

A linear model is `model/linear`, a string of weights; trees are `model/xgboost+json`. The plugin computes in float32
and sends a row left if its value is *below* the threshold, so that the least float32 above corank's threshold is
written. A linear model has no intercept: a shift is the weight of a feature that is always 1.

The sum of a linear model and trees becomes two models and a search with two rescorers. They run one after the other:
score ← query_weight · score + rescore_query_weight · score of the model, for the first `window_size` documents in the
order so far; the score of the others is multiplied by `query_weight`. The first rescorer has the `query_weight` 0, so
that the others get 0, and the second one sees the same documents if their first score is above 0, hence the shift.
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
    linear_weights,
    refuse,
    require_no_constant,
    rescored_models,
    single_bound,
    single_text,
    target,
    to_single,
    walk_tree,
)

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


@target("elasticsearch", "Elasticsearch", "linear models, trees and sums of both")
def write_elasticsearch(described: Description, options: ExportOptions, name: str = "elasticsearch") -> Export:
    """Return bodies of `_createmodel`, a feature set with the names filled in, and a search for a sum of two models."""
    names, label = described.names, TARGETS[name].label
    require_no_constant(names)
    models = rescored_models(described.scorer)
    if models is None:
        raise refuse(name, described.scorer, "fit LambdaRank(scorer='trees'), or export to onnx or json")
    shift, remarks = float(options.shift or 0.0), []
    titles = [options.name] if len(models) == 1 else [f"{options.name}_linear", f"{options.name}_trees"]
    bodies = [
        as_json({"model": {"name": title, "model": _model(model, names, shift, label)}})
        for title, model in zip(titles, models, strict=True)
    ]
    offset, linear = shift * len(models), models[0]
    if isinstance(linear, LinearScorer) and linear.intercept:
        remarks.append(f"the intercept {linear.intercept:.6g} is left out: linear models of the plugin have none.")
        offset -= linear.intercept
    if options.shift is None:
        remarks.append(f"{label} refuses negative scores: set a shift, so that no score is below 0.")
    needs_constant = isinstance(linear, LinearScorer) and shift != 0.0
    files = {"": bodies[0], ".features.json": as_json(feature_set(names, needs_constant))}
    search = rescoring_search(titles)
    if len(models) > 1:
        files |= {".trees.json": bodies[1], ".query.json": as_json(search)}
        remarks.append(
            "this is a sum of two models: create both, and send the rescorers of the file .query.json in this order, "
            "with one window_size."
        )

    def evaluate(rows: Floats) -> Floats:
        written = {body["model"]["name"]: body for body in map(json.loads, bodies)}
        return evaluate_search(search, written, names, rows, missing=name == "opensearch")

    return Export(
        target=name, files=files, evaluate=evaluate,
        bound=lambda rows: single_bound(described.scorer, rows, shift), remarks=tuple(remarks), offset=offset,
        engine=f"the rules of {label}'s plugin in float32",
    )  # fmt: skip


target("opensearch", "OpenSearch", "linear models, trees and sums of both")(
    partial(write_elasticsearch, name="opensearch")
)


def _model(scorer: LinearScorer | TreeScorer, names: tuple[str, ...], shift: float, label: str) -> dict[str, Any]:
    if isinstance(scorer, TreeScorer):
        scorer.require_no_missing_zeros(label)
        return _trees(scorer, names, shift)
    definition = json.dumps(linear_weights(scorer, names, shift), ensure_ascii=False)
    return {"type": "model/linear", "definition": definition}


def rescoring_search(models: list[str]) -> dict[str, Any]:
    """Return the body of a search whose first documents have the sum of the scores of some models."""
    rescorers = [
        {
            "window_size": 100,
            "query": {
                "rescore_query": {"sltr": {"params": {"keywords": "QUERY"}, "model": name}},
                "query_weight": float(number > 0), "rescore_query_weight": 1.0, "score_mode": "total",
            },
        }
        for number, name in enumerate(models)
    ]  # fmt: skip
    return {"query": {"match": {"FIELD": "QUERY"}}, "rescore": rescorers}


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


def evaluate_search(
    search: dict[str, Any], models: dict[str, Any], names: tuple[str, ...], rows: Floats, *, missing: bool
) -> Floats:
    """Score rows by the rescorers of a search in float32."""
    total = np.zeros(len(rows), dtype=np.float32)
    for rescorer in search["rescore"]:
        query = rescorer["query"]
        scores = evaluate_plugin(models[query["rescore_query"]["sltr"]["model"]], names, rows, missing=missing)
        with np.errstate(over="ignore", invalid="ignore"):
            total = total * np.float32(query["query_weight"]) + scores * np.float32(query["rescore_query_weight"])
    return total.astype(np.float64)


def evaluate_plugin(body: dict[str, Any], names: tuple[str, ...], rows: Floats, *, missing: bool) -> Singles:
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
            return total

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
    return total
