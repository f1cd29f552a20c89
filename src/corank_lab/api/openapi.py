"""The description of all addresses: one table for routing and for /openapi.json."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from corank import __version__
from corank_lab.api import requests as kinds


class Operation(NamedTuple):
    """One address."""

    method: str
    path: str
    scope: str  # what the key must allow; "" for addresses without a key, "any" for every valid key
    name: str  # of the function in `corank_lab.api.app`
    summary: str
    request: type[Struct] | None = None  # struct of the body, None without one
    # whether the body is one such object, or a list of them; for feedback also an object with the list `events`
    is_many: bool = False


OPERATIONS = (
    Operation(
        "POST", "/rank", "rank", "rank", "Rank items; returns the list to show and its impression id.",
        kinds.RankRequest,
    ),
    Operation(
        "POST", "/feedback", "feedback", "feedback",
        "Record clicks and other feedback. With ?wait=true the answer comes after the events are learnt.",
        kinds.Feedback, True,
    ),
    Operation(
        "POST", "/judgements", "judge", "judgements", "Record grades of items of one query.", kinds.JudgementsRequest,
    ),
    Operation(
        "POST", "/items", "feedback", "items", "Store items, so that requests may send ids only.", kinds.ItemsRequest,
    ),
    Operation("POST", "/ubi/queries", "feedback", "ubi_queries", "Record UBI 1.3 queries.", kinds.UbiQuery, True),
    Operation("POST", "/ubi/events", "feedback", "ubi_events", "Record UBI 1.3 events.", kinds.UbiEvent, True),
    Operation("GET", "/models", "any", "models", "List models, versions and what they have learnt."),
    Operation(
        "POST", "/models/{name}/train", "admin", "train",
        "Train a new version on the log, in a process of its own; it is not activated.", kinds.TrainRequest,
    ),
    Operation(
        "POST", "/models/{name}/activate", "admin", "activate", "Use a version from now on.", kinds.ActivateRequest,
    ),
    Operation("POST", "/models/{name}/rollback", "admin", "rollback", "Use the version that was active before."),
    Operation("GET", "/metrics", "any", "metrics", "Counts and times for Prometheus."),
    Operation("GET", "/healthz", "", "healthz", "Answer if the process runs."),
    Operation("GET", "/readyz", "", "readyz", "Answer 200 if the database answers and events can be taken."),
    Operation("GET", "/openapi.json", "", "openapi", "Describe all addresses (OpenAPI 3.1)."),
)  # fmt: skip
"""All addresses."""

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
    structs = [one.request for one in OPERATIONS if one.request is not None]
    found, components = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(structs, found, strict=True))
    paths: dict[str, Any] = {}
    for one in OPERATIONS:
        about: dict[str, Any] = {
            "operationId": one.name,
            "summary": one.summary,
            "responses": {status: {"description": what} for status, what in _STATUSES.items()},
            "security": [{"key": []}] if one.scope else [],
        }
        if one.request is not None:
            schema = schemas[one.request]
            if one.is_many:
                many = {"type": "array", "items": schema, "minItems": 1, "maxItems": kinds.MAX_EVENTS}
                schema = {"anyOf": [schema, many]}
            if one.request is kinds.Feedback:
                schema["anyOf"].append({"type": "object", "properties": {"events": many}, "required": ["events"]})
            about["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        if "{name}" in one.path:
            name = {"type": "string", "maxLength": 64}
            about["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": name}]
        paths.setdefault(one.path, {})[one.method.lower()] = about
    return {
        "openapi": "3.1.0",
        "info": {"title": "corank service", "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }
