"""Stores of answers: the same suite on both databases."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
import threading
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from corank.data.io.items import Items
from corank.errors import InputError
from corank_lab.api.log import TABLES, EventLog, Keys, NewEvent
from corank_lab.database import backends, schema
from corank_lab.database import database as stores
from corank_lab.database.backends import SqliteDatabase, open_database
from corank_lab.database.connections import DatabaseError
from corank_lab.database.database import ClaimableItem
from corank_lab.database.schema import AppTables, add_function, check_database, checked_tables
from corank_lab.preferences import PreferenceJournal, PreferenceSession
from helpers.stores import address_of, open_new, postgres

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(params=DATABASES)
def store(request, tmp_path):
    with open_new(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def project(store):
    return store.add_project("compare", "Teas", {"repeat": 0.1}, {"names": ["a", "b"]}).id


def test_projects_keep_settings_and_payload(store):
    made = store.add_project("grade", "O'Brien \u202e -- ; DROP", {"scale": [0, 1]}, {"texts": ["\x00😀é"]})
    assert store.project(made.id) == made
    assert store.payload(made.id) == {"texts": ["\x00😀é"]}
    store.change_project(made.id, name="new", settings={"scale": [0]}, is_archived=True)
    changed = store.project(made.id)
    assert (changed.name, changed.settings, changed.is_archived) == ("new", {"scale": [0]}, True)
    assert store.project("none") is None
    assert [one.id for one in store.projects()] == [made.id]


@pytest.mark.parametrize("n", [0, 1, stores.MAX_PIECE, stores.MAX_PIECE + 1, 3 * stores.MAX_PIECE])
def test_what_is_packed_in_pieces_is_the_same_json(n):
    rows = [["é\ud800", None, float("inf"), {"a": [1, 2]}] for _ in range(n)]
    for payload in ({"rows": rows, "empty": {}, "é": {"more": rows}}, rows, {1: "a number as key"}, [], "text", None):
        assert zlib.decompress(stores.pack(payload)).decode() == json.dumps(payload)


def test_files_are_replaced_and_the_payload_is_not_one_of_them(store, project):
    store.add_files(project, {"a.png": ("image/png", b"1"), "b.png": ("image/png", b"2")})
    store.add_files(project, {"a.png": ("image/gif", b"3")})
    assert store.file(project, "a.png") == ("image/gif", b"3")
    assert store.file(project, "") is None
    assert store.file_names(project) == {"a.png", "b.png"}


def test_tokens_are_not_stored_and_the_right_one_opens(store, project, tmp_path):
    token = store.add_judge(project, "ann")
    judge = store.judge_of(token)
    assert (judge.name, judge.project, judge.is_owner) == ("ann", project, False)
    id, _, secret = token.partition(".")
    for wrong in (
        "",
        ".",
        id,
        f"{id}.",
        f"{id}.{secret}x",
        f"{id}.{secret[:-1]}",
        f"x.{secret}",
        "\ud800.\ud800",
        "\x00.x",
    ):
        assert store.judge_of(wrong) is None
    assert secret not in json.dumps([list(map(str, row)) for row in store.read("SELECT * FROM judges")])


def test_a_new_link_and_a_revoked_one(store, project):
    old = store.add_judge(project, "ann")
    judge = store.judge_of(old).id
    new = store.renew_token(judge)
    assert store.judge_of(old) is None
    assert store.judge_of(new).name == "ann"
    store.revoke(judge)
    assert store.judge_of(new) is None
    assert store.judges(project)[0][1] is False
    with pytest.raises(InputError, match="'ann' is a judge of this project already"):
        store.add_judge(project, "ann")


def test_the_last_ten_tokens_of_the_owner_are_valid(store, monkeypatch):
    times = iter(f"2030-01-01T00:00:{second:02}" for second in range(60))
    monkeypatch.setattr(stores, "utc_now", lambda: next(times))
    tokens = [store.add_owner() for _ in range(12)]
    assert [store.judge_of(token) is not None for token in tokens] == [False] * 2 + [True] * 10


def test_links_of_the_owner_that_were_opened_survive_many_starts_and_a_clock_that_goes_back(store, monkeypatch):
    times = iter(f"2030-01-01T00:00:{second:02}" for second in reversed(range(60)))
    monkeypatch.setattr(stores, "utc_now", lambda: next(times))
    opened = store.add_owner()
    store.mark_opened(store.judge_of(opened).id)
    for _ in range(12):
        assert store.judge_of(store.add_owner()) is not None
    assert store.judge_of(opened) is not None


def test_a_note_keeps_the_hold(store, project):
    store.claim(project, "ann", [ClaimableItem("x")], 0)
    store.append(project, "ann", "x", {"action": "note"}, "n", keep_hold=True)
    assert store.held_by(project, "ann") == "x"
    assert store.claim(project, "bob", [ClaimableItem("x")], store.last_number(project)) is None


def test_an_answer_that_is_sent_twice_counts_once(store, project):
    entry = {"action": "left", "left": "a", "right": "b"}
    first, is_new = store.append(project, "ann", "a|b", entry, "c1")
    again, is_new_again = store.append(project, "ann", "a|b", {**entry, "action": "right"}, "c1")
    assert (is_new, is_new_again, again) == (True, False, first)
    store.append(project, "bob", "a|b", entry, "c1")  # another judge may use the same id
    assert [one.judge for one in store.answers(project)] == ["ann", "bob"]
    assert store.answers(project, after=first.number)[0].judge == "bob"
    assert store.answers(project, judge="ann") == [first]
    assert store.last_number(project) > first.number


def test_many_threads_commit_together_and_every_answer_is_there(store, project):
    seen = []

    def work(judge):
        for at in range(25):
            answer, _ = store.append(project, judge, "x", {"action": "left"}, f"{judge}{at}")
            seen.append(answer.number)

    threads = [threading.Thread(target=work, args=(f"j{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [one.number for one in store.answers(project)]
    assert len(set(seen)) == 200
    assert store._writer.n_commits < 200


def test_a_job_that_fails_does_not_harm_those_committed_with_it(store, project):
    barrier = threading.Barrier(9)
    errors = []

    def work(number):
        barrier.wait()
        try:
            store.append(project if number else "no such project", "ann", "x", {"action": "left"}, str(number))
        except DatabaseError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 1
    assert sorted(one.client_id for one in store.answers(project)) == list("12345678")


def test_nobody_gets_an_item_that_another_holds(store, project):
    items = [ClaimableItem("x"), ClaimableItem("y")]
    assert store.claim(project, "ann", items, 0) == "x"
    assert store.claim(project, "ann", items, 0) == "x"  # the own hold
    assert store.claim(project, "bob", items, 0) == "y"
    assert store.claim(project, "cat", items, 0) is None
    assert store.claim(project, "cat", [ClaimableItem("x", 2)], 0) == "x"
    assert store.held_by(project, "cat") == "x"
    store.append(project, "cat", "x", {"action": "left"})
    assert store.held_by(project, "cat") is None


def test_the_free_items_of_a_group_are_held_together(store, project):
    groups = [[ClaimableItem("a"), ClaimableItem("b", 2)], [ClaimableItem("c")]]
    assert store.claim_group(project, "ann", groups, 0) == ["a", "b"]
    assert store.claim_group(project, "bob", groups, 0) == ["b"]
    assert store.claim_group(project, "cat", groups, 0) == ["c"]
    assert store.claim_group(project, "dan", groups, 0) == []
    store.append(project, "ann", "a", {"action": "grade"})
    assert store.held_by(project, "ann") == "b"
    assert store.claim_group(project, "ann", groups[1:], 0) == []  # what was held stays
    assert store.held_by(project, "ann") == "b"
    assert store.claim_group(project, "ann", [[ClaimableItem("d")]], 0) == ["d"]
    assert store.claim_group(project, "dan", groups, store.last_number(project)) == ["a", "b"]


def test_an_answer_after_the_choice_of_candidates_takes_a_slot(store, project):
    store.claim(project, "ann", [ClaimableItem("x")], 0)
    store.append(project, "ann", "x", {"action": "left"})
    assert store.claim(project, "bob", [ClaimableItem("x"), ClaimableItem("y")], 0) == "y"
    assert store.claim(project, "bob", [ClaimableItem("x")], store.last_number(project)) == "x"


@pytest.mark.parametrize("hours", [1, -1])
def test_holds_end_and_a_clock_that_goes_back_does_not_extend_them(store, project, hours, monkeypatch):
    store.claim(project, "ann", [ClaimableItem("x")], 0)
    assert store.claim(project, "bob", [ClaimableItem("x")], 0) is None
    real = stores.datetime

    class Later(real):
        @classmethod
        def now(cls, tz=None):
            return real.fromtimestamp(real.now(tz).timestamp() + 3600 * hours, tz)

    monkeypatch.setattr(stores, "datetime", Later)
    assert store.claim(project, "bob", [ClaimableItem("x")], 0) == "x"


def test_sessions_of_the_library_work_on_an_open_store(store):
    items = Items(["tea", "coffee", "milk"])

    def journal():
        return PreferenceJournal(store, "ann")

    with journal() as first:
        session = PreferenceSession(items, journal=first, repeat=0.0)
        session.answer(session.next(), "left")
        asked = session.next()
        assert store.holds(first.id) == [(f"{min(asked[:2])}-{max(asked[:2])}", "ann")]
    assert store.holds(first.id) == []
    with journal() as second:
        again = PreferenceSession(items, journal=second, repeat=0.0)
        assert again.next() == asked
        assert again.progress().answered == 1
        store.append(second.id, "ann", "x", {"action": "nonsense"})
        with pytest.raises(InputError, match="action is 'nonsense', expected one of left"):
            second.refresh()


def test_a_database_from_before_0_2_is_refused_and_stays_as_it_is(tmp_path):
    with open_new("sqlite", tmp_path) as store:
        store.write(("UPDATE meta SET value = '4' WHERE key = 'version'",))
        address = store.address
    with pytest.raises(InputError, match="version 4"):
        open_database(address)


def test_a_stored_database_of_0_2_keeps_answers_events_and_keys(tmp_path):
    """The database itself created the tables of the service then."""
    path = tmp_path / "corank.db"
    with closing(sqlite3.connect(path)) as connection:
        add_function(connection)
        connection.executescript((Path(__file__).parent / "old" / "version5.sql").read_text())
    for _ in range(2):
        with open_database(path) as store:
            assert Path(f"{path}.version5").is_file()
            assert [(one.action, one.time) for one in store.answers("p")] == [("left", "2026-01-31T12:00:01.000+00:00")]
            assert [one.created[:19] for one in store.projects()] == ["2026-01-31T12:00:00"]
            log, keys = EventLog(store), Keys(store)
            assert [(one.kind, one.id) for one in log.after(0)][:3] == [
                ("impression", "l1"), ("user", "u1"), ("feedback", "c1"),
            ]  # fmt: skip
            keys.refresh()
            assert keys.find("k1.secret").scopes == ("rank", "feedback")
            new = log.append([NewEvent("feedback", secrets.token_hex(4), 1, "{}", "", "l1", "a")]).result()
            assert new[0] > 3
            versions = dict(store.read("SELECT key, value FROM meta WHERE key LIKE 'version%'"))
            assert versions == {"version": str(schema.VERSION), "version.api": "1"}
    with closing(sqlite3.connect(path)) as connection:  # new rows have checksums, in every table of the service
        add_function(connection)
        assert set(TABLES.tables) < set(checked_tables(connection.execute))
        assert connection.execute("SELECT COUNT(*) FROM events WHERE checksum = '0000000000000000'").fetchone() == (0,)
        check_database(connection)


@pytest.mark.parametrize("kind", DATABASES)
def test_only_an_app_that_is_installed_has_tables(kind, tmp_path):
    with open_new(kind, tmp_path) as store:
        with pytest.raises(DatabaseError):
            store.read("SELECT number FROM events")
        assert EventLog(store).last_number() == 0
        assert store.read("SELECT number, oldest FROM learner") == [(0, 1)]
        newer = AppTables("api", TABLES.tables, ())
        store._installed.clear()
        with pytest.raises(InputError, match="tables of api have version 1"):
            store.install(newer)


def test_times_have_one_format(store, project):
    store.append(project, "ann", "x", {"action": "left"})
    store.add_judge(project, "bob")
    Keys(store).add("shop", ["rank"])
    times = [store.answers(project)[-1].time, store.projects()[0].created]
    times += [row[0] for row in store.read("SELECT created FROM judges UNION ALL SELECT created FROM api_keys")]
    assert len(times) >= 4
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time) for time in times), times


@pytest.mark.parametrize("kind", DATABASES)
def test_a_newer_database_is_refused_and_unchanged(kind, tmp_path):
    address = address_of(kind, tmp_path)
    with open_database(address) as store:
        store.run(lambda db: db("UPDATE meta SET value = '99' WHERE key = 'version'"))
    with pytest.raises(InputError, match="the database has version 99"):
        open_database(address)


def test_a_file_that_is_not_a_database(tmp_path):
    path = tmp_path / "corank.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(DatabaseError, match="is not a sound SQLite database"):
        SqliteDatabase(path)
    assert path.read_bytes() == b"not a database" * 100


def test_no_folder_and_unknown_addresses(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        SqliteDatabase(tmp_path / "no" / "corank.db")
    with pytest.raises(InputError, match="the database is mysql://"):
        open_database("mysql://host/x")


def test_a_locked_file_is_one_sentence_and_works_again(tmp_path, monkeypatch):

    monkeypatch.setattr(backends, "BUSY_MS", 100)
    with SqliteDatabase(tmp_path / "corank.db") as store:
        project = store.add_project("compare", "x", {}, {}).id
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseError, match="is locked by another program"):
            store.append(project, "ann", "x", {"action": "left"}, "c")
        other.execute("ROLLBACK")
        other.close()
        assert store.append(project, "ann", "x", {"action": "left"}, "c")[1]


def test_a_full_disk_is_one_sentence_and_nothing_acknowledged_is_lost(tmp_path):
    with SqliteDatabase(tmp_path / "corank.db") as store:
        project = store.add_project("compare", "x", {}, {}).id
        store.append(project, "ann", "x", {"action": "left"}, "first")
        size = store._writer.run(lambda db: db.execute("PRAGMA page_count").fetchone()[0])
        store._writer.run(lambda db: db.execute(f"PRAGMA max_page_count = {size}").fetchone())
        with pytest.raises(DatabaseError, match="the disk is full; free some space"):
            store.append(project, "ann", "x", {"action": "left", "text": "x" * 100_000}, "second")
        # the connection is opened afresh, without the limit
        store.append(project, "ann", "x", {"action": "left", "text": "x" * 100_000}, "second")
        assert [one.client_id for one in store.answers(project)] == ["first", "second"]


def test_a_postgresql_that_commits_lazily_is_made_to_wait_for_the_disk(tmp_path):
    address = address_of("postgresql", tmp_path)
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        name = connection.execute("SELECT current_database()").fetchone()[0]
        for setting, expected in (("off", "on"), ("remote_apply", "remote_apply")):
            connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = {setting}")
            with open_database(address) as store:
                assert store.run(lambda db: db("SHOW synchronous_commit").fetchone()) == (expected,)


@pytest.mark.long
def test_a_server_that_restarts(tmp_path):
    address = address_of("postgresql", tmp_path)
    server = postgres()
    with open_database(address) as store:
        project = store.add_project("compare", "x", {}, {}).id
        store.append(project, "ann", "x", {"action": "left"}, "first")
        server.stop()
        try:
            for _ in range(2):
                with pytest.raises(DatabaseError, match="the PostgreSQL server cannot be reached"):
                    store.append(project, "ann", "x", {"action": "left"}, "second")
            with pytest.raises(DatabaseError, match="the PostgreSQL server cannot be reached"):
                store.answers(project)
        finally:
            server.start()
        store.append(project, "ann", "x", {"action": "left"}, "second")
        assert [one.client_id for one in store.answers(project)] == ["first", "second"]


def test_a_new_file_is_readable_by_its_owner_only(tmp_path):
    path = tmp_path / "corank.db"
    with open_database(path) as store:
        store.add_project("compare", "a", {}, {})
        modes = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.iterdir()}
    assert modes["corank.db"] == 0o600
    assert set(modes.values()) == {0o600}
