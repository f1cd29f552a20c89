"""
Journal: one judge's answers, a JSON line each, on the disk before anybody goes on.

A line is appended whole and flushed; what a kill or a full disk cut off is cleared when the journal is next opened,
and was never acknowledged. Nothing is ever rewritten: an answer is taken back by a line that says so. The file is
locked while it is open.
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
from typing import Any

from corank.data.atomic import atomic_file, naming_faults
from corank.data.locks import lock
from corank.errors import InputError

ACTIONS = ("relevant", "not", "later", "undo", "note", "topic")
_JUDGE = re.compile(r"[\w][\w .@-]{0,63}")


@dataclass(frozen=True)
class Line:
    """
    One line of a journal.

    action {"relevant", "not", "later", "undo", "note", "topic"}: what was done.
    id: the record; empty for a topic.
    by: how the record was chosen: "model", "start", "known", "sample"; empty where that does not matter.
    text: of a note or topic.
    """

    action: str
    id: str = ""
    by: str = ""
    text: str = ""


class Journal:
    """
    The answers of one judge, in a file that nobody else writes to meanwhile.

    Parameters
    ----------
    path : path
        The file; created, with its folder, where there is none.

    Attributes
    ----------
    path : Path
        The file.
    lines : list of Line
        What it holds.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "me.jsonl")
    >>> with Journal(path) as journal:
    ...     journal.append(Line("relevant", "W1"))
    >>> path.read_text()
    '{"action": "relevant", "id": "W1"}\\n'
    """

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
            self.lines, self._end = _parse(self._file.read(), self.path)
        except BlockingIOError:
            self.close()
            raise InputError(
                f"{path} is in use by another process; end that one, or judge under another name with judge=."
            ) from None
        except BaseException:
            self.close()
            raise

    def append(self, line: Line) -> None:
        """
        Write a line; when this returns it is on the disk, and when it raises it is not in the file.

        Parameters
        ----------
        line : Line
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

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def journal_folder(records: str | os.PathLike[str]) -> Path:
    """Name the folder of the journals of a file of records, beside it."""
    return Path(f"{os.fspath(records)}.answers")


def journal_path(records: str | os.PathLike[str], judge: str) -> Path:
    """
    Name the journal of a judge.

    records: the file of records.
    judge: a name.
    """
    if not _JUDGE.fullmatch(judge):
        raise InputError(f"judge is {judge!r}; pass a name of letters, digits, blanks and . _ @ -, up to 64 of them.")
    return journal_folder(records) / f"{judge}.jsonl"


def read_journals(records: str | os.PathLike[str]) -> Iterator[tuple[str, list[Line]]]:
    """
    Read the journals of all judges, in use or not.

    Yields: the judge's name, and the lines.
    """
    for path in sorted(journal_folder(records).glob("*.jsonl")):
        yield path.stem, _parse(path.read_bytes(), path)[0]


def _parse(content: bytes, path: Path) -> tuple[list[Line], int]:
    """Read whole lines, and say where they end; what stands behind the last newline was never acknowledged."""
    end = content.rfind(b"\n") + 1
    return [_line(line, at, path) for at, line in enumerate(content[:end].splitlines(), 1)], end


def _line(text: bytes, at: int, path: Path) -> Line:
    try:
        found: Any = json.loads(text)
        line = Line(**found)
        if line.action in ACTIONS and all(isinstance(value, str) for value in asdict(line).values()):
            return line
    except (ValueError, TypeError):
        pass
    raise InputError(f"{path}, line {at}: {text[:60]!r} is no answer; restore the file, or remove that line.")
