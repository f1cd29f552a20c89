"""Text files: bytes of a file, a pipe or standard input, plain or compressed, read piece by piece without mapping."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corank.data.durable.atomic import folder_exists
from corank.data.durable.compressed import PIECE, STANDARD, compression_of, unpack
from corank.data.durable.files import is_named_pipe, open_pipe, require_end
from corank.errors import InputError

MAX_HELD_BYTES = 1 << 23
"""Bytes up to which a text is kept in memory; a larger one stays in its file, or in an unnamed temporary file."""

MAX_LINE_BYTES = 1 << 30
"""Bytes of a line: three times those of a row with every feature up to 2²⁴."""

STANDARD_INPUT = "standard input"
"""Name of ``-`` in messages."""

BARE_RETURN_MESSAGE = (
    "expected lines that end with a newline, found a carriage return alone; convert them (tr '\\r' '\\n')"
)
"""Message for texts with the line ends of old Macintosh files."""

NEWLINE = ord("\n")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WORD = re.compile(rb"[^ \t\r\n]*")
_ROW = re.compile(rb"^[ \t\r\x0b\x0c]*+[^ \t\r\n\x0b\x0c#][^\r\n#]*", re.MULTILINE)
_RETURN = re.compile(rb"\r[^\r\n]")
_HEAD = 1 << 24


class _Open(io.FileIO):
    """A file that is closed when its last reference is gone."""

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True, eq=False)
class TextFile:
    """
    The (uncompressed) bytes of a text, without its byte order mark.

    `read` reads a large file from disk each time, and raises `InputError` if the file changed after it was opened.
    `str` gives the name for messages.
    """

    path: Path  # the name it was opened by
    size: int  # number of bytes
    _file: io.BytesIO | _Open
    _begin: int
    _stamp: tuple[int, int] | None
    _lock: Lock = field(default_factory=Lock)

    def __str__(self) -> str:
        return _display_name(self.path)

    def read(self, begin: int = 0, end: int | None = None, padding: int = 0) -> NDArray[np.uint8]:
        """Return bytes `begin` to `end` in a new array; safe in threads and forked processes."""
        count = (self.size if end is None else end) - begin
        result = np.empty(count + padding, dtype=np.uint8)
        result[count:] = NEWLINE
        buffer, done = result.data[:count], 0
        with _naming_file(str(self)):
            while done < count and (n := self._read_at(self._begin + begin + done, buffer[done:])):
                done += n
            stamp = None if self._stamp is None else _stamp(self._file.fileno())
        if done < count or stamp != self._stamp:
            raise _overwritten(str(self))
        return result

    def _read_at(self, offset: int, buffer: memoryview) -> int:
        if isinstance(self._file, io.BytesIO):
            part = self._file.getbuffer()[offset : offset + len(buffer)]
            buffer[: len(part)] = part
            return len(part)
        if hasattr(os, "preadv"):  # forked processes share the file offset, which must not move
            return os.preadv(self._file.fileno(), [buffer], offset)
        with self._lock:
            self._file.seek(offset)
            return self._file.readinto(buffer) or 0

    def line_end(self, position: int, max_word: int = MAX_LINE_BYTES) -> int:
        """Return the offset after the line that contains the byte at `position`."""
        limit, step, word = position + MAX_LINE_BYTES, 1 << 12, position
        while position < self.size:
            if position > limit:
                raise InputError(
                    f"{self} has a line of more than {MAX_LINE_BYTES:,} bytes; check that it is a text file."
                )
            stop = min(position + step, self.size)
            part = self.read(position, stop).tobytes()
            result = part.find(b"\n")
            if result >= 0:
                return position + result + 1
            blank = max(part.rfind(b" "), part.rfind(b"\t"))
            word = word if blank < 0 else position + blank + 1
            if stop - word > max_word:
                shown = self.word(word)[:40].decode(errors="replace")
                raise InputError(
                    f"{self}, line {self.locate(word)[0]}: the word at {shown!r} has more than {max_word:,} bytes; "
                    "check that it is a text file of numbers."
                )
            position, step = stop, min(2 * step, PIECE)
        return self.size

    def locate(self, position: int) -> tuple[int, int]:
        """Return the line and column of an offset, both from 1; columns count bytes."""
        line, line_begin = 1, 0
        for begin in range(0, position, PIECE):
            ends = np.flatnonzero(self.read(begin, min(begin + PIECE, position)) == NEWLINE)
            line += len(ends)
            line_begin = begin + int(ends[-1]) + 1 if len(ends) else line_begin
        return line, position - line_begin + 1

    def word(self, position: int) -> bytes:
        """Return the bytes from `position` to the next blank, at most 200."""
        return _WORD.match(self.read(position, min(position + 200, self.size)).tobytes())[0]  # type: ignore[index]

    def has_bare_return(self, position: int) -> bool:
        """Return whether the line has, up to `position`, a carriage return that is not followed by a newline."""
        column = self.locate(position)[1]
        begin = position + 1 - min(column, PIECE)
        return _RETURN.search(self.read(begin, min(position + 1, self.size)).data) is not None

    def first_line(self) -> bytes:
        """
        Return the first line that is not blank or a ``#`` comment, without its comment and newline.

        Empty if there is none in the first 16 MB.
        """
        size = 0
        while size < min(self.size, _HEAD):
            size = min(16 * size or 1 << 12, self.size, _HEAD)
            result = _ROW.search(self.read(0, size).tobytes())
            if result and (result.end() < size or size in (self.size, _HEAD)):
                return result.group()
        return b""


Source: TypeAlias = str | os.PathLike[str] | TextFile
"""Where a text is read from: the name of a file or pipe, ``-`` for standard input, or an open text."""


def is_number(word: bytes) -> bool:
    """Return whether `float` accepts a word."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def as_sources(path: Source | Sequence[Source]) -> list[Source]:
    """Return one or several sources as a list; raise `InputError` for none."""
    sources = [path] if isinstance(path, str | os.PathLike | TextFile) else list(path)
    if not sources:
        raise InputError("the list of files is empty; pass at least one path.")
    return sources


