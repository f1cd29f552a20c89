"""
Journals: the answers of one judge in the project of what is judged, and those of the other judges beside them.

Entries are only appended: an answer is changed or withdrawn by another entry. Each kind of session has its own kind of
entry. The terminal and the pages share one database, by default ``corank.db`` next to the judged file. The project is
found by the content of the file, so a file may move with its database. A file that was changed continues the project of
the file of the same name if both have most of their items in common. Until version 0.2, `corank screen` and `corank
ask` kept each judge's entries in a file of JSON lines; such files are read here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from corank import __version__
from corank.data import read_regular
from corank.errors import InputError, reason
from corank_lab.database.backends import open_database
from corank_lab.database.connections import DatabaseError
from corank_lab.database.database import AnswerRow, ClaimableItem, Database, Project
from corank_lab.database.schema import utc_now

# surrogates without their other half, which have no UTF-8
_HALVES = re.compile("[\\ud800-\\udfff]")
STAMP = ("time", "judge", "version", "records")  # fields that every entry has, and that tell where an answer comes from
MAX_NUMBER = 1e300  # bound of numbers in an entry


@dataclass(frozen=True)
class JournalEntry:
    """One line of a journal. Subclasses add fields and list their actions."""

    ACTIONS: ClassVar[tuple[str, ...]] = ()
    LISTS: ClassVar[tuple[str, ...]] = ()  # fields that hold several texts
    NUMBERS: ClassVar[tuple[str, ...]] = ()  # fields that hold a number

    action: str  # what the judge did
    # time, judge, version, records: when it was written (UTC, ISO 8601), by whom, by which version of corank, and a
    # hash of the judged file. `Journal.extend` fills them in. Entries that differ in nothing else are equal
    time: str = field(default="", kw_only=True, compare=False)
    judge: str = field(default="", kw_only=True, compare=False)
    version: str = field(default="", kw_only=True, compare=False)
    records: str = field(default="", kw_only=True, compare=False)
    # file and line, for messages; empty if the entry was not read from a file. It is not written
    place: str = field(default="", kw_only=True, compare=False, repr=False)

    @classmethod
    @cache
    def names(cls) -> list[str]:
        names = [field.name for field in fields(cls) if field.name != "place"]
        return [name for name in names if name not in STAMP] + list(STAMP)

    def values(self) -> dict[str, Any]:
        """Return the fields of the line; empty ones are left out."""
        result = ((name, getattr(self, name)) for name in self.names())
        return {name: value for name, value in result if value not in ("", (), None)}

    def unknown(self, name: str, what: str) -> InputError:
        """Return the error for an entry about something that the judged file does not hold."""
        where = f"{self.place}: " if self.place else "the journal has "
        return InputError(
            f"{where}an answer about {name!r}, which is not one of the {what}; open the file that the journal was "
            "started with, or remove this line."
        )


E = TypeVar("E", bound=JournalEntry)


def entry_values(entry: JournalEntry) -> dict[str, Any]:
    """Return the keys and values of an entry's line; empty ones are left out, half characters are replaced."""
    return {name: _whole(value) for name, value in entry.values().items()}


def read_entry(kind: type[E], values: Mapping[str, Any], place: str) -> E:
    """Return the entry of stored values; raise if one is not allowed. Keys that the entry lacks are left out."""
    known = {name: value for name, value in values.items() if name in (*kind.names(), "action")}
    return _entry(kind, known, place, f"{place} is not an answer: {{}}; restore it from a copy, or remove it.")


def parse_lines(kind: type[E], content: bytes, path: Path) -> list[E]:
    """Return the entries of a file of JSON lines; a last line without its end is left out."""
    entries = []
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), 1):
        place = f"{path}, line {number}"
        sentence = f"{place}: {line[:60]!r} is not an answer: {{}}; restore the file from a copy, or remove this line."
        try:
            values = json.loads(line, object_pairs_hook=_without_repeats)
        except RecursionError:
            raise InputError(sentence.replace("{}", "it is nested too deeply")) from None
        except ValueError as error:
            raise InputError(sentence.replace("{}", f"it is not valid JSON ({reason(error)})")) from None
        entries.append(_entry(kind, values, place, sentence))
    return entries


