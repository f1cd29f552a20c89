"""Write rows as a table with label, query, document and feature columns: Parquet or CSV (extra `frames`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank._lazy import is_sparse
from corank.data.durable.atomic import atomic_file
from corank.data.durable.compressed import write_text
from corank.data.inputs import as_scores
from corank.data.io.table_text import suffix_of
from corank.data.queries import Queries
from corank.data.rows import as_rows
from corank.errors import InputError, import_extra

ROWS_AT_ONCE = 1 << 16


def write_parquet(
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    docids: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    overwrite: bool = False,
) -> None:
    """
    Write dense rows atomically as a Parquet file with the columns label, qid, docid and the features.

    y (n_rows,): labels; NaN marks an unjudged row.
    names: names of the feature columns; f1, f2, ... by default.
    overwrite: whether to replace an existing file.
    """
    parquet = import_extra("pyarrow.parquet", "frames")
    tables = _tables(X, y, qid, docids, names)
    with atomic_file(path, overwrite=overwrite) as scratch, ExitStack() as closing:
        writer = None
        for table in tables:
            writer = writer or closing.enter_context(parquet.ParquetWriter(scratch, table.schema))
            writer.write_table(table)


def write_csv(
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    docids: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write dense rows atomically as CSV, or with tabs if the suffix is .tsv; an unjudged row has an empty label."""
    csv = import_extra("pyarrow.csv", "frames")
    tables = _tables(X, y, qid, docids, names)
    options = csv.WriteOptions(delimiter="\t" if suffix_of(path) == ".tsv" else ",")
    with write_text(path, overwrite=overwrite) as stream, ExitStack() as closing:
        writer = None
        for table in tables:
            writer = writer or closing.enter_context(csv.CSVWriter(stream, table.schema, write_options=options))
            writer.write_table(table)


def _tables(
    X: Any, y: ArrayLike, qid: ArrayLike | None, docids: ArrayLike | None, names: Sequence[str] | None
) -> Iterator[Any]:
    """Check the arguments of `write_parquet`, and return blocks of rows as pyarrow tables."""
    arrow = import_extra("pyarrow", "frames")
    rows = as_rows(X)
    if is_sparse(rows):
        raise InputError("X is sparse, but tables are dense; write LETOR text or a store instead.")
    n, d = rows.shape
    names = [f"f{k}" for k in range(1, d + 1)] if names is None else list(names)
    columns: dict[str, Any] = {"label": as_scores(y, n)}
    if qid is not None:
        queries = Queries.of(qid, n)
        columns["qid"] = _as_column(queries.plain_ids("a column of a table")[queries.codes], "qid")
    if docids is not None:
        documents = np.asarray(docids)
        if documents.shape != (n,):
            raise InputError(f"docids has shape {documents.shape}, but X has {n} rows; pass one id per row.")
        columns["docid"] = _as_column(documents, "docids")
    if len(names) != d or len({*names, *columns}) != d + len(columns):
        raise InputError(
            f"names has {len(names)} entries; expected {d} different names, none of them in {list(columns)}."
        )

    def blocks() -> Iterator[Any]:
        for begin in range(0, n, ROWS_AT_ONCE):
            block = slice(begin, begin + ROWS_AT_ONCE)
            parts = [arrow.array(column[block], from_pandas=name == "label") for name, column in columns.items()]
            parts += [arrow.array(np.ascontiguousarray(column)) for column in rows[block].T]
            yield arrow.Table.from_arrays(parts, names=[*columns, *names])

    return blocks()


def _as_column(ids: NDArray[Any], name: str) -> NDArray[Any]:
    """Check that ids can be encoded in UTF-8, as tables require; LETOR and TREC files may contain other bytes."""
    if ids.dtype.kind in "OU":
        ids = np.array([str(item) for item in ids.tolist()], dtype=object)
        for row, text in enumerate(ids):
            try:
                text.encode()
            except UnicodeEncodeError:
                raise InputError(
                    f"{name} is not valid UTF-8 at row {row} ({text!r}), as tables require; replace the id."
                ) from None
    return ids
