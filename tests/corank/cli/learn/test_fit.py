from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from typer.testing import CliRunner

import corank
from corank.cli import app
from corank.data.io.stores import write_store
from corank.data.io.write import write_letor
from corank.errors import InputError
from corank.models.auto import AutoRanker
from corank.models.lambdarank import LambdaRank
from corank.models.linear import CRR, LCRA, SPD
from corank.models.linear.descent import ParallelDescent


@pytest.mark.thin(3)
@pytest.mark.parametrize(
    ("words", "model"),
    [
        (["--model", "spd", "--lambda", "0.01", "--iterations", "3000", "--loop", "query"],
         SPD(alpha=0.01, n_steps=3000, query_weight="equal", random_state=0)),
        (["--model", "crr", "--loss", "squared", "--mix", "0.3", "--set", "solver=exact"],
         CRR(loss="squared", mix=0.3, solver="exact")),
        (["--model", "lcra", "--views", "1-5/6-10", "--coupling", "0.5", "--loss", "squared", "--seed", "7", "--eta",
          "constant", "--set", "solver=sgd", "--set", "n_steps=2000"],
         LCRA(views=[list(range(5)), list(range(5, 10))], coupling=0.5, loss="squared", rate="constant", solver="sgd",
              n_steps=2000, random_state=7)),
        (["--model", "lambdarank", "--lambda", "ndcg@5", "--scorer", "mlp", "--iterations", "30"],
         LambdaRank("ndcg@5", "mlp", n_steps=30, random_state=0)),
        (["--model", "lambdarank", "--lambda", "map", "--scorer", "trees", "--set", 'tree_params={"num_leaves": 4}'],
         LambdaRank("map", "trees", tree_params={"num_leaves": 4}, random_state=0)),
    ],
)  # fmt: skip
def test_fit_learns_what_the_estimator_learns_and_rank_scores_with_it(says, made, y, text, tmp_path, words, model):
    said = says("fit", text, *words, "--unjudged", "-1", "-o", tmp_path / "model.safetensors")
    assert "240 rows (120 scored) in 30 queries, 10 features" in said
    expected = model.fit(made.X, y, qid=made.qid).predict(made.X)
    says("rank", tmp_path / "model.safetensors", text, "-o", tmp_path / "scores.txt")
    np.testing.assert_allclose(np.loadtxt(tmp_path / "scores.txt"), expected, rtol=1e-12)
    assert says("rank", tmp_path / "model.safetensors", text) == (tmp_path / "scores.txt").read_text()


def test_without_a_model_several_rankers_are_tried_and_the_choice_is_printed(says, made, y, text, tmp_path):
    few = ["--set", 'candidates=["linear", "linear-strong"]', "--time-limit", "60"]
    said = says("fit", text, *few, "--unjudged", "-1", "-o", tmp_path / "m")
    model = corank.load(tmp_path / "m")
    assert isinstance(model, AutoRanker)
    assert model.time_limit == 60
    assert said.rstrip().endswith(model.summary())
    expected = AutoRanker(60, candidates=["linear", "linear-strong"], random_state=0).fit(made.X, y, qid=made.qid)
    np.testing.assert_allclose(model.predict(made.X), expected.predict(made.X), rtol=1e-9)


def test_a_column_of_one_value_or_nothing_is_an_indicator_and_fit_says_so(says, made, tmp_path):
    flags = np.where(np.random.default_rng(1).random(len(made.y)) < 0.5, "1", "")
    lines = [f"{y},{q},{x},{flag}" for y, q, x, flag in zip(made.y, made.qid, made.X[:, 0], flags, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["label,qid,bm25,on_sale", *lines]))
    said = says("fit", tmp_path / "t.csv", "-m", "rankrls", "-o", tmp_path / "m")
    assert "'on_sale' has one value or none, so only whether it is missing is used" in said
    assert np.abs(corank.load(tmp_path / "m").coef_).max() < 100


def test_the_closing_line_tells_the_training_error(says, made, y, text, tmp_path):
    said = says("fit", text, "-m", "spd", "--unjudged", "-1", "-o", tmp_path / "m")
    model = corank.load(tmp_path / "m")
    assert f"{1 - model.score(made.X, y, made.qid):.4f}" in said


