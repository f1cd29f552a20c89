"""`corank fit` from more than one file: preferences, validation rows, options in TOML."""

from __future__ import annotations

import json

import numpy as np
import pytest

import corank
from corank.cli.learn.fitting import ALPHAS
from corank.data.routing import predict_with_qid
from corank.errors import InputError
from corank.metrics import evaluate
from helpers.files import files

ITEMS = "id,size,age\n" + "".join(f"t{k},{k % 3},{k * k % 7}\n" for k in range(6))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(files(tmp_path))
    (tmp_path / "items.csv").write_text(ITEMS)
    (tmp_path / "pairs.csv").write_text("winner,loser,weight\nt0,t1,1\nt2,t1,2\nt3,t4,0.5\n")
    return tmp_path


def X_of_items():
    return np.array([line.split(",")[1:] for line in ITEMS.splitlines()[1:]], dtype=float)


def test_preferences_by_name_by_number_and_by_document(here, says):
    pairs, weight = [[0, 1], [2, 1], [3, 4]], [1, 2, 0.5]
    expected = corank.RankRLS().fit(X_of_items(), pairs=pairs, pair_weight=weight).predict(X_of_items())
    says("fit", "items.csv", "-m", "rankrls", "--pairs", "pairs.csv", "-o", "m")
    np.testing.assert_allclose(predict_with_qid(corank.load("m"), X_of_items(), None), expected, rtol=1e-9)
    bare = "".join(line.partition(",")[2] + "\n" for line in ITEMS.splitlines())
    (here / "bare.csv").write_text(bare)
    (here / "numbers.csv").write_text("loser;winner;weight\n2;1;1\n2;3;2\n5;4;0.5\n")
    says("fit", "bare.csv", "-m", "rankrls", "--pairs", "numbers.csv", "-o", "m", "--force")
    np.testing.assert_allclose(predict_with_qid(corank.load("m"), X_of_items(), None), expected, rtol=1e-9)
    (here / "documents.csv").write_text("winner,loser\nd0,d1\nd2,d3\n")
    said = json.loads(says("fit", "test.txt", "-m", "spd", "--pairs", "documents.csv", "--json", "-o", "m", "--force"))
    assert (said["n_rows"], said["n_scored"]) == (160, 4)


def test_items_with_names_are_ranked_by_what_was_learnt_of_them(here, says):
    says("fit", "items.csv", "-m", "rankrls", "--pairs", "pairs.csv", "-o", "m")
    scores = predict_with_qid(corank.load("m"), X_of_items(), None)
    np.testing.assert_allclose(np.array(says("rank", "m", "items.csv").split(), dtype=float), scores)
    run = says("rank", "m", "items.csv", "--format", "trec", "-o", "-")
    assert run.split()[2] == f"t{scores.argmax()}"
    # a feature of the model is not a document id, whatever its name
    (here / "numbers.csv").write_text("label,qid,id,size\n1,1,5,0\n0,1,7,1\n1,2,3,0\n0,2,2,1\n")
    says("fit", "numbers.csv", "-m", "rankrls", "-o", "n", "--keep", "id")
    assert corank.load("n").feature_names_in_.tolist() == ["id", "size"]
    assert len(says("rank", "n", "numbers.csv").split()) == 4
    assert len(says("suggest", "n", "numbers.csv", "--unjudged", "0").splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("winner,loser\nt0,t9\n", r"pairs.csv, line 2: there is no row named 't9'; choose one of t0"),
        ("winner,loser\nt0,t1\nt2,t2\n", r"pairs.csv, line 3: 't2' is preferred to itself"),
        ("winner,loser,weight\nt0,t1,-1\n", r"pairs.csv, line 2: weight is '-1'"),
        ("better,worse\nt0,t1\n", r"pairs.csv has no column 'winner'; expected a header winner,loser"),
        ("winner,loser\n", r"pairs.csv has a header but no preferences"),
        ("winner,loser\nt0\n", r"pairs.csv, line 2: found 1 cells, expected 2"),
    ],
)
def test_bad_preferences_are_named_by_their_line(here, says, text, sentence):
    (here / "pairs.csv").write_text(text)
    with pytest.raises(InputError, match=sentence):
        says("fit", "items.csv", "-m", "rankrls", "--pairs", "pairs.csv", "-o", "m")
    assert not (here / "m").exists()


def test_a_validation_file_chooses_the_penalty(here, says):
    words = ("fit", "train.txt", "-m", "spd", "--unjudged", "-1", "--valid", "test.txt", "--metric", "disagreement")
    said = json.loads(says(*words, "--json", "-o", "m"))
    train, test = corank.read("train.txt", unjudged=-1), corank.read("test.txt")
    means = []
    for alpha in (None, *ALPHAS):
        model = corank.SPD(alpha=alpha, random_state=0).fit(train.data)
        means.append(evaluate(test.y, model.predict(test.X), test.qid, ["disagreement"])["disagreement"].mean)
    assert said["valid"]["mean"] == pytest.approx(min(means))
    chosen = (None, *ALPHAS)[int(np.argmin(means))]
    assert corank.load("m").alpha == chosen
    fixed = json.loads(says(*words, "--alpha", "0.5", "--json", "-o", "m", "--force"))
    assert (fixed["alpha"], fixed["valid"]["chosen"]) == (0.5, "")


@pytest.mark.long
def test_lambdarank_stops_by_the_validation_file(here, says):
    words = ("fit", "train.txt", "-m", "lambdarank", "--unjudged", "-1", "--valid", "test.txt")
    says(*words, "-o", "m")
    train, test = corank.read("train.txt", unjudged=-1), corank.read("test.txt")
    expected = corank.LambdaRank(early_stopping=True, random_state=0).fit(train.data, eval_set=test.data)
    np.testing.assert_allclose(corank.load("m").predict(test.X), expected.predict(test.X), rtol=1e-9)


def test_validation_rows_of_other_features_are_refused(here, says):
    (here / "other.csv").write_text("label,qid,a,b\n1,1,0,1\n0,1,1,0\n")
    with pytest.raises(InputError, match=r"other.csv has 2 features"):
        says("fit", "train.txt", "-m", "spd", "--valid", "other.csv", "-o", "m")
