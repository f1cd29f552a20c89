"""NumPy: one Python file that contains the numbers of a model and scores rows with numpy alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.deploy.export.describe import Description
from corank.deploy.export.json_form import json_form
from corank.deploy.export.rounding import double_bound
from corank.deploy.export.scorers import (
    CalibratedScorer,
    KernelScorer,
    LinearScorer,
    PerceptronScorer,
    Scorer,
    SumScorer,
    TreeScorer,
)
from corank.deploy.export.target import Export, ExportOptions

Floats = NDArray[np.float64]

_HEAD = '''"""
{title}: score rows with numpy alone; written by `corank export --to numpy`.

    python {name}.py rows.csv        prints one score per line; the header of the file names the features
"""

import json
import sys

import numpy as np


def arrays(value):
    if isinstance(value, dict):
        return {{key: arrays(one) for key, one in value.items()}}
    if isinstance(value, list):
        return [arrays(one) for one in value] if value and isinstance(value[0], dict | str) else np.array(value)
    return value


MODEL = arrays(json.loads(r"""{model}"""))
FEATURES = MODEL["features"]

'''

_LINEAR = """
def linear(m, X):
    return X @ m["weights"] + m["intercept"]

"""

_TREES = """
def flat(trees):
    # the nodes of all trees in one array each; a child below 0 is the leaf -child - 1
    nodes = np.cumsum([0, *(len(tree["features"]) for tree in trees)])
    leaves = nodes + np.arange(len(nodes))

    def joined(name):
        return np.concatenate([[0], *(tree[name] for tree in trees)])[1:]

    def children(name):
        each = zip(trees, nodes, leaves)
        return np.concatenate([[0], *(np.where(t[name] < 0, t[name] - leaf, t[name] + node) for t, node, leaf in each)])

    first = np.where(np.diff(nodes) > 0, nodes[:-1], -leaves[:-1] - 1)
    features, missing = (joined(name).astype(int) for name in ("features", "missing"))
    return first, features, joined("thresholds"), children("left")[1:], children("right")[1:], missing, joined("values")


def trees(m, X):
    if "flat" not in m:
        m["flat"] = flat(m["trees"])
    first, features, thresholds, left, right, missing, values = m["flat"]
    node = np.tile(first, (len(X), 1))
    while (node >= 0).any():
        at = np.nonzero(node >= 0)
        k = node[at]
        x, side = X[at[0], features[k]], missing[k]
        is_missing = np.isnan(x) | ((side & 2 > 0) & (np.abs(x) <= 1.0000000180025095e-35))
        goes_left = np.where(is_missing, side & 1 > 0, x <= thresholds[k])
        node[at] = np.where(goes_left, left[k], right[k])
    return values[-node - 1].sum(axis=1) + m["intercept"]

"""

_PERCEPTRON = """
def perceptron(m, X):
    u = X * m["scale"] + m["shift"]
    out = np.sign(u) * np.log1p(np.abs(u))
    for layer in m["layers"]:
        sums = out @ layer["weights"].T + layer["bias"]
        out = np.tanh(sums)
    return sums[:, 0]

"""

_KERNEL = """
def kernel(m, X):
    Z, gamma = m["rows"], m["gamma"]
    U = X[:, m["columns"]] * m["scale"] + m["shift"]
    if m["kernel"] == "polynomial":
        K = (gamma * (U @ Z.T) + m["coef0"]) ** m["degree"]
    elif m["kernel"] == "cosine":
        norms = np.linalg.norm(U, axis=1)[:, None] * np.linalg.norm(Z, axis=1)
        K = (U @ Z.T) / np.where(norms > 0, norms, 1)
    else:
        D = np.empty((len(U), len(Z)))
        for t, z in enumerate(Z):
            if m["kernel"] == "gaussian":
                D[:, t] = ((U - z) ** 2).sum(axis=1)
            elif m["kernel"] == "laplacian":
                D[:, t] = np.abs(U - z).sum(axis=1)
            else:
                D[:, t] = ((U - z) ** 2 / np.where(U + z > 0, U + z, 1)).sum(axis=1)
        K = np.exp(-gamma * D)
    return K @ m["coefficients"] + m["intercept"]

"""

_SUM = """
def add(m, X):
    return sum(part["weight"] * part_score(part["scorer"], X) for part in m["parts"]) + m["intercept"]

"""

_CALIBRATED = """
def calibrated(m, X):
    s = part_score(m["scorer"], X)
    if "knots" in m:
        return np.interp(s, m["knots"], m["levels"])
    return m["low"] + (m["high"] - m["low"]) * 0.5 * (1 + np.tanh(0.5 * (m["slope"] * s + m["offset"])))

"""

_TAIL = '''
def part_score(m, X):
    return {{{kinds}}}[m["type"]](m, X)


def score(X):
    """Return the scores of rows; the columns are FEATURES, in this order. Higher is better."""
    return part_score(MODEL["scorer"], np.asarray(X, dtype=float)) + MODEL["shift"]


if __name__ == "__main__":
    table = np.atleast_1d(np.genfromtxt(sys.argv[1], delimiter=",", names=True, deletechars="", replace_space=" "))
    print("\\n".join(map(repr, score(np.column_stack([table[name] for name in FEATURES])).tolist())))
'''

_PARTS: dict[type[Any], tuple[str, str, str]] = {
    LinearScorer: ("linear", "linear", _LINEAR),
    TreeScorer: ("trees", "trees", _TREES),
    PerceptronScorer: ("perceptron", "perceptron", _PERCEPTRON),
    KernelScorer: ("kernel", "kernel", _KERNEL),
    SumScorer: ("sum", "add", _SUM),
    CalibratedScorer: ("calibrated", "calibrated", _CALIBRATED),
}


def write_numpy(described: Description, options: ExportOptions) -> Export:
    """Return the Python file; it contains only the functions that the model needs."""
    # ASCII, so that no name can end the string or change its encoding
    model = json.dumps(json_form(described, float(options.shift or 0.0)), allow_nan=False)
    used = [part for kind, part in _PARTS.items() if kind in _kinds(described.scorer)]
    head = _HEAD.format(title=options.name, name=options.name, model=model)
    kinds = ", ".join(f'"{kind}": {function}' for kind, function, _ in used)
    text = head + "\n".join(body.strip("\n") + "\n\n" for *_, body in used) + _TAIL.format(kinds=kinds)
    scorer = described.scorer

    def evaluate(rows: Floats) -> Floats:
        space: dict[str, Any] = {"__name__": options.name}
        exec(compile(text, f"{options.name}.py", "exec"), space)
        return np.asarray(space["score"](rows), dtype=np.float64)

    return Export(
        target="numpy", files={"": text.encode()}, evaluate=evaluate, bound=lambda rows: double_bound(scorer, rows),
        engine="numpy", single=False, offset=float(options.shift or 0.0),
    )  # fmt: skip


def _kinds(scorer: Scorer) -> set[type[Any]]:
    if isinstance(scorer, SumScorer):
        return {SumScorer}.union(*(_kinds(part) for _, part in scorer.parts))
    return {type(scorer)} | (_kinds(scorer.inner) if isinstance(scorer, CalibratedScorer) else set())
