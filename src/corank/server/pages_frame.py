"""Pages of everyone: the link of a judge, the list of projects, the script and the style sheet."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from importlib.resources import files as package_files

from starlette.responses import PlainTextResponse, Response

from corank.errors import InputError
from corank.judging.sessions.transfer import import_project
from corank.server.access import set_tokens, tokens_of
from corank.server.markup import one_line
from corank.server.site import Visit
from corank.server.texts import text
from corank.server.uploads import sort_upload
from corank.server.workspaces import add_project as store_project

STATIC = {
    "app.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
}  # fmt: skip
"""Files of the package that are served, and their types."""
_PLACE = re.compile(r"/p/[\w-]+(/[a-z]+)?")
"""Where a link may lead."""


def enter(visit: Visit) -> Response:
    """Exchange the token of a link for a cookie."""
    client = visit.request.client.host if visit.request.client else ""
    if visit.site.attempts.is_reached(client):
        return visit.render("message.html", 429, title=text("error.wait"), message=text("error.wait.help"))
    token = visit.request.query_params.get("token", "")
    if visit.site.store.judge_of(token) is None:
        visit.site.attempts.count(client)
        return visit.render("message.html", 401, title=text("error.link"), message=text("error.link.help"))
    # a redirect would belong to the site that holds the link, and a strict cookie would not be sent with it
    place = visit.request.query_params.get("to", "")
    response = visit.render("enter.html", to=place if _PLACE.fullmatch(place) else "/")
    known = tokens_of(visit.request, visit.site.cookie)
    set_tokens(response, visit.site.cookie, [token, *known], is_secure=visit.request.url.scheme == "https")
    return response


def leave(visit: Visit) -> Response:
    """Forget all links that were opened in this browser."""
    response = visit.render("message.html", title=text("leave.title"), message=text("leave.help"))
    set_tokens(response, visit.site.cookie, [], is_secure=visit.request.url.scheme == "https")
    return response


def home(visit: Visit) -> Response:
    """List the projects of the visitor; the owner may add one."""
    return _home(visit)


def add_project(visit: Visit) -> Response:
    """Make a project of uploaded files."""
    kind = visit.form.get("kind", "")
    kinds = visit.site.workspaces.kinds
    try:
        if kind == "project" and visit.files:
            found = import_project(visit.site.store, visit.files[0].content, kinds)
            return visit.go(f"/p/{found.id}")
        if kind not in kinds:
            raise InputError(f"the kind of work is {kind!r}; choose one of {', '.join(kinds)}.")
        if not visit.files:
            raise InputError(text("error.no_file"))
        upload = sort_upload(visit.files)
        created = kinds[kind].create(upload)
    except InputError as error:
        return _home(visit, error=str(error), status=422)
    first = (upload.tables[0].name if upload.tables else next(iter(upload.images))).split(".")[0]
    name = one_line(visit.form.get("name", ""), 100) or one_line(first, 100) or text("project.unnamed")
    created = replace(created, files={**upload.images, **created.files})
    project = store_project(visit.site.store, kinds[kind], name, created)
    return visit.go(f"/p/{project.id}" + ("/import" if kind == "screen" else ""))


def static(visit: Visit) -> Response:
    """Serve a file of the package."""
    name = visit.request.path_params["name"]
    if name not in STATIC:
        return PlainTextResponse("not found\n", 404)
    headers = {"Cache-Control": "public, max-age=3600"}
    return Response(_content(name), media_type=STATIC[name], headers=headers)


def health(visit: Visit) -> Response:
    """Say that the server and its database work."""
    visit.site.store.project("")
    return PlainTextResponse("ok\n")


@cache
def _content(name: str) -> bytes:
    return package_files("corank.server").joinpath("static", name).read_bytes()


def _home(visit: Visit, error: str = "", status: int = 200) -> Response:
    is_owner = any(judge.is_owner for judge in visit.judges)
    mine = {judge.project for judge in visit.judges}
    projects = [one for one in visit.site.store.projects() if is_owner or (one.id in mine and not one.is_archived)]
    return visit.render("home.html", status, projects=projects, error=error, kinds=visit.site.workspaces.kinds)
