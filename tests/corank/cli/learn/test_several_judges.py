"""Commands on files in which several judges graded the same documents."""

from __future__ import annotations

import numpy as np
import pytest

import corank
from corank.data.io.trec import write_run
from corank.errors import InputError, UsageWarning
from corank.metrics import evaluate

RNG = np.random.default_rng(1)
X = RNG.normal(size=(40, 3)).round(3)
QID = np.repeat(np.arange(5), 8)
DOCIDS = np.array([f"d{row}" for row in range(40)])
GRADES = np.clip(np.round(X[:, [0]] + RNG.normal(size=(40, 3))), 0, 2)
ORDER = RNG.permutation(120)
MEDIAN = np.median(GRADES, axis=1)
SAID = "120 rows are judgements of 40 documents"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    of, by = ORDER // 3, ORDER % 3
    head = "query_id,doc_id,worker,relevance,bm25,age,links"
    lines = [
        f"{QID[row]},{DOCIDS[row]},{'ABC'[judge]},{GRADES[row, judge]:g},{','.join(map(str, X[row]))}"
        for row, judge in zip(of, by, strict=True)
    ]
    (tmp_path / "judged.csv").write_text("\n".join([head.replace("worker", "judge"), *lines]) + "\n")
    (tmp_path / "worked.csv").write_text("\n".join([head, *lines]) + "\n")
    ones = [f"{QID[row]},{DOCIDS[row]},{MEDIAN[row]:g},{','.join(map(str, X[row]))}" for row in dict.fromkeys(of)]
    (tmp_path / "once.csv").write_text("\n".join([head.replace(",worker", ""), *ones]) + "\n")
    lines = [f"{QID[row]} 0 {DOCIDS[row]} {GRADES[row, judge]:g}" for row, judge in zip(of, by, strict=True)]
    (tmp_path / "qrels.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_fit_learns_each_document_once(here, says):
    with pytest.warns(UsageWarning, match=rf"{SAID} by 3 judges \(column 'judge'\); the median grade of each is used"):
        says("fit", "judged.csv", "-m", "rankrls", "-o", "m")
    says("fit", "once.csv", "-m", "rankrls", "-o", "once")
    np.testing.assert_array_equal(corank.load("m").coef_, corank.load("once").coef_)
    with pytest.warns(UsageWarning, match="the mean grade"):
        says("fit", "worked.csv", "-m", "rankrls", "-o", "mean", "--judges", "mean", "--judge-column", "worker")
    want = corank.RankRLS().fit(X, GRADES.mean(axis=1), qid=QID)
    np.testing.assert_allclose(corank.load("mean").coef_, want.coef_)
    says("fit", "judged.csv", "-m", "rankrls", "-o", "keep", "--judges", "keep")
    assert np.abs(corank.load("keep").coef_ - corank.load("m").coef_).max() > 1e-6


def test_every_row_is_scored_and_each_document_is_evaluated_once(here, says):
    says("fit", "once.csv", "-m", "rankrls", "-o", "m")
    says("rank", "m", "judged.csv", "-o", "scores.txt")
    scores = np.loadtxt("scores.txt")
    model = corank.load("m")
    want = X @ model.coef_
    np.testing.assert_allclose(scores, want[ORDER // 3], atol=1e-12)
    with pytest.warns(UsageWarning, match=SAID):
        said = says("evaluate", "judged.csv", "scores.txt", "-m", "nDCG@10")
    first = list(dict.fromkeys((ORDER // 3).tolist()))
    value = evaluate(MEDIAN[first], want[first], QID[first], "nDCG@10")["nDCG@10"].mean
    assert f"{value:.4f}" in said
    wrong = scores.copy()
    wrong[-1] += 1
    np.savetxt("wrong.txt", wrong)
    with (
        pytest.warns(UsageWarning, match=SAID),
        pytest.raises(InputError, match="which are judgements of the same document"),
    ):
        says("evaluate", "judged.csv", "wrong.txt")


def test_repeated_lines_of_qrels_are_aggregated(here, says):
    scores = X[:, 0]
    write_run("run.txt", QID, DOCIDS, scores)
    for rule, grades in (("median", MEDIAN), ("mean", GRADES.mean(axis=1))):
        with pytest.warns(UsageWarning, match=f"{SAID}; the {rule} grade of each is used"):
            said = says("evaluate", "qrels.txt", "run.txt", "-m", "nDCG@5", "--judges", rule)
        assert f"{evaluate(grades, scores, QID, 'nDCG@5')['nDCG@5'].mean:.4f}" in said
    with pytest.raises(InputError, match="two different grades for document"):
        says("evaluate", "qrels.txt", "run.txt", "--judges", "keep")


def test_other_commands_use_each_document_once(here, says):
    says("fit", "once.csv", "-m", "rankrls", "-o", "m")
    (here / "open.csv").write_text(
        "query_id,doc_id,judge,relevance,bm25,age,links\n1,a,A,1,1,2,3\n1,a,B,,1,2,3\n1,b,A,0,1,0,0\n1,b,B,,1,0,0\n"
        "1,c,A,,0,0,1\n1,c,B,,0,0,1\n"
    )
    with pytest.warns(UsageWarning, match="6 rows are judgements of 3 documents by 2 judges"):
        assert says("suggest", "m", "open.csv", "-n", 5).splitlines()[-1].split(",")[:2] == ["1", "c"]
    with pytest.warns(UsageWarning, match=SAID):
        says("convert", "judged.csv", "judged.txt")
    rows = corank.read("judged.txt")
    assert len(rows.y) == 40
    # documents stay known by their ids, so nothing is lost by converting repeated rows
    corank.data.write_letor(
        "twice.txt", X[:2].repeat(2, axis=0), [0, 1, 2, 2], [1] * 4, comments=["docid = a", "docid = b"] * 2
    )
    with pytest.raises(InputError, match="document 'a' of query 1 has different"):
        corank.read("twice.txt")
    says("convert", "twice.txt", "twice.store")
    assert len(corank.read("twice.store", judges="keep").y) == 4


def test_parts_with_judges_are_refused(here, says):
    (here / "parts").mkdir()
    (here / "judged.csv").rename("parts/judged.csv")
    with pytest.raises(InputError, match="has the column 'judge'"):
        says("fit", "parts", "-m", "rankrls", "-o", "m")
