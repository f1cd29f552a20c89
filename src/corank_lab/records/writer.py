"""Write records with their judgements as RIS, CSV, TSV, Excel, BibTeX, PubMed's .nbib, JSON lines or load file."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data import SUFFIXES, atomic_file, csv_text, defuse, suffix_of, write_text
from corank.errors import InputError, import_extra
from corank_lab.records.columns import fields_of
from corank_lab.records.output import BETWEEN, KINDS, OWN, OutputRecord, one_cell, output_records
from corank_lab.records.parsers.documents import load_file_text
from corank_lab.records.records import Records
from corank_lab.records.text_writers import bibtex_text, jsonl_text, nbib_text, ris_text

CELL = 32_767
"""Largest number of characters in a cell of Excel, counted in UTF-16."""

ROWS, COLUMNS = 1_048_576, 16_384
"""Largest sheet of Excel."""

ALWAYS = ("id", "title", "abstract")

_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# characters that XML cannot hold, and single halves of surrogate pairs
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def table_rows(records: Sequence[OutputRecord]) -> Iterator[list[str]]:
    """
    Yield the header and one row per record.

    Records of one table keep its columns, and get a column for each standard value that these do not hold. Otherwise
    standard values have columns of their own, followed by the fields that add something to them. Such a field is
    written as ``NAME (source)`` if a reader would take its name for that of a standard value.
    """
    names = list(dict.fromkeys(name for record in records for name in record.fields))
    is_table = all(record.family == "table" for record in records) and len({item.source for item in records}) == 1
    has_label = any(record.has_label or "included" in record.values for record in records)
    if is_table:
        kinds = [kind for kind in KINDS if kind != "included" and any(not record.says(kind) for record in records)]
        has_label = any(record.has_label or not record.says("included") for record in records)
        kept = names
    else:
        kinds = [kind for kind in KINDS if kind != "included" and _is_used(records, kind)]
        kept = [name for name in names if not all(record.repeats(name) for record in records)]
    more = list(dict.fromkeys(name for record in records for name in record.more))
    last = [*(["included"] if has_label else []), *more]
    first, others = [kind for kind in kinds if kind in ALWAYS], [kind for kind in kinds if kind not in ALWAYS]
    if not is_table:
        first, others = kinds, []
    taken = {name.casefold() for name in (*kinds, *last)}
    kept = [name for name in kept if name.casefold() not in taken or not all(item.repeats(name) for item in records)]
    if not is_table:
        taken |= {name.casefold() for name in kept if fields_of(name)}
    yield [*first, *_distinct(kept, taken), *others, *last]
    for record in records:
        yield [
            *(one_cell(kind, record.values.get(kind, ())) for kind in first),
            *(BETWEEN.join(record.fields.get(name, ())) for name in kept),
            *(one_cell(kind, record.values.get(kind, ())) for kind in others),
            *([record.text("included")] if has_label else []),
            *(record.more.get(name, "") for name in more),
        ]  # fmt: skip


def write_excel(path: Path, rows: Iterator[list[str]], *, keep_formulas: bool) -> tuple[str, ...]:
    """
    Write rows to a workbook with one sheet; all cells are text.

    A text that is too long for a cell continues in columns such as ``abstract (2)``, which readers join
    again. Characters that a workbook cannot hold become U+FFFD.
    """
    header, *body = rows
    if len(body) >= ROWS:
        raise InputError(
            f"there are {len(body):,} records, and a sheet of Excel holds {ROWS - 1:,}; write .csv instead."
        )
    n_illegal = 0
    clean: list[list[str]] = []
    for row in (header, *body):
        cells = [cell if keep_formulas else defuse(cell) for cell in row]
        result = [_ILLEGAL.subn("\ufffd", cell) for cell in cells]
        n_illegal += sum(number for _, number in result)
        clean.append([cell for cell, _ in result])
    table, n_split = _split(clean)
    if len(table[0]) > COLUMNS:
        raise InputError(f"there are {len(table[0]):,} columns, but a sheet of Excel holds {COLUMNS:,}; write .csv.")
    _save(path, table)
    changes = []
    if n_split:
        which = "1 text is" if n_split == 1 else f"{n_split:,} texts are"
        changes.append(
            f"{which} longer than {CELL:,} characters; the rest is in a further column such as 'abstract (2)'."
        )
    if n_illegal:
        signs = "1 control character was" if n_illegal == 1 else f"{n_illegal:,} control characters were"
        changes.append(f"{signs} replaced by \ufffd, because Excel cannot hold them.")
    return tuple(changes)


def _is_used(records: Sequence[OutputRecord], kind: str) -> bool:
    return kind in ("title", "abstract") or any(kind in record.values for record in records)


def _distinct(names: Sequence[str], taken: set[str]) -> list[str]:
    """Return names of columns that differ from each other and from `taken`, in any case."""
    used, distinct = {*taken}, []
    for name in names:
        chosen = f"{name}{OWN}" if name.casefold() in taken else name
        tries = 2
        while chosen.casefold() in used:
            chosen, tries = f"{name} [{tries}]", tries + 1
        used.add(chosen.casefold())
        distinct.append(chosen)
    return distinct


def _split(table: list[list[str]]) -> tuple[list[list[str]], int]:
    """Return the table with long cells continued in further columns, and the number of long cells."""
    parts = [[_pieces(cell) for cell in row] for row in table]
    widths = [max(len(row[column]) for row in parts) for column in range(len(table[0]))]
    if max(widths) == 1:
        return table, 0
    wide = []
    for number, row in enumerate(parts):
        cells = []
        for pieces, width in zip(row, widths, strict=True):
            if number == 0 and width > 1:
                pieces = [pieces[0], *(f"{pieces[0]} ({place})" for place in range(2, width + 1))]
            cells += [*pieces, *[""] * (width - len(pieces))]
        wide.append(cells)
    return wide, sum(len(pieces) > 1 for row in parts for pieces in row)


def _pieces(cell: str) -> list[str]:
    if 2 * len(cell) <= CELL:
        return [cell]
    pieces, size = [""], 0
    units = [1 + (sign > "\uffff") for sign in cell]
    begin = 0
    for i, unit in enumerate(units):
        if size + unit > CELL:
            pieces[-1] = cell[begin:i]
            pieces.append("")
            begin, size = i, 0
        size += unit
    pieces[-1] = cell[begin:]
    return pieces


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


SEPARATORS = {".csv": ",", ".tsv": "\t"}
TEXTS = {
    ".ris": ris_text, ".bib": bibtex_text, ".nbib": nbib_text, ".jsonl": jsonl_text, ".ndjson": jsonl_text,
}  # fmt: skip
LOAD_FILE = ".dat"
EXCEL = ".xlsx"
WRITTEN = (".ris", ".csv", ".tsv", EXCEL, ".bib", ".nbib", ".jsonl", LOAD_FILE)
"""Suffixes of files that can be written."""


def require_records_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a name without that of compression; raise `InputError` if records have no such format."""
    suffix = suffix_of(path)
    if suffix not in (*WRITTEN, *TEXTS):
        raise InputError(
            f"{path} has an unknown suffix; choose a name that ends in {', '.join(WRITTEN[:-1])} or {WRITTEN[-1]}."
        )
    if suffix == EXCEL and Path(path).suffix in SUFFIXES:
        raise InputError(f"{path} has the suffix of a compressed file, but .xlsx is compressed; leave it out.")
    return suffix


def write_records(
    path: str | os.PathLike[str],
    records: Records,
    labels: NDArray[np.float64] | None = None,
    more: Mapping[str, Sequence[str]] | None = None,
    *,
    overwrite: bool = False,
    keep_formulas: bool = False,
) -> tuple[str, ...]:
    """
    Write records; the suffix decides the format.

    Every field of the source is kept: as a column, a tag, or a note where the format has no place for it. RIS, BibTeX
    and .nbib have one line per value, so line breaks become blanks there.
    """
    suffix = require_records_suffix(path)
    rows = output_records(records, labels, more, is_bibtex=suffix == ".bib")
    if suffix == EXCEL:
        with atomic_file(path, overwrite=overwrite) as scratch:
            return write_excel(scratch, table_rows(rows), keep_formulas=keep_formulas)
    if suffix in SEPARATORS:
        text = csv_text(table_rows(rows), separator=SEPARATORS[suffix], keep_formulas=keep_formulas)
    elif suffix == LOAD_FILE:
        text = load_file_text(table_rows(rows))
    else:
        text = TEXTS[suffix](rows)
    with write_text(path, overwrite=overwrite) as stream:
        stream.write(text.encode("utf-8", "replace"))
    return ()
