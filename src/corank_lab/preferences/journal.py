"""The journal of preferences: the project of items in a database."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from corank.data import Items
from corank_lab.database.journal import Journal
from corank_lab.preferences.answers import PreferenceEntry


class PreferenceJournal(Journal[PreferenceEntry]):  # noqa: D101
    __doc__ = Journal.__doc__
    entry = PreferenceEntry
    kind = "compare"
    folder = "preferences"

    def begin(self, items: Items, file: str = "", **settings: Any) -> None:
        """Use the project of items, which is made at the first time."""
        self._items = items
        payload = items_payload(items)
        self._begin(self.hash_of(payload), lambda: payload, file, **settings)

    @classmethod
    def hash_of(cls, payload: Any) -> str:
        """Return a hash of names, features and fields."""
        return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()

    def shares(self, payload: Any) -> bool:
        """Return whether all items of a project are among the items now, so that every answer stays valid."""
        return all(name in self._items.number for name in payload["names"])

    def completed(self, entry: PreferenceEntry) -> tuple[str, PreferenceEntry]:
        """Return the key of the pair, and the entry."""
        numbers = [self._items.number.get(name, 0) for name in (entry.left, entry.right)]
        return pair_key(min(numbers), max(numbers)), entry


def items_payload(items: Items) -> dict[str, Any]:
    """Return items as a project keeps them."""
    fields = [dict(one) for one in items.fields]
    return {"names": list(items.names), "X": items.X.tolist(), "fields": fields, "columns": list(items.columns)}


def pair_key(first: int, second: int) -> str:
    """Return the key of a pair of items, given their numbers, the smaller first."""
    return f"{first}-{second}"
