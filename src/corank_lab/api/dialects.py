"""
Events of other systems: Metarank, and OpenSearch User Behavior Insights (UBI 1.3).

Metarank: https://github.com/metarank/metarank/blob/master/doc/event-schema.md and doc/api.md. A ranking that was drawn
elsewhere is kept in the log, but online rankers do not learn from it: its propensities are unknown. Fields that are
numbers or truth values become features by name; the field "relevancy" is also the prior.

UBI: https://github.com/o19s/ubi. A query is a list that was shown, an event is feedback on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corank.errors import InputError
from corank_lab.api.inputs import (
    LONGEST_QUERY,
    MOST_EVENTS,
    MOST_ITEMS,
    as_list,
    as_object,
    dump_json,
    items_of,
    made_id,
    text,
)
from corank_lab.api.log import NewEvent, now_ms
from corank_lab.api.service import Service

PRIOR_FIELD = "relevancy"


def metarank_rank(service: Service, value: Any) -> dict[str, Any]:
    """Return the request for a ranking that a request of Metarank's `/rank/<model>` stands for."""
    data = as_object(value, "the request")
    ids, objects = items_of(data)
    known = service.items(ids)
    items = []
    for id, one in zip(ids, objects, strict=True):
        fields = _fields(one)
        stored = known.get(id, {})
        features = {**stored.get("features", {}), **fields} if isinstance(stored.get("features", {}), dict) else fields
        prior = fields.get(PRIOR_FIELD, stored.get("prior"))
        items.append({"id": id, "features": features} | ({} if prior is None else {"prior": prior}))
    query = next((one.get("value") for one in _field_list(data) if one.get("name") == "query"), None)
    return {
        "id": text(data, "id", required=True), "items": items, "user": text(data, "user"),
        "query": query if isinstance(query, str) else "",
    }  # fmt: skip


def metarank_answer(content: Mapping[str, Any], took_ms: int) -> dict[str, Any]:
    """Return an answer of `/rank` in Metarank's form."""
    return {"took": took_ms, "items": [{"item": one["id"], "score": one["score"]} for one in content["items"]]}


def is_metarank(value: Any) -> bool:
    """Return whether a request of `/feedback` is in Metarank's form."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and "event" in first


def metarank_events(service: Service, value: Any) -> tuple[list[NewEvent], list[dict[str, Any]]]:
    """Return the events of a request of Metarank's `/feedback`, and the items to store."""
    events, items = [], []
    for one in as_list(value, "the events", MOST_EVENTS) if isinstance(value, list) else [value]:
        data = as_object(one, "an event")
        kind, id, user = text(data, "event", required=True), text(data, "id", required=True), text(data, "user")
        if kind == "item":
            items.append({"id": text(data, "item", required=True), "features": _fields(data)})
        elif kind == "user":
            events.append(NewEvent("user", id, now_ms(), dump_json(data), text(data, "user", required=True)))
        elif kind == "ranking":
            ids, _ = items_of(data)
            events.append(_shown_elsewhere(id, ids, user, data))
        elif kind == "interaction":
            list_id, item = text(data, "ranking"), text(data, "item", required=True)
            action = text(data, "type", required=True)
            events.append(service.feedback_event(data, list_id, item, action, user=user))
        else:
            raise InputError("event must be item, user, ranking or interaction.")
    return events, items


def ubi_queries(value: Any) -> list[NewEvent]:
    """Return the events of UBI's queries: one, or a list of them."""
    events = []
    for data in _objects(value):
        id, user = text(data, "query_id", required=True), text(data, "client_id")
        text(data, "user_query", LONGEST_QUERY)
        hits = as_list(data.get("query_response_hit_ids"), "query_response_hit_ids", MOST_ITEMS)
        ids, _ = items_of({"items": [str(one) if isinstance(one, int) else one for one in hits]})
        events.append(_shown_elsewhere(id, ids, user, {"query": data.get("user_query") or "", **data}))
    return events


def ubi_events(service: Service, value: Any) -> list[NewEvent]:
    """Return the events of UBI's events: one, or a list of them."""
    events = []
    for data in _objects(value):
        about = as_object(data.get("event_attributes", {}), "event_attributes")
        found = as_object(about.get("object", {}), "event_attributes.object").get("object_id")
        item = text({"object_id": str(found) if isinstance(found, int) else found}, "object_id")
        list_id, action = text(data, "query_id", required=True), text(data, "action_name", required=True)
        user, stamp = text(data, "client_id"), data.get("timestamp")
        if not isinstance(stamp, str | int | float | None):
            raise InputError("timestamp must be a text or a number.")
        # UBI's events have no id; the same action of a user on the same item at the same time is the same event
        more = dump_json([stamp, *map(data.get, ("agent", "owner", "seconds"))])
        id = text(data, "event_id") or made_id(list_id, item, action, user, more)
        events.append(service.feedback_event({**data, "id": id}, list_id, item, action, user=user))
    return events


def _objects(value: Any) -> list[dict[str, Any]]:
    found = as_list(value, "the events", MOST_EVENTS) if isinstance(value, list) else [value]
    return [as_object(one, "an event") for one in found]


def _shown_elsewhere(id: str, ids: list[str], user: str, data: Mapping[str, Any]) -> NewEvent:
    return NewEvent("impression", id, now_ms(), dump_json({**data, "items": ids}), user)


def _field_list(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    fields = data.get("fields") or []
    if not isinstance(fields, list) or len(fields) > MOST_ITEMS:
        raise InputError("fields must be a list of objects with name and value.")
    return [as_object(one, "a field") for one in fields]


def _fields(data: Mapping[str, Any]) -> dict[str, int | float]:
    """Return the fields that are numbers or truth values, by name."""
    found = {text(one, "name", required=True): one.get("value") for one in _field_list(data)}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}
