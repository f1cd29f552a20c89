"""The journal of a screening, and what its entries amount to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from corank.data.records.records import Records
from corank.judging.sessions.journal import Journal, JournalEntry


@dataclass(frozen=True)
class ScreeningEntry(JournalEntry):
    """
    One line of a screening journal.

    action {"relevant", "not", "later", "undo", "note", "topic"}: what the judge did.
    id: the record; empty for a topic.
    by {"start", "model", "sample", "known"}: how the record was chosen; empty if that does not matter.
    text: text of a note or topic.
    """

    ACTIONS: ClassVar[tuple[str, ...]] = ("relevant", "not", "later", "undo", "note", "topic")

    id: str = ""
    by: str = ""
    text: str = ""


class ScreeningJournal(Journal[ScreeningEntry]):  # noqa: D101
    __doc__ = Journal.__doc__
    entry = ScreeningEntry
    folder = "answers"


class ScreeningAnswers:
    """
    The answers so far.

    records: the records that entries name.
    entries: entries of a journal.

    relevant: the answer to each record, by number, in the order of answering.
    chosen_by: how each of these records was chosen.
    later, notes, topic: postponed records, notes and the topic.
    """

    def __init__(self, records: Records, entries: Iterable[ScreeningEntry] = ()) -> None:
        self._records = records
        self.relevant: dict[int, bool] = {}
        self.chosen_by: dict[int, str] = {}
        self.later: dict[int, None] = {}
        self.notes: dict[int, str] = {}
        self.topic = ""
        self._history: list[int] = []
        for entry in entries:
            self.add(entry)

    def add(self, entry: ScreeningEntry) -> None:
        """Apply one entry."""
        if entry.action == "topic":
            self.topic = entry.text
            return
        if entry.id not in self._records.number:
            raise entry.unknown(entry.id, f"{len(self._records)} records")
        number = self._records.number[entry.id]
        if entry.action == "note":
            self.notes[number] = entry.text
        elif entry.action == "undo":
            self.relevant.pop(number, None)
            self.chosen_by.pop(number, None)
            self.later.pop(number, None)
            self._history = [one for one in self._history if one != number]
        elif entry.action == "later":
            self.later[number] = None
            self._history.append(number)
        else:
            self.later.pop(number, None)
            self.relevant[number] = entry.action == "relevant"
            self.chosen_by[number] = entry.by
            if entry.by != "known":
                self._history.append(number)

    @property
    def last(self) -> int | None:
        """The record that was answered or postponed last."""
        return self._history[-1] if self._history else None

    @property
    def n_found(self) -> int:
        """Number of relevant records."""
        return sum(self.relevant.values())

    @property
    def has_found(self) -> bool:
        """Whether a relevant record is known."""
        return any(self.relevant.values())

    @property
    def beforehand(self) -> list[int]:
        """Records whose answer was known before the screening."""
        return [number for number, way in self.chosen_by.items() if way == "known"]

    @property
    def n_known(self) -> int:
        """Number of relevant records among these."""
        return sum(self.relevant[number] for number in self.beforehand)

    @property
    def is_sampled(self) -> bool:
        """Whether random sampling has begun."""
        return "sample" in self.chosen_by.values()

    @property
    def before_sample(self) -> list[int]:
        """Records answered before random sampling began; all answered records if it has not."""
        numbers, ways = [*self.chosen_by], [*self.chosen_by.values()]
        return numbers[: ways.index("sample")] if self.is_sampled else numbers

    @property
    def ranked(self) -> list[int]:
        """Records read before any sample, in the order of reading; those known beforehand are left out."""
        return [number for number in self.before_sample if self.chosen_by[number] != "known"]

    @property
    def finds(self) -> list[int]:
        """Positions of the relevant records in `ranked`, from 1."""
        return [place for place, number in enumerate(self.ranked, 1) if self.relevant[number]]
