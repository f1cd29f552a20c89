"""
Solr: linear models and trees of the learning-to-rank module, and a feature store to fill in.

Solr computes in float32. Its trees send a row left if its value is at most the threshold plus 1e-6, so that the number
is written which gives corank's threshold after this addition. Where no float32 does (thresholds near zero), the feature
is divided by a power of two, which is exact, until 1e-6 is less than half a unit in the last place.

A function query returns 0 instead of a negative number, so that fields are read by `FieldValueFeature`.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.deploy.export.describe import Description
from corank.deploy.export.scorers import LinearScorer, TreeScorer
from corank.deploy.export.target import (
    CONSTANT,
    Export,
    ExportOptions,
    as_json,
    floor32,
    linear_weights,
    refuse,
    require_no_constant,
    single_bound,
    single_text,
    target,
    to_single,
    walk_tree,
)
from corank.errors import InputError

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

SLACK = np.float32(1e-6)
"""What Solr adds to every threshold."""

_MODEL = "org.apache.solr.ltr.model."
_NORM = "org.apache.solr.ltr.norm."
_FEATURE = "org.apache.solr.ltr.feature."
# exponents of the powers of two by which a feature may be divided
_EXPONENTS = (0, *range(5, 127))


@target("solr", "Solr", "linear models and trees")
def write_solr(described: Description, options: ExportOptions) -> Export:
    """Return the model for Solr's model store, and a feature store with the names filled in."""
    scorer, names = described.scorer, described.names
    shift, remarks = 0.0 if options.shift is None else float(options.shift), []
    require_no_constant(names)
    if isinstance(scorer, LinearScorer):
        weights, offset = linear_weights(scorer, names, shift), shift - scorer.intercept
        kind, features = "LinearModel", [{"name": name} for name in weights]
        params: dict[str, Any] = {"weights": weights}
        if scorer.intercept:
            remarks.append(f"the intercept {scorer.intercept:.6g} is left out: Solr's LinearModel has none.")
    elif isinstance(scorer, TreeScorer):
        kind, (features, params), offset = "MultipleAdditiveTreesModel", _trees(scorer, names, shift), shift
    else:
        raise refuse("solr", scorer, "export to onnx or json instead")
    store = f"{options.name}_features"
    body = {"class": f"{_MODEL}{kind}", "name": options.name, "store": store, "features": features, "params": params}
    files = {"": as_json(body), ".features.json": as_json(feature_store(store, names, features))}

    return Export(
        target="solr", files=files, remarks=tuple(remarks), offset=offset,
        evaluate=lambda rows: evaluate_solr(json.loads(files[""]), names, rows),
        bound=lambda rows: single_bound(scorer, rows, shift),
        engine="the rules of Solr's module in float32",
    )  # fmt: skip


def feature_store(store: str, names: tuple[str, ...], features: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the body of `PUT schema/feature-store`: fields, to be replaced by the real features."""
    result: list[dict[str, Any]] = [
        {"store": store, "name": name, "class": f"{_FEATURE}FieldValueFeature", "params": {"field": name}}
        for name in names
    ]
    if any(feature["name"] == CONSTANT for feature in features):
        result.append({"store": store, "name": CONSTANT, "class": f"{_FEATURE}ValueFeature", "params": {"value": 1.0}})
    return result


def before_slack(thresholds: Singles) -> tuple[Singles, NDArray[np.bool_]]:
    """
    Return numbers that give some thresholds after Solr's addition of 1e-6, and whether they do exactly.

    >>> numbers, is_exact = before_slack(np.array([0.5, 0.0, 1e-20], dtype=np.float32))
    >>> (numbers + np.float32(1e-6)).tolist()[:2], is_exact.tolist()
    ([0.5, 0.0], [True, True, False])
    """
    near = thresholds - SLACK
    result, is_exact = near.copy(), near + SLACK == thresholds
    for direction in (-np.inf, np.inf):
        tried = near.copy()
        for _ in range(3):
            tried = np.nextafter(tried, np.float32(direction))
            hits = ~is_exact & (tried + SLACK == thresholds)
            result, is_exact = np.where(hits, tried, result), is_exact | hits
    return result, is_exact


def _trees(scorer: TreeScorer, names: tuple[str, ...], shift: float) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    scorer.require_no_missing_zeros("Solr")
    trees = scorer.trees
    thresholds, numbers = floor32(trees.thresholds), np.empty(len(trees.thresholds), dtype=np.float32)
    features: list[dict[str, Any]] = [{"name": name} for name in names]
    for column in np.unique(trees.features).tolist():
        own = trees.features == column
        exponent, numbers[own] = _exact(thresholds[own], names[column])
        if exponent:
            params = {"avg": "0.0", "std": single_text(2.0**-exponent)}
            features[column] = {
                "name": names[column],
                "norm": {"class": f"{_NORM}StandardNormalizer", "params": params},
            }

    def node(k: int, left: Any, right: Any) -> dict[str, Any]:
        threshold = single_text(numbers[k])
        return {"feature": names[trees.features[k]], "threshold": threshold, "left": left, "right": right}

    listed = [{"weight": "1", "root": root} for root in scorer.forms(node, lambda value: {"value": single_text(value)})]
    if shift + scorer.intercept or not listed:
        listed.append({"weight": "1", "root": {"value": single_text(shift + scorer.intercept)}})
    return features, {"trees": listed}


def _exact(thresholds: Singles, name: str) -> tuple[int, Singles]:
    """Return the least exponent e for which all thresholds · 2^e can be written, and the numbers to write."""
    for exponent in _EXPONENTS:
        with np.errstate(over="ignore"):
            scaled = thresholds * np.float32(2.0**exponent)
        if not np.isfinite(scaled).all():
            break
        numbers, is_exact = before_slack(scaled)
        if is_exact.all():
            return exponent, numbers
    raise InputError(
        f"the thresholds of feature {name!r} range from near 0 to very large numbers, which Solr's addition of 1e-6 "
        "merges; rescale the feature, or export to onnx."
    )


def evaluate_solr(body: dict[str, Any], names: tuple[str, ...], rows: Floats) -> Floats:
    """Score rows by the arithmetic of Solr's module, from the body of a request."""
    X = to_single(rows)
    columns = {name: X[:, column] for column, name in enumerate(names)}
    columns[CONSTANT] = np.ones(len(X), dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for feature in body["features"]:
            if "norm" in feature:
                first, second = (np.float32(item) for item in feature["norm"]["params"].values())
                columns[feature["name"]] = (columns[feature["name"]] - first) / second
        params, total = body["params"], np.zeros(len(X), dtype=np.float32)
        if "weights" in params:
            for feature in body["features"]:
                total = total + columns[feature["name"]] * np.float32(params["weights"][feature["name"]])
            return total.astype(np.float64)

        def look(node: dict[str, Any], rows: NDArray[np.int64]) -> Any:
            if "value" in node:
                return np.float32(node["value"])
            goes_left = columns[node["feature"]][rows] <= np.float32(node["threshold"]) + SLACK
            return goes_left, node["left"], node["right"]

        for tree in params["trees"]:
            leaves = np.empty(len(X), dtype=np.float32)
            walk_tree(tree["root"], np.arange(len(X)), leaves, look)
            total = total + np.float32(tree["weight"]) * leaves
    return total.astype(np.float64)
