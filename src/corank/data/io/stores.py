"""
A store: a ranking problem on disk, as a folder of memory-mapped arrays with a JSON header, opened in O(1).

The store contains the sorted index of `RankingData`, so opening reads only the header; rows are paged in when they are
used. The header contains its own checksum, and the size and SHA-256 of every array. Writing is atomic and O(bytes), and
creates new files: a process that has the old store open keeps the old ones.

A file may contain anything, and a forger can compute checksums. The names of the arrays, their types and the relations
between their shapes are therefore checked against the tables below, and rows and index are validated when they are
first used, in one pass, before a kernel reads them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from corank._lazy import is_sparse
from corank.core.rows.structure import ProblemIndex, index_fault
from corank.data.collection import Dataset, as_texts
from corank.data.durable.atomic import atomic_folder, folder_exists, require_no_input, require_place
from corank.data.durable.files import map_array, open_regular, require_unchanged
from corank.data.durable.text import Source, TextFile, open_text
from corank.data.inputs import as_scores
from corank.data.io.letor_reader import read_letor, with_groups
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import as_rows, require_finite, require_structure
from corank.errors import InputError, reason

FORMAT, VERSION, HEADER = "corank store", 1, "header.json"
# a header has about 3 kB
_MAX_HEADER_BYTES = 1 << 16
# kernels use 32-bit column indices; file sizes bound rows and queries
_MAX_FEATURES = 1 << 32
# bytes of a query id above which each id is stored once instead of once per row
_LONG = 256
_PIECE = 1 << 24

_FACTS = {"n_rows": int, "n_features": int, "n_queries": int, "layout": str, "has_qid": bool}
_ENTRY = {"dtype": str, "shape": list, "sha256": str}
_IDS = r"[|](b1|[iu]1)|<([iu][248]|f[248]|U[1-9][0-9]{0,7})"

# a pattern of the dtype, then the shape: facts, or other names that must have one value throughout
_Pattern = dict[str, tuple[str, ...]]
_ROWS: dict[str, _Pattern] = {
    "dense": {"values": ("<f[48]", "n_rows", "n_features")},
    "csr": {
        "values": ("<f[48]", "n_stored"),
        "indices": ("<i[48]", "n_stored"),
        "indptr": ("<i[48]", "n_rows + 1"),
    },
}
# those after the ids belong to `Queries`, and the others to `RankingData`, under the same names
_INDEXED: _Pattern = {
    "y": ("<f8", "n_rows"),
    "ids": (_IDS, "n_queries"),
    "codes": ("<i8", "n_rows"),
    "query_order": ("<i8", "n_rows"),
    "starts": ("<i8", "n_queries + 1"),
    "order": ("<i8", "n_rows"),
    "scored_stops": ("<i8", "n_queries"),
    "grade_starts": ("<i8", "n_grades"),
    "grade_stops": ("<i8", "n_grades"),
    "query_grades": ("<i8", "n_queries + 1"),
}
_TEXTS: dict[str, _Pattern] = {
    kind: {f"{kind}_bytes": ("[|]u1", f"n_{kind}_bytes"), f"{kind}_stops": ("<i8", length)}
    for kind, length in (("docid", "n_rows"), ("name", "n_features"))
}
"""Arrays of texts, which a store may have: document ids of rows, and names of columns."""

_INDEX = ("order", "scored_stops", "grade_starts", "grade_stops", "query_grades")


class Store(Dataset):
    """
    An open store: a dataset whose arrays are read-only maps of its files, validated on first use.

    path: The folder.
    header: Content of the header: `n_rows`, `n_features`, `n_queries`, `layout`, `has_qid`, and the `arrays`.
    """

    path: Path
    header: dict[str, Any]
    _arrays: dict[str, NDArray[Any]]

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        arrays = {name: _map_file(path, name, entry) for name, entry in header["arrays"].items()}
        nothing = dict.fromkeys(("_judges", "_comments"), lambda: None)
        vars(self).update(path=path, header=header, _arrays=arrays, **nothing)  # a dataset is frozen
        vars(self)["names"] = names = self._texts("name")
        if names is not None and len(set(names)) < len(names):
            raise self._damaged("name_bytes.bin has a name twice")

    def __repr__(self) -> str:
        return f"<Store {self.path}: {self.header['n_rows']} rows, {self.header['n_features']} features>"

    @cached_property
    def X(self) -> Any:
        """The rows: finite, with valid column indices."""
        return self._checked(self._rows)

    @cached_property
    def y(self) -> NDArray[np.float64]:
        """The scores: finite, or NaN."""
        return np.asarray(self._checked(lambda: as_scores(self._arrays["y"], self.header["n_rows"])))

    @cached_property
    def _queries(self) -> Queries:
        """The rows grouped by query; the index equals that of `RankingData.of`."""
        index, ids = ProblemIndex(*(self._arrays[name] for name in ProblemIndex._fields)), self._arrays["ids"]
        fault = index_fault(index, self.y) or _fault_of(ids)
        if fault is not None:
            raise self._damaged(f"{fault}.bin does not match its rows")
        return Queries(ids, index.codes, index.query_order, index.starts)

    def _data(self) -> RankingData:
        index: dict[str, Any] = {name: self._arrays[name] for name in _INDEX}
        return RankingData(self.X, self.y, self._queries, **index)

    def _qid(self) -> NDArray[Any] | None:
        ids = self._queries.ids
        ids = ids.astype(object) if ids.itemsize > _LONG else ids
        return ids[self._queries.codes] if self.header["has_qid"] else None

    def _docids(self) -> NDArray[np.object_] | None:
        texts = self._texts("docid")
        return None if texts is None else as_texts(texts)

    def verify(self) -> None:
        """Compare the checksum of every file with the header; raise `InputError` for the first that differs."""
        for name, entry in self.header["arrays"].items():
            if digest(_map_file(self.path, name, entry)) != entry["sha256"]:
                raise self._damaged(f"{name}.bin does not match its checksum")

    def _texts(self, kind: str) -> list[str] | None:
        """Return the texts of two arrays, all bytes and where each text stops, or None if the store has none."""
        if f"{kind}_stops" not in self._arrays:
            return None
        require_unchanged(*self._arrays.values())
        text, stops = self._arrays[f"{kind}_bytes"].tobytes(), self._arrays[f"{kind}_stops"].tolist()
        spans = list(zip([0, *stops], stops, strict=False))
        if (stops[-1] if stops else 0) != len(text) or any(begin > stop for begin, stop in spans):
            raise self._damaged(f"{kind}_stops.bin does not match {kind}_bytes.bin")
        return [text[begin:stop].decode(errors="surrogateescape") for begin, stop in spans]

    def _rows(self) -> Any:
        X: Any = self._arrays["values"]
        if self.header["layout"] == "csr":
            parts = (X, self._arrays["indices"], self._arrays["indptr"])
            shape = (self.header["n_rows"], self.header["n_features"])
            from scipy import sparse  # takes long to import

            X = sparse.csr_matrix(parts, shape=shape, copy=False)
            if not require_structure(X) or X.nnz != len(parts[0]):
                raise InputError("its CSR matrix has repeated or unsorted entries")
            X.has_sorted_indices = X.has_canonical_format = True
        require_finite(X)
        return X

    def _checked(self, make: Callable[[], Any]) -> Any:
        require_unchanged(*self._arrays.values())
        try:
            return make()
        except ValueError as error:
            raise self._damaged(reason(error)) from error

    def _damaged(self, what: str) -> InputError:
        return _damage(self.path, what)


def open_store(path: str | os.PathLike[str]) -> Store:
    """Open a store in O(1): read and check its header and the sizes of its files."""
    place = Path(path)
    return Store(place, read_header(place))


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
        folder.fill(data, qid is not None, docids)


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
        folder.fill(file.data, file.qid is not None, file.docids)


def _map_file(place: Path, name: str, entry: dict[str, Any]) -> NDArray[Any]:
    """Map one array of a store, whose header entry is `entry`."""
    try:
        return map_array(place / f"{name}.bin", entry["dtype"], tuple(entry["shape"]))
    except FileNotFoundError:
        fault = f"{name}.bin is missing"
    except OSError as error:
        fault = f"{name}.bin cannot be read ({error.strerror})"
    except InputError as error:
        fault = str(error).partition(";")[0]
    raise _damage(place, fault)


def _damage(place: Path, what: str) -> InputError:
    return InputError(f"{place} is damaged: {what}; write the store again.")


def _fault_of(ids: NDArray[Any]) -> str | None:
    """Return "ids" if query ids are repeated or invalid (NaN, code points beyond Unicode), else None."""
    if ids.dtype.kind == "U":
        exist = ids.view(np.uint32).max() <= sys.maxunicode
    elif ids.dtype.kind == "b":
        exist = ids.view(np.uint8).max() <= 1
    else:
        exist = (ids == ids).all()  # all but NaN
    return None if exist and len(np.unique(ids)) == len(ids) else "ids"


def is_store(path: Path) -> bool:
    """Return whether a folder contains a store, of any version."""
    return _parsed(path) is not None


def _checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of a header's content, in hexadecimal."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_header(place: Path) -> dict[str, Any]:
    """Read and validate the header of a store; return its facts and its arrays with types, shapes and checksums."""
    if not folder_exists(place):
        raise InputError(f"there is no store {place}; create one with: corank convert SOURCE {place}.")
    header = _parsed(place)
    if header is None:
        raise InputError(
            f"{place} is not a store: it has no {HEADER} of the format {FORMAT!r}; write one with corank convert."
        )
    if header.get("version") != VERSION:
        raise InputError(
            f"{place} is a store of version {short(header.get('version'))}, but this corank reads version {VERSION}; "
            "upgrade corank or write the store again."
        )
    content = header.get("content")
    try:
        matches = isinstance(content, dict) and _checksum(content) == header.get("sha256")
    except RecursionError:  # nested just deep enough to be parsed
        matches = False
    if not isinstance(content, dict) or not matches:
        raise _damage(place, f"{HEADER} does not match its checksum")
    fault = _header_fault(content)
    if fault is not None:
        raise _damage(place, f"{HEADER} is invalid ({fault})")
    return content


def _parsed(place: Path) -> dict[str, Any] | None:
    """Return the JSON of a header, or None."""
    try:
        with open_regular(place / HEADER) as handle:
            text = handle.read(_MAX_HEADER_BYTES + 1)
        header = json.loads(text) if len(text) <= _MAX_HEADER_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) and header.get("format") == FORMAT else None


def _header_fault(content: dict[str, Any]) -> str | None:
    """Describe the first invalid part of a header; None if it is valid."""
    arrays = content.get("arrays")
    if not isinstance(arrays, dict) or set(content) != {*_FACTS, "arrays"}:
        return f"its keys are {short(sorted(content))}"
    for name, kind in _FACTS.items():
        if type(content[name]) is not kind:
            return f"{name} is {short(content[name])}"
    layout = content["layout"]
    if layout not in _ROWS or content["n_rows"] < 1 or not 0 <= content["n_features"] <= _MAX_FEATURES:
        return f"{short(content['n_rows'])} rows, {short(content['n_features'])} features, layout {short(layout)}"
    wanted = _ROWS[layout] | _INDEXED
    for texts in _TEXTS.values():
        wanted |= {} if texts.keys().isdisjoint(arrays) else texts
    if arrays.keys() != wanted.keys():
        return f"arrays {short(sorted(arrays.keys() ^ wanted.keys()))} are missing or unknown"
    lengths = {name: content[name] for name in ("n_rows", "n_features", "n_queries")}
    lengths |= {f"{name} + 1": n + 1 for name, n in lengths.items()}
    for name, (dtype, *axes) in wanted.items():
        entry = arrays[name]
        if not isinstance(entry, dict) or {key: type(value) for key, value in entry.items()} != _ENTRY:
            return f"{name} is {short(entry)}"
        sizes = [lengths.setdefault(axis, n) for axis, n in zip(axes, entry["shape"], strict=False)]
        if re.fullmatch(dtype, entry["dtype"]) is None or any(type(n) is not int or n < 0 for n in entry["shape"]):
            return f"{name} has the type {short(entry['dtype'])} and the shape {short(entry['shape'])}"
        if sizes != entry["shape"] or len(sizes) != len(axes):
            return f"{name} has the shape {short(entry['shape'])}"
    return None


def digest(array: NDArray[Any]) -> str:
    """Return the SHA-256 of the bytes of an array, in hexadecimal."""
    total = hashlib.sha256()
    for piece in _pieces(array):
        total.update(piece)
    return total.hexdigest()


@contextmanager
def store_folder(path: str | os.PathLike[str], overwrite: bool) -> Iterator[StoreFolder]:
    """Write a store atomically."""
    _require_no_other(Path(path))
    with atomic_folder(path, overwrite=overwrite) as scratch:
        yield StoreFolder(scratch)


def require_store_place(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise `InputError` early if a store cannot be written to `path`."""
    _require_no_other(Path(path))
    require_place(path, overwrite=overwrite, folder=True)


