"""Tables with a label, a query and feature columns: Parquet and CSV (extra `frames`); dense rows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.formats.compressed import is_stream, require_explained
from corank.data.formats.frame_ids import ids_of, integers_of, is_text, to_numpy
from corank.data.formats.frames_writer import write_parquet as write_parquet
from corank.data.formats.text import Source, open_text
from corank.data.problem.collection import Collection, as_names, as_texts
from corank.data.problem.inputs import as_scores
from corank.data.problem.rows import require_finite
from corank.errors import InputError, import_extra, reason

ROWS_AT_ONCE = 1 << 16
_FIRST_LINE = re.compile(rb"[\r\n]*+([^\r\n]*)")


def read_parquet(
    path: str | os.PathLike[str], *, y: str | None = "label", qid: str | None = None, docid: str | None = None
) -> Collection:
    """
    Read a Parquet file; every column that is not named here is a feature.

    X is float32 where all features are, else float64.

    Parameters
    ----------
    path : path
        The file.
    y : str or None, default "label"
        Column of labels; null or NaN marks an unscored row. With None, a table need not have "label".
    qid, docid : str, optional
        Columns of query ids and documents; by default those called "qid" and "docid", where there are any.

    Returns
    -------
    Collection
        Rows, labels, query ids, documents, and the names of the features.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.parquet")
    >>> write_parquet(path, [[0.5, 1.0]], [2], qid=["a"])
    >>> rows = read_parquet(path)
    >>> rows.X.tolist(), rows.y.tolist(), rows.qid.tolist(), rows.names
    ([[0.5, 1.0]], [2.0], ['a'], ['f1', 'f2'])
    """
    parquet = import_extra("pyarrow.parquet", "frames")
    if is_stream(path):
        raise InputError(f"{path} is no file, and Parquet is not read from start to end; name a file.")
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}; check the name.")
    with _naming_damage(path), parquet.ParquetFile(path) as file:
        roles = _Roles.of(file.schema_arrow.names, path, y, qid, docid)
        ids = [name for name in (roles.qid, roles.docid) if name is not None]
        texts = [name for name in ids if is_text(file.schema_arrow.field(name).type)]
        # texts as they are in the file: one that many rows share is kept once
        with parquet.ParquetFile(path, metadata=file.metadata, read_dictionary=texts) as opened:
            _require_explained(path, file.metadata)
            return _collection(
                _Columns(
                    path,
                    file.schema_arrow,
                    file.metadata.num_rows,
                    lambda names: opened.iter_batches(ROWS_AT_ONCE, columns=names),
                    lambda name: opened.read([name]).column(0),
                ),
                roles,
            )


def parquet_rows(path: str | os.PathLike[str]) -> tuple[list[str], list[tuple[str, dict[str, Any]]]]:
    """
    Read a small table as it is.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    names : list of str
        The columns.
    rows : list of (str, dict)
        Where each row stands, and what it holds by column.
    """
    parquet = import_extra("pyarrow.parquet", "frames")
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}; check the name.")
    with _naming_damage(path), parquet.ParquetFile(path) as file:
        _require_explained(path, file.metadata)
        rows = file.read().to_pylist()
        return list(file.schema_arrow.names), [(f"{path}, row {at}", row) for at, row in enumerate(rows, 1)]


@contextmanager
def _naming_damage(path: str | os.PathLike[str]) -> Iterator[None]:
    arrow = import_extra("pyarrow", "frames")
    try:
        yield
    except (arrow.ArrowException, OSError, UnicodeError) as error:
        raise InputError(f"{path} is not a readable Parquet file ({reason(error)}); check what it is.") from error


def _require_explained(path: str | os.PathLike[str], metadata: Any) -> None:
    """Refuse a footer that speaks of more rows or bytes than its file explains."""
    # not column by column: pyarrow aborts the process where the footer describes one wrongly
    sizes = [metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups)]
    unpacked = max(sum(sizes), metadata.num_rows * metadata.num_columns * np.dtype(np.float32).itemsize)
    require_explained(path, os.path.getsize(path), unpacked)


def read_csv(path: Source, *, y: str | None = "label", qid: str | None = None, docid: str | None = None) -> Collection:
    """
    Read a table as text: names of columns in the first line, then a line a row, parted by commas, tabs or semicolons.

    The text is UTF-8, plain or compressed (gzip, xz, zstandard). Every column that is not named here is a feature.

    Parameters
    ----------
    path : path
        The file; "-" is standard input.
    y : str or None, default "label"
        Column of labels; nothing, NA or NaN marks an unscored row. With None, a table need not have "label".
    qid, docid : str, optional
        Columns of query ids and documents; by default those called "qid" and "docid", where there are any.

    Returns
    -------
    Collection
        Rows in float64, labels, query ids (integers where all of them are), documents, and the names of the features.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.csv")
    >>> _ = path.write_text("qid,docid,label,bm25,age\\n7,a,2,0.5,1\\n7,b,,0.25,3\\n")
    >>> rows = read_csv(path)
    >>> rows.X.tolist(), rows.y.tolist(), rows.qid.tolist(), rows.docids.tolist(), rows.names
    ([[0.5, 1.0], [0.25, 3.0]], [2.0, nan], [7, 7], ['a', 'b'], ['bm25', 'age'])
    """
    arrow = import_extra("pyarrow", "frames")
    text = open_text(path)
    content = text.read().data
    header = _FIRST_LINE.match(content)[1]  # type: ignore[index]
    if not header.strip():
        raise InputError(f"{text} has no line that names columns, only blank ones; check what it is.")
    mark, names = max(",\t;", key=header.decode(errors="replace").count), []
    try:
        names = _parsed(header + b"\n", mark, {}).schema.names
        roles = _Roles.of(names, text, y, qid, docid)
        # a type for every column: pyarrow would guess it from the first rows
        types = {name: arrow.string() if name in (roles.qid, roles.docid) else arrow.float64() for name in names}
        try:
            table = _parsed(content, mark, types)
        except arrow.ArrowInvalid:
            table = _parsed(content, mark, types, use_threads=False)  # says in which row
    except (arrow.ArrowException, UnicodeDecodeError) as error:
        fault = re.sub(r"CSV column #(\d+)", lambda found: f"column {names[int(found[1])]!r}", reason(error))
        raise InputError(
            f"{text} cannot be read as a table ({fault}); it takes UTF-8, a value for each column of the first "
            "line in every other, and numbers except for qid= and docid=."
        ) from error
    if table.schema.names != names:
        raise InputError(f"{text} has a name of a column that goes on in the next line; write each in one line.")
    del content  # not beside X as well
    if roles.qid is not None:
        table = table.set_column(names.index(roles.qid), roles.qid, integers_of(table.column(roles.qid)))
    return _collection(
        _Columns(
            text,
            table.schema,
            table.num_rows,
            lambda names: table.select(names).to_batches(max_chunksize=ROWS_AT_ONCE),
            table.column,
        ),
        roles,
    )


def _parsed(content: Any, mark: str, types: dict[str, Any], use_threads: bool = True) -> Any:
    arrow, csv = import_extra("pyarrow", "frames"), import_extra("pyarrow.csv", "frames")
    return csv.read_csv(
        arrow.BufferReader(content),
        csv.ReadOptions(use_threads=use_threads),
        csv.ParseOptions(delimiter=mark),
        csv.ConvertOptions(column_types=types),
    )


@dataclass(frozen=True)
class _Roles:
    """Which column is what."""

    y: str | None
    qid: str | None
    docid: str | None
    features: list[str]

    @classmethod
    def of(cls, names: list[str], path: Source, *named: str | None) -> _Roles:
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{path} has two columns {twice!r}; give each a name of its own.")
        roles: dict[str, str | None] = {}
        for option, usual, name in zip(("y", "qid", "docid"), ("label", "qid", "docid"), named, strict=True):
            if name is not None and name not in names:
                raise InputError(f"{path} has no column {name!r}; name one of {names} with {option}=.")
            roles[option] = name or (usual if usual in names else None)
        return cls(**roles, features=[name for name in names if name not in roles.values()])


@dataclass(frozen=True)
class _Columns:
    """A table of pyarrow's, from a Parquet file or from text."""

    path: Source
    schema: Any
    n_rows: int
    batches: Callable[[list[str]], Iterable[Any]]
    read: Callable[[str], Any]

    def column(self, name: str) -> Any:
        found = self.read(name)
        self.require_rows(len(found))
        return found

    def require_rows(self, n_rows: int) -> None:
        if n_rows != self.n_rows:
            raise InputError(f"{self.path} is damaged: it has {n_rows} rows, not {self.n_rows}; write it again.")


