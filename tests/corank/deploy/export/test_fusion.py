"""Exported fusions rank as the fusion does: SQLite and Python run here, search engines by their documented rules."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.deploy.export import export_fusion
from corank.errors import InputError
from corank.models.fusion import EngineForm, FusionDefinition, Term

NAMES = ("bm25", "vectors", 'a "third"\n-- one')


def made(transform, weights, k=None):
    terms = tuple(Term(name, transform, weight, k) for name, weight in zip(NAMES, weights, strict=False))
    return FusionDefinition(NAMES[: len(weights)], terms, f"{transform} {weights}")


MIXED = FusionDefinition(
    NAMES, (Term("bm25", "minmax", 0.4), Term("vectors", "minmax", 0.3), Term("vectors", "presence", 0.2),
            Term(NAMES[2], "reciprocal_rank", 5.0, 10.0), Term(NAMES[2], "minmax", -0.5)), "mixed",
)  # fmt: skip
FUSIONS = {
    "rrf": FusionDefinition.rrf(NAMES),
    "weighted rrf": made("reciprocal_rank", (0.2, 0.7, 0.1), 20.0),
    "min-max": made("minmax", (2.0, 1.0, 0.5)),
    "mixed": MIXED,
}


@pytest.fixture
def lists():
    """Scores of 40 documents; a third is absent from each list, and one list has equal scores."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [3.0, 0.2, 1.0] + [12.0, 0.6, 0.0]
    X[rng.random(X.shape) < 0.35] = np.nan
    return X[~np.isnan(X).all(axis=1)]


def same_order(expected, actual):
    """Assert that scores differ by a constant."""
    np.testing.assert_allclose(actual - actual[0], expected - expected[0], rtol=0, atol=1e-9)


def write(tmp_path, definition, to, **options):
    done = export_fusion(definition, tmp_path / "fusion.out", to, **options)
    return done.paths[0].read_text(), done


@pytest.mark.parametrize("kind", FUSIONS)
@pytest.mark.parametrize("equal", [False, True])
def test_sqlite_and_python_score_as_the_fusion(tmp_path, lists, kind, equal):
    definition = FUSIONS[kind]
    X = lists[:, : len(definition.retrievers)]
    X = X[~np.isnan(X).all(axis=1)]
    if equal:
        X[~np.isnan(X[:, 0]), 0] = 2.0
    text, _ = write(tmp_path, definition, "sql")
    base = sqlite3.connect(":memory:")
    for number in range(1, X.shape[1] + 1):  # the lists of the retrievers instead of their queries
        base.execute(f"CREATE TABLE given_{number} (id INTEGER, score REAL)")
        rows = [(i, score) for i, score in enumerate(X[:, number - 1].tolist()) if not np.isnan(score)]
        base.executemany(f"INSERT INTO given_{number} VALUES (?, ?)", rows)
        text = re.sub(
            rf"(list_{number} AS \(  -- [^\n]*\n).*?\n\)", rf"\1SELECT * FROM given_{number}\n)", text, flags=re.DOTALL
        )
    found = base.execute(text).fetchall()
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    same_order(definition.score(X), np.array([score for _, score in sorted(found)]))
    (tmp_path / "fusion.out").unlink()

    namespace = {}
    exec(write(tmp_path, definition, "python")[0], namespace)
    given = {
        name: [(i, score) for i, score in enumerate(column.tolist()) if not np.isnan(score)]
        for name, column in zip(definition.retrievers, X.T, strict=True)
    }
    np.testing.assert_allclose([s for _, s in sorted(namespace["fuse"](given))], definition.score(X), atol=1e-12)


def minmax(scores):
    return (scores - np.nanmin(scores)) / (np.nanmax(scores) - np.nanmin(scores))


def engine_scores(to, value, X):
    """Score lists by the documented rule of an engine, from the written request."""
    ranks = np.array([[np.sum(column > s) + 1 if not np.isnan(s) else np.nan for s in column] for column in X.T]).T
    if to == "elasticsearch":
        ((kind, body),) = value["retriever"].items()
        weights = [part.get("weight", 1.0) for part in body["retrievers"]]
        if kind == "rrf":
            columns = 1 / (body["rank_constant"] + ranks)
        else:
            rules = {"minmax": minmax}
            columns = np.column_stack([rules[p["normalizer"]](s) for p, s in zip(body["retrievers"], X.T, strict=True)])
    elif to == "opensearch":
        ((kind, body),) = value["phase_results_processors"][0].items()
        parameters = body["combination"].get("parameters", {})
        weights = parameters.get("weights", [1.0] * X.shape[1])
        assert max(weights) <= 1.0
        if kind == "score-ranker-processor":
            columns = 1 / (body["combination"]["rank_constant"] + ranks)
        else:
            assert sum(weights) == pytest.approx(1.0)
            rules = {"min_max": minmax}
            columns = np.column_stack([rules[body["normalization"]["technique"]](s) for s in X.T])
    elif to == "solr":
        weights, columns = [1.0] * X.shape[1], 1 / (int(value["params"]["combiner.rrf.k"]) + ranks)
    else:  # qdrant: ranks from 0
        weights, columns = [1.0] * X.shape[1], 1 / (value["query"]["rrf"]["k"] + ranks - 1)
    return np.nan_to_num(columns) @ np.array(weights)


