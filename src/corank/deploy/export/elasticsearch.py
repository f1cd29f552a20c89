"""
Elasticsearch and OpenSearch: models of the learning-to-rank plugin, linear or trees, and a feature set to fill in.

A linear model is `model/linear`, a string of weights; trees are `model/xgboost+json`. The plugin computes in float32
and sends a row left if its value is *below* the threshold, so that the least float32 above corank's threshold is
written. A linear model has no intercept: a shift is the weight of a feature that is always 1.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.deploy.export.describe import Description
from corank.deploy.export.rounding import above32, single_bound, to_single
from corank.deploy.export.scorers import LinearScorer, Normaliser, TreeScorer, missing_goes_left
from corank.deploy.export.target import Export, ExportOptions, as_json, refuse
from corank.errors import InputError

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

CONSTANT = "corank_constant"
"""Feature that is 1 for every document; its weight is the shift of a linear model."""

LABELS = {"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch"}


def write_elasticsearch(described: Description, options: ExportOptions, target: str = "elasticsearch") -> Export:
    """Return the body of `_createmodel`, and that of a feature set with the names filled in."""
    scorer, names = described.scorer, described.names
    shift = 0.0 if options.shift is None else float(options.shift)
    normaliser: Normaliser | None = None
    remarks: list[str] = []
    if CONSTANT in names:
        raise InputError(f"a feature is called {CONSTANT!r}, which the export uses; rename it.")
    if isinstance(scorer, LinearScorer):
        normaliser = scorer.normaliser
        model, intercept = _linear(scorer, names, shift)
        if intercept:
            remarks.append(f"the intercept {intercept:.6g} is left out: linear models of the plugin have none.")
        offset = shift - intercept
    elif isinstance(scorer, TreeScorer):
        if scorer.has_missing_zeros:
            raise InputError(
                f"trees with zero_as_missing have no counterpart in {LABELS[target]}; fit without it, or use json."
            )
        model, offset = _trees(scorer, names, shift), shift
    else:
        raise refuse(
            LABELS[target],
            scorer,
            "linear models and trees",
            "fit LambdaRank(scorer='trees'), or export to onnx or json",
        )
    if options.shift is None:
        remarks.append(f"{LABELS[target]} refuses negative scores: set a shift, so that no score is below 0.")
    body = {"model": {"name": options.name, "model": model}}
    needs_constant = isinstance(scorer, LinearScorer) and shift != 0.0
    files = {"": as_json(body), ".features.json": as_json(feature_set(names, needs_constant))}

    def evaluate(rows: Floats) -> Floats:
        return evaluate_plugin(json.loads(files[""]), names, rows, missing=target == "opensearch")

    def bound(rows: Floats) -> Floats:
        result = single_bound(scorer, rows, normaliser is not None)
        return result + 2.0**-23 * (abs(shift) + np.abs(scorer.score(np.nan_to_num(rows))))

    return Export(
        target=target, files=files, evaluate=evaluate, bound=bound, remarks=tuple(remarks), offset=offset,
        engine=f"the rules of {LABELS[target]}'s plugin in float32",
    )  # fmt: skip


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


def _linear(scorer: LinearScorer, names: tuple[str, ...], shift: float) -> tuple[dict[str, Any], float]:
    norm = scorer.normaliser
    weights = scorer.weights if norm is None else norm.weights
    definition = {name: _single(weight) for name, weight in zip(names, weights, strict=True)}
    if shift:
        definition[CONSTANT] = _single(shift)
    model: dict[str, Any] = {"type": "model/linear", "definition": json.dumps(definition, ensure_ascii=False)}
    if norm is None:
        return model, scorer.intercept
    keys = ("mean", "standard_deviation") if norm.kind == "standard" else ("minimum", "maximum")
    model["feature_normalizers"] = {
        name: {norm.kind: dict(zip(keys, map(_single, numbers), strict=True))}
        for name, *numbers in zip(names, norm.first, norm.second, strict=True)
    }
    return model, norm.intercept


def _single(value: Any) -> float:
    """Return the shortest decimal number that reads back as the nearest float32."""
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if not np.isfinite(near):
        raise InputError(f"the model holds {float(value):g}, beyond the range of float32; rescale the features.")
    return float(str(near))


def _trees(scorer: TreeScorer, names: tuple[str, ...], shift: float) -> dict[str, Any]:
    trees = scorer.trees
    thresholds = above32(trees.thresholds)
    left = missing_goes_left(trees.flags, trees.thresholds)

    def node(t: int, at: int, own: int, used: list[int], depth: int) -> dict[str, Any]:
        if at < 0:
            return {"nodeid": own, "leaf": _single(trees.values[int(trees.starts[t]) + t - at - 1])}
        k = int(trees.starts[t]) + at
        # siblings have adjacent numbers, as in XGBoost
        yes, no = used[0], used[0] + 1
        used[0] += 2
        children = [
            node(t, int(child), number, used, depth + 1)
            for child, number in zip(trees.children[k], (yes, no), strict=True)
        ]
        return {
            "nodeid": own, "depth": depth, "split": names[trees.features[k]], "split_condition": _single(thresholds[k]),
            "yes": yes, "no": no, "missing": yes if left[k] else no, "children": children,
        }  # fmt: skip

    empty = np.diff(trees.starts) == 0
    splits = [node(t, -1 if empty[t] else 0, 0, [1], 0) for t in range(trees.n_trees)]
    if shift + scorer.intercept or not splits:
        splits.append({"nodeid": 0, "leaf": _single(shift + scorer.intercept)})
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
        for name, norm in model.get("feature_normalizers", {}).items():
            columns[name] = _normalised(columns[name], norm)
        total = np.zeros(len(X), dtype=np.float32)
        if model["type"] == "model/linear":
            for name, weight in definition.items():
                total = total + columns[name] * np.float32(weight)
            return total.astype(np.float64)
        for tree in definition["splits"]:
            leaves = np.empty(len(X), dtype=np.float32)
            _descend(tree, np.arange(len(X)), columns, leaves, missing)
            total = total + leaves
    return total.astype(np.float64)


def _normalised(values: Singles, norm: dict[str, Any]) -> Singles:
    ((kind, numbers),) = norm.items()
    first, second = (np.float32(number) for number in numbers.values())
    return np.asarray((values - first) / (second if kind == "standard" else second - first))


def _descend(
    node: dict[str, Any], rows: NDArray[np.int64], columns: dict[str, Singles], leaves: Singles, missing: bool
) -> None:
    if "leaf" in node:
        leaves[rows] = np.float32(node["leaf"])
        return
    values = columns[node["split"]][rows]
    goes_left = values < np.float32(node["split_condition"])
    if missing:
        goes_left = np.where(np.isnan(values), node["missing"] == node["yes"], goes_left)
    first, second = node["children"]
    _descend(first, rows[goes_left], columns, leaves, missing)
    _descend(second, rows[~goes_left], columns, leaves, missing)
