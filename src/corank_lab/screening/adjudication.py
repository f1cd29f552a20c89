"""Adjudication: records that one judge includes and another excludes are settled by a third answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from corank.errors import InputError
from corank_lab.screening.answers import ScreeningAnswers, ScreeningEntry
from corank_lab.screening.journal import ScreeningJournal
from corank_lab.screening.judges import find_conflicts
from corank_lab.screening.matching import UniqueRecords


class JudgeVerdict(NamedTuple):
    """
    What a judge answered.

    judge: Name of the judge.
    entry: The answer, with its reason and tags.
    note: Note of the judge; may be empty.
    """

    judge: str
    entry: ScreeningEntry
    note: str


class Adjudication:
    """
    Settle the conflicts of judges, one record at a time.

    unique: The records.
    journal: Journal of the adjudicator, which has the answers of all judges.

    records: The records that are judged.
    conflicts: Records in conflict, settled or not.
    """

    def __init__(self, unique: UniqueRecords, journal: ScreeningJournal) -> None:
        self.unique, self.records = unique, unique.unique
        self._journal = journal
        journal.begin(unique)
        self._judges = {judge: ScreeningAnswers(unique, entries) for judge, entries in journal.by_judge().items()}
        self._answers = self._judges.setdefault(journal.judge, ScreeningAnswers(unique))
        self.conflicts = find_conflicts(self._judges, settled=True)
        self._aside: dict[int, None] = {}

    @property
    def left(self) -> list[int]:
        """Records whose conflict is not settled, those put aside last."""
        settled = {number for answers in self._judges.values() for number in answers.adjudicated}
        left = [number for number in self.conflicts if number not in settled]
        return sorted(left, key=lambda number: number in self._aside)

    def next(self) -> int | None:
        """Return the next record in conflict."""
        return next(iter(self.left), None)

    def verdicts(self, record: int) -> list[JudgeVerdict]:
        """Return what the judges answered."""
        return [
            JudgeVerdict(judge, answers.current[record], answers.notes.get(record, ""))
            for judge, answers in self._judges.items()
            if record in answers.relevant and answers.chosen_by[record] != "adjudication"
        ]

    def answer(self, record: int, relevant: bool, *, reason: str = "", tags: Iterable[str] = ()) -> None:
        """Settle a conflict; the answer is on the disk when this returns."""
        if record not in self.conflicts:
            raise InputError(f"record {record} is not in conflict; settle one of those that next() returns.")
        action = "relevant" if relevant else "not"
        self._record(ScreeningEntry(action, self.records.ids[record], "adjudication", reason=reason, tags=tuple(tags)))

    change = answer

    def later(self, record: int, *, tags: Iterable[str] = ()) -> None:
        """Put a record aside until no other conflict is left, in this session."""
        self._aside.pop(record, None)
        self._aside[record] = None

    def note(self, record: int, text: str) -> None:
        """Attach a note to a record."""
        self._record(ScreeningEntry("note", self.records.ids[record], text=text))

    def undo(self) -> int | None:
        """Withdraw the adjudicator's last answer."""
        last = self._answers.last_adjudicated
        if last is not None:
            self._record(ScreeningEntry("undo", self.records.ids[last], "adjudication"))
        return last

    def history(self, search: str = "") -> list[tuple[int, ScreeningEntry]]:
        """Return the settled conflicts, the last one first."""
        return self._answers.search(search, self._answers.adjudicated)

    @property
    def entries(self) -> Mapping[int, ScreeningEntry]:
        """The adjudicator's answers by record number."""
        return self._answers.adjudicated

    @property
    def notes(self) -> Mapping[int, str]:
        """The adjudicator's notes by record number."""
        return self._answers.notes

    @property
    def tags(self) -> Mapping[int, tuple[str, ...]]:
        """The tags that the adjudicator last gave to each record; those of a withdrawn answer stay."""
        return self._answers.tags

    def _record(self, entry: ScreeningEntry) -> None:
        n_before = len(self._journal.entries)
        self._journal.append(entry)
        for added in self._journal.entries[n_before:]:
            self._answers.add(added)