@pytest.mark.parametrize(
    ("to", "kind"),
    [(to, kind) for to in ("elasticsearch", "opensearch") for kind in ("rrf", "weighted rrf", "min-max")]
    + [("solr", "rrf"), ("qdrant", "rrf")],
)
def test_requests_of_engines_score_as_the_fusion_up_to_a_factor(tmp_path, lists, to, kind):
    definition = FUSIONS[kind]
    X = lists[:, : len(definition.retrievers)]
    X = X[~np.isnan(X).all(axis=1)]
    value = json.loads(write(tmp_path, definition, to)[0])
    expected, actual = definition.score(X), engine_scores(to, value, X)
    np.testing.assert_allclose(actual / actual.max(), expected / expected.max(), rtol=1e-12)


def test_vespa_writes_every_term_and_balanced_braces(tmp_path):
    definition = FusionDefinition(
        NAMES[:2], (Term("bm25", "minmax", 0.4), Term("vectors", "reciprocal_rank", 5.0, 10.0)), "mixed"
    )
    text, _ = write(tmp_path, definition, "vespa")
    assert "0.40000000000000002 * normalize_linear(retriever_1) + 5 * reciprocal_rank(retriever_2, 10)" in text
    assert text.count("{") == text.count("}")


def test_the_code_of_qdrants_client_ranks_as_the_fusion(tmp_path):
    qdrant, fusion = pytest.importorskip("qdrant_client.models"), pytest.importorskip("qdrant_client.hybrid.fusion")
    definition = FusionDefinition.rrf(("bm25", "vectors"), k=7)
    rng = np.random.default_rng(1)
    X = rng.permuted(np.tile(np.arange(30.0), (2, 1)), axis=1).T
    X[rng.random(X.shape) < 0.3] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    value = json.loads(write(tmp_path, definition, "qdrant")[0])
    responses = [
        [qdrant.ScoredPoint(id=int(i), version=0, score=float(s[i])) for i in np.argsort(-s) if not np.isnan(s[i])]
        for s in X.T
    ]
    found = fusion.reciprocal_rank_fusion(responses, limit=99, ranking_constant_k=value["query"]["rrf"]["k"])
    expected = definition.score(X)
    np.testing.assert_allclose([point.score for point in found], [expected[point.id] for point in found])


def test_what_an_engine_cannot_express_is_refused_with_the_nearest_and_its_loss(tmp_path):
    forms = (
        EngineForm("rrf", 60.0, (0.5, 0.2, 0.3), 0.021, 0.004, 0.038),
        EngineForm("minmax", None, (0.5, 0.2, 0.3), 0.008),
    )
    definition = replace(MIXED, engine_forms=forms)
    with pytest.raises(InputError, match="nearest that it can is a weighted sum of"):
        write(tmp_path, definition, "opensearch")
    text, done = write(tmp_path, definition, "opensearch", nearest=True)
    assert "min_max" in text
    assert "loses 0.008" in done.remarks[0]
    better = replace(MIXED, engine_forms=(replace(forms[1], loss=-0.012),))
    _, done = write(tmp_path, better, "opensearch", nearest=True, overwrite=True)
    assert "loses nothing on left-out queries (+0.012" in done.remarks[0]
    for to in ("qdrant", "solr", "milvus", "lancedb"):  # weights that differ
        with pytest.raises(InputError, match="export it to sql or python"):
            write(tmp_path, definition, to, nearest=True)
    with pytest.raises(InputError, match="uses bm25 alone"):
        write(tmp_path, made("minmax", (1.0, 0.0)), "elasticsearch")
    with pytest.raises(InputError, match=r"takes RRF.*minmax"):
        write(tmp_path, made("minmax", (1.0, -0.5)), "elasticsearch")
    with pytest.raises(InputError, match=r"no target 'sq' for fusions"):
        write(tmp_path, MIXED, "sq")
    assert not list(tmp_path.glob("*.out.*"))


def test_command(tmp_path):
    definition, out = tmp_path / "fusion.json", tmp_path / "pipeline.json"
    FUSIONS["min-max"].save(definition)

    def run(to, *words):
        return CliRunner().invoke(app, ["export", str(definition), "--to", to, "-o", str(out), *words])

    assert "pipeline.query.json" in run("opensearch").output
    assert json.loads(out.read_text())["phase_results_processors"]
    assert "overwrite" in str(run("opensearch").exception) or "exists" in str(run("opensearch").exception)
    for to, words, sentence in (
        ("qdrant", ["--force"], "Qdrant 1.16 takes RRF with equal weights"),
        ("onnx", [], "no target 'onnx' for fusions"),
        ("sql", ["--shift", "1"], "are for models"),
        ("sql", ["--dialect", "duckdb", "--force"], "postgresql and sqlite"),
    ):
        assert sentence in str(run(to, *words).exception)
