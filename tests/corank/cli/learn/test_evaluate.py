"""`corank evaluate` from files to what is printed and written."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.errors import InputError
from corank.metrics import evaluate

LETOR = """\
2 qid:1 1:0.5 #docid = a
0 qid:1 1:0.5 #docid = b
1 qid:1 1:0.5 #docid = c
0 qid:2 1:0.5 #docid = d
-1 qid:2 1:0.5 #docid = e
1 qid:3 1:0.5 #docid = f
0 qid:3 1:0.5 #docid = g
"""
Y = np.array([2, 0, 1, 0, np.nan, 1, 0])
QID = np.array([1, 1, 1, 2, 2, 3, 3])
SCORES = np.array([1, 3, 2, 1, 2, 1, 2.0])
BETTER = np.array([3, 1, 2, 1, 2, 2, 1.0])


@pytest.fixture
def files(tmp_path):
    (tmp_path / "truth.txt").write_text(LETOR)
    (tmp_path / "scores.txt").write_text("".join(f"{score}\n" for score in SCORES))
    (tmp_path / "better.txt").write_text("".join(f"{score}\n" for score in BETTER))
    return tmp_path


def run(*arguments):
    result = CliRunner().invoke(app, ["evaluate", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_the_table_shows_means_and_counts(files):
    output = run(files / "truth.txt", files / "scores.txt", "--unjudged=-1", "-m", "nDCG@2", "-m", "disagreement")
    found = evaluate(Y, SCORES, QID, ["nDCG@2", "disagreement"])
    lines = [line.split() for line in output.splitlines()]
    assert ["nDCG@2", f"{found['nDCG@2'].mean:.4f}", "2", "1"] in lines
    result = found["disagreement"]
    assert ["disagreement", f"{result.mean:.4f}", f"{result.micro:.4f}", "2", "1"] in lines
    assert "convention corank: 3 queries, 1 of a single grade" in output
    assert "7 rows, 1 unjudged" in output


def test_json_and_the_file_of_queries(files):
    table = files / "queries.tsv"
    output = run(
        files / "truth.txt", files / "scores.txt", "--unjudged", -1, "--convention", "letor4", "--json",
        "--per-query", table,
    )  # fmt: skip
    report = json.loads(output)
    found = evaluate(Y, SCORES, QID, convention="letor4")
    assert {name: entry["mean"] for name, entry in report["metrics"].items()} == found.means
    assert report["convention"]["name"] == "letor4"
    header, *lines = [line.split("\t") for line in table.read_text().splitlines()]
    assert header == ["qid", "nDCG@10", "AP"]
    assert [line[0] for line in lines] == ["1", "2", "3"]
    np.testing.assert_array_equal([float(line[2]) for line in lines], found["AP"].values)
    assert sorted(path.name for path in files.iterdir()) == ["better.txt", "queries.tsv", "scores.txt", "truth.txt"]


def test_no_value_at_all_is_null_in_json(files):
    (files / "truth.txt").write_text("0 qid:1 1:1\n0 qid:1 1:1\n")
    (files / "scores.txt").write_text("1\n2\n")
    report = json.loads(run(files / "truth.txt", files / "scores.txt", "--json", "-m", "AUC"))
    assert report["metrics"]["AUC"] == {"mean": None, "micro": None, "n_used": 0, "n_empty": 1}


def test_a_second_ranking_is_compared_query_by_query(files):
    arguments = [
        files / "truth.txt",
        files / "scores.txt",
        "--unjudged=-1",
        "--compare",
        files / "better.txt",
        "-m",
        "RR",
    ]
    (pair,) = json.loads(run(*arguments, "--json"))["comparisons"]
    means = [evaluate(Y, scores, QID, "RR")["RR"].mean for scores in (SCORES, BETTER)]
    assert [pair["base_mean"], pair["other_mean"]] == means
    assert [pair["base"], pair["other"]] == [str(files / name) for name in ("scores.txt", "better.txt")]
    assert (pair["n_higher"], pair["n_lower"], pair["n_queries"]) == (2, 0, 2)
    assert "2/0" in run(*arguments)


def test_several_rankings_are_compared_with_the_first_and_corrected(files):
    (files / "third.txt").write_text((files / "scores.txt").read_text())
    arguments = [files / "truth.txt", files / "scores.txt", "--unjudged=-1", "-m", "RR"]
    arguments += ["--compare", files / "better.txt", "--compare", files / "third.txt"]
    better, third = json.loads(run(*arguments, "--json"))["comparisons"]
    assert (better["p_adjusted"], third["p_adjusted"]) == (min(1.0, 2 * better["p_value"]), 1.0)
    assert "with correction for 2 tests" in run(*arguments)


def test_a_run_file_against_qrels_is_what_trec_eval_says(files):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    judged = {"q1": {"a": 2, "b": 0, "c": 1, "lost": 3}, "q2": {"d": 1}, "absent": {"x": 1}}
    ranked = {"q1": {"a": 1.0, "b": 1.0, "c": 0.5, "new": 1.0}, "q2": {"d": 0.25, "e": 0.5}, "stranger": {"z": 1.0}}
    (files / "qrels").write_text("".join(f"{q} 0 {d} {y}\n" for q, rows in judged.items() for d, y in rows.items()))
    (files / "run").write_text(
        "".join(f"{q} Q0 {d} 1 {s} tag\n" for q, rows in ranked.items() for d, s in rows.items())
    )
    names = {"nDCG@10": "ndcg_cut_10", "AP": "map", "P@5": "P_5", "RR": "recip_rank"}
    expected = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10", "map", "P.5", "recip_rank"}).evaluate(ranked)
    options = [option for name in names for option in ("-m", name)]
    report = json.loads(run(files / "qrels", files / "run", "-c", "trec_eval", "--json", *options))
    for ours, theirs in names.items():
        mean = np.mean([values[theirs] for values in expected.values()])
        assert report["metrics"][ours]["mean"] == pytest.approx(mean, abs=1e-9)
    assert report["n_queries"] == 2
    assert report["n_absent_queries"] == 1


def test_a_run_file_against_letor_text_is_joined_by_document(files):
    docids = "abcdefg"
    rows = [(str(q), d, s) for q, d, s in zip(QID, docids, SCORES, strict=True)]
    (files / "run").write_text("".join(f"{q} Q0 {d} 1 {s} tag\n" for q, d, s in reversed(rows)))
    by_run = json.loads(run(files / "truth.txt", files / "run", "--unjudged=-1", "--json"))
    by_score = json.loads(run(files / "truth.txt", files / "scores.txt", "--unjudged=-1", "--json"))
    for metric in by_run["metrics"].values():
        assert 0 <= metric.pop("holes")["judged"] <= 1
    assert by_run == by_score


@pytest.mark.parametrize("turned", [False, True])
def test_a_run_is_compared_with_scores_though_its_ids_are_text(files, turned):
    rows = zip(QID, "abcdefg", BETTER, strict=True)
    (files / "run").write_text("".join(f"{q} Q0 {d} 1 {s} tag\n" for q, d, s in rows))
    one, other, run_file = files / "scores.txt", files / "better.txt", files / "run"

    def pairs(first, second):
        found = run(files / "truth.txt", first, "--unjudged=-1", "--compare", second, "--json")
        return [{**test, "base": "", "other": ""} for test in json.loads(found)["comparisons"]]

    if turned:
        assert pairs(run_file, one) == pairs(other, one)
    else:
        assert pairs(one, run_file) == pairs(one, other)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n2\n", r"scores.txt has 2 scores for 7 rows of .*truth.txt; pass one per row"),
        ("1\n2\nx\n4\n5\n6\n7\n", r"scores.txt, line 3, column 1: expected a finite number as the score, found 'x'"),
        (
            "1\n2\n3\n4\nnan\n6\n7\n",
            r"scores.txt, line 5, column 1: expected a finite number as the score, found 'nan'",
        ),
        ("1\n\n3\n4\n5\n6\n7\n", r"scores.txt has 6 scores for 7 rows"),
        ("1\n1_0\n3\n4\n5\n6\n7\n", r"line 2, column 1: expected a finite number as the score, found '1_0'"),
        ("1\r2\r3\r4\r5\r6\r7\r", r"found a carriage return alone"),
        ("1 2 3\n", r"has 3 columns; expected one score per line, as corank rank writes it, or a TREC run"),
        ("1 qid:1 1:2\n", r"scores.txt is LETOR text, not predictions; pass the truth first"),
        ("\n\n", r"scores.txt has no rows"),
        ("9 Q0 a 1 1 tag\n", r"have no query in common"),
    ],
)
def test_bad_predictions_are_named_and_nothing_is_written(files, content, message):
    (files / "scores.txt").write_text(content)
    arguments = ["evaluate", files / "truth.txt", files / "scores.txt", "--per-query", files / "out.tsv"]
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert not (files / "out.tsv").exists()


def test_a_run_needs_documents_in_the_truth(files):
    (files / "truth.txt").write_text("1 qid:1 1:1\n")
    (files / "run").write_text("1 Q0 a 1 1 tag\n")
    with pytest.raises(InputError, match=r"has no ids of documents, so the run .* cannot be matched"):
        run(files / "truth.txt", files / "run")


def test_the_file_of_queries_keeps_names_that_are_not_utf8(tmp_path):
    (tmp_path / "qrels").write_bytes(b"q\xe9 0 a 1\nq\xe9 0 b 0\n")
    (tmp_path / "run").write_bytes(b"q\xe9 Q0 a 1 0.5 x\n")
    run(tmp_path / "qrels", tmp_path / "run", "-m", "RR", "--per-query", tmp_path / "table")
    assert (tmp_path / "table").read_bytes() == b"qid\tRR\nq\xe9\t1.0\n"
