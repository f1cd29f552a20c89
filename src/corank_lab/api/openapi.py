"""The description of all addresses: one table for routing and for /openapi.json."""

from __future__ import annotations

from typing import Any, NamedTuple

from corank import __version__
from corank_lab.api.inputs import LONGEST_ID, LONGEST_QUERY, MOST_EVENTS, MOST_FEATURES, MOST_ITEMS

Schema = dict[str, Any]


def _text(longest: int = LONGEST_ID, least: int = 0) -> Schema:
    return {"type": "string", "minLength": least, "maxLength": longest}


def _object(required: str = "", **properties: Schema) -> Schema:
    found: Schema = {"type": "object", "properties": properties}
    return found | ({"required": required.split()} if required else {})


def _list(items: Schema, most: int, least: int = 1) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


_ID, _QUERY, _NUMBER, _YES = _text(least=1), _text(LONGEST_QUERY), {"type": "number"}, {"type": "boolean"}
_FEATURES = {
    "oneOf": [_list(_NUMBER, MOST_FEATURES), {"type": "object", "additionalProperties": _NUMBER}],
    "description": "Numbers in the order of the model's columns, or by their names.",
}
_ITEM = _object("id", id=_ID, features=_FEATURES, prior=_NUMBER)
_RANK = _object(
    "items",
    items=_list({"oneOf": [_ITEM, _ID]}, MOST_ITEMS),
    features={
        "oneOf": [
            _list(_list(_NUMBER, MOST_FEATURES), MOST_ITEMS),
            _object(float32={"type": "string"}, float64={"type": "string"}),
        ],
        "description": "One row for each item; or the base64 of all rows, little-endian.",
    },
    prior=_list(_NUMBER, MOST_ITEMS),
    id={**_text(), "description": "Id of the list; a repeated request gets the same answer."},
    query=_QUERY,
    user=_text(),
    k={"type": "integer", "minimum": 1, "maximum": MOST_ITEMS, "description": "Items to show; all by default."},
    model=_text(64),
    random_state={"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "Generator, for simulations."},
)
_FEEDBACK_EVENT = _object(
    "impression", impression=_ID, item=_text(), action=_text(), id=_text(), user=_text(), agent=_QUERY, owner=_text(),
    seconds={"type": "number", "minimum": 0}, clicks=_list(_ID, MOST_ITEMS, 0), final=_YES,
)  # fmt: skip
_UBI_QUERY = _object(
    "query_id query_response_hit_ids", query_id=_ID, user_query=_QUERY, client_id=_text(),
    query_response_hit_ids=_list(_ID, MOST_ITEMS), query_attributes={}, timestamp={},
)  # fmt: skip
_UBI_EVENT = _object(
    "action_name query_id", action_name=_ID, query_id=_ID, client_id=_text(), timestamp={"type": ["string", "number"]},
    event_attributes=_object(object=_object(object_id=_text()), position=_object(ordinal=_NUMBER)),
)  # fmt: skip
_JUDGEMENTS = _object(
    "query judgements", id=_text(), query=_text(LONGEST_QUERY, 1), judge=_text(),
    judgements=_list(
        _object("item grade", item=_ID, grade={"type": "number", "minimum": 0, "maximum": 1000}, features=_FEATURES),
        MOST_ITEMS,
    ),
)  # fmt: skip
_TRAIN = _object(
    source={"enum": ["judgements", "clicks"]}, ranker=_text(64),
    parameters={"type": "object", "description": "Parameters of the ranker."},
)  # fmt: skip


def _one_or_many(event: Schema) -> Schema:
    return {"oneOf": [event, _list(event, MOST_EVENTS)]}


class Operation(NamedTuple):
    """
    One address.

    scope: what the key must allow; "" for addresses without a key, "any" for every valid key.
    name: of the function in `corank_lab.api.app`.
    request: schema of the body, None without one.
    """

    method: str
    path: str
    scope: str
    name: str
    summary: str
    request: Schema | None = None


OPERATIONS = (
    Operation("POST", "/rank", "rank", "rank", "Rank items; returns the list to show and its impression id.", _RANK),
    Operation(
        "POST", "/feedback", "feedback", "feedback",
        "Record clicks and other feedback. With ?wait=true the answer comes after the events are learnt.",
        {"oneOf": [_one_or_many(_FEEDBACK_EVENT), _object("events", events=_list(_FEEDBACK_EVENT, MOST_EVENTS))]},
    ),
    Operation("POST", "/judgements", "judge", "judgements", "Record grades of items of one query.", _JUDGEMENTS),
    Operation(
        "POST", "/items", "feedback", "items", "Store items, so that requests may send ids only.",
        _object("items", items=_list(_object("id features", id=_ID, features=_FEATURES, prior=_NUMBER), MOST_ITEMS)),
    ),
    Operation("POST", "/ubi/queries", "feedback", "ubi_queries", "Record UBI 1.3 queries.", _one_or_many(_UBI_QUERY)),
    Operation("POST", "/ubi/events", "feedback", "ubi_events", "Record UBI 1.3 events.", _one_or_many(_UBI_EVENT)),
    Operation("GET", "/models", "any", "models", "List models, versions and what they have learnt."),
    Operation(
        "POST", "/models/{name}/train", "admin", "train",
        "Train a new version on the log, in a process of its own; it is not activated.", _TRAIN,
    ),
    Operation(
        "POST", "/models/{name}/activate", "admin", "activate", "Use a version from now on.",
        _object("version", version={"type": "integer", "minimum": 1}),
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
    paths: dict[str, Any] = {}
    for one in OPERATIONS:
        found: dict[str, Any] = {
            "operationId": one.name,
            "summary": one.summary,
            "responses": {status: {"description": what} for status, what in _STATUSES.items()},
            "security": [{"key": []}] if one.scope else [],
        }
        if one.request is not None:
            found["requestBody"] = {"required": True, "content": {"application/json": {"schema": one.request}}}
        if "{name}" in one.path:
            found["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": _text(64)}]
        paths.setdefault(one.path, {})[one.method.lower()] = found
    return {
        "openapi": "3.1.0",
        "info": {"title": "corank service", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }
