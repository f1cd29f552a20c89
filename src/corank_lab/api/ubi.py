"""
Events of OpenSearch User Behavior Insights (UBI 1.3, https://github.com/o19s/ubi).

A query is a list that was shown elsewhere, an event is feedback on it. Online rankers do not learn from such a list:
its propensities are unknown.
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
