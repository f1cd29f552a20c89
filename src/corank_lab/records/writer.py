"""Write records with their judgements as RIS, CSV, TSV, Excel, BibTeX, PubMed's .nbib, JSON lines or load file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.data import SUFFIXES, atomic_file, csv_text, suffix_of, write_text
from corank.errors import InputError
from corank_lab.records.parsers.documents import load_file_text
from corank_lab.records.records import Records
from corank_lab.records.writers.bibtex import bibtex_text
from corank_lab.records.writers.jsonl import jsonl_text
from corank_lab.records.writers.nbib import nbib_text
from corank_lab.records.writers.ris import ris_text
from corank_lab.records.writers.standard import output_records
from corank_lab.records.writers.tables import table_rows, write_excel

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
