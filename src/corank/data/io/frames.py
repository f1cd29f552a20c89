"""Read tables with label, query and feature columns: Parquet and CSV (extra `frames`)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.collection import Dataset, as_names, as_texts
from corank.data.column_roles import ColumnChoice, ColumnRoles
from corank.data.durable.compressed import is_stream, require_plausible_size
from corank.data.durable.text import Source, open_text
from corank.data.inputs import as_scores
from corank.data.io.tables import BATCH_ROWS, is_text, open_parquet, separator_of
from corank.data.rows import (
    category_columns,
    category_names,
    known_categories,
    require_finite,
    warn_of_categories,
)
from corank.errors import InputError, import_extra, reason


def ids_of(column: Any, name: str, *, may_be_null: bool = False) -> list[str] | NDArray[Any]:
    """Return the ids of a column: a list of strings, else an array."""
    if may_be_null and column.null_count:
        return ["" if item is None else str(item) for item in column.to_pylist()]
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InputError(f"{name} is null at row {row}; give every row an id.")
    if import_extra("pyarrow", "frames").types.is_nested(column.type):
        raise InputError(f"{name} has the type {column.type}; use numbers or text as ids.")
    if is_text(column.type):
        return _texts(column)
    ids = to_numpy(column)
    return [str(id_) for id_ in ids.tolist()] if ids.dtype.kind == "O" else ids


def integers_of(column: Any) -> Any:
    """Convert a text column of query ids to integers if all ids are integers; empty cells become null."""
    arrow, compute = import_extra("pyarrow", "frames"), import_extra("pyarrow.compute", "frames")
    if (to_numpy(compute.binary_length(column)) == 0).any():  # a Python value as operand makes pyarrow import pandas
        column = compute.if_else(compute.equal(column, ""), None, column)
    try:
        numbers = column.cast(arrow.int64())
    except arrow.ArrowInvalid:
        return column
    return numbers if numbers.cast(arrow.string()).equals(column) else column


def to_numpy(column: Any) -> NDArray[Any]:
    """Convert a column to an array; a batch of numbers without nulls is not copied."""
    arrow = import_extra("pyarrow", "frames")
    if arrow.types.is_integer(column.type) or arrow.types.is_floating(column.type):
        # `to_numpy` imports pandas
        if column.null_count:
            column = column if arrow.types.is_floating(column.type) else column.cast(arrow.float64(), safe=False)
            nan = arrow.Array.from_buffers(arrow.float64(), 1, [None, arrow.py_buffer(np.full(1, np.nan))])
            column = column.fill_null(nan.cast(column.type)[0])
        if not hasattr(column, "chunks"):
            return np.from_dlpack(column)
        return np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks] or [np.empty(0)])
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _words(texts: Any) -> list[str | None]:
    """Decode texts; bytes that are not UTF-8 are preserved as in LETOR text."""
    arrow = import_extra("pyarrow", "frames")
    if arrow.types.is_string(texts.type) or arrow.types.is_large_string(texts.type):
        try:
            return list(texts.to_pylist())
        except UnicodeDecodeError:
            pass
    raw = texts.cast(arrow.large_binary()).to_pylist()
    return [None if word is None else word.decode(errors="surrogateescape") for word in raw]


def _texts(column: Any) -> list[str]:
    """Return the texts of a column."""
    arrow = import_extra("pyarrow", "frames")
    result: list[Any] = []
    for chunk in column.chunks:
        coded = chunk if arrow.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        words, codes = _words(coded.dictionary), to_numpy(coded.indices)
        if None in words or (len(codes) and not 0 <= codes.min() <= codes.max() < len(words)):
            raise arrow.ArrowInvalid("a text is not in its dictionary")
        result += map(words.__getitem__, codes.tolist())
    return result


def _values(column: Any) -> list[Any]:
    """Return the values of a column of categories, None for null; a text of many rows is kept once."""
    if not is_text(column.type):
        return list(column.to_pylist())
    texts = iter(_texts(column.drop_null()))
    return [None if is_null else next(texts) for is_null in column.is_null().to_pylist()]


_FIRST_LINE = re.compile(rb"[\r\n]*+([^\r\n]*)")
# pyarrow's message for a cell that is not a number
_TEXT_CELL = re.compile(
    r"CSV column #(\d+): Row #(\d+): CSV conversion error to double: invalid value '(.*)'", re.DOTALL
)
_SHOWN_CELL = 40
_SPELLINGS = {
    re.compile(r"\s*[+-]?\d*,\d+\s*"): "write decimal points instead of commas",
    re.compile(r"\s*(true|false)\s*", re.IGNORECASE): "write 1 and 0 for true and false",
}
"""Cells that are numbers in another spelling, with advice."""


def read_parquet(path: str | os.PathLike[str], **columns: Any) -> Dataset:
    """
    Read a Parquet file; columns without another role are features.

    X is float32 if all features are, else float64. Null or NaN in the label column marks an unjudged row.
    """
    if is_stream(path):
        raise InputError(f"{path} is a stream, but Parquet needs random access; pass the name of a file.")
    with open_parquet(path) as (parquet, file):
        columns, groups = _known_groups(file.schema_arrow.names, columns)
        roles = ColumnChoice(**columns).roles(file.schema_arrow.names, path)
        ids = [*(name for name in (roles.qid, roles.docid, roles.judge) if name is not None), *groups]
        texts = [name for name in ids if is_text(file.schema_arrow.field(name).type)]
        # dictionaries keep a text shared by many rows once
        with parquet.ParquetFile(path, metadata=file.metadata, read_dictionary=texts) as reader:
            table = _ArrowTable(
                path, file.schema_arrow, file.metadata.num_rows,
                lambda names: reader.iter_batches(BATCH_ROWS, columns=names),
                lambda name: reader.read([name]).column(0),
            )  # fmt: skip
            if columns["features"] is None:
                groups = _groups(table, roles.features)
            n_cells = table.n_rows * sum(map(len, groups.values()))
            require_plausible_size(path, os.path.getsize(path), n_cells * np.dtype(np.float64).itemsize)
            return _collection(table, roles, groups)


def _known_groups(names: list[str], columns: dict[str, Any]) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the arguments with the columns of categories of a model by their names, and their columns of 0 and 1."""
    features = columns.setdefault("features", None)
    groups = {} if features is None else known_categories(names, features)
    if features is None or not groups:
        return columns, {}
    made = {item for items in groups.values() for item in items}
    return {**columns, "features": [*(item for item in features if item not in made), *groups]}, groups


