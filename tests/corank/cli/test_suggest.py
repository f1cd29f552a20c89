from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import corank
from corank.cli import app
from corank.errors import InputError
from helpers.files import files

ITEMS = "name,size,age\n" + "".join(f"thing {k},{k % 3},{k * k % 7}\n" for k in range(6))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(files(tmp_path))
    return tmp_path


@pytest.mark.parametrize("strategy", ["uncertain", "top", "representative", "random"])
def test_rows_equal_those_of_the_library(here, says, strategy):
    rows = corank.read("train.txt", unjudged=-1)
    model = corank.load("model.safetensors")
    expected = corank.suggest(model, rows.X, rows.y, rows.qid, n=7, strategy=strategy, random_state=0)
    lines = says(
        "suggest", "model.safetensors", "train.txt", "--unjudged", "-1", "-n", 7, "--strategy", strategy
    ).splitlines()[1:]
    scores = model.predict(rows.X)
    assert [line.split(",")[:2] for line in lines] == [[str(rows.qid[row]), rows.docids[row]] for row in expected]
    assert [float(line.split(",")[2]) for line in lines] == pytest.approx(scores[expected].tolist())
    assert np.isnan(rows.y[expected]).all()


def test_rows_per_query(here, says):
    words = (
        "suggest",
        "model.safetensors",
        "train.txt",
        "--unjudged",
        "-1",
        "--strategy",
        "top",
        "--per-query",
        "-n",
        2,
    )
    rows = corank.read("train.txt", unjudged=-1)
    found = json.loads(says(*words, "--json"))
    queries = [query for query, _, _ in found["rows"]]
    unjudged = {query: int(np.isnan(rows.y[rows.qid == query]).sum()) for query in set(rows.qid.tolist())}
    assert {query: queries.count(query) for query in unjudged} == {q: min(2, n) for q, n in unjudged.items()}
    assert queries == sorted(queries)
    scores = corank.load("model.safetensors").predict(rows.X)
    for query, name, _ in found["rows"][::2]:  # the first of each is its highest unjudged row
        mine = np.flatnonzero((rows.qid == query) & np.isnan(rows.y))
        assert rows.docids[mine[scores[mine].argmax()]] == name


def test_names_with_blanks_and_tables_with_string_ids(here, says, tmp_path):
    rows = corank.read("train.txt", unjudged=-1)
    header = "qid,name,label," + ",".join(f"f{k}" for k in range(6)) + "\n"
    lines = [
        f"q{q},doc {at},{'' if np.isnan(y) else y},{','.join(map(str, x))}\n"
        for at, (q, y, x) in enumerate(zip(rows.qid, rows.y, rows.X.tolist(), strict=True))
    ]
    (tmp_path / "rows.csv").write_text(header + "".join(lines))
    said = says("suggest", "model.safetensors", "rows.csv", "-o", "next.csv", "-n", 3)
    assert said == "wrote next.csv: 3 rows to judge next\n"
    table = list(csv.DictReader(io.StringIO((tmp_path / "next.csv").read_text())))
    assert list(table[0]) == ["qid", "docid", "score"]
    assert all(row["qid"].startswith("q") and row["docid"].startswith("doc ") for row in table)


def test_pairs_of_a_preference_model(here, says, tmp_path):
    (tmp_path / "items.csv").write_text(ITEMS)
    says("fit", "items.csv", "-m", "preference-gp", "--pairs", "pairs.csv", "-o", "gp")
    model, X = corank.load("gp"), pd.read_csv(io.StringIO(ITEMS), index_col=0)
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    expected = corank.models.suggest_pairs(model, X, 4, asked=[[0, 1], [2, 1], [3, 4]], random_state=0)
    for words in ((), ("--pairs", "pairs.csv")):
        found = json.loads(says("suggest", "gp", "items.csv", "-n", 4, "--json", *words))
        assert found["columns"] == ["first", "second"]
        assert found["rows"] == [[f"thing {a}", f"thing {b}"] for a, b in expected.tolist()]
    with pytest.raises(InputError, match="suggests rows to grade"):
        says("suggest", "model.safetensors", "train.txt", "--pairs", "pairs.csv")


def test_a_message_if_there_is_nothing_to_suggest(here):
    said = CliRunner().invoke(app, ["suggest", "model.safetensors", "test.txt"])
    assert (said.exit_code, said.stdout) == (0, "")
    assert "all 160 rows are judged, so there is nothing to suggest (pass the label" in said.stderr
