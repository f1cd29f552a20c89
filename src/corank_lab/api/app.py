"""
The service over HTTP: one path that every request takes, and one short function for each address.

A request is answered after its events are on the disk. Requests that the queue of the database cannot take are refused
with 503 before anything is queued, so nothing that was acknowledged is ever dropped.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from corank import __version__
from corank_lab.api import requests
from corank_lab.api.log import Keys, NewEvent
from corank_lab.api.requests import parse, parse_feedback
from corank_lab.api.service import Service
from corank_lab.http import HEADERS, MEGABYTE, AttemptLimit, HTTPError, SecurityMiddleware, make_app

T = TypeVar("T")
MAX_REQUEST = 8 * MEGABYTE  # largest number of bytes of a request
MAX_WAITING = 2000  # number of writes that may wait for the database before requests are refused
_BUCKETS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.015, 0.03, 0.1, 1.0)
_LOGGER = logging.getLogger("corank_lab.api")


class Call(NamedTuple):
    """One request."""

    app: ServiceApp
    request: Request
    data: (
        Any  # the body as a struct, None without one; of feedback a list of pairs: each event as sent, and as a struct
    )


class ServiceApp:
    """The application."""

    def __init__(self, service: Service, keys: Keys) -> None:
        self.service, self.keys = service, keys
        self._wrong_keys = AttemptLimit(most=50)
        self.n_requests: Counter[tuple[str, int]] = Counter()
        self.rank_times = [0] * (len(_BUCKETS) + 1)
        self.rank_seconds = 0.0
        self.n_events: Counter[str] = Counter()
        inner = make_app(
            [(operation.method, operation.path, self._endpoint(operation)) for operation in OPERATIONS], self._refuse
        )
        inner.router.redirect_slashes = False
        self.asgi = SecurityMiddleware(inner, _refusal, lambda path: MAX_REQUEST, headers=_HEADERS)

    def _endpoint(self, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        kind, decoder = operation.request, msgspec.json.Decoder(operation.request)

        def read(content: bytes) -> Any:
            if kind is None:
                return None
            return parse_feedback(content) if kind is requests.Feedback else parse(content, decoder)

        async def endpoint(request: Request) -> Response:
            began, request.state.operation = time.perf_counter(), operation.name
            await self._permit(request, operation)
            content = await request.body() if operation.method == "POST" else b""
            result = await operation.handler(Call(self, request, read(content)))
            self.n_requests[operation.name, 200] += 1
            if operation.name == "rank":
                took = time.perf_counter() - began
                self.rank_times[bisect_left(_BUCKETS, took)] += 1
                self.rank_seconds += took
            return result if isinstance(result, Response) else json_response(result)

        return endpoint

    def _refuse(self, request: Request, error: HTTPError) -> Response:
        if operation := getattr(request.state, "operation", None):
            self.n_requests[operation, error.status] += 1
        if error.status == 500:  # neither the address nor the body is logged, since both may be personal
            kind = type(error.__cause__).__name__
            _LOGGER.error("a request failed with %s", kind)
            error.sentence = f"internal error ({kind}); please report it."
        return _refusal(error)

    async def _permit(self, request: Request, operation: Operation) -> None:
        if not operation.scope:
            return
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not self.keys.is_fresh:
            await run_in_threadpool(self.keys.refresh)
        key = self.keys.find(token.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            self._wrong_keys.count(request)
            raise HTTPError(401, "the key is missing or wrong; send the header Authorization: Bearer KEY.")
        if not key.allows(operation.scope):
            raise HTTPError(403, f"this key lacks the scope {operation.scope}; its scopes are {', '.join(key.scopes)}.")
        wait = self.keys.wait_for(key)
        if wait > 0:
            raise HTTPError(429, "this key has used up its requests per second; wait as Retry-After says.", wait)

    def require_room(self) -> None:
        """Refuse a request if too many writes wait."""
        if self.service.store.n_waiting >= MAX_WAITING:
            raise HTTPError(503, "the queue of the database is full; send the request again after Retry-After.", 1.0)

    async def committed(self, future: Future[T]) -> T:
        """Wait for a commit without blocking other requests."""
        try:
            return await asyncio.wrap_future(future)
        except Exception as error:
            raise self.service.store.explained(error) from error

    async def append(self, events: list[NewEvent], request: Request) -> dict[str, Any]:
        """Append events, and return how many are new; with ``wait=true`` after they are learnt."""
        self.require_room()
        await run_in_threadpool(self.service.require_shown, events)
        numbers = await self.committed(self.service.append(events)) if events else []
        for event, result in zip(events, numbers, strict=True):
            self.n_events[event.kind if result else "duplicate"] += 1
        last = max(numbers, default=0)
        if request.query_params.get("wait") == "true" and last:
            try:
                await asyncio.wait_for(asyncio.wrap_future(self.service.learner.reached(last)), 30.0)
            except TimeoutError:
                raise HTTPError(
                    503, "the events are stored, but not learnt yet; do not send them again.", 1.0
                ) from None
        return {
            "accepted": sum(number > 0 for number in numbers),
            "duplicates": sum(number == 0 for number in numbers),
            "last": last,
        }


class Operation(NamedTuple):
    """One address."""

    handler: Callable[[Call], Awaitable[Any]]  # its first line of documentation is the summary
    method: str
    path: str
    scope: str  # what the key must allow; "" for addresses without a key, "any" for every valid key
    request: type[Struct] | None  # struct of the body, None without one

    @property
    def name(self) -> str:
        return self.handler.__name__


OPERATIONS: list[Operation] = []  # all addresses
H = TypeVar("H", bound=Callable[[Call], Awaitable[Any]])


def operation(method: str, path: str, scope: str = "", request: type[Struct] | None = None) -> Callable[[H], H]:
    """Let a function handle an address."""

    def register(handler: H) -> H:
        OPERATIONS.append(Operation(handler, method, path, scope, request))
        return handler

    return register


@operation("POST", "/rank", "rank", requests.RankRequest)
async def rank(call: Call) -> Any:
    """Rank items; returns the list to show and its impression id."""
    call.app.require_room()
    service = call.app.service
    answer = service.rank(call.data)
    numbers = await call.app.committed(answer.committed)
    call.app.n_events["impression" if numbers[0] else "duplicate"] += 1
    return answer.content if numbers[0] else await run_in_threadpool(service.logged, answer)


@operation("POST", "/feedback", "feedback", requests.Feedback)
async def feedback(call: Call) -> Any:
    """Record clicks and other feedback. With ?wait=true the answer comes after the events are learnt."""
    return await call.app.append(call.app.service.feedback(call.data), call.request)


@operation("GET", "/models", "any")
async def models(call: Call) -> Any:
    """List models, versions and what they have learnt."""
    return {"models": await run_in_threadpool(_models, call.app)}


def _models(app: ServiceApp) -> list[dict[str, Any]]:
    registry, result = app.service.registry, []
    registry.refresh()
    for row in registry.versions():
        model = registry.model(row.name, row.version)
        result.append(
            {
                "name": row.name, "version": row.version, "kind": row.kind, "created": row.created,
                "is_active": registry.active.get(row.name) == row.version, "n_features": model.n_features,
                "features": model.names, "has_prior": model.has_prior, "learnt_lists": model.n_learnt,
                "last_learnt_event": row.learnt, **row.counts, **model.report(), "recipe": row.recipe,
            }
        )  # fmt: skip
    return result


@operation("POST", "/models/{name}/activate", "admin", requests.ActivateRequest)
async def activate(call: Call) -> Any:
    """Use a version from now on."""
    name, version = call.request.path_params["name"], call.data.version
    return {"model": name, "version": await run_in_threadpool(call.app.service.registry.activate, name, version)}


@operation("GET", "/metrics", "any")
async def metrics(call: Call) -> Any:
    """Return counts and times for Prometheus."""
    app, thread = call.app, call.app.service.learner
    last = await run_in_threadpool(app.service.log.last_number)
    lines = ["# TYPE corank_requests_total counter"]
    for (name, status), count in sorted(app.n_requests.items()):
        lines.append(f'corank_requests_total{{operation="{name}",status="{status}"}} {count}')
    lines.append("# TYPE corank_events_total counter")
    lines += [f'corank_events_total{{kind="{kind}"}} {count}' for kind, count in sorted(app.n_events.items())]
    lines.append("# TYPE corank_rank_seconds histogram")
    total = 0
    for bound, count in zip((*_BUCKETS, "+Inf"), app.rank_times, strict=True):
        total += count
        lines.append(f'corank_rank_seconds_bucket{{le="{bound}"}} {total}')
    lines += [f"corank_rank_seconds_sum {app.rank_seconds:.6f}", f"corank_rank_seconds_count {total}"]
    learner = thread.learner
    gauges = {
        "log_last_event": last, "learner_last_event": thread.number, "learner_lag_events": max(last - thread.number, 0),
        "learner_is_here": int(learner is not None), "learner_failures": thread.n_failures,
        "open_lists": learner.n_open if learner is not None else 0, "waiting_writes": app.service.store.n_waiting,
    }  # fmt: skip
    for name, value in gauges.items():
        lines += [f"# TYPE corank_{name} gauge", f"corank_{name} {value}"]
    for name, count in sorted((learner.counts if learner is not None else {}).items()):
        lines.append(f'corank_learner_feedback{{outcome="{name}"}} {count}')
    return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


@operation("GET", "/healthz")
async def healthz(call: Call) -> Any:
    """Answer if the process runs."""
    return {"status": "ok"}


@operation("GET", "/readyz")
async def readyz(call: Call) -> Any:
    """Answer 200 if the database answers and events can be taken."""
    call.app.require_room()
    await run_in_threadpool(call.app.service.store.read, "SELECT 1")
    return {"status": "ready"}


@operation("GET", "/openapi.json")
async def openapi(call: Call) -> Any:
    """Describe all addresses (OpenAPI 3.1)."""
    return describe()


_STATUSES = {
    "200": "The answer, as JSON.",
    "400": "The body is not JSON, or its length is stated in two ways.",
    "401": "The key is missing or wrong.",
    "403": "The key lacks the scope.",
    "409": "The id is that of an earlier request with other items.",
    "413": "The body is too large.",
    "422": "A value is refused; `error` says why.",
    "429": "Too many requests; wait for the seconds in Retry-After.",
    "503": "The queue is full or the database is away; wait for the seconds in Retry-After.",
}


def describe() -> dict[str, Any]:
    """Return the OpenAPI description."""
    structs = [operation.request for operation in OPERATIONS if operation.request is not None]
    result, components = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(structs, result, strict=True))
    paths: dict[str, Any] = {}
    for item in OPERATIONS:
        about: dict[str, Any] = {
            "operationId": item.name,
            "summary": (item.handler.__doc__ or "").strip(),
            "responses": {status: {"description": what} for status, what in _STATUSES.items()},
            "security": [{"key": []}] if item.scope else [],
        }
        if item.request is not None:
            schema = schemas[item.request]
            if item.request is requests.Feedback:
                many = {"type": "array", "items": schema, "minItems": 1, "maxItems": requests.MAX_EVENTS}
                events = {"type": "object", "properties": {"events": many}, "required": ["events"]}
                schema = {"anyOf": [schema, many, events]}
            about["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        if "{name}" in item.path:
            name = {"type": "string", "maxLength": 64}
            about["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": name}]
        paths.setdefault(item.path, {})[item.method.lower()] = about
    return {
        "openapi": "3.1.0",
        "info": {"title": "corank service", "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


_HEADERS = {name: HEADERS[name] for name in ("X-Content-Type-Options", "Cache-Control")}
_SENTENCES = {404: "there is no such address; see GET /openapi.json.", 405: "this address does not take this method."}


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer in JSON."""
    content = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Response(content, status, headers, "application/json")


def _refusal(error: HTTPError) -> Response:
    sentence = error.sentence or _SENTENCES.get(error.status, "the request cannot be read.")
    headers = error.headers | ({"WWW-Authenticate": "Bearer"} if error.status == 401 else {})
    return json_response({"error": sentence}, error.status, headers)
