"""
Entries of journals: what a judge did, as a row of a database or as a line of JSON.

Entries are only appended: an answer is changed or withdrawn by another entry. Each kind of session has its own kind of
entry. Until version 0.2, `corank screen` and `corank ask` kept each judge's entries in a file of JSON lines; such files
are read here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from corank.errors import InputError, reason

# surrogates without their other half, which have no UTF-8
_HALVES = re.compile("[\\ud800-\\udfff]")
STAMP = ("time", "judge", "version", "records")
"""Fields that every entry has, and that tell where an answer comes from."""
LARGE = 1e300
"""Bound of numbers in an entry."""


@dataclass(frozen=True)
class JournalEntry:
    """One line of a journal. Subclasses add fields and list their actions."""

    ACTIONS: ClassVar[tuple[str, ...]] = ()
    LISTS: ClassVar[tuple[str, ...]] = ()
    """Fields that hold several texts."""
    NUMBERS: ClassVar[tuple[str, ...]] = ()
    """Fields that hold a number."""

    action: str  # what the judge did
    # time, judge, version, records: when it was written (UTC, ISO 8601), by whom, by which version of corank, and a
    # hash of the judged file. `Journal.extend` fills them in. Entries that differ in nothing else are equal
    time: str = field(default="", kw_only=True, compare=False)
    judge: str = field(default="", kw_only=True, compare=False)
    version: str = field(default="", kw_only=True, compare=False)
    records: str = field(default="", kw_only=True, compare=False)
    # file and line, for messages; empty if the entry was not read from a file. It is not written
    place: str = field(default="", kw_only=True, compare=False, repr=False)

    @classmethod
    @cache
    def names(cls) -> list[str]:
        """Return the keys of a line."""
        names = [field.name for field in fields(cls) if field.name != "place"]
        return [name for name in names if name not in STAMP] + list(STAMP)

    def values(self) -> dict[str, Any]:
        """Return the fields of the line; empty ones are left out."""
        result = ((name, getattr(self, name)) for name in self.names())
        return {name: value for name, value in result if value not in ("", (), None)}

    def unknown(self, name: str, what: str) -> InputError:
        """Return the error for an entry about something that the judged file does not hold."""
        where = f"{self.place}: " if self.place else "the journal has "
        return InputError(
            f"{where}an answer about {name!r}, which is not one of the {what}; open the file that the journal was "
            "started with, or remove this line."
        )


E = TypeVar("E", bound=JournalEntry)


def utc_now() -> str:
    """Return the present time, as entries and tables have it; rows of 0.2 end with ``+00:00``."""
    return format_time(datetime.now(UTC))


def format_time(time: datetime) -> str:
    """Return a time as text."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def entry_values(entry: JournalEntry) -> dict[str, Any]:
    """Return the keys and values of an entry's line; empty ones are left out, half characters are replaced."""
    return {name: _whole(value) for name, value in entry.values().items()}


def read_entry(kind: type[E], values: Mapping[str, Any], place: str) -> E:
    """Return the entry of a line; raise if a value is not allowed. Keys that the entry lacks are left out."""
    if values.get("action") not in kind.ACTIONS:
        raise InputError(
            f"{place}: action is {values.get('action')!r:.40}, expected one of {', '.join(kind.ACTIONS)}; it was "
            "written by another version of corank."
        )
    names = kind.names()
    kept: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if name in names
    }
    fault = entry_fault(
        {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}, kind
    )
    if fault is not None:
        raise InputError(f"{place} is not an answer: {fault}; restore it from a copy, or remove it.")
    return kind(**kept, place=place)


