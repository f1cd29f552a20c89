"""
Who is reading what: holds of several judges on one collection, in a locked file of the folder of answers.

A hold lasts until its judge takes another one or ends. The journal of a judge is locked while the judge works, so that
the holds of a process that was killed are void: there are no times to wait for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from corank.data import explain_write_errors, lock, open_regular
from corank.errors import InputError

NAME = "holds"
"""Name of the file."""


class Holds:
    """
    The holds of all judges of a folder.

    folder: folder of the journals.
    judge: name of the judge, who holds things by `take`.
    """

    def __init__(self, folder: Path, judge: str) -> None:
        self.folder, self.judge = folder, judge
        self._file: IO[bytes] | None = None
        self._held: dict[str, list[str]] = {}

    @contextmanager
    def locked(self) -> Iterator[dict[str, list[str]]]:
        """
        Lock the file, and yield what other judges hold at present.

        Other judges wait until the block ends, so that two of them never take the same thing.
        """
        path = self.folder / NAME
        with explain_write_errors(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o666))
            file = open_regular(path, write=True)
        with file:
            if not lock(file.fileno(), wait=True):
                raise InputError(
                    f"{path} cannot be locked on this system, so that two judges might get the same record; leave "
                    "--share out."
                )
            self._held = _parse(file.read())
            others = {judge: held for judge, held in self._held.items() if judge != self.judge}
            alive = {judge: held for judge, held in others.items() if is_open(self.folder / f"{judge}.jsonl")}
            self._file = file
            try:
                yield alive
            finally:
                self._file = None

    def take(self, *things: str) -> None:
        """Hold these things instead of those before; only inside of `locked`."""
        assert self._file is not None
        self._held[self.judge] = list(things)
        content = json.dumps(self._held).encode() + b"\n"
        with explain_write_errors(self.folder / NAME):
            self._file.seek(0)
            self._file.write(content)  # a reader ignores what follows the first line
            self._file.truncate(len(content))


def is_open(path: Path) -> bool:
    """Return whether a process has a journal open, and thereby locked."""
    try:
        with path.open("rb") as file:
            lock(file.fileno(), wait=False)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _parse(content: bytes) -> dict[str, list[str]]:
    """Return the holds of each judge; none if the file is damaged."""
    try:
        held = json.loads(content.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return {}
    if not isinstance(held, dict):
        return {}
    return {
        judge: [one for one in things if isinstance(one, str)]
        for judge, things in held.items()
        if isinstance(things, list)
    }
