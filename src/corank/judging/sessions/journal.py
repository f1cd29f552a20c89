"""
Journals: the answers of one judge, one JSON line each.

An answer is on the disk before the next question appears. Entries are only appended: an answer is withdrawn by another
entry. A journal is locked while it is open. Each kind of session has its own kind of entry.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from corank.data.durable.json_lines import JsonLines, complete_lines
from corank.errors import InputError, reason

# surrogates without their other half, which have no UTF-8
_HALVES = re.compile("[\\ud800-\\udfff]")
_JUDGE = re.compile(r"[\w][\w .@-]{0,63}")


@dataclass(frozen=True)
class JournalEntry:
    """
    One line of a journal. Subclasses add text fields and list their actions.

    action: what the judge did.
    place: file and line, for messages; empty if the entry was not read from a file. It is not written.
    """

    ACTIONS: ClassVar[tuple[str, ...]] = ()

    action: str
    place: str = field(default="", kw_only=True, compare=False, repr=False)

    @classmethod
    def names(cls) -> list[str]:
        """Return the keys of a line."""
        return [one.name for one in fields(cls) if one.name != "place"]

    def unknown(self, name: str, what: str) -> InputError:
        """
        Return the error for an entry about something that the judged file does not hold.

        name: the id or name in the entry.
        what: what the file holds, with their number.
        """
        where = f"{self.place}: " if self.place else "the journal has "
        return InputError(
            f"{where}an answer about {name!r}, which is not one of the {what}; open the file that the journal was "
            "started with, or remove this line."
        )


E = TypeVar("E", bound=JournalEntry)


class Journal(Generic[E]):
    """
    The answers of one judge, one JSON line each, in a file that is locked while it is open.

    Parameters
    ----------
    path : path
        The file; it is created, with its folder, if it does not exist.

    Attributes
    ----------
    path : Path
        The file.
    entries : list of JournalEntry
        The entries so far.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from corank.judging.screening.answers import ScreeningEntry, ScreeningJournal
    >>> path = pathlib.Path(tempfile.mkdtemp(), "me.jsonl")
    >>> with ScreeningJournal(path) as journal:
    ...     journal.append(ScreeningEntry("relevant", "W1"))
    >>> path.read_text()
    '{"action": "relevant", "id": "W1"}\\n'
    """

    entry: ClassVar[type[Any]]
    """Class of the entries."""
    folder: ClassVar[str]
    """Suffix of the folder that holds the journals of all judges."""

    entries: list[E]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._file = JsonLines(path)
        except BlockingIOError:
            raise InputError(
                f"{path} is in use by another process; end that process, or use another name with judge=."
            ) from None
        try:
            self.entries = self._parse(self._file.lines, self.path)
        except BaseException:
            self.close()
            raise

    def append(self, entry: E) -> None:
        """
        Append an entry. When this returns, it is on the disk; when it raises, the file is unchanged.

        Parameters
        ----------
        entry : JournalEntry
            The entry; empty fields are not written.
        """
        # half characters, from a terminal that is not UTF-8, cannot be exported
        values = {key: getattr(entry, key).encode("utf-8", "replace").decode() for key in entry.names()}
        self._file.append({key: value for key, value in values.items() if value})
        self.entries.append(replace(entry, **values))

    def close(self) -> None:
        """Close and unlock the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def path_for(cls, file: str | os.PathLike[str], judge: str) -> Path:
        """
        Return the path of a judge's journal, in a folder next to the judged file.

        Parameters
        ----------
        file : path
            The judged file.
        judge : str
            Name of the judge.

        Returns
        -------
        Path
            Path of the journal, which need not exist.
        """
        if not _JUDGE.fullmatch(judge):
            raise InputError(
                f"judge is {judge!r}; pass a name of up to 64 letters, digits, blanks and the characters . _ @ -."
            )
        return cls._inside(Path(f"{os.fspath(file)}.{cls.folder}") / f"{judge}.jsonl", file)

    @classmethod
    def read_all(cls, file: str | os.PathLike[str]) -> Iterator[tuple[str, list[E]]]:
        """
        Read the journals of all judges, open or not.

        Parameters
        ----------
        file : path
            The judged file.

        Yields
        ------
        judge : str
            Name of a judge.
        entries : list
            The entries of the journal.
        """
        for path in cls.paths(file):
            yield path.stem, cls._parse(complete_lines(path), path)

    @classmethod
    def paths(cls, file: str | os.PathLike[str]) -> list[Path]:
        """
        Return the paths of the journals of all judges, in the order of their names.

        Parameters
        ----------
        file : path
            The judged file.

        Returns
        -------
        list of Path
            The journals.
        """
        found = sorted(Path(f"{os.fspath(file)}.{cls.folder}").glob("*.jsonl"))
        return [cls._inside(path, file) for path in found]

    @classmethod
    def _inside(cls, path: Path, file: str | os.PathLike[str]) -> Path:
        """Return a journal's path; raise if a link leads it out of the folder of the judged file."""
        place, home = Path(os.path.realpath(path)), Path(os.path.realpath(Path(file).parent))
        if home not in place.parents:
            raise InputError(
                f"{path} leads to {place} by a link, outside of {home}, the folder of {file}; answers are kept inside "
                "it, so replace the link by the folder or file itself."
            )
        return path

    @classmethod
    def _parse(cls, lines: list[bytes], path: Path) -> list[E]:
        return [cls._entry(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]

    @classmethod
    def _entry(cls, line: bytes, where: str) -> E:
        try:
            values = json.loads(line, object_pairs_hook=_without_repeats)
            fault = _fault(values, cls.entry)
        except RecursionError:
            fault = "it is nested too deeply"
        except ValueError as error:
            fault = f"it is not valid JSON ({reason(error)})"
        if fault is not None:
            raise InputError(
                f"{where}: {line[:60]!r} is not an answer: {fault}; restore the file from a copy, or remove this line."
            )
        entry: E = cls.entry(**values, place=where)
        return entry


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError(f"the keys {', '.join(key for key, _ in pairs)} are not distinct")
    return values


def _fault(values: Any, entry: type[JournalEntry]) -> str | None:
    """Describe why JSON is not an entry; None if it is."""
    if not isinstance(values, dict):
        return "it is not a JSON object"
    if unknown := [key for key in values if key not in entry.names()]:
        return f"the key {unknown[0]!r} is unknown, expected {', '.join(entry.names())}"
    if values.get("action") not in entry.ACTIONS:
        return f"action is {values.get('action')!r:.40}, expected one of {', '.join(entry.ACTIONS)}"
    for key, value in values.items():
        if not isinstance(value, str):
            return f"{key} is {value!r:.40}, expected a string"
        if _HALVES.search(value):
            return f"{key} is {value!r:.40}, which holds half a character"
    return None
