"""Records as JSON lines: one object per record, with lists where a record has several values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from corank_lab.records.fields.columns import fields_of
from corank_lab.records.writers.standard import KINDS, LISTS, OutputRecord
from corank_lab.records.writers.tables import SOURCE


def jsonl_text(records: Sequence[OutputRecord]) -> str:
    """Return records as JSON lines: standard values first, then the fields that add something to them."""
    return "".join(json.dumps(_row(record), ensure_ascii=False) + "\n" for record in records)


def _row(record: OutputRecord) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for kind in KINDS:
        values = list(record.values.get(kind, ()))
        if kind == "included":
            row |= {kind: int(values[0]) if values else None} if values or record.has_label else {}
        elif kind == "year":
            row |= {kind: int(values[0])} if values else {}
        elif values:
            row[kind] = values if kind in LISTS else values[0]
    folded = {name.casefold() for name in row}
    for name, values in record.fields.items():
        if not record.repeats(name):
            own = f"{name}{SOURCE}" if name.casefold() in folded or fields_of(name) else name
            row[own] = values if len(values) > 1 else values[0]
    for name, text in record.more.items():
        row[name if name not in row else f"{name} (answer)"] = text
    return row
