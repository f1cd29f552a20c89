"""
Records that are judged once: duplicates as one, and answers found again by the keys of their records.

An answer names its record by all keys of the record and of its duplicates (`corank_lab.records.identity`), so that it
stays with the record in another file, in another order or with a corrected title. Lines of earlier versions have an id
only. The id of a record without one was its place in the file; it is still taken as that.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from corank_lab.records.identity import IdentityIndex
from corank_lab.records.records import Records
from corank_lab.records.references import ReferenceCounts, match_references

if TYPE_CHECKING:
    from corank_lab.records.duplicates import DuplicateGroups

FAMILY_COLUMNS = (
    "family", "family id", "group identifier", "begattach", "beg attach", "begin attachment", "attachment range",
)  # fmt: skip
"""Columns with one value for all documents of a family, in small letters."""
THREAD_COLUMNS = ("thread", "thread id", "email thread", "conversation", "conversation id", "thread group")
"""The same for the messages of a conversation."""
MAX_DIGITS = 10
"""Longest place in a file."""


class UniqueRecords:
    """
    Records of which duplicates are judged as one.

    records: All records.
    groups: Groups that `find_duplicates` found; by default every record is judged.

    everything: All records.
    unique: The records to judge. A group has the label that its labelled records agree on.
    originals: For each of them, its number among all records.
    groups: The groups.
    reference_counts: How references were matched; None before `linked` was called.
    """

    def __init__(self, records: Records, groups: DuplicateGroups | None = None) -> None:
        self.everything = records
        self.groups = groups
        self.reference_counts: ReferenceCounts | None = None
        n = len(records)
        self.originals = np.arange(n) if groups is None else np.array(groups.representatives, dtype=np.intp)
        self._place = np.arange(n)
        if len(self.originals) == n:
            self.unique = records
            return
        assert groups is not None
        self._place[self.originals] = np.arange(len(self.originals))
        labels = records.labels[self.originals]
        for place, number in enumerate(self.originals.tolist()):
            if len(group := groups.group_of(number)) > 1:
                self._place[list(group)] = place
                result = records.labels[list(group)]
                result = np.unique(result[~np.isnan(result)])
                labels[place] = result[0] if len(result) == 1 else np.nan
        self.unique = replace(records.take(self.originals.tolist()), labels=labels)

    def linked(self) -> Records:
        """Return the records to judge with references to each other by id, whatever names their files use."""
        everything = self.everything
        if not any(everything.references):
            return self.unique
        result, self.reference_counts = match_references(everything)
        matched = result.references
        ids, number = self.unique.ids, everything.number
        references: list[dict[str, None]] = [{} for _ in ids]
        for place, listed in zip(self._place.tolist(), matched, strict=True):
            if listed:
                cited = (ids[self._place[number[item]]] if item in number else item for item in listed)
                references[place] |= dict.fromkeys(item for item in cited if item != ids[place])
        given = zip(ids, self.unique.references, references, strict=True)
        if all({id, *before} == {id, *after} for id, before, after in given):
            return self.unique  # all references are ids already
        return replace(self.unique, references=[tuple(listed) for listed in references])

    def members(self, number: int) -> tuple[int, ...]:
        """Return the duplicates that are judged as one."""
        original = int(self.originals[number])
        group = (original,) if self.groups is None else self.groups.group_of(original)
        return (original, *(item for item in group if item != original))

    def evidence(self, number: int) -> tuple[str, ...]:
        """Return why records are duplicates."""
        return self._evidence.get(int(self.originals[number]), ())

    def family(self, number: int) -> tuple[int, ...]:
        """Return the rest of a family, such as an e-mail and its attachments, then of its thread."""
        together = dict.fromkeys(item for groups in self._families for item in groups.get(number, ()))
        return tuple(item for item in together if item != number)

    def keys(self, number: int) -> tuple[str, ...]:
        """Return the keys of a record and of its duplicates."""
        return tuple(dict.fromkeys(key for member in self.members(number) for key in self.everything.keys[member]))

    def place(self, original: int) -> int:
        """Return the record that is judged for a record."""
        return int(self._place[original])

    def find(self, id: str, keys: Sequence[str] = (), title: str = "") -> int | None:
        """Find the record that an answer is about."""
        number = self.everything.number.get(id)
        if number is not None and keys and not self._is_same(number, keys):
            number = None
        if number is None:
            number = self._index.find(keys, title) if keys else self._find_old(id)
        return None if number is None else self.place(number)

    @property
    def hash(self) -> str:
        """First 16 hexadecimal digits of a hash of the files that the records were read from."""
        records = self.everything
        parts = sorted(source.sha256 for source in records.sources)
        parts = parts or [part for pair in zip(records.ids, records.titles, strict=True) for part in pair]
        return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:16]

    @cached_property
    def _evidence(self) -> dict[int, tuple[str, ...]]:
        groups = () if self.groups is None else self.groups.groups
        return {number: tuple(group.evidence) for group in groups for number in group.members}

    @cached_property
    def _families(self) -> list[dict[int, list[int]]]:
        """The family and the thread of each record that has one with several members."""
        result = []
        for names in (FAMILY_COLUMNS, THREAD_COLUMNS):
            groups: dict[str, list[int]] = {}
            for number, fields in enumerate(self.unique.fields):
                column = _first_column(tuple(fields), names)
                if column is not None and (value := " ".join(fields[column]).strip()):
                    groups.setdefault(value, []).append(number)
            result.append({number: members for members in groups.values() if len(members) > 1 for number in members})
        return result

    @cached_property
    def _index(self) -> IdentityIndex:
        return IdentityIndex(self.everything)

    def _is_same(self, number: int, keys: Iterable[str]) -> bool:
        """Whether a record shares its fingerprint with an answer; a DOI may be that of a whole supplement."""
        fingerprints = {key for key in self.everything.keys[number] if key.startswith("title:")}
        return not fingerprints.isdisjoint(keys)

    def _find_old(self, id: str) -> int | None:
        """Find the record of an answer that has only an id: given in the file, or the place in a file without ids."""
        result = self._index.find([id, f"id:{id}"])
        if result is not None or not (id.isascii() and id.isdigit() and len(id) < MAX_DIGITS):
            return result
        place = int(id) - 1
        return place if 0 <= place < len(self.everything) and not self.everything.details[place].given_id else None


@lru_cache(maxsize=1000)
def _first_column(columns: tuple[str, ...], names: tuple[str, ...]) -> str | None:
    """Return the column with the first of some names, in any spelling."""
    named = {" ".join(re.split(r"[\W_]+", column.lower())): column for column in columns}
    return next((named[name] for name in names if name in named), None)
