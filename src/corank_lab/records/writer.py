"""Write records with their judgements as RIS, CSV, TSV, Excel, JSON lines or load file; see `output` for the fields."""

from __future__ import annotations

import contextlib
import errno
import io
import json
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
from corank_lab.records.documents import IMAGES, image_file_text, load_file_text
from corank_lab.records.output import BETWEEN, KINDS, LISTS, OWN, OutputRecord, one_cell, output_records, squeeze
from corank_lab.records.records import Records

CELL = 32_767
"""Largest number of characters in a cell of Excel, counted in UTF-16."""

ROWS, COLUMNS = 1_048_576, 16_384
"""Largest sheet of Excel."""

ALWAYS = ("id", "title", "abstract")

_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# characters that XML cannot hold, and single halves of surrogate pairs
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

RIS_TAGS = {
    "id": "ID", "title": "TI", "abstract": "AB", "authors": "AU", "year": "PY", "journal": "T2", "doi": "DO",
    "pmid": "PM", "accession": "AN", "keywords": "KW", "url": "UR", "references": "CR",
}  # fmt: skip
"""Tag of each standard value."""

_COMMON = {"volume": "VL", "issue": "IS", "pages": "SP", "issn": "SN", "language": "LA", "publisher": "PB"}
_SHARED = {
    "nbib": {"vi": "VL", "ip": "IS", "pg": "SP", "is": "SN", "la": "LA", "pb": "PB"},
    "wos": {"vl": "VL", "is": "IS", "bp": "SP", "sn": "SN", "la": "LA", "pu": "PB"},
    "bibtex": _COMMON | {"number": "IS"}, "endnote xml": _COMMON | {"number": "IS", "isbn": "SN"},
}  # fmt: skip
"""Tags of RIS for further fields, by their names in other formats, in lower case."""

RIS_TYPES = {
    "article": "JOUR", "book": "BOOK", "inbook": "CHAP", "incollection": "CHAP", "inproceedings": "CPAPER",
    "conference": "CPAPER", "phdthesis": "THES", "mastersthesis": "THES", "techreport": "RPRT", "unpublished": "UNPB",
}  # fmt: skip
"""Types of RIS by the types of BibTeX."""
_RIS_TAG = re.compile(r"[A-Z][A-Z0-9]")


def ris_text(records: Sequence[OutputRecord]) -> str:
    """Return records as RIS; every value is one line, and fields without a tag become notes (``N1``)."""
    texts = []
    for record in records:
        pairs = [(tag, squeeze(value)) if _RIS_TAG.fullmatch(tag) else ("N1", f"{squeeze(name)}: {squeeze(value)}")
                 for tag, name, value in _ris_lines(record) if tag not in ("TY", "ER")]  # fmt: skip
        pairs += [("N1", record.mark)] if record.mark else []
        pairs += [("N1", f"{squeeze(name)}: {squeeze(text)}") for name, text in record.more.items() if text.strip()]
        lines = [("TY", _ris_type(record)), *pairs, ("ER", "")]
        texts.append("".join(f"{tag}  - {value}\n" for tag, value in lines))
    return "\n".join(texts) + "\n"


def _ris_lines(record: OutputRecord) -> list[tuple[str, str, str]]:
    """Return tag, name and value of each line, standard values first."""
    is_own = record.family == "ris"
    lines = [
        (tag, kind, value)
        for kind, tag in RIS_TAGS.items()
        if not (is_own and record.says(kind)) and not (kind == "id" and record.is_id_implied)
        for value in record.values.get(kind, ())
    ]
    shared = _SHARED.get(record.family, _COMMON)
    for name, values in record.fields.items():
        if is_own or not record.repeats(name):
            tag = name if is_own else shared.get(name.casefold(), "")
            lines += [(tag, name, value) for value in values if value.strip()]
    return lines


def _ris_type(record: OutputRecord) -> str:
    own = record.fields.get("TY", []) if record.family == "ris" else []
    if own and own[0].strip():
        return squeeze(own[0])
    entry = record.fields.get("type", [""])[0] if record.family == "bibtex" else ""
    return RIS_TYPES.get(entry.casefold(), "JOUR" if "journal" in record.values else "GEN")


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
            own = f"{name}{OWN}" if name.casefold() in folded or fields_of(name) else name
            row[own] = values if len(values) > 1 else values[0]
    for name, text in record.more.items():
        row[name if name not in row else f"{name} (answer)"] = text
    return row


def opt_text(records: Sequence[OutputRecord]) -> str:
    """Return the images of documents as an Opticon file, which holds nothing else of them."""
    return image_file_text(text for record in records for text in record.fields.get(IMAGES, ()))


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
    sizes = (("rows", len(table), ROWS), ("columns", len(table[0]), COLUMNS), ("characters in a text", longest, CELL))
    for what, n, most in sizes:
        if n > most:
            raise InputError(f"there are {n:,} {what}, but a sheet of Excel holds {most:,}; write .csv instead.")
    _save(path, table)
    signs = "1 control character was" if n_illegal == 1 else f"{n_illegal:,} control characters were"
    return (f"{signs} replaced by \ufffd, because Excel cannot hold them.",) if n_illegal else ()


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
TEXTS = {".ris": ris_text, ".jsonl": jsonl_text, ".ndjson": jsonl_text, ".opt": opt_text}
LOAD_FILE = ".dat"
EXCEL = ".xlsx"
WRITTEN = (".ris", ".csv", ".tsv", EXCEL, ".jsonl", LOAD_FILE)
"""Suffixes of files that can be written; .opt, which holds images only, is another one."""


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

    Every field of the source is kept: as a column, a tag, or a note where the format has no place for it. RIS
    has one line per value, so line breaks become blanks there.
    """
    suffix = require_records_suffix(path)
    rows = output_records(records, labels, more)
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
