"""`corank convert` and `corank evaluate` on judgements, clicks and saved answers of search engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.data.io.judgements import read_judgements
from corank.data.io.read import read
from corank.errors import InputError

BOOK = {
    "query_doc_pairs": [
        {"query_text": "tea", "doc_id": "a", "judgements": [{"rating": 3, "user_email": "ann"}]},
        {"query_text": "tea", "doc_id": "b", "judgements": [{"rating": 0, "user_email": "ann", "explanation": "no"}]},
        {"query_text": "tea", "doc_id": "c", "judgements": [{"unrateable": True, "user_email": "ann"}]},
    ]
}


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def answer(*names: str) -> dict:
    """An answer of `_search` in which the LTR plugin logged two features; `age` has no value for the last document."""
    logs = [[{"name": "bm25", "value": 9.0 - at}, {"name": "age", "value": at}] for at in range(len(names))]
    del logs[-1][1]["value"]
    hits = [{"_id": name, "fields": {"_ltrlog": [{"x": log}]}} for name, log in zip(names, logs, strict=True)]
    return {"hits": {"hits": hits}}


def test_a_book_becomes_qrels_and_what_is_lost_is_said(tmp_path):
    out = run("convert", written(tmp_path / "book.json", BOOK), tmp_path / "a.qrels")
    assert (tmp_path / "a.qrels").read_text() == "tea 0 a 3\ntea 0 b 0\n"
    assert "does not keep the name of the judge, 1 note, 1 'unrateable'" in " ".join(out.split())
    out = run("convert", tmp_path / "book.json", tmp_path / "b.json", "--to", "opensearch", "--json")
    assert json.loads(out)["not_kept"] == ["the name of the judge", "1 note", "1 'unrateable'"]
    run("convert", tmp_path / "b.json", tmp_path / "c.txt", "--to", "ranklib")
    assert read_judgements(tmp_path / "c.txt").y.tolist() == [3, 0]


def test_a_feature_log_and_judgements_become_rows(tmp_path):
    """Documents without a judgement are unjudged, and a feature without a value is 0, as the engine counts it."""
    log, book = written(tmp_path / "tea.json", answer("b", "x", "a")), written(tmp_path / "book.json", BOOK)
    out = run("convert", log, tmp_path / "rows.csv", "--judgements", book)
    assert "2 of 3 rows are judged" in out
    assert "1 features without a value become 0" in out
    rows = read(tmp_path / "rows.csv")
    assert rows.names == ["bm25", "age"]
    assert rows.X.tolist() == [[9, 0], [8, 1], [7, 0]]
    assert rows.y.tolist()[::2] == [0, 3]
    assert rows.docids.tolist() == ["b", "x", "a"]


def test_an_answer_is_evaluated_in_the_order_shown(tmp_path):
    book = written(tmp_path / "book.json", BOOK)
    worst = json.loads(run("evaluate", book, written(tmp_path / "tea.json", answer("b", "a")), "-m", "RR", "--json"))
    assert worst["metrics"]["RR"]["mean"] == 0.5
    best = json.loads(run("evaluate", book, written(tmp_path / "tea.json", answer("a", "b")), "-m", "RR", "--json"))
    assert best["metrics"]["RR"]["mean"] == 1


def test_clicks_become_grades(tmp_path):
    query = {"query_id": "1", "user_query": "tea", "query_response_hit_ids": ["a", "b"]}
    click = {"action_name": "click", "query_id": "1", "event_attributes": {"object": {"object_id": "b"}}}
    path = tmp_path / "ubi.json"
    path.write_text(json.dumps(query) + "\n" + json.dumps(click))
    out = run("convert", path, tmp_path / "a.csv")
    assert "clicks over expected clicks" in out
    assert read_judgements(tmp_path / "a.csv").docids.tolist() == ["b"]  # position 1 has no click, so a has no grade


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        (BOOK, ("out.json",), "may have one of several formats of judgements; choose one with --to"),
        (BOOK, ("out.csv", "--queries", "q.txt"), "--queries applies to saved answers of a search engine"),
        (answer("a"), ("out.csv", "--to", "qrels"), "which has no judgements; leave out --to"),
        (answer("z"), ("out.csv", "--judgements", "book.json"), "no document of .* is judged in"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path, monkeypatch, value, options, message):
    monkeypatch.chdir(tmp_path)
    written(Path("book.json"), BOOK)
    Path("q.txt").write_text("tea\n")
    with pytest.raises(InputError, match=message):
        run("convert", written(Path("tea.json"), value), *options)
    assert not Path("out.csv").exists()
    assert not Path("out.json").exists()
