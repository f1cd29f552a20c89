"""
Events of OpenSearch User Behavior Insights (UBI 1.3, https://github.com/o19s/ubi).

A query is a list that was shown elsewhere, an event is feedback on it. Online rankers do not learn from such a list:
its propensities are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corank_lab.api.inputs import distinct, dump_json, made_id
from corank_lab.api.log import NewEvent, now_ms
from corank_lab.api.requests import UbiEvent, UbiQuery
from corank_lab.api.service import Service


def query_event(data: Mapping[str, Any], query: UbiQuery) -> NewEvent:
    """Return the event of a query; `data` is what was sent."""
    ids = distinct([str(id) for id in query.query_response_hit_ids])
    body = {"query": query.user_query or "", **data, "items": ids}
    return NewEvent("impression", query.query_id, now_ms(), dump_json(body), query.client_id or "")


def feedback_event(service: Service, data: Mapping[str, Any], event: UbiEvent) -> NewEvent:
    """Return the event of feedback; `data` is what was sent."""
    found = event.event_attributes.object.object_id
    item, user = "" if found is None else str(found), event.client_id or ""
    # UBI's events have no id; the same action of a user on the same item at the same time is the same event
    more = dump_json([data.get("timestamp"), *map(data.get, ("agent", "owner", "seconds"))])
    id = event.event_id or made_id(event.query_id, item, event.action_name, user, more)
    return service.feedback_event({**data, "id": id}, event, event.query_id, item, event.action_name, id=id, user=user)
