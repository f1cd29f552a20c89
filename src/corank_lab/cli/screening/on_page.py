"""`corank screen FILE --page`: read in the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corank.errors import InputError, import_extra

if TYPE_CHECKING:
    from corank_lab.database.store import AnswerStore


def read_on_page(paths: Sequence[Path], judge: str, options: Mapping[str, Any], *, port: int = 0) -> None:
    """
    Serve the project of these files, which is made at the first time, and open its page.

    paths: files of records; the database is next to the first one.
    judge: name of the reader.
    options: settings of a new project.
    port: 0 takes a free one.
    """
    from corank_lab.cli.lab import run_server

    for module in ("starlette", "uvicorn", "jinja2", "python_multipart"):
        import_extra(module, "web")
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path} is not a file; pass a file of records.")

    def begin(store: AnswerStore) -> str:
        return open_project(store, paths, options)

    folder = paths[0].absolute().parent
    run_server(folder, port, "127.0.0.1", (), None, judge, no_browser=False, begin=begin)


def open_project(store: AnswerStore, paths: Sequence[Path], options: Mapping[str, Any]) -> str:
    """
    Return the address of the project of these files; a new one begins with the summary of the import.

    options: settings of a new project; those of an existing one stay.
    """
    from hashlib import sha256

    from corank.data import read_regular
    from corank_lab.pages.screening.workspace import ScreenWorkspace
    from corank_lab.pages.uploads import UploadedFile, file_name, sort_upload

    files = [UploadedFile(file_name(path.name), read_regular(path)) for path in paths]
    wanted = sha256("".join(sha256(file.content).hexdigest() for file in files).encode()).hexdigest()
    for project in store.projects():
        if project.kind == ScreenWorkspace.kind and project.settings.get("files") == wanted:
            return f"/p/{project.id}/judge"
    created = ScreenWorkspace.create(sort_upload(files))
    settings = {one.name: one.default for one in ScreenWorkspace.settings} | dict(created.settings) | dict(options)
    project = store.add_project(
        ScreenWorkspace.kind, paths[0].name.split(".")[0], {**settings, "files": wanted}, created.payload,
        files=created.files,
    )  # fmt: skip
    return f"/p/{project.id}/import"
