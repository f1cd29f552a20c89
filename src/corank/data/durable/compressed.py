"""Compressed files (gzip, xz, zstandard, members of zip): bounded decompression in pieces, writers by suffix."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import IO, Any

from corank.data.durable.atomic import atomic_file, require_place
from corank.data.durable.files import is_named_pipe, open_pipe
from corank.errors import InputError, import_extra, reason

ROW_CELLS = 4
"""Cells that a row counts in addition to its own, for the object that holds them."""

MAX_VALUES = 500_000_000
"""Cells, or values, of one file outside of a server: a click log of 60 million rows."""

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[{,:]', re.DOTALL)


class Budget:
    """
    Limits that all containers read within it share: archives, workbooks, compressed files and JSON, also nested ones.

    n_bytes: bytes after unpacking; None for no limit, where each file is limited by its packed size.
    cells: cells of tables, empty ones included.
    values: values and keys of JSON, and elements of XML.
    is_exceeded: whether a limit was exceeded.
    """

    def __init__(self, *, n_bytes: int | None = None, cells: int = MAX_VALUES, values: int = MAX_VALUES) -> None:
        self._limits = {"bytes": n_bytes, "cells": cells, "values": values}
        self._taken = dict.fromkeys(self._limits, 0)
        self.is_exceeded = False

    def take(self, unit: str, count: int, name: object) -> None:
        """Count what was read; raise `InputError` if it is too much."""
        self._taken[unit] += count
        limit = self._limits[unit]
        if limit is not None and self._taken[unit] > limit:
            self.is_exceeded = True
            size = f"{limit >> 20} MB" if unit == "bytes" and limit >= 1 << 20 else f"{limit:,} {unit}"
            raise InputError(f"{name} unpacks to more than {size}, which is the limit; split it into smaller files.")

    def left(self, unit: str) -> int | None:
        """Return what may still be read; None for no limit."""
        limit = self._limits[unit]
        return None if limit is None else max(limit - self._taken[unit], 0)

    def take_json(self, text: str, name: object) -> None:
        """Count the values of a JSON text before it is parsed; a list or an object counts at most twice."""
        # an upper bound, which also counts marks within strings, is enough for most files
        bound = 1 + sum(map(text.count, "[{,:"))
        left = self.left("values")
        if left is not None and bound > left:
            bound = 1
            for token in _TOKEN.finditer(text):
                bound += token[0][0] != '"'
                if bound > left:
                    break
        self.take("values", bound, name)


_shared: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def spending(budget: Budget) -> Iterator[Budget]:
    """Count everything that is read in the block against one budget."""
    token = _shared.set(budget)
    try:
        yield budget
    finally:
        _shared.reset(token)


def current_budget(*, cells: int = MAX_VALUES) -> Budget:
    """Return the budget of the block, or a new one for a single file, which may have so many cells."""
    return _shared.get() or Budget(cells=cells)


MAGIC = {"gzip": b"\x1f\x8b", "xz": b"\xfd7zXZ\x00", "zstandard": b"\x28\xb5\x2f\xfd"}
SUFFIXES = (".gz", ".xz", ".zst")
"""Suffixes of compressed files."""

STANDARD = "-"
"""The name of standard input and output."""

PIECE = 1 << 20
MEMORY = 1 << 27
"""Memory limit of a decompressor, in bytes; the largest presets of xz and zstandard stay within it."""

MAX_RATIO, MIN_BYTES = 200, 1 << 26
"""A file may expand to `MAX_RATIO` times its size, or to `MIN_BYTES` bytes; rows of text compress 5 to 20 times."""

ALLOWANCE = "CORANK_UNPACK_GB"
"""Environment variable: gigabytes that every file may expand to."""

ZIP_DAMAGE = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""Errors of the standard library for archives that are damaged, encrypted or compressed in an unknown way."""

# compressed, it does not occur within its own bytes, so a truncated block cannot contain it
_LAST_FRAME = b"\n" * 100


def compression_of(handle: IO[bytes]) -> str | None:
    """Return the compression of a file, a key of `MAGIC` or None, and rewind the file."""
    handle.seek(0)
    head = handle.read(max(map(len, MAGIC.values())))
    handle.seek(0)
    return next((kind for kind, magic in MAGIC.items() if head.startswith(magic)), None)


def unpack(handle: IO[bytes], kind: str, name: object) -> Iterator[bytes]:
    """Decompress a file lazily."""
    packed = handle.seek(0, os.SEEK_END)
    handle.seek(0)
    unpackers = {"gzip": _gzip, "xz": _xz, "zstandard": _zstandard}
    unpacked, budget = 0, current_budget()
    with _naming_damage(name, kind):
        for piece in unpackers[kind](handle):
            unpacked += len(piece)
            require_plausible_size(name, packed, unpacked)
            budget.take("bytes", len(piece), name)
            yield piece


def require_plausible_size(name: object, packed: int, unpacked: int) -> None:
    """Raise `InputError` if a file of `packed` bytes expands to suspiciously many bytes (a decompression bomb)."""
    allowance = os.environ.get(ALLOWANCE)
    try:
        limit = max(MIN_BYTES, MAX_RATIO * packed) if allowance is None else int(float(allowance) * 1e9)
    except (ValueError, OverflowError):
        raise InputError(f"{ALLOWANCE} is {allowance!r}; set it to a number of gigabytes, such as 10.") from None
    if unpacked > limit:
        raise InputError(
            f"{name} has {packed:,} bytes and expands to more than {limit / 1e9:.2g} GB; if this is intended, set the "
            f"environment variable {ALLOWANCE} to the number of gigabytes it may take."
        )


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo | str, name: object) -> bytes:
    """Return the content of a file in an archive."""
    return b"".join(member_pieces(archive, member, name))


