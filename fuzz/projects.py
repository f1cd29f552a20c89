"""
Saved projects: valid, forged and damaged archives. What is accepted must open on every page.

An input is the .zip file that the owner sends. A project of each kind, with answers, is made once by the server itself.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from corank.data.durable.compressed import Budget, spending
from corank_lab.database.backends import open_database
from corank_lab.database.database import Database
from corank_lab.database.transfer import export_project
from corank_lab.pages.app import KINDS, create_app
from corank_lab.pages.imports import SAVED, NewUpload, make_project
from corank_lab.pages.uploads import UploadedFile
from fuzz.format import Format, Wrong
from fuzz.mutations import ODD_BYTES, mutate, mutate_json

LIMIT = 1 << 20
FILES = {
    "screen": ("bees.csv", b"id,title,abstract\n1,Bees,On bees\n2,Tin,On tin\n3,Gold,On gold\n4,Bees again,More\n"),
    "compare": ("teas.csv", b"name,price\nAssam,3\nSencha,5\nRooibos,2\n"),
    "grade": ("pool.csv", b"query,docid,title,bm25\nq,a,Tin,1\nq,b,Gold,2\nr,a,Tin,3\nr,c,Iron,1\n"),
}
FORMS = {"screen": ("relevant", "not"), "compare": ("left", "skip"), "grade": ("grade-1", "later")}
"""Answers that a judge gives to the first questions of a project."""
PAGES = ("", "/judge", "/history", "/delete", "/export/project", "/export/certificate", "/export/log")
NAMES = [
    "../../x",
    "records/7/../../x",
    "/etc/x",
    "records/0/x",
    "records/1/",
    "",
    ".",
    "a" * 400,
    "\x00",
    "\ud800",
    "é",
]


class Projects(Format):
    """Saved projects with other values, names, answers or bytes."""

    name, suffix = "projects", ".zip"

    @property
    def sample(self) -> bytes:  # type: ignore[override]
        return saved("compare")

    def generate(self, rng: Random) -> bytes:
        content = saved(rng.choice(list(FILES)))
        draw = rng.random()
        if draw < 0.1:
            return content
        if draw < 0.2:
            return mutate(content, rng, [*ODD_BYTES, b"PK\x01\x02", b"PK\x05\x06", b"\xff\xff\xff\xff"])
        return _forged(content, rng)

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        before = set(os.listdir(folder))
        place = folder / "corank.db"
        try:
            with open_database(place) as store:
                with spending(Budget(n_bytes=LIMIT, cells=LIMIT // 10, values=LIMIT // 10)):
                    project = make_project(store, KINDS, NewUpload("x", SAVED, "", [UploadedFile("x.zip", content)]))
                for page, status in asyncio.run(_statuses(store, project.id)).items():
                    if status != 200 and not (
                        status in (404, 422) and "export" in page
                    ):  # of nothing, or of another kind
                        raise Wrong(f"status {status} of {page or 'the overview'}", project.name)
        finally:
            for path in folder.glob("corank.db*"):
                path.unlink()
        if left := set(os.listdir(folder)) - before:
            raise Wrong("files left behind", left)
        return True


@cache
def saved(kind: str) -> bytes:
    """Return a saved project with two answers."""
    with tempfile.TemporaryDirectory() as folder, open_database(Path(folder, "corank.db")) as store:
        project = make_project(store, KINDS, NewUpload("x", kind, "", [UploadedFile(*FILES[kind])]))
        workspace = KINDS[kind](store, project)
        workspace.refresh()
        for action in FORMS[kind]:
            shown = workspace.question("ann")
            assert shown is not None
            names = {"item": "item", "left": "left_number", "right": "right_number"}
            form = {field: str(shown[name]) for field, name in names.items() if name in shown}
            workspace.save("ann", {**form, "client_id": action, "action": action, "note": "why"})
        workspace.background.wait()
        return export_project(store, project)


def _forged(content: bytes, rng: Random) -> bytes:
    """Return a saved project with other values."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    head = json.loads(members["project.json"])
    answers = [json.loads(line) for line in members["answers.jsonl"].splitlines()]
    what = rng.choice(("payload", "settings", "answers", "files", "name", "head", "long"))
    if what in ("payload", "settings"):
        head[what] = mutate_json(head[what], rng)
    elif what == "answers":
        answers = mutate_json(answers, rng)
    elif what == "files":
        head["files"] += [{"name": rng.choice(NAMES), "type": "image/png"}]
        members[f"files/{len(head['files']) - 1}"] = b"x"
    elif what == "name":
        head["name"] = rng.choice(NAMES)
    elif what == "head":
        head = mutate_json(head, rng)
    else:
        head["payload"] = [[]] * rng.choice((10, 10**5, 10**6))
    members["project.json"] = json.dumps(head).encode()
    lines = answers if isinstance(answers, list) else [answers]
    members["answers.jsonl"] = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")
        for name, member in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), member, zipfile.ZIP_DEFLATED)
    return out.getvalue()


async def _statuses(store: Database, project: str) -> dict[str, int]:
    """Return the status of each page of a project, and of the list of projects, for the owner."""
    app = create_app(store)
    _, headers = await _get(app, f"/enter?token={store.add_owner()}", b"")
    cookie = headers[b"set-cookie"].partition(b";")[0]
    pages = {page: (await _get(app, f"/p/{project}{page}", cookie))[0] for page in PAGES}
    return {**pages, "home": (await _get(app, "/", cookie))[0]}


async def _get(app: Any, target: str, cookie: bytes) -> tuple[int, dict[bytes, bytes]]:
    path, _, query = target.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(b"host", b"localhost"), (b"cookie", cookie)], "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    try:
        await app(scope, receive, send)
    except Exception:  # Starlette answers with 500, then raises again
        if not sent:
            raise
    return sent[0]["status"], dict(sent[0]["headers"])
