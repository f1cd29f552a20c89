"""
Journals: the answers of one judge, one JSON line each.

An answer is on the disk before the next question appears. Entries are only appended: an answer is changed or withdrawn
by another entry. Every line has its time, the judge, the version of corank and a hash of the judged file. A journal is
locked while it is open. Each kind of session has its own kind of entry.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from corank import __version__
from corank.data import JsonLines, complete_lines
from corank.errors import InputError, reason

# surrogates without their other half, which have no UTF-8
_HALVES = re.compile("[\\ud800-\\udfff]")
STAMP = ("time", "judge", "version", "records")
"""Fields that every line has, and that tell where an answer comes from."""
LARGE = 1e300
"""Bound of numbers in a line."""
_JUDGE = re.compile(r"[\w][\w .@-]{0,63}")


@dataclass(frozen=True)
class JournalEntry:
    """
    One line of a journal. Subclasses add fields and list their actions.

    action: what the judge did.
    time, judge, version, records: when it was written (UTC, ISO 8601), by whom, by which version of corank, and a hash
        of the judged file. `Journal.append` fills them in. Entries that differ in nothing else are equal.
    place: file and line, for messages; empty if the entry was not read from a file. It is not written.
    """

    ACTIONS: ClassVar[tuple[str, ...]] = ()
    LISTS: ClassVar[tuple[str, ...]] = ()
    """Fields that hold several texts."""
    NUMBERS: ClassVar[tuple[str, ...]] = ()
    """Fields that hold a number."""

    action: str
    time: str = field(default="", kw_only=True, compare=False)
    judge: str = field(default="", kw_only=True, compare=False)
    version: str = field(default="", kw_only=True, compare=False)
    records: str = field(default="", kw_only=True, compare=False)
    place: str = field(default="", kw_only=True, compare=False, repr=False)

    @classmethod
    @cache
    def names(cls) -> list[str]:
        """Return the keys of a line."""
        names = [one.name for one in fields(cls) if one.name != "place"]
        return [name for name in names if name not in STAMP] + list(STAMP)

    def values(self) -> dict[str, Any]:
        """Return the fields of the line; empty ones are left out."""
        found = ((name, getattr(self, name)) for name in self.names())
        return {name: value for name, value in found if value not in ("", (), None)}

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
    source : str
        Hash of the judged file, which new entries carry; empty until a session sets it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from corank_lab.screening.answers import ScreeningEntry, ScreeningJournal
    >>> path = pathlib.Path(tempfile.mkdtemp(), "me.jsonl")
    >>> with ScreeningJournal(path) as journal:
    ...     journal.append(ScreeningEntry("relevant", "W1"))
    >>> path.read_text()[:50]
    '{"action": "relevant", "id": "W1", "time": "20...'
    """

    entry: ClassVar[type[Any]]
    """Class of the entries."""
    folder: ClassVar[str]
    """Suffix of the folder that holds the journals of all judges."""

    entries: list[E]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.source = ""
        try:
            self._file = JsonLines(path)
        except BlockingIOError:
            raise InputError(
                f"{path} is in use by another process; end that process, or use another name with judge=."
            ) from None
        try:
            self.entries = self.parse(self._file.lines, self.path)
        except BaseException:
            self.close()
            raise

    def append(self, entry: E) -> None:
        """
        Append an entry. When this returns, it is on the disk; when it raises, the file is unchanged.

        Parameters
        ----------
        entry : JournalEntry
            The entry; empty fields are not written, and time, judge, version and the hash of the file are added.
        """
        self.extend([entry])

    def extend(self, entries: Iterable[E]) -> None:
        """
        Append several entries at once, such as answers that were known beforehand.

        Parameters
        ----------
        entries : iterable of JournalEntry
            The entries; a kill may leave some of the first ones.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        stamped = [_clean(self._stamped(entry, now)) for entry in entries]
        self._file.extend(entry.values() for entry in stamped)
        self.entries += stamped

    def _stamped(self, entry: E, now: str) -> E:
        return replace(entry, time=now, judge=self.path.stem, version=__version__, records=self.source)

    def rewrite(self, entries: Sequence[E]) -> Path:
        """
        Replace the lines by those of a newer format, and keep the old file with ``.old`` at the end of its name.

        Parameters
        ----------
        entries : sequence of JournalEntry
            The entries as they are to be written, one for each line.

        Returns
        -------
        Path
            The copy of the old file.
        """
        backup = self.path.with_name(f"{self.path.name}.old")
        try:
            self._file.replace((entry.values() for entry in entries), backup=backup)
        except BlockingIOError:
            raise InputError(f"{self.path} was opened by another process; end that process and try again.") from None
        self.entries = self.parse(self._file.lines, self.path)
        return backup

    def close(self) -> None:
        """Close and unlock the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def path_for(cls, file: str | os.PathLike[str], judge: str, folder: str | os.PathLike[str] | None = None) -> Path:
        """
        Return the path of a judge's journal.

        Parameters
        ----------
        file : path
            The judged file.
        judge : str
            Name of the judge.
        folder : path, optional
            Folder of the journals; by default one next to the judged file.

        Returns
        -------
        Path
            Path of the journal, which need not exist.
        """
        if not _JUDGE.fullmatch(judge):
            raise InputError(
                f"judge is {judge!r}; pass a name of up to 64 letters, digits, blanks and the characters . _ @ -."
            )
        return cls._inside(cls.folder_of(file, folder) / f"{judge}.jsonl", file, folder)

    @classmethod
    def read_all(
        cls, file: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None
    ) -> Iterator[tuple[str, list[E]]]:
        """
        Read the journals of all judges, open or not.

        Parameters
        ----------
        file : path
            The judged file.
        folder : path, optional
            Folder of the journals; by default one next to the judged file.

        Yields
        ------
        judge : str
            Name of a judge.
        entries : list
            The entries of the journal.
        """
        journals = {path: cls.parse(complete_lines(path), path) for path in cls.paths(file, folder)}
        for path, judge in cls.judges(journals).items():
            yield judge, journals[path]

    @classmethod
    def judges(cls, journals: Mapping[Path, Sequence[E]]) -> dict[Path, str]:
        """
        Return the judge of each journal: the name of its file, or for a numbered file the name in its lines.

        Journals that pages save are numbered, since people have names that are not names of files.

        Parameters
        ----------
        journals : mapping from path to sequence
            The entries of each journal.

        Returns
        -------
        dict from path to str
            The names.
        """
        judges = {path: path.stem for path in journals}
        for path, entries in journals.items():
            names = {entry.judge for entry in entries} - {""}
            if path.stem.isdecimal() and len(names) == 1 and not names & set(judges.values()):
                (judges[path],) = names
        return judges

    @classmethod
    def paths(cls, file: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> list[Path]:
        """
        Return the paths of the journals of all judges, in the order of their names.

        Parameters
        ----------
        file : path
            The judged file.
        folder : path, optional
            Folder of the journals; by default one next to the judged file.

        Returns
        -------
        list of Path
            The journals.
        """
        found = sorted(cls.folder_of(file, folder).glob("*.jsonl"))
        return [cls._inside(path, file, folder) for path in found]

    @classmethod
    def folder_of(cls, file: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> Path:
        """
        Return the folder of the journals of all judges.

        Parameters
        ----------
        file : path
            The judged file.
        folder : path, optional
            Another folder than the one next to the judged file.

        Returns
        -------
        Path
            The folder, which need not exist.
        """
        return Path(f"{os.fspath(file)}.{cls.folder}") if folder is None else Path(folder)

    @classmethod
    def _inside(cls, path: Path, file: str | os.PathLike[str], folder: str | os.PathLike[str] | None) -> Path:
        """Return a journal's path; raise if a link leads it out of the folder of the judged file."""
        around = Path(file).parent if folder is None else Path(folder)
        place, home = Path(os.path.realpath(path)), Path(os.path.realpath(around))
        if home not in place.parents:
            of = f"the folder of {file}" if folder is None else "the folder of the answers"
            raise InputError(
                f"{path} leads to {place} by a link, outside of {home}, {of}; answers are kept inside it, so replace "
                "the link by the folder or file itself."
            )
        return path

    @classmethod
    def parse(cls, lines: Sequence[bytes], path: Path, begin: int = 1) -> list[E]:
        """
        Parse lines of a journal.

        Parameters
        ----------
        lines : sequence of bytes
            The lines, without their ends.
        path : path
            The file, for messages.
        begin : int
            Number of the first line.

        Returns
        -------
        list of JournalEntry
            One for each line.
        """
        return [cls._entry(line, f"{path}, line {number}") for number, line in enumerate(lines, begin)]

    @classmethod
    def _entry(cls, line: bytes, where: str) -> E:
        try:
            values = json.loads(line, object_pairs_hook=_without_repeats)
            fault = entry_fault(values, cls.entry)
        except RecursionError:
            fault = "it is nested too deeply"
        except ValueError as error:
            fault = f"it is not valid JSON ({reason(error)})"
        if fault is not None:
            raise InputError(
                f"{where}: {line[:60]!r} is not an answer: {fault}; restore the file from a copy, or remove this line."
            )
        lists = {name: tuple(values[name]) for name in cls.entry.LISTS if name in values}
        entry: E = cls.entry(**{**values, **lists}, place=where)
        return entry


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError(f"the keys {', '.join(key for key, _ in pairs)} are not distinct")
    return values


def entry_fault(values: Any, entry: type[JournalEntry]) -> str | None:
    """Describe why JSON is not an entry; None if it is."""
    if not isinstance(values, dict):
        return "it is not a JSON object"
    if unknown := [key for key in values if key not in entry.names()]:
        return f"the key {unknown[0]!r} is unknown, expected {', '.join(entry.names())}"
    if values.get("action") not in entry.ACTIONS:
        return f"action is {values.get('action')!r:.40}, expected one of {', '.join(entry.ACTIONS)}"
    for key, value in values.items():
        if key in entry.NUMBERS:
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGE:
                return f"{key} is {value!r:.40}, expected a number"
            continue
        if key in entry.LISTS and not isinstance(value, list):
            return f"{key} is {value!r:.40}, expected a list of strings"
        for text in value if key in entry.LISTS else [value]:
            if not isinstance(text, str):
                return f"{key} is {value!r:.40}, expected {'a list of strings' if key in entry.LISTS else 'a string'}"
            if _HALVES.search(text):
                return f"{key} is {value!r:.40}, which holds half a character"
    return None


def _clean(entry: E) -> E:
    """Replace half characters, which come from terminals that are not UTF-8 and cannot be exported."""
    texts = {name: value for name, value in entry.values().items() if name not in entry.NUMBERS}
    changed: dict[str, Any] = {
        name: tuple(map(_whole, value)) if name in entry.LISTS else _whole(value) for name, value in texts.items()
    }
    return replace(entry, **changed)


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
