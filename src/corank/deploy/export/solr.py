"""
Solr: linear models, trees and perceptrons of the learning-to-rank module, and a feature store to fill in.

Solr computes in float32. Its trees send a row left if its value is at most the threshold plus 1e-6, so that the number
is written which gives corank's threshold after this addition. Where no float32 does (thresholds near zero), the feature
is divided by a power of two, which is exact, until 1e-6 is less than half a unit in the last place.

A function query returns 0 instead of a negative number. Fields are therefore read by `FieldValueFeature`, and an input
of a perceptron that may be negative is the difference of two features that are not.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.deploy.export.describe import Description
from corank.deploy.export.rounding import floor32, single_bound, to_single
from corank.deploy.export.scorers import LinearScorer, Normaliser, PerceptronScorer, TreeScorer
from corank.deploy.export.target import Export, ExportOptions, as_json, refuse
from corank.errors import InputError

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

CONSTANT = "corank_constant"
"""Feature that is 1 for every document; its weight is the shift of a linear model."""

SLACK = np.float32(1e-6)
"""What Solr adds to every threshold."""

_MODEL = "org.apache.solr.ltr.model."
_NORM = "org.apache.solr.ltr.norm."
_FEATURE = "org.apache.solr.ltr.feature."
# exponents of the powers of two by which a feature may be divided
_EXPONENTS = (0, *range(5, 127))


def write_solr(described: Description, options: ExportOptions) -> Export:
    """Return the model for Solr's model store, and a feature store with the names filled in."""
    scorer, names = described.scorer, described.names
    shift, remarks = 0.0 if options.shift is None else float(options.shift), []
    if CONSTANT in names:
        raise InputError(f"a feature is called {CONSTANT!r}, which the export uses; rename it.")
    formulas: dict[str, str] = {}
    if isinstance(scorer, LinearScorer):
        kind, features, params, intercept = _linear(scorer, names, shift)
        offset = shift - intercept
        if intercept:
            remarks.append(f"the intercept {intercept:.6g} is left out: Solr's LinearModel has none.")
    elif isinstance(scorer, TreeScorer):
        kind, (features, params), offset = "MultipleAdditiveTreesModel", _trees(scorer, names, shift), shift
    elif isinstance(scorer, PerceptronScorer):
        kind, (features, params), offset = "NeuralNetworkModel", _perceptron(scorer, names, shift), shift
        signs = (1, -1)
        formulas = {
            _symlog(name, sign): _formula(name, scorer, j, sign) for sign in signs for j, name in enumerate(names)
        }
        remarks.append(
            "Solr's networks have no logarithm, so that the features are symlog_NAME and symlog_minus_NAME, which the "
            "feature store computes."
        )
    else:
        raise refuse("Solr", scorer, "linear models, trees and perceptrons", "export to onnx or json instead")
    store = f"{options.name}_features"
    body = {"class": f"{_MODEL}{kind}", "name": options.name, "store": store, "features": features, "params": params}
    files = {"": as_json(body), ".features.json": as_json(feature_store(store, names, formulas, features))}

    def evaluate(rows: Floats) -> Floats:
        values = rows
        if isinstance(scorer, PerceptronScorer):
            values = _solr_symlog(scorer, rows)
        return evaluate_solr(json.loads(files[""]), tuple(formulas) or names, values)

    def bound(rows: Floats) -> Floats:
        result = single_bound(scorer, rows, isinstance(scorer, LinearScorer) and scorer.normaliser is not None)
        return result + 2.0**-23 * (abs(shift) + np.abs(scorer.score(np.nan_to_num(rows))))

    return Export(
        target="solr", files=files, evaluate=evaluate, bound=bound, remarks=tuple(remarks), offset=offset,
        engine="the rules of Solr's module in float32",
    )  # fmt: skip


