"""The folder of a store while it is written: arrays put one by one, or parsed into place, then the header."""

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
from corank.data.store.header import HEADER, header_text, is_store
from corank.errors import InputError

PIECE = 1 << 24


def digest(array: NDArray[Any]) -> str:
    """
    SHA-256 of the bytes of an array.

    Returns: 64 hexadecimal digits.
    """
    total = hashlib.sha256()
    for piece in _pieces(array):
        total.update(piece)
    return total.hexdigest()


@contextmanager
def store_folder(path: str | os.PathLike[str], overwrite: bool) -> Iterator[StoreFolder]:
    """
    Write a store that appears whole or not at all.

    path: where it shall stand.
    overwrite: whether a store that stands there is replaced; an empty folder always is, anything else never.
    Yields: takes the arrays and the header.
    """
    _require_no_other(Path(path))
    with atomic_folder(path, overwrite=overwrite) as scratch:
        yield StoreFolder(scratch)


def require_store_place(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """
    Refuse, before any work is done, a store that could not be written after it.

    path: where it shall stand.
    overwrite: whether a store that stands there may be replaced.
    """
    _require_no_other(Path(path))
    require_place(path, overwrite=overwrite, folder=True)


class StoreFolder:
    """
    The arrays of a store that is being written.

    path: an existing, empty folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._arrays: dict[str, dict[str, Any]] = {}
        self._rooms: dict[str, np.memmap[Any, Any]] = {}

    def room(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """
        Make a file of zeros to be filled in place, and then `put` under the same name.

        name: name of the array.
        Returns: the mapped file.
        """
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=object)) * kind.itemsize
        if size == 0:
            return np.zeros(shape, kind)
        with self._file(name).open("wb") as handle:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(handle.fileno(), 0, size)  # a full disk must fail here, not inside a kernel
            else:
                handle.truncate(size)
        self._rooms[name] = np.memmap(self._file(name), kind, mode="r+", shape=shape)
        return np.asarray(self._rooms[name])

    def put(self, name: str, array: NDArray[Any]) -> None:
        """
        Write an array; one that already lies in its room is only flushed, and its file cut to its size.

        name: name of the array.
        array: what to keep, little-endian and C-ordered on disk.
        """
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        room = self._rooms.pop(name, None)
        if room is not None and plain.size and room.ctypes.data == plain.ctypes.data:
            room.flush()
            os.truncate(self._file(name), plain.nbytes)
        else:
            with self._file(name).open("wb") as handle:
                for piece in _pieces(plain):
                    handle.write(piece)
        self._arrays[name] = {"dtype": plain.dtype.str, "shape": list(plain.shape), "sha256": digest(plain)}

    def write_header(self, **facts: Any) -> None:
        """
        Write the header, which makes the folder a store.

        **facts: what the header says besides the arrays.
        """
        (self.path / HEADER).write_text(header_text({**facts, "arrays": self._arrays}))

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.bin"


def _require_no_other(place: Path) -> None:
    if place.is_dir() and any(place.iterdir()) and not is_store(place):
        raise InputError(f"{place} is a folder but not a store, and is left as it is; choose another name.")


def _pieces(array: NDArray[Any]) -> Iterator[memoryview]:
    flat = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
    for begin in range(0, len(flat), PIECE):
        yield flat[begin : begin + PIECE].data
