"""
Tables: `read_table` reads named columns of CSV, JSON lines, Parquet, frames and lists; `csv_text` writes CSV.

Rows with many features are read by `corank.read`; the roles of columns are recognised by `corank.data.column_roles`.

A spreadsheet runs a cell that begins with =, +, -, @ or a control character as a formula. In most European countries it
also begins a cell after a semicolon, and a row after a line break within quotes. `csv_text` writes such text with an
apostrophe in front, and `read_table` removes it, so that texts survive unchanged. Numbers stay numbers.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corank.data.column_roles import ANY_COLUMNS, ColumnChoice, ColumnRoles
from corank.data.durable.compressed import (
    ROW_CELLS,
    STANDARD,
    SUFFIXES,
    current_budget,
    require_plausible_size,
    write_text,
)
from corank.data.durable.text import Source, TextFile, open_text
from corank.data.queries import is_missing
from corank.errors import InputError, import_extra, reason, suggest_names
from corank.parameters import Rule

JSON = (".json", ".jsonl", ".ndjson")
LINE_END = re.compile(r"\r\n|\r|\n")  # not str.splitlines: other Unicode line ends may occur inside a cell
BATCH_ROWS = 1 << 16

# where a spreadsheet may begin a formula, with any number of apostrophes; full-width signs count too
_FORMULA = re.compile(r"^'*(?=[=+\-@\t\r\n＝＋－＠])|(?<=[;\t\r\n])'*(?=[=+\-@＝＋－＠])")
# no sign that may begin a formula, as in most cells
_HARMLESS = re.compile(r"[^=+\-@;'\t\r\n＝＋－＠]*")
_DEFUSED = re.compile(r"'[=+\-@\t\r\n＝＋－＠]")
_QUOTED = re.compile(r'"[^"]*(?:"|$)')
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

TableSource: TypeAlias = Any
"""A path, an open file, a data frame, a mapping of columns, or a sequence of mappings."""


@dataclass(frozen=True, eq=False)
class Table:
    """
    A table of cells: texts of CSV, or values of other formats; None for nothing.

    name: Its name in messages.
    columns: The cells of each column, in the order of the file.
    place: Returns the file and line of a row, for messages.
    """

    name: str
    columns: dict[str, list[Any]]
    place: Callable[[int], str]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    def rows(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the place of each row, and its cells by column."""
        cells = zip(*self.columns.values(), strict=True)
        return [(self.place(i), dict(zip(self.columns, row, strict=True))) for i, row in enumerate(cells)]

    def roles(self, choice: ColumnChoice = ANY_COLUMNS) -> ColumnRoles:
        """Recognise the roles of the columns."""
        return choice.roles(self.names, self.name)

    def find(self, usual: Iterable[str]) -> str | None:
        """Return the first column with one of the usual names, whatever their case; None if there is none."""
        folded = {column.casefold(): column for column in reversed(self.columns)}
        return next((folded[name] for name in usual if name in folded), None)

    def require(self, *names: str | None, option: str = "") -> None:
        """Raise `InputError` for a name that is not a column; `option` is the parameter that passed it."""
        for name in names:
            if name is not None and name not in self.columns:
                given = f" for {option}=" if option else ""
                raise InputError(f"{self.name} has no column {name!r}{given}; {suggest_names(name, self.names)}.")

    def texts(self, column: str | None) -> list[str]:
        """Return the texts of a column, without blanks around them; "" for missing values, and without a column."""
        if column is None:
            return [""] * len(self)
        return ["" if is_missing(cell) else plain_text(cell).strip() for cell in self.columns[column]]

    def numbers(self, column: str, rule: Rule | None = None) -> NDArray[np.float64]:
        """Return a column of numbers that a rule allows."""
        result = np.empty(len(self))
        for i, cell in enumerate(self.columns[column]):
            try:
                result[i] = float(cell)
                is_allowed = rule is None or rule.allows(float(cell))
            except (TypeError, ValueError, OverflowError):
                is_allowed = False
            if not is_allowed:
                wanted = "a number" if rule is None else rule.words
                raise InputError(f"{self.place(i)}: {column} is {shortened(cell)}; expected {wanted}.")
        return result