def test_the_closing_line_tells_alpha_and_what_it_was_chosen_from(says, text, tmp_path):
    said = says("fit", text, "-m", "crr", "--unjudged", "-1", "-o", tmp_path / "m")
    model = corank.load(tmp_path / "m")
    assert said.endswith(f"; alpha {model.alpha_:.4g} (pair differences)\n")
    assert says("fit", text, "-m", "spd", "--alpha", "0.25", "-o", tmp_path / "n").endswith("; alpha 0.25 (given)\n")
    assert "alpha" not in says("fit", text, "-m", "ranking-pursuit", "-o", tmp_path / "p")


@pytest.mark.parametrize("scale", [None, "minmax"])
def test_a_model_learns_on_top_of_features_that_are_scores(says, made, y, text, tmp_path, scale):
    words = [] if scale is None else ["--scale", scale]
    said = says("fit", text, "-m", "rankrls", "--prior", "2,4-5", *words, "--unjudged", "-1", "-o", tmp_path / "m")
    X = made.X if scale is None else corank.QueryScaler(scale).fit(made.X, qid=made.qid).transform(made.X, made.qid)
    model = corank.base.ResidualRanker(corank.ColumnMean([1, 3, 4]), corank.RankRLS(random_state=0)).fit(
        X, y, qid=made.qid
    )
    assert "RankRLS on top of 3 features from 240 rows" in said
    assert said.endswith(f"; alpha {model.ranker_.alpha_:.4g} (pair differences)\n")
    says("rank", tmp_path / "m", text, "-o", tmp_path / "scores.txt")
    np.testing.assert_allclose(np.loadtxt(tmp_path / "scores.txt"), model.predict(X, made.qid), rtol=1e-9)


@pytest.mark.parametrize("method", ["minmax", "zscore"])
@pytest.mark.parametrize("density", [0.1, 1.0])
def test_scale_puts_a_scaler_before_the_ranker_here_and_in_rank(says, made, y, tmp_path, method, density):
    rng = np.random.default_rng(0)
    X = np.where(rng.random(made.X.shape) < density, made.X, 0)
    write_letor(tmp_path / "train.txt", csr_matrix(X), y, made.qid, unjudged=-1)
    said = says(
        "fit", tmp_path / "train.txt", "-m", "crr", "--set", "solver=exact", "--loss", "squared", "--scale", method,
        "--unjudged", "-1", "-o", tmp_path / "m",
    )  # fmt: skip
    scaled = np.zeros_like(X)
    for query in np.unique(made.qid):
        rows = X[made.qid == query].astype(np.float64)
        lowest, spread = rows.min(axis=0), np.ptp(rows, axis=0)
        if method == "zscore":
            lowest, spread = rows.mean(axis=0), rows.std(axis=0)
        scaled[made.qid == query] = np.where(spread > 0, (rows - lowest) / np.where(spread > 0, spread, 1), 0)
    expected = CRR(loss="squared", solver="exact").fit(scaled, y, qid=made.qid)
    assert f"{1 - expected.score(scaled, y, made.qid):.4f}" in said
    # the same rows in other units and another order are ranked the same
    order = rng.permutation(len(X))
    write_store(tmp_path / "test.store", csr_matrix(X[order] * 3 + 1), y[order], made.qid[order])
    says("rank", tmp_path / "m", tmp_path / "test.store", "-o", tmp_path / "scores")
    np.testing.assert_allclose(np.loadtxt(tmp_path / "scores"), expected.predict(scaled)[order], atol=1e-4)
    # one query scales otherwise
    says("rank", tmp_path / "m", tmp_path / "test.store", "--qid", "none", "-o", tmp_path / "together")
    assert np.abs(np.loadtxt(tmp_path / "together") - np.loadtxt(tmp_path / "scores")).max() > 1e-3


def test_grades_without_a_pair_can_be_regressed_on(says, text, tmp_path):
    text.write_text("1 qid:1 1:0.5\n1 qid:1 1:0.7\n")
    said = says("fit", text, "-m", "crr", "--mix", "1", "-o", tmp_path / "m")
    assert "no training scores to compare" in said
    assert corank.load(tmp_path / "m").intercept_ == pytest.approx(1.0)


