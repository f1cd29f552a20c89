from __future__ import annotations

import hashlib
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import corank
from corank.cli import app
from corank.comparison import model_card
from corank.errors import InputError


@pytest.fixture(scope="module")
def problem():
    return corank.make_ranking(n_queries=40, rows_per_query=10, n_latent=2, features_per_view=2, random_state=0)


def test_a_card_gives_the_evaluated_figures_with_baselines(problem):
    model = corank.RankRLS(kernel="linear").fit(problem.X[:200], problem.y[:200], qid=problem.qid[:200])
    X, y, qid = problem.X[200:], problem.y[200:].copy(), problem.qid[200:]
    y[::10] = np.nan
    text = model_card(model, X, y, qid, about="For *tests*.").markdown()
    wanted = corank.evaluate(y, model.predict(X), qid, "nDCG@10")["nDCG@10"]
    row = re.search(r"\| nDCG@10 \| this model \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (\d+) \|", text)
    mean, low, high = map(float, row.groups()[:3])
    assert mean == pytest.approx(wanted.mean, abs=1e-4)
    assert low < mean < high
    assert int(row[4]) == wanted.n_used
    assert "| nDCG@10 | random order |" in text
    assert "| nDCG@10 | mean of all columns, without learning |" in text
    assert "10% of the rows are unjudged" in text
    assert "20 queries are few" in text
    assert r"For \*tests\*." in text
    assert "## Calibration" not in text


def test_a_calibrated_model_has_its_calibration(problem):
    y = (problem.y >= 2).astype(float)
    model = corank.Calibrated(corank.RankRLS(kernel="linear")).fit(problem.X[:200], y[:200], qid=problem.qid[:200])
    text = model_card(model, problem.X[200:], y[200:], problem.qid[200:]).markdown()
    p = model.predict_proba(problem.X[200:])[:, 1]
    error = corank.base.reliability_curve(y[200:], p, strategy="quantile").expected_error
    assert f"Expected calibration error {error:.3f}" in text
    assert "Scores are not probabilities" not in text


def test_the_command_writes_a_card_of_a_saved_model(tmp_path, monkeypatch, problem):
    monkeypatch.chdir(tmp_path)
    model = corank.RankRLS(kernel="linear").fit(problem.X[:200], problem.y[:200], qid=problem.qid[:200])
    corank.save(model, "model.safetensors")
    corank.data.write_letor("test.txt", problem.X[200:], problem.y[200:], problem.qid[200:])
    words = ["card", "model.safetensors", "test.txt", "--about", "<b>x</b>"]
    result = CliRunner().invoke(app, [*words, "-o", "card.html"])
    assert result.exit_code == 0, result.output
    html = (tmp_path / "card.html").read_text(encoding="utf-8")
    assert hashlib.sha256((tmp_path / "model.safetensors").read_bytes()).hexdigest() in html
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert "corank card model.safetensors test.txt --metric nDCG@10 --metric AP" in html
    with pytest.raises(InputError, match="neither HTML nor Markdown"):
        CliRunner().invoke(app, [*words, "-o", "card.pdf"], catch_exceptions=False)


def test_missing_values_are_taken_if_the_model_takes_them(problem):
    X = problem.X.copy()
    X[::4, 1] = np.nan
    model = corank.RankRLS(kernel="linear").fit(X[:200], problem.y[:200], qid=problem.qid[:200])
    text = model_card(model, X[200:], problem.y[200:], problem.qid[200:]).markdown()
    wanted = corank.evaluate(problem.y[200:], model.predict(X[200:]), problem.qid[200:], "AP")["AP"].mean
    assert f"| AP | this model | {wanted:.4f} |" in text
    plain = corank.RankRLS(kernel="linear").fit(problem.X[:200], problem.y[:200], qid=problem.qid[:200])
    with pytest.raises(InputError, match="X contains NaN"):
        model_card(plain, X[200:], problem.y[200:], problem.qid[200:])