def require_exists(path: Path) -> None:
    """Raise the error of `open_text` for a missing file early, before slow imports."""
    if str(path) != STANDARD and not folder_exists(path):
        with _naming_file(str(path)):
            path.stat()


def open_text(source: Source) -> TextFile:
    """
    Open a text: plain, gzip, xz or zstandard, recognised by its first bytes.

    A compressed text or a pipe is copied to memory, or to an unnamed temporary file if it is large. An open text is
    returned as it is.
    """
    if isinstance(source, TextFile):
        return source
    path = Path(source)
    name = _display_name(path)
    with _naming_file(name), _open_binary(path) as handle:
        with suppress(io.UnsupportedOperation):  # standard input that was replaced by bytes in memory
            require_end(handle.fileno(), name)
        is_file = name != STANDARD_INPUT and stat.S_ISREG(os.stat(handle.fileno()).st_mode)
        spool = None if is_file else spool_bytes(iter(lambda: handle.read(PIECE), b""), name)
        kind = compression_of(spool or handle)
        if kind is not None:
            spool = spool_bytes(unpack(spool or handle, kind, name), name)
        return _text(path, *_load_small(handle)) if spool is None else _text(path, spool, None)


def _text(path: Path, file: io.BytesIO | _Open, stamp: tuple[int, int] | None) -> TextFile:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(len(BYTE_ORDER_MARK))
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{_display_name(path)} is encoded in UTF-16; save it as UTF-8.")
    begin = len(BYTE_ORDER_MARK) if head == BYTE_ORDER_MARK else 0
    if size == begin:
        raise InputError(f"{_display_name(path)} is empty; expected at least one line of text.")
    return TextFile(path, size - begin, file, begin, stamp)


def _display_name(path: Path) -> str:
    return STANDARD_INPUT if str(path) == STANDARD else str(path)


def _open_binary(path: Path) -> AbstractContextManager[IO[bytes]]:
    if str(path) != STANDARD:
        return open_pipe(path) if is_named_pipe(path) else path.open("rb")
    buffer = getattr(sys.stdin, "buffer", None)  # a notebook has none
    if buffer is None:
        raise InputError("standard input is not available here; pass the name of a file.")
    return nullcontext(buffer)


def _load_small(handle: IO[bytes]) -> tuple[io.BytesIO | _Open, tuple[int, int] | None]:
    """Read a small file at once, so that later changes to it have no effect."""
    stamp = _stamp(handle.fileno())
    content = handle.read(MAX_HELD_BYTES + 1)
    if len(content) > MAX_HELD_BYTES:
        return _Open(os.dup(handle.fileno())), stamp
    if _stamp(handle.fileno()) != stamp:
        raise _overwritten(handle.name)
    return io.BytesIO(content), None


def _overwritten(name: str) -> InputError:
    return InputError(f"{name} changed while it was read; read it again.")


def _stamp(descriptor: int) -> tuple[int, int]:
    state = os.stat(descriptor)
    return state.st_size, state.st_mtime_ns


def spool_bytes(pieces: Iterable[bytes], name: str) -> io.BytesIO | _Open:
    """Collect bytes in memory, or in an unnamed temporary file if they exceed `MAX_HELD_BYTES`."""
    with tempfile.SpooledTemporaryFile(MAX_HELD_BYTES) as spool:
        for piece in pieces:
            try:
                spool.write(piece)
                spool.flush()
            except OSError as error:
                raise InputError(
                    f"{name} does not fit into the folder for temporary files ({error.strerror}); "
                    "set the environment variable TMPDIR to a larger one."
                ) from error
        if spool.tell() > MAX_HELD_BYTES:
            return _Open(os.dup(spool.fileno()))
        spool.seek(0)
        return io.BytesIO(spool.read())


@contextmanager
def _naming_file(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"there is no file {name}; check the path.") from None
    except OSError as error:
        raise InputError(
            f"{name} cannot be read ({error.strerror or error}); check the file and its permissions."
        ) from error
