"""Tables of records: CSV, TSV and Excel, read and written, and texts with a label before each value."""

from __future__ import annotations

import contextlib
import csv
import datetime
import errno
import io
import os
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal

from corank.data import (
    LINE_END,
    ROW_CELLS,
    ZIP_DAMAGE,
    Budget,
    current_budget,
    defuse,
    member_pieces,
    require_plausible_size,
    restore,
    separator_of,
)
from corank.errors import InputError, import_extra
from corank_lab.records.columns import MAX_COLUMNS, fields_of, find_columns, is_known
from corank_lab.records.parsed import ParsedFile, RawRecord, columns_of

SEPARATORS = {",": "CSV", ";": "CSV", "\t": "TSV", "|": "CSV"}
HEADER_ROWS = 60
"""Rows in which the header is looked for."""

NumberedRow = tuple[int, list[str]]
"""Line or row in the file, from 1, and the cells."""

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")  # without a copy of the text, as StringIO makes it
_EXCEL_TEXT = re.compile(r'="(.*)"', re.DOTALL)
_SEPARATOR_LINE = re.compile(r"\s*sep=(.)\s*", re.IGNORECASE)


def parse_table(text: str, name: str) -> ParsedFile:
    """Parse a table in a text. The separator is the one with which a row has most known columns."""
    declared = _SEPARATOR_LINE.fullmatch(LINE_END.split(text[:20], maxsplit=1)[0])
    if declared:
        text = LINE_END.split(text, maxsplit=1)[-1]
    separator = declared[1] if declared else _separator(text)
    remarks = []
    rows, error = read_rows(text, separator, name, strict=True)
    if error and (separator == "\t" or "end of data" not in error[1]):
        # exports separated by tabs do not quote; others may leave a quote inside a quoted cell
        rows, _ = read_rows(text, separator, name, strict=False)
        remarks.append(f"Quotes do not follow the rules of CSV (line {error[0]}: {error[1]}); check the cells there.")
    elif error:
        raise InputError(f"{name}, line {error[0]}: {error[1]}; write CSV with quoted cells.")
    for _, row in rows:
        row[:] = map(_cell, row)
    parsed = parse_rows(rows, name, SEPARATORS.get(separator, "CSV"), "line")
    return replace(parsed, remarks=(*remarks, *parsed.remarks))


def parse_rows(rows: list[NumberedRow], name: str, format: str, unit: str) -> ParsedFile:
    """Parse rows of cells below a header, or rows of one field each, as Embase exports them."""
    rows = [(i, row) for i, row in rows if any(cell.strip() for cell in row)]
    if not rows:
        raise InputError(f"{name} contains no records; expected a header and at least one row.")
    if _has_rows_of_fields(rows):
        return _rows_of_fields(rows, name, unit)
    place = find_header([row for _, row in rows[:HEADER_ROWS]]) or 0
    header = [restore(cell.strip()) for cell in rows[place][1]]
    while header and not header[-1]:
        header.pop()
    if len(header) > MAX_COLUMNS:
        raise InputError(f"{name} has {len(header):,} columns, more than {MAX_COLUMNS:,}; check that it is an export.")
    remarks = []
    if place:
        remarks.append(f"{place} row{'s' * (place != 1)} above the header {'was' if place == 1 else 'were'} skipped.")
    names = find_columns(dict.fromkeys(header))
    texts = {*names.get("title", ()), *names.get("abstract", ())}
    records, places, n_short = [], [], 0
    asides: list[str] = []
    title_row = rows[place][1]
    rows.reverse()  # so that rows can be freed one by one
    del rows[len(rows) - place - 1 :]
    while rows:
        index, row = rows.pop()
        if len(row) > len(header) and any(cell.strip() for cell in row[len(header) :]):
            raise InputError(
                f"{name}, {unit} {index}: found {len(row)} cells, expected {len(header)}, one per column; "
                "quote cells that contain separators or line breaks."
            )
        if row[0].strip() == title_row[0] and [cell.strip() for cell in row] == title_row:
            continue  # the header again, where files were put together
        record: RawRecord = {}
        for column, cell in zip(header, row, strict=False):
            if not cell.strip():
                continue
            if column in record:
                record[column].append(cell)
            else:
                record[column] = [cell]  # smaller than a list that grows
        if len(record) == 1 and len(header) > 2 and not texts & record.keys():
            alone = next(iter(record.values()))[0]
            if " " in alone.strip():  # a heading within the table, or a line below it
                asides.append(alone)
                continue
        n_short += len(row) < len(header)
        records.append(record)
        places.append(f"{name}, {unit} {index}")
    if asides:
        remarks.append(
            f"{len(asides)} row{'s' * (len(asides) != 1)} with one cell skipped, such as {asides[0][:60]!r}."
        )
    if n_short:
        remarks.append(f"{n_short} row{'s' * (n_short != 1)} with fewer cells than the header; the rest is empty.")
    if twice := _repeated(header):
        remarks.append(f"Column {twice!r} occurs more than once; the first value that is not empty is used.")
    return ParsedFile(format, records, places, names, tuple(remarks), is_table=True, header=header)


