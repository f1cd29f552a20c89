"""The format of times in the database: UTC with milliseconds and ``Z``; rows of 0.2 end with ``+00:00``."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> str:
    """Return the present time."""
    return format_time(datetime.now(UTC))


def format_time(time: datetime) -> str:
    """
    Return a time as text.

    >>> format_time(datetime(2026, 1, 31, 12, tzinfo=UTC))
    '2026-01-31T12:00:00.000Z'
    """
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
