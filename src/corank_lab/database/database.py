"""
The database of sessions: projects, judges with hashed tokens, append-only answers and holds.

All statements are here; `SqliteDatabase` and `PostgresDatabase` open connections and translate errors. A client id
makes an answer unique for its judge, so that sending it again changes nothing.
"""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from corank import __version__
from corank.errors import InputError
from corank_lab.database.connections import Connections, Statements
from corank_lab.database.schema import hash_secret, is_secret, new_secret, utc_now

T = TypeVar("T")
AnswerRow = tuple[str, str, Mapping[str, Any], str, str]  # judge, item, entry, client id and time of an answer
HOLD_SECONDS = 900  # time after which a question that was not answered is free for other judges
OWNER_TOKENS = 10  # number of tokens of the owner that stay valid, opened or not: each start of the server makes one


ANY_NUMBER = 1_000_000  # places of an item that any number of judges may get at once


@dataclass(frozen=True)
class Project:
    """A project: what is judged, and how."""

    id: str  # random text for addresses
    kind: str  # "compare", "grade" or "screen"
    name: str  # title, chosen by the owner
    settings: Mapping[str, Any]  # options of the kind
    created: str  # time, UTC
    is_archived: bool = False  # whether it is hidden from judges


@dataclass(frozen=True)
class Judge:
    """A person with a link."""

    id: str  # random text, the first part of the token
    project: str | None  # id of the only project that the judge may see; None for the owner
    name: str  # name in the log of answers
    is_owner: bool = False  # whether the judge may see and change everything


class StoredAnswer(NamedTuple):
    """One answer."""

    number: int  # increases with every answer of the database
    judge: str  # name
    item: str  # key of what was judged
    action: str  # what the judge did
    entry: dict[str, Any]  # the keys and values of a line of a journal
    time: str  # UTC, ISO 8601
    client_id: str  # makes the answer unique for the judge


class ClaimableItem(NamedTuple):
    """An item that a judge may get next."""

    item: str  # key
    slots: int = 1  # number of judges who may hold it at once


