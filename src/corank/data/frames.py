"""Parquet tables with a label, a query and feature columns (extra `frames`); dense rows, read batch by batch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.data.atomic import atomic_file
from corank.data.given import as_scores
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import as_rows, require_finite
from corank.errors import InputError, need, reason

ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class ParquetRows:
    """
    The rows of a Parquet file.

    Attributes
    ----------
    X : ndarray, shape (n_rows, n_features)
        The feature columns: float32 where all of them are, else float64.
    y : array of float64, shape (n_rows,)
        Labels; NaN where the file has null or NaN.
    qid : array, shape (n_rows,), or None
        Query ids.
    docids : array of str objects, shape (n_rows,), or None
        Documents.
    names : list of str
        Names of the feature columns.
    """

    X: NDArray[Any]
    y: NDArray[np.float64]
    qid: NDArray[Any] | None
    docids: NDArray[np.object_] | None
    names: list[str]

    @cached_property
    def data(self) -> RankingData:
        """The rows as a checked and indexed ranking problem."""
        return RankingData.of_checked(self.X, self.y, Queries.of(self.qid, len(self.y)))


def parquet_columns(path: str | os.PathLike[str]) -> list[str]:
    """
    Read the names of the columns of a Parquet file, and nothing else.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    list of str
        In the order of the file.
    """
    with _open(path) as file:
        return list(file.schema_arrow.names)


def read_parquet(
    path: str | os.PathLike[str], *, y: str = "label", qid: str | None = "qid", docid: str | None = None
) -> ParquetRows:
    """
    Read a Parquet file; every column that is not named here is a feature.

    Parameters
    ----------
    path : path
        The file.
    y : str, default "label"
        Column of labels; null or NaN marks an unscored row.
    qid : str, optional, default "qid"
        Column of query ids; None where there is none.
    docid : str, optional
        Column of documents.

    Returns
    -------
    ParquetRows
        Rows, labels, query ids and documents.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.parquet")
    >>> write_parquet(path, [[0.5, 1.0]], [2], qid=["a"])
    >>> rows = read_parquet(path)
    >>> rows.X.tolist(), rows.y.tolist(), rows.qid.tolist(), rows.names
    ([[0.5, 1.0]], [2.0], ['a'], ['f1', 'f2'])
    """
    arrow = need("pyarrow", "frames")
    with _open(path) as file:
        schema = file.schema_arrow
        special = {"y": y, "qid": qid, "docid": docid}
        for option, name in special.items():
            if name is not None and name not in schema.names:
                raise InputError(f"{path} has no column {name!r}; name one of {schema.names} with {option}=.")
        names = [name for name in schema.names if name not in special.values()]
        for name in names:
            if not _is_number(arrow, schema.field(name).type):
                raise InputError(
                    f"{path}: column {name!r} holds {schema.field(name).type}, not numbers; "
                    "drop it, or name it as y=, qid= or docid=."
                )
        if not names or not file.metadata.num_rows:
            raise InputError(
                f"{path} has {file.metadata.num_rows} rows and {len(names)} feature columns; both are needed."
            )
        single = all(schema.field(name).type in (arrow.float32(), arrow.float16()) for name in names)
        X = _features(file, names, np.dtype(np.float32 if single else np.float64), path)
        labels = file.read([y]).column(0)
        if not _is_number(arrow, labels.type):
            raise InputError(f"{path}: the label column {y!r} holds {labels.type}; expected numbers.")
        return ParquetRows(
            X,
            as_scores(_to_numpy(labels.cast(arrow.float64(), safe=False)), len(X)),
            None if qid is None else _ids(file, qid, path),
            None if docid is None else _ids(file, docid, path).astype(np.str_).astype(object),
            names,
        )


def write_parquet(
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    docids: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
) -> None:
    """
    Write dense rows as a Parquet file with columns label, qid, docid and the features, whole or not at all.

    Parameters
    ----------
    path : path
        The file to write.
    X : ndarray or DataFrame, shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Labels; NaN marks an unscored row.
    qid : array-like of shape (n_rows,), optional
        Query ids, numbers or strings.
    docids : array-like of str, shape (n_rows,), optional
        Documents.
    names : sequence of str, optional
        Names of the feature columns; f1, f2, ... by default.
    """
    arrow, parquet = need("pyarrow", "frames"), need("pyarrow.parquet", "frames")
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
    with atomic_file(path) as scratch, ExitStack() as closing:
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


def _open(path: str | os.PathLike[str]) -> Any:
    arrow, parquet = need("pyarrow", "frames"), need("pyarrow.parquet", "frames")
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}; check the name.")
    try:
        return parquet.ParquetFile(path)
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"{path} is not a readable Parquet file ({reason(error)}); check what it is.") from error


def _is_number(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _features(file: Any, names: list[str], dtype: np.dtype[Any], path: str | os.PathLike[str]) -> NDArray[Any]:
    X = np.empty((file.metadata.num_rows, len(names)), dtype=dtype)
    begin = 0
    for batch in file.iter_batches(ROWS_AT_ONCE, columns=names):
        for k, name in enumerate(names):
            column = batch.column(name)
            if column.null_count:
                row = begin + column.is_null().to_pylist().index(True)
                raise InputError(f"{path}: column {name!r} is null at row {row}; fill or drop missing values first.")
            X[begin : begin + batch.num_rows, k] = _to_numpy(column)
        begin += batch.num_rows
    require_finite(X)
    return X


def _ids(file: Any, name: str, path: str | os.PathLike[str]) -> NDArray[Any]:
    column = file.read([name]).column(0)
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InputError(f"{path}: column {name!r} is null at row {row}; every row needs an id there.")
    ids = _to_numpy(column)
    return np.array(ids.tolist(), dtype=np.str_) if ids.dtype.kind == "O" else ids


def _to_numpy(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False))
