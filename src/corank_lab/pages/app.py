"""The application: one table of routes, and one path that every request takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from corank.errors import InputError, reason
from corank_lab.database.connections import DatabaseError, LostError
from corank_lab.database.database import Database
from corank_lab.http import MEGABYTE, SAFE, Endpoint, HTTPError, SecurityMiddleware, answer, make_app
from corank_lab.pages import pages_everyone, pages_owner
from corank_lab.pages.grading.workspace import GradeWorkspace
from corank_lab.pages.preferences import PreferenceWorkspace
from corank_lab.pages.screening import pages as pages_screen
from corank_lab.pages.screening.workspace import ScreenWorkspace
from corank_lab.pages.site import PageRequest, Permission, Site, judges_of, permit, tokens_of
from corank_lab.pages.texts import text
from corank_lab.pages.uploads import MAX_FILES, UploadedFile, file_name
from corank_lab.pages.workspaces import Workspace

KINDS: Mapping[str, type[Workspace]] = {
    "screen": ScreenWorkspace, "compare": PreferenceWorkspace, "grade": GradeWorkspace,
}  # fmt: skip
"""Kinds of work."""


class Route(NamedTuple):
    """One address."""

    method: str  # GET or POST
    path: str  # pattern of the address
    permission: Permission  # what it requires
    page: Callable[[PageRequest], Response]  # function of a `PageRequest`


ROUTES = (
    Route("GET", "/health", Permission.PUBLIC, pages_everyone.health),
    Route("GET", "/static/{name}", Permission.PUBLIC, pages_everyone.static),
    Route("GET", "/enter", Permission.PUBLIC, pages_everyone.enter),
    Route("POST", "/leave", Permission.MEMBER, pages_everyone.leave),
    Route("GET", "/", Permission.MEMBER, pages_everyone.home),
    Route("POST", "/projects", Permission.OWNER, pages_everyone.add_project),
    Route("GET", "/imports/{upload}", Permission.OWNER, pages_everyone.import_progress),
    Route("POST", "/imports/{upload}", Permission.OWNER, pages_everyone.decide_import),
    Route("GET", "/p/{project}", Permission.OWNER, pages_owner.overview),
    Route("POST", "/p/{project}/settings", Permission.OWNER, pages_owner.change_settings),
    Route("GET", "/p/{project}/delete", Permission.OWNER, pages_owner.confirm_delete),
    Route("POST", "/p/{project}/delete", Permission.OWNER, pages_owner.delete),
    Route("POST", "/p/{project}/judges", Permission.OWNER, pages_owner.add_judge),
    Route("POST", "/p/{project}/judges/{judge}/link", Permission.OWNER, pages_owner.renew_link),
    Route("POST", "/p/{project}/judges/{judge}/revoke", Permission.OWNER, pages_owner.revoke_link),
    Route("POST", "/p/{project}/answers", Permission.OWNER, pages_owner.import_answers),
    Route("POST", "/p/{project}/settle", Permission.OWNER, pages_owner.settle),
    Route("GET", "/p/{project}/import", Permission.OWNER, pages_screen.import_summary),
    Route("GET", "/p/{project}/conflicts", Permission.OWNER, pages_screen.conflicts),
    Route("GET", "/p/{project}/report", Permission.OWNER, pages_screen.report),
    Route("POST", "/p/{project}/train", Permission.OWNER, pages_owner.train),
    Route("GET", "/p/{project}/train", Permission.OWNER, pages_owner.report),
    Route("GET", "/p/{project}/export/{name}", Permission.OWNER, pages_owner.export),
    Route("GET", "/p/{project}/judge", Permission.JUDGE, pages_everyone.question),
    Route("POST", "/p/{project}/judge", Permission.JUDGE, pages_everyone.answer),
    Route("POST", "/p/{project}/undo", Permission.JUDGE, pages_everyone.undo),
    Route("GET", "/p/{project}/history", Permission.JUDGE, pages_everyone.history),
    Route("GET", "/p/{project}/similar", Permission.JUDGE, pages_screen.similar),
    Route("GET", "/p/{project}/files/{name}", Permission.JUDGE, pages_everyone.image),
    Route("GET", "/leave", Permission.PUBLIC, pages_everyone.after_form),
    Route("GET", "/projects", Permission.OWNER, pages_everyone.after_form),
    Route("GET", "/p/{project}/settings", Permission.OWNER, pages_everyone.after_form),
    Route("GET", "/p/{project}/judges", Permission.OWNER, pages_everyone.after_form),
    Route("GET", "/p/{project}/judges/{judge}/link", Permission.OWNER, pages_everyone.after_form),
    Route("GET", "/p/{project}/judges/{judge}/revoke", Permission.OWNER, pages_everyone.after_form),
    Route("GET", "/p/{project}/answers", Permission.OWNER, pages_everyone.after_form),
    Route("GET", "/p/{project}/settle", Permission.OWNER, pages_everyone.after_form),
    Route("GET", "/p/{project}/undo", Permission.JUDGE, pages_everyone.after_form),
)
"""All addresses."""

UPLOAD_LIMIT = 200 * MEGABYTE
"""Largest size of a request that uploads files."""
FORM_LIMIT = MEGABYTE
"""Largest size of any other request."""
UPLOADS = ("/projects", "/answers")
"""Paths that take files."""


def create_app(
    store: Database, *, hosts: Iterable[str] = (), kinds: Mapping[str, type[Workspace]] = KINDS
) -> SecurityMiddleware:
    """Return the application."""
    site = Site(store, kinds)
    app = make_app(
        [(route.method, route.path, _endpoint(site, route)) for route in ROUTES],
        lambda request, error: _refuse(PageRequest(site, request), error),
    )
    app.state.site = site
    # outside of everything, so that pages about errors carry the headers too
    return SecurityMiddleware(app, _plain, _limit_of, hosts=tuple(hosts))


def _plain(error: HTTPError) -> Response:
    return PlainTextResponse(f"{error.sentence}\n", error.status, error.headers)


def _limit_of(path: str) -> int:
    return UPLOAD_LIMIT if path.endswith(UPLOADS) else FORM_LIMIT


def _endpoint(site: Site, route: Route) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        page = PageRequest(site, request)

        async def handle(_: Request) -> Response:
            await run_in_threadpool(_permit, page, route)
            try:
                if route.method not in SAFE:
                    await _read_form(page)
                return await run_in_threadpool(route.page, page)
            except OSError as error:  # of uploads, which are written to temporary files
                raise HTTPError(503) from error

        return await answer(request, handle, lambda _, error: _refuse(page, error))

    return endpoint


ERRORS = {
    401: "error.link", 403: "error.right", 404: "error.missing", 413: "error.large", 429: "error.wait",
    500: "error.bug",
}  # fmt: skip
"""Texts of pages about refusals, by status."""


def _refuse(page: PageRequest, error: HTTPError) -> Response:
    key, cause = ERRORS.get(error.status, "error.input"), error.__cause__
    if isinstance(cause, DatabaseError):
        key, message = "error.store", error.sentence
        message += "" if isinstance(cause, LostError) else f" {text('error.kept')}"
    elif isinstance(cause, OSError):
        key, message = "error.disk", text("error.disk.help", reason=reason(cause))
    elif error.status == 422:
        message = error.sentence
    else:
        message = text(f"{key}.help", n=UPLOAD_LIMIT // MEGABYTE, kind=type(cause).__name__)
    return page.render("message.html", error.status, title=text(key), message=message)


def _permit(page: PageRequest, route: Route) -> None:
    store, id = page.site.store, page.request.path_params.get("project")
    if route.permission is Permission.PUBLIC:
        return
    tokens = tokens_of(page.request, page.site.cookie)
    page.judges = judges_of(store, tokens)
    if tokens and not page.judges:
        page.site.cookie_attempts.count(page.request)
    result = store.project(id) if id is not None and page.judges else None
    page.judge = permit(route.permission, page.judges, id, result)
    if id is not None and result is None:
        raise HTTPError(404)
    page.project = result


async def _read_form(page: PageRequest) -> None:
    try:
        form = await page.request.form(max_files=MAX_FILES, max_fields=200)
    except HTTPException as error:
        raise InputError(f"the form cannot be read ({error.detail}); reload the page and send it again.") from None
    fields, files = {}, []
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            content = await value.read()
            if value.filename and content:
                files.append(UploadedFile(file_name(value.filename), content))
        else:
            fields[name] = value
    await form.close()
    page.form, page.files = fields, files
