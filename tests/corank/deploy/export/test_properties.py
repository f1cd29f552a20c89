"""
Random models times hostile rows, in every engine's arithmetic: no changed order that its precision does not explain.

Explained are pairs that the features, rounded to float32, order otherwise, and pairs whose exact scores differ by at
most the proven bounds of the two rows, see `corank.deploy.export.target`. The bound itself is tested row by row.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from corank.data.queries import Queries
from corank.deploy.export.describe import Description
from corank.deploy.export.export import TARGETS, compare_scores
from corank.deploy.export.scorers import CalibratedScorer, KernelScorer, TreeScorer, add
from corank.deploy.export.target import ExportOptions, to_single
from corank.deploy.export.targets.elasticsearch import evaluate_plugin
from corank.errors import InputError
from helpers.hostile_models import linear, numbers, perceptron, rows, trees

# `make test` runs every fourth case
pytestmark = pytest.mark.thin(4)

N_ROWS = 60


def described(scorer, d):
    return Description(tuple(f"x{j}" for j in range(d)), scorer)


def check(target, scorer, X, missing=False, **options):
    """Every score is within its bound, and every changed order is explained."""
    known = described(scorer, X.shape[1])
    export = TARGETS[target](known, ExportOptions(name="m", **options))
    scores = scorer.score(X)
    found = compare_scores(export, known, scores, X, Queries.of(None, len(X)))
    assert found.unexplained_rows == 0, (target, found)
    assert found.unexplained_orders == 0, (target, found)
    return export


SEEDS = range(40)


def refuses(scorer, d):
    try:
        TARGETS["solr"](described(scorer, d), ExportOptions())
    except InputError as error:
        return "rescale the feature" in str(error)
    return False


def tamed(scorer):
    return TreeScorer(replace(scorer.trees, thresholds=np.clip(scorer.trees.thresholds, -1e5, 1e5)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("target", ["elasticsearch", "opensearch", "solr"])
def test_linear_models_in_search_engines(target, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 12))
    scorer = linear(rng, d)
    X = rows(rng, N_ROWS, d)
    check(target, scorer, X, shift=None if seed % 3 else float(rng.uniform(0, 100)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("target", ["elasticsearch", "opensearch", "solr"])
def test_trees_in_search_engines(target, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    scorer = trees(rng, d)
    X = rows(rng, N_ROWS, d, scorer, missing=target == "opensearch")
    if target == "solr" and refuses(scorer, d):
        # thresholds near zero need a factor of which others overflow
        assert np.abs(scorer.trees.thresholds).max() > 1e29
        scorer = tamed(scorer)
    export = check(target, scorer, X, shift=None if seed % 3 else float(rng.uniform(0, 100)))
    # every row takes the model's path: the engine's score is the float32 sum of the model's leaves
    leaves = scorer.leaves(to_single(X).astype(np.float64)).astype(np.float32)
    total = np.zeros(len(X), dtype=np.float32)
    for t in range(leaves.shape[1]):
        total = total + leaves[:, t]
    if export.offset == 0.0:
        np.testing.assert_array_equal(export.evaluate(X), total.astype(np.float64))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("target", ["elasticsearch", "opensearch"])
def test_sums_of_linear_models_and_trees_are_two_rescorers(target, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    forest = trees(rng, d)
    scorer = add([(0.3, linear(rng, d)), (0.5, forest), (2.0, linear(rng, d)), (0.1, trees(rng, d))])
    X = rows(rng, N_ROWS, d, forest)
    export = check(target, scorer, X, shift=None if seed % 3 else float(rng.uniform(0, 100)))
    bodies = [json.loads(export.files[suffix])["model"] for suffix in ("", ".trees.json")]
    assert [body["model"]["type"] for body in bodies] == ["model/linear", "model/xgboost+json"]
    # what the engine does with the written search: the second score is added to the first, in float32
    rescorers = json.loads(export.files[".query.json"])["rescore"]
    assert [rescorer["query"]["query_weight"] for rescorer in rescorers] == [0, 1]
    assert len({rescorer["window_size"] for rescorer in rescorers}) == 1
    names = tuple(f"x{j}" for j in range(d))
    first, second = (
        evaluate_plugin({"model": body}, names, X, missing=target == "opensearch").astype(np.float32) for body in bodies
    )
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_array_equal(export.evaluate(X), (first + second).astype(np.float64))


@pytest.mark.parametrize("seed", SEEDS)
def test_missing_values_go_right_in_elasticsearch_and_solr(seed):
    """Both compare NaN with the threshold, which is false: with all missing sides on the right, they agree."""
    rng = np.random.default_rng(seed)
    scorer = trees(rng, 3)
    right = replace(scorer.trees, flags=np.full_like(scorer.trees.flags, 8))
    X = rows(rng, N_ROWS, 3, scorer, missing=True)
    for target in ("elasticsearch", "solr"):
        check(target, tamed(TreeScorer(right)), X)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("target", ["onnx", "vespa"])
def test_all_kinds_in_float64(target, seed):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    for scorer in (linear(rng, d), trees(rng, d), perceptron(rng, d)):
        X = rows(rng, N_ROWS, d, scorer, missing=isinstance(scorer, TreeScorer))
        check(target, scorer, X, shift=float(rng.normal()))
    if target == "onnx":
        scorer = trees(rng, d)
        check(target, scorer, rows(rng, N_ROWS, d, scorer, missing=True), double=True)
        check(target, linear(rng, d), rows(rng, N_ROWS, d), double=True)
        check(target, perceptron(rng, d), rows(rng, N_ROWS, d), double=True)


def kernel_scorer(rng, kernel, d):
    r, c = int(rng.integers(1, 10)), int(rng.integers(1, d + 1))
    draw = (lambda size: rng.random(size)) if kernel == "chi-square" else (lambda size: rng.normal(size=size))
    shift = np.zeros(c) if kernel == "chi-square" else draw(c)
    return KernelScorer(
        kernel, rng.permutation(d)[:c], 10.0 ** rng.uniform(-1, 1, c), shift, draw((r, c)), rng.normal(size=r),
        gamma=float(rng.uniform(0.01, 1)), degree=int(rng.integers(1, 4)), coef0=float(rng.random()),
        intercept=float(rng.normal()),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "chi-square", "polynomial", "cosine"])
def test_kernels_sums_and_calibration(kernel, seed):
    pytest.importorskip("onnxruntime")
    target = "onnx"
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    X = rng.random((N_ROWS, d)) if kernel == "chi-square" else rng.normal(size=(N_ROWS, d)) * 3
    X[: N_ROWS // 4, 0] = 0.0
    scorer = kernel_scorer(rng, kernel, d)
    check(target, scorer, X)
    check(target, scorer, X, double=True)
    total = add([(0.3, scorer), (0.1, linear(rng, d)), (0.6, trees(rng, d))])
    check(target, total, X)
    inner = kernel_scorer(rng, kernel, d)
    s = np.sort(inner.score(X))
    knots = np.unique(s[:: max(1, len(s) // 5)])
    for curve in (
        CalibratedScorer(inner, knots, np.sort(rng.normal(size=len(knots)))),
        CalibratedScorer(inner, slope=1.7, offset=-0.3, low=-1.1, high=3.3),
    ):
        check(target, curve, X)
        check(target, curve, X, double=True)


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgresql"])
@pytest.mark.parametrize("seed", range(12))
def test_expressions_in_databases(dialect, seed):
    if dialect != "sqlite":
        pytest.importorskip("duckdb")
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    check("sql", linear(rng, d), rows(rng, N_ROWS, d), dialect=dialect)
    scorer = trees(rng, d)
    X = rows(rng, N_ROWS, d, scorer, missing=True)
    export = check("sql", scorer, X, dialect=dialect)
    # sums of the model's leaves, bit for bit
    np.testing.assert_array_equal(export.evaluate(X), scorer.score(X))


def test_zeros_that_are_missing_values():
    """LightGBM's zero_as_missing is refused where an engine has no such rule, and followed elsewhere."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        scorer = trees(rng, 3)
        flags = np.random.default_rng(1).choice([4, 6], size=len(scorer.trees.flags)).astype(np.uint8)
        scorer = TreeScorer(replace(scorer.trees, flags=flags))
        X = rows(rng, N_ROWS, 3, scorer, missing=True)
        check("sql", scorer, X)
        finite = np.nan_to_num(X)
        np.testing.assert_array_equal(scorer.score(finite), scorer.trees.score_rows(finite))
    for target in ("elasticsearch", "solr", "vespa", "onnx"):
        if target == "onnx":
            pytest.importorskip("onnx")
        with pytest.raises(ValueError, match="zero_as_missing"):
            TARGETS[target](described(scorer, 3), ExportOptions())


def test_a_wrong_export_is_noticed():
    """The check can fail: a threshold that is off by one float32 is found at a value on it."""
    rng = np.random.default_rng(3)
    scorer = trees(rng, 2, n_trees=3, missing=False)
    X = rows(rng, 200, 2, scorer)
    known = described(scorer, 2)
    below = np.nextafter(scorer.trees.thresholds.astype(np.float32), np.float32(-np.inf)).astype(np.float64)
    moved = replace(scorer.trees, thresholds=below)
    wrong = TARGETS["elasticsearch"](described(TreeScorer(moved), 2), ExportOptions())
    right = TARGETS["elasticsearch"](known, ExportOptions())
    found = compare_scores(replace(right, evaluate=wrong.evaluate), known, scorer.score(X), X, Queries.of(None, 200))
    assert found.unexplained_rows > 0
    assert found.unexplained_orders > 0
    assert not found.is_exact


def test_numbers_are_hostile():
    drawn = numbers(np.random.default_rng(0), 5000)
    assert (np.abs(drawn) == 1e30).any()
    assert ((drawn != 0) & (np.abs(drawn) < 1e-40)).any()
