"""Sources of parts: paths, frames, arrays and Dask collections, and how a worker reads them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.rows.products import MAX_COLUMNS
from corank.data.column_roles import ANY_COLUMNS, USUAL_NAMES, ColumnChoice, ColumnRoles
from corank.data.inputs import as_scores
from corank.data.io.frames import ids_of
from corank.data.io.read import detect_format, read
from corank.data.io.stores import HEADER
from corank.data.io.tables import read_utf8
from corank.data.rows import as_rows
from corank.errors import InputError, import_extra, reason

_SKIPPED = (".", "_", "README", "LICENSE")
"""Prefixes of names of files that are not parts of their folder."""
_MAX_HEADER = 1 << 20
"""Largest size in bytes of a header line."""


class Rows(NamedTuple):
    """Rows of a part: X, scores y and query ids."""

    X: Any
    y: NDArray[np.float64]
    qid: NDArray[Any]

    def take(self, rows: Any) -> Rows:
        """Return some rows; a slice is not copied."""
        return Rows(self.X[rows], self.y[rows], self.qid[rows])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        X = self.X
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes
        return int(size + self.y.nbytes + self.qid.nbytes)


class PartInfo(NamedTuple):
    """Query ids and columns of a part."""

    qid: NDArray[Any]  # (n_rows,): query ids
    n_features: int | None  # number of columns; None if an empty part does not define it
    names: tuple[str, ...] | None = None  # names of the columns, if the part has them
    is_open: bool = False  # whether other parts may have more columns, as in LETOR text
    feature_names: tuple[Any, ...] | None = None  # column labels of a frame or table, which a fitted model remembers


@dataclass(frozen=True)
class Reader:
    """How parts are read."""

    unjudged: float | None = None  # see `corank.read`
    columns: ColumnChoice = ANY_COLUMNS  # roles of the columns of tables and frames
    n_features: int | None = None  # number of columns, once known for all parts

    def inspect(self, source: Any) -> PartInfo:
        """Read the query ids and columns of a part, and as little else as its format allows."""
        if not isinstance(source, str):
            rows, names = self._from_memory(source)
            width = rows.X.shape[1] if rows.X.ndim == 2 else None
            return PartInfo(rows.qid, width, names and tuple(map(str, names)), feature_names=names)
        with fetched(source) as path:
            kind = None if _is_empty(path) else detect_format(path)
            if kind == "csv" and _has_no_rows(path):
                kind = None
            if kind is None:
                return PartInfo(np.empty(0, dtype=np.int64), None)
            if kind == "parquet":
                return self._inspect_parquet(path)
            rows = self._read(path)
            names = None if rows.names is None else tuple(rows.names)
            return PartInfo(_ids(rows.qid, source), rows.X.shape[1], names, kind == "text", names)

    def rows(self, source: Any) -> Rows:
        """Read a part."""
        if not isinstance(source, str):
            rows, _ = self._from_memory(source)
            return Rows(self._laid_out(rows.X), *rows[1:])
        with fetched(source) as path:
            rows = self._read(path)
            return Rows(self._laid_out(rows.X), rows.y, _ids(rows.qid, source))

    def _read(self, path: Path) -> Any:
        is_table = detect_format(path) in ("parquet", "csv")
        named: dict[str, Any] = vars(self.columns) if is_table else {}
        rows = read(path, unjudged=self.unjudged, n_features=self.n_features, judges="keep", group_files=False, **named)
        if rows.roles is not None:
            _refuse_judges(rows.roles, path)
        return rows

    def _laid_out(self, X: Any) -> Any:
        """Return dense rows up to the width for which sums are byte-identical: density must not affect rounding."""
        return X.toarray() if sparse.issparse(X) and X.shape[1] <= MAX_COLUMNS else X

    def _from_memory(self, source: Any) -> tuple[Rows, tuple[Any, ...] | None]:
        """Return the rows and column labels of (X, y, qid), or of a data frame with columns for y and qid."""
        if hasattr(source, "columns"):
            roles = self.columns.roles(list(source.columns), "a part")
            _refuse_judges(roles, "a part")
            qid = source[require_query(roles, "a part")]
            labels = np.full(len(qid), np.nan) if roles.y is None else source[roles.y]
            source = (source[list(roles.features)], labels, qid)
        if not isinstance(source, tuple | list) or len(source) != 3:
            raise InputError(f"a part is of type {type(source).__name__}; pass paths, data frames, or (X, y, qid).")
        X, y, qid = source
        names = tuple(X.columns) if hasattr(X, "columns") else None
        ids = _ids(None if qid is None else np.asarray(qid), "a part")
        if not len(ids):
            width = np.shape(X)[1] if np.ndim(X) == 2 else 0
            return Rows(np.empty((0, width)), np.empty(0), ids), names
        X = as_rows(X)
        y = as_scores(y, X.shape[0])
        if len(ids) != X.shape[0]:
            raise InputError(f"qid has {len(ids)} values for {X.shape[0]} rows of a part; pass one query id per row.")
        return Rows(X, y if self.unjudged is None else np.where(y == self.unjudged, np.nan, y), ids), names

    def _inspect_parquet(self, path: Path) -> PartInfo:
        parquet = import_extra("pyarrow.parquet", "frames")
        try:
            with parquet.ParquetFile(path) as file:
                roles = self.columns.roles(file.schema_arrow.names, path)
                _refuse_judges(roles, path)
                name = require_query(roles, path)
                ids = ids_of(file.read([name]).column(0), f"{path}: column {name!r}")
        except (import_extra("pyarrow", "frames").ArrowException, OSError) as error:
            raise InputError(f"{path} is not a readable Parquet file ({reason(error)}); check the file.") from error
        return PartInfo(np.asarray(ids), len(roles.features), roles.features, feature_names=roles.features)


def sources_of(parts: Any) -> list[Any]:
    """List parts: paths (a folder that is not a store means its files), (X, y, qid), frames, or Dask collections."""
    if hasattr(parts, "__dask_graph__") and hasattr(parts, "npartitions") and hasattr(parts, "to_delayed"):
        return list(parts.to_delayed())
    if _are_dask_arrays(parts):
        return _zipped(parts)
    if isinstance(parts, str | os.PathLike):
        parts = [parts]
    if not isinstance(parts, Iterable):
        raise InputError(f"parts is of type {type(parts).__name__}; pass a list of paths or of (X, y, qid).")
    result = [item for part in parts for item in (_paths(part) if isinstance(part, str | os.PathLike) else [part])]
    if not result:
        raise InputError("parts is empty; pass at least one part, or a folder with files.")
    return result


def _are_dask_arrays(parts: Any) -> bool:
    if not isinstance(parts, tuple) or len(parts) != 3:
        return False
    return all(hasattr(part, "__dask_graph__") and hasattr(part, "chunks") for part in parts)


def _zipped(arrays: tuple[Any, Any, Any]) -> list[Any]:
    """Return the aligned blocks of rows of three Dask arrays."""
    dask = import_extra("dask", "dask")
    X, y, qid = arrays
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    if not X.chunks[0] == y.chunks[0] == qid.chunks[0]:
        raise InputError("X, y and qid are Dask arrays with different chunks of rows; rechunk them alike.")
    blocks = zip(X.to_delayed().ravel(), y.to_delayed().ravel(), qid.to_delayed().ravel(), strict=True)
    return [dask.delayed(tuple)(list(block)) for block in blocks]


def _paths(part: str | os.PathLike[str]) -> list[str]:
    name = os.fspath(part)
    if "://" in name:
        files, place = import_extra("fsspec", "dask").core.url_to_fs(name)
        if not files.isdir(place) or files.exists(f"{place}/{HEADER}"):
            return [name]
        inside = sorted(item for item in files.ls(place, detail=False) if not Path(item).name.startswith(_SKIPPED))
        return [files.unstrip_protocol(item) for item in inside]
    folder = Path(name)
    if not folder.is_dir() or (folder / HEADER).exists():
        if not folder.exists():
            raise InputError(f"the part {name} does not exist; check the path.")
        return [name]
    inside = sorted(str(item) for item in folder.iterdir() if not item.name.startswith(_SKIPPED))
    if not inside:
        raise InputError(f"the folder {name} is empty; pass a folder with parts.")
    return inside


@contextmanager
def fetched(source: str) -> Iterator[Path]:
    """Yield a local path; a file or folder of a remote file system is copied for the time of the block."""
    if "://" not in source:
        yield Path(source)
        return
    files, place = import_extra("fsspec", "dask").core.url_to_fs(source)
    with tempfile.TemporaryDirectory() as scratch:
        local = Path(scratch, Path(place).name)
        try:
            files.get(place, str(local), recursive=files.isdir(place))
        except (OSError, ValueError) as error:
            raise InputError(f"{source} cannot be read ({reason(error)}); check the address.") from error
        yield local


def _has_no_rows(path: Path) -> bool:
    """Whether a table has only a header."""
    return path.stat().st_size < _MAX_HEADER and len(read_utf8(path).split("\n", 1)[-1].strip()) == 0


def _is_empty(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == 0


def _refuse_judges(roles: ColumnRoles, path: object) -> None:
    """Raise `InputError` if a table has a column of judges: rows of one document could be in several parts."""
    if roles.judge is not None:
        raise InputError(
            f"{path} has the column {roles.judge!r}, which looks like judges, and parts need one row per document; "
            f"aggregate the grades first with corank convert, or leave the column out with drop={roles.judge!r}."
        )


def require_query(roles: ColumnRoles, source: object) -> str:
    """Return the query column of a part; raise `InputError` if there is none."""
    if roles.qid is None:
        raise InputError(
            f"{source} has no query column ({', '.join(USUAL_NAMES['qid'])}), which parts need; name it with qid=."
        )
    return roles.qid


def _ids(qid: NDArray[Any] | None, source: object) -> NDArray[Any]:
    if qid is None:
        raise InputError(f"{source} has no query ids, which parts need; add a column qid.")
    if qid.ndim != 1:
        raise InputError(f"qid of {source} has shape {qid.shape}; pass one query id per row.")
    return qid


def kind_of_ids(qid: NDArray[Any]) -> Literal["integers", "text", "numbers"]:
    """Return the type of query ids; only ids of one type can be compared."""
    if qid.dtype.kind in "iub":
        return "integers"
    if qid.dtype.kind in "UT" or all(isinstance(item, str) for item in qid.tolist()):
        return "text"
    if qid.dtype.kind == "f" and not np.isnan(qid).any():
        return "numbers"
    raise InputError("a part has query ids that are missing, or neither numbers nor text; give each row a query id.")


def part_name(sources: Sequence[Any], number: int) -> str:
    """Return the name of a part, for messages."""
    source = sources[number]
    return source if isinstance(source, str) else f"part {number}"