def _groups(table: _ArrowTable, features: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of texts with a dictionary, as pandas writes categories, and their columns of 0 and 1."""
    types, groups = import_extra("pyarrow", "frames").types, {}
    for name in features:
        kind = table.schema.field(name).type
        if types.is_dictionary(kind) and is_text(kind):
            values = set(_values(table.column(name))) - {None}
            groups[name] = category_names(name, sorted(values), table.schema.names)
    if groups:
        warn_of_categories(groups)
    return groups


def read_csv(path: Source, **columns: Any) -> Dataset:
    """
    Read a CSV table with a header, separated by commas, tabs or semicolons; columns without another role are features.

    The text is UTF-8, plain or compressed (gzip, xz, zstandard). An empty cell, NA or NaN in the label column marks an
    unjudged row. `columns` are the arguments y, qid, docid, judge, drop, keep and features of `corank.read`.
    """
    arrow = import_extra("pyarrow", "frames")
    text = open_text(path)
    content = text.read().data
    header = _FIRST_LINE.match(content)[1]  # type: ignore[index]
    if not header.strip():
        raise InputError(f"{text} contains only blank lines; expected a header with the names of the columns.")
    separator, names = separator_of(header.decode(errors="replace")), []
    try:
        raws = _parse_csv(header + b"\n", separator, {}).schema.names
        names = [name.strip() for name in raws]
        columns, groups = _known_groups(names, columns)
        roles = ColumnChoice(**columns).roles(names, text)
        # set all types: pyarrow would guess them from the first rows
        numbers = {*roles.features, roles.y}.difference(groups)
        types = {
            raw: arrow.float64() if name in numbers else arrow.string() for raw, name in zip(raws, names, strict=True)
        }
        try:
            table = _parse_csv(content, separator, types)
        except arrow.ArrowInvalid:
            table = _parse_csv(content, separator, types, use_threads=False)  # its message contains the row
    except (arrow.ArrowException, UnicodeDecodeError) as error:
        if result := _TEXT_CELL.search(str(error)):
            column = names[int(result[1])]
            advice = next((advice for cell, advice in _SPELLINGS.items() if cell.fullmatch(result[3])), None)
            content_of = f"{result[3][:_SHOWN_CELL]!r} in line {result[2]}"
            raise _text_column(text, column, roles, content_of, advice) from error
        fault = re.sub(r"CSV column #(\d+)", lambda matches: f"column {names[int(matches[1])]!r}", reason(error))
        raise InputError(
            f"{text} cannot be read as a table ({fault}); expected UTF-8 with a header, and one cell per column in "
            "every row."
        ) from error
    if table.schema.names != raws:
        raise InputError(f"{text} has a column name with a line break; write the header on one line.")
    del content  # frees memory before X is allocated
    table = table.rename_columns(names)
    for name in filter(None, (roles.qid, roles.docid, roles.judge)):
        trimmed = import_extra("pyarrow.compute", "frames").ascii_trim_whitespace(table.column(name))
        table = table.set_column(names.index(name), name, integers_of(trimmed) if name == roles.qid else trimmed)
    blocks = lambda names: table.select(names).to_batches(max_chunksize=BATCH_ROWS)  # noqa: E731
    return _collection(_ArrowTable(text, table.schema, table.num_rows, blocks, table.column), roles, groups)


def _parse_csv(content: Any, separator: str, types: dict[str, Any], use_threads: bool = True) -> Any:
    arrow, csv = import_extra("pyarrow", "frames"), import_extra("pyarrow.csv", "frames")
    return csv.read_csv(
        arrow.BufferReader(content),
        csv.ReadOptions(use_threads=use_threads),
        csv.ParseOptions(delimiter=separator),
        csv.ConvertOptions(column_types=types),
    )


@dataclass(frozen=True)
class _ArrowTable:
    """A pyarrow table from a Parquet file or from text."""

    path: Source
    schema: Any
    n_rows: int
    batches: Callable[[list[str]], Iterable[Any]]
    read: Callable[[str], Any]

    def column(self, name: str) -> Any:
        column = self.read(name)
        self.require_rows(len(column))
        return column

    def require_rows(self, n_rows: int) -> None:
        if n_rows != self.n_rows:
            raise InputError(
                f"{self.path} is damaged: found {n_rows} rows, expected {self.n_rows}; write the file again."
            )


def _text_column(path: Source, name: str, roles: ColumnRoles, content: str, advice: str | None = None) -> InputError:
    if advice is not None:
        what = "labels" if name == roles.y else "features"
        return InputError(f"{path}: column {name!r} contains {content}, but {what} are numbers; {advice}.")
    if name == roles.y:
        return InputError(
            f"{path}: the label column {name!r} contains {content}, but labels are numbers; choose another column with "
            "y=, or replace its texts."
        )
    return InputError(
        f"{path}: column {name!r} contains {content}, but features are numbers; name it with docid= or qid=, or leave "
        f"it out with drop={name!r}."
    )


def _collection(columns: _ArrowTable, roles: ColumnRoles, groups: Mapping[str, Sequence[str]]) -> Dataset:
    arrow = import_extra("pyarrow", "frames")
    path, names, types = columns.path, [name for name in roles.features if name not in groups], columns.schema
    for name in [*names, *([roles.y] if roles.y else [])]:
        if not _is_number(arrow, types.field(name).type):
            raise _text_column(path, name, roles, f"values of type {types.field(name).type}")
    if not roles.features or not columns.n_rows:
        raise InputError(
            f"{path} has {columns.n_rows} rows and {len(names)} feature columns; expected at least one of each. "
            "Write a list of judgements without features as TREC qrels: query 0 document grade."
        )
    is_single = all(types.field(name).type in (arrow.float32(), arrow.float16()) for name in names)
    dtype = np.dtype(np.float32 if is_single and names else np.float64)
    X = _features(columns, names, dtype) if names else np.empty((columns.n_rows, 0))
    if groups:
        blocks = [category_columns(name, _values(columns.column(name)), items) for name, items in groups.items()]
        X = np.hstack([X, *blocks])
        names += [item for items in groups.values() for item in items]
        roles = replace(roles, features=tuple(names))
    y = np.full(len(X), np.nan)
    if roles.y is not None:
        y = as_scores(to_numpy(columns.column(roles.y).cast(arrow.float64(), safe=False)), columns.n_rows)
    ids, documents, judges = (
        None if name is None else ids_of(columns.column(name), f"{path}: column {name!r}", may_be_null=role == "judge")
        for role, name in (("qid", roles.qid), ("docid", roles.docid), ("judge", roles.judge))
    )
    qid = as_names(ids) if isinstance(ids, list) else ids
    docids, judge = (
        None if some is None else as_texts(some if isinstance(some, list) else list(map(str, some)))
        for some in (documents, judges)
    )
    return Dataset(X, y, names, roles, _qid=lambda: qid, _docids=lambda: docids, _judges=lambda: judge)


def _is_number(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _features(columns: _ArrowTable, names: list[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    X = np.empty((columns.n_rows, len(names)), dtype=dtype)
    begin = 0
    for batch in columns.batches(names):
        if begin + batch.num_rows > len(X):
            columns.require_rows(begin + batch.num_rows)
        for k, name in enumerate(names):
            column = batch.column(name)
            if column.null_count:
                arrow = import_extra("pyarrow", "frames")
                whole = column.cast(arrow.uint8()) if arrow.types.is_boolean(column.type) else column
                column = whole.cast(arrow.float64(), safe=False)
            # null becomes NaN
            X[begin : begin + batch.num_rows, k] = to_numpy(column)
        begin += batch.num_rows
    columns.require_rows(begin)
    require_finite(X, missing=True)
    return X
