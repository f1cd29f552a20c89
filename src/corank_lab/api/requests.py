"""
Requests as msgspec structs: one definition for validation, for /openapi.json, made here, and for fast reading.

Unknown fields are allowed; an event is stored with them. A value that is refused is named by its place.
"""

from __future__ import annotations

import json
import math
import re
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from corank import __version__
from corank.data import MAX_VALUE
from corank.errors import InputError
from corank_lab.api import requests as kinds

MAX_ITEMS = 1000
"""Largest number of items of a request."""
MAX_EVENTS = 1000
"""Largest number of events of a request."""
MAX_FEATURES = 2000
"""Largest number of features of an item."""
MAX_ID, MAX_QUERY = 200, 2000
"""Largest numbers of characters of an id and of a query."""
RANGE = f"a number from {-MAX_VALUE:g} to {MAX_VALUE:g}"

Text = Annotated[str, Meta(max_length=MAX_ID)]
Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID)]
Query = Annotated[str, Meta(max_length=MAX_QUERY)]
Number = float | bool
Whole = Annotated[float, Meta(ge=1, le=1e9, extra_json_schema={"type": "integer"})]
Row = Annotated[list[Number], Meta(min_length=1, max_length=MAX_FEATURES)]
Features = Row | Annotated[dict[str, Number], Meta(min_length=1, max_length=MAX_FEATURES)]
"""Numbers in the order of the model's columns, or by their names."""
T = TypeVar("T")


class RankItem(Struct):
    """An item to rank; features of a stored item may be left out."""

    id: Id
    features: Features | UnsetType = UNSET
    prior: Number | None = None


class PackedMatrix(Struct):
    """The base64 of all rows, little-endian, in one of two types."""

    float32: bytes | UnsetType = UNSET
    float64: bytes | UnsetType = UNSET


class RankRequest(Struct):
    """Items to rank; a repeated request with the same id gets the same answer."""

    items: Annotated[list[RankItem | Id], Meta(min_length=1, max_length=MAX_ITEMS)]
    features: Annotated[list[Row], Meta(max_length=MAX_ITEMS)] | PackedMatrix | None = None
    prior: Annotated[list[Number], Meta(max_length=MAX_ITEMS)] | None = None
    id: Text | None = None
    query: Query | None = None
    user: Text | None = None
    k: Annotated[float, Meta(ge=1, le=MAX_ITEMS, extra_json_schema={"type": "integer"})] | None = None
    model: Text | None = None
    random_state: str | UnsetType | None = UNSET


class Signals(Struct, kw_only=True):
    """What the rules about feedback look at."""

    agent: Query | None = None
    owner: Text | None = None
    seconds: Annotated[float, Meta(ge=0, le=1e7)] | None = None


class Feedback(Signals, kw_only=True):
    """Feedback on one item of a list, all clicks on a list, or the end of a list."""

    impression: Id
    item: Text | None = None
    action: Text | None = None
    id: Text | None = None
    user: Text | None = None
    clicks: Annotated[list[Text], Meta(max_length=MAX_ITEMS)] | UnsetType = UNSET
    final: bool = False


class Judgement(Struct):
    """The grade of an item."""

    item: Id
    grade: Annotated[float, Meta(ge=0, le=1000)]
    features: Features | UnsetType = UNSET


class JudgementsRequest(Struct, kw_only=True):
    """Grades of items of one query."""

    query: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY)]
    judgements: Annotated[list[Judgement], Meta(min_length=1, max_length=MAX_ITEMS)]
    judge: Text | None = None
    id: Text | None = None


class StoredItem(Struct):
    """An item to store."""

    id: Id
    features: Features
    prior: float | None = None


class ItemsRequest(Struct):
    """Items to store."""

    items: Annotated[list[StoredItem], Meta(min_length=1, max_length=MAX_ITEMS)]


class UbiQuery(Struct, kw_only=True):
    """A query of UBI 1.3."""

    query_id: Id
    query_response_hit_ids: Annotated[list[Id | int], Meta(min_length=1, max_length=MAX_ITEMS)]
    user_query: Query | None = None
    client_id: Text | None = None


class UbiObject(Struct):
    """The object of an event of UBI."""

    object_id: Text | int | None = None


class UbiAttributes(Struct):
    """Attributes of an event of UBI."""

    object: UbiObject = msgspec.field(default_factory=UbiObject)


class UbiEvent(Signals, kw_only=True):
    """An event of UBI 1.3."""

    action_name: Id
    query_id: Id
    client_id: Text | None = None
    event_id: Text | None = None
    timestamp: str | float | None = None
    event_attributes: UbiAttributes = msgspec.field(default_factory=UbiAttributes)


