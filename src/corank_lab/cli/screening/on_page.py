"""`corank screen FILE --page`: read in the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corank.errors import InputError, import_extra

if TYPE_CHECKING:
    from corank_lab.database.store import AnswerStore

REFUSED = {
    "title": "name the column title in the file", "text": "name the column abstract in the file",
    "known": "include the records on the page, which finds them by their ids", "seed": "pages use 0",
    "answers": "the database corank.db next to the file keeps them",
    "overlap": "set the number of readers on the page", "keep_duplicates": "separate duplicates on the page",
}  # fmt: skip
"""Options of `screen read` that pages do not have, and what to do instead."""


def require_possible(**given: Any) -> None:
    """Raise `InputError` for an option that pages do not have."""
    for name, instead in REFUSED.items():
        if given[name]:
            raise InputError(f"--{name.replace('_', '-')} does not work with --page: {instead}; or leave --page out.")


def read_on_page(
    paths: Sequence[Path],
    judge: str,
    options: Mapping[str, Any],
    reasons: Sequence[str] = (),
    listed: Path | None = None,
    *,
    port: int = 0,
) -> None:
    """Serve the project of these files, which is made at the first time, and open its page."""
    from corank.data import read_utf8
    from corank_lab.cli.lab import run_server

    for module in ("starlette", "uvicorn", "jinja2", "python_multipart"):
        import_extra(module, "lab")
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path} is not a file; pass a file of records.")
    lines = [*reasons, *(read_utf8(listed).splitlines() if listed is not None else ())]
    settings = read_settings({**options, "reasons": "\n".join(line for line in lines if line.strip())})

    def begin(store: AnswerStore) -> str:
        return open_project(store, paths, settings)

    folder = paths[0].absolute().parent
    run_server(folder, port, "127.0.0.1", (), None, judge, no_browser=False, begin=begin)


def read_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are given, as the pages read them; raise `InputError` if one is not allowed."""
    from corank_lab.pages.screening.workspace import ScreenWorkspace

    known = {one.name: one for one in ScreenWorkspace.settings}
    found = {name: known[name].require(value) for name, value in options.items() if value not in (None, "")}
    ScreenWorkspace.check_settings({name: one.default for name, one in known.items()} | found)
    return found


def open_project(store: AnswerStore, paths: Sequence[Path], settings: Mapping[str, Any]) -> str:
    """Return the address of the project of these files; a new one begins with the summary of the import."""
    import numpy as np

    from corank_lab.cli.screening.files import ScreeningFiles
    from corank_lab.pages.screening.workspace import ScreenWorkspace

    known = {one.name: one for one in ScreenWorkspace.settings}
    files = ScreeningFiles(tuple(paths), None, is_grouped=True)
    is_labelled = bool(np.isnan(files.records.labels).any())
    with files.journal(store=store, **{"use_labels": is_labelled, **settings}) as (journal, _):
        assert journal.project is not None
        stored = journal.project.settings
        changed = {
            name: value
            for name, value in settings.items()
            if value != known[name].default or not known[name].allows(stored.get(name, value))
        }
        if any(stored.get(name) != value for name, value in changed.items()):
            journal.change_settings(**changed)
        return f"/p/{journal.id}/{'import' if journal.is_new else 'judge'}"
