"""Tables of texts: CSV and JSON lines to rows by column, each with where it stands."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path
from typing import Any

from corank.data.formats.compressed import SUFFIXES
from corank.data.formats.text import open_text
from corank.errors import InputError

LINE_END = re.compile(r"\r\n|\r|\n")  # those of Unicode may stand inside a text

Rows = list[tuple[str, dict[str, Any]]]
"""Where each row stands, and what it holds."""


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Say what the name of a file, packed or not, ends in."""
    name = Path(path)
    return (Path(name.stem).suffix if name.suffix in SUFFIXES else name.suffix).lower()


def decoded(path: str | os.PathLike[str]) -> str:
    """Read a file, packed or not, as UTF-8."""
    text = open_text(path)
    content = text.read().tobytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = text.locate(error.start)
        raise InputError(f"{path} is not UTF-8 at line {line}, byte {column}; save it as UTF-8.") from None


def csv_rows(text: str, name: str) -> tuple[list[str], Rows]:
    """
    Parse a table with a line of names; cells are parted by commas, semicolons or tabs, as that line has them.

    text: the file.
    name: what it is called in messages.
    Returns: the names, none where there is no line, and the rows.
    """
    first = next((line for line in LINE_END.split(text) if line.strip()), "")
    limit = csv.field_size_limit(max(len(text), 1))
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
        header: list[str] = []
        rows: Rows = []
        for row in lines:
            if not any(row):
                continue
            if not header:
                header = [cell.strip() for cell in row]
                _require_different(header, name)
                continue
            if len(row) != len(header):
                raise InputError(
                    f"{name}, line {lines.line_num}: {len(row)} cells, but {len(header)} columns are named; put cells "
                    "with commas or line breaks in quotes."
                )
            rows.append((f"{name}, line {lines.line_num}", dict(zip(header, row, strict=True))))
    except csv.Error as error:
        raise InputError(f"{name}, line {lines.line_num}: {error}; write it as CSV with quoted cells.") from None
    finally:
        csv.field_size_limit(limit)
    return header, rows


def jsonl_rows(text: str, name: str) -> tuple[list[str], Rows]:
    """
    Parse one JSON object a line.

    text, name: as in `csv_rows`.
    Returns: all keys, in the order in which they come, and the rows.
    """
    rows: Rows = []
    for at, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError(f"{name}, line {at}: expected one JSON object; write one record a line.")
        rows.append((f"{name}, line {at}", row))
    return list(dict.fromkeys(key for _, row in rows for key in row)), rows


def _require_different(names: list[str], name: str) -> None:
    folded = [one.lower() for one in names if one]
    twice = next((one for at, one in enumerate(folded) if one in folded[:at]), None)
    if twice is not None:
        raise InputError(f"{name} has two columns {twice!r}; rename or remove one of them.")
