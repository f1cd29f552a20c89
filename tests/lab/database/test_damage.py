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
from corank_lab.api.log import TABLES, EventLog, NewEvent
from corank_lab.database.backends import SqliteDatabase, open_database
from corank_lab.database.connections import LostError
from corank_lab.database.transfer import recover
from corank_lab.pages.app import create_app
from faults.flip import flip_many
from helpers.api import running
from helpers.pages import PageClient, fields, new_project, words


def answered(path, n=30):
    """A database with a project and its answers; returns the id of the project."""
    with SqliteDatabase(path) as store:
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
        open_database(path)
    for command in (["lab", str(tmp_path), "--no-browser"], ["serve", "models", str(tmp_path)]):
        result = CliRunner().invoke(cli.app, command)
        assert result.exit_code == 1
        assert "is damaged (answers: row 8)" in f"{result.output} {result.exception}"
    assert path.read_bytes() == before


def test_an_answer_that_is_damaged_while_the_file_is_open(tmp_path):
    with SqliteDatabase(tmp_path / "corank.db") as store:
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
    result = CliRunner().invoke(cli.app, ["lab", "recover", str(path), "--output", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[1:] == ["Lost: answer 8, of 'ann' on 'x7'."]
    assert "Copied 1 projects, 29 answers and 0 events" in result.output
    assert path.read_bytes() == before
    with open_database(tmp_path / "new" / "corank.db") as store:
        assert [one.number for one in store.answers(project)] == [n for n in range(1, 31) if n != 8]
        assert store.append(project, "bob", "x7", {"action": "right"})[0].number == 31
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["corank.db"]
    with pytest.raises(InputError, match="exists already"):
        recover(path, tmp_path / "new")


def test_recover_does_not_replace_a_folder_of_other_files(tmp_path):
    path, folder = tmp_path / "corank.db", tmp_path / "work"
    answered(path)
    recover(path, folder)
    recover(path, folder, overwrite=True)
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"thesis\.txt, which would be lost"):
        recover(path, folder, overwrite=True)
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_recover_reads_around_a_page_that_is_lost(tmp_path):
    path = tmp_path / "corank.db"
    project = answered(path, 2000)
    content = bytearray(path.read_bytes())
    first = content.index(b'left{"action": "left"}') // 4096 * 4096
    content[first : first + 4096] = bytes(4096)
    path.write_bytes(content)
    with pytest.raises(LostError, match="is damaged"):
        open_database(path)
    found = recover(path, tmp_path / "new")
    assert 1800 < found.n_rows["answers"] < 2000
    assert [one for one in found.lost if one.startswith("answers: rows from")]
    with open_database(tmp_path / "new" / "corank.db") as store:
        assert {one.entry["action"] for one in store.answers(project)} == {"left"}
        assert len(store.answers(project)) == found.n_rows["answers"]


@pytest.mark.parametrize("is_lost", [False, True])
def test_recovered_events_are_not_learnt_twice(is_lost, tmp_path):
    path = tmp_path / "corank.db"
    with SqliteDatabase(path) as store:
        EventLog(store).append([NewEvent("feedback", f"f{at}", 1, "{}") for at in range(5)]).result()
        store.write(("UPDATE learner SET number = 2, oldest = 3",))
    if is_lost:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP TRIGGER learner_changed")
            connection.execute("UPDATE learner SET number = 1")
            connection.commit()
    found = recover(path, tmp_path / "new", apps=[TABLES])
    assert (found.n_rows["events"], found.n_rows["learner"], found.lost) == (
        (5, 0, ["learner: row 1"]) if is_lost else (5, 1, [])
    )
    with SqliteDatabase(tmp_path / "new" / "corank.db") as store:
        assert EventLog(store).last_number() == 5
        assert store.read("SELECT number, oldest FROM learner") == ([(5, 6)] if is_lost else [(2, 3)])


def test_recover_refuses_what_holds_nothing(tmp_path):
    path = tmp_path / "corank.db"
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(InputError, match="nothing can be read of"):
        recover(path, tmp_path / "new")
    with pytest.raises(InputError, match="is not a file"):
        recover(tmp_path / "none.db", tmp_path / "new")
    assert [one.name for one in tmp_path.iterdir()] == ["corank.db"]


@pytest.mark.thin(5)
@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
@pytest.mark.parametrize("is_replaced", [False, True])
def test_an_answer_to_a_file_that_was_taken_away_is_not_acknowledged(end, is_replaced, tmp_path):
    path = tmp_path / "corank.db"
    taken = tmp_path / f"corank.db{end}"
    with SqliteDatabase(path) as store:
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
    with open_database(path) as store:
        assert len(store.answers(page.removeprefix("/p/"))) == 2


@pytest.mark.thin(4)
@pytest.mark.parametrize(("end", "share"), [("", 0.0), ("", 0.5), ("", "older copy"), ("-wal", 0.0), ("-wal", 0.5)])
def test_an_answer_to_a_file_that_was_shortened_is_not_acknowledged(end, share, tmp_path):
    path = tmp_path / "corank.db"
    with SqliteDatabase(path) as store:
        project = store.add_project("compare", "x", {}, {}).id
        for number in range(100):
            store.append(project, "ann", f"x{number}", {"action": "left", "note": 300 * "n"}, f"c{number}")
            if number in (50, 98):
                checkpoint(path)
            if number == 50:
                shutil.copy(path, tmp_path / "older")
        if share == "older copy":
            shutil.copyfile(tmp_path / "older", f"{path}{end}")
        else:
            os.truncate(f"{path}{end}", int(share * os.stat(f"{path}{end}").st_size))
        for number in range(100, 103):
            with pytest.raises(LostError, match=rf"corank.db{end} was shortened or overwritten while it was in use"):
                store.append(project, "ann", f"x{number}", {"action": "left"}, f"c{number}")


def test_a_file_that_another_process_compacts_stays_in_use(tmp_path):
    path = tmp_path / "corank.db"
    with SqliteDatabase(path) as store:
        project = store.add_project("compare", "x", {}, {}, files={"a": ("image/png", os.urandom(1_000_000))}).id
        checkpoint(path)
        before = path.stat().st_size
        store.write(("DELETE FROM files WHERE name = 'a'",))
        checkpoint(path, "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
        assert path.stat().st_size < before / 2
        for number in range(3):
            store.append(project, "ann", f"x{number}", {"action": "left"})
    with open_database(path) as again:
        assert len(again.answers(project)) == 3


def killed(tmp_path):
    """The files of a server with 30 answers as a kill leaves them, and the project."""
    path = tmp_path / "corank.db"
    with SqliteDatabase(path) as store:
        project = store.add_project("compare", "x", {}, {}).id
        for number in range(30):
            store.append(project, "ann", f"x{number}", {"action": "left"}, f"c{number}")
        (tmp_path / "killed").mkdir()
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", tmp_path / "killed" / f"corank.db{end}")
    return tmp_path / "killed" / "corank.db", project


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8, 0.95])
def test_a_damaged_log_of_a_killed_server_is_refused_and_kept(share, tmp_path):
    path, _ = killed(tmp_path)
    log = path.with_name("corank.db-wal")
    content = bytearray(log.read_bytes())
    content[int(share * len(content)) + 20] ^= 4
    log.write_bytes(content)
    for _ in range(2):
        with pytest.raises(LostError, match=r"is damaged \(corank.db-wal: (its header|frame \d+ of \d+) was changed"):
            open_database(path)
    assert log.read_bytes() == content
    if share >= 0.5:
        found = recover(path, tmp_path / "new")
        assert "corank.db-wal: frame" in found.lost[-1]
        assert 0 < found.n_rows["answers"] < 30