def test_without_query_ids_rows_of_all_queries_are_compared(says, text, tmp_path):
    said = says("fit", text, "-m", "spd", "--qid", "none", "--unjudged", "-1", "-o", tmp_path / "m")
    assert "in 1 queries" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "spdd"], "no model 'spdd'"),
        (["--model", "spd", "--mix", "0.5"], "--mix sets the parameter 'mix'"),
        (["--model", "spd", "--set", "n_stepz=3"], "did you mean 'n_steps'"),
        (["--model", "spd", "--loss", "absolute"], "loss"),
        (["--model", "spd", "--loop", "all"], "--loop 'all' is unknown"),
        (["--model", "lcra", "--views", "1-5/6-11"], "--views names feature 11, but the data has 10"),
        (
            ["--model", "spd", "--prior", "1-x"],
            r"--prior names the column '1-x', but X has no column names; pass its number",
        ),
        (["--model", "spd", "--prior", "3-11"], "--prior names feature 11, but the data has 10"),
        (["--model", "lcra", "--views", "11"], "views=11 needs one column per view"),
    ],
)
def test_bad_words_give_one_sentence_and_no_file(says, text, tmp_path, words, message):
    with pytest.raises(InputError, match=message):
        says("fit", text, *words, "-o", tmp_path / "m")
    assert not (tmp_path / "m").exists()


SGD = ("--loss", "hinge", "--set", "solver=sgd")


@pytest.fixture(autouse=True)
def listening():
    """Ctrl-C is heard, also where tests run in the background and a shell has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_fit(monkeypatch, text, path, *words, at=3):
    """Press Ctrl-C when `at` pieces of the steps are taken."""
    advance, pieces = ParallelDescent.advance, []

    def press(runs, task, n):
        if len(pieces) == at:
            signal.raise_signal(signal.SIGINT)
        pieces.append(n)
        advance(runs, task, n)

    with monkeypatch.context() as patch:
        patch.setattr(ParallelDescent, "advance", press)
        words = ["fit", text, "-m", "spd", *SGD, "--iterations", 3000, "--unjudged", -1, "-o", path, *words]
        return CliRunner().invoke(app, [str(word) for word in words]), sum(pieces)


@pytest.mark.long
@pytest.mark.parametrize("words", [[], ["--scale", "zscore"]])
def test_ctrl_c_saves_the_steps_taken_so_far(monkeypatch, says, made, text, tmp_path, words):
    result, n_steps = interrupted_fit(monkeypatch, text, tmp_path / "m", *words)
    assert result.exit_code == 130
    assert result.stderr == f"corank: interrupted; {tmp_path / 'm'} contains the {n_steps} steps taken so far.\n"
    assert 0 < n_steps < 3000
    says("fit", text, "-m", "spd", *SGD, "--iterations", n_steps, "--unjudged", -1, *words, "-o", tmp_path / "short")
    for name in ("m", "short"):
        says("rank", tmp_path / name, text, "-o", tmp_path / f"{name}.txt")
    assert (tmp_path / "m.txt").read_text() == (tmp_path / "short.txt").read_text()


def test_ctrl_c_before_there_is_a_model_writes_nothing(monkeypatch, text, tmp_path):
    (tmp_path / "m").write_text("old")
    result, n_steps = interrupted_fit(monkeypatch, text, tmp_path / "m", "--force", at=0)
    assert (result.exit_code, n_steps) == (130, 0)
    assert result.stderr == f"corank: interrupted before the first step; {tmp_path / 'm'} was not written.\n"
    assert (tmp_path / "m").read_text() == "old"


def test_a_second_ctrl_c_while_saving_leaves_nothing_half_written(monkeypatch, text, tmp_path):
    (tmp_path / "m").write_text("old")

    def press(tensors, scratch, metadata):
        scratch.write_bytes(b"a part")
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("corank.deploy.persist.files.save_file", press)
    result, _ = interrupted_fit(monkeypatch, text, tmp_path / "m", "--force")
    assert result.exit_code == 130
    assert (tmp_path / "m").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["m", "rows.txt"]


def test_lambda_is_a_weight_or_gradients(says, text, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="--alpha is 'ndcg'"):
        says("fit", text, "-m", "spd", "--lambda", "ndcg", "-o", tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_lambdas.py").write_text("def lambdas(scores, labels):\n    return labels - labels.mean()\n")
    says("fit", text, "-m", "lambdarank", "--lambda", "my_lambdas:lambdas", "--unjudged", "-1", "-o", tmp_path / "m")
    assert corank.load(tmp_path / "m").lambdas == "my_lambdas:lambdas"
