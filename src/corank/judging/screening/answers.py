"""Answers: what the lines of a journal amount to, one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from corank.data.records.records import Records
from corank.errors import InputError
from corank.judging.screening.journal import Line


class Answers:
    """
    What was answered so far.

    records: what the lines speak of.
    lines: those of a journal.

    relevant: the answer for each record, by number, in the order of answering; `by` says how each was chosen.
    later, notes, topic: what was put off, noted, and looked for.
    """

    def __init__(self, records: Records, lines: Iterable[Line] = ()) -> None:
        self._records = records
        self.relevant: dict[int, bool] = {}
        self.by: dict[int, str] = {}
        self.later: dict[int, None] = {}
        self.notes: dict[int, str] = {}
        self.topic = ""
        self._done: list[int] = []
        for line in lines:
            self.take(line)

    def take(self, line: Line) -> None:
        """Take one line."""
        if line.action == "topic":
            self.topic = line.text
            return
        if line.id not in self._records.number:
            raise InputError(
                f"the journal speaks of a record {line.id!r}, which is not among the {len(self._records)} records; "
                "open the file that it was begun with."
            )
        number = self._records.number[line.id]
        if line.action == "note":
            self.notes[number] = line.text
        elif line.action == "undo":
            self.relevant.pop(number, None)
            self.by.pop(number, None)
            self.later.pop(number, None)
            self._done = [one for one in self._done if one != number]
        elif line.action == "later":
            self.later[number] = None
            self._done.append(number)
        else:
            self.later.pop(number, None)
            self.relevant[number] = line.action == "relevant"
            self.by[number] = line.by
            if line.by != "known":
                self._done.append(number)

    @property
    def last(self) -> int | None:
        """The record that was answered or put off last."""
        return self._done[-1] if self._done else None

    @property
    def n_found(self) -> int:
        """Number of relevant records."""
        return sum(self.relevant.values())

    @property
    def has_found(self) -> bool:
        """Whether one is known."""
        return any(self.relevant.values())

    @property
    def beforehand(self) -> list[int]:
        """Records that were known before reading began."""
        return [number for number, by in self.by.items() if by == "known"]

    @property
    def n_known(self) -> int:
        """Number of relevant ones among these."""
        return sum(self.relevant[number] for number in self.beforehand)

    @property
    def is_sampled(self) -> bool:
        """Whether random sampling began."""
        return "sample" in self.by.values()

    @property
    def before_sample(self) -> list[int]:
        """Records that were answered when random sampling began; all of them where it did not."""
        numbers, ways = [*self.by], [*self.by.values()]
        return numbers[: ways.index("sample")] if self.is_sampled else numbers

    @property
    def ordered(self) -> list[int]:
        """Records that were read in the order of the ranking, or before there was one, up to any sample."""
        return [number for number in self.before_sample if self.by[number] != "known"]

    @property
    def finds(self) -> list[int]:
        """Places of relevant records among these, from 1."""
        return [place for place, number in enumerate(self.ordered, 1) if self.relevant[number]]
