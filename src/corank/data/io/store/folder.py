"""Write the folder of a store: arrays one by one, or parsed in place, then the header."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from corank.data.durable.atomic import atomic_folder, require_place
from corank.data.io.store.header import HEADER, header_text, is_store
from corank.errors import InputError

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