def find_header(rows: Sequence[Sequence[str]]) -> int | None:
    """Return the number of the header among the first rows; None if no row has a title or text and another column."""
    best, most = None, (False, 0)
    for i, row in enumerate(rows):
        names = [cell.strip() for cell in row if cell.strip()]
        if not names or len(names) > MAX_COLUMNS or not any(is_known(name) for name in names if len(name) < 100):
            continue
        known = find_columns(names)
        score = ("title" in known, len(known))
        if known.keys() & {"title", "abstract"} and (len(known) > 1 or i == 0) and score > most:
            best, most = i, score
    return best


def _separator(text: str) -> str:
    head = "\n".join(islice(LINE_END.split(text[:300_000]), HEADER_ROWS))
    first = next((line for line in LINE_END.split(text[:300_000]) if line.strip()), "")
    scores = {}
    for separator in SEPARATORS:
        rows = [row for _, row in read_rows(head, separator, "", strict=False)[0]]
        i = find_header(rows)
        known = 0 if i is None else sum(bool(fields_of(cell)) for cell in rows[i])
        scores[separator] = (known, separator == separator_of(first, "".join(SEPARATORS)))
    return max(scores, key=lambda item: scores[item])


def read_rows(
    text: str, separator: str, name: str, *, strict: bool
) -> tuple[list[NumberedRow], tuple[int, str] | None]:
    """Return the rows and the first error with its line, if any; a lenient reader does not treat quotes behind tabs."""
    quoting: Literal[0, 3] = csv.QUOTE_NONE if separator == "\t" and not strict else csv.QUOTE_MINIMAL
    limit = csv.field_size_limit(max(len(text), 1))
    rows: list[NumberedRow] = []
    lines = csv.reader((line[0] for line in _LINES.finditer(text)), delimiter=separator, strict=strict, quoting=quoting)
    budget = current_budget()
    try:
        for row in lines:
            budget.take("cells", len(row) + ROW_CELLS, name)
            rows.append((lines.line_num, row))
    except csv.Error as error:
        return rows, (lines.line_num, str(error))
    finally:
        csv.field_size_limit(limit)
    return rows, None


def _cell(cell: str) -> str:
    wrapped = _EXCEL_TEXT.fullmatch(cell) if cell.startswith('="') else None
    return wrapped[1] if wrapped else restore(cell)