def feature_store(
    store: str, names: tuple[str, ...], formulas: dict[str, str], features: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the body of `PUT schema/feature-store`: fields or formulas, to be replaced by the real ones."""
    parts = [(name, "SolrFeature", {"q": formula}) for name, formula in formulas.items()]
    parts = parts or [(name, "FieldValueFeature", {"field": name}) for name in names]
    result: list[dict[str, Any]] = [
        {"store": store, "name": name, "class": f"{_FEATURE}{kind}", "params": params} for name, kind, params in parts
    ]
    if any(feature["name"] == CONSTANT for feature in features):
        result.append({"store": store, "name": CONSTANT, "class": f"{_FEATURE}ValueFeature", "params": {"value": 1.0}})
    return result


def _linear(
    scorer: LinearScorer, names: tuple[str, ...], shift: float
) -> tuple[str, list[dict[str, Any]], dict[str, Any], float]:
    norm = scorer.normaliser
    weights = scorer.weights if norm is None else norm.weights
    features = [{"name": name} if norm is None else _normed(name, norm, j) for j, name in enumerate(names)]
    listed = {name: float(_text(weight)) for name, weight in zip(names, weights, strict=True)}
    if shift:
        features.append({"name": CONSTANT})
        listed[CONSTANT] = float(_text(shift))
    return "LinearModel", features, {"weights": listed}, scorer.intercept if norm is None else norm.intercept


def _normed(name: str, norm: Normaliser, j: int) -> dict[str, Any]:
    kind, keys = ("StandardNormalizer", ("avg", "std"))
    if norm.kind == "min_max":
        kind, keys = ("MinMaxNormalizer", ("min", "max"))
    params = dict(zip(keys, (_text(norm.first[j]), _text(norm.second[j])), strict=True))
    return {"name": name, "norm": {"class": f"{_NORM}{kind}", "params": params}}


def _text(value: Any) -> str:
    """Return the shortest text of the nearest float32."""
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if not np.isfinite(near):
        raise InputError(f"the model holds {float(value):g}, beyond the range of float32; rescale the features.")
    return str(near)


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
    if scorer.has_missing_zeros:
        raise InputError("trees with zero_as_missing have no counterpart in Solr; fit without it, or export to json.")
    trees = scorer.trees
    thresholds, numbers = floor32(trees.thresholds), np.empty(len(trees.thresholds), dtype=np.float32)
    features: list[dict[str, Any]] = [{"name": name} for name in names]
    for column in np.unique(trees.features).tolist():
        own = trees.features == column
        exponent, numbers[own] = _exact(thresholds[own], names[column])
        if exponent:
            params = {"avg": "0.0", "std": _text(2.0**-exponent)}
            features[column] = {
                "name": names[column],
                "norm": {"class": f"{_NORM}StandardNormalizer", "params": params},
            }

    def node(t: int, at: int) -> dict[str, Any]:
        if at < 0:
            return {"value": _text(trees.values[int(trees.starts[t]) + t - at - 1])}
        k = int(trees.starts[t]) + at
        left, right = (node(t, int(child)) for child in trees.children[k])
        return {"feature": names[trees.features[k]], "threshold": _text(numbers[k]), "left": left, "right": right}

    empty = np.diff(trees.starts) == 0
    listed = [{"weight": "1", "root": node(t, -1 if empty[t] else 0)} for t in range(trees.n_trees)]
    if shift + scorer.intercept or not listed:
        listed.append({"weight": "1", "root": {"value": _text(shift + scorer.intercept)}})
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


def _symlog(name: str, sign: int) -> str:
    return f"symlog_{name}" if sign > 0 else f"symlog_minus_{name}"


def _field(name: str) -> str:
    """Return the function that reads a field; Solr parses names of other characters than these only in quotes."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return f"field({name})"
    return 'field("{}")'.format(name.replace("\\", "\\\\").replace('"', '\\"'))


def _formula(name: str, scorer: PerceptronScorer, j: int, sign: int) -> str:
    """Return log(1 + max(±u, 0)) as a function query, u = x · scale + shift."""
    # max would pass over a value that was computed from a missing field
    value = f"def({_field(name)},0)"
    scaled = f"sum(product({value},{_text(sign * scorer.scale[j])}),{_text(sign * scorer.shift[j])})"
    return f"{{!func}}ln(sum(1,max(0,{scaled})))"


def _solr_symlog(scorer: PerceptronScorer, rows: Floats) -> Floats:
    """Compute the features symlog_NAME and symlog_minus_NAME as Solr's function queries do, each step in float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        u = to_single(rows) * scorer.scale.astype(np.float32) + scorer.shift.astype(np.float32)
        parts = np.maximum(np.hstack([u, -u]), np.float32(0.0))
        logs = np.log((np.float32(1.0) + parts).astype(np.float64)).astype(np.float32)
    return logs.astype(np.float64)


def _perceptron(
    scorer: PerceptronScorer, names: tuple[str, ...], shift: float
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    layers, last = [], len(scorer.weights) - 1
    for i, (W, b) in enumerate(zip(scorer.weights, scorer.biases, strict=True)):
        bias = b + shift if i == last else b
        if i == 0:
            W = np.vstack([W, -W])
        layers.append(
            {
                "matrix": [[float(_text(item)) for item in unit] for unit in W.T],
                "bias": [float(_text(bia)) for bia in bias],
                "activation": "identity" if i == last else "tanh",
            }
        )
    return [{"name": _symlog(name, sign)} for sign in (1, -1) for name in names], {"layers": layers}


def evaluate_solr(body: dict[str, Any], names: tuple[str, ...], rows: Floats) -> Floats:
    """Score rows by the arithmetic of Solr's module, from the body of a request."""
    X = to_single(rows)
    columns = {name: X[:, column] for column, name in enumerate(names)}
    columns[CONSTANT] = np.ones(len(X), dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for feature in body["features"]:
            if "norm" in feature:
                columns[feature["name"]] = _normalised(columns[feature["name"]], feature["norm"])
        vector = np.column_stack([columns[feature["name"]] for feature in body["features"]])
        kind, params = body["class"].removeprefix(_MODEL), body["params"]
        total = np.zeros(len(X), dtype=np.float32)
        if kind == "LinearModel":
            for j, feature in enumerate(body["features"]):
                total = total + vector[:, j] * np.float32(params["weights"][feature["name"]])
        elif kind == "MultipleAdditiveTreesModel":
            for tree in params["trees"]:
                leaves = np.empty(len(X), dtype=np.float32)
                _descend(tree["root"], np.arange(len(X)), columns, leaves)
                total = total + np.float32(tree["weight"]) * leaves
        else:
            total = _network(vector, params["layers"])
    return total.astype(np.float64)


def _normalised(values: Singles, norm: dict[str, Any]) -> Singles:
    first, second = (np.float32(item) for item in norm["params"].values())
    is_standard = norm["class"].endswith("StandardNormalizer")
    return np.asarray((values - first) / (second if is_standard else second - first))


def _descend(node: dict[str, Any], rows: NDArray[np.int64], columns: dict[str, Singles], leaves: Singles) -> None:
    if "value" in node:
        leaves[rows] = np.float32(node["value"])
        return
    goes_left = columns[node["feature"]][rows] <= np.float32(node["threshold"]) + SLACK
    _descend(node["left"], rows[goes_left], columns, leaves)
    _descend(node["right"], rows[~goes_left], columns, leaves)


def _network(values: Singles, layers: list[dict[str, Any]]) -> Singles:
    for layer in layers:
        W, b = np.array(layer["matrix"], dtype=np.float32), np.array(layer["bias"], dtype=np.float32)
        sums = np.zeros((len(values), len(W)), dtype=np.float32)
        for j in range(W.shape[1]):
            sums = sums + values[:, j, None] * W[:, j]
        values = sums + b
        if layer["activation"] == "tanh":
            values = np.tanh(values.astype(np.float64)).astype(np.float32)
    return np.asarray(values[:, 0])