def _entry(kind: type[E], values: Any, place: str, sentence: str) -> E:
    fault = entry_fault(values, kind)
    if fault is not None:
        raise InputError(sentence.replace("{}", fault))
    given: dict[str, Any] = {name: tuple(value) if name in kind.LISTS else value for name, value in values.items()}
    return kind(**given, place=place)


def journal_paths(folder: Path) -> list[Path]:
    """Return the files of JSON lines in a folder, by name; raise if a link leads out of its parent."""
    home = Path(os.path.realpath(folder.parent))
    result = sorted(folder.glob("*.jsonl"))
    for path in result:
        place = Path(os.path.realpath(path))
        if home not in place.parents:
            raise InputError(
                f"{path} leads to {place} by a link, outside of {home}; answers are kept inside it, so replace the "
                "link by the folder or file itself."
            )
    return result


def rows_of_file(
    kind: type[E], content: bytes, path: Path, completed: Callable[[E], tuple[str, JournalEntry]]
) -> list[AnswerRow]:
    """Return the rows of a file of JSON lines, whose client ids are the same whenever the file is added."""
    entries = parse_lines(kind, content, path)
    named = list(zip(_judges([entry.judge for entry in entries], path), entries, strict=True))
    order = list(dict.fromkeys(judge for judge, _ in named))
    digest = hashlib.sha256(content).hexdigest()[:12]
    rows: list[AnswerRow] = []
    for number, (judge, given) in enumerate(sorted(named, key=lambda pair: order.index(pair[0])), 1):
        item, entry = completed(given)
        rows.append((judge, item, entry_values(entry), f"journal-{digest}-{number}", entry.time))
    return rows


def split_journal(content: bytes, path: Path) -> dict[str, bytes]:
    """
    Return the complete lines of each judge in a file of JSON lines, which need not be valid.

    They are those of the judge whose name the file has. If the name is a number, or the lines name several judges, as
    in files that pages and `corank screen export` write, each line is of the judge that it names.
    """
    complete = content[: content.rfind(b"\n") + 1]
    lines = complete.splitlines()
    judges = _judges([_judge_in(line) for line in lines], path)
    if set(judges) <= {path.stem}:
        return {path.stem: complete}
    result: dict[str, list[bytes]] = {}
    for judge, line in zip(judges, lines, strict=True):
        result.setdefault(judge, []).append(line + b"\n")
    return {judge: b"".join(listed) for judge, listed in result.items()}


def _judges(named: Sequence[str], path: Path) -> list[str]:
    names = set(named) - {""}
    by_line = len(names) > 1 or (bool(names) and path.stem.isdecimal())
    return [(judge if by_line else "") or path.stem for judge in named]


def _judge_in(line: bytes) -> str:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    judge = values.get("judge") if isinstance(values, dict) else ""
    return judge if isinstance(judge, str) else ""


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
        return (
            f"action is {values.get('action')!r:.40}, expected one of {', '.join(entry.ACTIONS)}; another version of "
            "corank may have written it"
        )
    for key, value in values.items():
        if key in entry.NUMBERS:
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MAX_NUMBER:
                return f"{key} is {value!r:.40}, expected a number"
            continue
        texts = value if key in entry.LISTS and isinstance(value, list) else [value]
        if (key in entry.LISTS) != (texts is value) or not all(isinstance(text, str) for text in texts):
            return f"{key} is {value!r:.40}, expected {'a list of strings' if key in entry.LISTS else 'a string'}"
        if any(_HALVES.search(text) for text in texts):
            return f"{key} is {value!r:.40}, which holds half a character"
    return None


def _whole(value: Any) -> Any:
    # half characters come from terminals that are not UTF-8, and have no UTF-8 themselves
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return [_whole(item) for item in value] if isinstance(value, tuple) else value


