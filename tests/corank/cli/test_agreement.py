"""`corank agreement` prints what the library computes, for every kind of file."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.errors import InputError
from corank.metrics.agreement import judge_agreement, read_judgements

ROWS = [
    ("tea", "a", "ann", 2), ("tea", "a", "bob", 2), ("tea", "b", "ann", 0), ("tea", "b", "bob", 2),
    ("tea", "b", "eve", 1), ("=1+1", "a", "ann", 1), ("=1+1", "a", "eve", None), ("=1+1", "c", "bob", 0),
    ("=1+1", "c", "eve", 1),
]  # fmt: skip
QUERIES, DOCUMENTS, JUDGES, GRADES = (list(column) for column in zip(*ROWS, strict=True))
WANTED = judge_agreement([np.nan if one is None else one for one in GRADES], QUERIES, DOCUMENTS, JUDGES)


def run(*words):
    result = CliRunner().invoke(app, ["agreement", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def write_csv(path, head="query,docid,judge,grade", features=""):
    cells = ["" if grade is None else str(grade) for grade in GRADES]
    lines = [f"{q},{d},{j},{grade}{features}" for (q, d, j, _), grade in zip(ROWS, cells, strict=True)]
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def write_book(path):
    """A book of Quepid: judgements that are postponed or impossible have no grade."""
    pairs = []
    for query, document in dict.fromkeys(zip(QUERIES, DOCUMENTS, strict=True)):
        given = [(judge, grade) for q, d, judge, grade in ROWS if (q, d) == (query, document)]
        judgements = [
            {"rating": None if grade is None else float(grade), "judge_later": grade is None, "user_email": judge}
            for judge, grade in given
        ]
        judgements += [{"rating": 3, "unrateable": True, "user_email": "eve"}] if document == "c" and not given else []
        pairs.append({"query_text": query, "doc_id": document, "position": 1, "judgements": judgements})
    path.write_text(json.dumps({"name": "Book", "scale": "0,1,2", "query_doc_pairs": pairs}))
    return path


def write_parquet(path):
    arrow = pytest.importorskip("pyarrow")
    columns = {"query": QUERIES, "docid": DOCUMENTS, "judge": JUDGES, "grade": GRADES}
    arrow.parquet.write_table(arrow.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("name", "write"), [("judged.csv", write_csv), ("book.json", write_book), ("judged.parquet", write_parquet)]
)
def test_all_formats_give_the_agreement_of_the_library(tmp_path, name, write):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow.parquet")
    found = json.loads(run(write(tmp_path / name), "--json", "--list"))
    assert found["alpha"] == pytest.approx(dict(WANTED.alpha))
    assert found["judges"] == list(WANTED.judges)
    assert (found["n_documents"], found["n_grades"]) == (WANTED.n_documents, WANTED.n_grades)
    assert (found["n_repeated"], found["n_contradictory"]) == (WANTED.n_repeated, WANTED.n_contradictory)
    assert [pair["kappa"] for pair in found["pairs"]] == pytest.approx(
        [None if pair.kappa != pair.kappa else pair.kappa for pair in WANTED.pairs]
    )
    assert [tuple(row) for row in found["contradictions"]["rows"]] == list(WANTED.contradictions.rows)


def test_tables_for_people_and_a_file_of_contradictions(tmp_path):
    path = write_csv(tmp_path / "judged.csv", "topic,item,worker,points,bm25,note", ",0.5,fine")
    columns = ("--qid", "topic", "--id", "item", "--judge-column", "worker", "--label", "points")
    said = run(path, *columns, "-o", tmp_path / "out.csv", "--judges", "mean")
    assert "judged.csv: 8 grades of 4 documents by 3 judges" in said
    assert f"ordinal {WANTED.alpha['ordinal']:.3f}" in said
    assert "3 documents have two grades or more, 2 of them different ones" in said
    rows = list(csv.reader((tmp_path / "out.csv").read_text().splitlines()))
    assert rows[0] == ["query", "document", "ann", "bob", "eve", "aggregated"]
    assert rows[1] == ["tea", "b", "0", "2", "1", "1"]
    assert rows[2] == ["'=1+1", "c", "", "0", "1", "0.5"]
    assert "--list shows the 2 documents" in run(path, *columns)
    assert "0.5" in run(path, *columns, "--list", "--judges", "mean")


def test_files_without_judges(tmp_path):
    (tmp_path / "qrels.txt").write_text("1 0 a 2\n1 0 a 1\n1 0 b 0\n1 0 b 0\n2 0 a 0\n")
    found = json.loads(run(tmp_path / "qrels.txt", "--json", "--list"))
    assert (found["judges"], found["n_repeated"], found["pairs"]) == ([], 2, [])
    assert found["contradictions"]["rows"] == [["1", "a", "1 2", 1.0]]
    (tmp_path / "rows.txt").write_text("2 qid:1 1:0.5 # docid = a\n0 qid:1 1:0.5 # docid = a\n")
    assert json.loads(run(tmp_path / "rows.txt", "--json"))["n_contradictory"] == 1
    (tmp_path / "one.csv").write_text("query,docid,rating\ntea,a,2\ntea,b,1\nempty,,\n")
    assert "alpha is undefined: no document has two grades" in run(tmp_path / "one.csv")
    (tmp_path / "same.csv").write_text("query,docid,rating\ntea,a,2\ntea,a,2\n")
    assert "alpha is undefined: all grades are equal" in run(tmp_path / "same.csv")
    assert json.loads(run(tmp_path / "same.csv", "--json"))["alpha"]["ordinal"] is None


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{}", "query_doc_pairs"),
        ("a.json", "[", "this is not JSON"),
        ("a.json", '{"query_doc_pairs": [{"doc_id": 1}]}', "query_doc_pairs 1: expected query_text and doc_id"),
        ("a.json", '{"query_doc_pairs": [{"query_text": "a", "doc_id": 1}]}', "has no judgements in 1 JSON objects"),
        (
            "a.json",
            '{"query_doc_pairs": [{"query_text": "a", "doc_id": 1, "judgements": [{"rating": "good"}]}]}',
            "judgement 1: 'good' is not a grade",
        ),
        ("a.csv", "query,docid,grade\n1,a,good\n", "line 2, column 'grade': 'good' is not a grade"),
        ("a.csv", "query,grade\n1,2\n", "no column of document ids"),
        ("a.csv", "query,docid,grade\n", "has no rows"),
        ("a.txt", "1 qid:1 1:0.5\n", "has no document ids"),
    ],
)
def test_bad_files_get_a_sentence(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_judgements(tmp_path / name)


def test_keep_is_refused(tmp_path):
    with pytest.raises(InputError, match="--judges keep aggregates no grades"):
        run(write_csv(tmp_path / "judged.csv"), "--judges", "keep")


def test_a_table_with_one_column_per_judge_is_read(tmp_path):
    """The CSV of a book of Quepid; a blank precedes a query that begins with an equals sign."""
    lines = ["query,docid,ann,bob,eve"]
    for query, document in dict.fromkeys(zip(QUERIES, DOCUMENTS, strict=True)):
        given = {judge: grade for q, d, judge, grade in ROWS if (q, d) == (query, document) and grade is not None}
        lines.append(
            ",".join(
                [" " * (query[0] == "=") + query, document, *(str(given.get(j, "")) for j in lines[0].split(",")[2:])]
            )
        )
    path = tmp_path / "book.csv"
    path.write_text("\n".join(lines) + "\n")
    read = read_judgements(path)
    found = judge_agreement(read.y, read.qid, read.docids, read.judges)
    assert (found.judges, found.alpha, found.pairs) == (WANTED.judges, WANTED.alpha, WANTED.pairs)
    assert found.contradictions.rows == WANTED.contradictions.rows
    path.write_text("query,docid,bm25,age\ntea,a,0.5,3\n")
    with pytest.raises(InputError, match="no label column"):
        read_judgements(path)


def test_a_reversed_judge_is_not_said_to_save_grades(tmp_path):
    rows = [(f"q{q}", f"d{d}", (q + d) % 4) for q in range(6) for d in range(8)]
    for name, turn in (("gold", False), ("llm", True)):
        lines = [f"{q} 0 {d} {3 - grade if turn else grade}\n" for q, d, grade in rows]
        (tmp_path / f"{name}.qrels").write_text("".join(lines))
    words = ["agreement", str(tmp_path / "llm.qrels"), "--gold", str(tmp_path / "gold.qrels")]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "It reverses the order of gold grades" in result.output
    assert "explains" not in result.output
