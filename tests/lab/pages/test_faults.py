"""What a page says when the database cannot be used, and `corank lab` itself."""

from __future__ import annotations

import sqlite3
import webbrowser

import httpx
import pytest
from typer.testing import CliRunner

from corank import cli
from corank_lab.cli.lab import has_browser
from corank_lab.database import backends
from corank_lab.database.backends import SqliteDatabase, open_database
from corank_lab.pages.app import create_app
from helpers.pages import PageClient, fields, new_project, words
from helpers.server import ServerProcess
from helpers.stores import address_of, postgres


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(backends, "BUSY_MS", 50)
    with SqliteDatabase(tmp_path / "corank.db") as opened:
        yield opened


@pytest.fixture
def owner(store):
    return PageClient(create_app(store), store.add_owner())


def test_a_locked_database_is_one_sentence_and_the_answer_can_be_sent_again(store, owner):
    path = new_project(owner)
    form = {**fields(owner.get(f"{path}/judge").text), "action": "left"}
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = owner.post(f"{path}/judge", form)
    assert answer.status_code == 503
    assert "is locked by another program; close that program, then try again. Answers that were saved" in words(
        answer.text
    )
    other.execute("ROLLBACK")
    other.close()
    assert owner.post(f"{path}/judge", form).status_code == 303
    assert len(store.answers(path[3:])) == 1


def test_a_full_disk_is_one_sentence(store, owner):
    path = new_project(owner)
    form = {**fields(owner.get(f"{path}/judge").text), "action": "left"}
    size = store._writer.run(lambda db: db.execute("PRAGMA page_count").fetchone()[0])
    store._writer.run(lambda db: db.execute(f"PRAGMA max_page_count = {size}").fetchone())
    form_of_settings = {
        "project_name": "x",
        "question": "q" * 9000,
        "guidelines": "g",
        "repeat": "1",
        "overlap": "1",
        "tol": "0",
    }
    answer = owner.post(f"{path}/settings", form_of_settings)
    assert answer.status_code == 503
    assert "the disk is full; free some space, then try again" in words(answer.text)
    assert owner.post(f"{path}/judge", form).status_code == 303


@pytest.mark.long
def test_a_database_server_that_is_away_is_one_sentence(tmp_path):
    address = address_of("postgresql", tmp_path)
    with open_database(address) as store:
        owner = PageClient(create_app(store), store.add_owner())
        path = new_project(owner)
        form = {**fields(owner.get(f"{path}/judge").text), "action": "left"}
        postgres().stop()
        try:
            answer = owner.post(f"{path}/judge", form)
            assert answer.status_code == 503
            assert "the PostgreSQL server cannot be reached" in words(answer.text)
        finally:
            postgres().start()
        assert owner.post(f"{path}/judge", form).status_code == 303
        assert len(store.answers(path[3:])) == 1


@pytest.mark.parametrize(
    ("words_", "message"),
    [
        (["--host", "0.0.0.0"], "name the server with --allow-host"),
        (["no such folder/reviews"], "no such folder/reviews is not a folder"),
        (["--database", "mysql://x/y"], "the database is mysql://"),
        (["--port", "99999"], "Invalid value for '--port'"),
    ],
)
def test_wrong_commands_are_one_sentence(words_, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(cli.app, ["lab", "--no-browser", *words_])
    assert said.exit_code != 0
    assert message in f"{said.output} {said.exception}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("found", "expected"),
    [(webbrowser.GenericBrowser("w3m"), False), (webbrowser.BackgroundBrowser("firefox"), True), (None, False)],
)
def test_a_browser_of_the_terminal_is_not_opened(found, expected, monkeypatch):
    def get():
        if found is None:
            raise webbrowser.Error
        return found

    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.setattr(webbrowser, "get", get)
    assert has_browser() is expected


@pytest.mark.long
def test_the_command_serves_stops_and_continues(tmp_path):
    server = ServerProcess(tmp_path)
    port = server.port
    with httpx.Client(base_url=server.base, headers={"sec-fetch-site": "same-origin"}) as client:
        assert client.get("/").status_code == 401
        assert client.get(server.link).status_code == 200
        assert client.get("/").status_code == 200
        files = [("files", ("a.csv", b"name\nx\ny\nz\n"))]
        path = client.post("/projects", data={"kind": "compare"}, files=files).headers["location"]
        with pytest.raises(RuntimeError, match="another server may use it"):
            ServerProcess(tmp_path, port=port)
        assert server.stop() == 143
        assert not any("Traceback" in line or "token=" in line for line in server.lines[1:])
        server = ServerProcess(tmp_path, port=port)
        assert client.get(f"{path}/judge").status_code == 200  # the cookie is still valid
        assert server.stop() == 143


@pytest.mark.long
def test_a_public_address_warns_about_encryption(tmp_path):
    server = ServerProcess(tmp_path, "--host", "0.0.0.0", "--allow-host", "judge.example.org")
    assert server.link.startswith("http://judge.example.org:")
    port = server.port
    answer = httpx.get(f"http://127.0.0.1:{port}/health", headers={"host": "judge.example.org"})
    assert answer.status_code == 200
    server.stop()
    assert any("put a server with TLS in front" in line for line in server.lines)


@pytest.mark.long
def test_newer_and_foreign_files_are_refused_at_the_start(tmp_path):
    with SqliteDatabase(tmp_path / "corank.db") as store:
        store.run(lambda db: db("UPDATE meta SET value = '99' WHERE key = 'version'"))
    with pytest.raises(RuntimeError, match="which a newer corank wrote"):
        ServerProcess(tmp_path)
    (tmp_path / "corank.db").write_bytes(b"something else" * 100)
    with pytest.raises(RuntimeError, match="is not a sound SQLite database"):
        ServerProcess(tmp_path)


def test_a_project_that_is_deleted_while_a_page_is_made_is_not_found(store, owner, monkeypatch):
    path = new_project(owner)

    def delete(self, id):
        monkeypatch.undo()
        self.delete_project(id)
        return self.payload(id)

    monkeypatch.setattr(SqliteDatabase, "payload", delete)
    assert owner.get(path).status_code == 404


def test_a_page_that_fails_while_its_project_exists_is_an_internal_error(store, owner, monkeypatch):
    path = new_project(owner)
    monkeypatch.setattr(SqliteDatabase, "payload", lambda *_: 1 / 0)
    assert owner.get(path).status_code == 500
