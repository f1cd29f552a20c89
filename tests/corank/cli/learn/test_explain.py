from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import corank
from corank.data.io.write import write_letor
from corank.errors import InputError
from helpers.terminal import OnTerminal


@pytest.fixture
def model(says, text, tmp_path):
    says("fit", text, "-m", "rankrls", "--unjudged", "-1", "-o", tmp_path / "m")
    return tmp_path / "m"


def test_contributions_add_up_to_the_difference(says, made, model, text):
    said = json.loads(says("explain", model, text, "--pair", "d3", "d5", "--json"))
    f = corank.load(model).predict(made.X)
    assert said["pair"] == ["d3", "d5"]
    assert said["scores"] == pytest.approx([f[3], f[5]])
    assert sum(term["contribution"] for term in said["contributions"]) == pytest.approx(f[3] - f[5])
    assert said["n_terms"] == len(said["contributions"]) == 10
    assert {term["name"] for term in said["contributions"]} == {f"f{j}" for j in range(1, 11)}
    (term,) = [term for term in said["contributions"] if term["name"] == "f2"]
    assert term["values"] == pytest.approx(made.X[[3, 5], 1].tolist())
    by_number = json.loads(says("explain", model, text, "--pair", "4", "6", "--json", "--top", "2"))
    assert by_number["pair"] == ["row 4", "row 6"]
    assert by_number["contributions"] == said["contributions"][:2]
    assert by_number["difference"] == said["difference"]


def test_a_table(says, model, text):
    lines = says("explain", model, text, "--pair", "d3", "d5", "--top", "3").splitlines()
    said = json.loads(says("explain", model, text, "--pair", "d3", "d5", "--top", "3", "--json"))
    assert lines[0].startswith("d3 ")
    assert "a difference of" in lines[0]
    assert [line.split()[0] for line in lines[2:5]] == [term["name"] for term in said["contributions"]]
    assert lines[5].startswith("7 others")
    assert lines[6].startswith("sum")
    assert float(lines[6].split()[-1]) == pytest.approx(float(lines[0].split()[-1]), abs=1e-4)


def test_training_rows_of_a_kernel_model_are_counted_from_1(says, made, text, tmp_path):
    says("fit", text, "-m", "rankrls", "--unjudged", "-1", "--set", "kernel=gaussian", "-o", tmp_path / "k")
    said = json.loads(says("explain", tmp_path / "k", text, "--pair", "1", "2", "--json"))
    numbers = corank.load(tmp_path / "k").basis_.numbers
    assert {term["name"] for term in said["contributions"]} == {f"training row {number + 1}" for number in numbers}


def test_names_of_columns_and_a_pipeline(says, made, tmp_path):
    frame = pd.DataFrame(made.X.astype(float), columns=[f"signal {j}" for j in range(10)])
    frame.assign(label=made.y, qid=made.qid).to_csv(tmp_path / "t.csv", index=False)
    says("fit", tmp_path / "t.csv", "-m", "spd", "--scale", "minmax", "-o", tmp_path / "p")
    said = json.loads(says("explain", tmp_path / "p", tmp_path / "t.csv", "--pair", "2", "7", "--json"))
    assert {term["name"] for term in said["contributions"]} == set(frame.columns)
    assert sum(term["contribution"] for term in said["contributions"]) == pytest.approx(said["difference"])
    assert max(abs(value) for term in said["contributions"] for value in term["values"]) <= 1.0


def test_a_document_of_several_queries_is_that_of_the_query_of_both(says, made, model, tmp_path):
    comments = [f"docid = {name}" for name in ["a", "b", "a", "c"]]
    write_letor(tmp_path / "again.txt", made.X[:4], np.zeros(4), [1, 1, 2, 2], comments=comments)
    said = json.loads(says("explain", model, tmp_path / "again.txt", "--pair", "a", "c", "--json"))
    f = corank.load(model).predict(made.X[:4])
    assert said["difference"] == pytest.approx(f[2] - f[3])
    with pytest.raises(InputError, match="has document 'a' in several rows, such as 1, 3"):
        says("explain", model, tmp_path / "again.txt", "--pair", "a", "a")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--pair", "0", "1"], "has no row '0'; pass a document id or a row number from 1 to 240 to --pair"),
        (["--pair", "1", "nobody"], "has no row 'nobody'"),
        (["--pair", "1", "241"], "has no row '241'"),
    ],
)
def test_what_cannot_be_explained_gets_one_sentence(says, model, text, words, sentence):
    with pytest.raises(InputError, match=sentence):
        says("explain", model, text, *words)


def test_trees_and_labels_are_refused(says, text, tmp_path):
    says("fit", text, "-m", "lambdarank", "--set", "scorer=trees", "--unjudged", "-1", "-o", tmp_path / "t")
    with pytest.raises(InputError, match="LambdaRank is not additive"):
        says("explain", tmp_path / "t", text, "--pair", "1", "2")


@pytest.mark.long
def test_it_fits_a_terminal_of_80_columns(model, text):
    shown = OnTerminal("explain", model, text, "--pair", "d3", "d5", columns=80)
    shown.wait_for(b"sum")
    shown.close()
    assert " f2 " in f" {shown.text}"
    assert max(map(len, shown.text.splitlines())) <= 80
