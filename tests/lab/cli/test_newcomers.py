"""What people stumbled over, one test each."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import corank
from corank.cli import app
from corank.errors import InputError
from corank_lab.cli.demo import _write_new
from helpers.files import files


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(files(tmp_path))
    return tmp_path


def test_texts_are_found_whatever_the_case_of_their_ending(here, says):
    (here / "articles" / "LOUD.TXT").write_text("a pump")
    assert says("index", "articles", "-o", "i").startswith("wrote i: 21 documents")
    assert "LOUD" in says("search", "i", "pump", "-n", 50)


def test_documents_come_from_standard_input(here):
    for given in (b'{"id": "a", "text": "a heat pump"}\n', b"a\ta heat pump\n"):
        said = CliRunner().invoke(app, ["index", "-", "-o", "i", "--force"], input=given, catch_exceptions=False)
        assert said.output.startswith("wrote i: 1 documents")


@pytest.mark.parametrize("option", ["--language", "--stop-words"])
def test_what_an_index_has_already_is_not_chosen_again(here, says, option):
    with pytest.raises(InputError, match=f"{option} is fixed by the index of --add-to"):
        says("index", "articles", "--add-to", "articles.index", option, "english", "-o", "i")


@pytest.mark.parametrize("words", ["screen -", "prefer -"])
def test_keys_and_records_cannot_both_come_from_standard_input(here, says, words):
    with pytest.raises(InputError, match="standard input\\), which is needed for the keys"):
        says(*words.split())


def test_undo_of_nothing_is_said_with_the_record_that_stays(here):
    said = CliRunner().invoke(app, ["screen", "records.csv"], input="u\nq\n", catch_exceptions=False).output
    assert said.index("There is no answer to undo.") > said.rindex("record ")


def test_a_wrong_number_of_columns_is_one_sentence_of_ours():
    X, y = np.eye(4), [1, 2, 3, 4]
    sentence = r"^X has 3 features, but \w+ is expecting 4 features as input; pass the columns that were used in fit\.$"
    for fitted in (corank.SPD(n_steps=10).fit(X, y), corank.RankRLS().fit(X, y)):
        with pytest.raises(InputError, match=sentence):
            fitted.predict(X[:, :3])
    with pytest.raises(InputError, match=sentence):
        corank.QueryScaler().fit(X, qid=y).transform(X[:, :3], qid=y)


def test_an_online_label_ranker_wants_preferences():
    with pytest.raises(InputError, match="y orders no two labels in any of the 3 rows"):
        corank.OnlineLabelRanker().fit(np.eye(3), np.full((3, 2), np.nan))


def test_a_demo_replaces_its_own_files_and_no_others(tmp_path):
    path = tmp_path / "f"
    _write_new(path, lambda place: place.write_text("mine"), force=False)
    _write_new(path, lambda place: place.write_text("mine"), force=False)
    with pytest.raises(InputError, match="f exists and differs from what this demo would write"):
        _write_new(path, lambda place: place.write_text("other"), force=False)
    assert path.read_text() == "mine"
    _write_new(path, lambda place: place.write_text("other"), force=True)
    assert path.read_text() == "other"
