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
    import numpy as np

    from corank_lab.cli.screening.files import ScreeningFiles
    from corank_lab.pages.screening.workspace import ScreenWorkspace

    for setting in ScreenWorkspace.settings:
        if setting.name in options and not setting.allows(options[setting.name]):
            raise InputError(f"{setting.name} is {options[setting.name]!r}, which a page does not allow.")
    files = ScreeningFiles(tuple(paths), None, is_grouped=True)
    is_labelled = bool(np.isnan(files.records.labels).any())
    with files.journal(store=store, **{"use_labels": is_labelled, **options}) as (journal, _):
        return f"/p/{journal.id}/{'import' if journal.is_new else 'judge'}"
