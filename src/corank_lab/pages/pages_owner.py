"""Pages of the owner: overview of a project, judges and their links, settings, and files to save."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from corank.data import Budget
from corank.errors import InputError
from corank_lab.database.transfer import export_project
from corank_lab.http import download_headers
from corank_lab.pages.grading.training import REPORT
from corank_lab.pages.grading.workspace import GradeWorkspace
from corank_lab.pages.markup import one_line
from corank_lab.pages.site import PageRequest
from corank_lab.pages.texts import text
from corank_lab.pages.uploads import UploadedFile
from corank_lab.pages.workspaces import require_time

MAX_JUDGES = 200
MAX_NAME = 64
"""Characters of the name of a judge."""
MAX_JOURNAL_VALUES = 2_000_000
"""Values and keys of the journals that are added at once."""


def overview(page: PageRequest) -> Response:
    """Show progress, results and judges of a project."""
    return show_overview(page)


def add_judge(page: PageRequest) -> Response:
    """Add a judge and show the link, which is shown once."""
    name = one_line(page.form.get("name", ""), MAX_NAME)
    store = page.site.store
    try:
        if not name:
            raise InputError(text("error.no_name"))
        if name == page.me.name:
            raise InputError(text("error.own_name", name=name))
        if len(store.judges(page.here.id)) >= MAX_JUDGES:
            raise InputError(text("error.many_judges", n=MAX_JUDGES))
        token = store.add_judge(page.here.id, name)
    except InputError as error:
        return show_overview(page, error=str(error), status=422)
    return show_overview(page, link=_link(page, token), link_name=name)


def renew_link(page: PageRequest) -> Response:
    """Make a new link for a judge; the former one becomes invalid."""
    judge = _judge(page)
    if judge is None:
        return show_overview(page, error=text("error.missing"), status=404)
    return show_overview(page, link=_link(page, page.site.store.renew_token(judge[0])), link_name=judge[1])


def revoke_link(page: PageRequest) -> Response:
    """Make the link of a judge invalid."""
    judge = _judge(page)
    if judge is None:
        return show_overview(page, error=text("error.missing"), status=404)
    page.site.store.revoke(judge[0])
    return page.go(f"/p/{page.here.id}#judges")


def confirm_delete(page: PageRequest) -> Response:
    """Ask whether to delete a project; it need not be readable."""
    return page.render("delete.html", error="")


def delete(page: PageRequest) -> Response:
    """Delete a project whose name was typed."""
    if one_line(page.form.get("name", ""), 100) != one_line(page.here.name, 100):
        return page.render("delete.html", 422, error=text("delete.wrong"))
    page.site.store.delete_project(page.here.id)
    page.site.workspaces.forget(page.here.id)
    return page.go("/")


def change_settings(page: PageRequest) -> Response:
    """Change name, options and visibility."""
    workspace = page.workspace
    try:
        settings = {setting.name: setting.read(page.form.get(setting.name)) for setting in workspace.settings}
        workspace.check_settings(settings)
    except InputError as error:
        return show_overview(page, error=str(error), status=422)
    name = one_line(page.form.get("project_name", ""), 100) or page.here.name
    page.site.store.change_project(
        page.here.id, name=name, settings={**page.here.settings, **settings}, is_archived="archived" in page.form
    )
    return page.go(f"/p/{page.here.id}")


def settle(page: PageRequest) -> Response:
    """Settle a conflict of judges."""
    page.workspace.settle(page.me.name, page.form)
    back = "/import" if page.form.get("back") == "import" else page.workspace.conflicts_place
    return page.go(f"/p/{page.here.id}{back}")


def import_answers(page: PageRequest) -> Response:
    """Add the answers of journals, such as those of the terminal: one file per judge, named by the judge."""
    workspace, rows = page.workspace, []
    try:
        if not page.files:
            raise InputError(text("error.no_file"))
        budget = Budget(values=MAX_JOURNAL_VALUES)
        for file in page.files:
            budget.take_json(file.content.decode(errors="replace"), file.name)
            read = []
            for number, line in enumerate(file.content.splitlines(), 1):
                item, entry, time = workspace.read_line(_json(line, where := f"{file.name}, line {number}"))
                read.append((item, entry, require_time(time, where)))
            judges = _judges_of_journal(file, [entry for _, entry, _ in read])
            digest = sha256(file.content).hexdigest()[:12]
            rows += [
                (judge, *row[:2], f"journal-{digest}-{i}", row[2])
                for i, (judge, row) in enumerate(zip(judges, read, strict=True), 1)
            ]
    except InputError as error:
        return show_overview(page, error=str(error), status=422)
    page.site.store.append_all(page.here.id, rows)
    return page.go(f"/p/{page.here.id}")


def _judges_of_journal(file: UploadedFile, entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """
    Return the judge of each line of a journal: the name of the file.

    If the name is a number, or the lines name several judges, it is the judge that the line names.
    """
    name, named = file.name.rpartition(".")[0] or file.name, [str(entry.get("judge", "")) for entry in entries]
    names = set(named) - {""}
    if len(names) < 2 and not (names and name.isdecimal()):
        named = [name] * len(entries)
    result = []
    for judge in (item or name for item in named):
        if len(judge) > MAX_NAME:
            raise InputError(
                f"{file.name}: the name of the judge has {len(judge)} characters; the limit is {MAX_NAME}."
            )
        result.append(one_line(judge, MAX_NAME) or file.name)
    return result


def _json(line: bytes, where: str) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InputError(f"{where} is not a line of a journal; expected a JSON object with an action.")
    return {**values, "place": where}


def export(page: PageRequest) -> Response:
    """Send a file to save."""
    if page.request.path_params["name"] == "project":
        packed = export_project(page.site.store, page.here)
        return Response(packed, media_type="application/zip", headers=download_headers(f"{page.here.name}.zip"))
    result = page.workspace.exports.get(page.request.path_params["name"])
    if result is None:
        return PlainTextResponse("not found\n", 404)
    try:
        content = result.content()
    except InputError as error:
        return show_overview(page, error=str(error), status=422)
    headers = download_headers(f"{page.here.name}-{result.suffix}")
    return Response(content, media_type=result.media_type, headers=headers)


def _judge(page: PageRequest) -> tuple[str, str] | None:
    wanted = page.request.path_params["judge"]
    judges = page.site.store.judges(page.here.id)
    return next(((judge.id, judge.name) for judge, _ in judges if judge.id == wanted), None)


def _link(page: PageRequest, token: str) -> str:
    return f"{page.request.url.scheme}://{page.request.headers['host']}/enter?token={token}"


def show_overview(page: PageRequest, status: int = 200, **values: Any) -> Response:
    """Return the overview."""
    workspace = page.workspace
    result = workspace.overview()
    known = {judge.name: (judge.id, is_valid) for judge, is_valid in page.site.store.judges(page.here.id)}
    names = list(dict.fromkeys([page.me.name, *known, *workspace.counts]))
    people = [
        {
            "name": name, "id": known.get(name, ("", False))[0], "is_valid": known.get(name, ("", False))[1],
            "is_me": name == page.me.name,
            "n_answers": workspace.progress(name)["answered"] if name in workspace.counts else 0,
            "seconds": workspace.seconds_per_answer(name), "last": (workspace.times.get(name) or [""])[-1],
        }
        for name in names
    ]  # fmt: skip
    settings = [(item, workspace.setting(item.name)) for item in workspace.settings]
    shown = {"link": "", "link_name": "", "error": workspace.notice, **values}
    return page.render(
        "overview.html", status, found=result, people=people, settings=settings, exports=workspace.exports, **shown
    )


def train(page: PageRequest) -> Response:
    """Compare rankers on the grades so far."""
    workspace = _grading(page)
    try:
        workspace.train()
    except InputError as error:
        return show_overview(page, error=str(error), status=422)
    return page.go(f"/p/{page.here.id}#train")


def report(page: PageRequest) -> Response:
    """Show the report of the last comparison: a page with its own style and without scripts."""
    from corank.comparison import CONTENT_POLICY

    _grading(page)
    result = page.site.store.file(page.here.id, REPORT)
    if result is None:  # such as the address of the form, opened again
        return page.go(f"/p/{page.here.id}#train")
    # the sandbox gives the page an origin of its own
    policy = f"{CONTENT_POLICY}; frame-ancestors 'none'; sandbox allow-popups"
    return HTMLResponse(result[1], headers={"Content-Security-Policy": policy})


def _grading(page: PageRequest) -> GradeWorkspace:
    workspace = page.workspace
    if not isinstance(workspace, GradeWorkspace):
        raise HTTPException(404)
    return workspace
