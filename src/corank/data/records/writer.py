"""Write records with their judgements as CSV or RIS."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from corank.data.formats.compressed import write_text
from corank.data.formats.table_text import csv_text, suffix_of
from corank.data.records.records import Records
from corank.errors import InputError

TAGS = {"year": "PY", "authors": "AU", "author": "AU", "doi": "DO", "url": "UR", "journal": "JO", "keywords": "KW"}
OURS = ("ID", "TI", "AB", "CR", "ER")
"""Tags that corank writes itself; another column of that name becomes a note."""
_TAG = re.compile(r"[A-Z][A-Z0-9]")


def require_records_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a name, ``.csv`` or ``.ris``; raise if it has another one."""
    suffix = suffix_of(path)
    if suffix not in (".csv", ".ris"):
        raise InputError(f"{path} has an unknown suffix; choose a name that ends in .csv or .ris.")
    return suffix


def write_records(
    path: str | os.PathLike[str],
    records: Records,
    labels: NDArray[np.float64],
    more: Mapping[str, Sequence[str]],
    *,
    overwrite: bool = False,
    keep_formulas: bool = False,
) -> None:
    """
    Write records with their judgements.

    path: .csv or .ris, compressed or not.
    labels: 1, 0 or NaN for each record.
    more: further columns, such as notes, with one text per record.
    overwrite: whether an existing file is replaced.
    keep_formulas: whether texts in a .csv stay as they are if a spreadsheet would run them.
    """
    if require_records_suffix(path) == ".csv":
        text = csv_text(_table(records, labels, more), keep_formulas=keep_formulas)
    else:
        text = _ris(records, labels, more)
    with write_text(path, overwrite=overwrite) as stream:
        stream.write(text.encode())


def _table(records: Records, labels: NDArray[np.float64], more: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    ours = ("id", "title", "abstract", "references", "included", *more)
    others = [name for name in dict.fromkeys(key for row in records.fields for key in row) if name.lower() not in ours]
    yield [*ours[:4], *others, *ours[4:]]
    for at, fields in enumerate(records.fields):
        label = "" if np.isnan(labels[at]) else str(int(labels[at]))
        start = (records.ids[at], records.titles[at], records.abstracts[at], " ".join(records.references[at]))
        other_cells = ("; ".join(fields.get(name, ())) for name in others)
        yield [*start, *other_cells, label, *(column[at] for column in more.values())]


def _ris(records: Records, labels: NDArray[np.float64], more: Mapping[str, Sequence[str]]) -> str:
    lines: list[str] = []
    for at, fields in enumerate(records.fields):
        kind, *_ = fields.get("TY", ["GEN"])
        lines += [f"TY  - {kind}", f"ID  - {_line(records.ids[at])}", f"TI  - {_line(records.titles[at])}"]
        lines += [f"AB  - {_line(records.abstracts[at])}"] if records.abstracts[at] else []
        lines += [f"CR  - {_line(cited)}" for cited in records.references[at]]
        for name, values in fields.items():
            tag = name if _TAG.fullmatch(name) and name not in OURS else TAGS.get(name.lower())
            if tag != "TY":
                lines += [f"{tag or 'N1'}  - {'' if tag else name + ': '}{_line(value)}" for value in values]
        mark = "not_seen" if np.isnan(labels[at]) else "relevant" if labels[at] else "irrelevant"
        lines += [f"N1  - ASReview_{mark}"]
        lines += [f"N1  - {name}: {_line(column[at])}" for name, column in more.items() if column[at]]
        lines += ["ER  - ", ""]
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())
