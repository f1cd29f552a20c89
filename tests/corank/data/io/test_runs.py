"""Runs of several retrievers: joined by query and document, ordered as trec_eval orders them, or refused."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from corank.data.io.runs import describe_grades, read_grades, read_runs
from corank.data.io.trec import Qrels
from corank.errors import InputError

BM25 = "q1 Q0 a 1 9 sparse\nq1 Q0 b 2 7 sparse\nq2 Q0 c 1 5 sparse\n"
DENSE = "q1 Q0 b 1 0.9 dense\nq1 Q0 d 2 0.8 dense\nq2 Q0 c 1 0.7 dense\n"


def write(folder, **texts: str):
    paths = []
    for name, text in texts.items():
        path = folder / f"{name}.run"
        path.write_text(text)
        paths.append(path)
    return paths


def as_lists(runs):
    """The ranked list of every retriever and query: a stable sort of each column."""
    found = {}
    for column, name in enumerate(runs.names):
        for query in dict.fromkeys(runs.qid.tolist()):
            rows = [row for row in np.flatnonzero(runs.qid == query) if not np.isnan(runs.X[row, column])]
            rows.sort(key=lambda row, column=column: -runs.X[row, column])
            found[name, query] = [runs.docids[row] for row in rows]
    return found


def test_rows_are_the_union_and_absent_documents_are_missing(tmp_path):
    runs = read_runs(write(tmp_path, bm25=BM25, vectors=DENSE))
    assert runs.names == ("bm25", "vectors")
    assert runs.tags == ("sparse", "dense")
    cells = dict(zip(zip(runs.qid, runs.docids, strict=True), runs.X.tolist(), strict=True))
    assert cells["q1", "b"] == [7, 0.9]
    assert cells["q2", "c"] == [5, 0.7]
    assert np.isnan(cells["q1", "a"][1])
    assert np.isnan(cells["q1", "d"][0])
    assert runs.notes == ()
    assert runs.n_queries == 2


def test_ranks_follow_trec_eval(tmp_path):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(0)
    names = [f"d{number}" for number in (1, 10, 2, 30, 4, 11, 20)]
    run = {f"q{q}": {name: float(rng.integers(3)) for name in rng.permutation(names).tolist()} for q in range(20)}
    text = "".join(f"{q} Q0 {d} 0 {s} x\n" for q, found in run.items() for d, s in found.items())
    lists = as_lists(read_runs(write(tmp_path, one=text)))
    for query, found in run.items():
        # trec_eval gives reciprocal rank 1/r to the only relevant document at rank r
        for place, name in enumerate(lists["one", query], 1):
            value = pytrec_eval.RelevanceEvaluator({query: {name: 1}}, {"recip_rank"}).evaluate({query: found})
            assert value[query]["recip_rank"] == pytest.approx(1 / place)


def test_compressed_runs_and_duplicate_file_names(tmp_path):
    (tmp_path / "a").mkdir()
    first, second = tmp_path / "a" / "run.txt.gz", tmp_path / "run.txt"
    first.write_bytes(gzip.compress(BM25.encode()))
    second.write_text(DENSE)
    assert read_runs([first, second]).names == ("sparse", "dense")
    second.write_text(DENSE.replace("dense", "sparse"))
    with pytest.raises(InputError, match="two runs are named 'run'"):
        read_runs([first, second])


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_runs_without_scores_use_ranks(tmp_path, separator):
    ranked = tmp_path / "ranked.tsv"
    ranked.write_text("".join(separator.join(line) + "\n" for line in (("q1", "b", "1"), ("q1", "a", "2"))))
    constant = "q1 Q0 a 2 0 x\nq1 Q0 b 1 0 x\n"
    runs = read_runs([ranked, *write(tmp_path, constant=constant)])
    assert as_lists(runs) == {("ranked", "q1"): ["b", "a"], ("constant", "q1"): ["b", "a"]}
    assert "ranks only" in runs.notes[0]
    assert "all scores" in runs.notes[1]


def test_ranks_that_contradict_scores_are_reported(tmp_path):
    text = "q1 Q0 a 1 3 x\nq1 Q0 b 2 4 x\nq2 Q0 a 1 2 x\nq2 Q0 b 2 1 x\n"
    runs = read_runs(write(tmp_path, odd=text))
    assert as_lists(runs)["odd", "q1"] == ["b", "a"]
    assert "contradict its scores in 1 of 2 queries" in runs.notes[0]
    runs = read_runs(write(tmp_path, odd=text.replace(" 1 3", " - 3")))
    assert "are not numbers" in runs.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 Q0 a 1 2 x\n\nq1 Q0 b 2 1 x\nq1 Q0 a 3 0 x\n", "line 4: document 'a' appears twice for query 'q1'"),
        ("q1 Q0 a 1 nan x\n", "expected a finite number as the score, found 'nan'"),
        ("q1 Q0 a 1 inf x\n", "found 'inf'"),
        ("q1 Q0 a 1 1e300 x\n", "one: the score of document 'a' of query 'q1' is 1e.300"),
        ("q1 Q0 a 1 2 x\nq1 Q0 b 2\n", "expected 6 columns"),
        ("q1 a\n", "begins with 2 words; expected a TREC run"),
    ],
)
def test_damaged_runs_are_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_runs(write(tmp_path, one=text))


def test_queries_of_one_run_only_are_kept_and_reported(tmp_path):
    more = DENSE + "q3 Q0 z 1 1 dense\n"
    runs = read_runs(write(tmp_path, bm25=BM25, vectors=more))
    assert runs.n_queries == 3
    assert runs.notes == ("queries in one run only are kept: 1, such as q3",)
    with pytest.raises(InputError, match=r"no query in common \(found 'q1' and 'x1'\)"):
        read_runs(write(tmp_path, bm25=BM25, vectors=DENSE.replace("q", "x")))


ELASTIC = {"hits": {"hits": [{"_id": "b", "_score": 7.5}, {"_id": "a", "_score": 2.5}]}}
SOLR = {"response": {"docs": [{"id": "b", "score": 7.5}, {"id": "a", "score": 2.5}]}}
VESPA = {"root": {"children": [{"id": "id:x:y::b", "relevance": 7.5}, {"id": "id:x:y::a", "relevance": 2.5}]}}


@pytest.mark.parametrize("answer", [ELASTIC, SOLR, VESPA])
def test_scores_of_saved_answers(tmp_path, answer):
    path = tmp_path / "engine.jsonl"
    path.write_text("\n".join(json.dumps({"qid": query, "response": answer}) for query in ("tea", "milk")))
    runs = read_runs(path)
    assert runs.names == ("engine",)
    assert as_lists(runs) == {("engine", "tea"): ["b", "a"], ("engine", "milk"): ["b", "a"]}
    assert sorted(runs.X.ravel().tolist()) == [2.5, 2.5, 7.5, 7.5]


def test_answers_without_scores_or_in_another_order(tmp_path):
    path = tmp_path / "engine.json"
    bare = {"hits": {"hits": [{"_id": "b", "_score": None}, {"_id": "a", "_score": None}]}}
    path.write_text(json.dumps({"responses": [bare, bare]}))
    runs = read_runs(path, queries=["tea", "milk"])
    assert as_lists(runs) == {("engine", "tea"): ["b", "a"], ("engine", "milk"): ["b", "a"]}
    assert "the order shown is used" in runs.notes[0]
    path.write_text(json.dumps({"hits": {"hits": list(reversed(ELASTIC["hits"]["hits"]))}}))
    runs = read_runs(path)
    assert as_lists(runs) == {("engine", "engine"): ["b", "a"]}
    assert "in another order than by score" in runs.notes[0]
    path.write_text('{"hits": {"hits": [{"_id": "b", "_score": NaN}]}}')
    with pytest.raises(InputError, match="the score of document 'b' of query 'engine' is nan"):
        read_runs(path)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_have_one_column_per_retriever(tmp_path, suffix):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(
        {"query": [1, 1, 2], "docid": ["a", "b", "a"], "bm25": [3.0, None, 1.0], "dense": [0.5, 0.25, None],
         "grade": [1, None, 0]}
    )  # fmt: skip
    path = tmp_path / f"scores.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path, index=False)
    runs = read_runs(path)
    assert runs.names == ("bm25", "dense")
    assert as_lists(runs)["dense", "1"] == ["a", "b"]
    assert np.isnan(runs.X).sum() == 2
    assert runs.qrels is not None
    assert runs.qrels.y.tolist() == [1, 0]
    table[["query", "docid", "bm25"]].dropna().rename(columns={"bm25": "score"}).to_csv(tmp_path / "one.csv")
    assert read_runs(tmp_path / "one.csv").names == ("one",)
    pandas.concat([table, table]).to_csv(path) if suffix == "csv" else pandas.concat([table, table]).to_parquet(path)
    with pytest.raises(InputError, match="row 4: document 'a' appears twice"):
        read_runs(path)


def test_runs_are_matched_by_name_tag_or_order(tmp_path):
    runs = read_runs(write(tmp_path, bm25=BM25, vectors=DENSE))
    swapped = runs.matched(["vectors", "bm25"])
    np.testing.assert_array_equal(swapped.X, runs.X[:, ::-1])
    assert "by file name" in swapped.notes[-1]
    by_tag = runs.matched(["dense", "sparse"])
    np.testing.assert_array_equal(by_tag.X, runs.X[:, ::-1])
    assert "by tag" in by_tag.notes[-1]
    by_order = runs.matched(["x", "y"])
    np.testing.assert_array_equal(by_order.X, runs.X)
    assert by_order.notes[-1].endswith("matched by order: x = bm25, y = vectors")
    assert runs.matched(["bm25", "vectors"]).notes == ()
    with pytest.raises(InputError, match="found 2 runs for a fusion of 3 retrievers"):
        runs.matched(["bm25", "vectors", "rerank"])
    with pytest.raises(InputError, match="found 2 runs for a fusion of 1 retrievers"):
        runs.matched(["bm25"])
    with pytest.raises(InputError, match="no run is named 'rerank', but 'bm25'"):
        runs.matched(["bm25", "rerank"])


def test_grades_are_joined_and_missed_documents_are_kept(tmp_path):
    runs = read_runs(write(tmp_path, bm25=BM25, vectors=DENSE))
    (tmp_path / "judged.csv").write_text("query,docid,grade\nq1,b,2\nq1,z,1\nq9,a,1\nq2,c,\n")
    qrels, notes = read_grades(tmp_path / "judged.csv")
    y, missed = runs.join(qrels)
    assert y[(runs.qid == "q1") & (runs.docids == "b")] == [2]
    assert np.isnan(y).sum() == len(y) - 1
    assert (missed.qid.tolist(), missed.docids.tolist(), missed.y.tolist()) == (["q1"], ["z"], [1])
    assert notes == ()
    other = Qrels(np.array(["x"], object), np.array(["b"], object), np.array([1.0]))
    with pytest.raises(InputError, match="no query of the runs is judged"):
        runs.join(other)


def test_kinds_of_judgements_are_said(tmp_path):
    path = tmp_path / "judged.csv"
    path.write_text("query,docid,grade,judge\nq,a,2,ann\nq,a,0,bob\nq,b,1,ann\nr,c,0,bob\n")
    qrels, notes = read_grades(path)
    assert notes == ("2 judges: the median grade of each of 3 documents is used",)
    assert describe_grades(qrels).endswith("(binary); queries without a relevant document are left out of means: 1")
    path.write_text("query,docid,grade\nq,a,1\nr,b,1\n")
    said = describe_grades(read_grades(path)[0])
    assert (
        said == "2 judgements of 2 queries (only relevant documents are listed); every query has one relevant document"
    )
    path.write_text("query,docid,grade\nq,a,\n")
    with pytest.raises(InputError, match="has no grade"):
        read_grades(path)
