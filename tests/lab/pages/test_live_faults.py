"""Faults of disk, database and clock, through the real server: what the page shows, and that nothing is lost."""

from __future__ import annotations

import ctypes
import os
import resource
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress

import httpx
import pytest

from corank_lab.database.backends import open_database
from corank_lab.database.schema import add_function
from faults.kill_server import form_of
from helpers.pages import words
from helpers.postgres import PostgresServer
from helpers.reviews import bees
from helpers.server import ServerProcess

pytestmark = pytest.mark.long
SAFE = "Answers that were saved before are safe."
CLOCK = """
import sys
from pathlib import Path
from corank_lab.database import database, schema
real = database.datetime
class Shifted(real):
    @classmethod
    def now(cls, tz=None):
        return real.fromtimestamp(real.now(tz).timestamp() + float(Path(sys.argv[1]).read_text()), tz)
database.datetime = schema.datetime = Shifted
from corank.cli import app
app(sys.argv[2:])
"""
"""Runs a command whose clock is shifted by the seconds that a file holds."""


class Reviewer(httpx.Client):
    """The owner of a screening, or a judge of it; without the script of the page."""

    def __init__(self, server, link=None, path=""):
        super().__init__(base_url=server.base, headers={"sec-fetch-site": "same-origin"}, timeout=120)
        self.get(link or server.link)
        self.path = path

    def import_bees(self, n=20):
        answer = self.post("/projects", data={"kind": "screen"}, files=[("files", ("b.ris", bees(n).encode()))])
        self.path = answer.headers["location"].removesuffix("/import")

    def question(self):
        page = self.get(f"{self.path}/judge")
        assert page.status_code == 200, words(page.text)
        return form_of(page.text, "/judge")

    def answer(self, form, action="not"):
        return self.post(f"{self.path}/judge", data={**form, "action": action})


def stored(address, path):
    with open_database(address) as store:
        return store.answers(path.removeprefix("/p/"))


