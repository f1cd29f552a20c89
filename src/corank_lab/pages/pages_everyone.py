"""Pages of everyone: links, projects, uploads; and of judges: the next question and the answers so far."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.responses import PlainTextResponse, Response

from corank.errors import InputError
from corank_lab.database.connections import DatabaseError
from corank_lab.database.database import Database
from corank_lab.http import HTTPError
from corank_lab.pages import imports
from corank_lab.pages.app import FRAGMENT, MISSING, PageRequest
from corank_lab.pages.imports import TASKS, Import, NewUpload
from corank_lab.pages.markup import one_line
from corank_lab.pages.uploads import (
    ANY,
    LEFT_OUT,
    MAX_SHOWN_COLUMNS,
    ROLES,
    SAVED,
    UploadedFile,
    image_type,
    preview_files,
    sort_upload,
    with_roles,
)
from corank_lab.pages.workspaces import SaveResult

STATIC = {
    "app.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
}  # fmt: skip
"""Files of the package that are served, and their types."""
_PLACE = re.compile(r"/p/[\w-]+(/[a-z]+)?")  # where a link may lead


def enter(page: PageRequest) -> Response:
    """Exchange the token of a link for a cookie."""
    token = page.request.query_params.get("token", "")
    judge = page.site.store.judge_of(token)
    if judge is None:
        # a valid link always works: several people may share an address, and tokens are too long to be guessed
        page.site.attempts.count(page.request)
        raise HTTPError(401)
    with suppress(DatabaseError):  # a full disk does not lock anybody out
        page.site.store.mark_opened(judge.id)
    # a redirect would belong to the site that holds the link, and a strict cookie would not be sent with it
    place = page.request.query_params.get("to", "")
    response = page.render("enter.html", to=place if _PLACE.fullmatch(place) else "/")
    page.set_tokens(response, [token, *page.tokens])
    return response


def leave(page: PageRequest) -> Response:
    """Forget all links that were opened in this browser."""
    sentence = "This browser has forgotten all links. Open your link again to continue; your answers are saved."
    response = page.render("message.html", title="Signed out", message=sentence)
    page.set_tokens(response, [])
    return response


def after_form(page: PageRequest) -> Response:
    """Go to the page with a form; a browser asks for this address if what the form showed is opened again."""
    _, first, *rest = page.request.url.path.split("/")
    if first != "p":
        return page.go("/")
    return page.go(f"/p/{page.here.id}{ {'judges': '#judges', 'undo': '/judge'}.get(rest[1], '') }")


def add_project(page: PageRequest) -> Response:
    """Make a project of uploaded files."""
    kind, files, store = page.form.get("kind", ""), page.files, page.site.store
    name = one_line(page.form.get("name", ""), 100)
    # the form and its files: sending both again, as after a double click, does not make another project
    upload = sha256(page.form.get("client_id", secrets.token_urlsafe()).encode("utf-8", "replace"))
    for part in (kind, name, *(item for file in files for item in (file.name, sha256(file.content).hexdigest()))):
        upload.update(f"\n{part}".encode("utf-8", "replace"))
    id = upload.hexdigest()[:24]
    if kind == ANY and files:
        imports.add_import(store, NewUpload(id, ANY, name or one_line(files[0].name.split(".")[0], 100), files))
        return page.go(f"/imports/{id}")
    try:
        return _make_project(page, NewUpload(id, kind, name, files), imports.add_import)
    except DatabaseError:
        raise
    except InputError as error:
        return home(page, str(error), 422)


def _make_project(page: PageRequest, upload: NewUpload, keep: Callable[[Database, NewUpload], None]) -> Response:
    """Make a project of files at once, or keep them for the importer if they are large; go to its first page."""
    project = imports.read_small(page.site.store, page.site.workspaces.kinds, upload)
    if project is not None:
        return page.go(_start(project.kind, project.id, upload.kind))
    keep(page.site.store, upload)
    page.site.importer.begin(upload.id)
    return page.go(f"/imports/{upload.id}")


def import_progress(page: PageRequest) -> Response:
    """Show how far an upload is; then lead to its project, or say why there is none."""
    result = imports.find_import(page.site.store, page.request.path_params["upload"])
    if result is None:
        raise HTTPError(404)
    if result.project is not None:
        project = page.site.store.project(result.project)
        return page.go(_start(project.kind if project else "", result.project, result.kind))
    if result.error:
        return page.render("message.html", 422, title="The files were not imported", message=result.error)
    return _preview(page, result) if result.kind == ANY else page.render("import.html", upload=result)


def decide_import(page: PageRequest) -> Response:
    """Make a project of an upload as the owner decided: for a task, with corrected roles of columns; or discard it."""
    store = page.site.store
    result = imports.find_import(store, page.request.path_params["upload"])
    if result is None:
        raise HTTPError(404)
    if result.kind != ANY or result.project is not None or result.error:  # decided before, as after a double click
        return page.go(f"/imports/{result.id}")
    if "discard" in page.form:
        imports.fail_import(store, result.id, "The files were discarded, so nothing was imported.")
        return page.go("/")
    task, name = page.form.get("kind", ""), one_line(page.form.get("name", ""), 100)
    try:
        files = _corrected(page, TASKS[task].kind if task in TASKS else task, result)
        return _make_project(page, NewUpload(result.id, task, name, files), imports.decide)
    except DatabaseError:
        raise
    except InputError as error:
        return _preview(page, result, str(error), 422)


def _corrected(page: PageRequest, kind: str, waiting: Import) -> list[UploadedFile]:
    """Return the files of an upload with the columns that the form renames."""
    stored = imports.files_of_import(page.site.store, waiting.id)
    if not any(value for name, value in page.form.items() if name.startswith("role-")):
        return stored
    recognised, previews = preview_files(stored)
    if recognised == SAVED:
        return stored
    upload = sort_upload(stored)
    if not upload.tables:
        return stored
    tables = []
    for number, (file, preview) in enumerate(zip(upload.tables, previews, strict=True)):
        roles = {}
        for place, column in enumerate(preview.columns[:MAX_SHOWN_COLUMNS]):
            work, _, role = page.form.get(f"role-{number}-{place}", "").partition(".")
            if work == LEFT_OUT:
                roles[column] = LEFT_OUT
            elif work == kind and role in ROLES[kind] and role != preview.role_of(kind, column):
                roles[column] = role
        tables.append(with_roles(file, kind, roles))
    return [*tables, *(UploadedFile(name, content) for name, (_, content) in upload.images.items())]


def _preview(page: PageRequest, waiting: Import, error: str = "", status: int = 200) -> Response:
    stored = imports.files_of_import(page.site.store, waiting.id)
    try:
        kind, previews = preview_files(stored)
    except InputError as reason:  # such as a damaged archive
        kind, previews, error = "", [], error or str(reason)
    tasks = {name: task for name, task in TASKS.items() if (task.kind == SAVED) == (kind == SAVED)}
    task = next((name for name in tasks if tasks[name].kind == kind), kind)
    first = previews[0].name.split(".")[0] if previews and kind != SAVED else ""
    return page.render(
        "preview.html", status, error=error, files=previews, offered=tasks, kind=page.form.get("kind", task),
        recognised=kind, roles=ROLES, shown=MAX_SHOWN_COLUMNS, form=page.form,
        name=page.form.get("name", waiting.name or first),
    )  # fmt: skip


def _start(kind: str, project: str, uploaded: str) -> str:
    """Return the first page of a new project."""
    return f"/p/{project}" + ("/import" if kind == "screen" and uploaded != SAVED else "")


def static(page: PageRequest) -> Response:
    """Serve a file of the package."""
    name = page.request.path_params["name"]
    if name not in STATIC:
        return PlainTextResponse("not found\n", 404)
    headers = {"Cache-Control": "public, max-age=3600"}
    return Response(_content(name), media_type=STATIC[name], headers=headers)


def health(page: PageRequest) -> Response:
    """Say that the server and its database work."""
    page.site.store.project("")
    return PlainTextResponse("ok\n")


@cache
def _content(name: str) -> bytes:
    content = package_files("corank_lab.pages").joinpath("static", name).read_bytes()
    if name != "app.css":
        return content
    from corank.comparison import STYLE  # colours and charts are those of the reports

    return STYLE.encode() + content


def home(page: PageRequest, error: str = "", status: int = 200) -> Response:
    """List the projects of the visitor; the owner may add one."""
    is_owner = any(judge.is_owner for judge in page.judges)
    mine = {judge.project for judge in page.judges}
    projects = [item for item in page.site.store.projects() if is_owner or (item.id in mine and not item.is_archived)]
    waiting = imports.unfinished_imports(page.site.store) if is_owner else []
    return page.render(
        "home.html", status, projects=projects, error=error, imports=waiting, client_id=secrets.token_urlsafe(9),
        offered={name: task for name, task in TASKS.items() if task.kind in page.site.workspaces.kinds},
        folder="" if "://" in page.site.store.address else "/".join(Path(page.site.store.address).parts[-2:]),
    )  # fmt: skip


MAX_ROWS = 500
ANSWERED_BEFORE = "This question was answered already, so nothing was changed. Use “My answers” to change an answer."
UNANSWERED = "unread"  # filter that lists what the judge has not answered


def answer(page: PageRequest) -> Response:
    """Store an answer and show the next question. An answer that is sent twice counts once."""
    return _changed(page, page.workspace.save(page.me.name, page.form))


def undo(page: PageRequest) -> Response:
    """Withdraw the last answer and show its question again."""
    return _changed(page, page.workspace.undo(page.me.name, page.form))


def history(page: PageRequest) -> Response:
    """List the visitor's own answers."""
    workspace = page.workspace
    wanted = page.request.query_params.get("find", "").strip()[:200]
    show = page.request.query_params.get("show", "")
    mine = workspace.history(page.me.name)
    rows = workspace.unanswered(page.me.name) if show == UNANSWERED else mine
    n_all = len(rows)
    for word in wanted.casefold().split():
        rows = [row for row in rows if word in row["text"].casefold()]
    if show not in ("", UNANSWERED):
        rows = [row for row in rows if show in _filters(row)]
    return page.render(
        f"{workspace.kind}_history.html", progress=workspace.progress(page.me.name), rows=rows[:MAX_ROWS],
        n_all=n_all, n_found=len(rows), find=wanted, show=show, most=MAX_ROWS,
        filters=Counter(rule for row in mine for rule in _filters(row)),
    )  # fmt: skip


