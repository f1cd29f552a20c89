"""The application: what all pages share, who may see what, one table of routes, one path that every request takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from corank import __version__
from corank.errors import InputError, reason
from corank_lab.database.connections import DatabaseError, LostError
from corank_lab.database.database import Database, Judge, Project
from corank_lab.http import MEGABYTE, SAFE, AttemptLimit, Endpoint, HTTPError, SecurityMiddleware, make_app
from corank_lab.pages.grading import GradeWorkspace
from corank_lab.pages.imports import STAGES, TASKS, Importer
from corank_lab.pages.markup import one_line
from corank_lab.pages.preferences import PreferenceWorkspace
from corank_lab.pages.screening import ScreenWorkspace
from corank_lab.pages.uploads import MAX_FILES, UploadedFile, file_name
from corank_lab.pages.workspaces import Workspace, Workspaces

KINDS: Mapping[str, type[Workspace]] = {
    kind.kind: kind for kind in (ScreenWorkspace, PreferenceWorkspace, GradeWorkspace)
}
"""Kinds of work."""
MISSING = "Not found"
ANSWERED = {
    "left": "left is better", "right": "right is better", "equal": "equally good", "bad": "both bad",
    "skip": "cannot say", "grade": "graded", "unrateable": "cannot be rated", "later": "put aside",
    "relevant": "included", "not": "excluded", "duplicate": "duplicate",
}  # fmt: skip
"""Words for answers, by action."""
FRAGMENT = "x-corank"  # header by which the script asks for the main part of the next page instead of a redirect


class Site:
    """What all pages share."""

    def __init__(self, store: Database, kinds: Mapping[str, type[Workspace]]) -> None:
        self.store = store
        self.workspaces = Workspaces(store, kinds)
        self.importer = Importer(store)
        # cookies of one host are shared by all ports, so each database has its own
        self.cookie = f"corank_{store.database_id[:8]}"
        self.attempts = AttemptLimit()
        # a browser with a replaced link sends its cookie with every request, so that more are allowed
        self.cookie_attempts = AttemptLimit(60)
        self.templates = Environment(
            loader=PackageLoader("corank_lab.pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
            lstrip_blocks=True, extensions=["jinja2.ext.i18n"],
        )  # fmt: skip
        self.templates.install_null_translations(newstyle=True)  # type: ignore[attr-defined]
        self.templates.globals.update(version=__version__, kinds=kinds, answered=ANSWERED, tasks=TASKS, stages=STAGES)
        self.templates.filters.update(one_line=one_line, share=_share, when=_when, seconds=_seconds, signed=_signed)
        self.templates.tests["begins"] = str.startswith

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        return HTMLResponse(self.templates.get_template(template).render(**values), status)


@dataclass
class PageRequest:
    """One request, after it was permitted."""

    site: Site  # what all pages share
    request: Request  # the request
    judge: Judge | None = None  # who makes it; None on public pages
    judges: Sequence[Judge] = ()  # all links that were opened in the browser
    project: Project | None = None  # the project in the address
    form: Mapping[str, str] = field(default_factory=dict)  # text fields
    files: Sequence[UploadedFile] = ()  # uploaded files

    @property
    def me(self) -> Judge:
        assert self.judge is not None
        return self.judge

    @property
    def here(self) -> Project:
        assert self.project is not None
        return self.project

    @property
    def workspace(self) -> Workspace:
        return self.site.workspaces.get(self.here)

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        frame = {
            "me": self.judge, "project": self.project, "is_owner": any(item.is_owner for item in self.judges),
            "is_fragment": FRAGMENT in self.request.headers, "here": self.request.url.path,
        }  # fmt: skip
        return self.site.render(template, status, **frame, **values)

    def go(self, address: str) -> Response:
        return RedirectResponse(address, 303)

    @property
    def tokens(self) -> list[str]:
        """The tokens of the browser, the newest first."""
        return [item for item in self.request.cookies.get(self.site.cookie, "").split(_SEPARATOR) if item][:MAX_TOKENS]

    def set_tokens(self, response: Response, tokens: Sequence[str]) -> None:
        value = _SEPARATOR.join(list(dict.fromkeys(tokens))[:MAX_TOKENS])
        response.set_cookie(
            self.site.cookie, value, max_age=COOKIE_DAYS * 86400 if value else 0, path="/",
            secure=self.request.url.scheme == "https", httponly=True, samesite="strict",
        )  # fmt: skip


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _when(time: str) -> str:
    """Return a time in UTC; the script shows it in the reader's time zone."""
    return datetime.fromisoformat(time).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _signed(value: float) -> str:
    """Return a number with its sign; a rounded zero has none."""
    shown = f"{value:+.2f}".replace("-", "−")
    return "0.00" if float(f"{value:.2f}") == 0.0 else shown


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


MAX_TOKENS = 12
COOKIE_DAYS = 60
_SEPARATOR = "~"


class Permission(Enum):
    """What a route requires."""

    PUBLIC = "nothing"
    MEMBER = "any valid link"
    JUDGE = "a link of this project, or the owner's"
    OWNER = "the owner's link"


class Route(NamedTuple):
    """One address."""

    method: str  # GET or POST
    path: str  # pattern of the address
    permission: Permission  # what it requires
    page: Callable[[PageRequest], Response]  # function of a `PageRequest`