def read_table(source: TableSource, name: str = "the table") -> Table:
    """
    Read a table of any kind; a file is Parquet, JSON lines or CSV by its suffix, an open file by its first character.

    name: name in messages of what is not a file.
    """
    if isinstance(source, str | os.PathLike):
        suffix = suffix_of(source)
        if suffix == ".parquet":
            return _parquet_table(source)
        return (_json_table if suffix in JSON else csv_table)(read_utf8(source), str(source))
    if isinstance(source, TextFile):
        return csv_table(read_utf8(source), str(source))
    if hasattr(source, "read"):
        content = source.read()
        text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
        name = str(getattr(source, "name", name))
        return (_json_table if text.lstrip()[:1] == "{" else csv_table)(text, name)
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):
        columns = {str(column): list(source[column]) for column in source.columns}
    elif isinstance(source, Mapping):
        columns = {str(column): list(cells) for column, cells in source.items()}
    elif isinstance(source, Sequence) and source and all(isinstance(row, Mapping) for row in source):
        columns = columns_of_rows(source)
    else:
        raise InputError(
            f"{name} is a {type(source).__name__}; pass a file, a DataFrame, columns by name, or a list of dicts."
        )
    lengths = {len(cells) for cells in columns.values()}
    if len(lengths) > 1:
        raise InputError(f"columns of {name} have {min(lengths)} and {max(lengths)} values; pass as many for each.")
    return Table(name, columns, lambda row: f"{name}, row {row}")


def columns_of_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the cells of each column, None where a row has none; columns are in order of appearance."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {str(name): [row.get(name) for row in rows] for name in names}


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a file in lower case, ignoring that of compression."""
    name = Path(path)
    return (Path(name.stem).suffix if name.suffix in SUFFIXES else name.suffix).lower()


def read_utf8(path: Source) -> str:
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
    return cell if _HARMLESS.fullmatch(cell) or _NUMBER.fullmatch(cell) else _FORMULA.sub(r"'\g<0>", cell)


def restore(cell: str) -> str:
    """Undo `defuse`."""
    if not _DEFUSED.search(cell) or _NUMBER.fullmatch(cell[1:]):
        return cell
    return _FORMULA.sub(lambda result: result[0][1:], cell)


def csv_text(rows: Iterable[Sequence[object]], *, separator: str = ",", keep_formulas: bool = False) -> str:
    """Return rows of cells as CSV."""
    lines: list[str] = []
    # before Python 3.13, a cell with a carriage return is quoted only if lines end in one
    writer = csv.writer(SimpleNamespace(write=lines.append), delimiter=separator, lineterminator="\r\n")
    for row in rows:
        writer.writerow([defuse(cell) if isinstance(cell, str) and not keep_formulas else cell for cell in row])
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


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


def csv_table(text: str, name: str) -> Table:
    """Parse a table whose header determines the separator: comma, semicolon or tab. Defused formulas are restored."""
    first = next((line for line in LINE_END.split(text) if line.strip()), "")
    limit = csv.field_size_limit(max(len(text), 1))
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator_of(first), strict=True)
        header: list[str] = []
        rows: list[list[str]] = []
        numbers: list[int] = []
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
            rows.append(list(map(restore, row)))
            numbers.append(lines.line_num)
    except csv.Error as error:
        raise InputError(f"{name}, line {lines.line_num}: {error}; write CSV with quoted cells.") from None
    finally:
        csv.field_size_limit(limit)
    columns = list(map(list, zip(*rows, strict=True))) if rows else [[] for _ in header]
    return Table(name, dict(zip(header, columns, strict=True)), lambda row: f"{name}, line {numbers[row]}")


def _json_table(text: str, name: str) -> Table:
    """Parse one JSON object per line."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
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
        rows.append(row)
        lines.append(i)
    return Table(name, columns_of_rows(rows), lambda row: f"{name}, line {lines[row]}")


