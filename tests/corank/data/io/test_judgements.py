"""Judgements survive every pair of formats as far as the formats can keep them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from corank.cli.convert import JUDGEMENTS, kind_of
from corank.data.io.clicks import ClickLog
from corank.data.io.judgements import (
    COMPLETE_FORMATS,
    JUDGEMENT_WRITERS,
    encode_name,
    read_judgements,
    write_judgements,
)
from corank.data.judges import JudgementList
from corank.errors import InputError

SUFFIX = {"table": ".csv", "quepid": ".csv", "qrels": ".txt", "ranklib": ".txt"}
ROWS = [
    # grade, query, document, judge, answer, note
    (3.0, "green tea", "d1", "ann", "grade", "=cmd|' /C calc'!A0"),
    (1.0, "green tea", "d1", "bob", "grade", ""),
    (0.0, "green tea", "d2", "ann", "grade", "zero is a grade"),
    (np.nan, "green tea", "d3", "ann", "unrateable", "broken link"),
    (np.nan, "=1+1", "-d4", "ann", "later", ""),
    (2.0, "=1+1", "-d4", "bob", "grade", 'naïve, “quoted” "text"\nsecond line'),
    (0.0, "=1+1", "d1", "bob", "grade", ""),
]


def texts(values: list[str]) -> np.ndarray:
    return np.array(values, dtype=object)


def some_judgements() -> JudgementList:
    y, *columns = (list(column) for column in zip(*ROWS, strict=True))
    return JudgementList(np.array(y), *map(texts, columns))


def rows_of(found: JudgementList) -> list[tuple[str, ...]]:
    blank = texts([""] * len(found))
    columns = (blank if one is None else one for one in (found.judges, found.answers, found.notes))
    kept = zip(found.y.tolist(), found.qid, found.docids, *columns, strict=True)
    return [tuple(map(str, row)) for row in kept]


def written(folder: Path, format: str, found: JudgementList) -> Path:
    path = folder / f"{format}{SUFFIX.get(format, '.json')}"
    write_judgements(path, found, format)
    return path


@pytest.mark.parametrize("format", COMPLETE_FORMATS)
def test_complete_formats_keep_every_answer(tmp_path, format):
    found = read_judgements(written(tmp_path, format, some_judgements()))
    assert sorted(rows_of(found)) == sorted(rows_of(some_judgements()))


@pytest.mark.parametrize("second", sorted(set(JUDGEMENT_WRITERS)))
@pytest.mark.parametrize("first", sorted(set(JUDGEMENT_WRITERS)))
def test_final_grades_survive_two_conversions(tmp_path, first, second):
    """The lower median: the grade of the lower of two judges; blanks are encoded in TREC and RankLib files."""
    (tmp_path / "first").mkdir()
    once = read_judgements(written(tmp_path / "first", first, some_judgements()))
    twice = read_judgements(written(tmp_path, second, once)).final("median")
    names = [unquote(twice.text_of(query)) for query in twice.qid.tolist()]
    found = dict(zip(zip(names, map(unquote, twice.docids), strict=True), twice.y.tolist(), strict=True))
    # RankLib numbers the queries, and qrels cannot keep their words
    tea, formula = ("1", "2") if (first, second) == ("ranklib", "qrels") else ("green tea", "=1+1")
    assert found == {(tea, "d1"): 1, (tea, "d2"): 0, (formula, "-d4"): 2, (formula, "d1"): 0}


def test_what_is_not_kept_is_counted(tmp_path):
    lost = write_judgements(tmp_path / "q.txt", some_judgements(), "qrels")
    assert lost == [
        "the 2 judges (each document has the median of its grades)", "4 notes", "1 'unrateable'", "1 'later'",
        "blanks in 1 names (percent-encoded; --decode reverses this)",
    ]  # fmt: skip
    assert write_judgements(tmp_path / "t.csv", some_judgements(), "table") == []


def test_a_spreadsheet_runs_no_cell(tmp_path):
    for format in ("table", "quepid"):
        with written(tmp_path, format, some_judgements()).open(newline="") as stream:
            cells = [cell for row in csv.reader(stream) for cell in row]
        assert any("=1+1" in cell for cell in cells)
        assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]


def test_formats_of_the_engines_are_as_documented(tmp_path):
    workbench = json.loads(written(tmp_path, "opensearch", some_judgements()).read_text())
    assert workbench["type"] == "IMPORT_JUDGMENT"
    assert workbench["judgmentRatings"][0] == {
        "query": "green tea", "ratings": [{"docId": "d1", "rating": 1}, {"docId": "d2", "rating": 0}]
    }  # fmt: skip
    request = json.loads(written(tmp_path, "rank-eval", some_judgements()).read_text())["requests"][1]
    assert request["ratings"][0] == {"_index": "documents", "_id": "-d4", "rating": 2}


def test_a_workbench_list_is_read_from_a_search_of_its_index(tmp_path):
    source = {"judgmentRatings": [{"query": "tea", "ratings": [{"docId": "a", "rating": "2.0"}]}]}
    (tmp_path / "a.json").write_text(json.dumps({"hits": {"hits": [{"_id": "x", "_source": source}]}}))
    assert rows_of(read_judgements(tmp_path / "a.json")) == [("2.0", "tea", "a", "", "", "")]


def test_ranklib_is_told_from_rows_with_features(tmp_path):
    (tmp_path / "a.txt").write_text("# qid:1: rambo\n4 qid:1 # 7555 rambo\n0 qid:1 # 13 rambo\n")
    assert kind_of(tmp_path / "a.txt") == JUDGEMENTS
    found = read_judgements(tmp_path / "a.txt")
    assert rows_of(found) == [("4.0", "1", "7555", "", "", ""), ("0.0", "1", "13", "", "", "")]
    assert found.text_of("1") == "rambo"
    (tmp_path / "b.txt").write_text("4 qid:1 # docid = a\n0 qid:1 1:0.5 # docid = b\n")
    assert kind_of(tmp_path / "b.txt") is None
    assert read_judgements(tmp_path / "b.txt").docids.tolist() == ["a", "b"]


def test_clicks_over_expected_clicks_by_brute_force():
    rng = np.random.default_rng(1)
    n_lists, length = 60, 5
    qid = np.repeat([f"q{k}" for k in rng.integers(0, 4, n_lists)], length)
    docids = np.concatenate([rng.permutation([f"d{k}" for k in range(8)])[:length] for _ in range(n_lists)])
    position, clicked = np.tile(np.arange(1, length + 1), n_lists), rng.random(n_lists * length) < 0.3
    impression = np.repeat(np.arange(n_lists), length)
    found = ClickLog.of(qid, docids, position, clicked, impression=impression).expected_clicks()
    for query, document, grade in zip(*found, strict=True):
        rows = [row for row in range(len(qid)) if qid[row] == query and docids[row] == document]
        expected = sum(clicked[position == position[row]].mean() for row in rows)
        assert grade == pytest.approx(clicked[rows].sum() / expected, abs=6e-4)
    assert list(zip(*found[:2], strict=True)) == list(dict.fromkeys(zip(qid, docids, strict=True)))


@pytest.mark.parametrize("name", ["plain", "a b", "100% sure", "a%20b", "tab\there", "übung ß"])
def test_names_are_decoded(name):
    assert not any(one.isspace() for one in encode_name(name))
    if name != "a%20b":  # not encoded, since it has no blank
        assert unquote(encode_name(name)) == name


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"requests": [{"ratings": []}]}', "requests 1 is .*; expected id"),
        ("a.json", '{"requests": [{"id": 1, "ratings": [{"rating": 1}]}]}', "rating 1 is .*; expected _id"),
        (
            "a.json",
            '{"judgmentRatings": [{"query": "a"}]}',
            "judgmentRatings 1 is .*; expected query",
        ),
        ("a.json", '{"judgmentRatings": [{"query": "a", "ratings": [{}]}]}', "expected docId and rating"),
        ("a.json", "[1]", "found 1, but no list .*query_doc_pairs"),
    ],
)
def test_bad_files_get_a_sentence(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_judgements(tmp_path / name)


def test_grades_that_a_format_cannot_hold_are_refused(tmp_path):
    found = JudgementList(np.array([0.5, 1.0]), texts(["a", "a"]), texts(["x", "y"]))
    with pytest.raises(InputError, match="1 grades are not whole numbers"):
        write_judgements(tmp_path / "a.json", found, "rank-eval")
    with pytest.raises(InputError, match="no grades to write"):
        write_judgements(tmp_path / "a.json", JudgementList(np.array([np.nan]), texts(["a"]), texts(["x"])), "qrels")
    with pytest.raises(InputError, match="'qrel' is unknown"):
        write_judgements(tmp_path / "a.json", found, "qrel")
    assert not (tmp_path / "a.json").exists()


def test_grades_of_language_models_name_their_judge(tmp_path):
    ratings = [{"query": "tv", "ratings": [{"docId": "a", "rating": "0.9"}, {"docId": "b", "rating": "0.1"}]}]
    srw = {"_source": {"id": "x", "name": "ours", "type": "LLM_JUDGMENT", "judgmentRatings": ratings}}
    book = [{"rating": 2, "user_email": "ann"}, {"rating": 3, "user_name": "Judy", "llm_key": "k"}]
    umbrela = [
        {"model": "m", "query": "tv", "docid": d, "passage": "p", "judgment": g} for d, g in (("a", 3), ("b", 0))
    ]
    files = {
        "srw.json": json.dumps(srw),
        "book.json": json.dumps({"query_doc_pairs": [{"query_text": "tv", "doc_id": "a", "judgements": book}]}),
        "umbrela.jsonl": "\n".join(map(json.dumps, umbrela)),
    }
    found = {}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        found[name] = read_judgements(tmp_path / name)
    assert found["srw.json"].judges.tolist() == ["llm:ours"] * 2
    assert found["book.json"].judges.tolist() == ["ann", "llm:Judy"]
    assert found["umbrela.jsonl"].y.tolist() == [3.0, 0.0]
    assert found["umbrela.jsonl"].docids.tolist() == ["a", "b"]
