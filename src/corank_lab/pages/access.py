"""
Who may do what: tokens in cookies, and the permission that each route requires.

The cookie holds the tokens of all links that were opened in this browser, the newest first: one person may be the owner
and judge of several projects. A route of a judge takes the newest link that is valid for the project; a route of the
owner takes the owner's.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from starlette.requests import Request
from starlette.responses import Response

from corank_lab.database.store import AnswerStore, Judge, Project
from corank_lab.http import HTTPError

MOST_TOKENS = 12
COOKIE_DAYS = 60
_SEPARATOR = "~"


class Permission(Enum):
    """What a route requires."""

    PUBLIC = "nothing"
    MEMBER = "any valid link"
    JUDGE = "a link of this project, or the owner's"
    OWNER = "the owner's link"


def cookie_name(store: AnswerStore) -> str:
    """Return the name of the cookie: cookies of one host are shared by all ports, so each database has its own."""
    return f"corank_{store.database_id[:8]}"


def tokens_of(request: Request, cookie: str) -> list[str]:
    """Return the tokens of a request, the newest first."""
    return [one for one in request.cookies.get(cookie, "").split(_SEPARATOR) if one][:MOST_TOKENS]


def judges_of(store: AnswerStore, tokens: Sequence[str]) -> list[Judge]:
    """Return the judges whose tokens are valid."""
    found = [store.judge_of(token) for token in tokens]
    return [judge for judge in found if judge is not None]


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
    kept = _SEPARATOR.join(list(dict.fromkeys(tokens))[:MOST_TOKENS])
    if kept:
        response.set_cookie(
            cookie, kept, max_age=COOKIE_DAYS * 86400, path="/", secure=is_secure, httponly=True, samesite="strict"
        )
    else:
        response.delete_cookie(cookie, path="/", secure=is_secure, httponly=True, samesite="strict")
