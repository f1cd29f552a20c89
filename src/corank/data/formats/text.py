"""Text: the bytes of a file, a pipe or standard input, plain or packed, read piece by piece and never mapped."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corank.data.durable.atomic import folder_stands
from corank.data.formats.compressed import PIECE, STANDARD, packing_of, unpack
from corank.errors import InputError

HELD = 1 << 23
"""Bytes up to which a text is held in memory; a larger one stays in its file, or in an unnamed one."""

LONGEST_LINE = 1 << 30
"""Bytes of a line: three times those of a row that names every feature up to 2²⁴."""

STANDARD_INPUT = "standard input"
"""What ``-`` is called in messages."""

BARE_RETURN = "expected a newline behind every row, found a carriage return alone; replace them (tr '\\r' '\\n')"
"""What to say of old texts."""

NEWLINE = ord("\n")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WORD = re.compile(rb"[^ \t\r\n]*")
_ROW = re.compile(rb"^[ \t\r\x0b\x0c]*+[^ \t\r\n\x0b\x0c#][^\r\n#]*", re.MULTILINE)
_RETURN = re.compile(rb"\r[^\r\n]")
_HEAD = 1 << 24


class _Open(io.FileIO):
    """A file that is closed with the last who reads it."""

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True, eq=False)
class Text:
    """
    The (unpacked) bytes of a text, without its byte order mark.

    A large file is read again where its bytes are asked for again, and refused where it has changed since it was
    opened.

    path: what it was opened as; as a string, what it is called in messages.
    size: number of bytes.
    """

    path: Path
    size: int
    _file: io.BytesIO | _Open
    _begin: int
    _stamp: tuple[int, int] | None
    _lock: Lock = field(default_factory=Lock)

    def __str__(self) -> str:
        return _called(self.path)

    def read(self, begin: int = 0, end: int | None = None, padding: int = 0) -> NDArray[np.uint8]:
        """
        Read bytes; threads and forked processes may.

        begin, end: the first byte, and the one behind the last; the end of the text by default.
        padding: number of newlines to put behind them.
        Returns: a new array.
        """
        count = (self.size if end is None else end) - begin
        found = np.empty(count + padding, dtype=np.uint8)
        found[count:] = NEWLINE
        room, done = found.data[:count], 0
        with _naming(str(self)):
            while done < count and (n := self._read_at(self._begin + begin + done, room[done:])):
                done += n
            stamp = None if self._stamp is None else _stamp(self._file.fileno())
        if done < count or stamp != self._stamp:
            raise _overwritten(str(self))
        return found

    def _read_at(self, offset: int, room: memoryview) -> int:
        if isinstance(self._file, io.BytesIO):
            part = self._file.getbuffer()[offset : offset + len(room)]
            room[: len(part)] = part
            return len(part)
        if hasattr(os, "preadv"):  # the place in an open file is shared with forked processes, and must not move
            return os.preadv(self._file.fileno(), [room], offset)
        with self._lock:
            self._file.seek(offset)
            return self._file.readinto(room) or 0

    def line_end(self, position: int) -> int:
        """
        Find the end of the line in which a byte stands.

        position: offset of the byte.
        Returns: offset behind the newline, or behind the last byte.
        """
        most, step = position + LONGEST_LINE, 1 << 12
        while position < self.size:
            if position > most:
                raise InputError(f"{self} has a line of more than {LONGEST_LINE:,} bytes; check what it is.")
            stop = min(position + step, self.size)
            found = self.read(position, stop).tobytes().find(b"\n")
            if found >= 0:
                return position + found + 1
            position, step = stop, min(2 * step, PIECE)
        return self.size

    def locate(self, position: int) -> tuple[int, int]:
        """
        Say where a byte stands.

        position: offset of the byte.
        Returns: line and column, both from 1; columns count bytes.
        """
        line, line_begin = 1, 0
        for begin in range(0, position, PIECE):
            ends = np.flatnonzero(self.read(begin, min(begin + PIECE, position)) == NEWLINE)
            line += len(ends)
            line_begin = begin + int(ends[-1]) + 1 if len(ends) else line_begin
        return line, position - line_begin + 1

    def word(self, position: int) -> bytes:
        """
        Read what stands at a byte, up to the next blank.

        position: offset of the first byte.
        Returns: at most 200 bytes.
        """
        return _WORD.match(self.read(position, min(position + 200, self.size)).tobytes())[0]  # type: ignore[index]

    def has_bare_return(self, position: int) -> bool:
        """
        Say whether a line has a carriage return that no newline follows, which an old text has for a newline.

        position: offset of a byte; what stands before it in its line is looked at.
        Returns: true where there is one.
        """
        column = self.locate(position)[1]
        begin = position + 1 - min(column, PIECE)
        return _RETURN.search(self.read(begin, min(position + 1, self.size)).data) is not None

    def first_line(self) -> bytes:
        """
        Read the first line that has more than blanks and a comment, which begins with ``#``.

        Returns: the line before its comment and newline; empty where there is none in the first 16 MB.
        """
        size = 0
        while size < min(self.size, _HEAD):
            size = min(16 * size or 1 << 12, self.size, _HEAD)
            found = _ROW.search(self.read(0, size).tobytes())
            if found and (found.end() < size or size in (self.size, _HEAD)):
                return found.group()
        return b""


Source: TypeAlias = str | os.PathLike[str] | Text
"""What a text is read from: the name of a file or pipe, ``-`` for standard input, or a text that is open already."""


def as_sources(given: Source | Sequence[Source]) -> list[Source]:
    """
    Take one or several sources.

    given: what the user gave as a path.
    Returns: at least one.
    """
    sources = [given] if isinstance(given, str | os.PathLike | Text) else list(given)
    if not sources:
        raise InputError("no file to read; pass at least one path.")
    return sources


def require_there(path: Path) -> None:
    """Raise what `open_text` would where there is nothing of that name, before anything else is imported or read."""
    if str(path) != STANDARD and not folder_stands(path):
        with _naming(str(path)):
            path.stat()


def open_text(source: Source) -> Text:
    """
    Open a text; one that is packed or comes from a pipe is copied to memory, or to an unnamed file where it is large.

    source: plain, gzip, xz or zstandard, told apart by the first bytes.
    Returns: the text; `source` itself where it is one.
    """
    if isinstance(source, Text):
        return source
    path = Path(source)
    name = _called(path)
    with _naming(name), _reading(path) as handle:
        is_file = name != STANDARD_INPUT and stat.S_ISREG(os.stat(handle.fileno()).st_mode)
        spool = None if is_file else spooled(iter(lambda: handle.read(PIECE), b""), name)
        kind = packing_of(spool or handle)
        if kind is not None:
            spool = spooled(unpack(spool or handle, kind, name), name)
        return _text(path, *_held(handle)) if spool is None else _text(path, spool, None)


def _text(path: Path, file: io.BytesIO | _Open, stamp: tuple[int, int] | None) -> Text:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(len(BYTE_ORDER_MARK))
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{_called(path)} is text in UTF-16; save it as UTF-8.")
    begin = len(BYTE_ORDER_MARK) if head == BYTE_ORDER_MARK else 0
    if size == begin:
        raise InputError(f"{_called(path)} is empty; expected at least one line of text.")
    return Text(path, size - begin, file, begin, stamp)


def _called(path: Path) -> str:
    return STANDARD_INPUT if str(path) == STANDARD else str(path)


def _reading(path: Path) -> AbstractContextManager[IO[bytes]]:
    if str(path) != STANDARD:
        return path.open("rb")
    buffer = getattr(sys.stdin, "buffer", None)  # a notebook has none
    if buffer is None:
        raise InputError("there is no standard input here; name a file to read.")
    return nullcontext(buffer)


def _held(handle: IO[bytes]) -> tuple[io.BytesIO | _Open, tuple[int, int] | None]:
    """A small file is read at once: what happens to it later does not matter."""
    stamp = _stamp(handle.fileno())
    content = handle.read(HELD + 1)
    if len(content) > HELD:
        return _Open(os.dup(handle.fileno())), stamp
    if _stamp(handle.fileno()) != stamp:
        raise _overwritten(handle.name)
    return io.BytesIO(content), None


def _overwritten(name: str) -> InputError:
    return InputError(f"{name} was overwritten after it was read; read it again.")


def _stamp(descriptor: int) -> tuple[int, int]:
    state = os.stat(descriptor)
    return state.st_size, state.st_mtime_ns


def spooled(pieces: Iterable[bytes], name: str) -> io.BytesIO | _Open:
    """
    Keep bytes until all are there: in memory, or in an unnamed file where they are many.

    name: whose they are, for the message.
    Returns: a file to be read; its place is anywhere.
    """
    with tempfile.SpooledTemporaryFile(HELD) as spool:
        for piece in pieces:
            try:
                spool.write(piece)
                spool.flush()
            except OSError as error:
                raise InputError(
                    f"{name} does not fit into the folder of temporary files ({error.strerror}); "
                    "name a larger one in the environment variable TMPDIR."
                ) from error
        if spool.tell() > HELD:
            return _Open(os.dup(spool.fileno()))
        spool.seek(0)
        return io.BytesIO(spool.read())


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"there is no file {name}; check the name.") from None
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror or error}.") from error
