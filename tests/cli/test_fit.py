from __future__ import annotations

import numpy as np
import pytest

import corank
from corank.descent import CRR, LCRA, SPD
from corank.errors import InputError


@pytest.mark.parametrize(
    ("words", "model"),
    [
        (["--model", "spd", "--lambda", "0.01", "--iterations", "3000", "--loop", "query-norm-rank"],
         SPD(alpha=0.01, n_steps=3000, sampling="query", random_state=0)),
        (["--model", "crr", "--loss", "squared", "--mix", "0.3", "--set", "solver=exact"],
         CRR(loss="squared", mix=0.3, solver="exact")),
        (["--model", "lcra", "--views", "1-5/6-10", "--coupling", "0.5", "--loss", "squared", "--seed", "7", "--eta",
          "constant", "--set", "solver=sgd", "--set", "n_steps=2000"],
         LCRA(views=[list(range(5)), list(range(5, 10))], coupling=0.5, loss="squared", rate="constant", solver="sgd",
              n_steps=2000, random_state=7)),
    ],
)  # fmt: skip
def test_fit_learns_what_the_estimator_learns_and_rank_scores_with_it(says, made, y, text, tmp_path, words, model):
    said = says("fit", text, *words, "--unscored", "-1", "-o", tmp_path / "model.safetensors")
    assert "240 rows (120 scored) in 30 queries, 10 features" in said
    expected = model.fit(made.X, y, qid=made.qid).predict(made.X)
    says("rank", tmp_path / "model.safetensors", text, "-o", tmp_path / "scores.txt")
    np.testing.assert_allclose(np.loadtxt(tmp_path / "scores.txt"), expected, rtol=1e-12)
    assert says("rank", tmp_path / "model.safetensors", text) == (tmp_path / "scores.txt").read_text()


def test_the_closing_line_tells_the_training_error(says, made, y, text, tmp_path):
    said = says("fit", text, "-m", "spd", "--unscored", "-1", "-o", tmp_path / "m")
    model = corank.load(tmp_path / "m")
    assert f"{1 - model.score(made.X, y, made.qid):.4f}" in said


def test_grades_without_a_pair_can_be_regressed_on(says, text, tmp_path):
    text.write_text("1 qid:1 1:0.5\n1 qid:1 1:0.7\n")
    said = says("fit", text, "-m", "crr", "--mix", "1", "-o", tmp_path / "m")
    assert "no training scores to compare" in said
    assert corank.load(tmp_path / "m").intercept_ == pytest.approx(1.0)


def test_the_roc_loop_compares_rows_of_all_queries(says, text, tmp_path):
    said = says("fit", text, "-m", "spd", "--loop", "roc", "--unscored", "-1", "-o", tmp_path / "m")
    assert "in 1 queries" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "spdd"], "no model 'spdd'"),
        (["--model", "spd", "--mix", "0.5"], "--mix sets 'mix'"),
        (["--model", "spd", "--set", "n_stepz=3"], "did you mean 'n_steps'"),
        (["--model", "spd", "--loss", "absolute"], "'loss' parameter of SPD must be"),
        (["--model", "spd", "--loop", "all"], "--loop 'all' is unknown"),
        (["--model", "lcra", "--views", "1-5/6-11"], "--views names feature 11, but the data has 10"),
        (["--model", "lcra", "--views", "11"], "views=11 needs a column for each"),
    ],
)
def test_bad_words_give_one_sentence_and_no_file(says, text, tmp_path, words, message):
    with pytest.raises(InputError, match=message):
        says("fit", text, *words, "-o", tmp_path / "m")
    assert not (tmp_path / "m").exists()
