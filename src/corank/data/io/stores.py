"""
A store: a ranking problem on disk, as a folder of memory-mapped arrays with a JSON header, opened in O(1).

The store contains the sorted index of `RankingData`, so opening reads only the header; rows are paged in when they are
used. The header contains its own checksum, and the size and SHA-256 of every array. Writing is atomic and O(bytes).

A file may contain anything, and a forger can compute checksums. Rows and index are therefore validated when they are
first used, in one pass, before a kernel reads them. Writing a store anew creates new files: a process that has the old
store open keeps the old ones.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank._lazy import is_sparse
from corank.core.rows.structure import ProblemIndex, index_fault
from corank.data.collection import Dataset, as_texts
from corank.data.durable.atomic import require_no_input
from corank.data.durable.files import map_array, require_unchanged
from corank.data.durable.text import Source, TextFile, open_text
from corank.data.inputs import as_scores
from corank.data.io.letor_reader import read_letor, with_groups
from corank.data.io.store_header import StoreFolder, digest, read_header, store_folder
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import as_rows, require_finite, require_structure
from corank.errors import InputError, reason

INDEX = ("order", "scored_stops", "grade_starts", "grade_stops", "query_grades")
"""The arrays of a `RankingData` after X, y and queries, in its order."""

# bytes of a query id above which each id is stored once instead of once per row
_LONG = 256


class StoreFiles:
    """The mapped files of a store; their content is validated on first use. `header` comes from `read_header`."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path, self.header = path, header
        self.arrays = {name: map_file(path, name, entry) for name, entry in header["arrays"].items()}

    @cached_property
    def X(self) -> Any:
        """The rows: finite, with valid column indices."""
        return self._checked(self._rows)

    @cached_property
    def y(self) -> NDArray[np.float64]:
        """The scores: finite, or NaN."""
        return np.asarray(self._checked(lambda: as_scores(self.arrays["y"], self.header["n_rows"])))

    @cached_property
    def queries(self) -> Queries:
        """The rows grouped by query; the index equals that of `RankingData.of`."""
        index, ids = ProblemIndex(*(self.arrays[name] for name in ProblemIndex._fields)), self.arrays["ids"]
        fault = index_fault(index, self.y) or _fault_of(ids)
        if fault is not None:
            raise self._damaged(f"{fault}.bin does not match its rows")
        return Queries(ids, index.codes, index.query_order, index.starts)

    @cached_property
    def data(self) -> RankingData:
        """The problem."""
        index: dict[str, Any] = {name: self.arrays[name] for name in INDEX}
        return RankingData(self.X, self.y, self.queries, **index)

    def qid(self) -> NDArray[Any] | None:
        """Return the query id of each row."""
        ids = self.queries.ids
        ids = ids.astype(object) if ids.itemsize > _LONG else ids
        return ids[self.queries.codes] if self.header["has_qid"] else None

    def docids(self) -> NDArray[np.object_] | None:
        """Return the document id of each row."""
        texts = self._texts("docid")
        return None if texts is None else as_texts(texts)

    def names(self) -> list[str] | None:
        """Return the name of each column."""
        names = self._texts("name")
        if names is not None and len(set(names)) < len(names):
            raise self._damaged("name_bytes.bin has a name twice")
        return names

    def _texts(self, kind: str) -> list[str] | None:
        """Return the texts of two arrays, all bytes and where each text stops, or None if the store has none."""
        if f"{kind}_stops" not in self.arrays:
            return None
        require_unchanged(*self.arrays.values())
        text, stops = self.arrays[f"{kind}_bytes"].tobytes(), self.arrays[f"{kind}_stops"].tolist()
        spans = list(zip([0, *stops], stops, strict=False))
        if (stops[-1] if stops else 0) != len(text) or any(begin > stop for begin, stop in spans):
            raise self._damaged(f"{kind}_stops.bin does not match {kind}_bytes.bin")
        return [text[begin:stop].decode(errors="surrogateescape") for begin, stop in spans]

    def _rows(self) -> Any:
        X: Any = self.arrays["values"]
        if self.header["layout"] == "csr":
            parts = (X, self.arrays["indices"], self.arrays["indptr"])
            shape = (self.header["n_rows"], self.header["n_features"])
            from scipy import sparse  # takes long to import

            X = sparse.csr_matrix(parts, shape=shape, copy=False)
            if not require_structure(X) or X.nnz != len(parts[0]):
                raise InputError("its CSR matrix has repeated or unsorted entries")
            X.has_sorted_indices = X.has_canonical_format = True
        require_finite(X)
        return X

    def _checked(self, make: Callable[[], Any]) -> Any:
        require_unchanged(*self.arrays.values())
        try:
            return make()
        except ValueError as error:
            raise self._damaged(reason(error)) from error

    def _damaged(self, what: str) -> InputError:
        return InputError(f"{self.path} is damaged: {what}; write the store again.")


def map_file(place: Path, name: str, entry: dict[str, Any]) -> NDArray[Any]:
    """Map one array of a store, whose header entry is `entry`."""
    try:
        return map_array(place / f"{name}.bin", entry["dtype"], tuple(entry["shape"]))
    except FileNotFoundError:
        fault = f"{name}.bin is missing"
    except OSError as error:
        fault = f"{name}.bin cannot be read ({error.strerror})"
    except InputError as error:
        fault = str(error).partition(";")[0]
    raise InputError(f"{place} is damaged: {fault}; write the store again.")


