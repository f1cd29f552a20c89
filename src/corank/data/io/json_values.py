"""JSON values one after the other in a file, each with its line; and saved answers of search engines, unwrapped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from corank.data.io.budget import current_budget
from corank.errors import InputError

BETWEEN = re.compile(r"(?:[\s\ufeff]|#[^\n]*)*")
"""Between two JSON values: white space, and lines such as ``# GET ubi_queries/_search`` of a console."""


def json_values(text: str, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the JSON values of a text, and the file and line where each begins."""
    current_budget().take_json(text, name)
    decoder, i, line, counted = json.JSONDecoder(), 0, 1, 0
    while True:
        i = BETWEEN.match(text, i).end()  # type: ignore[union-attr]
        if i == len(text):
            return
        line, counted = line + text.count("\n", counted, i), i
        where = f"{name}, line {line}"
        try:
            value, i = decoder.raw_decode(text, i)
        except (ValueError, RecursionError) as error:
            place = f"{name}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else where
            shown = repr(text[counted:].split("\n", 1)[0][:40])
            raise InputError(
                f"{place}: this is not JSON, or nested too deeply, in the value that begins with {shown}; write JSON "
                "objects, one after the other or in a list."
            ) from None
        yield where, value


def at_path(value: Any, *names: str) -> Any:
    """Return the value under nested names, or None."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def shortened(value: Any) -> str:
    """Return a value for a message, at most 40 characters long."""
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def plain_text(value: Any) -> str:
    """Return a JSON string or number as text; half of a surrogate pair, which no file can hold, becomes ``?``."""
    return str(value).encode("utf-8", "replace").decode()
