"""Large uploads: read in the background, with a page that shows the progress, whole or not at all."""

from __future__ import annotations

import sqlite3
import time

import httpx
import pytest

from corank.judging.sessions.imports import (
    MOST_ATTEMPTS,
    add_import,
    begin_import,
    files_of_import,
    find_import,
    report_import,
    unfinished_imports,
)  # fmt: skip
from corank.server import imports
from corank.server.app import KINDS, create_app
from corank.server.imports import read_import
from some_pages import TEAS, PageClient, words
from some_reviews import bees, with_duplicate
from some_server import ServerProcess
from some_stores import open_new


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    with open_new(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def small(monkeypatch):
    """Every upload is large, and nobody reads it but the test."""
    monkeypatch.setattr(imports, "LARGE", 0)
    monkeypatch.setattr(imports.Importer, "begin", lambda self, id: None)


def upload(client, *files, kind="screen", **form):
    return client.post("/projects", {"kind": kind, **form}, [("files", one) for one in files])


def test_a_page_shows_the_progress_and_then_the_project(store, small):
    owner = PageClient(create_app(store), store.add_owner())
    address = upload(owner, ("bees.ris", with_duplicate(40).encode())).headers["location"]
    assert address.startswith("/imports/")
    id = address.removeprefix("/imports/")
    page = owner.get(address).text
    assert "Waiting to be read" in words(page)
    assert '<noscript><meta http-equiv="refresh"' in page
    assert store.projects() == []
    report_import(store, id, "duplicates", 0.42)
    page = owner.get(address).text
    assert '<progress max="100" value="42"' in page
    assert "Looking for duplicates · 42 %" in words(owner.get("/").text)
    read_import(store, KINDS, id)
    [project] = store.projects()
    assert project.name == "bees"
    assert owner.get(address).headers["location"] == f"/p/{project.id}/import"
    assert "bees.ris RIS 41" in words(owner.get(f"/p/{project.id}/import").text)
    assert unfinished_imports(store) == files_of_import(store, id) == []
    read_import(store, KINDS, id)  # as a second server might
    assert len(store.projects()) == 1


def test_what_cannot_be_read_is_one_sentence(store, small):
    owner = PageClient(create_app(store), store.add_owner())
    address = upload(owner, ("x.ris", b"\x00\x01")).headers["location"]
    read_import(store, KINDS, address.removeprefix("/imports/"))
    answer = owner.get(address)
    assert answer.status_code == 422
    assert "The files were not imported x.ris" in words(answer.text)
    assert store.projects() == unfinished_imports(store) == []


@pytest.mark.parametrize("is_large", [False, True])
def test_an_upload_that_is_sent_twice_makes_one_project(store, monkeypatch, is_large):
    owner = PageClient(create_app(store), store.add_owner())
    if is_large:
        monkeypatch.setattr(imports, "LARGE", 0)
        monkeypatch.setattr(imports.Importer, "begin", lambda self, id: None)
    form = {"kind": "compare", "client_id": "c"}
    first, again = (upload(owner, ("teas.csv", TEAS), **form).headers["location"] for _ in range(2))
    other = upload(owner, ("teas.csv", TEAS.replace(b"Assam", b"Ceylon")), **form).headers["location"]
    assert first == again != other
    assert len(store.projects()) + len(unfinished_imports(store)) == 2


def test_a_crash_while_a_project_is_saved_leaves_nothing(store, small, monkeypatch):
    owner = PageClient(create_app(store), store.add_owner())
    id = upload(owner, ("bees.ris", bees(5).encode())).headers["location"].removeprefix("/imports/")
    from corank.judging.sessions import store as stores

    def fail(*_):
        raise KeyError("killed here")

    monkeypatch.setattr(stores, "_append_rows", fail)
    with pytest.raises(KeyError):
        read_import(store, KINDS, id)
    assert store.projects() == []
    assert store.read("SELECT COUNT(*) FROM files") == [(0,)]
    monkeypatch.undo()
    read_import(store, KINDS, id)
    assert len(store.projects()) == 1


def test_reading_that_kills_the_server_ends(store, small):
    add_import(store, "x", "screen", "", [("bees.ris", bees(5).encode())])
    for _ in range(MOST_ATTEMPTS):
        begin_import(store, "x")
    assert imports.Importer(store)._read("x")
    assert f"was begun {MOST_ATTEMPTS} times" in find_import(store, "x").error
    assert files_of_import(store, "x") == []


@pytest.mark.long
@pytest.mark.parametrize("ends", ["not", "kill"])
def test_a_large_file_is_imported_by_the_server_even_if_it_is_killed(tmp_path, ends):
    server = ServerProcess(tmp_path)
    content = bees(4000).encode()
    assert len(content) > imports.LARGE
    with httpx.Client(base_url=server.base, headers={"sec-fetch-site": "same-origin"}, timeout=60) as client:
        client.get(server.link)
        answer = client.post("/projects", data={"kind": "screen"}, files=[("files", ("bees.ris", content))])
        address = answer.headers["location"]
        page = client.get(address)
        if ends == "kill":
            assert page.status_code == 200  # not finished
            server.kill()
            assert sqlite3.connect(tmp_path / "corank.db").execute("SELECT COUNT(*) FROM projects").fetchone() == (0,)
            server = ServerProcess(tmp_path, port=server.port)
        seen = set()
        end = time.monotonic() + 300
        while (page := client.get(address)).status_code == 200 and time.monotonic() < end:
            seen.add(words(page.text).split("%")[0])
            time.sleep(0.1)
        assert page.status_code == 303
        assert len(seen) > 1
        assert "bees.ris RIS 4000" in words(client.get(page.headers["location"]).text)
        assert len(sqlite3.connect(tmp_path / "corank.db").execute("SELECT id FROM projects").fetchall()) == 1
    server.stop()


@pytest.mark.long
def test_a_reader_that_is_killed_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(imports.sys, "executable", "/bin/false")
    with open_new("sqlite", tmp_path) as store:
        owner = PageClient(create_app(store), store.add_owner())
        monkeypatch.setattr(imports, "LARGE", 0)
        address = upload(owner, ("bees.ris", bees(5).encode())).headers["location"]
        end = time.monotonic() + 60
        while (page := owner.get(address)).status_code == 200 and time.monotonic() < end:
            time.sleep(0.05)
        assert "ended early (status 1)" in words(page.text)
