"""Write rows as a Parquet table (extra `frames`), block by block, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.data.durable.atomic import atomic_file
from corank.data.problem.inputs import as_scores
from corank.data.problem.queries import Queries
from corank.data.problem.rows import as_rows
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
    Write dense rows as a Parquet file with columns label, qid, docid and the features, whole or not at all.

    path: the file to write.
    y (n_rows,): labels; NaN marks an unscored row.
    qid (n_rows,): query ids, numbers or strings.
    names: names of the feature columns; f1, f2, ... by default.
    overwrite: whether a file that stands at `path` is replaced.
    """
    arrow, parquet = import_extra("pyarrow", "frames"), import_extra("pyarrow.parquet", "frames")
    rows = as_rows(X)
    if sparse.issparse(rows):
        raise InputError("X is sparse, and Parquet keeps dense tables; write LETOR text or a store instead.")
    n, d = rows.shape
    names = [f"f{k}" for k in range(1, d + 1)] if names is None else list(names)
    columns: dict[str, Any] = {"label": as_scores(y, n)}
    if qid is not None:
        queries = Queries.of(qid, n)
        columns["qid"] = _as_column(queries.plain_ids("a Parquet column")[queries.codes], "qid")
    if docids is not None:
        documents = np.asarray(docids)
        if documents.shape != (n,):
            raise InputError(f"docids has shape {documents.shape} for {n} rows of X; pass one document per row.")
        columns["docid"] = _as_column(documents, "docids")
    if len(names) != d or len({*names, *columns}) != d + len(columns):
        raise InputError(f"names must be {d} different names other than {list(columns)}; got {len(names)} names.")
    with atomic_file(path, overwrite=overwrite) as scratch, ExitStack() as closing:
        writer = None
        for begin in range(0, n, ROWS_AT_ONCE):
            block = slice(begin, begin + ROWS_AT_ONCE)
            parts = [arrow.array(column[block]) for column in columns.values()]
            parts += [arrow.array(np.ascontiguousarray(column)) for column in rows[block].T]
            table = arrow.Table.from_arrays(parts, names=[*columns, *names])
            writer = writer or closing.enter_context(parquet.ParquetWriter(scratch, table.schema))
            writer.write_table(table)


def _as_column(ids: NDArray[Any], name: str) -> NDArray[Any]:
    """Check that text is Unicode, all that Parquet keeps; a LETOR or TREC file may hold other bytes."""
    if ids.dtype.kind in "OU":
        ids = np.array([str(one) for one in ids.tolist()], dtype=object)
        for row, text in enumerate(ids):
            try:
                text.encode()
            except UnicodeEncodeError:
                raise InputError(
                    f"{name} is not UTF-8 at row {row} ({text!r}); a Parquet file cannot keep it."
                ) from None
    return ids
