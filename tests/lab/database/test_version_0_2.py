"""Files and a database that version 0.2 wrote: their answers are found again, by the terminal and on pages."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.errors import InputError
from corank_lab.database.backends import SqliteDatabase
from corank_lab.pages.preferences import PreferenceWorkspace
from corank_lab.pages.screening import ScreenWorkspace
from corank_lab.records import read_records
from corank_lab.screening.certificate import verify

STORED = Path(__file__).parent / "version_0_2"


@pytest.fixture
def here(tmp_path):
    """The files without the database."""
    shutil.copytree(STORED, tmp_path / "here")
    (tmp_path / "here" / "corank.db.gz").unlink()
    return tmp_path / "here"


def run(*words, keys="q\n"):
    result = CliRunner().invoke(app, [*map(str, words)], input=keys, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "corank.db" not in path.name}


def open_page(store, kind):
    (project,) = [one for one in store.projects() if one.kind == kind.kind]
    page = kind(store, project)
    page.refresh()
    page.background.wait()
    return page


def test_journals_are_imported_at_the_first_start(here):
    before = files_of(here)
    certificate = (here / "certificate.json").read_bytes()
    lines = verify(certificate, [here / "works.csv"])
    assert any("by the rule 'hypergeometric' was not computed anew" in line for line in lines)
    assert not any(line.startswith("Computed anew") for line in lines)
    changed = certificate.replace(b'"unread": ', b'"unread": 1')
    with pytest.raises(InputError, match="changed"):
        verify(changed, [here / "works.csv"])
    said = run("screen", here / "works.csv", "--judge", "ann")
    assert " ".join(said.split()).startswith("11 answers of ")
    assert "found 3 relevant, read 4 of 12" in said
    again = run("screen", here / "works.csv", "--judge", "ann", keys="1\nq\n")  # a reason of exclusion
    assert "answers of" not in again
    assert "read 5 of 12" in again
    assert verify(certificate, [here / "works.csv"]) == lines
    said = run("prefer", here / "teas.csv", "--judge", "ann")
    assert "5 answers of" in " ".join(said.split())
    assert "2 answers" in said
    assert files_of(here) == before
    with SqliteDatabase(here / "corank.db") as store:
        page = open_page(store, ScreenWorkspace)
        assert {judge: len(answers.relevant) for judge, answers in page.session.judges.items()} == {"ann": 5, "bob": 3}
        assert page.reasons == ["wrong dose"]
        assert len(open_page(store, PreferenceWorkspace).session.answers_of("ann").pairwise) == 2


def test_a_database_is_continued_by_the_terminal(here):
    (here / "corank.db").write_bytes(gzip.decompress((STORED / "corank.db.gz").read_bytes()))
    shutil.rmtree(here / "works.csv.answers")
    shutil.rmtree(here / "teas.csv.preferences")
    said = run("screen", here / "works.csv", keys="n\nq\n")
    assert "found 1 relevant, read 3 of 12" in said
    assert "1 answer" in run("prefer", here / "teas.csv")
    with SqliteDatabase(here / "corank.db") as store:
        assert sorted(one.kind for one in store.projects()) == ["compare", "screen"]
        assert sorted(one.settings["file"] for one in store.projects()) == ["teas.csv", "works.csv"]


def test_terminal_and_page_share_answers_and_holds(here):
    shutil.rmtree(here / "works.csv.answers")
    works, seen = here / "works.csv", set()
    for turn in range(6):
        if turn % 2:
            run("screen", works, "--known", "w0", keys="n\nq\n")
        else:
            run("screen", works, "--known", "w0", "--share", "--judge", "bob", keys="r\nq\n")
        with SqliteDatabase(here / "corank.db") as store:
            page = open_page(store, ScreenWorkspace)
            item = page.question("me")["item"]
            answered = [one.item for one in store.answers(page.project.id) if one.action in ("relevant", "not")]
            assert item not in answered
            page.save("me", {"item": item, "action": "not", "client_id": f"page-{turn}"})
            assert item not in seen
            seen |= {item, *answered}
    out = here / "log.jsonl"
    assert "entries of bob, me" in run("screen", "export", works, "-o", out)
    run("screen", "export", works, "-o", here / "out.csv")
    assert len(read_records(here / "out.csv")) == 12
    # the exported log is all that a verifier needs besides the records
    run("screen", "certify", works, "--rule", "hypergeometric", "-o", here / "new.json")
    away = here / "away"
    away.mkdir()
    for path in (works, out):
        shutil.copy(path, away)
    assert "Computed anew" in run("screen", "verify", here / "new.json", away / "works.csv", "--answers", away)