def _parquet_table(path: str | os.PathLike[str]) -> Table:
    """Read a small table; what its dictionaries repeat is counted before it is unpacked."""
    columns: dict[str, list[Any]] = {}
    with open_parquet(path) as (parquet, file):
        budget = current_budget()
        budget.take("cells", file.metadata.num_rows * (file.metadata.num_columns + ROW_CELLS), path)
        types = import_extra("pyarrow", "frames").types
        nested = [field.name for field in file.schema_arrow if types.is_nested(field.type)]
        if nested and budget.left("bytes") is not None:
            # a thousand bytes may hold millions of equal elements, which Arrow unpacks before they can be counted
            raise InputError(f"{path}: column {nested[0]!r:.60} holds lists or structs; write one value per cell.")
        columns = {name: [] for name in file.schema_arrow.names}
        if len(columns) < len(file.schema_arrow.names):
            raise InputError(f"{path} has two columns of the same name; rename or remove one of them.")
        # dictionaries keep a text shared by many rows once, so that it is counted before it is repeated
        texts = [field.name for field in file.schema_arrow if is_text(field.type)]
        with parquet.ParquetFile(path, metadata=file.metadata, read_dictionary=texts) as reader:
            for batch in reader.iter_batches(BATCH_ROWS):
                budget.take("bytes", sum(map(_text_bytes, batch.columns)), path)
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    columns[name] += column.to_pylist()
    return Table(str(path), columns, lambda row: f"{path}, row {row + 1}")


@contextmanager
def open_parquet(path: str | os.PathLike[str]) -> Iterator[tuple[Any, Any]]:
    """Open a Parquet file whose footer is plausible, with pyarrow's module; damage becomes one sentence."""
    parquet, arrow = import_extra("pyarrow.parquet", "frames"), import_extra("pyarrow", "frames")
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}; check the path.")
    try:
        with parquet.ParquetFile(path) as file:
            # not by column: pyarrow aborts the process if the footer describes a column wrongly
            metadata = file.metadata
            sizes = [metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups)]
            unpacked = max(sum(sizes), metadata.num_rows * metadata.num_columns * np.dtype(np.float32).itemsize)
            require_plausible_size(path, os.path.getsize(path), unpacked)
            yield parquet, file
    except (arrow.ArrowException, OSError, UnicodeError) as error:
        raise InputError(f"{path} cannot be read as Parquet ({reason(error)}); check the file.") from error


def is_text(kind: Any) -> bool:
    """Return whether a pyarrow type is string or binary, or a dictionary of these."""
    arrow = import_extra("pyarrow", "frames")
    kind = kind.value_type if arrow.types.is_dictionary(kind) else kind
    return kind in (arrow.string(), arrow.large_string(), arrow.binary(), arrow.large_binary())


def _text_bytes(column: Any) -> int:
    """Return the bytes of the texts in a column, with those that a dictionary holds once counted as often as used."""
    arrow, compute = import_extra("pyarrow", "frames"), import_extra("pyarrow.compute", "frames")
    if not arrow.types.is_dictionary(column.type):
        return 0 if arrow.types.is_nested(column.type) else int(column.nbytes)
    lengths = compute.binary_length(column.dictionary).cast("int64").take(column.indices)
    return int(compute.sum(lengths).as_py() or 0)


def _require_different(names: list[str], name: str) -> None:
    folded = [item.lower() for item in names if item]
    twice = next((item for i, item in enumerate(folded) if item in folded[:i]), None)
    if twice is not None:
        raise InputError(f"{name} has two columns named {twice!r}; rename or remove one of them.")


# between two JSON values: white space, and lines such as "# GET ubi_queries/_search" of a console
_BETWEEN = re.compile(r"(?:[\s\ufeff]|#[^\n]*)*")


def json_values(text: str, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the JSON values of a text, and the file and line where each begins."""
    current_budget().take_json(text, name)
    decoder, i, line, counted = json.JSONDecoder(), 0, 1, 0
    while True:
        i = _BETWEEN.match(text, i).end()  # type: ignore[union-attr]
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
