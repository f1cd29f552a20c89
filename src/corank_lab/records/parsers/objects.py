"""JSON: one object per line, an array, or the answer of a service such as OpenAlex, Semantic Scholar or Europe PMC."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from corank.data import current_budget
from corank.errors import InputError
from corank_lab.records.columns import find_columns
from corank_lab.records.parsers.parsed import ParsedFile, RawRecord, columns_of

INVERTED = "abstract_inverted_index"
_DEEPEST = 6
"""Levels of nested objects that become columns with dots in their names; deeper ones stay JSON."""

_MAX_KEYS = 2_000


def parse_json(text: str, name: str) -> ParsedFile:
    """Parse objects; nested values become columns such as ``primary_location.source.display_name``."""
    current_budget().take_json(text, name)
    whole = _whole(text)
    format = "JSON lines" if whole is None else "JSON"
    objects = _of_lines(text, name) if whole is None else _numbered(whole, name)
    records, places = [], []
    for place, entry in objects:
        records.append(_flatten(entry, place))
        places.append(place)
    if not records:
        raise InputError(f"{name} contains no records; expected at least one JSON object.")
    columns = columns_of(records)
    if any(item in columns for item in ("authorships.author.display_name", INVERTED)):
        format = f"OpenAlex {format}"
    return ParsedFile(format, records, places, find_columns(columns), derived=frozenset((INVERTED,)))


def _numbered(objects: list[dict[str, Any]], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((f"{name}, record {i}", item) for i, item in enumerate(objects, 1))


def _whole(text: str) -> list[dict[str, Any]] | None:
    """Return the objects of a text that is one JSON value; None if it is not, or one object without a list."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    result = _longest(value)
    if result is None and isinstance(value, dict) and "\n" in text.strip():
        return [value]
    return result


def _longest(value: Any, depth: int = 0) -> list[dict[str, Any]] | None:
    """Return the longest list of objects in a JSON value, at most three levels deep."""
    if isinstance(value, list):
        objects = [_unwrapped(entry) for entry in value if isinstance(entry, dict)]
        return objects or None
    if not isinstance(value, dict) or depth > 3 or _is_record(value):
        return None
    lists = [found for entry in value.values() if (found := _longest(entry, depth + 1))]
    return max(lists, key=lambda item: (any(map(_is_record, item)), len(item)), default=None)


def _is_record(value: dict[str, Any]) -> bool:
    return any(isinstance(value.get(key), str | list) for key in ("title", "Title", "display_name", "TITLE"))


def _unwrapped(value: dict[str, Any]) -> dict[str, Any]:
    inner = value.get("_source")
    return inner if isinstance(inner, dict) else value


def _of_lines(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for i, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            shown = repr(line.strip()[:40])
            raise InputError(f"{name}, line {i}: expected a JSON object, found {shown}; write one object per line.")
        yield f"{name}, line {i}", row


def _flatten(one: dict[str, Any], place: str) -> RawRecord:
    record: RawRecord = {}
    index = one.get(INVERTED)
    for key, value in one.items():
        if key == INVERTED and isinstance(value, dict):
            continue
        _add(record, _text(key), value, 0)
    if isinstance(index, dict):
        record[INVERTED] = [_rebuilt(index, place)]
    return {key: values for key, values in record.items() if any(values)}


def _add(record: RawRecord, key: str, value: Any, depth: int) -> None:
    if value is None or value == "":
        return
    if isinstance(value, list) and depth < _DEEPEST:
        for item in value:
            _add(record, key, item, depth + 1)
    elif isinstance(value, dict) and depth < _DEEPEST and len(record) < _MAX_KEYS:
        known = _person(value) or _date(value)
        if known:
            record.setdefault(key, []).append(known)
            return
        for inner, part in value.items():
            _add(record, f"{key}.{_text(inner)}", part, depth + 1)
    else:
        record.setdefault(key, []).append(_text(value))


def _person(value: dict[str, Any]) -> str:
    """Return "family, given" of a person in CSL or Crossref, or an empty string."""
    family = next((value[key] for key in ("family", "last_name", "lastName") if isinstance(value.get(key), str)), "")
    given = next(
        (value[key] for key in ("given", "first_name", "firstName", "initials") if isinstance(value.get(key), str)), ""
    )
    literal = value.get("literal")
    name = (
        ", ".join(item for item in (family, given) if item) if family else literal if isinstance(literal, str) else ""
    )
    return _text(name)


def _date(value: dict[str, Any]) -> str:
    parts = value.get("date-parts")
    while isinstance(parts, list) and parts and isinstance(parts[0], list):
        parts = parts[0]
    if not isinstance(parts, list) or not parts or not all(isinstance(part, int | str) for part in parts):
        return ""
    return "-".join(_text(part) for part in parts[:3])


def _rebuilt(index: dict[str, Any], place: str) -> str:
    """Return the text of an inverted index: positions of each word."""
    places = [
        (i, word) for word, positions in index.items() if isinstance(positions, list) for i in positions
        if type(i) is int
    ]  # fmt: skip
    n_listed = sum(len(positions) if isinstance(positions, list) else 1 for positions in index.values())
    if len(places) < n_listed:
        raise InputError(f"{place}: expected a list of positions for each word of the inverted index of the abstract.")
    return _text(" ".join(word for _, word in sorted(places)))


def _text(value: Any) -> str:
    """Text unchanged, other values as JSON; lone surrogates, which UTF-8 cannot encode, become question marks."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):  # a nested value, or an integer of thousands of digits
        text = ""
    return text.encode("utf-8", "replace").decode()