def image(page: PageRequest) -> Response:
    """Serve an image of the project, with the type that its content has."""
    result = page.site.store.file(page.here.id, page.request.path_params["name"])
    kind = None if result is None else image_type(result[1])
    if result is None or kind is None:
        return PlainTextResponse("not found\n", 404)
    headers = {
        "Cache-Control": "private, max-age=86400",
        "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    }
    return Response(result[1], media_type=kind, headers=headers)


def _filters(row: Mapping[str, Any]) -> list[str]:
    """Return the filters that show an answer: by what was answered, by reason and by tag."""
    reason = [f"reason:{row['reason']}"] if row.get("reason") else []
    return [str(row["action"]), *reason, *(f"tag:{tag}" for tag in row.get("tags", ()))]


def _changed(page: PageRequest, saved: SaveResult) -> Response:
    notice = "" if saved.is_new else ANSWERED_BEFORE
    if FRAGMENT in page.request.headers:
        return question(page, saved.item, notice)
    place = {} if saved.item is None else {"item": saved.item}
    query = urlencode(place | ({} if saved.is_new else {"again": "1"}))
    return page.go(f"/p/{page.here.id}/judge" + (f"?{query}" if query else "") + ("#current" if place else ""))


def question(page: PageRequest, item: str | None = None, notice: str = "") -> Response:
    """Show the next question, or an earlier one to change."""
    workspace = page.workspace
    item = item or page.request.query_params.get("item")
    notice = notice or (ANSWERED_BEFORE if "again" in page.request.query_params else "")
    progress = workspace.progress(page.me.name)
    try:
        result = workspace.question(page.me.name, item)
    except DatabaseError:
        raise
    except InputError as error:
        return page.render("message.html", 404, title=MISSING, message=str(error))
    if result is None:
        return page.render("done.html", progress=progress, notice=notice)
    return page.render(result.pop("template"), progress=progress, notice=notice, **result)
