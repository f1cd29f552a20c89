"""
The header of a store and its validation; writing the folder of a store.

A forger can compute the checksum of a header. The names of the arrays, their types and the relations between their
shapes are therefore checked against the tables in this module.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from corank.data.durable.atomic import atomic_folder, folder_exists, require_place
from corank.data.durable.files import open_regular
from corank.errors import InputError

FORMAT = "corank store"
VERSION = 1
HEADER = "header.json"

# a header has about 3 kB
_MAX_HEADER_BYTES = 1 << 16
# kernels use 32-bit column indices; file sizes bound rows and queries
_MAX_FEATURES = 1 << 32

_FACTS = {"n_rows": int, "n_features": int, "n_queries": int, "layout": str, "has_qid": bool}
_ENTRY = {"dtype": str, "shape": list, "sha256": str}
_IDS = r"[|](b1|[iu]1)|<([iu][248]|f[248]|U[1-9][0-9]{0,7})"

# a pattern of the dtype, then the shape: facts, or other names that must have one value throughout
_ROWS: dict[str, dict[str, tuple[str, ...]]] = {
    "dense": {"values": ("<f[48]", "n_rows", "n_features")},
    "csr": {
        "values": ("<f[48]", "n_stored"),
        "indices": ("<i[48]", "n_stored"),
        "indptr": ("<i[48]", "n_rows + 1"),
    },
}
_INDEXED: dict[str, tuple[str, ...]] = {
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
_TEXTS: dict[str, dict[str, tuple[str, ...]]] = {
    "docid": {"docid_bytes": ("[|]u1", "n_docid_bytes"), "docid_stops": ("<i8", "n_rows")},
    "name": {"name_bytes": ("[|]u1", "n_name_bytes"), "name_stops": ("<i8", "n_features")},
}
"""Arrays of texts, which a store may have: document ids of rows, and names of columns."""


def is_store(path: Path) -> bool:
    """Return whether a folder contains a store, of any version."""
    return _parsed(path) is not None


def checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of a header's content, in hexadecimal."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def header_text(content: dict[str, Any]) -> str:
    """Return the text of a header with this content."""
    header = {"format": FORMAT, "version": VERSION, "sha256": checksum(content), "content": content}
    return json.dumps(header, indent=1) + "\n"


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
    if not isinstance(content, dict) or not _matches(content, header.get("sha256")):
        raise InputError(f"{place} is damaged: {HEADER} does not match its checksum; write the store again.")
    fault = _fault(content)
    if fault is not None:
        raise InputError(f"{place} is damaged: {HEADER} is invalid ({fault}); write the store again.")
    return content


def _parsed(place: Path) -> dict[str, Any] | None:
    """Return the JSON of a header, or None."""
    file = place / HEADER
    try:
        with open_regular(file) as handle:
            text = handle.read(_MAX_HEADER_BYTES + 1)
        header = json.loads(text) if len(text) <= _MAX_HEADER_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) and header.get("format") == FORMAT else None


def _matches(content: dict[str, Any], sha256: Any) -> bool:
    try:
        return bool(checksum(content) == sha256)
    except RecursionError:  # nested just deep enough to be parsed
        return False


def _fault(content: dict[str, Any]) -> str | None:
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


PIECE = 1 << 24


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

    def write_header(self, **facts: Any) -> None:
        """Write the header: the arrays and other facts."""
        (self.path / HEADER).write_text(header_text({**facts, "arrays": self._arrays}))

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.bin"


def _require_no_other(place: Path) -> None:
    if place.is_dir() and any(place.iterdir()) and not is_store(place):
        raise InputError(f"{place} is a folder, but not a store, and is not replaced; choose another name.")


def _pieces(array: NDArray[Any]) -> Iterator[memoryview]:
    flat = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
    for begin in range(0, len(flat), PIECE):
        yield flat[begin : begin + PIECE].data
