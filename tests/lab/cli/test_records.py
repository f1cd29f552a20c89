"""`corank records` prints what was found and converts records."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
from records.test_openalex import FakeOpenAlex
from typer.testing import CliRunner

from corank.cli import app
from corank.errors import InputError
from corank_lab.records.records import read_records
from corank_lab.records.writer import WRITTEN

CSV = (
    "id,title,abstract,year,doi,included,references,Funding\n"
    "W1,Sleep and memory in young rats,Rats sleep.,2001,10.1000/a,1,W2,A\n"
    "W2,Sleep and memory in young rats,,2001,10.1000/a,,,=1+1\n"
    "W3,Tin ores of Wales,Old ore.,1999,,0,W1,\n"
)


@pytest.fixture
def works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "works.csv").write_text(CSV)
    return tmp_path


def says(*words):
    result = CliRunner().invoke(app, ["records", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_summary_and_the_groups(works):
    said = says("works.csv")
    assert "2 records have labels: 1 relevant, 1 irrelevant; 1 without." in said
    assert "2 references, of which 2 name records of this collection." in said
    assert "1 duplicate in 1 group: 2 records to judge." in said
    assert "--duplicates lists" in said
    listed = says("works.csv", "--duplicates")
    assert "evidence" in listed
    assert listed.count("Sleep and memory in young rats") == 2
    assert [path.name for path in works.iterdir()] == ["works.csv"]


@pytest.mark.parametrize("suffix", WRITTEN)
def test_conversion_to_every_format(suffix, works):
    assert f"wrote out{suffix}: 3 records" in says("works.csv", "-o", f"out{suffix}")
    assert (works / f"out{suffix}").stat().st_size > 100
    again = read_records(works / f"out{suffix}")
    assert again.titles == read_records(works / "works.csv").titles
    np.testing.assert_array_equal(again.labels, [1, np.nan, 0])
    with pytest.raises(InputError, match="exists already"):
        app(["records", "works.csv", "-o", f"out{suffix}"], standalone_mode=False)
    says("works.csv", "-o", f"out{suffix}", "--force")


def test_unique_records_and_json(works):
    said = json.loads(says("works.csv", "--unique", "-o", "out.csv", "--json", "--duplicates"))
    assert (said["n_records"], said["n_duplicates"], said["n_groups"], said["n_written"]) == (3, 1, 1, 2)
    assert said["files"][0]["missing"]["abstract"] == 1
    assert [row[2] for row in said["duplicates"]["rows"]] == ["W1", "W2"]
    assert read_records(works / "out.csv").ids == ["W1", "W3"]


def test_references_of_openalex(works):
    fake = FakeOpenAlex()
    thread = threading.Thread(target=fake.server.serve_forever)
    thread.start()
    try:
        fake.add(1, [7, 9], doi="10.1000/a")
        words = ["works.csv", "--references", "-o", "out.csv", "--address", fake.address]
        said = says(*words)
        n_questions = len(fake.questions)
        says(*words, "--force")
        assert len(fake.questions) == n_questions > 0
    finally:
        fake.server.shutdown()
        thread.join()
        fake.server.server_close()
    assert "OpenAlex knows 2 of 3 records (2 have a DOI or a PubMed id)" in said
    assert (works / "works.csv.openalex.jsonl").exists()
    again = read_records(works / "out.csv")
    assert [list(of) for of in again.references] == [["W7", "W9"], ["W7", "W9"], ["W1"]]
    assert again.ids == ["W1", "W2", "W3"]


def test_formulas_are_defused(works):
    says("works.csv", "-o", "a.csv")
    assert "'=1+1" in (works / "a.csv").read_text()
    says("works.csv", "-o", "b.csv", "--keep-formulas")
    assert ",=1+1" in (works / "b.csv").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["works.csv", "--unique"], "--unique needs a file to write"),
        (["works.csv", "--references"], "--references needs a file to write"),
        (["-", "-o", "a.csv"], "pass the name of a file"),
        (["works.csv", "-o", "a.doc"], "has an unknown suffix"),
        (["works.csv", "-o", "works.csv", "--force"], "is also an input"),
    ],
)
def test_bad_options_raise(words, message, works):
    with pytest.raises(InputError, match=message):
        app(["records", *words], standalone_mode=False)
    assert [path.name for path in works.iterdir()] == ["works.csv"]
