"""Large uploads: read in the background, with a page that shows the progress, whole or not at all."""

from __future__ import annotations

import gzip
import io
import json
import os
import sqlite3
import time
import zipfile

import httpx
import pytest

from corank_lab.pages import imports
from corank_lab.pages.app import KINDS, create_app
from corank_lab.pages.imports import (
    MAX_ATTEMPTS,
    NewUpload,
    add_import,
    files_of_import,
    find_import,
    read_import,
    unfinished_imports,
)
from corank_lab.pages.uploads import UploadedFile
from helpers.pages import TEAS, PageClient, words
from helpers.reviews import bees, with_duplicate
from helpers.server import ServerProcess
from helpers.stores import open_new


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
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
    store.write(("UPDATE imports SET stage = 'duplicates', share = 0.42",))
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
    from corank_lab.database import database as stores

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
    add_import(store, NewUpload("x", "screen", "", [UploadedFile("bees.ris", bees(5).encode())]))
    for _ in range(MAX_ATTEMPTS):
        store.write(("UPDATE imports SET attempts = attempts + 1",))
    assert imports.Importer(store)._read("x")
    assert f"was begun {MAX_ATTEMPTS} times" in find_import(store, "x").error
    assert files_of_import(store, "x") == []


def zipped(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def saved_project(payload):
    head = {"format": 1, "kind": "compare", "name": "x", "settings": {}, "files": [], "payload": payload}
    return zipped(**{"project.json": json.dumps(head), "answers.jsonl": ""})


def rows_of_items(n):
    return b"name\n" + b"".join(b"%d\n" % row for row in range(n))


PACKED = {
    "archive": ("compare", "x.zip", lambda: zipped(**{"x.csv": rows_of_items(300_000)})),
    "nested": ("compare", "x.zip", lambda: zipped(**{"x.csv.gz": gzip.compress(rows_of_items(300_000))})),
    "compressed": ("screen", "x.ris.gz", lambda: gzip.compress(b"TY  - JOUR\nTI  - Tin\nER  -\n\n" * 60_000)),
    "saved project": ("project", "x.zip", lambda: saved_project([[]] * 200_000)),
    "items": ("compare", "x.jsonl", lambda: b"{}\n" * 200_000),
}


@pytest.mark.thin(3)
@pytest.mark.parametrize("case", PACKED)
def test_an_upload_is_large_by_its_unpacked_size(store, monkeypatch, case):
    """The server stops reading at one megabyte; the process for large uploads has a budget of its own."""
    monkeypatch.setattr(imports.Importer, "begin", lambda self, id: None)
    owner = PageClient(create_app(store), store.add_owner())
    kind, name, make = PACKED[case]
    content = make()
    assert len(content) < imports.LARGE
    address = upload(owner, (name, content), kind=kind).headers["location"]
    assert address.startswith("/imports/")
    monkeypatch.setattr(imports, "MAX_BYTES", 1_500_000)
    monkeypatch.setattr(imports, "MAX_VALUES", 150_000)
    read_import(store, KINDS, address.removeprefix("/imports/"))
    answer = owner.get(address)
    assert answer.status_code == 422
    assert "unpacks to more than" in words(answer.text)
    assert store.projects() == []


def test_archives_share_one_budget(store, monkeypatch):
    """Reading stops at the archive that exceeds the total."""
    from corank_lab.pages import uploads

    opened = []
    read = uploads.read_member
    monkeypatch.setattr(uploads, "read_member", lambda *given: opened.append(given[-1]) or read(*given))
    monkeypatch.setattr(imports, "MAX_BYTES", 1000)
    files = [UploadedFile(f"{k}.zip", zipped(**{"x.csv": b"0" * 400})) for k in range(20)]
    add_import(store, NewUpload("x", "compare", "", files))
    read_import(store, KINDS, "x")
    assert find_import(store, "x").error.startswith("2.zip unpacks to more than 1,000 bytes")
    assert opened == ["0.zip", "1.zip", "2.zip"]


def test_an_upload_that_takes_too_much_memory_is_one_sentence(store, small, monkeypatch):
    def fail(files):
        raise MemoryError

    monkeypatch.setattr(imports, "sort_upload", fail)
    add_import(store, NewUpload("x", "screen", "", [UploadedFile("bees.ris", bees(5).encode())]))
    read_import(store, KINDS, "x")
    assert "takes more than 4 GB of memory" in find_import(store, "x").error
    assert "CORANK_IMPORT_GB" in find_import(store, "x").error


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is limited on Linux")
def test_the_memory_of_the_process_that_reads_is_limited(tmp_path, monkeypatch):
    monkeypatch.setenv(imports.MEMORY_VARIABLE, "1")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    with open_new("sqlite", tmp_path) as store:
        owner = PageClient(create_app(store), store.add_owner())
        records = b"TY  - JOUR\nTI  - T\nER  -\n" * 2_300_000
        address = upload(owner, ("x.ris.gz", gzip.compress(records))).headers["location"]
        end = time.monotonic() + 300
        while (page := owner.get(address)).status_code == 200 and time.monotonic() < end:
            time.sleep(0.1)
        assert "takes more than 1 GB of memory" in words(page.text)


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
