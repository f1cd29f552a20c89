"""Text files as bytes: mapped into memory, plain or compressed with gzip, xz or zstandard."""

from __future__ import annotations

import gzip
import io
import lzma
import mmap
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from corank.data.atomic import atomic_file, require_place
from corank.errors import InputError, need

MAGIC = {"gzip": b"\x1f\x8b", "xz": b"\xfd7zXZ\x00", "zstandard": b"\x28\xb5\x2f\xfd"}
SUFFIXES = (".gz", ".xz", ".zst")
"""How the names of compressed files end."""

PIECE = 1 << 20


@dataclass(frozen=True, eq=False)
class Text:
    """
    The (uncompressed) bytes of a file, in the file cache rather than in this process's own memory.

    path: the file it came from, for messages.
    mapped: the bytes; searched with `find` and regular expressions.
    """

    path: Path
    mapped: mmap.mmap

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """The bytes as a read-only array."""
        return np.frombuffer(self.mapped, dtype=np.uint8)

    def require_unchanged(self) -> None:
        """Raise one sentence when the file was cut since it was mapped: its lost pages must not be touched."""
        if self.mapped.size() < len(self.mapped):
            raise InputError(f"{self.path} was overwritten after it was read; read it again.")

    def locate(self, position: int) -> tuple[int, int]:
        """
        Say where a byte stands.

        position: offset of the byte.
        Returns: both count from 1; columns count bytes.
        """
        line_begin = self.mapped.rfind(b"\n", 0, position) + 1
        return self._newlines(line_begin) + 1, position - line_begin + 1

    @property
    def n_lines(self) -> int:
        """Number of lines, counting the last one even where no newline ends it, and so never less than the rows."""
        return self._newlines(len(self.mapped)) + 1

    def _newlines(self, end: int) -> int:
        content = self.bytes[:end]
        return sum(int(np.count_nonzero(content[k : k + PIECE] == ord("\n"))) for k in range(0, end, PIECE))


def open_text(path: str | os.PathLike[str]) -> Text:
    """
    Map a text file; a compressed one is first unpacked to an unnamed temporary file.

    path: A plain, gzip, xz or zstandard file, told apart by its first bytes.
    Returns: the bytes of the text.
    """
    place = Path(path)
    with _opened(place) as (handle, kind):
        if kind is None:
            return Text(place, _map(handle, place))
        with tempfile.TemporaryFile() as unpacked:
            with _naming_damage(place, kind):
                if kind == "zstandard":
                    _unpack_zstandard(handle, unpacked)
                else:
                    shutil.copyfileobj(_unpacking(handle, kind), unpacked, PIECE)
            unpacked.flush()
            return Text(place, _map(unpacked, place))


def first_line(path: str | os.PathLike[str], comment: bytes | None = None) -> bytes:
    """
    Read the first line that is not blank, and no further.

    path: A plain, gzip, xz or zstandard file.
    comment: what begins a comment, which is left out of lines.
    Returns: the line, without what ends it; empty where there is none.
    """
    with _opened(Path(path)) as (handle, kind), _naming_damage(Path(path), kind):
        for whole in handle if kind is None else _unpacking(handle, kind):
            line = whole if comment is None else whole.split(comment)[0]
            if line.strip():
                return line.rstrip(b"\r\n")
    return b""


def require_text_place(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """
    Refuse, before any work is done, a text that could not be written after it; ``-``, devices and pipes pass.

    path: where it shall stand.
    overwrite: whether a file that stands there may be replaced.
    """
    place = Path(path)
    if str(path) != "-" and (not place.exists() or place.is_file() or place.is_dir()):
        require_place(path, overwrite=overwrite)


@contextmanager
def write_text(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """
    Write a text file whole or not at all, compressed as its suffix says (.gz, .xz, .zst).

    path: where the file shall stand.
    overwrite: whether a file that stands there is replaced.
    Yields: takes the uncompressed bytes.
    """
    with (
        atomic_file(path, overwrite=overwrite) as scratch,
        scratch.open("wb") as handle,
        _packing(handle, Path(path).suffix) as stream,
    ):
        yield stream


def _packing(handle: IO[bytes], suffix: str) -> AbstractContextManager[IO[bytes]]:
    stream: Any = nullcontext(handle)
    if suffix == ".gz":
        # no name and no time inside: the same rows give the same bytes
        stream = gzip.GzipFile(filename="", mode="wb", fileobj=handle, mtime=0, compresslevel=6)
    elif suffix == ".xz":
        stream = lzma.LZMAFile(handle, "wb", preset=3)  # noqa: SIM115
    elif suffix == ".zst":
        stream = need("zstandard", "zst").ZstdCompressor().stream_writer(handle, closefd=False)
    return stream  # type: ignore[no-any-return]


@contextmanager
def _opened(place: Path) -> Iterator[tuple[IO[bytes], str | None]]:
    """The file and how it is packed."""
    try:
        with place.open("rb") as handle:
            head = handle.read(max(map(len, MAGIC.values())))
            handle.seek(0)
            yield handle, next((kind for kind, magic in MAGIC.items() if head.startswith(magic)), None)
    except FileNotFoundError:
        raise InputError(f"there is no file {place}; check the name.") from None
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror or error}.") from error


def _map(handle: IO[bytes], path: Path) -> mmap.mmap:
    if os.fstat(handle.fileno()).st_size == 0:
        raise InputError(f"{path} is empty; expected at least one line of text.")
    return mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)


def _unpacking(handle: IO[bytes], kind: str) -> IO[bytes]:
    stream: Any
    if kind == "gzip":
        stream = gzip.GzipFile(fileobj=handle)
    elif kind == "xz":
        stream = lzma.LZMAFile(handle)  # noqa: SIM115
    else:
        frames = need("zstandard", "zst").ZstdDecompressor().stream_reader(handle, read_across_frames=True)
        stream = io.BufferedReader(frames)
    return stream  # type: ignore[no-any-return]


@contextmanager
def _naming_damage(path: Path, kind: str | None) -> Iterator[None]:
    damage: tuple[type[Exception], ...] = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
    if kind == "zstandard":
        damage = (EOFError, need("zstandard", "zst").ZstdError)
    try:
        yield
    except damage as error:
        raise InputError(
            f"{path} is damaged or cut short inside its {kind} data ({error}); fetch or write it again."
        ) from error


def _unpack_zstandard(handle: IO[bytes], unpacked: IO[bytes]) -> None:
    """Unpack frame after frame; the library's own stream reader takes a cut frame for the end of the file."""
    decompressor = need("zstandard", "zst").ZstdDecompressor()
    frame, pending = decompressor.decompressobj(), False
    while piece := handle.read(PIECE):
        while piece:
            unpacked.write(frame.decompress(piece))
            pending, piece = not frame.eof, b""
            if frame.eof:
                piece, frame = frame.unused_data, decompressor.decompressobj()
    if pending:
        raise EOFError("the last frame has no end")