def member_pieces(archive: zipfile.ZipFile, member: zipfile.ZipInfo | str, name: object) -> Iterator[bytes]:
    """Yield the content of a file in an archive in pieces; they are counted, since declared sizes may be wrong."""
    budget = current_budget()
    with archive.open(member) as stream:
        while piece := stream.read(PIECE):
            budget.take("bytes", len(piece), name)
            yield piece


def require_text_place(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise `InputError` early if a text cannot be written to `path`; ``-``, devices and pipes pass."""
    if not is_stream(path):
        require_place(path, overwrite=overwrite)


@contextmanager
def write_text(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Open a text file for atomic writing, or a stream; the suffixes .gz, .xz and .zst select compression."""
    if is_stream(path):
        with _stream(path) as handle:
            with _compressing(handle, Path(path).suffix) as stream:
                yield stream
            handle.flush()
        return
    with (
        atomic_file(path, overwrite=overwrite) as scratch,
        scratch.open("wb") as handle,
        _compressing(handle, Path(path).suffix) as stream,
    ):
        yield stream


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a name is ``-``, an open file (``/dev/stdout``, ``/dev/fd/63``), a pipe or a device."""
    name = os.fspath(path)
    if name == STANDARD or re.fullmatch(r"/dev/(std(in|out|err)|fd/\d+)|/proc/self/fd/\d+", name):
        return True
    return os.path.exists(name) and not (os.path.isfile(name) or os.path.isdir(name))


def _stream(path: str | os.PathLike[str]) -> AbstractContextManager[IO[bytes]]:
    if os.fspath(path) != STANDARD:
        return open_pipe(path, write=True) if is_named_pipe(path) else open(path, "ab")  # keeps what was written before
    buffer = getattr(sys.stdout, "buffer", None)  # a notebook has none
    if buffer is None:
        raise InputError("standard output is not available here; pass the name of a file.")
    sys.stdout.flush()
    return nullcontext(buffer)


def _compressing(handle: IO[bytes], suffix: str) -> AbstractContextManager[IO[bytes]]:
    stream: Any = nullcontext(handle)
    if suffix == ".gz":
        # without name and time, the same rows give the same bytes
        stream = gzip.GzipFile(filename="", mode="wb", fileobj=handle, mtime=0, compresslevel=6)
    elif suffix == ".xz":
        stream = lzma.LZMAFile(handle, "wb", preset=3)  # noqa: SIM115
    elif suffix == ".zst":
        stream = import_extra("zstandard", "zst").ZstdCompressor().stream_writer(handle, closefd=False)
    return stream  # type: ignore[no-any-return]


def _gzip(handle: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(gzip.GzipFile(fileobj=handle).read, PIECE), b"")


def _xz(handle: IO[bytes]) -> Iterator[bytes]:
    """Decompress stream by stream; `lzma.LZMAFile` limits no memory and treats damage as the end of the file."""
    packed = handle.read(PIECE)
    while packed:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
        while not stream.eof:
            if stream.needs_input and not packed:
                raise EOFError("the last stream has no end")
            yield stream.decompress(packed, PIECE)
            packed = handle.read(PIECE) if stream.needs_input and not stream.eof else b""
        # streams may be followed by zeros
        packed = stream.unused_data.lstrip(b"\0")
        while not packed and (more := handle.read(PIECE)):
            packed = more.lstrip(b"\0")


class _WithLastFrame:
    """A file of frames with one more frame appended."""

    def __init__(self, handle: IO[bytes], frame: bytes) -> None:
        self._handle, self._frame = handle, frame

    def read(self, size: int) -> bytes:
        if piece := self._handle.read(size):
            return piece
        piece, self._frame = self._frame[:size], self._frame[size:]
        return piece


def _zstandard(handle: IO[bytes]) -> Iterator[bytes]:
    """Decompress frame by frame; the library ignores a truncated last frame, so a known frame is appended."""
    library = import_extra("zstandard", "zst")
    source = _WithLastFrame(handle, library.ZstdCompressor().compress(_LAST_FRAME))
    stream = library.ZstdDecompressor(max_window_size=MEMORY).stream_reader(source, read_across_frames=True)
    kept = b""
    while piece := stream.read(PIECE):
        kept += piece
        yield kept[: -len(_LAST_FRAME)]
        kept = kept[-len(_LAST_FRAME) :]
    if kept != _LAST_FRAME:
        raise EOFError("the last frame has no end")


@contextmanager
def _naming_damage(name: object, kind: str) -> Iterator[None]:
    damage: tuple[type[Exception], ...] = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
    if kind == "zstandard":
        damage = (EOFError, import_extra("zstandard", "zst").ZstdError)
    try:
        yield
    except damage as error:
        if "memory" in str(error).lower():
            raise InputError(
                f"{name} needs more than {MEMORY >> 20} MB of memory to be decompressed ({reason(error)}); compress it "
                "with a smaller window, or decompress it first."
            ) from error
        raise InputError(
            f"{name} is damaged or truncated: its {kind} data cannot be decompressed ({reason(error)}); download or "
            "write it again."
        ) from error
