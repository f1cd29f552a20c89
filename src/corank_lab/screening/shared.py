"""Several judges read one ranking: every record is read once, and all answers are learnt from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank_lab.database.holds import Holds
from corank_lab.screening.answers import ScreeningAnswers, ScreeningEntry, ScreeningJournal
from corank_lab.screening.judges import combine
from corank_lab.screening.matching import UniqueRecords


@dataclass
class _Other:
    """
    What was read of another judge's journal.

    end: number of bytes read.
    inode: number of the file, which changes when it is replaced.
    """

    answers: ScreeningAnswers
    end: int = 0
    inode: int = 0
    entries: list[ScreeningEntry] = field(default_factory=list)


class SharedReading:
    """
    The answers and holds of the other judges of a collection.

    A record that another judge has answered, put aside or has on the screen is not shown, except for a share of the
    records that all judges read. A hash of the record draws them, so that all judges draw the same.

    Parameters
    ----------
    journal : ScreeningJournal
        The judge's own journal; the journals of the others are in the same folder.
    overlap : float
        Share of the records that every judge reads.

    Attributes
    ----------
    n_seen : int
        Number of entries of other judges that were read so far.
    """

    def __init__(self, journal: ScreeningJournal, *, overlap: float = 0.0) -> None:
        if not 0.0 <= overlap <= 1.0:
            raise InputError(f"overlap is {overlap!r}; pass a share of the records from 0 to 1, such as 0.1.")
        self._own = journal.path
        self._overlap = overlap
        self._holds = Holds(journal.path.parent, journal.path.stem)
        self._others: dict[Path, _Other] = {}
        self._is_stale = True
        self.n_seen = 0

    def begin(self, unique: UniqueRecords, answers: ScreeningAnswers) -> None:
        """
        Use the records and the own answers of a screening, which calls this once.

        Parameters
        ----------
        unique : UniqueRecords
            The records.
        answers : ScreeningAnswers
            The answers of this judge.
        """
        self._unique, self._answers = unique, answers
        self._taken, self._answered = np.zeros((2, len(unique.unique)), dtype=np.bool_)
        self._is_free = drawn_records(unique.unique.ids, self._overlap)
        self.refresh()
        self._blocked = self._taken

    @property
    def team(self) -> ScreeningAnswers:
        """The answers of all judges together."""
        if self._is_stale:
            judges = {path.stem: other.answers for path, other in self._others.items()}
            self._team = combine({**judges, self._own.stem: self._answers})
            self._is_stale = False
        return self._team

    def add(self, entry: ScreeningEntry) -> None:
        """
        Add an own answer.

        Parameters
        ----------
        entry : ScreeningEntry
            The answer.
        """
        self._add(entry)

    def n_blocked(self, is_open: NDArray[np.bool_]) -> int:
        """
        Count the records that are not answered, but held or put aside by other judges.

        Parameters
        ----------
        is_open : array of bool
            Which records this judge may still read.

        Returns
        -------
        int
            Their number.
        """
        return int(np.count_nonzero(is_open & self._blocked & ~self._is_free & ~self._answered))

    def refresh(self) -> None:
        """Read what other judges have written since."""
        for path in sorted(self._own.parent.glob("*.jsonl")):
            if path.stem == self._own.stem:
                continue
            for entry in self._read(path):
                number = self._others[path].answers.add(entry)
                self._add(entry)
                self.n_seen += 1
                if number is not None:
                    others = [other.answers for other in self._others.values()]
                    self._answered[number] = any(number in other.relevant for other in others)
                    self._taken[number] = any(number in other.current for other in others)

    @contextmanager
    def choosing(self) -> Iterator[NDArray[np.bool_]]:
        """Yield which records are answered or held by others, who wait until the block ends; `hold` one inside."""
        with self._holds.locked() as held:
            self.refresh()
            blocked = self._taken.copy()
            numbers = [self._unique.find(id) for ids in held.values() for id in ids]
            blocked[[number for number in numbers if number is not None]] = True
            self._blocked = blocked
            yield blocked & ~self._is_free

    def hold(self, *records: int) -> None:
        """
        Hold records instead of those before; only inside of `choosing`.

        Parameters
        ----------
        *records : int
            Numbers of the records.
        """
        self._holds.take(*(self._unique.unique.ids[record] for record in records))

    def _add(self, entry: ScreeningEntry) -> None:
        """Add an answer to those of the team, or have them made anew if it changes an earlier one."""
        if self._is_stale or entry.action in ("note", "distinct", "topic"):
            return
        number = self._unique.find(entry.id, entry.keys, entry.title)
        is_plain = entry.action in ("relevant", "not") and entry.by not in ("history", "adjudication")
        if is_plain and number is not None and number not in self._team.current:
            self._team.add(entry)
        elif entry.action != "later":
            self._is_stale = True

    def _read(self, path: Path) -> list[ScreeningEntry]:
        """Return the complete lines of a journal that were not read before."""
        with path.open("rb") as file:
            inode = path.stat().st_ino
            other = self._others.get(path)
            if other is None or other.inode != inode:  # a new judge, or a journal that was upgraded
                other = self._others[path] = _Other(ScreeningAnswers(self._unique), inode=inode)
                self._is_stale = True
            file.seek(other.end)
            content = file.read()
        complete = content[: content.rfind(b"\n") + 1]
        entries = ScreeningJournal.parse(complete.splitlines(), path, begin=len(other.entries) + 1)
        other.end += len(complete)
        other.entries += entries
        return entries


def drawn_records(ids: Sequence[str], share: float) -> NDArray[np.bool_]:
    """Return which records every judge reads."""
    if share <= 0.0:
        return np.zeros(len(ids), dtype=np.bool_)
    hashes = (hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).digest() for name in ids)
    values = np.frombuffer(b"".join(hashes), dtype=">u8").astype(np.float64) / 2.0**64
    return np.asarray(values < share)
