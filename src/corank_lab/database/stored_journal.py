"""Journals in a store: the same interface as journals in files, so that sessions work on both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

from corank import __version__
from corank.errors import InputError
from corank_lab.database.journal import JournalEntry, entry_fault
from corank_lab.database.store import AnswerStore

E = TypeVar("E", bound=JournalEntry)
L = TypeVar("L", bound=JournalEntry)


class AnswerLog(Protocol[L]):
    """What a session needs: the entries so far, and a way to append one durably."""

    entries: list[L]

    def append(self, entry: L) -> None:
        """Append an entry. When this returns, it is on the disk."""


class StoredJournal(Generic[E]):
    """
    The answers of one judge of a project.

    store: the database.
    project: id of the project.
    judge: name of the judge.
    entry: class of the entries.
    item: returns the key of the item that an entry is about.

    entries: the entries so far.
    source: hash of the judged file, which new entries carry; empty until a session sets it.
    """

    def __init__(
        self, store: AnswerStore, project: str, judge: str, entry: type[E], item: Callable[[E], str] = lambda _: ""
    ) -> None:
        self._store, self._project, self._judge, self._item = store, project, judge, item
        self.source = ""
        self.entries: list[E] = [
            read_entry(entry, one.entry, f"answer {one.number}") for one in store.answers(project, judge=judge)
        ]

    def append(self, entry: E, *, client_id: str | None = None) -> None:
        """
        Append an entry. When this returns, it is on the disk.

        client_id: the same for all attempts to append this entry; an entry that is stored already is not added again.
        """
        stamped = replace(entry, time=utc_now(), judge=self._judge, version=__version__, records=self.source)
        values = entry_values(stamped)
        stored, is_new = self._store.append(self._project, self._judge, self._item(entry), values, client_id)
        if is_new:
            self.entries.append(replace(stamped, place=f"answer {stored.number}"))

    def extend(self, entries: Iterable[E]) -> None:
        """Append several entries, such as answers that were known beforehand."""
        for entry in entries:
            self.append(entry)

    def close(self) -> None:
        """Do nothing: the store stays open."""

    def __enter__(self) -> StoredJournal[E]:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def utc_now() -> str:
    """Return the time as lines of journals have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def entry_values(entry: JournalEntry) -> dict[str, Any]:
    """Return the keys and values of an entry's line; empty ones are left out."""
    values = {name: _whole(getattr(entry, name)) for name in entry.names()}
    return {name: value for name, value in values.items() if value not in ("", None, [], ())}


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


def _whole(value: Any) -> Any:
    # half characters have no UTF-8
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
