"""Databases with changed bits, and databases that are deleted or replaced in use."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from typer.testing import CliRunner

from corank import cli
from corank.errors import InputError
from corank_lab.database.open_store import open_answer_store
from corank_lab.database.recover import recover
from corank_lab.database.sqlite_store import SqliteStore
from corank_lab.database.store import LostError
from corank_lab.pages.app import create_app
from faults.flip import flip_many
from some_pages import PageClient, fields, new_project, words
from some_service import running


def answered(path, n=30):
    """A database with a project and its answers; returns the id of the project."""
    with SqliteStore(path) as store:
        project = store.add_project("compare", "Teas", {}, {"names": ["a", "b"]}).id
        store.append_all(project, [("ann", f"x{n}", {"action": "left"}, f"c{n}", "") for n in range(n)])
    return project


def replace(path, old, new):
    content = path.read_bytes()
    assert content.count(old) >= 1
    path.write_bytes(content.replace(old, new))


@pytest.mark.parametrize("flips", [40, pytest.param(240, marks=pytest.mark.long)])
def test_flipped_bits_are_refused_or_change_nothing(flips, tmp_path):
    results = flip_many(flips, 3, tmp_path)
    counts = Counter(result for _, result, _, _ in results)
    assert set(counts) == {"refused", "same"}, [one for one in results if one[1] not in ("refused", "same")]
    assert any(n_recovered for _, _, n_recovered, _ in results)


def test_a_changed_answer_is_named_and_the_file_stays_as_it_is(tmp_path):
    path = tmp_path / "corank.db"
    answered(path)
    replace(path, b'x7left{"action": "left"}', b'x7left{"action": "lefs"}')
    before = path.read_bytes()
    message = (
        r"corank.db is damaged \(answers: row 8\); restore it from a copy, or copy what is sound .* recover .* FOLDER"
    )
    with pytest.raises(LostError, match=message):
        open_answer_store(path)
    for command in (["serve", str(tmp_path), "--no-browser"], ["service", "models", str(tmp_path)]):
        result = CliRunner().invoke(cli.app, command)
        assert result.exit_code == 1
        assert "is damaged (answers: row 8)" in f"{result.output} {result.exception}"
    assert path.read_bytes() == before


def test_an_answer_that_is_damaged_while_the_file_is_open(tmp_path):
    with SqliteStore(tmp_path / "corank.db") as store:
        owner = PageClient(create_app(store), store.add_owner())
        page = new_project(owner)
        project = page.removeprefix("/p/")
        store.append(project, "me", "x", {"action": "left", "note": "n"}, "c")
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("DROP TRIGGER answers_changed")
            other.execute("UPDATE answers SET entry = replace(entry, 'left', 'lext')")
        with pytest.raises(LostError, match=r"is damaged \(answer 1\)"):
            store.answers(project)
        answer = owner.get(page)
        assert answer.status_code == 503
        assert "is damaged (answer 1); restore it from a copy" in words(answer.text)
        assert "Answers that were saved before are safe" not in words(answer.text)


def test_recover_copies_sound_rows_and_names_the_others(tmp_path):
    path = tmp_path / "corank.db"
    project = answered(path)
    replace(path, b'x7left{"action": "left"}', b'x7left{"action": "lefs"}')
    before = path.read_bytes()
    result = CliRunner().invoke(cli.app, ["recover", str(path), "--output", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[1:] == ["Lost: answer 8, of 'ann' on 'x7'."]
    assert "Copied 1 projects, 29 answers and 0 events" in result.output
    assert path.read_bytes() == before
    with open_answer_store(tmp_path / "new" / "corank.db") as store:
        assert [one.number for one in store.answers(project)] == [n for n in range(1, 31) if n != 8]
        assert store.append(project, "bob", "x7", {"action": "right"})[0].number == 31
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["corank.db"]
    with pytest.raises(InputError, match="exists already"):
        recover(path, tmp_path / "new")


def test_recover_reads_around_a_page_that_is_lost(tmp_path):
    path = tmp_path / "corank.db"
    project = answered(path, 2000)
    content = bytearray(path.read_bytes())
    first = content.index(b'left{"action": "left"}') // 4096 * 4096
    content[first : first + 4096] = bytes(4096)
    path.write_bytes(content)
    with pytest.raises(LostError, match="is damaged"):
        open_answer_store(path)
    found = recover(path, tmp_path / "new")
    assert 1800 < found.n_rows["answers"] < 2000
    assert [one for one in found.lost if one.startswith("answers: rows from")]
    with open_answer_store(tmp_path / "new" / "corank.db") as store:
        assert {one.entry["action"] for one in store.answers(project)} == {"left"}
        assert len(store.answers(project)) == found.n_rows["answers"]


def test_recover_refuses_what_holds_nothing(tmp_path):
    path = tmp_path / "corank.db"
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(InputError, match=r"nothing can be read of .*; restore it from a copy"):
        recover(path, tmp_path / "new")
    with pytest.raises(InputError, match="is not a file"):
        recover(tmp_path / "none.db", tmp_path / "new")
    assert [one.name for one in tmp_path.iterdir()] == ["corank.db"]


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
@pytest.mark.parametrize("is_replaced", [False, True])
def test_an_answer_to_a_file_that_was_taken_away_is_not_acknowledged(end, is_replaced, tmp_path):
    path = tmp_path / "corank.db"
    taken = tmp_path / f"corank.db{end}"
    with SqliteStore(path) as store:
        owner = PageClient(create_app(store), store.add_owner())
        page = new_project(owner)
        form = {**fields(owner.get(f"{page}/judge").text), "action": "left"}
        assert owner.post(f"{page}/judge", form).status_code == 303
        form = {**fields(owner.get(f"{page}/judge").text), "action": "left"}
        kept = tmp_path / "kept"
        os.rename(taken, kept)
        if is_replaced:
            shutil.copy(kept, taken)
        for _ in range(2):
            answer = owner.post(f"{page}/judge", form)
            assert answer.status_code == 503
            assert f"corank.db{end} was deleted or replaced while it was in use, so nothing is saved" in words(
                answer.text
            )
        assert is_replaced or not taken.exists()
        os.replace(kept, taken)  # the same file again
        assert owner.post(f"{page}/judge", form).status_code == 303
    with open_answer_store(path) as store:
        assert len(store.answers(page.removeprefix("/p/"))) == 2


def test_answers_in_a_deleted_log_come_into_the_file(tmp_path):
    path = tmp_path / "corank.db"
    store = SqliteStore(path)
    project = store.add_project("compare", "x", {}, {}).id
    store.append(project, "ann", "x", {"action": "left"}, "first")
    os.remove(f"{path}-wal")
    with pytest.raises(LostError, match=r"corank.db-wal was deleted or replaced"):
        store.append(project, "ann", "x", {"action": "left"}, "second")
    shutil.copy(path, tmp_path / "killed.db")  # as a kill would leave it
    store.close()
    for name in ("killed.db", "corank.db"):
        with open_answer_store(tmp_path / name) as again:
            assert [one.client_id for one in again.answers(project)] == ["first"]


def test_a_service_whose_file_was_deleted_acknowledges_nothing(tmp_path):
    with SqliteStore(tmp_path / "corank.db") as store, running(store) as client:
        os.remove(store.path)
        answer = client.post("/feedback", {"events": [{"id": "f", "impression": "l", "item": "a"}]})
        assert answer.status_code == 503
        assert "was deleted or replaced while it was in use" in answer.text