def drop_rights():
    """Let root obey permissions: in the child, two capabilities are dropped before the program starts."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


@pytest.fixture
def serve():
    """Starts servers, which end with the test."""
    started = []

    def start(*words, **options):
        started.append(ServerProcess(*words, **options))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no file system can be mounted here ({made.stderr.strip()})")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk(small_disk, serve):
    server = serve(small_disk)
    with closing(Reviewer(server)) as owner:
        owner.import_bees()
        owner.answer(owner.question(), "relevant")
        form = owner.question()
        ballast = small_disk / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:  # until no space is left
            while True:
                file.write(bytes(4096))
        refused = [owner.answer({**form, "note": "x" * 9000}) for _ in range(3)]
        pages = [words(one.text) for one in refused if one.status_code == 503]
        assert pages  # the first may fit into the log that is there
        for page in pages:
            assert f"cannot be written because the disk is full; free some space, then try again. {SAFE}" in page
        assert owner.get(f"{owner.path}/history").status_code == 200
        big = [("files", ("b.ris", bees(2000).encode()))]
        assert owner.post("/projects", data={"kind": "screen"}, files=big).status_code == 503
        ballast.unlink()
        assert owner.answer(form).status_code == 303
        assert len(owner.get("/").text.split('class="name"')) == 2  # no half project
    server.kill()
    assert [one.action for one in stored(small_disk / "corank.db", owner.path) if one.action != "note"] == [
        "relevant", "not",
    ]  # fmt: skip


def test_a_disk_that_refuses_writes(tmp_path, serve):
    server = serve(tmp_path)
    with closing(Reviewer(server)) as owner:
        owner.import_bees()
        form = owner.question()
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, limits[1]))
        refused = owner.answer(form)
        assert refused.status_code == 503
        assert f"cannot be written, as on a full or failing disk; free some space, then try again. {SAFE}" in words(
            refused.text
        )
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
        assert owner.answer(form).status_code == 303
    server.kill()
    assert [one.action for one in stored(tmp_path / "corank.db", owner.path)] == ["not"]


def test_a_folder_that_is_read_only(tmp_path, serve):
    folder = tmp_path / "reviews"
    folder.mkdir()
    server = serve(folder)
    server.stop()
    files = [folder, *folder.iterdir()]
    for path in files:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        with pytest.raises(RuntimeError, match=r"(cannot be written because the file|cannot be opened)") as failed:
            serve(folder, preexec_fn=drop_rights)
        assert "Traceback" not in str(failed.value)
    finally:
        for path in files:
            path.chmod(0o755)
    serve(folder).stop()


def test_a_database_that_another_process_locks(tmp_path, serve):
    server = serve(tmp_path)
    with closing(Reviewer(server)) as owner:
        owner.import_bees()
        form = owner.question()
        other = sqlite3.connect(tmp_path / "corank.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        refused = owner.answer(form)
        assert refused.status_code == 503
        assert f"is locked by another program; close that program, then try again. {SAFE}" in words(refused.text)
        assert owner.get(f"{owner.path}/history").status_code == 200  # reading goes on
        other.execute("ROLLBACK")
        other.close()
        assert [owner.answer(form).status_code for _ in range(2)] == [303, 303]
    server.kill()
    assert len(stored(tmp_path / "corank.db", owner.path)) == 1


def test_a_clock_that_goes_back(tmp_path, serve):
    shift = tmp_path / "shift"
    shift.write_text("0")
    server = serve(tmp_path, program=[sys.executable, "-c", CLOCK, str(shift)])
    with closing(Reviewer(server)) as owner:
        owner.import_bees()
        with open_database(tmp_path / "corank.db") as store:
            token = store.add_judge(owner.path.removeprefix("/p/"), "ann")
        forms = []
        with closing(Reviewer(server, f"/enter?token={token}", owner.path)) as ann:
            for hours in (0, -2, 1, -30):
                shift.write_text(str(3600 * hours))
                form, hers = owner.question(), ann.question()
                assert form["item"] != hers["item"]
                assert owner.question() == form  # the hold stands
                assert owner.answer(form).status_code == ann.answer(hers).status_code == 303
                forms.append(form["item"])
        shown = owner.get(f"{owner.path}/history")
        assert shown.status_code == owner.get(owner.path).status_code == 200
    server.kill()
    mine = [one for one in stored(tmp_path / "corank.db", owner.path) if one.judge == "me"]
    assert [one.item for one in mine] == forms  # the order of the answers, not of the clock
    assert [one.time for one in mine] != sorted(one.time for one in mine)


def test_a_postgresql_server_that_restarts_under_load(tmp_path, serve):
    pytest.importorskip("psycopg")
    database = PostgresServer()
    if database.why_not:
        pytest.skip(database.why_not)
    try:
        address = database.new_database("restarted")
        server = serve(tmp_path, "--database", address)
        sentences, sent, is_over = set(), [], threading.Event()
        with closing(Reviewer(server)) as owner:
            owner.import_bees(400)

            def work():
                while not is_over.is_set():
                    page = owner.get(f"{owner.path}/judge")
                    form = form_of(page.text, "/judge") if page.status_code == 200 else {}
                    while form and (page := owner.answer(form)).status_code == 503:  # as the script does
                        sentences.add(words(page.text))
                    if page.status_code == 503:
                        sentences.add(words(page.text))
                    if form:
                        sent.append(form["client_id"])

            judge = threading.Thread(target=work)
            judge.start()
            for mode in ("fast", "immediate", "immediate"):
                before = len(sent)
                while len(sent) < before + 3 and judge.is_alive():
                    is_over.wait(0.05)
                database.stop(mode)
                is_over.wait(0.3)
                database.start()
            before = len(sent)
            while len(sent) < before + 3 and judge.is_alive():
                is_over.wait(0.05)
            is_over.set()
            judge.join()
        server.kill()
        assert [one.client_id for one in stored(address, owner.path)] == sent
        assert sentences
        for one in sentences:
            assert "the PostgreSQL server cannot be reached" in one
            assert SAFE in one
    finally:
        database.remove()


def test_a_newer_database_while_the_server_runs(tmp_path, serve):
    server = serve(tmp_path)
    with closing(Reviewer(server)) as owner:
        owner.import_bees()
        server.stop()
        connection = sqlite3.connect(tmp_path / "corank.db")
        add_function(connection)
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
        connection.commit()
        connection.close()
        with pytest.raises(RuntimeError, match="which a newer corank wrote"):
            serve(tmp_path)
        assert os.listdir(tmp_path) == ["corank.db"]
