"""Who may see what, and what all pages need: templates, workspaces, requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from corank import __version__
from corank_lab.database.database import Database, Judge, Project
from corank_lab.http import AttemptLimit, HTTPError
from corank_lab.pages.imports import STAGES, TASKS, Importer
from corank_lab.pages.markup import one_line
from corank_lab.pages.uploads import UploadedFile
from corank_lab.pages.workspaces import Workspace, Workspaces

MISSING = "Not found"
ANSWERED = {
    "left": "left is better", "right": "right is better", "equal": "equally good", "bad": "both bad",
    "skip": "cannot say", "grade": "graded", "unrateable": "cannot be rated", "later": "put aside",
    "relevant": "included", "not": "excluded", "duplicate": "duplicate",
}  # fmt: skip
"""Words for answers, by action."""
FRAGMENT = "x-corank"
"""Header by which the script asks for the main part of the next page instead of a redirect."""


class Site:
    """What all pages share."""

    def __init__(self, store: Database, kinds: Mapping[str, type[Workspace]]) -> None:
        self.store = store
        self.workspaces = Workspaces(store, kinds)
        self.importer = Importer(store)
        self.cookie = cookie_name(store)
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
        """Return a page."""
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
        """Who makes the request."""
        assert self.judge is not None
        return self.judge

    @property
    def here(self) -> Project:
        """The project in the address."""
        assert self.project is not None
        return self.project

    @property
    def workspace(self) -> Workspace:
        """The workspace of the project, up to date."""
        return self.site.workspaces.get(self.here)

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page with the frame of this visitor."""
        frame = {
            "me": self.judge, "project": self.project, "is_owner": any(item.is_owner for item in self.judges),
            "is_fragment": FRAGMENT in self.request.headers, "here": self.request.url.path,
        }  # fmt: skip
        return self.site.render(template, status, **frame, **values)

    def go(self, address: str) -> Response:
        """Send the browser to another page."""
        return RedirectResponse(address, 303)


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


def cookie_name(store: Database) -> str:
    """Return the name of the cookie: cookies of one host are shared by all ports, so each database has its own."""
    return f"corank_{store.database_id[:8]}"


def tokens_of(request: Request, cookie: str) -> list[str]:
    """Return the tokens of a request, the newest first."""
    return [item for item in request.cookies.get(cookie, "").split(_SEPARATOR) if item][:MAX_TOKENS]


def judges_of(store: Database, tokens: Sequence[str]) -> list[Judge]:
    """Return the judges whose tokens are valid."""
    result = [store.judge_of(token) for token in tokens]
    return [judge for judge in result if judge is not None]


def permit(permission: Permission, judges: Sequence[Judge], project: str | None, found: Project | None) -> Judge | None:
    """Return the judge who makes a request, or raise `HTTPError`."""
    if permission is Permission.PUBLIC:
        return None
    if not judges:
        raise HTTPError(401)
    for judge in judges:
        is_mine = found is not None and not found.is_archived and judge.project == project
        if judge.is_owner or permission is Permission.MEMBER or (permission is Permission.JUDGE and is_mine):
            return judge
    raise HTTPError(403)


def set_tokens(response: Response, cookie: str, tokens: Sequence[str], *, is_secure: bool) -> None:
    """Set or delete the cookie."""
    kept = _SEPARATOR.join(list(dict.fromkeys(tokens))[:MAX_TOKENS])
    if kept:
        response.set_cookie(
            cookie, kept, max_age=COOKIE_DAYS * 86400, path="/", secure=is_secure, httponly=True, samesite="strict"
        )
    else:
        response.delete_cookie(cookie, path="/", secure=is_secure, httponly=True, samesite="strict")
