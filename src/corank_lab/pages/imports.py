"""
Uploads become projects: small ones at once, large ones in a process of their own while a page shows the progress.

The files of a large upload are stored before the browser gets an answer. After a restart, the server begins those again
that were not finished. The process ends with the server that started it, even if that is killed.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corank.data import Budget, spending
from corank.errors import InputError
from corank_lab.database.backends import open_database
from corank_lab.database.connections import DatabaseError
from corank_lab.database.database import Database, Project
from corank_lab.database.schema import utc_now
from corank_lab.database.transfer import import_project
from corank_lab.http import MEGABYTE
from corank_lab.pages.markup import one_line
from corank_lab.pages.uploads import ANY, SAVED, Report, UploadedFile, image_type, no_report, sort_upload

if TYPE_CHECKING:
    from corank_lab.pages.workspaces import Workspace

NO_FILE = "No file was sent; choose a file that is not empty."
LARGE = MEGABYTE
"""Size of the files, unpacked, from which an upload is read in the background; images of their own do not count."""
LARGE_VALUES = 100_000  # cells, or values of JSON, from which an upload is read in the background
MAX_BYTES = 200 * MEGABYTE  # largest total size of the files of a project, after unpacking
MAX_SAVED_BYTES = 1 << 30  # largest size of a saved project, after unpacking
MAX_VALUES = 20_000_000  # largest number of cells, and of values of JSON, in an upload
MAX_MEMORY_GB = 4.0
"""Memory of the process that reads an upload; the environment variable `MEMORY_VARIABLE` sets another limit."""
MEMORY_VARIABLE = "CORANK_IMPORT_GB"
REPORT_SECONDS = 0.5  # shortest time between two reports of the progress
RETRY_SECONDS = 5.0  # pause before an upload is read again because the database could not be used
AGAIN = 75  # status of a process that could not use the database
STAGES = {
    "wait": "Waiting to be read", "read": "Reading records", "duplicates": "Looking for duplicates",
    "save": "Saving the project",
}  # fmt: skip
"""What is done with an upload."""


MAX_ATTEMPTS = 3  # number of times that reading begins, such as after the server was killed


class Import(NamedTuple):
    """An upload."""

    id: str  # text for addresses
    kind: str  # kind of work or name of a task; `ANY` until the owner decides
    name: str  # of the project; empty for the default
    stage: str  # what is being done
    share: float  # done so far, from 0 to 1
    attempts: int  # number of times that reading began
    project: str | None  # id of the project, as soon as it is there
    error: str  # why there will be none


class NewUpload(NamedTuple):
    """Files of a browser that become a project."""

    id: str  # text for addresses
    kind: str  # kind of work or name of a task; `ANY` until the owner decides
    name: str  # of the project; empty for the default
    files: Sequence[UploadedFile]


_SELECT = f"SELECT {', '.join(Import._fields)} FROM imports"


def add_import(store: Database, upload: NewUpload) -> None:
    """Store an upload; one that is stored already is left as it is."""
    sql = (
        "INSERT INTO imports (id, kind, name, created, stage, share, attempts, project, error) "
        "VALUES (?, ?, ?, ?, 'wait', 0, 0, NULL, '') ON CONFLICT DO NOTHING"
    )
    if find_import(store, upload.id) is None:
        store.write((sql, *upload[:3], utc_now()), *_insert_files(upload))


def find_import(store: Database, id: str) -> Import | None:
    """Return an upload."""
    rows = store.read(f"{_SELECT} WHERE id = ?", id)
    return Import(*rows[0]) if rows else None


def unfinished_imports(store: Database) -> list[Import]:
    """Return the uploads that have neither a project nor an error, the oldest first."""
    return [Import(*row) for row in store.read(f"{_SELECT} WHERE project IS NULL AND error = '' ORDER BY created, id")]


def files_of_import(store: Database, id: str) -> list[UploadedFile]:
    """Return name and content of each file."""
    rows = store.read("SELECT name, content FROM import_files WHERE import = ? ORDER BY number", id)
    return [UploadedFile(str(name), bytes(content)) for name, content in rows]


def fail_import(store: Database, id: str, error: str) -> None:
    """Store why an upload does not become a project, and forget its files."""
    store.write(
        ("UPDATE imports SET error = ? WHERE id = ? AND project IS NULL", error, id),
        ("DELETE FROM import_files WHERE import = ?", id),
    )


def decide(store: Database, upload: NewUpload) -> None:
    """Store what an upload is for, with its files as corrected, so that it can be read."""
    store.write(
        ("UPDATE imports SET kind = ?, name = ? WHERE id = ? AND project IS NULL", upload.kind, upload.name, upload.id),
        ("DELETE FROM import_files WHERE import = ?", upload.id),
        *_insert_files(upload),
    )


def _insert_files(upload: NewUpload) -> Iterator[tuple[Any, ...]]:
    sql = "INSERT INTO import_files (import, number, name, content) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    return ((sql, upload.id, number, file.name, file.content) for number, file in enumerate(upload.files))


class Task(NamedTuple):
    """A task of the home page."""

    title: str
    help: str
    files: str  # which files it takes
    kind: str  # of the project
    settings: Mapping[str, Any] = {}  # of a new project, besides the defaults


TASKS = {
    "search": Task(
        "Tune search", "Grade the results of your queries, compare rankers, save the grades or the best model.",
        "A table with query and docid (.csv, .jsonl, .parquet), a book of Quepid (.json), or a TREC run with tables of "
        "texts", "grade",
    ),
    "screen": Task(
        "Screen records", "Find nearly all relevant records of a review while reading few of them.",
        "Records of any database: .ris, .nbib, .bib, .csv, .xlsx, .xml and others; several files are joined", "screen",
    ),
    "compare": Task(
        "Compare items", "Which of two is better? Every answer improves an order of all items.",
        "A table of items (.csv, .tsv, .jsonl, .parquet), with or without images; images; or votes", "compare",
    ),
    "together": Task(
        "Judge together", "Two judges grade every document: the pages measure their agreement and settle conflicts.",
        "The same files as for search; invite judges by links on the project’s page", "grade",
        {"judges": 2, "shared": 1.0},
    ),
    SAVED: Task("Open a saved project", "A .zip file of “Save files”, with all answers.", "", SAVED),
}  # fmt: skip
"""Tasks of the home page."""


def read_small(store: Database, kinds: Mapping[str, type[Workspace]], upload: NewUpload) -> Project | None:
    """Make a project of uploaded files, as `make_project` does; None if they are large once unpacked."""
    images = sum(len(file.content) for file in upload.files if image_type(file.content) is not None)
    if sum(len(file.content) for file in upload.files) - images >= LARGE and upload.kind in (*kinds, *TASKS, SAVED):
        return None
    budget = Budget(n_bytes=LARGE + images, cells=LARGE_VALUES, values=LARGE_VALUES)
    try:
        with spending(budget):
            return make_project(store, kinds, upload)
    except InputError:
        if budget.is_exceeded:
            return None
        raise


def make_project(
    store: Database, kinds: Mapping[str, type[Workspace]], upload: NewUpload, report: Report = no_report
) -> Project:
    """Make a project of uploaded files; raise `InputError` if they cannot be judged."""
    id, kind, name, files = upload
    if not files:
        raise InputError(NO_FILE)
    if kind == SAVED:
        _require_opening(files[0].content, kinds)
        return import_project(store, files[0].content, kinds, id)
    preset = TASKS[kind].settings if kind in TASKS else {}
    kind = TASKS[kind].kind if kind in TASKS else kind
    if kind not in kinds:
        raise InputError(f"the kind of work is {kind!r}; choose one of {', '.join((*TASKS, *kinds))}.")
    result = replace(sort_upload(files), report=report)
    created = kinds[kind].create(result)
    report("save", 0.9)
    settings = {setting.name: setting.default for setting in kinds[kind].settings}
    settings |= dict(preset) | dict(created.settings)
    first = (result.tables[0].name if result.tables else next(iter(result.images))).split(".")[0]
    rows = [(judge, item, entry, f"import-{i}", "") for i, (judge, item, entry) in enumerate(created.answers)]
    return store.add_project(
        kind, name or one_line(first, 100) or "Unnamed project", settings, created.payload,
        files={**result.images, **created.files}, answers=rows, upload=id,
    )  # fmt: skip


def _require_opening(content: bytes, kinds: Mapping[str, type[Workspace]]) -> None:
    """Open a saved project with all its pages in a database of its own; raise `InputError` if one of them fails."""
    with tempfile.TemporaryDirectory(prefix="corank-") as folder, open_database(Path(folder, "corank.db")) as store:
        project = import_project(store, content, kinds)
        try:
            kinds[project.kind](store, project).open_everything()
        except InputError as error:
            raise InputError(f"the project cannot be opened: {error}") from None
        except Exception as error:  # a forged or damaged file may fail anywhere
            raise InputError(
                f"the project cannot be opened ({type(error).__name__}); its file is damaged, so save it anew, or "
                "import its records."
            ) from None


class Importer:
    """Reads large uploads, one after another."""

    def __init__(self, store: Database) -> None:
        self._store = store
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._known: set[str] = set()
        self._lock = threading.Lock()
        for upload in unfinished_imports(store):
            if upload.kind != ANY:
                self.begin(upload.id)

    def begin(self, id: str) -> None:
        """Read an upload soon; nothing changes if it is being read."""
        with self._lock:
            if id in self._known:
                return
            self._known.add(id)
            if len(self._known) == 1:
                threading.Thread(target=self._work, name="corank-imports", daemon=True).start()
        self._waiting.put(id)

    def _work(self) -> None:
        while True:
            id = self._waiting.get()
            try:
                is_over = self._read(id)
            except (DatabaseError, RuntimeError):  # the database is away, or closed
                is_over = False
            if not is_over:
                time.sleep(RETRY_SECONDS)
                self._waiting.put(id)

    def _read(self, id: str) -> bool:
        """Read an upload; return whether it became a project, or never will."""
        result = find_import(self._store, id)
        if result is None or result.project is not None or result.error or result.kind == ANY:
            return True
        if result.attempts >= MAX_ATTEMPTS:
            fail_import(
                self._store, id,
                f"Reading the files was begun {result.attempts} times and never ended; send fewer or smaller files, "
                "and see the terminal of corank lab.",
            )  # fmt: skip
            return True
        begun = "UPDATE imports SET attempts = attempts + 1, stage = 'wait', share = 0 WHERE id = ?"
        self._store.write((begun, id))
        words = [sys.executable, "-m", "corank_lab.pages.imports"]
        # a session of its own: Ctrl-C on the terminal is for the server
        child = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
        assert child.stdin is not None
        # the address may hold a password, so it is not a word of the command; the process may have ended already
        with suppress(OSError):
            child.stdin.write(json.dumps([self._store.address, id]).encode() + b"\n")
            child.stdin.flush()
        status = child.wait()  # the input stays open until then
        with suppress(OSError):
            child.stdin.close()
        if status and status != AGAIN:
            fail_import(
                self._store, id,
                f"The process that read the files ended early (status {status}), probably because memory is short; "
                "send fewer or smaller files, or read the terminal of corank lab.",
            )  # fmt: skip
        return status != AGAIN


def read_import(store: Database, kinds: Mapping[str, type[Workspace]], id: str) -> None:
    """Make the project of a stored upload, or store why that cannot be done."""
    upload = find_import(store, id)
    if upload is None or upload.project is not None:
        return
    last = 0.0

    def report(stage: str, share: float) -> None:
        nonlocal last
        if time.monotonic() - last > REPORT_SECONDS:
            last = time.monotonic()
            with suppress(DatabaseError):
                sql = "UPDATE imports SET stage = ?, share = ? WHERE id = ? AND project IS NULL"
                store.write((sql, stage, share, id))

    report("read", 0.0)
    files = files_of_import(store, id)
    n_bytes = MAX_SAVED_BYTES if upload.kind == SAVED else MAX_BYTES
    failure = ""
    try:
        with spending(Budget(n_bytes=n_bytes, cells=MAX_VALUES, values=MAX_VALUES)):
            make_project(store, kinds, NewUpload(id, upload.kind, upload.name, files), report)
    except DatabaseError:
        raise
    except InputError as error:
        failure = str(error)
    except MemoryError:
        failure = (
            f"Reading the files takes more than {_memory_limit():g} GB of memory; send fewer or smaller files, or set "
            f"the environment variable {MEMORY_VARIABLE} to the number of gigabytes it may take."
        )
    if failure:  # stored when the memory is free again
        fail_import(store, id, failure)


def main() -> None:
    """Read the upload that a line of the input names: address of the database and id."""
    from corank_lab.pages.app import KINDS

    address, id = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_server, daemon=True).start()
    _limit_memory()
    try:
        with open_database(address) as store:
            read_import(store, KINDS, id)
    except DatabaseError as error:
        print(f"corank: {error}", file=sys.stderr)
        sys.exit(AGAIN)


def _memory_limit() -> float:
    """Return the memory of the process that reads an upload, in gigabytes."""
    wanted = os.environ.get(MEMORY_VARIABLE, "")
    try:
        return float(wanted) if 0 < float(wanted) < 1e6 else MAX_MEMORY_GB
    except ValueError:
        return MAX_MEMORY_GB


def _limit_memory() -> None:
    """Limit the memory that this process may map, where the platform can."""
    if sys.platform == "win32":
        return
    import resource

    limit = int(_memory_limit() * (1 << 30))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    with suppress(OSError, ValueError):  # macOS refuses it
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _end_with_server() -> None:
    sys.stdin.read()  # until the server closes its end, or is killed
    os._exit(1)


if __name__ == "__main__":
    main()
