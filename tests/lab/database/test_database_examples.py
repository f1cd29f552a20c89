"""Small functions by example."""

from __future__ import annotations

from datetime import UTC, datetime

from corank_lab.database.schema import format_time


def test_times():
    assert format_time(datetime(2026, 1, 31, 12, tzinfo=UTC)) == "2026-01-31T12:00:00.000Z"
