from __future__ import annotations

import gzip

import numpy as np
import pytest

from corank.cli.predictions import read_predictions, read_truth
from corank.errors import InputError


def test_qrels_and_letor_text_are_told_apart(tmp_path):
    (tmp_path / "qrels").write_text("q1 0 a 2\nq1 0 b -1\n")
    truth = read_truth(tmp_path / "qrels", unscored=-1)
    assert truth.qid.tolist() == ["q1", "q1"]
    assert truth.docids.tolist() == ["a", "b"]
    np.testing.assert_array_equal(truth.y, [2, np.nan])
    # four words, but the second names a query or a feature
    for second, queries in (("qid:7", [7]), ("1:0.5", [0])):
        (tmp_path / "letor").write_text(f"1 {second} 2:0.5 3:1\n")
        truth = read_truth(tmp_path / "letor", unscored=None)
        assert truth.qid.tolist() == queries
        assert truth.y.tolist() == [1.0]


def test_leading_comments_and_compression_do_not_hide_the_kind(tmp_path):
    with gzip.open(tmp_path / "truth.txt.gz", "wt") as file:
        file.write("# made by hand\n\n1 qid:7 1:1 # a comment of many words\n")
    with gzip.open(tmp_path / "scores.gz", "wt") as file:
        file.write("0.5")
    truth = read_truth(tmp_path / "truth.txt.gz", None)
    scored = read_predictions(tmp_path / "scores.gz", truth)
    assert (scored.y.tolist(), scored.scores.tolist(), scored.qid.tolist()) == ([1.0], [0.5], [7])
    assert scored.retrieved is None


def test_a_run_brings_the_judged_rows_it_missed(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 2\n1 0 b 1\n2 0 c 1\n")
    (tmp_path / "run").write_text("1 Q0 b 1 0.5 t\n1 Q0 new 2 0.25 t\n3 Q0 z 1 1 t\n")
    scored = read_predictions(tmp_path / "run", read_truth(tmp_path / "qrels", None))
    np.testing.assert_array_equal(scored.y, [1, np.nan, 2])
    assert scored.qid.tolist() == ["1", "1", "1"]
    assert scored.retrieved.tolist() == [True, True, False]
    assert scored.n_absent == 1


def test_files_without_rows(tmp_path):
    (tmp_path / "blank").write_text("\n# nothing\n")
    with pytest.raises(InputError, match=r"blank has no rows"):
        read_truth(tmp_path / "blank", None)
