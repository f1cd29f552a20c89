"""Pages of judges: the next question, the answers so far, and images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.responses import PlainTextResponse, Response

from corank.errors import InputError
from corank_lab.database.connections import DatabaseError
from corank_lab.pages.site import FRAGMENT, PageRequest
from corank_lab.pages.texts import text
from corank_lab.pages.uploads import image_type
from corank_lab.pages.workspaces import SaveResult

MOST_ROWS = 500
UNANSWERED = "unread"
"""Filter that lists what the judge has not answered."""


def question(page: PageRequest) -> Response:
    """Show the next question, or an earlier one to change."""
    return _question(page, item=page.request.query_params.get("item"))


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
        f"{workspace.kind}_history.html", progress=workspace.progress(page.me.name), rows=rows[:MOST_ROWS],
        n_all=n_all, n_found=len(rows), find=wanted, show=show, most=MOST_ROWS,
        filters=Counter(one for row in mine for one in _filters(row)),
    )  # fmt: skip


def image(page: PageRequest) -> Response:
    """Serve an image of the project, with the type that its content has."""
    found = page.site.store.file(page.here.id, page.request.path_params["name"])
    kind = None if found is None else image_type(found[1])
    if found is None or kind is None:
        return PlainTextResponse("not found\n", 404)
    headers = {
        "Cache-Control": "private, max-age=86400",
        "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    }
    return Response(found[1], media_type=kind, headers=headers)


def _filters(row: Mapping[str, Any]) -> list[str]:
    """Return the filters that show an answer: by what was answered, by reason and by tag."""
    reason = [f"reason:{row['reason']}"] if row.get("reason") else []
    return [str(row["action"]), *reason, *(f"tag:{tag}" for tag in row.get("tags", ()))]


def _changed(page: PageRequest, saved: SaveResult) -> Response:
    notice = "" if saved.is_new else text("answer.twice")
    if FRAGMENT in page.request.headers:
        return _question(page, saved.item, notice)
    place = {} if saved.item is None else {"item": saved.item}
    query = urlencode(place | ({} if saved.is_new else {"again": "1"}))
    return page.go(f"/p/{page.here.id}/judge" + (f"?{query}" if query else "") + ("#current" if place else ""))


def _question(page: PageRequest, item: str | None = None, notice: str = "") -> Response:
    workspace = page.workspace
    notice = notice or (text("answer.twice") if "again" in page.request.query_params else "")
    progress = workspace.progress(page.me.name)
    try:
        found = workspace.question(page.me.name, item)
    except DatabaseError:
        raise
    except InputError as error:
        return page.render("message.html", 404, title=text("error.missing"), message=str(error))
    if found is None:
        return page.render("done.html", progress=progress, notice=notice)
    return page.render(found.pop("template"), progress=progress, notice=notice, **found)
