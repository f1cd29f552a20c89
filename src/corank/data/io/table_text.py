"""
Tables as text: rows of CSV and JSON lines as dictionaries, each with its file and line; and CSV without formulas.

A spreadsheet runs a cell that begins with =, +, -, @ or a control character as a formula. In most European countries it
also begins a cell after a semicolon, and a row after a line break within quotes. `csv_text` writes such text with an
apostrophe in front, and `csv_rows` removes it, so that texts survive unchanged. Numbers stay numbers.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from corank.data.durable.compressed import ROW_CELLS, STANDARD, SUFFIXES, current_budget, write_text
from corank.data.durable.text import open_text
from corank.errors import InputError

LINE_END = re.compile(r"\r\n|\r|\n")  # not str.splitlines: other Unicode line ends may occur inside a cell

# where a spreadsheet may begin a formula, with any number of apostrophes; full-width signs count too
_FORMULA = re.compile(r"^'*(?=[=+\-@\t\r\n＝＋－＠])|(?<=[;\t\r\n])'*(?=[=+\-@＝＋－＠])")
_DEFUSED = re.compile(r"'[=+\-@\t\r\n＝＋－＠]")
_QUOTED = re.compile(r'"[^"]*(?:"|$)')
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

LocatedRows = list[tuple[str, dict[str, Any]]]
"""File and line of each row for messages, and its cells by column."""


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a file in lower case, ignoring that of compression."""
    name = Path(path)
    return (Path(name.stem).suffix if name.suffix in SUFFIXES else name.suffix).lower()


def read_utf8(path: str | os.PathLike[str]) -> str:
    """Return the content of a UTF-8 file, plain or compressed."""
    text = open_text(path)
    content = text.read().tobytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = text.locate(error.start)
        raise InputError(f"{path} is not UTF-8 at line {line}, byte {column}; save it as UTF-8.") from None


def read_words(path: str | os.PathLike[str]) -> list[str]:
    """Return the lines of a UTF-8 file without blanks around them; empty lines are left out."""
    return [line.strip() for line in read_utf8(path).splitlines() if line.strip()]


def defuse(cell: str) -> str:
    """Put an apostrophe before each text that a spreadsheet would run as a formula."""
    return cell if _NUMBER.fullmatch(cell) else _FORMULA.sub(r"'\g<0>", cell)


def restore(cell: str) -> str:
    """Undo `defuse`."""
    if not _DEFUSED.search(cell) or _NUMBER.fullmatch(cell[1:]):
        return cell
    return _FORMULA.sub(lambda result: result[0][1:], cell)


def csv_text(rows: Iterable[Sequence[object]], *, separator: str = ",", keep_formulas: bool = False) -> str:
    """Return rows of cells as CSV."""
    out = io.StringIO(newline="")
    for row in rows:
        line = io.StringIO(newline="")
        # before Python 3.13, a cell with a carriage return is quoted only if lines end in one
        writer = csv.writer(line, delimiter=separator, lineterminator="\r\n")
        writer.writerow([defuse(cell) if isinstance(cell, str) and not keep_formulas else cell for cell in row])
        out.write(line.getvalue().removesuffix("\r\n") + "\n")
    return out.getvalue()


def write_rows(
    path: str | os.PathLike[str] | None, rows: Iterable[Sequence[object]], *,
    overwrite: bool, separator: str = ",", keep_formulas: bool = False,
) -> None:  # fmt: skip
    """Write rows of cells as CSV, by default to standard output."""
    text = csv_text(rows, separator=separator, keep_formulas=keep_formulas)
    with write_text(STANDARD if path is None else path, overwrite=overwrite) as stream:
        stream.write(text.encode(errors="surrogateescape"))


def separator_of(line: str, separators: str = ",;\t") -> str:
    """Return the separator that occurs most often in a line, outside of quotes."""
    return max(separators, key=_QUOTED.sub("", line).count)


def csv_cells(text: str, name: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Parse a table whose header determines the separator; return the header, and the line and cells of each row."""
    first = next((line for line in LINE_END.split(text) if line.strip()), "")
    limit = csv.field_size_limit(max(len(text), 1))
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator_of(first), strict=True)
        header: list[str] = []
        rows: list[tuple[int, list[str]]] = []
        budget = current_budget()
        for row in lines:
            budget.take("cells", len(row) + ROW_CELLS, name)
            if not any(row):
                continue
            if not header:
                header = [restore(cell.strip()) for cell in row]
                _require_different(header, name)
                continue
            if len(row) != len(header):
                raise InputError(
                    f"{name}, line {lines.line_num}: found {len(row)} cells, expected {len(header)}, one per column of "
                    "the header; quote cells that contain commas or line breaks."
                )
            rows.append((lines.line_num, list(map(restore, row))))
    except csv.Error as error:
        raise InputError(f"{name}, line {lines.line_num}: {error}; write CSV with quoted cells.") from None
    finally:
        csv.field_size_limit(limit)
    return header, rows


def csv_rows(text: str, name: str) -> tuple[list[str], LocatedRows]:
    """Parse a table whose header determines the separator: comma, semicolon or tab. Defused formulas are restored."""
    header, rows = csv_cells(text, name)
    return header, [(f"{name}, line {line}", dict(zip(header, cells, strict=True))) for line, cells in rows]


def jsonl_rows(text: str, name: str) -> tuple[list[str], LocatedRows]:
    """Parse one JSON object per line; return all keys in order of appearance, and the rows."""
    rows: LocatedRows = []
    budget = current_budget()
    budget.take_json(text, name)
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
        budget.take("cells", len(row) + ROW_CELLS, name)
        rows.append((f"{name}, line {i}", row))
    return list(dict.fromkeys(key for _, row in rows for key in row)), rows


def _require_different(names: list[str], name: str) -> None:
    folded = [item.lower() for item in names if item]
    twice = next((item for i, item in enumerate(folded) if item in folded[:i]), None)
    if twice is not None:
        raise InputError(f"{name} has two columns named {twice!r}; rename or remove one of them.")


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
