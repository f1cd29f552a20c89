"""Write rows: LETOR text with the shortest numbers that read back exactly, Parquet and CSV."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank._lazy import is_sparse
from corank._moved import old_parameters
from corank.data.durable.atomic import atomic_file
from corank.data.durable.compressed import write_text
from corank.data.inputs import as_scores
from corank.data.io.tables import BATCH_ROWS, suffix_of
from corank.data.queries import Queries
from corank.data.rows import as_rows
from corank.errors import InputError, import_extra

BATCH_LINES = 1000


@old_parameters(unscored="unjudged")
def write_letor(
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    comments: Sequence[str] | NDArray[np.object_] | None = None,
    *,
    unjudged: float | None = None,
    overwrite: bool = False,
) -> None:
    """
    Write rows as LETOR / SVMlight text, atomically; the suffixes .gz, .xz and .zst select compression.

    Reading the file restores the same bits. All features of an array are written, and the stored ones of a sparse
    matrix. Unjudged rows get the label `unjudged`, which no judged row may have.
    """
    rows = as_rows(X)
    heads = _labels(as_scores(y, rows.shape[0]), unjudged)
    if qid is not None:
        heads = [f"{head} qid:{name}" for head, name in zip(heads, _names(qid, rows.shape[0]), strict=True)]
    tails = _tails(comments, rows.shape[0])
    bodies = _sparse_bodies(rows) if is_sparse(rows) else _dense_bodies(rows)
    with write_text(path, overwrite=overwrite) as stream:
        begin = 0
        for block in bodies:
            end = begin + len(block)
            lines = zip(heads[begin:end], block, tails[begin:end], strict=True)
            text = "".join(f"{head}{body}{tail}\n" for head, body, tail in lines)
            stream.write(text.encode(errors="surrogateescape"))
            begin = end


def _labels(y: NDArray[np.float64], unjudged: float | None) -> list[str]:
    hidden = np.isnan(y)
    if hidden.any():
        if unjudged is None:
            raise InputError(
                f"y is NaN at row {int(np.flatnonzero(hidden)[0])}, which LETOR text cannot represent; "
                "pass unjudged= with the label to write for unjudged rows, such as -1."
            )
        clash = np.flatnonzero(y == unjudged)
        if len(clash) or not np.isfinite(unjudged):
            problem = f"which is also the label of row {clash[0]}" if len(clash) else "which is not finite"
            raise InputError(f"unjudged is {unjudged:g}, {problem}; choose a label that no judged row has, such as -1.")
        y = np.where(hidden, unjudged, y)
    return [repr(label).removesuffix(".0") for label in y.tolist()]


def _names(qid: ArrayLike, n_rows: int) -> list[str]:
    queries = Queries.of(qid, n_rows)
    names = [str(name) for name in queries.plain_ids("LETOR text").tolist()]
    for name in names:
        if not name or any(c in name for c in "# \t\r\n"):
            raise InputError(f"qid contains {name!r}; LETOR text needs non-empty ids without blanks and '#'.")
    return [names[code] for code in queries.codes.tolist()]


def _tails(comments: Sequence[str] | NDArray[np.object_] | None, n_rows: int) -> list[str]:
    if comments is None:
        return [""] * n_rows
    if len(comments) != n_rows:
        raise InputError(f"comments has {len(comments)} entries, but X has {n_rows} rows; pass one per row.")
    texts = ["" if comment is None else str(comment) for comment in comments]
    for row, text in enumerate(texts):
        if "\n" in text or "\r" in text:
            raise InputError(f"the comment of row {row} contains a line break; LETOR text has one row per line.")
    return [f" #{text}" if text else "" for text in texts]


def _dense_bodies(X: NDArray[Any]) -> Iterator[list[str]]:
    form = "".join(f" {k}:%s" for k in range(1, X.shape[1] + 1))
    for begin in range(0, X.shape[0], BATCH_LINES):
        # numpy prints the shortest text that reads back to the same bits
        texts = X[begin : begin + BATCH_LINES].astype(np.str_).tolist()
        yield [form % tuple(values) for values in texts]


def _sparse_bodies(X: Any) -> Iterator[list[str]]:
    for begin in range(0, X.shape[0], BATCH_LINES):
        starts = X.indptr[begin : begin + BATCH_LINES + 1].tolist()
        values = X.data[starts[0] : starts[-1]].astype(np.str_).tolist()
        ids = (X.indices[starts[0] : starts[-1]].astype(np.int64) + 1).tolist()
        pairs = [f" {k}:{value}" for k, value in zip(ids, values, strict=True)]
        yield ["".join(pairs[a - starts[0] : b - starts[0]]) for a, b in pairwise(starts)]


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

    names: names of the feature columns; f1, f2, ... by default.
    """
    parquet = import_extra("pyarrow.parquet", "frames")
    tables = _tables(X, y, qid, docids, names=names)
    with atomic_file(path, overwrite=overwrite) as scratch, ExitStack() as closing:
        writer = None
        for table in tables:
            writer = writer or closing.enter_context(parquet.ParquetWriter(scratch, table.schema))
            writer.write_table(table)


def write_csv(
    path: str | os.PathLike[str], *columns: Any, names: Sequence[str] | None = None, overwrite: bool = False
) -> None:
    """Write CSV, with tabs if the suffix is .tsv, as `write_parquet` does; an unjudged row has an empty label."""
    csv = import_extra("pyarrow.csv", "frames")
    tables = _tables(*columns, names=names)
    options = csv.WriteOptions(delimiter="\t" if suffix_of(path) == ".tsv" else ",")
    with write_text(path, overwrite=overwrite) as stream, ExitStack() as closing:
        writer = None
        for table in tables:
            writer = writer or closing.enter_context(csv.CSVWriter(stream, table.schema, write_options=options))
            writer.write_table(table)


def _tables(
    X: Any, y: ArrayLike, qid: ArrayLike | None = None, docids: ArrayLike | None = None, *, names: Sequence[str] | None
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
        for begin in range(0, n, BATCH_ROWS):
            block = slice(begin, begin + BATCH_ROWS)
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
