"""
JSON: a scorer as plain numbers with a documented schema, and a JavaScript file that scores with it.

    {"format": "corank-scorer", "version": 1, "features": ["bm25", ...], "shift": 0, "scorer": {...}}

`docs/guide/export.md` documents the schema. Numbers are float64, written so that they read back exactly.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import fields
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.deploy.export.describe import Description
from corank.deploy.export.scorers import (
    CalibratedScorer,
    PerceptronScorer,
    Scorer,
    SumScorer,
    TreeScorer,
    missing_goes_left,
)
from corank.deploy.export.target import Export, ExportOptions, double_bound, target
from corank.errors import InputError

Floats = NDArray[np.float64]

FORMAT, VERSION = "corank-scorer", 1

_RUN = """
const { score } = require(process.argv[1]);
const { model, rows } = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
const row = (line) => line.map((value) => (value === null ? NaN : value));
console.log(JSON.stringify(rows.map((line) => String(score(model, row(line))))));
"""


@target("json", "JSON", "all models")
def write_json(described: Description, options: ExportOptions) -> Export:
    """Return the scorer as JSON, and the JavaScript file that reads it."""
    form = json_form(described, float(options.shift or 0.0))
    script = package_files("corank.deploy.export").joinpath("scorer.js").read_bytes()
    content = (json.dumps(form, ensure_ascii=False, allow_nan=False) + "\n").encode()
    scorer = described.scorer
    return Export(
        target="json", files={"": content, ".js": script}, engine="Node.js", single=False,
        evaluate=lambda rows: run_node(form, script, rows), bound=lambda rows: double_bound(scorer, rows),
        offset=float(options.shift or 0.0),
    )  # fmt: skip


def json_form(described: Description, shift: float = 0.0) -> dict[str, Any]:
    """Return the object that is written as JSON."""
    return {
        "format": FORMAT, "version": VERSION, "features": list(described.names), "shift": shift,
        "scorer": scorer_form(described.scorer),
    }  # fmt: skip


def scorer_form(scorer: Scorer) -> dict[str, Any]:
    """Return a scorer as an object of lists and numbers, whose `type` names its kind."""
    form = {"type": scorer.kind[0]} | {field.name: _listed(getattr(scorer, field.name)) for field in fields(scorer)}
    if isinstance(scorer, TreeScorer):
        form["trees"] = _tree_forms(scorer)
    elif isinstance(scorer, PerceptronScorer):
        layers = zip(form.pop("weights"), form.pop("biases"), strict=True)
        form["layers"] = [{"weights": W.T.tolist(), "bias": b.tolist()} for W, b in layers]
    elif isinstance(scorer, SumScorer):
        form["parts"] = [{"weight": weight, "scorer": scorer_form(part)} for weight, part in scorer.parts]
    elif isinstance(scorer, CalibratedScorer):
        unused = ("knots", "levels") if scorer.knots is None else ("slope", "offset", "low", "high")
        form = {name: value for name, value in form.items() if name not in unused}
        form["scorer"] = scorer_form(form.pop("inner"))
    return form


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _tree_forms(scorer: TreeScorer) -> list[dict[str, list[Any]]]:
    """Return each tree as lists over its nodes; a child below 0 is the leaf −child − 1."""
    trees = scorer.trees
    left = missing_goes_left(trees.flags, trees.thresholds).astype(int)
    # 1: a missing value goes left; 2: zeros are missing
    sides = left + 2 * ((trees.flags & 4) > 0)
    result = []
    for t in range(trees.n_trees):
        nodes = slice(int(trees.starts[t]), int(trees.starts[t + 1]))
        result.append(
            {
                "features": trees.features[nodes].tolist(), "thresholds": trees.thresholds[nodes].tolist(),
                "left": trees.children[nodes, 0].tolist(), "right": trees.children[nodes, 1].tolist(),
                "missing": sides[nodes].tolist(), "values": trees.values[nodes.start + t : nodes.stop + t + 1].tolist(),
            }
        )  # fmt: skip
    return result


def run_node(form: dict[str, Any], script: bytes, rows: Floats) -> Floats:
    """Score rows with Node.js and the JavaScript file."""
    node = shutil.which("node")
    if node is None:
        raise InputError(
            "Node.js is not installed, which checks the JavaScript file; install nodejs, or do not verify."
        )
    with tempfile.TemporaryDirectory() as folder:
        scorer, data = Path(folder, "scorer.js"), Path(folder, "data.json")
        scorer.write_bytes(script)
        lines = [[None if np.isnan(value) else value for value in row] for row in rows.tolist()]
        data.write_bytes(json.dumps({"model": form, "rows": lines}).encode())
        run = subprocess.run([node, "-e", _RUN, str(scorer), str(data)], capture_output=True, text=True, check=False)
    if run.returncode:
        raise InputError(f"Node.js could not run the JavaScript file ({run.stderr.strip().splitlines()[-1]}).")
    return np.array([float(text.replace("Infinity", "inf")) for text in json.loads(run.stdout)])
