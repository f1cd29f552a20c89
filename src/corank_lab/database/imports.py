"""
Uploads that take long to read, in the store: their files, how far they are, and what became of them.

An upload is stored before it is acknowledged. It ends with a project, which appears in one transaction
(`AnswerStore.add_project`), or with one sentence that says why there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from corank_lab.database.store import AnswerStore
from corank_lab.database.times import utc_now

MOST_ATTEMPTS = 3
"""Number of times that reading begins, such as after the server was killed."""


class Import(NamedTuple):
    """An upload."""

    id: str  # text for addresses
    kind: str  # kind of work, or "project" for a saved project
    name: str  # of the project; empty for the default
    stage: str  # what is being done
    share: float  # done so far, from 0 to 1
    attempts: int  # number of times that reading began
    project: str | None  # id of the project, as soon as it is there
    error: str  # why there will be none


_COLUMNS = "id, kind, name, stage, share, attempts, project, error"


def add_import(store: AnswerStore, id: str, kind: str, name: str, files: Sequence[tuple[str, bytes]]) -> None:
    """Store an upload; one that is stored already is left as it is."""
    if find_import(store, id) is not None:
        return
    now = utc_now()
    store.write(
        (
            "INSERT INTO imports (id, kind, name, created, stage, share, attempts, project, error) "
            "VALUES (?, ?, ?, ?, 'wait', 0, 0, NULL, '') ON CONFLICT DO NOTHING",
            id, kind, name, now,
        ),
        *(
            (
                "INSERT INTO import_files (import, number, name, content) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                id, number, file, content,
            )
            for number, (file, content) in enumerate(files)
        ),
    )  # fmt: skip


def find_import(store: AnswerStore, id: str) -> Import | None:
    """Return an upload."""
    rows = store.read(f"SELECT {_COLUMNS} FROM imports WHERE id = ?", id)
    return Import(*rows[0]) if rows else None


def unfinished_imports(store: AnswerStore) -> list[Import]:
    """Return the uploads that have neither a project nor an error, the oldest first."""
    found = f"SELECT {_COLUMNS} FROM imports WHERE project IS NULL AND error = '' ORDER BY created, id"
    return [Import(*row) for row in store.read(found)]


def files_of_import(store: AnswerStore, id: str) -> list[tuple[str, bytes]]:
    """Return name and content of each file."""
    rows = store.read("SELECT name, content FROM import_files WHERE import = ? ORDER BY number", id)
    return [(str(name), bytes(content)) for name, content in rows]


def begin_import(store: AnswerStore, id: str) -> None:
    """Count an attempt."""
    store.write(("UPDATE imports SET attempts = attempts + 1, stage = 'wait', share = 0 WHERE id = ?", id))


def report_import(store: AnswerStore, id: str, stage: str, share: float) -> None:
    """Store how far an upload is."""
    store.write(("UPDATE imports SET stage = ?, share = ? WHERE id = ? AND project IS NULL", stage, share, id))


def fail_import(store: AnswerStore, id: str, error: str) -> None:
    """Store why an upload does not become a project, and forget its files."""
    store.write(
        ("UPDATE imports SET error = ? WHERE id = ? AND project IS NULL", error, id),
        ("DELETE FROM import_files WHERE import = ?", id),
    )