class TrainRequest(Struct):
    """A training; `parameters` are those of the ranker."""

    source: Literal["judgements", "clicks"] | None = None
    ranker: Text | None = None
    parameters: dict[str, Any] = {}


class ActivateRequest(Struct):
    """The version to use from now on."""

    version: Whole


class MalformedError(InputError):
    """A body is not JSON."""

    status = 400


def parse(content: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Return a request."""
    try:
        _require_utf8(content)
        result = decoder.decode(content)
    except (ValueError, RecursionError) as error:
        _explain(content, error)
    _refuse_nul(content)
    return result


def parse_events(content: bytes, kind: type[T]) -> list[tuple[dict[str, Any], T]]:
    """Return the events of a request, each as it was sent and as a struct; see `Operation.is_many`."""
    try:
        _require_utf8(content)
        sent = msgspec.json.decode(content)
        if kind is Feedback and isinstance(sent, dict) and "events" in sent:
            sent = sent["events"]
        sent = sent if isinstance(sent, list) else [sent]
        result = msgspec.convert(sent, list[kind])  # type: ignore[valid-type]
    except (ValueError, RecursionError) as error:
        _explain(content, error)
    if not 1 <= len(sent) <= MAX_EVENTS:
        raise InputError(f"the request has {len(sent)} events; send from 1 to {MAX_EVENTS}.")
    _refuse_nul(content)
    return list(zip(sent, result, strict=True))


def _require_utf8(content: bytes) -> None:
    if not content.isascii():  # msgspec does not decode fields that it skips
        content.decode()


def _refuse_nul(content: bytes) -> None:
    if b"\\u0000" in content:
        _refuse_odd(json.loads(content))


_NAME = re.compile(r"\w{1,40}")
_WORDS = {
    "str": "a text", "float": "a number", "int": "a whole number", "bool": "true or false", "array": "a list",
    "object": "an object", "null": "null",
}  # fmt: skip


def _explain(content: bytes, error: Exception) -> NoReturn:
    """Raise `MalformedError` if a body is not JSON, or else `InputError` with the place of the value."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as malformed:
        reason = f"{malformed}".split("\n")[0][:100]
        raise MalformedError(f"the body is not JSON ({reason}); send one JSON value in UTF-8.") from None
    _refuse_odd(value)
    if not isinstance(error, msgspec.ValidationError):
        raise MalformedError("the body is not JSON in UTF-8; send one JSON value in UTF-8.") from None
    what, _, place = str(error).partition(" - at `$")
    place = place.strip("`").removeprefix(".")
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", what):
        raise InputError(
            f"{place and place + '.'}{missing[1]} is missing; send it as GET /openapi.json says."
        ) from None
    what = re.sub(r"`([^`]*)`", lambda result: " or ".join(_WORDS.get(n, n) for n in result[1].split(" | ")), what)
    more = f"; send {RANGE}" if what == "Number out of range" else ""
    raise InputError(f"{place or 'the request'} is refused: {what[0].lower()}{what[1:]}{more}.") from None


def _refuse_odd(value: Any) -> None:
    """Raise `InputError` if a value of `json.loads` holds what JSON or a database does not allow."""
    waiting = [("", value)]
    while waiting:
        place, item = waiting.pop()
        if isinstance(item, dict):
            waiting += [("the name of a field", name) for name in item]
            waiting += [(f"{place}.{name if _NAME.fullmatch(name) else '?'}", part) for name, part in item.items()]
        elif isinstance(item, list):
            waiting += [(f"{place}[{number}]", part) for number, part in enumerate(item)]
        elif isinstance(item, float) and not math.isfinite(item):
            raise InputError(f"{place.removeprefix('.')} is not finite; send {RANGE}.")
        elif isinstance(item, str) and ("\x00" in item or not _is_unicode(item)):
            raise InputError(
                f"{place.removeprefix('.')} holds a NUL character or half of a surrogate pair; send valid Unicode text."
            )


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode(errors="replace").decode() == text


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
    structs = [operation.request for operation in OPERATIONS if operation.request is not None]
    result, components = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(structs, result, strict=True))
    paths: dict[str, Any] = {}
    for item in OPERATIONS:
        about: dict[str, Any] = {
            "operationId": item.name,
            "summary": item.summary,
            "responses": {status: {"description": what} for status, what in _STATUSES.items()},
            "security": [{"key": []}] if item.scope else [],
        }
        if item.request is not None:
            schema = schemas[item.request]
            if item.is_many:
                many = {"type": "array", "items": schema, "minItems": 1, "maxItems": kinds.MAX_EVENTS}
                schema = {"anyOf": [schema, many]}
            if item.request is kinds.Feedback:
                schema["anyOf"].append({"type": "object", "properties": {"events": many}, "required": ["events"]})
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
