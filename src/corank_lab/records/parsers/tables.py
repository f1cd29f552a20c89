"""Tables: CSV and TSV with any separator, text above the header, repeated names and rows of unequal length."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Literal

from corank.data import LINE_END, ROW_CELLS, current_budget, restore, separator_of
from corank.errors import InputError
from corank_lab.records.fields.columns import MOST_COLUMNS, fields_of, find_columns, is_known
from corank_lab.records.parsers.parsed import ParsedFile, RawRecord, columns_of

SEPARATORS = {",": "CSV", ";": "CSV", "\t": "TSV", "|": "CSV"}
HEADER_ROWS = 60
"""Rows in which the header is looked for."""

NumberedRow = tuple[int, list[str]]
"""Line or row in the file, from 1, and the cells."""

_EXCEL_TEXT = re.compile(r'="(.*)"', re.DOTALL)
_SEPARATOR_LINE = re.compile(r"\s*sep=(.)\s*", re.IGNORECASE)


def parse_table(text: str, name: str) -> ParsedFile:
    """Parse a table in a text. The separator is the one with which a row has most known columns."""
    declared = _SEPARATOR_LINE.fullmatch(LINE_END.split(text[:20], maxsplit=1)[0])
    if declared:
        text = LINE_END.split(text, maxsplit=1)[-1]
    separator = declared[1] if declared else _separator(text)
    remarks = []
    rows, error = _rows(text, separator, name, strict=True)
    if error and (separator == "\t" or "end of data" not in error[1]):
        # exports separated by tabs do not quote; others may leave a quote inside a quoted cell
        rows, _ = _rows(text, separator, name, strict=False)
        remarks.append(f"Quotes do not follow the rules of CSV (line {error[0]}: {error[1]}); check the cells there.")
    elif error:
        raise InputError(f"{name}, line {error[0]}: {error[1]}; write CSV with quoted cells.")
    for _, row in rows:
        row[:] = map(_cell, row)
    parsed = parse_rows(rows, name, SEPARATORS.get(separator, "CSV"), "line")
    return replace(parsed, remarks=(*remarks, *parsed.remarks))


def parse_rows(rows: list[NumberedRow], name: str, format: str, unit: str) -> ParsedFile:
    """Parse rows of cells below a header, or rows of one field each, as Embase exports them."""
    rows = [(at, row) for at, row in rows if any(cell.strip() for cell in row)]
    if not rows:
        raise InputError(f"{name} contains no records; expected a header and at least one row.")
    if _has_rows_of_fields(rows):
        return _rows_of_fields(rows, name, unit)
    place = find_header([row for _, row in rows[:HEADER_ROWS]]) or 0
    header = [restore(cell.strip()) for cell in rows[place][1]]
    while header and not header[-1]:
        header.pop()
    if len(header) > MOST_COLUMNS:
        raise InputError(f"{name} has {len(header):,} columns, more than {MOST_COLUMNS:,}; check that it is an export.")
    remarks = []
    if place:
        remarks.append(f"{place} row{'s' * (place != 1)} above the header {'was' if place == 1 else 'were'} skipped.")
    names = find_columns(dict.fromkeys(header))
    texts = {*names.get("title", ()), *names.get("abstract", ())}
    records, places, n_short = [], [], 0
    asides: list[str] = []
    for at, row in rows[place + 1 :]:
        if len(row) > len(header) and any(cell.strip() for cell in row[len(header) :]):
            raise InputError(
                f"{name}, {unit} {at}: found {len(row)} cells, expected {len(header)}, one per column of the header; "
                "quote cells that contain separators or line breaks."
            )
        if row[0].strip() == rows[place][1][0] and [cell.strip() for cell in row] == rows[place][1]:
            continue  # the header again, where files were put together
        record: RawRecord = {}
        for column, cell in zip(header, row, strict=False):
            if cell.strip():
                record.setdefault(column, []).append(cell)
        if len(record) == 1 and len(header) > 2 and not texts & record.keys():
            alone = next(iter(record.values()))[0]
            if " " in alone.strip():  # a heading within the table, or a line below it
                asides.append(alone)
                continue
        n_short += len(row) < len(header)
        records.append(record)
        places.append(f"{name}, {unit} {at}")
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
    for at, row in enumerate(rows):
        names = [cell.strip() for cell in row if cell.strip()]
        if not names or len(names) > MOST_COLUMNS or not any(is_known(one) for one in names if len(one) < 100):
            continue
        known = find_columns(names)
        score = ("title" in known, len(known))
        if known.keys() & {"title", "abstract"} and (len(known) > 1 or at == 0) and score > most:
            best, most = at, score
    return best


def _separator(text: str) -> str:
    head = "\n".join(islice(LINE_END.split(text[:300_000]), HEADER_ROWS))
    first = next((line for line in LINE_END.split(text[:300_000]) if line.strip()), "")
    scores = {}
    for one in SEPARATORS:
        rows = [row for _, row in _rows(head, one, "", strict=False)[0]]
        at = find_header(rows)
        known = 0 if at is None else sum(bool(fields_of(cell)) for cell in rows[at])
        scores[one] = (known, one == separator_of(first, "".join(SEPARATORS)))
    return max(scores, key=lambda one: scores[one])


def _rows(text: str, separator: str, name: str, *, strict: bool) -> tuple[list[NumberedRow], tuple[int, str] | None]:
    """Return the rows and the first error with its line, if any; a lenient reader does not treat quotes behind tabs."""
    quoting: Literal[0, 3] = csv.QUOTE_NONE if separator == "\t" and not strict else csv.QUOTE_MINIMAL
    limit = csv.field_size_limit(max(len(text), 1))
    rows: list[NumberedRow] = []
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=strict, quoting=quoting)
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
    for one in header:
        if one and one in seen:
            return one
        seen.add(one)
    return None


def _has_rows_of_fields(rows: list[NumberedRow]) -> bool:
    """Return whether the first cells are names of fields, as in Embase's export of one field per row."""
    labels = [row[0].strip() for _, row in rows[:200] if row]
    known = [one for one in labels if fields_of(one)]
    return any("title" in fields_of(one) for one in known) and len(set(known)) > 2 and len(known) > 0.2 * len(labels)


def _rows_of_fields(rows: list[NumberedRow], name: str, unit: str) -> ParsedFile:
    """Parse rows whose first cell names a field and whose other cells are its values; a record begins with a title."""
    first = next(label for _, row in rows if row and "title" in fields_of(label := row[0].strip()))
    records: list[RawRecord] = []
    places = []
    for at, row in rows:
        label, values = row[0].strip(), [cell for cell in row[1:] if cell.strip()]
        if label == first:
            records.append({})
            places.append(f"{name}, {unit} {at}")
        if label and values and records:
            records[-1].setdefault(label, []).extend(values)
    return ParsedFile("CSV, one field per row", records, places, find_columns(columns_of(records)))
