"""
Regular files: open them, map them into memory, and append JSON lines to them durably.

Reading a named pipe waits for a writer, a device may have no end, and a mapped file that was truncated or overwritten
crashes the process. Every reader that needs a file with an end, and every mapping, goes through this module.
"""

from __future__ import annotations

import errno
import json
import os
import select
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any, Self
from weakref import finalize

import numpy as np
from numpy.typing import DTypeLike, NDArray

from corank._lazy import is_sparse
from corank.data.durable.atomic import atomic_file, explain_write_errors, lock
from corank.errors import InputError

_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}  # fmt: skip


def require_regular(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` at once if a path exists and is not a regular file or a link to one."""
    try:
        mode = os.stat(path).st_mode
    except OSError:  # whoever opens it names the reason
        return
    if not stat.S_ISREG(mode):
        raise _not_regular(path, mode)


def open_regular(path: str | os.PathLike[str], *, write: bool = False) -> IO[bytes]:
    """Open a regular file without buffering, without waiting for the other end of a pipe."""
    # without O_NONBLOCK, opening a pipe waits
    flags = (os.O_RDWR if write else os.O_RDONLY) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    require_regular(path)  # a device may act on being opened
    handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise _not_regular(path, mode)
    return open(handle, "rb+" if write else "rb", buffering=0)


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a regular file."""
    with open_regular(path) as file:
        return file.read()


PIPE_SECONDS = 60.0
"""Time that the other end of a named pipe has to appear."""


def open_pipe(path: str | os.PathLike[str], *, write: bool = False) -> IO[bytes]:
    """Open a named pipe; raise `InputError` if nobody opens its other end within `PIPE_SECONDS`."""
    handle = _open_writing(path) if write else os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not write and not _has_writer(handle):
            raise _lonely(path, "writes to")
        os.set_blocking(handle, True)
    except BaseException:
        os.close(handle)
        raise
    return open(handle, "wb" if write else "rb")


def _has_writer(handle: int) -> bool:
    """Wait for data, or for a writer who left; then return whether somebody writes."""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    if waiting.poll(1000.0 * PIPE_SECONDS):
        return True
    try:
        os.read(handle, 1)
    except BlockingIOError:  # a writer who has not written yet
        return True
    return False


def _open_writing(path: str | os.PathLike[str]) -> int:
    deadline = time.monotonic() + PIPE_SECONDS
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        if time.monotonic() > deadline:
            raise _lonely(path, "reads from")
        time.sleep(0.01)


def _lonely(path: str | os.PathLike[str], verb: str) -> InputError:
    return InputError(
        f"{os.fspath(path)!s} is a named pipe, and nobody {verb} it since {PIPE_SECONDS:g} seconds; start the other "
        "program first, or pass a file."
    )


def is_named_pipe(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a named pipe, not an open file such as ``/dev/fd/63``."""
    real = os.path.realpath(path)
    return os.path.exists(real) and stat.S_ISFIFO(os.stat(real).st_mode)


def require_end(descriptor: int, name: str) -> None:
    """Raise `InputError` for a device whose data has no end; files, pipes, terminals and the null device pass."""
    state = os.fstat(descriptor)
    is_device = stat.S_ISCHR(state.st_mode) or stat.S_ISBLK(state.st_mode)
    if is_device and not os.isatty(descriptor) and state.st_rdev != os.stat(os.devnull).st_rdev:
        raise InputError(f"{name} is a device; pass a regular file or a pipe.")


def _not_regular(path: str | os.PathLike[str], mode: int) -> InputError:
    kind = _KINDS.get(stat.S_IFMT(mode), "not a regular file")
    return InputError(f"{os.fspath(path)!s} is {kind}; pass a regular file.")


class _MappedFile(mmap):
    """A mapped file, with its size and time of modification when it was opened."""

    descriptor: int
    stamp: tuple[int, int]


def map_bytes(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """Map a regular file for reading, as an array of its bytes."""
    with open_regular(path) as file:
        return _mapped(file, np.dtype(np.uint8), (os.fstat(file.fileno()).st_size,))


def map_array(path: str | os.PathLike[str], dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """Map a regular file that holds exactly one array, for reading."""
    kind = np.dtype(dtype)
    with open_regular(path) as file:
        result, size = os.fstat(file.fileno()).st_size, int(np.prod(shape, dtype=object)) * kind.itemsize
        if result != size:
            raise InputError(f"{Path(path).name} has {result} bytes, expected {size}; write it again.")
        return _mapped(file, kind, shape)


def _mapped(file: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if 0 in shape:  # an empty file cannot be mapped
        return np.empty(shape, dtype)
    mapped = _MappedFile(file.fileno(), 0, access=ACCESS_READ)
    mapped.descriptor = os.dup(file.fileno())
    mapped.stamp = _stamp(mapped)
    finalize(mapped, os.close, mapped.descriptor)
    return np.ndarray(shape, dtype, mapped)


def _stamp(mapped: _MappedFile) -> tuple[int, int]:
    state = os.fstat(mapped.descriptor)
    return state.st_size, state.st_mtime_ns


def require_unchanged(*arrays: Any) -> None:
    """
    Raise `InputError` if the file of a memory-mapped array was truncated or overwritten.

    Reading a truncated file, or using indices that were checked before they were overwritten, would crash the process.
    """
    for array in arrays:
        is_compressed = is_sparse(array) and array.format in ("csr", "csc")
        for part in (array.data, array.indices, array.indptr) if is_compressed else (array,):
            while part is not None and not isinstance(part, mmap):
                part = getattr(part, "base", None)
            if part is None:
                continue
            if (size := _file_size(part)) < len(part):
                raise InputError(
                    f"a data file was truncated from {len(part)} to {size} bytes after it was opened; write the file "
                    "again and reopen it."
                )
            if isinstance(part, _MappedFile) and _stamp(part) != part.stamp:
                raise InputError("a data file was overwritten after it was opened; reopen it.")


def _file_size(part: mmap) -> int:
    try:
        return part.size()
    except (OSError, ValueError):  # anonymous memory
        return len(part)


class JsonLines:
    """
    A locked file of JSON lines, which only grows.

    `append` returns when the line is on the disk. A kill or a full disk may leave part of a line at the end; this part
    was never acknowledged, is not read, and is cut off by the next `append`. A file that was deleted, replaced or
    shortened while it is open would lose the line, so nothing is appended to it.

    path: the file; it is created, with its folder, if it does not exist.
    wait: wait for another process that has the file open, instead of raising `BlockingIOError`.
    """

    lines: list[bytes]  # the complete lines

    def __init__(self, path: str | os.PathLike[str], *, wait: bool = False) -> None:
        self.path = Path(path)
        with explain_write_errors(path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                # two processes may start at once: the second opens the file of the first
                with suppress(InputError), atomic_file(self.path) as scratch:
                    scratch.touch()
            self._file = open_regular(self.path, write=True)
        try:
            lock(self._file.fileno(), wait=wait)
            self.lines, self._end = _split(self._file.read())
        except BaseException:
            self.close()
            raise

    def append(self, value: Any) -> None:
        """Append a JSON value. When this returns, its line is on the disk; when it raises, the file is unchanged."""
        self.extend([value])

    def extend(self, values: Iterable[Any]) -> None:
        """Append several values with one write; a kill may leave some of the first ones."""
        lines = [json.dumps(value).encode() for value in values]
        content = b"".join(line + b"\n" for line in lines)
        if not content:
            return
        with explain_write_errors(self.path):
            self._require_file()
            self._file.truncate(self._end)  # an incomplete line
            self._file.seek(self._end)
            try:
                if self._file.write(content) < len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(self._file.fileno())
                self._require_file()
            except BaseException:
                self._file.truncate(self._end)
                raise
        self._end += len(content)
        self.lines += lines

    def _require_file(self) -> None:
        """Raise unless the path names the file that is open, with all of its lines."""
        opened = os.fstat(self._file.fileno())
        try:
            result: os.stat_result | None = os.stat(self.path)
        except FileNotFoundError:
            result = None
        if result is None or not os.path.samestat(opened, result):
            raise InputError(
                f"{self.path} was deleted or replaced while it was in use, so nothing is saved any more; put it back "
                "if it was moved, or start again to use what is there now."
            )
        if opened.st_size < self._end:
            raise InputError(
                f"{self.path} was shortened from {self._end} to {opened.st_size} bytes while it was in use, so nothing "
                "is saved any more; restore it from a copy, then start again."
            )

    def close(self) -> None:
        """Close and unlock the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def complete_lines(path: Path) -> list[bytes]:
    """Read the complete lines of a file that another process may have open."""
    return _split(read_regular(path))[0]


def _split(content: bytes) -> tuple[list[bytes], int]:
    """Return the complete lines, and the offset of their end."""
    end = content.rfind(b"\n") + 1
    return content[:end].splitlines(), end
