"""Bytes packed with gzip, xz or zstandard: unpacked piece by piece within bounds, and written as a suffix says."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any

from corank.data.durable.atomic import atomic_file, require_place
from corank.errors import InputError, import_extra, reason

MAGIC = {"gzip": b"\x1f\x8b", "xz": b"\xfd7zXZ\x00", "zstandard": b"\x28\xb5\x2f\xfd"}
SUFFIXES = (".gz", ".xz", ".zst")
"""How the names of compressed files end."""

STANDARD = "-"
"""The name of standard input and output."""

PIECE = 1 << 20
MEMORY = 1 << 27
"""What an unpacker may take, in bytes; the largest presets of xz and zstandard stay within it."""

TIMES, LEAST = 200, 1 << 26
"""A file may unpack to so many times its size, or so many bytes; rows of text or of a table pack 5 to 20 times."""

ALLOWANCE = "CORANK_UNPACK_GB"
"""Environment variable: gigabytes that every file may unpack to."""

# packed, it is nowhere to be found in its own bytes, which a block that was cut takes for its own
_LAST_FRAME = b"\n" * 100


def packing_of(handle: IO[bytes]) -> str | None:
    """
    Say how a file is packed.

    handle: the file, which is put back to its start.
    Returns: a name in `MAGIC`, or None.
    """
    handle.seek(0)
    head = handle.read(max(map(len, MAGIC.values())))
    handle.seek(0)
    return next((kind for kind, magic in MAGIC.items() if head.startswith(magic)), None)


def unpack(handle: IO[bytes], kind: str, name: object) -> Iterator[bytes]:
    """
    Unpack a file, no further than the pieces are asked for.

    handle: the packed file, at its start.
    kind: a name in `MAGIC`.
    name: what the file is called in messages.
    Yields: pieces of about `PIECE` bytes.
    """
    packed = handle.seek(0, os.SEEK_END)
    handle.seek(0)
    unpackers = {"gzip": _gzip, "xz": _xz, "zstandard": _zstandard}
    unpacked = 0
    with _naming_damage(name, kind):
        for piece in unpackers[kind](handle):
            unpacked += len(piece)
            require_explained(name, packed, unpacked)
            yield piece


def require_explained(name: object, packed: int, unpacked: int) -> None:
    """
    Raise one sentence where a file unpacks to more than its size explains.

    name: what the file is called in messages.
    packed, unpacked: bytes in the file, and bytes that come out of it.
    """
    given = os.environ.get(ALLOWANCE)
    try:
        most = max(LEAST, TIMES * packed) if given is None else int(float(given) * 1e9)
    except (ValueError, OverflowError):
        raise InputError(f"{ALLOWANCE} is {given!r}; set it to a number of gigabytes, such as 10.") from None
    if unpacked > most:
        raise InputError(
            f"{name} has {packed:,} bytes and unpacks to more than {most / 1e9:.2g} GB; where that is meant, set the "
            f"environment variable {ALLOWANCE} to the gigabytes that it may take."
        )


def require_text_place(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """
    Refuse, before any work is done, a text that could not be written after it; ``-``, devices and pipes pass.

    path: where it shall stand.
    overwrite: whether a file that stands there may be replaced.
    """
    if not is_stream(path):
        require_place(path, overwrite=overwrite)


@contextmanager
def write_text(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """
    Write a text file whole or not at all, or a stream as it comes, compressed as its suffix says (.gz, .xz, .zst).

    path: where the file shall stand, or a stream.
    overwrite: whether a file that stands there is replaced.
    Yields: takes the uncompressed bytes.
    """
    if is_stream(path):
        with _stream(path) as handle:
            with _packing(handle, Path(path).suffix) as stream:
                yield stream
            handle.flush()
        return
    with (
        atomic_file(path, overwrite=overwrite) as scratch,
        scratch.open("wb") as handle,
        _packing(handle, Path(path).suffix) as stream,
    ):
        yield stream


def is_stream(path: str | os.PathLike[str]) -> bool:
    """
    Say whether a name stands for something that is read or written from start to end, and not for a file.

    path: the name.
    Returns: true for ``-``, the open files of the process (``/dev/stdout``, ``/dev/fd/63``), pipes and devices.
    """
    name = os.fspath(path)
    if name == STANDARD or re.fullmatch(r"/dev/(std(in|out|err)|fd/\d+)|/proc/self/fd/\d+", name):
        return True
    return os.path.exists(name) and not (os.path.isfile(name) or os.path.isdir(name))


def _stream(path: str | os.PathLike[str]) -> AbstractContextManager[IO[bytes]]:
    if os.fspath(path) != STANDARD:
        return open(path, "ab")  # what the stream has already stays
    buffer = getattr(sys.stdout, "buffer", None)  # a notebook has none
    if buffer is None:
        raise InputError("there is no standard output here; name a file to write.")
    sys.stdout.flush()
    return nullcontext(buffer)


def _packing(handle: IO[bytes], suffix: str) -> AbstractContextManager[IO[bytes]]:
    stream: Any = nullcontext(handle)
    if suffix == ".gz":
        # no name and no time inside: the same rows give the same bytes
        stream = gzip.GzipFile(filename="", mode="wb", fileobj=handle, mtime=0, compresslevel=6)
    elif suffix == ".xz":
        stream = lzma.LZMAFile(handle, "wb", preset=3)  # noqa: SIM115
    elif suffix == ".zst":
        stream = import_extra("zstandard", "zst").ZstdCompressor().stream_writer(handle, closefd=False)
    return stream  # type: ignore[no-any-return]


def _gzip(handle: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(gzip.GzipFile(fileobj=handle).read, PIECE), b"")


def _xz(handle: IO[bytes]) -> Iterator[bytes]:
    """Stream after stream; the standard library's own reader bounds no memory and takes damage for the end."""
    packed = handle.read(PIECE)
    while packed:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
        while not stream.eof:
            if stream.needs_input and not packed:
                raise EOFError("the last stream has no end")
            yield stream.decompress(packed, PIECE)
            packed = handle.read(PIECE) if stream.needs_input and not stream.eof else b""
        # streams may be padded with zeros
        packed = stream.unused_data.lstrip(b"\0")
        while not packed and (more := handle.read(PIECE)):
            packed = more.lstrip(b"\0")


class _WithLastFrame:
    """A file of frames, and one more behind them."""

    def __init__(self, handle: IO[bytes], frame: bytes) -> None:
        self._handle, self._frame = handle, frame

    def read(self, size: int) -> bytes:
        if piece := self._handle.read(size):
            return piece
        piece, self._frame = self._frame[:size], self._frame[size:]
        return piece


def _zstandard(handle: IO[bytes]) -> Iterator[bytes]:
    """Frame after frame; the library takes a cut one for the end of the file, and then ours does not come out."""
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
                f"{name} asks for more than {MEMORY >> 20} MB of memory to be unpacked ({reason(error)}); pack it "
                "with a smaller window, or unpack it first."
            ) from error
        raise InputError(
            f"{name} is damaged or cut short inside its {kind} data ({reason(error)}); fetch or write it again."
        ) from error
