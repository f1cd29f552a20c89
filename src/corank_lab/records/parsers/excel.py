"""Excel workbooks (.xlsx): the first sheet with a header of records."""

from __future__ import annotations

import datetime
import io
import re
import warnings
import zipfile
from dataclasses import replace
from itertools import islice
from typing import Any

from corank.data import ROW_CELLS, ZIP_DAMAGE, Budget, current_budget, member_pieces, require_plausible_size, restore
from corank.errors import InputError, import_extra
from corank_lab.records.parsers.parsed import ParsedFile
from corank_lab.records.parsers.tables import HEADER_ROWS, NumberedRow, find_header, parse_rows

MOST_ROWS = 1_048_576
"""Rows of a sheet in Excel."""

MOST_COLUMNS = 16_384
MAX_CELLS = 50_000_000
"""Cells of a workbook outside of a server; empty ones count, though they take no bytes."""

CELL = 32_767
"""Largest number of characters in a cell, counted in UTF-16."""
_EMPTY_RUN = 10_000
_PART = re.compile(r"(.+) \((\d+)\)", re.DOTALL)


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
                (sheet.title, _rows(sheet, budget, name)) for sheet in book.worksheets if hasattr(sheet, "iter_rows")
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
        (at for at, (_, rows) in enumerate(filled) if find_header([row for _, row in rows[:HEADER_ROWS]]) is not None),
        0,
    )
    parsed = _joined(parse_rows(filled[chosen][1], name, "Excel", "row"))
    if len(filled) == 1:
        return parsed
    remark = f"Sheet {filled[chosen][0]!r} was read, one of {len(filled)}."
    return replace(parsed, remarks=(remark, *parsed.remarks))


def _joined(parsed: ParsedFile) -> ParsedFile:
    """Join texts that were too long for a cell and continue in columns such as ``abstract (2)``."""
    for record in parsed.records:
        for name in [one for one in record if _PART.fullmatch(one)]:
            whole, number = _PART.fullmatch(name).groups()  # type: ignore[union-attr]
            before = record.get(whole, [""])[0]
            if len(before.encode("utf-16-le", "replace")) // 2 >= (int(number) - 1) * (CELL - 1):
                record[whole][0] += record.pop(name)[0]
    return parsed


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


def _rows(sheet: Any, budget: Budget, name: str) -> list[NumberedRow]:
    """Return the rows that are not empty; a sheet may claim more rows and columns than it has."""
    sheet.reset_dimensions()
    rows: list[NumberedRow] = []
    for at, row in enumerate(islice(sheet.iter_rows(values_only=True, max_row=MOST_ROWS), MOST_ROWS), 1):
        budget.take("cells", len(row) + ROW_CELLS * bool(row), name)
        cells = ["" if cell is None else _text(cell) for cell in row[:MOST_COLUMNS]]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            budget.take("bytes", sum(map(len, cells)), name)  # many cells may share a long text
            rows.append((at, cells))
        elif at - (rows[-1][0] if rows else 0) > _EMPTY_RUN:
            break
    return rows


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return restore(str(value))
