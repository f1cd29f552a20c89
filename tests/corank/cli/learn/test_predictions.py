from __future__ import annotations

import gzip

import numpy as np
import pytest

from corank.cli.learn.evaluate import evaluate_predictions
from corank.cli.rows import read_truth
from corank.data.io.trec import read_qrels
from corank.errors import InputError


def test_qrels_and_letor_text_are_told_apart(tmp_path):
    (tmp_path / "qrels").write_text("q1 0 a 2\nq1 0 b -1\n")
    truth = read_truth(tmp_path / "qrels", unjudged=-1)
    assert truth.qid.tolist() == ["q1", "q1"]
    assert truth.docids.tolist() == ["a", "b"]
    np.testing.assert_array_equal(truth.y, [2, np.nan])
    # four words, but the second names a query or a feature
    for second, queries in (("qid:7", [7]), ("1:0.5", None)):
        (tmp_path / "letor").write_text(f"1 {second} 2:0.5 3:1\n")
        truth = read_truth(tmp_path / "letor", unjudged=None)
        assert truth.qid == queries
        assert truth.y.tolist() == [1.0]


@pytest.mark.parametrize("name", ["2", "q,1", "a;b"])
def test_qrels_parted_by_tabs_and_odd_names_are_qrels(tmp_path, name):
    (tmp_path / "qrels").write_text(f"{name}\t0\ta,b\t2\n")
    assert read_truth(tmp_path / "qrels", None).qid.tolist() == read_qrels(tmp_path / "qrels").qid.tolist() == [name]


def test_a_table_is_a_truth(tmp_path):
    (tmp_path / "truth.csv").write_text("docid,label,qid,f1\na,1,7,0.5\nb,,7,0.5\n")
    truth = read_truth(tmp_path / "truth.csv", None)
    assert (truth.qid.tolist(), truth.docids.tolist()) == ([7, 7], ["a", "b"])


def test_leading_comments_and_compression_do_not_hide_the_kind(tmp_path):
    with gzip.open(tmp_path / "truth.txt.gz", "wt") as file:
        file.write("# made by hand\n\n1 qid:7 1:1 # a comment of many words\n")
    with gzip.open(tmp_path / "scores.gz", "wt") as file:
        file.write("0.5")
    truth = read_truth(tmp_path / "truth.txt.gz", None)
    found = evaluate_predictions(tmp_path / "truth.txt.gz", tmp_path / "scores.gz", truth, ["RR"], "corank")
    assert (found.query_ids.tolist(), found["RR"].mean) == ([7], 1.0)


def test_files_without_rows(tmp_path):
    (tmp_path / "blank").write_text("\n# nothing\n")
    with pytest.raises(InputError, match=r"blank has no rows"):
        read_truth(tmp_path / "blank", None)
