from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import corank
from corank.cli import app
from corank.cli.learn.compare import parse_time, parse_unjudged
from corank.comparison import study
from corank.data.io.write import write_letor
from corank.errors import InputError


@pytest.fixture(autouse=True)
def local(monkeypatch):
    from helpers.local_pool import LocalPool

    LocalPool.done = []
    monkeypatch.setattr(study, "WorkerPool", LocalPool)
    return LocalPool.done


def test_a_file_is_compared_and_the_winner_ranks(says, text, made, tmp_path):
    out = tmp_path / "out"
    said = says("compare", text, "--unjudged=-1", "--models", "rankrls,crr", "--folds", "3", "--no-curve", "-o", out)
    assert "RankRLS" in said
    assert "mean of all columns" in said
    assert "P(worse)" in said
    assert "is recommended: nDCG@10 0." in said
    record = json.loads((out / "study.json").read_text())
    assert record["command"].startswith("corank")
    assert record["data"]["n_unscored_queries"] == 15
    assert str(out / "model.safetensors") in said
    says("rank", out / "model.safetensors", text, "-o", tmp_path / "scores")
    scores = np.loadtxt(tmp_path / "scores")
    np.testing.assert_allclose(corank.load(out / "model.safetensors").predict(made.X), scores, rtol=1e-5, atol=1e-7)


def test_json_is_the_study_and_a_second_run_learns_nothing(says, text, tmp_path, local):
    words = [
        "compare",
        text,
        "--unjudged=-1",
        "--models",
        "rankrls",
        "--folds",
        2,
        "--no-curve",
        "-o",
        tmp_path / "out",
    ]
    first = json.loads(says(*words, "--json"))
    local.clear()
    second = json.loads(says(*words, "--json"))
    assert local == []
    assert first["outcomes"] == second["outcomes"]
    assert first["winner"] in ("rankrls", "columns")


@pytest.mark.long
def test_a_pool_of_unscored_rows_is_read(says, text, made, tmp_path):
    write_letor(tmp_path / "pool.txt", made.X[:20, :4], np.zeros(20), np.repeat([901, 902], 10))
    record = json.loads(
        says(
            "compare", text, "--unjudged", "-1", "--unjudged", tmp_path / "pool.txt", "--models", "lcra", "--folds", 2,
            "--no-curve", "-o", tmp_path / "out", "--json", "--prior", "1-2",
        )
    )  # fmt: skip
    assert record["data"]["n_pool_rows"] == 20
    assert record["outcomes"][0]["title"]


def test_a_table_without_queries(says, made, tmp_path):
    table = tmp_path / "rows.csv"
    lines = [",".join(map(str, [*row, score])) for row, score in zip(made.X.tolist(), made.utility, strict=True)]
    table.write_text("\n".join([",".join([*(f"f{j}" for j in range(10)), "price"]), *lines]))
    said = says(
        "compare", table, "--label", "price", "--qid", "none", "--models", "rankrls", "--folds", 3, "--no-curve", "-o",
        tmp_path / "out",
    )  # fmt: skip
    assert "groups of them replace queries" in said
    assert "disagreement" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--models", "lcar"], "there is no model 'lcar'; did you mean 'lcra'"),
        (["--budget", "soon"], "--budget is 'soon'; pass a duration such as 90s"),
        (["--unjudged", "-1", "--unjudged", "-2"], "--unjudged has 2 labels"),
        (["--prior", "99"], "--prior names feature 99, but the data has 10"),
        (["--metric", "nDGC@10"], "nDGC"),
        (["--unjudged", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_bad_words_end_in_a_sentence_and_no_file(text, tmp_path, words, message):
    result = CliRunner().invoke(app, ["compare", str(text), "-o", str(tmp_path / "out"), *words])
    assert isinstance(result.exception, InputError | OSError)
    assert message in str(result.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [["nowhere.txt"], ["--unjudged", "nowhere.txt"]])
def test_a_wrong_name_is_told_before_anything_heavy_is_imported(text, tmp_path, words):
    told = subprocess.run(
        [
            sys.executable, "-c",
            "import atexit, sys; from corank.cli import main\n"
            "heavy = ('corank.comparison', 'sklearn', 'numba', 'scipy')\n"
            "atexit.register(lambda: print([name for name in heavy if name in sys.modules]))\n"
            "main()",
            "compare", str(text), *words,
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.stderr == "corank: there is no file nowhere.txt; check the path.\n"
    assert told.stdout == "[]\n"
    assert told.returncode != 0


def test_preferences_alone_are_refused(tmp_path):
    (tmp_path / "pairs.csv").write_text("winner,loser\na,b\nb,c\n")
    result = CliRunner().invoke(app, ["compare", str(tmp_path / "pairs.csv")])
    assert "pairs.csv holds preferences only, but methods are evaluated by scores" in str(result.exception)


def test_without_time_there_is_what_needs_none(text, tmp_path):
    words = [
        "compare",
        str(text),
        "--unjudged=-1",
        "--models",
        "rankrls",
        "--budget",
        "0.000001",
        "-o",
        str(tmp_path / "out"),
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "ended before these methods were finished: RankRLS" in " ".join(result.output.split())
    assert "0 of 5 folds within the budget" in " ".join(result.output.split())
    assert "mean of all columns is recommended" in " ".join(result.output.split())


def test_an_interrupt_says_that_nothing_is_lost(text, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("corank.comparison.compare", stop)
    result = CliRunner().invoke(app, ["compare", str(text), "-o", str(tmp_path / "out")])
    assert result.exit_code == 130
    assert "Run the same command to continue" in result.output


def test_times_and_pools_are_read():
    assert [parse_time(text) for text in ("5", "1.5h", "2m30s")] == [5.0, 5400.0, 150.0]
    for text in ("", "0", "-3", "1d", "m"):
        with pytest.raises(InputError, match="--budget is"):
            parse_time(text)
    assert parse_unjudged(["./1"])[0] is None
