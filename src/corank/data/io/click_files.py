"""Files of clicks: tables with one row per document shown, and OpenSearch's User Behavior Insights (UBI)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from corank.data.io.click_log import ClickLog
from corank.data.io.compressed import require_text_place, write_text
from corank.data.io.frames import parquet_rows
from corank.data.io.table_text import LocatedRows, csv_rows, read_utf8, suffix_of
from corank.data.io.ubi import JSON, read_ubi, write_ubi
from corank.errors import InputError, suggest_names

COLUMNS = ("qid", "docid", "position", "clicked")
OPTIONAL = ("impression", "propensity", "complete", "log_propensity")
TABLES = (".csv", ".tsv", ".parquet")


def read_clicks(path: str | os.PathLike[str], *, queries: str | os.PathLike[str] | None = None) -> ClickLog:
    """
    Read a log of clicks.

    A table (.csv, .tsv or .parquet) has one row per document shown: ``qid``, ``docid``, ``position`` (from 1),
    ``clicked`` (0 or 1) and, if known, ``impression`` (id of the list), ``propensity``, ``log_propensity`` and
    ``complete`` (0 for rows of lists whose documents are not all known). Files with the suffix .json, .jsonl or .ndjson
    are read as User Behavior Insights (UBI): events, and queries with the documents shown, in one file or two. Saved
    answers of OpenSearch (``{"hits": {"hits": [...]}}``) are unwrapped. A warning gives the number of objects and
    clicks that are left out.
    """
    suffix = suffix_of(path)
    if suffix in JSON:
        return read_ubi(path, queries)
    if queries is not None:
        raise InputError(f"queries= is for events of UBI, but {path} is a table; leave it out.")
    if suffix not in TABLES:
        raise InputError(f"{path} has an unknown suffix; expected one of {', '.join((*TABLES, *JSON))}.")
    columns, rows = parquet_rows(path) if suffix == ".parquet" else csv_rows(read_utf8(path), str(path))
    for column in COLUMNS:
        if column not in columns:
            raise InputError(f"{path} has no column {column!r}; {suggest_names(column, columns)}.")
    if not rows:
        raise InputError(f"{path} has no rows; expected one per document shown.")
    cells = {name: [row[name] for _, row in rows] for name in (*COLUMNS, *OPTIONAL) if name in columns}
    numbers = {
        name: _numbers(cells[name], name, rows) for name in ("position", "clicked", *OPTIONAL[1:]) if name in cells
    }
    try:
        return ClickLog.of(
            cells["qid"],
            cells["docid"],
            numbers["position"],
            numbers["clicked"],
            impression=cells.get("impression"),
            propensity=numbers.get("propensity"),
            complete=numbers.get("complete"),
            log_propensity=numbers.get("log_propensity"),
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_clicks(
    path: str | os.PathLike[str],
    log: ClickLog,
    *,
    queries: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a log of clicks as a table (.csv, .tsv) or as User Behavior Insights (.json, .jsonl, .ndjson)."""
    suffix = suffix_of(path)
    for place in (path, queries):
        if place is not None:
            require_text_place(place, overwrite=overwrite)
    if suffix in JSON:
        write_ubi(path, log, queries, overwrite=overwrite)
        return
    if suffix not in (".csv", ".tsv"):
        raise InputError(f"{path} has an unknown suffix; use .csv, .tsv or .jsonl.")
    if queries is not None:
        raise InputError(f"queries= is for events of UBI, but {path} is a table; leave it out.")
    _write_table(Path(path), log, "," if suffix == ".csv" else "\t", overwrite)


def _write_table(path: Path, log: ClickLog, comma: str, overwrite: bool) -> None:
    import csv
    import io

    columns: dict[str, Any] = {
        "impression": log.impression.tolist(),
        "qid": log.qid.tolist(),
        "docid": log.docids.tolist(),
        "position": log.position.tolist(),
        "clicked": log.clicked.astype(np.int64).tolist(),
    }
    if log.propensity is not None:
        columns["propensity"] = log.propensity.tolist()
    if log.log_propensity is not None:
        columns["log_propensity"] = log.log_propensity.tolist()
    if log.complete is not None:
        columns["complete"] = log.complete.astype(np.int64).tolist()
    with write_text(path, overwrite=overwrite) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline="")
        writer = csv.writer(text, delimiter=comma, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        text.flush()
        text.detach()


def _numbers(cells: list[Any], name: str, rows: LocatedRows) -> list[float]:
    numbers = []
    for (where, _), cell in zip(rows, cells, strict=True):
        try:
            numbers.append(float(cell))
        except (TypeError, ValueError):
            raise InputError(f"{where}: {name} is {cell!r}; expected a number.") from None
    return numbers
