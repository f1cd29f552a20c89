"""
Journal: one judge's answers, a JSON line each, on the disk before anybody goes on.

A line is appended whole and flushed; what a kill or a full disk cut off is cleared when the journal is next opened,
and was never acknowledged. Nothing is ever rewritten: an answer is taken back by a line that says so. The file is
locked while it is open. What a line says is up to who asks: a kind of journal names the kind of its lines.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from corank.data.durable.atomic import atomic_file, naming_faults
from corank.data.durable.locks import lock
from corank.errors import InputError

_JUDGE = re.compile(r"[\w][\w .@-]{0,63}")


@dataclass(frozen=True)
class Entry:
    """
    One line of a journal; kinds of lines add further fields, all of them text, and list their actions.

    action: what was done.
    """

    ACTIONS: ClassVar[tuple[str, ...]] = ()

    action: str


L = TypeVar("L", bound=Entry)


class Journal(Generic[L]):
    """
    The answers of one judge, in a file that nobody else writes to meanwhile.

    path: the file; created, with its folder, where there is none.

    lines: what it holds.
    """

    kind: ClassVar[type[Any]]
    """What a line is."""
    folder: ClassVar[str]
    """What the name of the folder of all judges' journals ends in."""

    lines: list[L]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with naming_faults(path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                # two may begin at once: the second finds the file of the first, and waits for no lock below
                with suppress(InputError), atomic_file(self.path) as scratch:
                    scratch.touch()
            self._file = open(self.path, "rb+", buffering=0)  # noqa: SIM115
        try:
            lock(self._file.fileno(), wait=False)
            self.lines, self._end = self._parse(self._file.read(), self.path)
        except BlockingIOError:
            self.close()
            raise InputError(
                f"{path} is in use by another process; end that one, or judge under another name with judge=."
            ) from None
        except BaseException:
            self.close()
            raise

    def append(self, line: L) -> None:
        """
        Write a line; when this returns it is on the disk, and when it raises it is not in the file.

        Parameters
        ----------
        line : Entry
            What was done.
        """
        written = (json.dumps({key: value for key, value in asdict(line).items() if value}) + "\n").encode()
        with naming_faults(self.path):
            self._file.truncate(self._end)  # what a kill cut off
            self._file.seek(self._end)
            try:
                if self._file.write(written) < len(written):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(self._file.fileno())
            except BaseException:
                self._file.truncate(self._end)
                raise
        self._end += len(written)
        self.lines.append(line)

    def close(self) -> None:
        """Unlock the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def place(cls, file: str | os.PathLike[str], judge: str) -> Path:
        """
        Name the journal of a judge, in a folder beside the file that is judged.

        Parameters
        ----------
        file : path
            What is judged.
        judge : str
            A name.

        Returns
        -------
        Path
            Of the journal, whether there is one or not.
        """
        if not _JUDGE.fullmatch(judge):
            raise InputError(
                f"judge is {judge!r}; pass a name of letters, digits, blanks and . _ @ -, up to 64 of them."
            )
        return Path(f"{os.fspath(file)}.{cls.folder}") / f"{judge}.jsonl"

    @classmethod
    def read_all(cls, file: str | os.PathLike[str]) -> Iterator[tuple[str, list[L]]]:
        """
        Read the journals of all judges, in use or not.

        Parameters
        ----------
        file : path
            What is judged.

        Yields
        ------
        judge : str
            A judge's name.
        lines : list
            What the journal holds.
        """
        for path in sorted(Path(f"{os.fspath(file)}.{cls.folder}").glob("*.jsonl")):
            yield path.stem, cls._parse(path.read_bytes(), path)[0]

    @classmethod
    def _parse(cls, content: bytes, path: Path) -> tuple[list[L], int]:
        """Read whole lines, and say where they end; what stands behind the last newline was never acknowledged."""
        end = content.rfind(b"\n") + 1
        return [cls._line(line, at, path) for at, line in enumerate(content[:end].splitlines(), 1)], end

    @classmethod
    def _line(cls, text: bytes, at: int, path: Path) -> L:
        try:
            line: L = cls.kind(**json.loads(text))
            if line.action in cls.kind.ACTIONS and all(isinstance(value, str) for value in asdict(line).values()):
                return line
        except (ValueError, TypeError):
            pass
        raise InputError(f"{path}, line {at}: {text[:60]!r} is no answer; restore the file, or remove that line.")