def _collection(columns: _Columns, roles: _Roles) -> Collection:
    arrow = import_extra("pyarrow", "frames")
    path, names, types = columns.path, roles.features, columns.schema
    for name in names:
        if not _is_number(arrow, types.field(name).type):
            raise InputError(
                f"{path}: column {name!r} holds {types.field(name).type}, not numbers; "
                "drop it, or name it as y=, qid= or docid=."
            )
    if not names or not columns.n_rows:
        raise InputError(f"{path} has {columns.n_rows} rows and {len(names)} feature columns; both are needed.")
    is_single = all(types.field(name).type in (arrow.float32(), arrow.float16()) for name in names)
    X = _features(columns, names, np.dtype(np.float32 if is_single else np.float64))
    y = np.full(len(X), np.nan) if roles.y is None else _labels(arrow, columns, roles.y)
    ids, documents = (
        None if name is None else ids_of(columns.column(name), f"{path}: column {name!r}")
        for name in (roles.qid, roles.docid)
    )
    qid = as_names(ids) if isinstance(ids, list) else ids
    docids = None if documents is None else as_texts([str(one) for one in documents])
    return Collection(X, y, names, _qid=lambda: qid, _docids=lambda: docids)


def _labels(arrow: Any, columns: _Columns, name: str) -> NDArray[np.float64]:
    labels = columns.column(name)
    if not _is_number(arrow, labels.type):
        raise InputError(f"{columns.path}: the label column {name!r} holds {labels.type}; expected numbers.")
    return as_scores(to_numpy(labels.cast(arrow.float64(), safe=False)), columns.n_rows)


def _is_number(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _features(columns: _Columns, names: list[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    X = np.empty((columns.n_rows, len(names)), dtype=dtype)
    begin = 0
    for batch in columns.batches(names):
        if begin + batch.num_rows > len(X):
            columns.require_rows(begin + batch.num_rows)
        for k, name in enumerate(names):
            column = batch.column(name)
            if column.null_count:
                row = begin + column.is_null().to_pylist().index(True)
                raise InputError(
                    f"{columns.path}: column {name!r} is null at row {row}; fill or drop missing values first."
                )
            X[begin : begin + batch.num_rows, k] = to_numpy(column)
        begin += batch.num_rows
    columns.require_rows(begin)
    require_finite(X)
    return X
