"""Pages of everyone: the link of a judge, the list of projects, the script and the style sheet."""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files as package_files

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from corank.errors import InputError
from corank_lab.database.imports import add_import, find_import, unfinished_imports
from corank_lab.database.store import StoreError
from corank_lab.pages.access import set_tokens, tokens_of
from corank_lab.pages.imports import SAVED, read_small
from corank_lab.pages.markup import one_line
from corank_lab.pages.site import Visit
from corank_lab.pages.texts import text

STATIC = {
    "app.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
}  # fmt: skip
"""Files of the package that are served, and their types."""
_PLACE = re.compile(r"/p/[\w-]+(/[a-z]+)?")
"""Where a link may lead."""


def enter(visit: Visit) -> Response:
    """Exchange the token of a link for a cookie."""
    client = visit.request.client.host if visit.request.client else ""
    token = visit.request.query_params.get("token", "")
    judge = visit.site.store.judge_of(token)
    if judge is None:
        # a valid link always works: several people may share an address, and tokens are too long to be guessed
        if visit.site.attempts.is_reached(client):
            return visit.render("message.html", 429, title=text("error.wait"), message=text("error.wait.help"))
        visit.site.attempts.count(client)
        return visit.render("message.html", 401, title=text("error.link"), message=text("error.link.help"))
    with suppress(StoreError):  # a full disk does not lock anybody out
        visit.site.store.mark_opened(judge.id)
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


def after_form(visit: Visit) -> Response:
    """Go to the page with a form; a browser asks for this address if what the form showed is opened again."""
    _, first, *rest = visit.request.url.path.split("/")
    if first != "p":
        return visit.go("/")
    return visit.go(f"/p/{visit.here.id}{ {'judges': '#judges', 'undo': '/judge'}.get(rest[1], '') }")


def home(visit: Visit) -> Response:
    """List the projects of the visitor; the owner may add one."""
    return _home(visit)


def add_project(visit: Visit) -> Response:
    """Make a project of uploaded files."""
    kind, files, store = visit.form.get("kind", ""), visit.files, visit.site.store
    kinds = visit.site.workspaces.kinds
    name = one_line(visit.form.get("name", ""), 100)
    # the form and its files: sending both again, as after a double click, does not make another project
    upload = sha256(visit.form.get("client_id", secrets.token_urlsafe()).encode("utf-8", "replace"))
    for part in (kind, name, *(one for file in files for one in (file.name, sha256(file.content).hexdigest()))):
        upload.update(f"\n{part}".encode("utf-8", "replace"))
    id = upload.hexdigest()[:24]
    try:
        project = read_small(store, kinds, kind, name, files, id)
        if project is None:
            add_import(store, id, kind, name, files)
            visit.site.importer.begin(id)
            return visit.go(f"/imports/{id}")
    except StoreError:
        raise
    except InputError as error:
        return _home(visit, error=str(error), status=422)
    return visit.go(_start(project.kind, project.id, kind))


def import_progress(visit: Visit) -> Response:
    """Show how far an upload is; then lead to its project, or say why there is none."""
    found = find_import(visit.site.store, visit.request.path_params["upload"])
    if found is None:
        raise HTTPException(404)
    if found.project is not None:
        project = visit.site.store.project(found.project)
        return visit.go(_start(project.kind if project else "", found.project, found.kind))
    if found.error:
        return visit.render("message.html", 422, title=text("upload.failed"), message=found.error)
    return visit.render("import.html", found=found)


def _start(kind: str, project: str, uploaded: str) -> str:
    """Return the first page of a new project."""
    return f"/p/{project}" + ("/import" if kind == "screen" and uploaded != SAVED else "")


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
    return package_files("corank_lab.pages").joinpath("static", name).read_bytes()


def _home(visit: Visit, error: str = "", status: int = 200) -> Response:
    is_owner = any(judge.is_owner for judge in visit.judges)
    mine = {judge.project for judge in visit.judges}
    projects = [one for one in visit.site.store.projects() if is_owner or (one.id in mine and not one.is_archived)]
    imports = unfinished_imports(visit.site.store) if is_owner else []
    return visit.render(
        "home.html", status, projects=projects, error=error, kinds=visit.site.workspaces.kinds, imports=imports,
        client_id=secrets.token_urlsafe(9),
    )  # fmt: skip