def _repeated(header: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for item in header:
        if item and item in seen:
            return item
        seen.add(item)
    return None


def _has_rows_of_fields(rows: list[NumberedRow]) -> bool:
    """Return whether the first cells are names of fields, as in Embase's export of one field per row."""
    labels = [row[0].strip() for _, row in rows[:200] if row]
    known = [label for label in labels if fields_of(label)]
    return any("title" in fields_of(item) for item in known) and len(set(known)) > 2 and len(known) > 0.2 * len(labels)


def _rows_of_fields(rows: list[NumberedRow], name: str, unit: str) -> ParsedFile:
    """Parse rows whose first cell names a field and whose other cells are its values; a record begins with a title."""
    first = next(label for _, row in rows if row and "title" in fields_of(label := row[0].strip()))
    records: list[RawRecord] = []
    places = []
    for i, row in rows:
        label, values = row[0].strip(), [cell for cell in row[1:] if cell.strip()]
        if label == first:
            records.append({})
            places.append(f"{name}, {unit} {i}")
        if label and values and records:
            records[-1].setdefault(label, []).extend(values)
    return ParsedFile("CSV, one field per row", records, places, find_columns(columns_of(records)))


_NUMBER = re.compile(r"<\d+\s*\.?\s*>")
_INDENTED = re.compile(r"[ \t]+\S")


def is_labelled(head: str) -> bool:
    """Return whether a number in brackets comes first, then names with indented values, one of them a title."""
    lines = [line for line in head[:20_000].split("\n") if line.strip()]
    if not lines or not _NUMBER.fullmatch(lines[0].strip()):
        return False
    names = [
        line.strip() for line, following in pairwise(lines)
        if not _INDENTED.match(line) and _INDENTED.match(following)
    ]  # fmt: skip
    return any("title" in fields_of(name) for name in names)


def parse_labelled(text: str, name: str) -> ParsedFile:
    """Parse the records."""
    records: list[RawRecord] = []
    places: list[str] = []
    label = ""
    for i, line in enumerate(LINE_END.split(text), 1):
        if _NUMBER.fullmatch(line.strip()):
            records.append({})
            places.append(f"{name}, line {i}")
            label = ""
        elif _INDENTED.match(line) and label and records:
            records[-1].setdefault(label, []).append(line.strip())
        elif line.strip():
            label = line.strip()
    return ParsedFile("Ovid", records, places, find_columns(columns_of(records)))


MAX_ROWS, MAX_SHEET_COLUMNS = 1_048_576, 16_384
"""Largest sheet of Excel."""

CELL = 32_767
"""Largest number of characters in a cell of Excel, counted in UTF-16."""

MAX_CELLS = 50_000_000
"""Cells of a workbook outside of a server; empty ones count, though they take no bytes."""

_EMPTY_RUN = 10_000


def parse_excel(content: bytes, name: str) -> ParsedFile:
    """Parse the first sheet of a workbook that has a header with a title; without one, the first sheet."""
    budget = current_budget(cells=MAX_CELLS)
    _require_workbook(content, budget, name)
    openpyxl = import_extra("openpyxl", "records")
    import_extra("defusedxml", "records")  # openpyxl then refuses entities
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
            sheets = [
                (sheet.title, _sheet_rows(sheet, budget, name))
                for sheet in book.worksheets
                if hasattr(sheet, "iter_rows")
            ]
    except (InputError, MemoryError):
        raise
    except Exception as error:  # openpyxl raises errors of many kinds for damaged files
        raise InputError(
            f"{name} cannot be read as an Excel workbook ({type(error).__name__}: {str(error)[:100]}); save it again "
            "as .xlsx or CSV."
        ) from None
    filled = [(title, rows) for title, rows in sheets if rows]
    if not filled:
        raise InputError(f"{name} contains no records; expected a sheet with a header and rows.")
    chosen = next(
        (i for i, (_, rows) in enumerate(filled) if find_header([row for _, row in rows[:HEADER_ROWS]]) is not None),
        0,
    )
    parsed = parse_rows(filled[chosen][1], name, "Excel", "row")
    if len(filled) == 1:
        return parsed
    remark = f"Sheet {filled[chosen][0]!r} was read, one of {len(filled)}."
    return replace(parsed, remarks=(remark, *parsed.remarks))


def _require_workbook(content: bytes, budget: Budget, name: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = {member.filename.replace("\\", "/").lower() for member in archive.infolist()}
            if "xl/workbook.xml" not in names:
                raise InputError(
                    f"{name} is a zip archive but not an Excel workbook; unpack it and pass the files in it."
                )
            _take_elements(archive, budget, name, len(content))
    except InputError:
        raise
    except ZIP_DAMAGE as error:
        raise InputError(f"{name} is a damaged zip archive or Excel file ({error}); save it again.") from None


def _take_elements(archive: zipfile.ZipFile, budget: Budget, name: str, packed: int) -> None:
    """Count the bytes and elements of a workbook before openpyxl, which keeps the elements, reads it."""
    unpacked = 0
    for member in archive.infolist():
        for piece in member_pieces(archive, member, name):
            unpacked += len(piece)
            require_plausible_size(name, packed, unpacked)
            budget.take("values", piece.count(b"<") - piece.count(b"</"), name)


def _sheet_rows(sheet: Any, budget: Budget, name: str) -> list[NumberedRow]:
    """Return the rows that are not empty; a sheet may claim more rows and columns than it has."""
    sheet.reset_dimensions()
    rows: list[NumberedRow] = []
    for i, row in enumerate(islice(sheet.iter_rows(values_only=True, max_row=MAX_ROWS), MAX_ROWS), 1):
        budget.take("cells", len(row) + ROW_CELLS * bool(row), name)
        cells = ["" if cell is None else _text(cell) for cell in row[:MAX_SHEET_COLUMNS]]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            budget.take("bytes", sum(map(len, cells)), name)  # many cells may share a long text
            rows.append((i, cells))
        elif i - (rows[-1][0] if rows else 0) > _EMPTY_RUN:
            break
    return rows


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return restore(str(value))


_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# characters that XML cannot hold, and single halves of surrogate pairs
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def write_excel(path: Path, rows: Iterator[list[str]], *, keep_formulas: bool) -> tuple[str, ...]:
    """Write rows to a workbook with one sheet; all cells are text. Return what was changed, in a sentence."""
    n_illegal = 0
    table: list[list[str]] = []
    for row in rows:
        cells = [_ILLEGAL.subn("\ufffd", cell if keep_formulas else defuse(cell)) for cell in row]
        n_illegal += sum(number for _, number in cells)
        table.append([cell for cell, _ in cells])
    longest = max(
        (len(cell.encode("utf-16-le")) // 2 for row in table for cell in row if 2 * len(cell) > CELL), default=0
    )
    for what, n, most in (
        ("rows", len(table), MAX_ROWS), ("columns", len(table[0]), MAX_SHEET_COLUMNS),
        ("characters in a text", longest, CELL),
    ):  # fmt: skip
        if n > most:
            raise InputError(f"there are {n:,} {what}, but a sheet of Excel holds {most:,}; write .csv instead.")
    _save(path, table)
    signs = "1 control character was" if n_illegal == 1 else f"{n_illegal:,} control characters were"
    return (f"{signs} replaced by \ufffd, because Excel cannot hold them.",) if n_illegal else ()


def _save(path: Path, table: list[list[str]]) -> None:
    openpyxl: Any = import_extra("openpyxl", "records")
    from openpyxl.cell import WriteOnlyCell

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("records")
    sheet.freeze_panes = "A2"
    content = io.BytesIO()
    with _lxml_as_system_errors():
        for row in table:
            cells = []
            for text in row:
                cell = WriteOnlyCell(sheet, value=text or None)
                if text:
                    cell.data_type = "s"  # never a formula or an error value
                cells.append(cell)
            sheet.append(cells)
        book.save(content)
    path.write_bytes(_without_times(content))


@contextlib.contextmanager
def _lxml_as_system_errors() -> Iterator[None]:
    """Raise OSError if lxml, which openpyxl uses where it is installed, cannot write openpyxl's temporary file."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith("lxml"):
            raise
        code = errno.EFBIG if "EFBIG" in str(error) else errno.ENOSPC
        raise OSError(code, os.strerror(code)) from error


def _without_times(book: io.BytesIO) -> bytes:
    """Return a workbook without the time of writing, so that the same records give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(book) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == "docProps/core.xml":
                content = _TIME.sub(b"2000-01-01T00:00:00Z", content)
            target.writestr(zipfile.ZipInfo(entry.filename, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()