@pytest.mark.parametrize("cut", [1, 2000, 4096, None])
def test_an_incomplete_last_transaction_was_never_acknowledged(cut, tmp_path):
    path, project = killed(tmp_path)
    log = path.with_name("corank.db-wal")
    content = bytearray(log.read_bytes())
    content[-4000] ^= cut is None  # a part that did not reach the disk
    log.write_bytes(content[: None if cut is None else -cut])
    with open_database(path) as store:
        assert [one.client_id for one in store.answers(project)] == [f"c{number}" for number in range(29)]


def test_a_log_of_an_emptied_file_is_refused(tmp_path):
    path, _ = killed(tmp_path)
    os.truncate(path, 0)
    with pytest.raises(LostError, match="the file is empty, but its log is not"):
        open_database(path)
    assert path.with_name("corank.db-wal").stat().st_size


def test_a_log_that_was_begun_again_is_read(tmp_path):
    path = tmp_path / "corank.db"
    with SqliteDatabase(path) as store:
        project = store.add_project("compare", "x", {}, {}).id
        for number in range(300):
            store.append(project, "ann", f"x{number}", {"action": "left"}, f"c{number}")
            if number % 40 == 20:
                checkpoint(path)
            if number % 30 == 29:
                with open_database(path) as other:
                    assert len(other.answers(project)) == number + 1


def checkpoint(path, *statements):
    """Bring the log into the file, as another process does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements or ("PRAGMA wal_checkpoint",):
            connection.execute(statement).fetchall()


def test_answers_in_a_deleted_log_come_into_the_file(tmp_path):
    path = tmp_path / "corank.db"
    store = SqliteDatabase(path)
    project = store.add_project("compare", "x", {}, {}).id
    store.append(project, "ann", "x", {"action": "left"}, "first")
    os.remove(f"{path}-wal")
    with pytest.raises(LostError, match=r"corank.db-wal was deleted or replaced"):
        store.append(project, "ann", "x", {"action": "left"}, "second")
    shutil.copy(path, tmp_path / "killed.db")  # as a kill would leave it
    store.close()
    for name in ("killed.db", "corank.db"):
        with open_database(tmp_path / name) as again:
            assert [one.client_id for one in again.answers(project)] == ["first"]


def test_a_service_whose_file_was_deleted_acknowledges_nothing(tmp_path):
    with SqliteDatabase(tmp_path / "corank.db") as store, running(store) as client:
        os.remove(store.path)
        answer = client.post("/feedback", {"events": [{"id": "f", "impression": "l", "item": "a"}]})
        assert answer.status_code == 503
        assert "was deleted or replaced while it was in use" in answer.text
