from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import corank
from corank.cli import app
from corank.data.io.stores import write_store
from corank.data.routing import predict_with_qid
from corank.deploy.distributed import fit_parts
from corank.models.rls import RankRLS


@pytest.fixture
def folder(made, y, tmp_path):
    """The collection as three stores, cut in the middle of queries."""
    (tmp_path / "parts").mkdir()
    for at, rows in enumerate(np.split(np.arange(len(y)), [83, 150])):
        write_store(tmp_path / "parts" / f"{at}.store", made.X[rows], y[rows], made.qid[rows])
    return tmp_path / "parts"


@pytest.mark.long
def test_a_folder_is_fitted_part_after_part(says, made, y, folder, tmp_path):
    said = says("fit", folder, "--model", "rankrls", "-o", tmp_path / "a")
    assert "RankRLS from 240 rows in 30 queries and 3 parts, 10 features" in said
    assert "2 straddling queries" in said
    whole = fit_parts(RankRLS(), [(made.X, y, made.qid)])
    assert corank.load(tmp_path / "a").coef_.tobytes() == whole.coef_.tobytes()
    says("fit", *sorted(folder.iterdir()), "--model", "rankrls", "-o", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.long
def test_on_a_cluster_the_file_is_the_same(says, folder, tmp_path):
    pytest.importorskip("distributed")
    words = ("fit", folder, "--model", "rankrls", "--scale", "minmax", "-o")
    says(*words, tmp_path / "a")
    said = says(*words, tmp_path / "b", "--cluster", "local:1")
    assert "1 workers;" in said
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.long
def test_queries_are_scaled_where_they_are_whole(says, made, y, folder, tmp_path):
    said = says("fit", folder, "--model", "rankrls", "--scale", "zscore", "-o", tmp_path / "a")
    assert "RankRLS from 240 rows in 30 queries and 3 parts, 10 features" in said
    assert "alpha" in said
    scores = predict_with_qid(corank.load(tmp_path / "a"), made.X, made.qid)
    write_store(tmp_path / "all.store", made.X, y, made.qid)
    says("fit", tmp_path / "all.store", "--model", "rankrls", "--scale", "zscore", "-o", tmp_path / "b")
    whole = predict_with_qid(corank.load(tmp_path / "b"), made.X, made.qid)
    np.testing.assert_allclose(scores, whole, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "rankrls", "--prior", "1-3"], "--prior needs all rows at once"),
        (["--model", "lambdarank"], "LambdaRank cannot be fitted to parts"),
        (["--model", "rankrls", "--cluster", "nowhere"], "--cluster nowhere does not answer"),
    ],
)
def test_what_cannot_be_done_with_parts_writes_nothing(folder, tmp_path, monkeypatch, words, said):
    monkeypatch.setattr("corank.cli.learn.fitting._CONNECT_TIMEOUT", 1)
    result = CliRunner().invoke(app, ["fit", str(folder), "-o", str(tmp_path / "model"), *words])
    assert result.exit_code == 1
    assert said in str(result.exception or result.output)
    assert not (tmp_path / "model").exists()


def test_a_model_that_stands_is_not_replaced(folder, tmp_path):
    (tmp_path / "model").write_text("mine")
    result = CliRunner().invoke(app, ["fit", str(folder), "-o", str(tmp_path / "model"), "--model", "rankrls"])
    assert result.exit_code == 1
    assert (tmp_path / "model").read_text() == "mine"