class Database(Connections):
    """A database of projects, judges and answers. It may be used by many threads."""

    @property
    def database_id(self) -> str:
        return str(self.read("SELECT value FROM meta WHERE key = 'database'")[0][0])

    def add_project(
        self,
        kind: str,
        name: str,
        settings: Mapping[str, Any],
        payload: Any,
        *,
        files: Mapping[str, tuple[str, bytes]] | None = None,
        answers: Sequence[AnswerRow] = (),
        upload: str | None = None,
    ) -> Project:
        """Add a project in one transaction: it is whole or not there."""
        project = Project(secrets.token_urlsafe(9), kind, name, dict(settings), utc_now())
        packed = pack(payload)

        def job(db: Statements) -> str:
            if upload is not None:
                made = db("SELECT project FROM imports WHERE id = ? AND project IS NOT NULL", upload).fetchone()
                if made:
                    return str(made[0])
            values = (project.id, kind, name, json.dumps(project.settings), project.created)
            db(
                "INSERT INTO projects (id, kind, name, settings, created, is_archived) VALUES (?, ?, ?, ?, ?, 0)",
                *values,
            )
            _put_files(db, project.id, {"": ("payload", packed), **(files or {})})
            _append_rows(db, project.id, answers)
            if upload is not None:
                db("DELETE FROM import_files WHERE import = ?", upload)
                db("DELETE FROM imports WHERE id = ?", upload)
                db(
                    "INSERT INTO imports (id, kind, name, created, stage, share, attempts, project, error) "
                    "VALUES (?, ?, ?, ?, 'done', 1, 1, ?, '')",
                    upload, kind, name, project.created, project.id,
                )  # fmt: skip
            return project.id

        id = self.run(job)
        return project if id == project.id else self.project(id) or project

    def projects(self) -> list[Project]:
        columns = f"{_PROJECT}, {self.sound('projects')}"
        return [self._project(row) for row in self.read(f"SELECT {columns} FROM projects ORDER BY created DESC, id")]

    def project(self, id: str) -> Project | None:
        rows = self.read(f"SELECT {_PROJECT}, {self.sound('projects')} FROM projects WHERE id = ?", id)
        return self._project(rows[0]) if rows else None

    def payload(self, project: str) -> Any:
        return json.loads(zlib.decompress(self._files(project, "")[0][1]))

    def change_project(self, project: str, *, name: str, settings: Mapping[str, Any], is_archived: bool) -> None:
        text = json.dumps(dict(settings))
        self.run(
            lambda db: db(
                "UPDATE projects SET name = ?, settings = ?, is_archived = ? WHERE id = ?",
                name, text, int(is_archived), project,
            )
        )  # fmt: skip

    def change_payload(
        self, project: str, payload: Any, files: Mapping[str, tuple[str, bytes]], settings: Mapping[str, Any]
    ) -> None:
        """Replace what is judged in a project, its files and its settings; the answers stay."""
        packed, text = pack(payload), json.dumps(dict(settings))

        def job(db: Statements) -> None:
            db("DELETE FROM files WHERE project = ? AND name LIKE 'records/%'", project)  # images stay
            _put_files(db, project, {"": ("payload", packed), **files})
            db("UPDATE projects SET settings = ? WHERE id = ?", text, project)

        self.run(job)

    def delete_project(self, project: str) -> None:

        def job(db: Statements) -> None:
            db("UPDATE imports SET project = NULL, error = ? WHERE project = ?", "the project was deleted.", project)
            for table in ("answers", "holds", "judges", "files"):
                db(f"DELETE FROM {table} WHERE project = ?", project)
            db("DELETE FROM projects WHERE id = ?", project)

        self.run(job)

    def add_files(self, project: str, files: Mapping[str, tuple[str, bytes]]) -> None:
        self.run(lambda db: _put_files(db, project, files))

    def file(self, project: str, name: str) -> tuple[str, bytes] | None:
        result = self._files(project, name) if name else []
        return result[0] if result else None

    def file_names(self, project: str) -> set[str]:
        return {row[0] for row in self.read("SELECT name FROM files WHERE project = ? AND name <> ''", project)}

    def _files(self, project: str, name: str) -> list[tuple[str, bytes]]:
        columns = f"type, content, {self.sound('files')}"
        rows = self.read(f"SELECT {columns} FROM files WHERE project = ? AND name = ?", project, name)
        if rows and not rows[0][2]:
            raise self.damaged(f"file {name!r} of project {project}" if name else f"the texts of project {project}")
        return [(row[0], bytes(row[1])) for row in rows]

    def _project(self, row: Sequence[Any]) -> Project:
        if not row[6]:
            raise self.damaged(f"project {row[0]}")
        return Project(row[0], row[1], row[2], json.loads(row[3]), row[4], bool(row[5]))

    def add_owner(self, name: str = "me") -> str:
        """Add a token of the owner, and return it; the last ten stay valid of those opened, and of the others."""

        def job(db: Statements) -> str:
            # the new token is added last: if the clock went back, it would seem to be the oldest
            result = "SELECT id FROM judges WHERE project IS NULL AND is_opened = ? ORDER BY created DESC, id"
            for is_opened, most in ((0, OWNER_TOKENS - 1), (1, OWNER_TOKENS)):
                for (id,) in db(result, is_opened).fetchall()[most:]:
                    db("DELETE FROM judges WHERE id = ?", id)
            return _add_judge(db, Judge(secrets.token_urlsafe(6), None, name, is_owner=True))

        return self.run(job)

    def add_judge(self, project: str, name: str) -> str:
        """Add a judge to a project, and return the token, which is not stored."""

        def job(db: Statements) -> str:
            if db("SELECT 1 FROM judges WHERE project = ? AND name = ?", project, name).fetchone():
                raise InputError(
                    f"{name!r} is a judge of this project already; make a new link, or choose another name."
                )
            return _add_judge(db, Judge(secrets.token_urlsafe(6), project, name))

        return self.run(job)

    def renew_token(self, judge: str) -> str:
        """Give a judge a new token, and return it; the former one becomes invalid."""
        secret = new_secret()

        def job(db: Statements) -> None:
            db("UPDATE judges SET token_hash = ?, is_revoked = 0 WHERE id = ?", hash_secret(secret), judge)

        self.run(job)
        return f"{judge}.{secret}"

    def mark_opened(self, judge: str) -> None:
        self.run(lambda db: db("UPDATE judges SET is_opened = 1 WHERE id = ? AND is_opened = 0", judge))

    def revoke(self, judge: str) -> None:
        """Make the link of a judge invalid; the answers stay."""
        self.run(lambda db: db("UPDATE judges SET is_revoked = 1 WHERE id = ? AND project IS NOT NULL", judge))

    def judges(self, project: str) -> list[tuple[Judge, bool]]:
        """Return the judges of a project, in the order in which they were added, and whether their link is valid."""
        rows = self.read(
            "SELECT id, project, name, is_revoked FROM judges WHERE project = ? ORDER BY created, id", project
        )
        return [(Judge(*row[:3]), not row[3]) for row in rows]

    def judge_of(self, token: str) -> Judge | None:
        """Return the judge with a token; None if it is invalid. The time does not depend on the secret."""
        id, _, secret = token.partition(".")
        rows = self.read("SELECT id, project, name, token_hash FROM judges WHERE id = ? AND is_revoked = 0", id)
        if not is_secret(secret, rows[0][3] if rows else None):
            return None
        return Judge(rows[0][0], rows[0][1], rows[0][2], is_owner=rows[0][1] is None)

    def append(
        self,
        project: str,
        judge: str,
        item: str,
        entry: Mapping[str, Any],
        client_id: str | None = None,
        *,
        keep_hold: bool = False,
    ) -> tuple[StoredAnswer, bool]:
        """Append an answer. When this returns, it is on the disk."""
        client = client_id or secrets.token_urlsafe(12)
        action, line, time = str(entry["action"]), json.dumps(dict(entry)), utc_now()

        def job(db: Statements) -> tuple[StoredAnswer, bool]:
            values = (project, judge, client, item, action, line, time, __version__)
            result = db(_INSERT, *values).fetchone()
            if result is None:
                before = db(f"{self._answers} AND judge = ? AND client_id = ?", project, judge, client)
                return self._answer(before.fetchone()), False
            if not keep_hold:
                db("DELETE FROM holds WHERE project = ? AND judge = ? AND item = ?", project, judge, item)
            return StoredAnswer(int(result[0]), judge, item, action, json.loads(line), time, client), True

        return self.run(job)

    def append_all(self, project: str, rows: Sequence[AnswerRow]) -> int:
        return self.run(lambda db: _append_rows(db, project, rows))

    def answers(self, project: str, *, after: int = 0, judge: str | None = None) -> list[StoredAnswer]:
        """Return answers in the order in which they were given: those after a number, those of one judge."""
        if judge is None:
            rows = self.read(f"{self._answers} AND number > ? ORDER BY number", project, after)
        else:
            rows = self.read(f"{self._answers} AND number > ? AND judge = ? ORDER BY number", project, after, judge)
        return [self._answer(row) for row in rows]

    @property
    def _answers(self) -> str:
        columns = f"number, judge, item, action, entry, time, client_id, {self.sound('answers')}"
        return f"SELECT {columns} FROM answers WHERE project = ?"

    def _answer(self, row: Sequence[Any]) -> StoredAnswer:
        if not row[7]:
            raise self.damaged(f"answer {row[0]}")
        return StoredAnswer(int(row[0]), row[1], row[2], row[3], json.loads(row[4]), row[5], row[6])

    def last_number(self, project: str) -> int:
        return int(self.read("SELECT COALESCE(MAX(number), 0) FROM answers WHERE project = ?", project)[0][0])

    def claim(self, project: str, judge: str, candidates: Sequence[ClaimableItem], seen: int) -> str | None:
        """Hold the first candidate that enough other judges neither hold nor have just answered."""
        result = self.claim_group(project, judge, [[candidate] for candidate in candidates], seen)
        return result[0] if result else None

    def claim_group(self, project: str, judge: str, groups: Sequence[Sequence[ClaimableItem]], seen: int) -> list[str]:
        """Hold all free candidates of the first group that has one, instead of what the judge held before."""

        def job(db: Statements) -> list[str]:
            now = datetime.now(UTC).timestamp()
            # a clock that went back must not extend holds
            db(
                "DELETE FROM holds WHERE project = ? AND (until <= ? OR until > ?)",
                project,
                now,
                now + 2 * HOLD_SECONDS,
            )
            held: dict[str, set[str]] = {}
            for item, holder in db("SELECT item, judge FROM holds WHERE project = ?", project).fetchall():
                held.setdefault(item, set()).add(holder)
            recent = "SELECT item, judge FROM answers WHERE project = ? AND number > ?"
            for item, holder in db(recent, project, seen).fetchall():
                held.setdefault(item, set()).add(holder)
            for group in groups:
                free = [item for item, slots in group if len(held.get(item, set()) - {judge}) < slots]
                if free:
                    db("DELETE FROM holds WHERE project = ? AND judge = ?", project, judge)
                    for item in free:
                        values = (project, item, judge, now + HOLD_SECONDS)
                        db("INSERT INTO holds (project, item, judge, until) VALUES (?, ?, ?, ?)", *values)
                    return free
            return []

        return self.run(job)

    def held_by(self, project: str, judge: str) -> str | None:
        now = datetime.now(UTC).timestamp()
        result = self.read("SELECT item FROM holds WHERE project = ? AND judge = ? AND until > ?", project, judge, now)
        return str(result[0][0]) if result else None

    def holds(self, project: str) -> list[tuple[str, str]]:
        now = datetime.now(UTC).timestamp()
        rows = self.read("SELECT item, judge FROM holds WHERE project = ? AND until > ?", project, now)
        return [(str(item), str(judge)) for item, judge in rows]

    def release(self, project: str, judge: str) -> None:
        self.run(lambda db: db("DELETE FROM holds WHERE project = ? AND judge = ?", project, judge))


