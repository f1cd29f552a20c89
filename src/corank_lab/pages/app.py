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
from corank_lab.pages.grading import GradeWorkspace
from corank_lab.pages.preferences import PreferenceWorkspace
from corank_lab.pages.screening import ScreenWorkspace
from corank_lab.pages.site import MISSING, PageRequest, Permission, Site, judges_of, permit, tokens_of
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


ROUTES: tuple[Route, ...] = (
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
    Route("GET", "/p/{project}/import", Permission.OWNER, pages_owner.import_summary),
    Route("GET", "/p/{project}/conflicts", Permission.OWNER, pages_owner.conflicts),
    Route("GET", "/p/{project}/report", Permission.OWNER, pages_owner.report),
    Route("POST", "/p/{project}/train", Permission.OWNER, pages_owner.train),
    Route("GET", "/p/{project}/train", Permission.OWNER, pages_owner.training_report),
    Route("GET", "/p/{project}/export/{name}", Permission.OWNER, pages_owner.export),
    Route("GET", "/p/{project}/judge", Permission.JUDGE, pages_everyone.question),
    Route("POST", "/p/{project}/judge", Permission.JUDGE, pages_everyone.answer),
    Route("POST", "/p/{project}/undo", Permission.JUDGE, pages_everyone.undo),
    Route("GET", "/p/{project}/history", Permission.JUDGE, pages_everyone.history),
    Route("GET", "/p/{project}/similar", Permission.JUDGE, pages_owner.similar),
    Route("GET", "/p/{project}/files/{name}", Permission.JUDGE, pages_everyone.image),
)
_PAGES = {route.path for route in ROUTES if route.method == "GET"} | {"/leave"}
ROUTES += (
    Route("GET", "/leave", Permission.PUBLIC, pages_everyone.after_form),
    *(route._replace(method="GET", page=pages_everyone.after_form) for route in ROUTES if route.path not in _PAGES),
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
    401: (
        "A link is needed",
        "Open the link that you were given, or the one that corank lab printed. It may have been replaced by a newer "
        "one.",
    ),
    403: (
        "Not for this link", "Your link does not open this page. Ask the owner of the project for another link."
    ),
    404: (
        MISSING, "There is no page at this address. Check the address, or start from the list of projects."
    ),
    413: (
        "The upload is too large",
        f"Files of up to {UPLOAD_LIMIT // MEGABYTE} MB together are accepted. Send fewer or smaller files.",
    ),
    429: (
        "Please wait a minute",
        "Too many wrong links were opened from this address. Wait a minute, then open your link again.",
    ),
    500: (
        "Something went wrong",
        "An internal error occurred ({kind}). Your saved answers are safe. Go back and try again; the terminal of "
        "corank lab shows the details.",
    ),
}  # fmt: skip
"""Title and text of pages about refusals, by status."""
OTHER_ERROR = ("That did not work", "The request was not understood. Go back, reload the page and try again.")


def _refuse(page: PageRequest, error: HTTPError) -> Response:
    (title, message), cause = ERRORS.get(error.status, OTHER_ERROR), error.__cause__
    if isinstance(cause, DatabaseError):
        title, message = "The database cannot be used now", error.sentence
        message += "" if isinstance(cause, LostError) else " Answers that were saved before are safe."
    elif isinstance(cause, OSError):
        title = "The disk cannot be used now"
        message = f"The server cannot write a file ({reason(cause)}); free some space, then try again. "
        message += "Saved answers are safe."
    elif error.status == 422:
        message = error.sentence
    return page.render(
        "message.html", error.status, title=title, message=message.replace("{kind}", type(cause).__name__)
    )


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