def make_routes() -> tuple[Route, ...]:
    """Return all addresses."""
    from corank_lab.pages import pages_everyone as everyone
    from corank_lab.pages import pages_owner as owner

    routes = (
        Route("GET", "/health", Permission.PUBLIC, everyone.health),
        Route("GET", "/static/{name}", Permission.PUBLIC, everyone.static),
        Route("GET", "/enter", Permission.PUBLIC, everyone.enter),
        Route("POST", "/leave", Permission.MEMBER, everyone.leave),
        Route("GET", "/", Permission.MEMBER, everyone.home),
        Route("POST", "/projects", Permission.OWNER, everyone.add_project),
        Route("GET", "/imports/{upload}", Permission.OWNER, everyone.import_progress),
        Route("POST", "/imports/{upload}", Permission.OWNER, everyone.decide_import),
        Route("GET", "/p/{project}", Permission.OWNER, owner.overview),
        Route("POST", "/p/{project}/settings", Permission.OWNER, owner.change_settings),
        Route("GET", "/p/{project}/delete", Permission.OWNER, owner.confirm_delete),
        Route("POST", "/p/{project}/delete", Permission.OWNER, owner.delete),
        Route("POST", "/p/{project}/judges", Permission.OWNER, owner.add_judge),
        Route("POST", "/p/{project}/judges/{judge}/link", Permission.OWNER, owner.renew_link),
        Route("POST", "/p/{project}/judges/{judge}/revoke", Permission.OWNER, owner.revoke_link),
        Route("POST", "/p/{project}/answers", Permission.OWNER, owner.import_answers),
        Route("POST", "/p/{project}/settle", Permission.OWNER, owner.settle),
        Route("GET", "/p/{project}/import", Permission.OWNER, owner.import_summary),
        Route("POST", "/p/{project}/prior", Permission.OWNER, owner.know_before),
        Route("GET", "/p/{project}/conflicts", Permission.OWNER, owner.conflicts),
        Route("GET", "/p/{project}/report", Permission.OWNER, owner.report),
        Route("POST", "/p/{project}/train", Permission.OWNER, owner.train),
        Route("GET", "/p/{project}/train", Permission.OWNER, owner.training_report),
        Route("GET", "/p/{project}/export/{name}", Permission.OWNER, owner.export),
        Route("GET", "/p/{project}/judge", Permission.JUDGE, everyone.question),
        Route("POST", "/p/{project}/judge", Permission.JUDGE, everyone.answer),
        Route("POST", "/p/{project}/undo", Permission.JUDGE, everyone.undo),
        Route("GET", "/p/{project}/history", Permission.JUDGE, everyone.history),
        Route("GET", "/p/{project}/similar", Permission.JUDGE, owner.similar),
        Route("GET", "/p/{project}/files/{name}", Permission.JUDGE, everyone.image),
    )
    pages = {route.path for route in routes if route.method == "GET"} | {"/leave"}
    return (
        *routes,
        Route("GET", "/leave", Permission.PUBLIC, everyone.after_form),
        *(route._replace(method="GET", page=everyone.after_form) for route in routes if route.path not in pages),
    )


UPLOAD_LIMIT = 200 * MEGABYTE  # largest size of a request that uploads files
FORM_LIMIT = MEGABYTE  # largest size of any other request
UPLOADS = ("/projects", "/answers", "/prior")  # paths that take files


def create_app(
    store: Database, *, hosts: Iterable[str] = (), kinds: Mapping[str, type[Workspace]] = KINDS
) -> SecurityMiddleware:
    """Return the application."""
    site = Site(store, kinds)
    app = make_app(
        [(route.method, route.path, _endpoint(site, route)) for route in make_routes()],
        lambda request, error: _refuse(getattr(request.state, "page", None) or PageRequest(site, request), error),
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
        page = request.state.page = PageRequest(site, request)
        await run_in_threadpool(_permit, page, route.permission)
        if route.method not in SAFE:
            await _read_form(page)
        try:
            return await run_in_threadpool(route.page, page)
        except Exception:
            if page.project is None or await run_in_threadpool(site.store.project, page.project.id) is not None:
                raise
            raise HTTPError(404) from None  # another request deleted the project meanwhile

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
    if error.status == 404 and page.judge is None:  # an address without a route: who is here sees the way back
        with suppress(HTTPError, DatabaseError):
            _permit(page, Permission.MEMBER)
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


def _permit(page: PageRequest, permission: Permission) -> None:
    """Find out who makes a request, and about which project, or raise `HTTPError`."""
    site, id = page.site, page.request.path_params.get("project")
    if permission is Permission.PUBLIC:
        return
    page.judges = [judge for token in page.tokens if (judge := site.store.judge_of(token)) is not None]
    if not page.judges:
        if page.tokens:
            site.cookie_attempts.count(page.request)
        raise HTTPError(401)
    page.project = None if id is None else site.store.project(id)
    is_open = page.project is not None and not page.project.is_archived
    page.judge = next(
        (
            judge
            for judge in page.judges
            if judge.is_owner
            or permission is Permission.MEMBER
            or (permission is Permission.JUDGE and is_open and judge.project == id)
        ),
        None,
    )
    if page.judge is None:
        raise HTTPError(403)
    if id is not None and page.project is None:
        raise HTTPError(404)


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
