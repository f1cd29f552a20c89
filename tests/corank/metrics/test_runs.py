"""`evaluate_run` against trec_eval itself, and against `evaluate` on rows matched by hand."""

from __future__ import annotations

import numpy as np
import pytest

import corank
from corank.data.io.trec import Qrels, Run, read_qrels, read_run, write_qrels, write_run
from corank.errors import InputError

JUDGED = {"q1": {"a": 2, "b": 0, "c": 1, "lost": 3}, "q2": {"d": 1}, "absent": {"x": 1}}
RANKED = {"q1": {"a": 1.0, "b": 1.0, "c": 0.5, "new": 1.0}, "q2": {"d": 0.25, "e": 0.5}, "stranger": {"z": 1.0}}


def columns(rows):
    """Queries, documents and numbers of nested dicts."""
    flat = [(query, document, number) for query, one in rows.items() for document, number in one.items()]
    queries, documents, numbers = zip(*flat, strict=True)
    return np.array(queries, dtype=object), np.array(documents, dtype=object), np.array(numbers, dtype=float)


@pytest.fixture
def files(tmp_path):
    write_qrels(tmp_path / "qrels", *columns(JUDGED))
    write_run(tmp_path / "run", *columns(RANKED))
    return tmp_path / "qrels", tmp_path / "run"


def test_values_equal_those_of_trec_eval(files):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names = {"nDCG@10": "ndcg_cut_10", "AP": "map", "P@5": "P_5", "RR": "recip_rank"}
    expected = pytrec_eval.RelevanceEvaluator(JUDGED, {"ndcg_cut.10", "map", "P.5", "recip_rank"}).evaluate(RANKED)
    found = corank.metrics.evaluate_run(*files, list(names), convention="trec_eval")
    assert set(found.query_ids) == set(expected) == {"q1", "q2"}
    for ours, theirs in names.items():
        values = [expected[query][theirs] for query in found.query_ids]
        np.testing.assert_allclose(found[ours].values, values, atol=1e-9)


def test_paths_and_what_was_read_from_them_give_the_same(files):
    qrels, run = files
    means = corank.metrics.evaluate_run(str(qrels), str(run)).means
    assert isinstance(corank.metrics.evaluate_run(qrels, run), corank.metrics.Evaluation)
    assert corank.metrics.evaluate_run(read_qrels(qrels), read_run(run)).means == means
    assert corank.metrics.evaluate_run(Qrels(*columns(JUDGED)), Run(*columns(RANKED), tag="t")).means == means


def test_judged_rows_that_the_run_missed_can_still_be_found(files):
    found = corank.metrics.evaluate_run(*files, ["nDCG", "AP", "disagreement"])
    y = [2, 0, 1, np.nan, 3, 1, np.nan]
    scores = [1, 1, 0.5, 1, 0, 0.25, 0.5]
    qid = ["q1"] * 5 + ["q2"] * 2
    retrieved = np.array([True] * 4 + [False] + [True] * 2)
    again = corank.evaluate(y, scores, qid, ["nDCG", "AP", "disagreement"], retrieved=retrieved)
    assert found.means == again.means
    assert (found.n_rows, found.n_unjudged_rows) == (7, 2)


def test_a_collection_is_matched_by_document(tmp_path):
    made = corank.make_ranking(6, 7, random_state=1)
    names = [f"d{row}" for row in range(len(made.y))]
    corank.data.write_letor(tmp_path / "rows.txt", made.X, made.y, made.qid, comments=names)
    scores = made.X @ made.best
    write_run(tmp_path / "run", made.qid, names, scores)
    found = corank.metrics.evaluate_run(corank.read(tmp_path / "rows.txt"), tmp_path / "run", ["nDCG@3", "AP"])
    assert found.means == pytest.approx(corank.evaluate(made.y, scores, made.qid, ["nDCG@3", "AP"]).means)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 qid:1 1:1", "the qrels has no ids of documents, so .*run cannot be matched; use evaluate with scores"),
        ("1 1:1 # a", "the qrels has no ids of queries, so .*run cannot be matched"),
        ("1 qid:9 1:1 # a", "run and the qrels have no query in common; check that their query ids agree"),
    ],
)
def test_runs_that_cannot_be_matched_raise(files, tmp_path, line, message):
    (tmp_path / "rows").write_text(f"{line}\n")
    with pytest.raises(InputError, match=message):
        corank.metrics.evaluate_run(corank.read(tmp_path / "rows"), files[1])


def test_a_document_retrieved_or_judged_twice_is_refused(files, tmp_path):
    (tmp_path / "twice").write_text("q1 Q0 a 1 0.5 t\nq1 Q0 a 2 0.25 t\n")
    with pytest.raises(InputError, match="the run contains document 'a' twice for"):
        corank.metrics.evaluate_run(files[0], tmp_path / "twice")
    (tmp_path / "grades").write_text("q1 0 a 1\nq1 0 a 2\n")
    with pytest.raises(InputError, match="the qrels contain two different grades for"):
        corank.metrics.evaluate_run(tmp_path / "grades", files[1])
