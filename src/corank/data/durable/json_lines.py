"""A file of JSON lines to which lines are appended durably."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from corank.data.durable.atomic import atomic_file, explain_write_errors
from corank.data.durable.regular import open_regular, read_regular
from corank.data.durable.scratch import lock
from corank.errors import InputError


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
