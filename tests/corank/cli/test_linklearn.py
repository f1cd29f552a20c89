"""`corank index`, `corank search` and `corank learn-links`: from files to a run that `corank evaluate` reads."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.errors import InputError
from corank.text import BM25, open_corpus


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def place(tmp_path):
    topics = {"metal": "tin iron ore mine", "grain": "wheat corn field harvest"}
    lines = [
        {"id": f"{topic}{n}", "title": topic, "text": " ".join(words.split()[n % 4 :] + ["city"] * (n % 3))}
        for topic, words in topics.items()
        for n in range(8)
    ]
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    pairs = [f"{topic}{n}\t{topic}{m}" for topic in topics for n in range(8) for m in range(n) if (n + m) % 3]
    (tmp_path / "links.tsv").write_text("\n".join([*pairs, "metal0\tnowhere"]))
    run("index", tmp_path / "docs.jsonl", "-o", tmp_path / "docs.index", "--language", "none")
    return tmp_path


def test_words_are_searched_for(place):
    lines = [line.split("\t") for line in run("search", place / "docs.index", "Iron ore", "-n", 3).splitlines()]
    corpus = open_corpus(place / "docs.index")
    found = BM25().to_index(corpus).search("iron ore", 3)
    assert [line[2] for line in lines] == corpus.ids[found.documents[0]].tolist()
    assert [line[0] for line in lines] == ["1", "2", "3"]


def test_documents_are_added(place):
    (place / "more.tsv").write_text("new\tgold gold\n")
    run("index", place / "more.tsv", "--add-to", place / "docs.index", "-o", place / "docs.index", "--force")
    assert open_corpus(place / "docs.index").n_documents == 17
    assert run("search", place / "docs.index", "gold").split("\t")[2].strip() == "new"


def test_a_learnt_similarity_makes_a_run(place):
    said = run(
        "learn-links", place / "docs.index", place / "links.tsv", "-o", place / "model.safetensors", "--steps", 5,
        "--held-out", 0,
    )  # fmt: skip
    assert "1 with unknown ids" in said
    (place / "queries.tsv").write_text("q1\ttin ore\nq2\tcorn harvest\n")
    run(
        "search", place / "docs.index", "--queries", place / "queries.tsv", "--model", place / "model.safetensors",
        "-o", place / "run.txt",
    )  # fmt: skip
    (place / "qrels.txt").write_text("".join(f"q1 0 metal{n} 1\nq2 0 grain{n} 1\n" for n in range(8)))
    said = run("evaluate", place / "qrels.txt", place / "run.txt", "-m", "P@5", "--json")
    assert json.loads(said)["metrics"]["P@5"]["mean"] == 1.0 if "metrics" in json.loads(said) else "P@5" in said


def test_clicks_are_links_too(place):
    (place / "queries.tsv").write_text("q1\ttin ore\nq2\tcorn harvest\nq3\tcity\n")
    (place / "clicks.tsv").write_text("".join(f"q1\tmetal{n}\nq2\tgrain{n}\nq3\tgrain{n}\n" for n in range(8)))
    said = run(
        "learn-links", place / "docs.index", place / "clicks.tsv", "--queries", place / "queries.tsv", "-o",
        place / "model.safetensors", "--steps", 3, "--held-out", 0.4,
    )  # fmt: skip
    assert "average precision on 3 held-out texts" in said


def test_what_is_wrong_is_said(place):
    with pytest.raises(InputError, match="found no query"):
        run("search", place / "docs.index")
    with pytest.raises(InputError, match="does not exist; make an index"):
        run("search", place / "other.index", "tin")
    with pytest.raises(InputError, match="exists already"):
        run("index", place / "docs.jsonl", "-o", place / "docs.index")
