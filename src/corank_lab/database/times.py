"""The format of times in the database: UTC with milliseconds and ``Z``; rows of 0.2 end with ``+00:00``."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> str:
    """Return the present time."""
    return format_time(datetime.now(UTC))


def format_time(time: datetime) -> str:
    """Return a time as text."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