def parse_lines(kind: type[E], content: bytes, path: Path) -> list[E]:
    """Return the entries of a file of JSON lines; a last line without its end is left out."""
    lines = content[: content.rfind(b"\n") + 1].splitlines()
    return [_parse_line(kind, line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]


def _parse_line(kind: type[E], line: bytes, where: str) -> E:
    try:
        values = json.loads(line, object_pairs_hook=_without_repeats)
        fault = entry_fault(values, kind)
    except RecursionError:
        fault = "it is nested too deeply"
    except ValueError as error:
        fault = f"it is not valid JSON ({reason(error)})"
    if fault is not None:
        raise InputError(
            f"{where}: {line[:60]!r} is not an answer: {fault}; restore the file from a copy, or remove this line."
        )
    lists = {name: tuple(values[name]) for name in kind.LISTS if name in values}
    return kind(**{**values, **lists}, place=where)


def journal_paths(folder: Path) -> list[Path]:
    """Return the files of JSON lines in a folder, by name; raise if a link leads out of its parent."""
    home = Path(os.path.realpath(folder.parent))
    result = sorted(folder.glob("*.jsonl"))
    for path in result:
        place = Path(os.path.realpath(path))
        if home not in place.parents:
            raise InputError(
                f"{path} leads to {place} by a link, outside of {home}; answers are kept inside it, so replace the "
                "link by the folder or file itself."
            )
    return result


def read_journal(kind: type[E], content: bytes, path: Path) -> list[tuple[str, E]]:
    """Return judge and entry of each line of a file of JSON lines, as `split_journal` does."""
    entries = parse_lines(kind, content, path)
    return list(zip(_judges([entry.judge for entry in entries], path), entries, strict=True))


def split_journal(content: bytes, path: Path) -> dict[str, bytes]:
    """
    Return the complete lines of each judge in a file of JSON lines, which need not be valid.

    They are those of the judge whose name the file has. If the name is a number, or the lines name several judges, as
    in files that pages and `corank screen export` write, each line is of the judge that it names.
    """
    complete = content[: content.rfind(b"\n") + 1]
    lines = complete.splitlines()
    judges = _judges([_judge_in(line) for line in lines], path)
    if set(judges) <= {path.stem}:
        return {path.stem: complete}
    result: dict[str, list[bytes]] = {}
    for judge, line in zip(judges, lines, strict=True):
        result.setdefault(judge, []).append(line + b"\n")
    return {judge: b"".join(listed) for judge, listed in result.items()}


def _judges(named: Sequence[str], path: Path) -> list[str]:
    names = set(named) - {""}
    by_line = len(names) > 1 or (bool(names) and path.stem.isdecimal())
    return [(judge if by_line else "") or path.stem for judge in named]


def _judge_in(line: bytes) -> str:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    judge = values.get("judge") if isinstance(values, dict) else ""
    return judge if isinstance(judge, str) else ""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError(f"the keys {', '.join(key for key, _ in pairs)} are not distinct")
    return values


def entry_fault(values: Any, entry: type[JournalEntry]) -> str | None:
    """Describe why JSON is not an entry; None if it is."""
    if not isinstance(values, dict):
        return "it is not a JSON object"
    if unknown := [key for key in values if key not in entry.names()]:
        return f"the key {unknown[0]!r} is unknown, expected {', '.join(entry.names())}"
    if values.get("action") not in entry.ACTIONS:
        return f"action is {values.get('action')!r:.40}, expected one of {', '.join(entry.ACTIONS)}"
    for key, value in values.items():
        if key in entry.NUMBERS:
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGE:
                return f"{key} is {value!r:.40}, expected a number"
            continue
        if key in entry.LISTS and not isinstance(value, list):
            return f"{key} is {value!r:.40}, expected a list of strings"
        for text in value if key in entry.LISTS else [value]:
            if not isinstance(text, str):
                return f"{key} is {value!r:.40}, expected {'a list of strings' if key in entry.LISTS else 'a string'}"
            if _HALVES.search(text):
                return f"{key} is {value!r:.40}, which holds half a character"
    return None


def _whole(value: Any) -> Any:
    # half characters come from terminals that are not UTF-8, and have no UTF-8 themselves
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return [_whole(item) for item in value] if isinstance(value, tuple) else value
