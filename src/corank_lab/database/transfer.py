"""Projects as files: everything but the links of judges, to keep a copy or to continue elsewhere."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any

from corank.data import ZIP_DAMAGE, current_budget, read_member, require_plausible_size
from corank.errors import InputError
from corank_lab.database.store import AnswerStore, Project

FORMAT = 1
_FILE = re.compile(r"[^\\\x00-\x1f\x7f]{0,300}")
_NAME = "the saved project"


def export_project(store: AnswerStore, project: Project) -> bytes:
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
                {"judge": one.judge, "item": one.item, "client_id": one.client_id, "time": one.time, "entry": one.entry}
            )
            for one in store.answers(project.id)
        ]
        archive.writestr("answers.jsonl", "".join(line + "\n" for line in lines))
        archive.writestr("project.json", json.dumps(head))
    return out.getvalue()


def import_project(store: AnswerStore, content: bytes, kinds: Any, upload: str | None = None) -> Project:
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
                str(one["name"]): (str(one["type"]), read_member(archive, f"files/{number}", _NAME))
                for number, one in enumerate(head["files"])
            }
            rows = [
                (str(one["judge"]), str(one["item"]), dict(one["entry"]), str(one["client_id"]), str(one["time"]))
                for one in answers
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
