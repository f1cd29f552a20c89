from __future__ import annotations

import pytest

import corank
from corank.data.trec import read_run
from corank.errors import InputError


def test_rank_writes_a_run_that_trec_tools_read(says, made, text, tmp_path):
    says("fit", text, "-m", "crr", "-o", tmp_path / "m")
    said = says("rank", tmp_path / "m", text, "-o", tmp_path / "run.txt", "--format", "trec", "--tag", "mine")
    assert "240 rows in 30 queries" in said
    run = read_run(tmp_path / "run.txt")
    scores = corank.load(tmp_path / "m").predict(made.X)
    expected = {(str(q), f"d{row}"): score for row, (q, score) in enumerate(zip(made.qid, scores, strict=True))}
    assert dict(zip(zip(run.qid, run.docids, strict=True), run.scores, strict=True)) == pytest.approx(expected)
    assert run.tag == "mine"


def test_a_run_needs_a_file(says, text, tmp_path):
    says("fit", text, "-m", "crr", "-o", tmp_path / "m")
    with pytest.raises(InputError, match="name one with --output"):
        says("rank", tmp_path / "m", text, "--format", "trec")


def test_rows_with_more_features_than_the_model_are_refused(says, text, tmp_path):
    says("fit", text, "-m", "crr", "-o", tmp_path / "m")
    wide = tmp_path / "wide.txt"
    wide.write_text("1 qid:1 1:0.5 11:2\n")
    with pytest.raises(InputError, match="11"):
        says("rank", tmp_path / "m", wide, "-o", tmp_path / "scores.txt")
    assert not (tmp_path / "scores.txt").exists()
