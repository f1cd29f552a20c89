"""What a parser returns: raw records, and the names of the columns or tags that hold each field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

RawRecord = dict[str, list[str]]
"""Values of one record by column or tag, in the order of the file."""

FieldNames = Mapping[str, Sequence[str]]
"""
Columns or tags of each field (``title``, ``abstract``, ``year``, ...), the preferred first.

A record uses the first that is not empty; ``keywords`` uses all.
"""


@dataclass(frozen=True)
class ParsedFile:
    """Raw records of a file."""

    format: str  # what was recognised, such as ``"RIS"``
    records: list[RawRecord]  # values of each record by column or tag
    places: Sequence[str]  # where each record begins, for messages, such as ``"works.csv, line 3"``
    names: FieldNames  # see `FieldNames`
    remarks: tuple[str, ...] = ()  # what was assumed, one sentence each
    derived: frozenset[str] = frozenset()  # columns that the parser computed; they are not kept for exports
    is_table: bool = False  # whether a cell may hold several authors or keywords, and repeated columns alternatives
    decode: Callable[[str], str] = str  # turns a raw value into plain text, such as that of LaTeX
    header: Sequence[str] = ()  # all columns of a table, also those that are empty

    @property
    def columns(self) -> list[str]:
        """All columns or tags, in the order of the file."""
        return list(dict.fromkeys(self.header)) or columns_of(self.records)


def columns_of(records: Sequence[RawRecord]) -> list[str]:
    """Return all columns or tags in the order of their first appearance."""
    return list(dict.fromkeys(name for record in records for name in record))
