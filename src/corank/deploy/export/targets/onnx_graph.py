"""
ONNX: every scorer as a graph that takes a matrix of features and returns one score per row (extra `onnx`).

The graph reads float32 (or float64), computes in float64 and returns the type that it reads; only the sums of trees
are float32, as ONNX defines them. A threshold t of a tree
becomes the largest float32 at or below it, so that every float32 row takes corank's path. Missing values (NaN) follow
the side that LightGBM gives them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.deploy.export.describe import Description
from corank.deploy.export.scorers import (
    CalibratedScorer,
    KernelScorer,
    LinearScorer,
    PerceptronScorer,
    Scorer,
    SumScorer,
    TreeScorer,
    missing_goes_left,
)
from corank.deploy.export.target import (
    DOUBLE,
    LARGEST,
    TINY,
    UNIT,
    Export,
    ExportOptions,
    double_bound,
    floor32,
    target,
    to_single,
)
from corank.errors import import_extra

Floats = NDArray[np.float64]

INPUT, OUTPUT = "features", "scores"
"""Names of the input, a matrix (rows, features), and of the output, a matrix (rows, 1)."""

_OPSET, _ML_OPSET, _IR = 17, 3, 8


@target("onnx", "ONNX", "all models")
def write_onnx(described: Description, options: ExportOptions) -> Export:
    """Return the graph, with the names of the features in its metadata."""
    scorer = described.scorer
    content = make_graph(described, options)
    single = not options.double

    def evaluate(rows: Floats) -> Floats:
        return run_onnx(content, rows)

    return Export(
        target="onnx", files={"": content}, evaluate=evaluate, engine="onnxruntime", single=single,
        bound=lambda rows: onnx_bound(scorer, rows, single_output=single, shift=options.shift or 0.0),
        offset=float(options.shift or 0.0),
    )  # fmt: skip


def onnx_bound(scorer: Scorer, rows: Floats, *, single_output: bool, shift: float = 0.0) -> Floats:
    """Bound the error of a graph: float64, but for the sums of trees, which ONNX returns as float32."""
    error = double_bound(scorer, rows, single_output) + (1.0 + UNIT) * _tree_rounding(scorer, rows)
    return error + abs(shift) * (UNIT if single_output else DOUBLE)


def _tree_rounding(scorer: Scorer, rows: Floats) -> Floats:
    if isinstance(scorer, TreeScorer):
        sums = np.abs(scorer.score(rows) - scorer.intercept)
        return np.where(sums < LARGEST, 2.0 * UNIT * sums + TINY, np.inf)
    if isinstance(scorer, SumScorer):
        return np.asarray(sum(abs(weight) * _tree_rounding(part, rows) for weight, part in scorer.parts))
    if isinstance(scorer, CalibratedScorer):
        return np.asarray(scorer.steepest * _tree_rounding(scorer.inner, rows))
    return np.zeros(len(rows))


def run_onnx(content: bytes, rows: Floats) -> Floats:
    """Score rows with onnxruntime."""
    runtime = import_extra("onnxruntime", "onnx")
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = runtime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
    kind = session.get_inputs()[0].type
    values = to_single(rows) if kind == "tensor(float)" else np.asarray(rows, dtype=np.float64)
    return np.asarray(session.run(None, {INPUT: values})[0], dtype=np.float64)[:, 0]


def make_graph(described: Description, options: ExportOptions) -> bytes:
    """Return the serialised graph of a scorer."""
    onnx = import_extra("onnx", "onnx")
    graph = _Graph(onnx, single=not options.double)
    kind = onnx.TensorProto.DOUBLE if options.double else onnx.TensorProto.FLOAT
    rows = INPUT if options.double else graph.node("Cast", [INPUT], to=onnx.TensorProto.DOUBLE)
    total = graph.scorer(described.scorer, rows)
    if options.shift:
        total = graph.node("Add", [total, graph.constant(options.shift)])
    if options.double:
        graph.node("Identity", [total], out=OUTPUT)
    else:
        graph.node("Cast", [total], out=OUTPUT, to=kind)
    helper = onnx.helper
    made = helper.make_graph(
        graph.nodes, options.name,
        [helper.make_tensor_value_info(INPUT, kind, [None, described.n_features])],
        [helper.make_tensor_value_info(OUTPUT, kind, [None, 1])],
        graph.tensors,
    )  # fmt: skip
    versions = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
    model = helper.make_model(made, opset_imports=versions, producer_name="corank")
    model.ir_version = _IR
    helper.set_model_props(model, {"feature_names": "\n".join(described.names)})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


class _Graph:
    """Nodes and constants of a graph under construction; every value is a float64 matrix with one row per document."""

    def __init__(self, onnx: Any, single: bool) -> None:
        self.onnx, self.single = onnx, single
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []

    def node(self, kind: str, inputs: list[str], out: str | None = None, domain: str = "", **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        name = out or f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], domain=domain, **attributes))
        return name

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Add a constant, and return its name."""
        name = f"c{len(self.tensors)}"
        array = np.ascontiguousarray(np.asarray(value, dtype=dtype))
        self.tensors.append(self.onnx.numpy_helper.from_array(array.reshape(np.shape(value)), name))
        return name

    def scorer(self, scorer: Scorer, rows: str) -> str:
        """Add a scorer, and return its scores, a matrix with one column."""
        if isinstance(scorer, LinearScorer):
            return self._plus(self._times(rows, scorer.weights[:, None]), scorer.intercept)
        if isinstance(scorer, TreeScorer):
            return self._plus(self._trees(scorer, rows), scorer.intercept)
        if isinstance(scorer, PerceptronScorer):
            return self._perceptron(scorer, rows)
        if isinstance(scorer, KernelScorer):
            similar = self._similarities(scorer, self._select(scorer, rows))
            return self._plus(self._times(similar, scorer.coefficients[:, None]), scorer.intercept)
        if isinstance(scorer, SumScorer):
            parts = [self._scaled(self.scorer(part, rows), weight) for weight, part in scorer.parts]
            return self._plus(parts[0] if len(parts) == 1 else self.node("Sum", parts), scorer.intercept)
        assert isinstance(scorer, CalibratedScorer)
        return self._calibrated(scorer, self.scorer(scorer.inner, rows))

    def _plus(self, value: str, number: Any) -> str:
        return self.node("Add", [value, self.constant(number)]) if np.any(number) else value

    def _scaled(self, value: str, numbers: Any) -> str:
        """Multiply the columns of a matrix by one number each."""
        if bool(np.all(np.equal(numbers, 1.0))):
            return value
        if np.size(numbers) == 1:
            # not by a scalar: onnxruntime would fuse it into another product, as an attribute in float32
            return self._times(value, np.reshape(numbers, (1, 1)))
        return self.node("Mul", [value, self.constant(numbers)])

    def _times(self, value: str, matrix: Any) -> str:
        return self.node("MatMul", [value, self.constant(matrix)])

    def _perceptron(self, scorer: PerceptronScorer, rows: str) -> str:
        u = self._plus(self._scaled(rows, scorer.scale), scorer.shift)
        size = self.node("Log", [self.node("Add", [self.node("Abs", [u]), self.constant(1.0)])])
        out = self.node("Mul", [self.node("Sign", [u]), size])
        last = len(scorer.weights) - 1
        for i, (W, b) in enumerate(zip(scorer.weights, scorer.biases, strict=True)):
            out = self.node("Add", [self._times(out, W), self.constant(b)])
            out = out if i == last else self.node("Tanh", [out])
        return out

    def _select(self, scorer: KernelScorer, rows: str) -> str:
        columns = self.constant(scorer.columns, np.int64)
        chosen = self.node("Gather", [rows, columns], axis=1)
        return self._plus(self._scaled(chosen, scorer.scale), scorer.shift)

    def _similarities(self, scorer: KernelScorer, u: str) -> str:
        """Add the similarities of selected rows to the basis rows, a matrix with one column per basis row."""
        Z = scorer.rows
        if scorer.kernel == "polynomial":
            base = self._plus(self._times(u, scorer.gamma * Z.T), scorer.coef0)
            return base if scorer.degree == 1 else self.node("Pow", [base, self.constant(float(scorer.degree))])
        if scorer.kernel == "cosine":
            norms = np.sqrt((Z**2).sum(axis=1))[:, None]
            unit = np.divide(Z, norms, out=np.zeros_like(Z), where=norms > 0.0)
            length = self.node("ReduceL2", [u], axes=[1], keepdims=1)
            # a row of zeros has the product 0, whatever it is divided by
            return self.node("Div", [self._times(u, unit.T), self._or_one(length)])
        own = self.node("Unsqueeze", [u, self.constant([1], np.int64)])
        gaps = self.node("Sub", [own, self.constant(Z[None])])
        if scorer.kernel == "gaussian":
            distances = self.node("ReduceSumSquare", [gaps], axes=[2], keepdims=0)
        elif scorer.kernel == "laplacian":
            distances = self.node("ReduceL1", [gaps], axes=[2], keepdims=0)
        else:
            sums = self._or_one(self.node("Add", [own, self.constant(Z[None])]))
            ratios = self.node("Div", [self.node("Mul", [gaps, gaps]), sums])
            distances = self.node("ReduceSum", [ratios, self.constant([2], np.int64)], keepdims=0)
        return self.node("Exp", [self.node("Mul", [distances, self.constant(-scorer.gamma)])])

    def _or_one(self, value: str) -> str:
        """Replace zeros, and negative numbers, by 1."""
        return self.node("Where", [self.node("Greater", [value, self.constant(0.0)]), value, self.constant(1.0)])

    def _calibrated(self, scorer: CalibratedScorer, s: str) -> str:
        if scorer.knots is None or scorer.levels is None:
            u = self._plus(self._scaled(s, scorer.slope), scorer.offset)
            p = self.node("Sigmoid", [u])
            return self._plus(self._scaled(p, scorer.high - scorer.low), scorer.low)
        knots, levels = scorer.knots, scorer.levels
        if len(knots) == 1:
            return self._plus(self._scaled(s, 0.0), float(levels[0]))
        # each segment between two knots adds its share of the rise, from 0 to all of it
        share = self.node("Div", [self.node("Sub", [s, self.constant(knots[:-1])]), self.constant(np.diff(knots))])
        share = self.node("Min", [self.node("Max", [share, self.constant(0.0)]), self.constant(1.0)])
        return self._plus(self._times(share, np.diff(levels)[:, None]), float(levels[0]))

    def _trees(self, scorer: TreeScorer, rows: str) -> str:
        trees = scorer.trees
        scorer.require_no_missing_zeros("ONNX")
        if not trees.n_trees:
            return self._times(rows, np.zeros((trees.n_features, 1)))
        thresholds = floor32(trees.thresholds).astype(np.float64) if self.single else trees.thresholds
        left = missing_goes_left(trees.flags, trees.thresholds)
        nodes: dict[str, list[Any]] = {name: [] for name in ("feature", "value", "yes", "no", "missing", "mode")}
        tree_of, leaf_of = [], []  # (tree, number) of nodes and leaves: leaf −k − 1 follows the nodes of its tree
        for t, (begin, end) in enumerate(pairwise(trees.starts.tolist())):
            n, own, children = end - begin, slice(begin, end), trees.children[begin:end]
            places = np.where(children >= 0, children, n - children - 1)
            columns = (trees.features[own], thresholds[own], places[:, 0], places[:, 1], left[own].astype(int))
            for name, values in zip(nodes, columns, strict=False):
                nodes[name] += [*values.tolist(), *[0] * (n + 1)]
            nodes["mode"] += ["BRANCH_LEQ"] * n + ["LEAF"] * (n + 1)
            tree_of += [(t, k) for k in range(2 * n + 1)]
            leaf_of += [(t, k) for k in range(n, 2 * n + 1)]
        double, from_array = np.float64, self.onnx.numpy_helper.from_array
        total = self.node(
            "TreeEnsembleRegressor", [rows], domain="ai.onnx.ml", n_targets=1, aggregate_function="SUM",
            post_transform="NONE", nodes_treeids=[t for t, _ in tree_of], nodes_nodeids=[k for _, k in tree_of],
            nodes_featureids=nodes["feature"], nodes_modes=nodes["mode"], nodes_truenodeids=nodes["yes"],
            nodes_falsenodeids=nodes["no"], nodes_missing_value_tracks_true=nodes["missing"],
            nodes_values_as_tensor=from_array(np.array(nodes["value"], dtype=double), "thresholds"),
            target_treeids=[t for t, _ in leaf_of], target_nodeids=[k for _, k in leaf_of],
            target_ids=[0] * len(leaf_of), target_weights_as_tensor=from_array(trees.values.astype(double), "leaves"),
        )  # fmt: skip
        return self.node("Cast", [total], to=self.onnx.TensorProto.DOUBLE)
