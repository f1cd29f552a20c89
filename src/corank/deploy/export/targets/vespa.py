"""
Vespa: a rank profile with a linear expression, LightGBM's JSON, or an ONNX model.

Vespa computes in float64. It reads LightGBM's dump, but sends a row left if its value is *below* the threshold, or not
at least it where missing values go left; so the next float64 above each threshold is written. Names that look like
attributes become ``attribute(NAME)``; others, such as ``bm25(title)``, are used as they are.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.deploy.export.describe import Description
from corank.deploy.export.scorers import LinearScorer, TreeScorer, missing_goes_left
from corank.deploy.export.target import Export, ExportOptions, as_json, double_bound, target, walk_tree
from corank.deploy.export.targets.onnx_graph import INPUT, OUTPUT, make_graph, onnx_bound, run_onnx
from corank.errors import InputError, import_extra

Floats = NDArray[np.float64]

_TERM = re.compile(r"^ *([+-]?[0-9.e+-]+) \* (.+?) *\+?$")


@target("vespa", "Vespa", "all models")
def write_vespa(described: Description, options: ExportOptions) -> Export:
    """Return the files for Vespa: a rank profile, and the model that it reads if it is not linear."""
    scorer, shift = described.scorer, float(options.shift or 0.0)
    features, name = [rank_feature(item) for item in described.names], options.name
    if isinstance(scorer, LinearScorer):
        level = scorer.intercept + shift
        lines = [f"{float(w)!r} * {feature}" for w, feature in zip(scorer.weights, features, strict=True)]
        profile = _profile(name, " +\n            ".join([*lines, repr(float(level))]))
        return Export(
            target="vespa", files={"": profile.encode()}, engine="Vespa's rank expression in float64", single=False,
            evaluate=lambda rows: evaluate_expression(profile, features, rows), offset=shift,
            bound=lambda rows: double_bound(scorer, rows),
        )  # fmt: skip
    if isinstance(scorer, TreeScorer):
        dump = lightgbm_dump(scorer, features)
        level = scorer.intercept + shift
        call = f'lightgbm("{name}.json")' + (f" + {level!r}" if level else "")
        files = {"": as_json(dump), ".profile": _profile(name, call).encode()}
        return Export(
            target="vespa", files=files, engine="Vespa's rules for LightGBM's JSON in float64", single=False,
            evaluate=lambda rows: evaluate_dump(json.loads(files[""]), rows) + level, offset=shift,
            bound=lambda rows: double_bound(scorer, rows),
            remarks=(f"copy the JSON to models/{name}.json of the application.",),
        )  # fmt: skip
    content = make_graph(described, ExportOptions(name=name, shift=options.shift))
    return Export(
        target="vespa", files={"": content, ".profile": _onnx_profile(name, features).encode()}, engine="onnxruntime",
        evaluate=lambda rows: run_onnx(content, rows), offset=shift,
        bound=lambda rows: onnx_bound(scorer, rows, single_output=True, shift=shift),
        remarks=(f"copy the ONNX file to models/{name}.onnx of the application.",),
    )  # fmt: skip


def rank_feature(name: str) -> str:
    """
    Return the rank feature that a name stands for.

    >>> rank_feature("clicks"), rank_feature("bm25(title)")
    ('attribute(clicks)', 'bm25(title)')
    """
    if re.fullmatch(r"[A-Za-z_]\w*", name):
        return f"attribute({name})"
    if re.fullmatch(r"[A-Za-z_][\w.(),{}: -]*", name):
        return name
    raise InputError(
        f"the feature {name!r} is not a rank feature of Vespa; rename it to an attribute or to a rank feature such as "
        "bm25(title)."
    )


def _profile(name: str, expression: str) -> str:
    return (
        f"rank-profile {name.replace('-', '_')} inherits default {{\n"
        "    function corank_score() {\n"
        f"        expression {{\n            {expression}\n        }}\n"
        "    }\n"
        "    second-phase {\n        expression: corank_score\n    }\n"
        "}\n"
    )


def _onnx_profile(name: str, features: list[str]) -> str:
    listed = ", ".join(features)
    own = name.replace("-", "_")
    return (
        f"rank-profile {own} inherits default {{\n"
        f"    function corank_features() {{\n"
        f"        expression: tensor<float>(d0[1],d1[{len(features)}]):[[{listed}]]\n    }}\n"
        f"    onnx-model {own} {{\n        file: models/{name}.onnx\n"
        f'        input "{INPUT}": corank_features\n        output "{OUTPUT}": scores\n    }}\n'
        f"    second-phase {{\n        expression: sum(onnx({own}).scores)\n    }}\n"
        "}\n"
    )


def evaluate_expression(profile: str, features: list[str], rows: Floats) -> Floats:
    """Score rows by the linear expression of a rank profile."""
    body = profile.partition("expression {")[2].partition("        }\n")[0].strip()
    *terms, level = body.split("\n")
    columns, total = {feature: j for j, feature in enumerate(features)}, np.zeros(len(rows))
    for line in terms:
        match = _TERM.match(line)
        assert match is not None, line
        total = total + float(match[1]) * rows[:, columns[match[2]]]
    return total + float(level)


def lightgbm_dump(scorer: TreeScorer, features: list[str]) -> dict[str, Any]:
    """Return LightGBM's ``dump_model()`` of trees whose thresholds are those of Vespa's strict comparison."""
    scorer.require_no_missing_zeros("Vespa")
    lightgbm = import_extra("lightgbm", "trees")
    trees = scorer.trees
    left = missing_goes_left(trees.flags, trees.thresholds)
    strict = replace(
        trees,
        thresholds=np.nextafter(trees.thresholds, np.finfo(np.float64).max),
        flags=np.where(left, 10, 8).astype(np.uint8),
    )
    dump: dict[str, Any] = lightgbm.Booster(model_str=strict.to_lightgbm()).dump_model()
    dump["feature_names"] = features
    # Vespa requires these two
    dump["objective"], dump["pandas_categorical"] = "lambdarank", []
    for key in ("feature_infos", "feature_importances"):
        dump.pop(key, None)
    return dump


def evaluate_dump(dump: dict[str, Any], rows: Floats) -> Floats:
    """Score rows by Vespa's rules, from LightGBM's JSON."""

    def look(node: dict[str, Any], numbers: NDArray[np.int64]) -> Any:
        if "left_child" not in node:
            return node["leaf_value"]
        values, threshold = rows[numbers, node["split_feature"]], float(node["threshold"])
        goes_left = ~(values >= threshold) if node["default_left"] else values < threshold
        return goes_left, node["left_child"], node["right_child"]

    total = np.zeros(len(rows))
    for tree in dump["tree_info"]:
        leaves = np.empty(len(rows))
        walk_tree(tree["tree_structure"], np.arange(len(rows)), leaves, look)
        total = total + leaves
    return total
