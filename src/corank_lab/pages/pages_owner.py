"""Pages of the owner: overview, judges, settings, files, training; import, conflicts and report of a screening."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from starlette.responses import HTMLResponse, PlainTextResponse, Response

from corank.data import Budget, spending
from corank.errors import InputError
from corank_lab.database.connections import DatabaseError
from corank_lab.database.journal import rows_of_file
from corank_lab.database.transfer import export_project
from corank_lab.http import MEGABYTE, HTTPError, download_headers
from corank_lab.pages.app import PageRequest
from corank_lab.pages.grading import GradeWorkspace
from corank_lab.pages.imports import NO_FILE
from corank_lab.pages.markup import one_line, record_values, rich
from corank_lab.pages.screening import ScreenWorkspace
from corank_lab.pages.screening_results import agreement_rows
from corank_lab.pages.training import REPORT
from corank_lab.pages.uploads import sort_upload
from corank_lab.pages.workspaces import Workspace, require_time
from corank_lab.records.records import summarise
from corank_lab.screening.answers import find_conflicts
from corank_lab.screening.methods import methods_paragraph

W = TypeVar("W", bound=Workspace)
MAX_JUDGES = 200
MAX_NAME = 64  # characters of the name of a judge
MAX_GROUPS, MAX_SETTLED = 200, 100  # groups of duplicates and settled conflicts that are listed
WRONG_NAME = "The name is not that of the project, so nothing was deleted. Type the name as it is shown."
MAX_PRIOR_BYTES = 20 * MEGABYTE  # old reviews of a screening, unpacked
MAX_JOURNAL_VALUES = 2_000_000  # values and keys of the journals that are added at once


def add_judge(page: PageRequest) -> Response:
    """Add a judge and show the link, which is shown once."""
    name = one_line(page.form.get("name", ""), MAX_NAME)
    store = page.site.store
    try:
        if not name:
            raise InputError("The name of the judge is empty; write a name.")
        if name == page.me.name:
            raise InputError(f"{name} is your own name here; choose another name for the judge.")
        if len(store.judges(page.here.id)) >= MAX_JUDGES:
            raise InputError(f"A project can have {MAX_JUDGES} judges; this one has that many.")
        token = store.add_judge(page.here.id, name)
    except InputError as error:
        return overview(page, str(error), 422)
    return overview(page, link=_link(page, token), name=name)


def renew_link(page: PageRequest) -> Response:
    """Make a new link for a judge; the former one becomes invalid."""
    id, name = _judge(page)
    return overview(page, link=_link(page, page.site.store.renew_token(id)), name=name)


def revoke_link(page: PageRequest) -> Response:
    """Make the link of a judge invalid."""
    page.site.store.revoke(_judge(page)[0])
    return page.go(f"/p/{page.here.id}#judges")


def confirm_delete(page: PageRequest) -> Response:
    """Ask whether to delete a project; it need not be readable."""
    return page.render("delete.html", error="")


def delete(page: PageRequest) -> Response:
    """Delete a project whose name was typed."""
    if one_line(page.form.get("name", ""), 100) != one_line(page.here.name, 100):
        return page.render("delete.html", 422, error=WRONG_NAME)
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
        return overview(page, str(error), 422)
    name = one_line(page.form.get("project_name", ""), 100) or page.here.name
    page.site.store.change_project(
        page.here.id, name=name, settings={**page.here.settings, **settings}, is_archived="archived" in page.form
    )
    return page.go(f"/p/{page.here.id}")


def settle(page: PageRequest) -> Response:
    """Settle a conflict of judges."""
    page.workspace.settle(page.me.name, page.form)
    here, pages = f"/p/{page.here.id}", page.workspace.pages
    if page.form.get("back") == "import":
        return page.go(f"{here}/import")
    return page.go(f"{here}/conflicts" if "conflicts" in pages else f"{here}#conflicts")


def import_answers(page: PageRequest) -> Response:
    """Add the answers of journals, such as those of the terminal: one file per judge, named by the judge."""
    workspace, rows = page.workspace, []
    try:
        if not page.files:
            raise InputError(NO_FILE)
        budget = Budget(values=MAX_JOURNAL_VALUES)
        for file in page.files:
            budget.take_json(file.content.decode(errors="replace"), file.name)
            content = file.content.rstrip() + b"\n"
            for judge, item, entry, client, time in rows_of_file(
                workspace.entry, content, Path(file.name), workspace.completed
            ):
                name = one_line(judge, MAX_NAME) or file.name
                if len(judge) > MAX_NAME:
                    raise InputError(f"{file.name}: the name {name!r} of a judge is longer than {MAX_NAME} characters.")
                rows.append((name, item, entry, client, require_time(time, file.name)))
    except InputError as error:
        return overview(page, str(error), 422)
    page.site.store.append_all(page.here.id, rows)
    return page.go(f"/p/{page.here.id}")


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
        return overview(page, str(error), 422)
    headers = download_headers(f"{page.here.name}-{result.suffix}")
    return Response(content, media_type=result.media_type, headers=headers)


def _judge(page: PageRequest) -> tuple[str, str]:
    for judge, _ in page.site.store.judges(page.here.id):
        if judge.id == page.request.path_params["judge"]:
            return judge.id, judge.name
    raise HTTPError(404)


def _link(page: PageRequest, token: str) -> str:
    return f"{page.request.url.scheme}://{page.request.headers['host']}/enter?token={token}"


def overview(page: PageRequest, error: str = "", status: int = 200, link: str = "", name: str = "") -> Response:
    """Show progress, results and judges of a project; the link that was made for a judge of this name."""
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
    return page.render(
        "overview.html", status, found=result, people=people, settings=settings, exports=workspace.exports,
        error=error or workspace.notice, link=link, link_name=name,
    )  # fmt: skip


def train(page: PageRequest) -> Response:
    """Compare rankers on the grades so far."""
    try:
        _of_kind(page, GradeWorkspace).train()
    except InputError as error:
        return overview(page, str(error), 422)
    return page.go(f"/p/{page.here.id}#train")


def training_report(page: PageRequest) -> Response:
    """Show the report of the last comparison: a page with its own style and without scripts."""
    from corank.comparison import CONTENT_POLICY

    _of_kind(page, GradeWorkspace)
    result = page.site.store.file(page.here.id, REPORT)
    if result is None:  # such as the address of the form, opened again
        return page.go(f"/p/{page.here.id}#train")
    # the sandbox gives the page an origin of its own
    policy = f"{CONTENT_POLICY}; frame-ancestors 'none'; sandbox allow-popups"
    return HTMLResponse(result[1], headers={"Content-Security-Policy": policy})


def know_before(page: PageRequest) -> Response:
    """Keep prior knowledge: criteria, old reviews, a column of probabilities; and the error that the owner accepts."""
    workspace = _of_kind(page, ScreenWorkspace)
    try:
        with spending(Budget(n_bytes=MAX_PRIOR_BYTES, cells=MAX_JOURNAL_VALUES, values=MAX_JOURNAL_VALUES)):
            settings = workspace.know_before(page.form, sort_upload(page.files))
    except DatabaseError:
        raise
    except InputError as error:
        return import_summary(page, str(error), 422)
    store, here = page.site.store, page.here
    store.change_project(
        here.id, name=here.name, settings={**here.settings, **settings}, is_archived=here.is_archived
    )  # fmt: skip
    return page.go(f"/p/{here.id}/import#known")


def import_summary(page: PageRequest, error: str = "", status: int = 200) -> Response:
    """Show what was read: records of each file, missing fields, duplicates, labels; and ask what is known before."""
    workspace = _of_kind(page, ScreenWorkspace)
    records, unique = workspace.everything, workspace.session.unique
    result = summarise(records, unique.groups)
    groups = unique.groups.groups if unique.groups is not None else []
    shown = [
        {
            "item": records.ids[group.representative],
            "evidence": "; ".join(group.evidence),
            "members": [_member(workspace, number, number == group.representative) for number in group.members],
        }
        for group in groups[:MAX_GROUPS]
    ]
    return page.render(
        "screen_import.html", status, error=error, known=workspace.known_before(), table=result.table(),
        sentences=result.sentences(), groups=shown, n_groups=len(groups),
        n_labels=result.total.n_relevant + result.total.n_irrelevant, use_labels=workspace.setting("use_labels"),
    )  # fmt: skip


def conflicts(page: PageRequest) -> Response:
    """Show the next record on which judges disagree, with their answers, and those that were settled."""
    workspace = _of_kind(page, ScreenWorkspace)
    with workspace.lock:
        session = workspace.session
        left = session.unsettled
        conflicts = set(find_conflicts(session.judges, settled=True))
        settled = [(number, entry) for number, entry in session.settled.items() if number in conflicts]
        result: dict[str, Any] = {}
        if left:
            number = left[0]
            result = {
                "record": record_values(session.unique, number, workspace.words),
                "item": session.records.ids[number],
                "verdicts": session.verdicts(number),
                "client_id": f"settle-{workspace.last}-{number}",
            }
        rows = [
            {"item": session.records.ids[number], "title": one_line(session.records.titles[number]), "entry": entry}
            for number, entry in reversed(settled[-MAX_SETTLED:])
        ]
    return page.render(
        "screen_conflicts.html", n_left=len(left), n_settled=len(settled), rows=rows, last=workspace.last,
        reasons=list(enumerate(workspace.reasons, 1)), criteria=rich(workspace.setting("criteria")),
        found=result,
    )  # fmt: skip


def report(page: PageRequest) -> Response:
    """Show the PRISMA numbers and diagram, the methods paragraph and the agreement."""
    workspace = _of_kind(page, ScreenWorkspace)
    facts = workspace.results.facts()
    agreement = workspace.results.agreement()
    return page.render(
        "screen_report.html", counts=facts.counts.table(), methods=methods_paragraph(facts), number=workspace.last,
        pairs=agreement_rows(agreement), n_conflicts=agreement.n_conflicts, n_settled=agreement.n_settled,
        state=workspace.session.advice,
    )  # fmt: skip


def similar(page: PageRequest) -> Response:
    """Show the records of which a record may be a duplicate."""
    workspace = _of_kind(page, ScreenWorkspace)
    try:
        result = workspace.similar(page.me.name, page.request.query_params.get("item", ""))
    except DatabaseError:
        raise
    except InputError:
        raise HTTPError(404) from None
    return page.render("screen_similar.html", **result)


def _of_kind(page: PageRequest, kind: type[W]) -> W:
    """Return the workspace; no page is here if the project is of another kind."""
    workspace = page.workspace
    if not isinstance(workspace, kind):
        raise HTTPError(404)
    return workspace


def _member(workspace: ScreenWorkspace, number: int, is_judged: bool) -> dict[str, Any]:
    records = workspace.everything
    details = records.details[number]
    return {
        "title": one_line(records.titles[number], 200) or records.ids[number],
        "about": " · ".join(filter(None, [str(details.year or ""), one_line(details.journal, 80), details.source])),
        "is_judged": is_judged,
    }