class StoreFolder:
    """The arrays of a store that is being written to an existing, empty folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._arrays: dict[str, dict[str, Any]] = {}
        self._mapped: dict[str, np.memmap[Any, Any]] = {}

    def allocate(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return a mapped file of zeros, to be filled in place and then `put` under the same name."""
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=object)) * kind.itemsize
        if size == 0:
            return np.zeros(shape, kind)
        with self._file(name).open("wb") as handle:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(handle.fileno(), 0, size)  # a full disk must fail here, not in a kernel
            else:
                handle.truncate(size)
        self._mapped[name] = np.memmap(self._file(name), kind, mode="r+", shape=shape)
        return np.asarray(self._mapped[name])

    def put(self, name: str, array: NDArray[Any]) -> None:
        """Write an array, little-endian and C-ordered; one allocated by `allocate` is flushed and truncated to size."""
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        mapped = self._mapped.pop(name, None)
        if mapped is not None and plain.size and mapped.ctypes.data == plain.ctypes.data:
            mapped.flush()
            os.truncate(self._file(name), plain.nbytes)
        else:
            with self._file(name).open("wb") as handle:
                for piece in _pieces(plain):
                    handle.write(piece)
        self._arrays[name] = {"dtype": plain.dtype.str, "shape": list(plain.shape), "sha256": digest(plain)}

    def fill(self, data: RankingData, has_qid: bool, docids: ArrayLike | None) -> None:
        """Write the arrays of a problem, then the header."""
        X, queries = data.X, data.queries
        if is_sparse(X):  # its arrays may be longer than the number of entries
            rows = {"values": X.data[: X.nnz], "indices": X.indices[: X.nnz], "indptr": X.indptr}
        else:
            rows = {"values": X}
        grouped = {"codes": queries.codes, "query_order": queries.order, "starts": queries.starts}
        arrays = rows | {"y": np.asarray(data.y), "ids": queries.plain_ids("a store")} | grouped
        for name, array in (arrays | {name: getattr(data, name) for name in _INDEX}).items():
            self.put(name, array)
        if docids is not None:
            documents = np.asarray(docids)
            if documents.shape != (data.n_rows,):
                raise InputError(
                    f"docids has shape {documents.shape}, but X has {data.n_rows} rows; pass one id per row."
                )
            self._put_texts("docid", documents.tolist())
        if data.names is not None:
            self._put_texts("name", data.names)
        layout, n_queries = "csr" if is_sparse(X) else "dense", len(queries)
        self.write_header(
            n_rows=data.n_rows, n_features=data.n_features, n_queries=n_queries, layout=layout, has_qid=has_qid
        )

    def write_header(self, **facts: Any) -> None:
        """Write the header: the arrays and other facts."""
        content = {**facts, "arrays": self._arrays}
        header = {"format": FORMAT, "version": VERSION, "sha256": _checksum(content), "content": content}
        (self.path / HEADER).write_text(json.dumps(header, indent=1) + "\n")

    def _put_texts(self, kind: str, texts: Iterable[Any]) -> None:
        coded = [str(text).encode(errors="surrogateescape") for text in texts]
        self.put(f"{kind}_bytes", np.frombuffer(b"".join(coded), dtype=np.uint8))
        self.put(f"{kind}_stops", np.cumsum([len(text) for text in coded], dtype=np.int64))

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.bin"


def _require_no_other(place: Path) -> None:
    if place.is_dir() and any(place.iterdir()) and not is_store(place):
        raise InputError(f"{place} is a folder, but not a store, and is not replaced; choose another name.")


def _pieces(array: NDArray[Any]) -> Iterator[memoryview]:
    flat = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
    for begin in range(0, len(flat), _PIECE):
        yield flat[begin : begin + _PIECE].data