def _fault_of(ids: NDArray[Any]) -> str | None:
    """Return "ids" if query ids are repeated or invalid (NaN, code points beyond Unicode), else None."""
    if ids.dtype.kind == "U":
        exist = ids.view(np.uint32).max() <= sys.maxunicode
    elif ids.dtype.kind == "b":
        exist = ids.view(np.uint8).max() <= 1
    else:
        exist = (ids == ids).all()  # all but NaN
    return None if exist and len(np.unique(ids)) == len(ids) else "ids"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Store(Dataset):
    """
    An open store: a collection whose arrays are read-only maps of its files.

    X, y, names, roles, judged: As in every collection, validated on first use; the roles of a store and `judged` are
        None.
    header: Content of the header: `n_rows`, `n_features`, `n_queries`, `layout`, `has_qid`, and the `arrays`.
    """

    X: Any = field(init=False)
    y: NDArray[np.float64] = field(init=False)
    path: Path  # the folder
    header: dict[str, Any]
    _files: StoreFiles

    def __getattr__(self, name: str) -> Any:
        # called only for attributes that are not set
        if name in ("X", "y"):
            return getattr(self._files, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<Store {self.path}: {self.header['n_rows']} rows, {self.header['n_features']} features>"

    def verify(self) -> None:
        """Compare the checksum of every file with the header; raise `InputError` for the first that differs."""
        for name, entry in self.header["arrays"].items():
            if digest(map_file(self.path, name, entry)) != entry["sha256"]:
                raise InputError(
                    f"{self.path} is damaged: {name}.bin does not match its checksum; write the store again."
                )


def write_store(
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    docids: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write rows, scores and queries as a store."""
    rows = as_rows(X)
    queries = Queries.of(qid, rows.shape[0])
    data = RankingData.of_checked(rows, as_scores(y, rows.shape[0]), queries)
    labels = list(getattr(X, "columns", ())) if names is None else list(names)
    if names is not None or (labels and all(isinstance(label, str) for label in labels)):
        if len(labels) != rows.shape[1] or len(set(labels)) < len(labels):
            raise InputError(f"names has {len(labels)} entries; expected {rows.shape[1]} different names.")
        data = replace(data, names=tuple(labels))
    with store_folder(path, overwrite) as folder:
        _fill(folder, data, qid is not None, docids)


def store_letor(
    path: str | os.PathLike[str],
    sources: Sequence[Source],
    *,
    overwrite: bool = False,
    **options: Any,
) -> None:
    """Convert LETOR text to a store, parsing directly into its files: X may be larger than memory."""
    require_no_input(path, [source.path if isinstance(source, TextFile) else source for source in sources])
    with store_folder(path, overwrite) as folder:
        texts = [open_text(source) for source in sources]
        file = read_letor(texts, allocate=folder.allocate, **options)
        file = with_groups(file, texts) if file.qid is None else file
        _fill(folder, file.data, file.qid is not None, file.docids)


def open_store(path: str | os.PathLike[str]) -> Store:
    """Open a store in O(1): read and check its header and the sizes of its files."""
    place = Path(path)
    header = read_header(place)
    files = StoreFiles(place, header)
    return Store(
        names=files.names(), path=place, header=header, _files=files, _qid=files.qid, _docids=files.docids,
        _data=lambda: files.data,
    )  # fmt: skip


def _fill(folder: StoreFolder, data: RankingData, has_qid: bool, docids: ArrayLike | None) -> None:
    if is_sparse(data.X):
        # the arrays may be longer than the number of entries
        folder.put("values", data.X.data[: data.X.nnz])
        folder.put("indices", data.X.indices[: data.X.nnz])
        folder.put("indptr", data.X.indptr)
    else:
        folder.put("values", data.X)
    folder.put("y", np.asarray(data.y))
    folder.put("ids", data.queries.plain_ids("a store"))
    folder.put("codes", data.queries.codes)
    folder.put("query_order", data.queries.order)
    folder.put("starts", data.queries.starts)
    for name in INDEX:
        folder.put(name, getattr(data, name))
    if docids is not None:
        documents = np.asarray(docids)
        if documents.shape != (data.n_rows,):
            raise InputError(f"docids has shape {documents.shape}, but X has {data.n_rows} rows; pass one id per row.")
        _put_texts(folder, "docid", documents.tolist())
    if data.names is not None:
        _put_texts(folder, "name", data.names)
    folder.write_header(
        n_rows=data.n_rows,
        n_features=data.n_features,
        n_queries=len(data.queries),
        layout="csr" if is_sparse(data.X) else "dense",
        has_qid=has_qid,
    )


def _put_texts(folder: StoreFolder, kind: str, texts: Iterable[Any]) -> None:
    coded = [str(text).encode(errors="surrogateescape") for text in texts]
    folder.put(f"{kind}_bytes", np.frombuffer(b"".join(coded), dtype=np.uint8))
    folder.put(f"{kind}_stops", np.cumsum([len(text) for text in coded], dtype=np.int64))
