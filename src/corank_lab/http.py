"""
Requests and answers of both servers: routes, refusals, limits of bodies and attempts, strict headers.

The Host check stops DNS rebinding: a page of another site whose name was pointed to this computer is refused. The
origin check stops forged forms: browsers state in Sec-Fetch-Site, or at least in Origin, where a form was sent from.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from corank.errors import InputError
from corank_lab.database.connections import DatabaseError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MEGABYTE = 1 << 20
SAFE = ("GET", "HEAD", "OPTIONS")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""Headers of every page; a page may replace the last one."""
TWO_LENGTHS = "The request has Content-Length and Transfer-Encoding, which may differ; send one of them."

_PORT = re.compile(r":\d{1,5}$")
_LENGTH = re.compile(r"[0-9]{1,15}")


class HTTPError(Exception):
    """A request is refused."""

    def __init__(self, status: int, sentence: str = "", wait: float | None = None) -> None:
        super().__init__(status, sentence)
        self.status, self.sentence, self.wait = status, sentence, wait

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        result = {} if self.wait is None else {"Retry-After": f"{max(1, int(self.wait + 0.999))}"}
        return result | ({"Connection": "close"} if self.sentence == TWO_LENGTHS else {})


Endpoint = Callable[[Request], Awaitable[Response]]
Refuse = Callable[[Request, HTTPError], Response]
"""Returns the answer to a request that is refused; the error that caused it is its ``__cause__``."""


def make_app(routes: Iterable[tuple[str, str, Endpoint]], refuse: Refuse) -> Starlette:
    """Return an application whose refusals, and faults of the input, the database or the disk, `refuse` answers."""

    def as_refusal(error: Exception) -> HTTPError:
        if isinstance(error, HTTPError):
            return error
        if isinstance(error, DatabaseError):
            return HTTPError(503, str(error), 1.0)
        if isinstance(error, InputError):
            return HTTPError(getattr(error, "status", 422), str(error))
        if isinstance(error, HTTPException):
            return HTTPError(error.status_code)
        return HTTPError(503 if isinstance(error, OSError) else 500)

    def handle(request: Request, error: Exception) -> Response:
        refusal = as_refusal(error)
        if refusal is not error:
            refusal.__cause__ = error
        return refuse(request, refusal)

    handlers: dict[Any, Any] = dict.fromkeys((HTTPError, InputError, HTTPException, OSError, 500), handle)
    handlers[ClientDisconnect] = lambda *_: Response(status_code=499)
    result = [Route(path, endpoint, methods=[method], name=f"{method} {path}") for method, path, endpoint in routes]
    return Starlette(routes=result, exception_handlers=handlers)


class SecurityMiddleware:
    """
    Checks requests before the application sees them, and completes answers.

    A request that states its length twice is refused: two servers in a row may each believe another statement, and the
    first then passes on a request that it never checked (request smuggling).

    hosts: names under which the server may be reached, besides this computer, without port; None for any name and any
        origin, if no browser signs in.
    """

    def __init__(
        self,
        app: ASGIApp,
        respond: Callable[[HTTPError], Response],
        limit_of: Callable[[str], int],
        *,
        hosts: Iterable[str] | None = None,
        headers: Mapping[str, str] = HEADERS,
    ) -> None:
        self.app, self._respond, self._limit_of, self._headers = app, respond, limit_of, headers
        self._hosts = None if hosts is None else {*LOOPBACK, *(name.lower() for name in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        limit = self._limit_of(scope["path"])
        try:
            self._check(Headers(scope=scope), scope["method"], limit)
        except HTTPError as error:
            await self._respond(error)(scope, receive, send_strictly)
            return
        await self.app(scope, _counted(receive, limit), send_strictly)

    def _check(self, headers: Headers, method: str, limit: int) -> None:
        if "content-length" in headers and "transfer-encoding" in headers:
            raise HTTPError(400, TWO_LENGTHS)
        if self._hosts is not None:
            self._check_origin(headers, method, self._hosts)
        length = headers.get("content-length", "0")
        if _LENGTH.fullmatch(length) is None or int(length) > limit:
            raise _too_large(limit)

    @staticmethod
    def _check_origin(headers: Headers, method: str, hosts: set[str]) -> None:
        host = headers.get("host", "").lower()
        if _PORT.sub("", host) not in hosts:
            raise HTTPError(421, "This address is not served; start corank lab with --allow-host and its name.")
        if method in SAFE:
            return
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        is_ours = origin is not None and origin.lower() in (f"http://{host}", f"https://{host}")
        if site is not None:
            # with the policy no-referrer, browsers send the origin of their own forms as null
            is_ours = site == "same-origin" and (is_ours or origin in (None, "null"))
        if not is_ours:
            raise HTTPError(403, "This form was sent from another site; open the page itself and try again.")


def _too_large(limit: int) -> HTTPError:
    return HTTPError(413, f"The body is larger than {limit // MEGABYTE} MB, the most that is accepted here; send less.")


def _counted(receive: Receive, limit: int) -> Receive:
    """Raise while reading a body that grows beyond the limit."""
    size = 0

    async def read() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise _too_large(limit)
        return message

    return read


class AttemptLimit:
    """Counts wrong tokens by client address; after `most` in `seconds` a client has to wait."""

    def __init__(self, most: int = 10, seconds: float = 60.0) -> None:
        self._most, self._seconds = most, seconds
        self._failures: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def count(self, request: Request) -> None:
        """Count a wrong token; raise `HTTPError` if too many came from the address."""
        client = request.client.host if request.client else ""
        with self._lock:
            failures = self._failures.setdefault(client, deque(maxlen=self._most))
            while failures and failures[0] < time.monotonic() - self._seconds:
                failures.popleft()
            if len(failures) >= self._most:
                raise HTTPError(429, "too many wrong keys came from this address; wait a minute.", self._seconds)
            failures.append(time.monotonic())
            if len(self._failures) > 10_000:  # addresses are cheap
                self._failures.pop(next(iter(self._failures)))


def download_headers(name: str) -> dict[str, Any]:
    """Return headers of a file to save: its name in letters, digits, dots and hyphens, and in UTF-8 (RFC 6266)."""
    stem, dot, suffix = (re.sub(r"[^A-Za-z0-9._-]+", "-", part) for part in name.rpartition("."))
    plain = f"{stem.strip('-.')[-90:] or 'file'}{dot}{suffix[-10:]}"
    value = f'attachment; filename="{plain}"'
    if not name.isascii():
        whole = re.sub(r"[^\w.-]+", "-", name).strip("-.")[-100:]
        value += f"; filename*=UTF-8''{quote(whole)}"
    return {"Content-Disposition": value}