NAME = "corank.db"  # name of the database next to a judged file
_JUDGE = re.compile(r"[\w][\w .@-]{0,63}")


class Journal(ABC, Generic[E]):
    """
    The answers of one judge, in a database.

    A session that is given a journal finds or makes the project of what it judges. Answers of the project by other
    judges, and those that the judge gives on a page at the same time, are read by `refresh`.

    database: The database; a file is created if it does not exist.
    judge: Name of the judge.

    entries: The entries of the judge so far.
    log: The judge and entry of every answer of the project, in the order of answering.
    project: The project; None until a session sets it.
    is_new: Whether the project was made now, or what is judged was changed.

    >>> import pathlib, tempfile
    >>> from corank_lab.screening import Records, Screening, ScreeningJournal
    >>> path = pathlib.Path(tempfile.mkdtemp(), "corank.db")
    >>> records = Records(["a", "b", "c"], ["tin mines", "tin price", "gold"], [""] * 3)
    >>> with ScreeningJournal(path) as journal:
    ...     Screening(records, known=["a"], journal=journal).answer(1, True)
    >>> with ScreeningJournal(path) as journal:
    ...     Screening(records, journal=journal).answers
    {0: True, 1: True}
    """

    entry: ClassVar[type[Any]]  # class of the entries
    kind: ClassVar[str]  # kind of the project
    folder: ClassVar[str]  # suffix of the folder in which version 0.2 kept the journals of a file

    def __init__(self, database: str | os.PathLike[str] | Database, judge: str = "me") -> None:
        if not _JUDGE.fullmatch(judge):
            raise InputError(
                f"judge is {judge!r}; pass a name of up to 64 letters, digits, blanks and the characters . _ @ -."
            )
        self.judge = judge
        self._has_claimed = False
        self._reset()
        if isinstance(database, Database):
            self.store, self._is_owner = database, False
            return
        if os.fspath(database).endswith(".jsonl"):
            raise InputError(
                f"{database} is a file of JSON lines, but answers are kept in a database; pass a name such as {NAME}, "
                "and add the lines with import_files."
            )
        self.store, self._is_owner = open_database(database), True

    def _reset(self) -> None:
        self.project: Project | None = None
        self.entries: list[E] = []
        self.log: list[tuple[str, E]] = []
        self.last = 0
        self.is_new = False

    @classmethod
    @abstractmethod
    def hash_of(cls, payload: Any) -> str:
        """Return a hash of what is judged in a project."""

    @abstractmethod
    def shares(self, payload: Any) -> bool:
        """Return whether most items of the smaller of a project and of what is judged now are in both."""

    @abstractmethod
    def completed(self, entry: E) -> tuple[str, E]:
        """Return the key of the item of an entry, and the entry as it is stored."""

    @property
    def id(self) -> str:
        assert self.project is not None, "a session sets the project"
        return self.project.id

    def _begin(
        self,
        wanted: str,
        payload: Callable[[], Any],
        file: str = "",
        files: dict[str, tuple[str, bytes]] | None = None,
        **settings: Any,
    ) -> None:
        """Use the project of what is judged, which is made at the first time."""
        if self.project is not None and self.project.settings.get("files") == wanted:
            self.refresh()
            return
        self._reset()
        result = self.find(wanted, file)
        if result is None:
            named = {**settings, "files": wanted, "file": file}
            # two processes that start at once make one project
            n_before = len(self.store.projects())
            id = hashlib.sha256(f"{self.kind} {wanted} {n_before}".encode()).hexdigest()
            name = file.split(".")[0] or "unnamed"
            result = self.store.add_project(self.kind, name, named, payload(), files=files, upload=id)
            self.is_new = True
        if result.settings.get("files") != wanted:
            known = {**result.settings, "files": wanted, "file": file}
            self.store.change_payload(result.id, payload(), files or {}, known)
            result, self.is_new = replace(result, settings=known), True
        self.project = result
        if file and result.settings.get("file") != file:  # of version 0.2, or renamed
            self.change_settings(files=wanted, file=file)
        self.refresh()

    def find(self, wanted: str, file: str) -> Project | None:
        projects = [item for item in self.store.projects() if item.kind == self.kind]
        for project in projects:
            known = project.settings.get("files")
            if known == wanted or (known is None and self.hash_of(self.store.payload(project.id)) == wanted):
                return replace(project, settings={**project.settings, "files": wanted})
        named = (item for item in projects if item.settings.get("file") == file)
        return next((item for item in named if self.shares(self.store.payload(item.id))), None)

    def append(self, entry: E) -> None:
        self.extend([entry])

    def extend(self, entries: Iterable[E]) -> None:
        """Append several entries at once, such as answers that were known beforehand: all of them or none."""
        now, rows = utc_now(), []
        for given in entries:
            item, entry = self.completed(given)
            entry = replace(entry, time=now, judge=self.judge, version=__version__)
            rows.append((self.judge, item, entry_values(entry), secrets.token_urlsafe(12), now))
        if rows:
            self.store.append_all(self.id, rows)
        self.refresh()

    def refresh(self) -> None:
        for answer in self.store.answers(self.id, after=self.last):
            entry = read_entry(self.entry, answer.entry, f"answer {answer.number}")
            if not entry.time:
                entry = replace(entry, time=answer.time)
            self.log.append((answer.judge, entry))
            if answer.judge == self.judge:
                self.entries.append(entry)
            self.last = answer.number

    def by_judge(self) -> dict[str, list[E]]:
        result: dict[str, list[E]] = {}
        for judge, entry in self.log:
            result.setdefault(judge, []).append(entry)
        return {judge: result[judge] for judge in sorted(result)}

    def import_files(self, paths: Sequence[Path]) -> int:
        """
        Add the answers of files of JSON lines, one file for each judge; a file that was added before changes nothing.
        """
        rows = [row for path in paths for row in rows_of_file(self.entry, read_regular(path), path, self.completed)]
        n_new = self.store.append_all(self.id, rows) if rows else 0
        self.refresh()
        return n_new

    def import_old(self, folder: Path) -> str:
        """Add the journals of version 0.2 in a folder, once; return what was done, empty if nothing was."""
        assert self.project is not None, "a session sets the project"
        paths = journal_paths(folder)
        if not paths or self.project.settings.get("has_journals"):
            return ""
        n_new = self.import_files(paths)
        self.change_settings(has_journals=True)
        if not n_new:
            return ""
        return f"{n_new} answers of {folder} were added to {self.store.address}; the files stay as they are."

    def change_settings(self, **settings: Any) -> None:
        old = self.store.project(self.id) or self.project
        assert old is not None
        new = replace(old, settings={**old.settings, **settings})
        self.store.change_project(new.id, name=new.name, settings=new.settings, is_archived=new.is_archived)
        self.project = new

    def claim(self, candidates: Sequence[ClaimableItem]) -> str | None:
        """Hold the first item that others neither hold nor have answered since the last `refresh`."""
        self._has_claimed = True
        return self.store.claim(self.id, self.judge, candidates, self.last)

    def held_by_others(self) -> set[str]:
        return {item for item, judge in self.store.holds(self.id) if judge != self.judge}

    def release(self) -> None:
        if self._has_claimed:
            self.store.release(self.id, self.judge)
            self._has_claimed = False

    def close(self) -> None:
        """Release what the judge holds, and close the database if the journal opened it."""
        with suppress(DatabaseError):
            if self.project is not None:
                self.release()
        if self._is_owner:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def project_logs(store: Database, project: str) -> dict[str, bytes]:
    """Return the answers of each judge of a project as JSON lines, which only grow."""
    lines: dict[str, list[str]] = {}
    for answer in store.answers(project):
        lines.setdefault(answer.judge, []).append(json.dumps({**answer.entry, "judge": answer.judge}) + "\n")
    return {judge: "".join(lines[judge]).encode() for judge in sorted(lines)}
