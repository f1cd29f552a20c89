"""The files that an export writes: JavaScript in Node.js, numpy alone, ONNX, SQL, rank profiles, reports."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from deploy.export.test_properties import kernel_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import corank
from corank.data.queries import Queries
from corank.data.routing import fit_with_qid
from corank.deploy.export import TARGETS, export_model
from corank.deploy.export.describe import Description
from corank.deploy.export.export import compare_scores, make_export
from corank.deploy.export.scorers import CalibratedScorer, LinearScorer, SumScorer, TreeScorer
from corank.deploy.export.target import ExportOptions, above32, floor32
from corank.deploy.export.targets.elasticsearch import evaluate_plugin
from corank.deploy.export.targets.json_form import run_node
from corank.deploy.export.targets.sql import exact_literal, literal
from corank.errors import InputError
from helpers.hostile_models import linear, perceptron, rows, trees

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")


def described(scorer, d):
    return Description(tuple(f"x{j}" for j in range(d)), scorer)


@needs_node
@pytest.mark.parametrize("seed", range(4))
def test_javascript_scores_every_kind(seed):
    """One sum over all kinds, then each map of a calibration: two runs of Node.js for many scorers."""
    rng = np.random.default_rng(seed)
    d = 4
    parts = [linear(rng, d), trees(rng, d), perceptron(rng, d)]
    parts += [
        kernel_scorer(rng, kernel, d) for kernel in ("gaussian", "laplacian", "chi-square", "polynomial", "cosine")
    ]
    X = rng.random((80, d)) * 3
    X[:5] = 0.0
    total = SumScorer(tuple((float(rng.normal()), part) for part in parts), 0.25)
    s = np.sort(total.score(X))
    scorers = [
        total,
        CalibratedScorer(total, s[[3, 20, 50, 70]], np.array([-1.0, 0.0, 0.1, 2.0])),
        CalibratedScorer(total, slope=0.3, offset=-0.4, low=0.5, high=4.0),
    ]
    for scorer in scorers:
        export = TARGETS["json"](described(scorer, d), ExportOptions(shift=1.5))
        found = compare_scores(export, described(scorer, d), scorer.score(X), X, Queries.of(None, len(X)))
        assert found.unexplained_rows == found.unexplained_orders == 0
        assert found.offset == 1.5


@needs_node
@pytest.mark.parametrize("seed", range(6))
def test_javascript_follows_every_tree_on_hostile_rows(seed):
    rng = np.random.default_rng(seed)
    scorer = trees(rng, 3, n_trees=20)
    if seed == 0:
        scorer = TreeScorer(replace(scorer.trees, flags=np.full_like(scorer.trees.flags, 6)))
    X = rows(rng, 200, 3, scorer, missing=True)
    export = TARGETS["json"](described(scorer, 3), ExportOptions())
    np.testing.assert_array_equal(export.evaluate(X), scorer.score(X))


@needs_node
def test_javascript_takes_objects_by_name(tmp_path):
    export = TARGETS["json"](described(LinearScorer(np.array([2.0, 3.0]), 1.0), 2), ExportOptions())
    (tmp_path / "scorer.js").write_bytes(export.files[".js"])
    (tmp_path / "model.json").write_bytes(export.files[""])
    script = 'const m = require("./model.json"); console.log(require("./scorer.js").score(m, {x1: 10, x0: 1}))'
    run = subprocess.run(["node", "-e", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == "33\n"
    assert len(export.files[".js"].decode().splitlines()) < 70


def test_a_missing_node_is_named(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match=r"Node.js is not installed"):
        run_node({}, b"", np.zeros((1, 1)))


def test_onnx_has_names_and_types():
    onnx = pytest.importorskip("onnx")
    for double, kind in ((False, onnx.TensorProto.FLOAT), (True, onnx.TensorProto.DOUBLE)):
        export = TARGETS["onnx"](described(LinearScorer(np.ones(3)), 3), ExportOptions(double=double))
        model = onnx.load_from_string(export.files[""])
        onnx.checker.check_model(model, full_check=True)
        (given,), (returned,) = model.graph.input, model.graph.output
        assert (given.name, returned.name) == ("features", "scores")
        assert given.type.tensor_type.elem_type == returned.type.tensor_type.elem_type == kind
        assert {one.key: one.value for one in model.metadata_props} == {"feature_names": "x0\nx1\nx2"}


def test_literals_are_exact_in_sqlite():
    import sqlite3

    base, rng = sqlite3.connect(":memory:"), np.random.default_rng(0)
    drawn = np.concatenate([rng.normal(size=300), 10.0 ** rng.uniform(-300, 300, 300), [5e-324, 0.1, -2.0, 1e22, 0.0]])
    for value in drawn.tolist():
        assert base.execute(f"SELECT {exact_literal(value, 'sqlite')}").fetchone()[0] == value
        assert float(literal(value).strip("()")) == value
    base.close()


def test_many_trees_are_not_too_deep_for_databases():
    scorer = trees(np.random.default_rng(0), 3, n_trees=1500, most=4)
    X = rows(np.random.default_rng(1), 20, 3, scorer)
    export = TARGETS["sql"](described(scorer, 3), ExportOptions())
    np.testing.assert_allclose(export.evaluate(X), scorer.score(X), rtol=1e-12)


def test_dialects_differ_only_in_missing_values_and_casts():
    scorer = trees(np.random.default_rng(0), 2)
    texts = {one: TARGETS["sql"](described(scorer, 2), ExportOptions(dialect=one)).files[""].decode() for one in
             ("sqlite", "postgresql", "duckdb")}  # fmt: skip
    plain = re.sub(r"CAST\(([(\d]\S+) AS double precision\)", r"\1", texts["postgresql"])
    assert plain.replace("for postgresql", "for duckdb") == texts["duckdb"]
    assert "= 'NaN'" in texts["duckdb"]
    assert "NaN" not in texts["sqlite"]
    assert not any(word in texts["postgresql"] for word in ("IFNULL", "::", "`"))
    with pytest.raises(InputError, match="dialect is 'oracle'"):
        TARGETS["sql"](described(scorer, 2), ExportOptions(dialect="oracle"))


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgresql"])
@pytest.mark.parametrize("kind", [linear, trees])
def test_a_missing_column_is_an_error_in_databases(kind, dialect):
    """SQLite reads an unknown name in double quotes as a text, and `rowid` as a column of every table."""
    base = sqlite3.connect(":memory:") if dialect == "sqlite" else pytest.importorskip("duckdb").connect(":memory:")
    base.execute('CREATE TABLE "rows" (clicks DOUBLE PRECISION, corank_score DOUBLE PRECISION)')
    base.execute('INSERT INTO "rows" VALUES (1.0, 2.0), (2.0, 1.0)')
    scorer = kind(np.random.default_rng(0), 2)
    for name in ("stars", "rowid", "oid"):
        text = TARGETS["sql"](Description(("clicks", name), scorer), ExportOptions(dialect=dialect)).files[""].decode()
        with pytest.raises(Exception, match=name):
            base.execute(text)
    # rows are in the order of the new score, also if the table has a column of this name
    own = Description(("clicks", "corank_score"), LinearScorer(np.array([1.0, 0.0]), 0.0))
    found = base.execute(TARGETS["sql"](own, ExportOptions(dialect=dialect)).files[""].decode()).fetchall()
    assert [row[0] for row in found] == [2.0, 1.0]
    base.close()


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgresql"])
@pytest.mark.parametrize("kind", [linear, trees])
def test_columns_of_other_types_are_read_as_numbers(kind, dialect):
    """SQLite compares texts with texts, and a comparison of an integer with 'NaN' is an error in the others."""
    base = sqlite3.connect(":memory:") if dialect == "sqlite" else pytest.importorskip("duckdb").connect(":memory:")
    rows = np.random.default_rng(1).integers(-300, 300, size=(40, 2)).astype(float)
    rows[:4] = [[np.nan, 1.0], [2.0, np.nan], [np.nan, np.nan], [0.0, -0.0]]
    export = TARGETS["sql"](Description(("a", "b"), kind(np.random.default_rng(0), 2)), ExportOptions(dialect=dialect))
    expected = sorted(export.evaluate(rows).tolist(), reverse=True)
    missing = {"TEXT": "" if dialect == "sqlite" else None, "INTEGER": None, "DOUBLE PRECISION": np.nan}
    for name, gap in missing.items():
        base.execute(f'CREATE TABLE "rows" (a {name}, b {name})')
        values = [[gap if np.isnan(one) else int(one) for one in row] for row in rows]
        base.executemany('INSERT INTO "rows" VALUES (?, ?)', values)
        found = [row[0] for row in base.execute(export.files[""].decode()).fetchall()]
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=name)
        base.execute('DROP TABLE "rows"')
    base.close()


def test_names_that_a_database_reads_as_one_column_are_refused():
    scorer = LinearScorer(np.array([1.0, 2.0]), 0.0)
    long = "x" * 63
    for dialect, names in (("sqlite", ("Price", "price")), ("duckdb", ("Price", "price")),
                           ("postgresql", (long + "a", long + "b"))):  # fmt: skip
        with pytest.raises(InputError, match="as the same column; rename one"):
            TARGETS["sql"](Description(names, scorer), ExportOptions(dialect=dialect))
    assert TARGETS["sql"](Description(("Price", "price"), scorer), ExportOptions(dialect="postgresql")).files


def test_vespa_profiles():
    model = Description(("clicks", "bm25(title)"), LinearScorer(np.array([0.5, -1e-5]), 0.25))
    export = TARGETS["vespa"](model, ExportOptions(name="my-rank"))
    text = export.files[""].decode()
    assert "rank-profile my_rank inherits default {" in text
    assert "0.5 * attribute(clicks) +\n            -1e-05 * bm25(title) +\n            0.25" in text
    with pytest.raises(InputError, match="is not a rank feature of Vespa"):
        TARGETS["vespa"](Description(("a;b",), LinearScorer(np.ones(1))), ExportOptions())
    pytest.importorskip("onnx")
    export = TARGETS["vespa"](described(perceptron(np.random.default_rng(0), 2), 2), ExportOptions(name="net"))
    text = export.files[".profile"].decode()
    assert "tensor<float>(d0[1],d1[2]):[[attribute(x0), attribute(x1)]]" in text
    assert 'input "features": corank_features' in text


def test_neighbours_in_float32():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=1000), 10.0 ** rng.uniform(-45, 38, 1000), [0.0, 1e300, -1e300, 1e-46]])
    below, above = floor32(values).astype(np.float64), above32(values).astype(np.float64)
    inside = np.abs(values) < 3.4e38
    assert (below[inside] <= values[inside]).all()
    assert (above[inside] > values[inside]).all()
    singles = rng.normal(size=1000).astype(np.float32)
    for t in rng.choice(values[inside], 50):
        np.testing.assert_array_equal(singles <= t, singles <= floor32(t))
        np.testing.assert_array_equal(singles <= t, singles < above32(t))


@pytest.fixture(scope="module")
def model():
    problem = corank.make_ranking(12, 8, random_state=0)
    return corank.CRR(mix=0.5).fit(problem.X, problem.y, qid=problem.qid), problem


def test_the_report_and_the_remarks(model, tmp_path):
    ranker, problem = model
    done = export_model(ranker, tmp_path / "m.json", "elasticsearch", rows=problem.X, qid=problem.qid)
    assert [path.name for path in done.paths] == ["m.json", "m.features.json", "m.json.verify.json"]
    report = json.loads((tmp_path / "m.json.verify.json").read_text())
    assert report == done.verification.fields()
    assert report["n_rows"] == len(problem.X)
    assert report["offset"] == pytest.approx(-ranker.intercept_)
    assert report["unexplained_orders"] == report["changed_orders"] == 0
    assert 0.0 < report["largest_difference"] < 1e-5
    assert ["f1, f2" in done.remarks[0], "intercept" in done.remarks[1], "negative" in done.remarks[2]] == [True] * 3
    with pytest.raises(InputError, match="exists already"):
        export_model(ranker, tmp_path / "m.json", "elasticsearch")


def test_nothing_is_written_if_a_later_file_exists(model, tmp_path):
    (tmp_path / "m.features.json").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        export_model(model[0], tmp_path / "m.json", "solr")
    assert [path.name for path in tmp_path.iterdir()] == ["m.features.json"]


def test_files_of_an_export_never_have_the_same_name(model, tmp_path):
    """A main file called like a second one is refused, with and without overwriting, and nothing is written."""
    pytest.importorskip("lightgbm")
    problem = model[1]
    forest = corank.LambdaRank(scorer="trees", n_steps=2).fit(problem.X, problem.y, qid=problem.qid)
    for target in TARGETS:
        if target == "onnx":  # a single file, which needs onnx
            continue
        for suffix in make_export(forest, target)[1].files:
            for name in {f"m{suffix or '.txt'}", f"m{suffix or '.txt'}".upper()}:
                place = tmp_path / name
                for overwrite in (False, True):
                    if (target, suffix) in {("vespa", ".profile"), ("json", ".js")}:
                        with pytest.raises(InputError, match="is also the name of the file"):
                            export_model(forest, place, target, overwrite=overwrite)
                        assert not list(tmp_path.iterdir())
                        continue
                    done = export_model(forest, place, target, overwrite=overwrite)
                    assert len({path.read_bytes() for path in done.paths}) == len(done.paths)
                    for path in done.paths:
                        path.unlink()
    (tmp_path / "m.profile").symlink_to(tmp_path / "m.json")
    with pytest.raises(InputError, match="is also the name of the file"):
        export_model(forest, tmp_path / "m.json", "vespa", overwrite=True)
    assert not (tmp_path / "m.json").exists()


def test_scalers_of_a_pipeline_are_folded_into_the_weights(model):
    _, problem = model
    for scaler in (StandardScaler(), MinMaxScaler(), MaxAbsScaler()):
        pipeline = fit_with_qid(make_pipeline(scaler, corank.SPD("squared")), problem.X, problem.y, problem.qid)
        known, export = make_export(pipeline, "opensearch", name="m")
        weights = json.loads(json.loads(export.files[""])["model"]["model"]["definition"])
        steps = pipeline[0].transform(np.eye(problem.X.shape[1])) - pipeline[0].transform(np.zeros_like(problem.X[:1]))
        np.testing.assert_allclose(list(weights.values()), steps @ pipeline[-1].coef_, rtol=1e-6)
        _, other = make_export(pipeline, "solr", name="m")
        for one in (export, other):
            found = compare_scores(one, known, pipeline.predict(problem.X), problem.X, Queries.of(problem.qid, 96))
            assert found.is_exact
            assert found.changed_orders == 0


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch"])
def test_a_shift_makes_all_scores_positive(model, target, tmp_path):
    pytest.importorskip("lightgbm")
    ranker, problem = model
    boosted = corank.LambdaRank(scorer="trees", n_steps=10, random_state=0).fit(problem.X, problem.y, qid=problem.qid)
    for fitted in (ranker, boosted):
        _, export = make_export(fitted, target, shift="auto", rows=problem.X)
        scores = export.evaluate(problem.X)
        assert scores.min() >= 0.0
        np.testing.assert_allclose(scores - export.offset, fitted.predict(problem.X), atol=1e-5)
    with pytest.raises(InputError, match="needs rows"):
        make_export(ranker, target, shift="auto")
    with pytest.raises(InputError, match="pass a number, or 'auto'"):
        make_export(ranker, target, shift="most")


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch"])
def test_a_mixed_average_goes_to_engines_as_two_models(target, tmp_path):
    """Both scores are positive, and the sum orders rows as the average does; kernels are still refused."""
    pytest.importorskip("lightgbm")
    problem = corank.make_ranking(20, 12, random_state=0)
    average = corank.AutoRanker(deploy=target, random_state=0).fit(problem.X, problem.y, qid=problem.qid)
    boosted = corank.LambdaRank(scorer="trees", n_steps=5, random_state=0)
    boosted.fit(problem.X, problem.y, qid=problem.qid)
    average.members_, average.weights_ = [*average.members_, boosted], np.append(average.weights_, 0.5)
    average.scales_ = np.append(average.scales_, 2.0)
    if hasattr(average, "reads_ranks_"):
        average.reads_ranks_ = np.append(average.reads_ranks_, False)
    known, export = make_export(average, target, shift="auto", rows=problem.X, name="mixed")
    bodies = [json.loads(export.files[suffix]) for suffix in ("", ".trees.json")]
    assert [body["model"]["name"] for body in bodies] == ["mixed_linear", "mixed_trees"]
    for body in bodies:
        assert evaluate_plugin(body, known.names, problem.X, missing=True).min() > 0.0
    found = compare_scores(export, known, known.scorer.score(problem.X), problem.X, Queries.of(problem.qid, 240))
    assert found.is_exact
    assert found.changed_orders == 0
    done = export_model(average, tmp_path / "m.json", target, shift="auto", rows=problem.X, qid=problem.qid)
    assert [path.name for path in done.paths][1:4] == ["m.features.json", "m.trees.json", "m.query.json"]
    assert done.verification.largest_difference < 1e-5
    kernel = corank.RankRLS(kernel="gaussian").fit(problem.X, problem.y, qid=problem.qid)
    average.members_[-1] = kernel
    with pytest.raises(InputError, match="deploy="):
        make_export(average, target)
    with pytest.raises(InputError, match="Solr takes linear models and trees"):
        make_export([boosted, corank.SPD().fit(problem.X, problem.y, qid=problem.qid)], "solr")


def test_targets_refuse_what_they_cannot_run(model):
    rng = np.random.default_rng(0)
    net, calibrated = perceptron(rng, 2), CalibratedScorer(linear(rng, 2), slope=2.0)
    for target in ("elasticsearch", "opensearch", "solr", "sql"):
        with pytest.raises(InputError, match="but this is a perceptron; "):
            TARGETS[target](described(net, 2), ExportOptions())
    for target in ("elasticsearch", "opensearch", "solr", "sql"):
        with pytest.raises(InputError, match="export without calibration"):
            TARGETS[target](described(calibrated, 2), ExportOptions())
        with pytest.raises(InputError, match="but this is a kernel model; "):
            TARGETS[target](described(kernel_scorer(rng, "gaussian", 2), 2), ExportOptions())
    with pytest.raises(InputError, match=r"no target 'onx'; did you mean 'onnx'"):
        export_model(model[0], "m", "onx")
    with pytest.raises(InputError, match="name is 'a b'"):
        export_model(model[0], "m", "solr", name="a b")
    with pytest.raises(InputError, match="beyond the range of float32"):
        TARGETS["solr"](described(LinearScorer(np.array([1e39])), 1), ExportOptions())
