"""Columns of tables on the command line: recognised by usual names, remembered by models, matched by name."""

from __future__ import annotations

import csv
import json
import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import corank
from corank.cli import app, main
from corank.data.routing import predict_with_qid
from corank.errors import InputError

NAMES = [f"x{k}" for k in range(6)]
MADE = corank.make_ranking(12, 6, n_latent=2, features_per_view=3, random_state=0)
FRAME = pd.DataFrame(MADE.X, columns=NAMES)
IDS = [f"d{k}" for k in range(len(FRAME))]
TABLE = FRAME.assign(Relevance=MADE.y, query_id=MADE.qid, doc_id=IDS)
REVERSED = TABLE[TABLE.columns[::-1]]
SIX = "6 features 'x0', 'x1', 'x2', 'x3', 'x4', 'x5'"
LINE = f"label 'Relevance', query 'query_id', document 'doc_id', {SIX}"


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


def run(*words):
    """Return standard output and standard error of a command that must end well."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(TABLE, tmp_path / "t.csv")
    write(REVERSED, tmp_path / "r.csv")
    return tmp_path


@pytest.fixture
def said(monkeypatch, capsys):
    """Run a command as a process would, and return its standard error."""

    def run_main(line):
        monkeypatch.setattr("sys.argv", ["corank", *shlex.split(line)])
        with pytest.raises(SystemExit):
            main()
        return capsys.readouterr().err

    return run_main


@pytest.fixture
def model(here):
    run("fit", "t.csv", "-m", "rankrls", "-o", "model")
    return corank.load("model")


def test_names_travel_through_stores(here):
    run("convert", "t.csv", "t.store")
    run("convert", "r.csv", "r.store")
    run("fit", "t.store", "-m", "rankrls", "-o", "m")
    assert corank.load("m").feature_names_in_.tolist() == NAMES
    out, err = run("rank", "m", "r.store")
    assert f"r.store: {SIX}; columns reordered as in the model\n" in err
    assert out == run("rank", "m", "t.store")[0] == run("rank", "m", "r.csv")[0]
    run("convert", "r.store", "back.csv")
    assert corank.read("back.csv").names == NAMES[::-1]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("words", [[], ["--scale", "zscore"], ["--prior", "x1,x4"]])
def test_names_travel_from_every_named_format_to_the_scores(here, suffix, words):
    trained, ranked = write(TABLE, here / f"a{suffix}"), write(REVERSED, here / f"b{suffix}")
    assert f"a{suffix}: {LINE} (change with --label" in run("fit", trained, "-m", "rankrls", "-o", "m", *words)[1]
    assert corank.load("m").feature_names_in_.tolist() == NAMES
    expected = run("rank", "m", trained)[0]
    out, err = run("rank", "m", ranked)
    assert out == expected
    assert f"b{suffix}: {LINE}; columns reordered as in the model" in err
    scores = predict_with_qid(corank.load("m"), MADE.X, MADE.qid)
    np.testing.assert_allclose(np.array(out.split(), dtype=float), scores, rtol=1e-12)


def test_explain_suggest_and_validation_match_by_name(model, here):
    for words in (("explain", "model", "{}", "--pair", "d1", "d2"), ("suggest", "model", "{}", "--unjudged", "0")):
        out, reordered = (run(*(word.format(name) for word in words))[0] for name in ("t.csv", "r.csv"))
        assert out == reordered
        assert out
    for name in ("t.csv", "r.csv"):
        fitted = json.loads(run("fit", "t.csv", "-m", "rankrls", "--valid", name, "-o", name[0], "--json")[0])
        assert fitted["valid"]["mean"] == pytest.approx(evaluated(name[0], "t.csv"))


def evaluated(model, table):
    run("rank", model, table, "-o", "scores", "--force")
    return json.loads(run("evaluate", table, "scores", "--json")[0])["metrics"]["nDCG@10"]["mean"]


@pytest.mark.long
def test_parts_and_comparisons_remember_names(here):
    halves = [write(TABLE[at::2], here / f"half{at}.csv") for at in (0, 1)]
    run("fit", *halves, "-m", "rankrls", "-o", "parts")
    run("compare", "t.csv", "--models", "rankrls", "--quick", "--no-curve", "-o", "study", "--prior", "x1")
    for name in ("parts", "study/model.safetensors"):
        assert corank.load(name).feature_names_in_.tolist() == NAMES
        assert run("rank", name, "t.csv")[0] == run("rank", name, "r.csv")[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"drop": "x2"}, "lacks 'x2', which the model was fitted on; pass a table with the columns of the model"),
        (
            {"points": 1.0},
            "has 'points', which the model was not fitted on; name them with y=, qid= or docid=",
        ),
        ({"drop": "x2", "x9": 1.0}, "lacks 'x2', which the model was fitted on, and has 'x9', which the model was not"),
    ],
)
@pytest.mark.parametrize("verb", [["rank"], ["suggest"], ["explain", "--pair", "1", "2"]])
def test_other_names_are_refused_by_name(model, here, change, message, verb):
    added = {name: value for name, value in change.items() if name != "drop"}
    write(TABLE.drop(columns=change.get("drop", [])).assign(**added), here / "other.csv")
    with pytest.raises(InputError, match=message):
        run(verb[0], "model", "other.csv", *verb[1:])
    if "points" in change:
        assert run("rank", "model", "other.csv", "--drop", "points")[0] == run("rank", "model", "t.csv")[0]


def test_files_and_models_without_names_are_matched_by_position(model, here):
    corank.data.write_letor(here / "t.txt", MADE.X, MADE.y, MADE.qid)
    out, err = run("rank", "model", "t.txt")
    assert "t.txt has no column names, but model has; the columns are matched by position" in err
    np.testing.assert_allclose(np.array(out.split(), dtype=float), model.predict(FRAME), rtol=1e-4)
    run("fit", "t.txt", "-m", "rankrls", "-o", "bare")
    assert "bare has no column names, but t.csv has" in run("rank", "bare", "t.csv")[1]
    write(TABLE.assign(points=1.0), here / "wide.csv")
    with pytest.raises(InputError, match=r"wide.csv has 7 features"):
        run("rank", "bare", "wide.csv")


@pytest.mark.filterwarnings("default")
def test_a_forgotten_query_column_is_said(here, said):
    write(TABLE.rename(columns={"query_id": "topic"}), here / "topics.csv")
    err = said("fit topics.csv -m rankrls -o m")
    assert "topics.csv has no query column (qid, query_id, query, srch_id, session_id), so all 72 rows are" in err
    assert "name it with --qid, or pass --qid none if they are one" in err
    for words in ("--qid topic", "--qid none --drop topic"):
        err = said(f"fit topics.csv -m rankrls --force -o m {words}")
        assert "treated as one query" not in err
        assert "6 features" in err


def test_text_columns_are_refused_with_the_option_that_names_them(here, said):
    titles = [f"red shoes {k}" for k in range(len(TABLE))]
    write(TABLE.assign(title=titles), here / "titles.csv")
    write(TABLE.assign(title=titles), here / "titles.parquet")
    for name in ("titles.csv", "titles.parquet"):
        err = said(f"fit {name} -m rankrls -o {name}.model")
        assert f"{name}: column 'title' contains " in err
        assert "but features are numbers; name it with --id or --qid, or leave it out with --drop title." in err
        assert "left out 'title'" in run("fit", name, "-m", "rankrls", "-o", "m", "--drop", "title", "--force")[1]
        taken = run("fit", name, "-m", "rankrls", "-o", "m", "--id", "title", "--force")[1]
        assert f"document 'title', {SIX}; left out 'doc_id'" in taken


def test_two_labels_are_refused_until_one_is_chosen(here):
    write(TABLE.assign(rating=MADE.X[:, 0]), here / "two.csv")
    with pytest.raises(InputError, match="'Relevance', 'rating'"):
        run("fit", "two.csv", "-m", "rankrls", "-o", "m")
    assert f"{SIX}; left out 'rating'" in run("fit", "two.csv", "-m", "rankrls", "-o", "m", "--label", "Relevance")[1]
    assert (
        "7 features 'x0', 'x1', 'x2', ..., 'x4', 'x5', 'rating' (7 in all) (change"
        in run("fit", "two.csv", "-m", "rankrls", "-o", "kept", "--keep", "rating")[1]
    )
    # the model knows that it is a feature
    assert (
        "7 features 'x0', 'x1', 'x2', ..., 'x4', 'x5', 'rating' (7 in all) (change" in run("rank", "kept", "two.csv")[1]
    )


@pytest.mark.parametrize(
    ("option", "numbers", "names"), [("--prior", "2,5", "x1, x4"), ("--views", "1-2,4/3,5-6", "x0,x1,x3/x2,x4,x5")]
)
def test_features_are_named_or_numbered(here, option, numbers, names):
    for name, features in (("a", numbers), ("b", names)):
        run("fit", "t.csv", "-m", "lcra", "--set", "n_steps=50", option, features, "-o", name)
    assert run("rank", "a", "t.csv") == run("rank", "b", "t.csv")


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ("x11", "--prior names the column 'x11', which X does not have; did you mean 'x1'?"),
        ("7", "--prior names feature 7, but the data has 6 features; use numbers up to 6"),
    ],
)
@pytest.mark.parametrize(
    "verb",
    [["fit", "-m", "rankrls", "-o", "m"], ["compare", "-o", "study"]],
    ids=lambda verb: verb[0],
)
def test_unknown_features_are_refused(here, features, message, verb):
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        run(verb[0], "t.csv", *verb[1:], "--prior", features)


def test_a_number_that_is_also_a_name_is_refused(here):
    write(TABLE.rename(columns=dict(zip(NAMES, map(str, range(6)), strict=True))), here / "numbers.csv")
    with pytest.raises(InputError, match="--prior 1 is the number of the feature '0'"):
        run("fit", "numbers.csv", "-m", "rankrls", "-o", "m", "--prior", "1")


@pytest.mark.parametrize("verb", [["rank"], ["suggest"], ["explain", "--pair", "1", "2"]])
def test_swapped_files_are_noticed(model, here, verb):
    with pytest.raises(InputError, match=r"t\.csv is not a model"):
        run(verb[0], "t.csv", "model", *verb[1:])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "large.csv", "-m", "lambdarnk", "-o", "m"], "did you mean 'lambdarank'"),
        (["fit", "large.csv", "-m", "spd", "--loss", "hingy", "-o", "m"], "loss is 'hingy'"),
        (["fit", "large.csv", "-m", "spd", "--valid", "t.csv", "--metric", "dcgg", "-o", "m"], "'dcgg' is not a known"),
        (["compare", "t.csv", "--models", "rankrsl", "-o", "study"], "did you mean 'rankrls'"),
        (["evaluate", "large.csv", "scores", "-m", "dcgg"], "'dcgg' is not a known metric"),
        (["evaluate", "large.csv", "scores", "-c", "letr4"], "letor4"),
    ],
)
def test_misspelt_names_are_refused_before_the_file_is_read(here, words, message):
    # large.csv does not exist, so that reading it would raise another error
    with pytest.raises(InputError, match=message):
        run(*words)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_tables_are_converted_into_tables(here, suffix):
    target = here / f"c{suffix}"
    assert LINE in run("convert", "t.csv", target)[1]
    rows = corank.read(target)
    np.testing.assert_array_equal(rows.X, MADE.X)
    np.testing.assert_array_equal(rows.y, MADE.y)
    assert (rows.names, rows.docids.tolist(), rows.qid.tolist()) == (NAMES, IDS, MADE.qid.tolist())


def test_unjudged_and_single_precision_survive_a_table(here):
    y = np.where(np.arange(len(MADE.y)) % 3, MADE.y, -1)
    corank.data.write_letor(here / "t.txt", MADE.X, y, MADE.qid)
    run("convert", "t.txt", "c.csv", "--unjudged", "-1")
    text, table = corank.read("t.txt", unjudged=-1), corank.read("c.csv", dtype="float32")
    np.testing.assert_array_equal(table.X, text.X)
    np.testing.assert_array_equal(table.y, text.y)
    with open("c.csv") as file:
        assert next(csv.reader(file)) == ["label", "qid", "f1", "f2", "f3", "f4", "f5", "f6"]
    assert "names of the features are not in back.txt" in run("convert", "t.csv", "back.txt")[1]