_PROJECT = "id, kind, name, settings, created, is_archived"
_INSERT = (
    "INSERT INTO answers (project, judge, client_id, item, action, entry, time, version) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project, judge, client_id) DO NOTHING RETURNING number"
)


MAX_PIECE = 1000
"""Entries of a long list that are converted to JSON at once."""


def pack(payload: Any) -> bytes:
    """Return compressed JSON, made in pieces, so that the whole text is never in memory."""
    packer = zlib.compressobj(1)
    pieces = [packer.compress(text.encode()) for text in _json_pieces(payload)]
    return b"".join([*pieces, packer.flush()])


def _json_pieces(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        for number, (key, part) in enumerate(value.items()):
            yield f"{', ' if number else '{'}{json.dumps(key)}: "
            yield from _json_pieces(part)
        yield "}" if value else "{}"
    elif isinstance(value, list) and len(value) > MAX_PIECE:
        for begin in range(0, len(value), MAX_PIECE):
            yield (", " if begin else "[") + json.dumps(value[begin : begin + MAX_PIECE])[1:-1]
        yield "]"
    else:
        yield json.dumps(value)


def _put_files(db: Statements, project: str, files: Mapping[str, tuple[str, bytes]]) -> None:
    for name, (kind, content) in files.items():
        db("DELETE FROM files WHERE project = ? AND name = ?", project, name)
        values = (project, name, kind, content)
        db("INSERT INTO files (project, name, type, content) VALUES (?, ?, ?, ?)", *values)


def _append_rows(db: Statements, project: str, rows: Sequence[AnswerRow]) -> int:
    n_new = 0
    for judge, item, entry, client, time in rows:
        values = (project, judge, client, item, str(entry["action"]), json.dumps(dict(entry)), time or utc_now())
        n_new += db(_INSERT, *values, __version__).fetchone() is not None
    return n_new


def _add_judge(db: Statements, judge: Judge) -> str:
    secret = new_secret()
    values = (judge.id, judge.project, judge.name, hash_secret(secret), utc_now())
    db("INSERT INTO judges (id, project, name, token_hash, created, is_revoked) VALUES (?, ?, ?, ?, ?, 0)", *values)
    return f"{judge.id}.{secret}"
