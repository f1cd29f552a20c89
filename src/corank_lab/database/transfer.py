"""Projects as files, and what is sound of a damaged database."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from corank.data import ZIP_DAMAGE, atomic_folder, current_budget, read_member, require_plausible_size
from corank.errors import InputError, reason
from corank_lab.database.backends import SqliteDatabase
from corank_lab.database.connections import Statements
from corank_lab.database.database import Database, Project
from corank_lab.database.schema import TABLES, AppTables, add_function, columns_of, log_damage, readable

FORMAT = 1
_FILE = re.compile(r"[^\\\x00-\x1f\x7f]{0,300}")
_NAME = "the saved project"
_ANSWER = ("judge", "item", "entry", "client_id", "time")


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
        answers = store.answers(project.id)
        lines = [json.dumps({name: getattr(answer, name) for name in _ANSWER}) for answer in answers]
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
                (str(judge), str(item), dict(entry), str(client_id), str(time))
                for judge, item, entry, client_id, time in ([answer[name] for name in _ANSWER] for answer in answers)
            ]
            name, settings, payload = str(head["name"]), dict(head["settings"]), head["payload"]
            json.dumps([name, settings], ensure_ascii=False).encode()  # pages cannot show half a character
    except (*ZIP_DAMAGE, KeyError, TypeError, AttributeError, UnicodeEncodeError) as error:
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


class Recovered(NamedTuple):
    """What `recover` copied."""

    n_rows: Counter[str]  # number of rows of each table
    lost: list[str]  # a sentence part for each row that was not copied, or for the part of a table that cannot be read


def recover(path: Path, folder: Path, *, apps: Sequence[AppTables] = (), overwrite: bool = False) -> Recovered:
    """Copy all sound rows of a database, which is opened for reading only."""
    if not path.is_file():
        raise InputError(f"{path} is not a file; pass the damaged database, or its folder.")
    try:
        # immutable: SQLite adds no files beside it, but reads no write-ahead log either
        wal = Path(f"{path}-wal")
        how = "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"
        # the thread that writes also reads
        opened = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, check_same_thread=False)
        new = atomic_folder(folder, overwrite=overwrite, known=("corank.db",))
        with closing(opened) as source, new as scratch:
            source.execute("PRAGMA writable_schema = ON")  # skips damaged definitions; the file stays as it is
            add_function(source)
            source.text_factory = _text
            names = (*TABLES, *(table for app in apps for table in app.tables))
            tables = {table: columns_of(source.execute, table) for table in names}
            with SqliteDatabase(scratch / "corank.db") as store:
                for app in apps:
                    store.install(app)
                result = store.run(lambda db: _copy(source, tables, db, apps))
            if not result.n_rows:
                raise InputError(f"nothing can be read of {path}; restore it from a copy.")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"nothing can be read of {path} ({reason(error)}); restore it from a copy.") from None
    damage = log_damage(path)
    if damage:
        result.lost.append(damage)
    return result


def _copy(
    source: sqlite3.Connection, tables: dict[str, list[str]], db: Statements, apps: Sequence[AppTables]
) -> Recovered:
    n_rows: Counter[str] = Counter()
    lost = []
    for table, columns in tables.items():
        if not columns:  # a database of an older version
            continue
        marks = ", ".join("?" * len(columns))
        for number, is_whole, values in readable(source, table, columns):
            if values is None:
                lost.append(f"{table}: rows from {number} on, of which some cannot be read")
                continue
            try:
                if not is_whole:
                    raise ValueError
                if table == "meta" and values[0] != "database":  # of the format, not of the content
                    continue
                if not n_rows[table]:  # a new database has rows of its own
                    db(f"DELETE FROM {table}" + " WHERE key = 'database'" * (table == "meta"))
                db(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", *values)
                n_rows[table] += 1
            except (ValueError, sqlite3.IntegrityError):
                lost.append(_name(table, number, dict(zip(columns, values, strict=True))))
    for app in apps:
        app.after_recovery(db, n_rows)
    return Recovered(n_rows, lost)


def _name(table: str, number: int, values: dict[str, Any]) -> str:
    if table == "answers":
        return f"answer {number}, of {values['judge']!r:.60} on {values['item']!r:.60}"
    return f"{table}: row {number}"


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:  # no column of a sound row
        return None
