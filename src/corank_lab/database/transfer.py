"""Projects as files, and uploads that take long to read."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Sequence
from typing import Any, NamedTuple

from corank.data import ZIP_DAMAGE, current_budget, read_member, require_plausible_size
from corank.errors import InputError
from corank_lab.database.database import Database, Project
from corank_lab.database.entries import utc_now

FORMAT = 1
_FILE = re.compile(r"[^\\\x00-\x1f\x7f]{0,300}")
_NAME = "the saved project"


def export_project(store: Database, project: Project) -> bytes:
    """Return a project with its answers as a .zip file."""
    out = io.BytesIO()
    names = sorted(store.file_names(project.id))
    head = {
        "format": FORMAT, "kind": project.kind, "name": project.name, "settings": dict(project.settings),
        "payload": store.payload(project.id), "files": [],
    }  # fmt: skip
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, name in enumerate(names):
            kind, content = store.file(project.id, name) or ("", b"")
            head["files"].append({"name": name, "type": kind})
            archive.writestr(f"files/{number}", content)
        lines = [
            json.dumps(
                {
                    "judge": answer.judge,
                    "item": answer.item,
                    "client_id": answer.client_id,
                    "time": answer.time,
                    "entry": answer.entry,
                }
            )
            for answer in store.answers(project.id)
        ]
        archive.writestr("answers.jsonl", "".join(line + "\n" for line in lines))
        archive.writestr("project.json", json.dumps(head))
    return out.getvalue()


def import_project(store: Database, content: bytes, kinds: Any, upload: str | None = None) -> Project:
    """Add the project of a file that `export_project` made."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            require_plausible_size(_NAME, len(content), sum(member.file_size for member in archive.infolist()))
            head = json.loads(_read_json(archive, "project.json"))
            lines = _read_json(archive, "answers.jsonl").splitlines()
            answers = [json.loads(line) for line in lines]
            if head["format"] > FORMAT:
                raise InputError("the file is of a newer corank; install a newer version (pip install -U corank).")
            if head["kind"] not in kinds:
                raise InputError(f"the file holds a project of the kind {head['kind']!r:.40}, which is unknown here.")
            files = {
                str(item["name"]): (str(item["type"]), read_member(archive, f"files/{number}", _NAME))
                for number, item in enumerate(head["files"])
            }
            rows = [
                (
                    str(answer["judge"]),
                    str(answer["item"]),
                    dict(answer["entry"]),
                    str(answer["client_id"]),
                    str(answer["time"]),
                )
                for answer in answers
            ]
            name, settings, payload = str(head["name"]), dict(head["settings"]), head["payload"]
    except (*ZIP_DAMAGE, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("the file is not a project that corank saved; choose the .zip file of “Save files”.") from None
    for file in files:
        if not _FILE.fullmatch(file) or {"", ".", ".."} & set(file.split("/")):
            raise InputError(f"the project has a file {file!r:.80}, which corank does not name so; save it anew.")
    return store.add_project(head["kind"], name, settings, payload, files=files, answers=rows, upload=upload)


def _read_json(archive: zipfile.ZipFile, member: str) -> str:
    text = read_member(archive, member, _NAME).decode()
    current_budget().take_json(text, _NAME)
    return text


MAX_ATTEMPTS = 3
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


def add_import(store: Database, id: str, kind: str, name: str, files: Sequence[tuple[str, bytes]]) -> None:
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


def find_import(store: Database, id: str) -> Import | None:
    """Return an upload."""
    rows = store.read(f"SELECT {_COLUMNS} FROM imports WHERE id = ?", id)
    return Import(*rows[0]) if rows else None


def unfinished_imports(store: Database) -> list[Import]:
    """Return the uploads that have neither a project nor an error, the oldest first."""
    result = f"SELECT {_COLUMNS} FROM imports WHERE project IS NULL AND error = '' ORDER BY created, id"
    return [Import(*row) for row in store.read(result)]


def files_of_import(store: Database, id: str) -> list[tuple[str, bytes]]:
    """Return name and content of each file."""
    rows = store.read("SELECT name, content FROM import_files WHERE import = ? ORDER BY number", id)
    return [(str(name), bytes(content)) for name, content in rows]


def begin_import(store: Database, id: str) -> None:
    """Count an attempt."""
    store.write(("UPDATE imports SET attempts = attempts + 1, stage = 'wait', share = 0 WHERE id = ?", id))


def report_import(store: Database, id: str, stage: str, share: float) -> None:
    """Store how far an upload is."""
    store.write(("UPDATE imports SET stage = ?, share = ? WHERE id = ? AND project IS NULL", stage, share, id))


def fail_import(store: Database, id: str, error: str) -> None:
    """Store why an upload does not become a project, and forget its files."""
    store.write(
        ("UPDATE imports SET error = ? WHERE id = ? AND project IS NULL", error, id),
        ("DELETE FROM import_files WHERE import = ?", id),
    )


def decide(store: Database, id: str, kind: str, name: str, files: Sequence[tuple[str, bytes]]) -> None:
    """Store what an upload is for, with its files as corrected, so that it can be read."""
    store.write(
        ("UPDATE imports SET kind = ?, name = ? WHERE id = ? AND project IS NULL", kind, name, id),
        ("DELETE FROM import_files WHERE import = ?", id),
        *(
            ("INSERT INTO import_files (import, number, name, content) VALUES (?, ?, ?, ?)", id, number, file, content)
            for number, (file, content) in enumerate(files)
        ),
    )
