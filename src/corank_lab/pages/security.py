"""
What every request passes: host, origin and size are checked, and every answer carries strict headers.

The Host check stops DNS rebinding: a page of another site whose name was pointed to this computer is refused. The
origin check stops forged forms: browsers state in Sec-Fetch-Site, or at least in Origin, where a form was sent from.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MEGABYTE = 1 << 20
UPLOAD_LIMIT = 200 * MEGABYTE
"""Largest size of a request that uploads files."""
FORM_LIMIT = MEGABYTE
"""Largest size of any other request."""
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
"""Headers of every answer; a page may replace the last one."""

_PORT = re.compile(r":\d{1,5}$")


TWO_LENGTHS = "The request has Content-Length and Transfer-Encoding, which may differ; send one of them."


def has_two_lengths(headers: Headers) -> bool:
    """
    Return whether a request states its length twice.

    Two servers in a row may each believe another statement, and the first then passes on a request that it never
    checked (request smuggling).
    """
    return "content-length" in headers and "transfer-encoding" in headers


class TooLarge(Exception):
    """A request is larger than allowed."""


class Gate:
    """
    Middleware that checks requests and completes answers.

    app: the application behind it.
    hosts: names under which the server may be reached, without port.
    upload_paths: ends of paths that take files.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], upload_paths: tuple[str, ...]) -> None:
        self.app, self._hosts, self._upload_paths = app, {*LOOPBACK, *(one.lower() for one in hosts)}, upload_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, method = Headers(scope=scope), scope["method"]

        async def send_strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answer.setdefault(name, value)
            await send(message)

        refusal = (400, TWO_LENGTHS) if has_two_lengths(headers) else self._refusal(headers, method)
        limit = UPLOAD_LIMIT if scope["path"].endswith(self._upload_paths) else FORM_LIMIT
        length = headers.get("content-length", "0")
        if refusal is None and (not length.isdecimal() or int(length) > limit):
            refusal = (413, f"The request is larger than {limit // MEGABYTE} MB, the most that is accepted here.")
        if refusal is not None:
            closing = {"Connection": "close"} if refusal[0] == 400 else {}
            await PlainTextResponse(refusal[1] + "\n", refusal[0], closing)(scope, receive, send_strictly)
            return
        await self.app(scope, _counted(receive, limit), send_strictly)

    def _refusal(self, headers: Headers, method: str) -> tuple[int, str] | None:
        host = headers.get("host", "").lower()
        if _PORT.sub("", host) not in self._hosts:
            return 421, "This address is not served; start corank lab with --allow-host and its name."
        if method in SAFE:
            return None
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        is_ours = origin is not None and origin.lower() in (f"http://{host}", f"https://{host}")
        if site is not None:
            # with the policy no-referrer, browsers send the origin of their own forms as null
            is_ours = site == "same-origin" and (is_ours or origin in (None, "null"))
        return None if is_ours else (403, "This form was sent from another site; open the page itself and try again.")


def _counted(receive: Receive, limit: int) -> Receive:
    """Raise while reading a body that grows beyond the limit."""
    size = 0

    async def read() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise TooLarge
        return message

    return read


class AttemptLimit:
    """
    Counts wrong tokens by client address.

    most: number of wrong tokens in `seconds` after which a client has to wait.
    """

    def __init__(self, most: int = 10, seconds: float = 60.0) -> None:
        self._most, self._seconds = most, seconds
        self._failures: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def is_reached(self, client: str) -> bool:
        """Return whether a client has to wait."""
        with self._lock:
            return len(self._recent(client)) >= self._most

    def count(self, client: str) -> None:
        """Count a wrong token."""
        with self._lock:
            self._recent(client).append(time.monotonic())
            if len(self._failures) > 10_000:  # addresses are cheap
                self._failures.pop(next(iter(self._failures)))

    def _recent(self, client: str) -> deque[float]:
        failures = self._failures.setdefault(client, deque(maxlen=self._most))
        while failures and failures[0] < time.monotonic() - self._seconds:
            failures.popleft()
        return failures


def download_headers(name: str) -> dict[str, Any]:
    """
    Return headers of a file to save, with its name as RFC 6266 wants it.

    Other characters than letters, digits, dots and hyphens are replaced; a name with other letters is added in UTF-8.
    """
    stem, dot, suffix = (re.sub(r"[^A-Za-z0-9._-]+", "-", part) for part in name.rpartition("."))
    plain = f"{stem.strip('-.')[-90:] or 'file'}{dot}{suffix[-10:]}"
    value = f'attachment; filename="{plain}"'
    if not name.isascii():
        whole = re.sub(r"[^\w.-]+", "-", name).strip("-.")[-100:]
        value += f"; filename*=UTF-8''{quote(whole)}"
    return {"Content-Disposition": value}
