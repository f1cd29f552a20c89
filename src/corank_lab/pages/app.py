"""The application: one table of routes, and one path that every request takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from corank.errors import InputError, reason
from corank_lab.database.store import AnswerStore, LostError, StoreError
from corank_lab.pages import pages_frame, pages_judge, pages_owner
from corank_lab.pages.access import Refused, Right, judges_of, permit, tokens_of
from corank_lab.pages.compare import CompareWorkspace
from corank_lab.pages.grading import pages as pages_grade
from corank_lab.pages.grading.workspace import GradeWorkspace
from corank_lab.pages.screening import pages as pages_screen
from corank_lab.pages.screening.workspace import ScreenWorkspace
from corank_lab.pages.security import SAFE, UPLOAD_LIMIT, Gate, TooLarge
from corank_lab.pages.site import Site, Visit
from corank_lab.pages.texts import text
from corank_lab.pages.uploads import MOST_FILES, UploadedFile, file_name
from corank_lab.pages.workspaces import Workspace

KINDS: Mapping[str, type[Workspace]] = {
    "screen": ScreenWorkspace, "compare": CompareWorkspace, "grade": GradeWorkspace,
}  # fmt: skip
"""Kinds of work."""


class Route(NamedTuple):
    """
    One address.

    method: GET or POST.
    path: pattern of the address.
    right: what it requires.
    page: function of a `Visit`.
    """

    method: str
    path: str
    right: Right
    page: Callable[[Visit], Response]


ROUTES = (
    Route("GET", "/health", Right.PUBLIC, pages_frame.health),
    Route("GET", "/static/{name}", Right.PUBLIC, pages_frame.static),
    Route("GET", "/enter", Right.PUBLIC, pages_frame.enter),
    Route("POST", "/leave", Right.MEMBER, pages_frame.leave),
    Route("GET", "/", Right.MEMBER, pages_frame.home),
    Route("POST", "/projects", Right.OWNER, pages_frame.add_project),
    Route("GET", "/imports/{upload}", Right.OWNER, pages_frame.import_progress),
    Route("GET", "/p/{project}", Right.OWNER, pages_owner.overview),
    Route("POST", "/p/{project}/settings", Right.OWNER, pages_owner.change_settings),
    Route("GET", "/p/{project}/delete", Right.OWNER, pages_owner.confirm_delete),
    Route("POST", "/p/{project}/delete", Right.OWNER, pages_owner.delete),
    Route("POST", "/p/{project}/judges", Right.OWNER, pages_owner.add_judge),
    Route("POST", "/p/{project}/judges/{judge}/link", Right.OWNER, pages_owner.renew_link),
    Route("POST", "/p/{project}/judges/{judge}/revoke", Right.OWNER, pages_owner.revoke_link),
    Route("POST", "/p/{project}/answers", Right.OWNER, pages_owner.import_answers),
    Route("POST", "/p/{project}/settle", Right.OWNER, pages_owner.settle),
    Route("GET", "/p/{project}/import", Right.OWNER, pages_screen.import_summary),
    Route("GET", "/p/{project}/conflicts", Right.OWNER, pages_screen.conflicts),
    Route("GET", "/p/{project}/report", Right.OWNER, pages_screen.report),
    Route("POST", "/p/{project}/train", Right.OWNER, pages_grade.train),
    Route("GET", "/p/{project}/train", Right.OWNER, pages_grade.report),
    Route("GET", "/p/{project}/export/{name}", Right.OWNER, pages_owner.export),
    Route("GET", "/p/{project}/judge", Right.JUDGE, pages_judge.question),
    Route("POST", "/p/{project}/judge", Right.JUDGE, pages_judge.answer),
    Route("POST", "/p/{project}/undo", Right.JUDGE, pages_judge.undo),
    Route("GET", "/p/{project}/history", Right.JUDGE, pages_judge.history),
    Route("GET", "/p/{project}/similar", Right.JUDGE, pages_screen.similar),
    Route("GET", "/p/{project}/files/{name}", Right.JUDGE, pages_judge.image),
    Route("GET", "/leave", Right.PUBLIC, pages_frame.after_form),
    Route("GET", "/projects", Right.OWNER, pages_frame.after_form),
    Route("GET", "/p/{project}/settings", Right.OWNER, pages_frame.after_form),
    Route("GET", "/p/{project}/judges", Right.OWNER, pages_frame.after_form),
    Route("GET", "/p/{project}/judges/{judge}/link", Right.OWNER, pages_frame.after_form),
    Route("GET", "/p/{project}/judges/{judge}/revoke", Right.OWNER, pages_frame.after_form),
    Route("GET", "/p/{project}/answers", Right.OWNER, pages_frame.after_form),
    Route("GET", "/p/{project}/settle", Right.OWNER, pages_frame.after_form),
    Route("GET", "/p/{project}/undo", Right.JUDGE, pages_frame.after_form),
)
"""All addresses."""

UPLOADS = ("/projects", "/answers")
"""Paths that take files."""


def create_app(store: AnswerStore, *, hosts: Iterable[str] = (), kinds: Mapping[str, type[Workspace]] = KINDS) -> Gate:
    """
    Return the application.

    store: the database.
    hosts: names under which it may be reached, besides those of this computer.
    kinds: kinds of work.
    """
    site = Site(store, kinds)
    routes = [
        StarletteRoute(route.path, _endpoint(site, route), methods=[route.method], name=f"{route.method} {route.path}")
        for route in ROUTES
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _missing(site), 500: _failed(site)})
    app.state.site = site
    # outside of everything, so that pages about errors carry the headers too
    return Gate(app, tuple(hosts), UPLOADS)


def _endpoint(site: Site, route: Route) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        visit = Visit(site, request)
        try:
            await run_in_threadpool(_permit, visit, route)
            if route.method not in SAFE:
                await _read_form(visit)
            return await run_in_threadpool(route.page, visit)
        except Refused as refused:
            key = {401: "error.link", 429: "error.wait"}.get(refused.status, "error.right")
            return visit.render("message.html", refused.status, title=text(key), message=text(f"{key}.help"))
        except TooLarge:
            message = text("error.large.help", n=UPLOAD_LIMIT >> 20)
            return visit.render("message.html", 413, title=text("error.large"), message=message)
        except StoreError as error:
            message = str(error) if isinstance(error, LostError) else f"{error} {text('error.kept')}"
            return visit.render("message.html", 503, title=text("error.store"), message=message)
        except InputError as error:
            return visit.render("message.html", 422, title=text("error.input"), message=str(error))
        except OSError as error:  # of uploads, which are written to temporary files
            message = text("error.disk.help", reason=reason(error))
            return visit.render("message.html", 503, title=text("error.disk"), message=message)
        except ClientDisconnect:
            return Response(status_code=499)

    return endpoint


def _permit(visit: Visit, route: Route) -> None:
    store, id = visit.site.store, visit.request.path_params.get("project")
    if route.right is Right.PUBLIC:
        return
    tokens = tokens_of(visit.request, visit.site.cookie)
    visit.judges = judges_of(store, tokens)
    if tokens and not visit.judges:
        client = visit.request.client.host if visit.request.client else ""
        if visit.site.cookie_attempts.is_reached(client):
            raise Refused(429)
        visit.site.cookie_attempts.count(client)
    found = store.project(id) if id is not None and visit.judges else None
    visit.judge = permit(route.right, visit.judges, id, found)
    if id is not None and found is None:
        raise HTTPException(404)
    visit.project = found


async def _read_form(visit: Visit) -> None:
    try:
        form = await visit.request.form(max_files=MOST_FILES, max_fields=200)
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
    visit.form, visit.files = fields, files


def _missing(site: Site) -> Callable[[Request, Exception], Response]:
    def handler(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        key = "error.missing" if status == 404 else "error.input"
        return Visit(site, request).render("message.html", status, title=text(key), message=text(f"{key}.help"))

    return handler


def _failed(site: Site) -> Callable[[Request, Exception], Response]:
    def handler(request: Request, error: Exception) -> Response:
        message = text("error.bug.help", kind=type(error).__name__)
        return Visit(site, request).render("message.html", 500, title=text("error.bug"), message=message)

    return handler
