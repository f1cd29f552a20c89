"""Entries of a screening, what they amount to, and the answers of several judges together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from corank_lab.database.journal import JournalEntry
from corank_lab.records.records import Records
from corank_lab.screening.matching import UniqueRecords

TITLE = 120
"""Number of letters of a title in a journal."""
LABEL = "label of the file"
"""Text of known answers that are labels of the records."""
BEFOREHAND = ("known", "search", "richness")
"""Ways of choosing a record that the ranking has no part in; its answer counts as known before the reading."""
UNRANKED = (*BEFOREHAND, "adjudication")
"""Ways of choosing a record other than by reading in the order of the ranking."""


@dataclass(frozen=True)
class ScreeningEntry(JournalEntry):
    """
    One entry of a screening journal.

    action {"relevant", "not", "later", "duplicate", "distinct", "undo", "note", "topic"}: what the judge did.
    """

    ACTIONS: ClassVar[tuple[str, ...]] = (
        "relevant", "not", "later", "duplicate", "distinct", "undo", "note", "topic",
    )  # fmt: skip
    LISTS: ClassVar[tuple[str, ...]] = ("keys", "tags")
    NUMBERS: ClassVar[tuple[str, ...]] = ("rank", "score")

    id: str = ""  # the record; empty for a topic
    # {"start", "model", "sample", "known", "search", "richness", "history", "adjudication"}: why the record was shown.
    # "richness" is a random sample before the reading, "search"
    # marks a record that the judge looked for, "history" a change of an earlier answer, "adjudication" an answer that
    # settles a conflict of judges
    by: str = ""
    text: str = ""  # text of a note or topic
    # keys, title: keys of the record and its duplicates, and the begin of its title, by which it is found again
    keys: tuple[str, ...] = ()
    title: str = ""
    reason: str = ""  # why the record is excluded
    tags: tuple[str, ...] = ()  # words of the judge
    of: str = ""  # id of the record that this one is, or is not, a duplicate of
    # rank, score: rank among the unread records and score of the model when the record was chosen
    rank: int | None = None
    score: float | None = None

    def about(self, unique: UniqueRecords, number: int) -> ScreeningEntry:
        return replace(self, keys=unique.keys(number), title=unique.unique.titles[number][:TITLE])


class ScreeningAnswers:
    """
    The answers of one judge so far, by record number.

    records: The records that entries name; `UniqueRecords` if duplicates are judged as one.
    entries: Entries of a journal.
    """

    def __init__(self, records: Records | UniqueRecords, entries: Iterable[ScreeningEntry] = ()) -> None:
        self.unique = records if isinstance(records, UniqueRecords) else UniqueRecords(records)
        self.current: dict[int, ScreeningEntry] = {}  # the entry that holds for each answered or postponed record
        # the answers in their order; a duplicate of another record is no further find, so it is not relevant
        self.relevant: dict[int, bool] = {}
        self.chosen_by: dict[int, str] = {}  # how each of these records was chosen
        self.answered_at: dict[int, str] = {}  # time of the first answer
        self.later: dict[int, None] = {}  # postponed records
        self.duplicates: dict[int, str] = {}  # ids of the records that records are duplicates of
        self.notes: dict[int, str] = {}
        self.tags: dict[int, tuple[str, ...]] = {}  # those of a withdrawn answer stay, for the next one
        self.adjudicated: dict[int, ScreeningEntry] = {}  # entries that settle conflicts of judges
        self.unmatched: list[ScreeningEntry] = []  # entries about records that are not among these
        self.topic = ""
        self.n_found = self.n_known = self.n_sampled = 0  # numbers of relevant, known relevant, and sampled records
        self._beforehand: dict[int, None] = {}
        self._history: list[tuple[int, ScreeningEntry | None]] = []
        self._ranked: list[int] | None = []
        self._finds: list[int] | None = []
        for entry in entries:
            self.add(entry)

    def add(self, entry: ScreeningEntry) -> int | None:
        if entry.action == "topic":
            self.topic = entry.text
            return None
        if entry.action == "distinct":  # `unique_records` reads it
            return None
        number = self.unique.find(entry.id, entry.keys, entry.title)
        if number is None:
            self.unmatched.append(entry)
        elif entry.action == "note":
            self.notes[number] = entry.text
        elif entry.action == "undo":
            self._undo(number, entry)
        elif entry.by == "adjudication":
            self.adjudicated.pop(number, None)  # so that the last one is the last key
            self.adjudicated[number] = entry
            self.tags[number] = entry.tags
            if number not in self.relevant:
                self._set(number, entry)
        else:
            if entry.by != "known":
                self._history.append((number, self.current.get(number)))
            self._set(number, entry)
        return number

    def _undo(self, number: int, entry: ScreeningEntry) -> None:
        """Withdraw the last answer to a record; the one before it holds again."""
        if entry.by == "adjudication":
            self.adjudicated.pop(number, None)
            if self.chosen_by.get(number) == "adjudication":
                self._set(number, None)
        elif entry.by == "known":
            self._set(number, None)
        else:
            self._set(number, self._forget(number))

    def _forget(self, number: int) -> ScreeningEntry | None:
        for place in range(len(self._history) - 1, -1, -1):
            if self._history[place][0] == number:
                return self._history.pop(place)[1]
        return None

    def _set(self, number: int, entry: ScreeningEntry | None) -> None:
        """Let an entry hold for a record; None withdraws every answer."""
        before, way = self.current.get(number), self.chosen_by.get(number, "")
        was_answered = number in self.relevant
        if entry is not None:
            self.tags[number] = entry.tags
        self.n_found -= self.relevant.get(number, False)
        self.n_known -= number in self._beforehand and self.relevant.get(number, False)
        self.later.pop(number, None)
        self.duplicates.pop(number, None)
        if entry is None or entry.action == "later":
            self.relevant.pop(number, None)
            self.answered_at.pop(number, None)
            self.n_sampled -= self.chosen_by.pop(number, "") == "sample"
            self._beforehand.pop(number, None)
            self.current.pop(number, None)
            if was_answered:
                self._ranked = self._finds = None
            if entry is not None:
                self.later[number] = None
                self.current[number] = entry
            return
        if not was_answered:
            way = entry.by if entry.by != "history" or before is None else before.by
            self.chosen_by[number] = way
            self.answered_at[number] = entry.time
            self.n_sampled += way == "sample"
            if way in BEFOREHAND:
                self._beforehand[number] = None
        self.current[number] = entry
        is_relevant = entry.action == "relevant"
        if entry.action == "duplicate":
            self.duplicates[number] = entry.of
        self.relevant[number] = is_relevant
        self.n_found += is_relevant
        self.n_known += is_relevant and number in self._beforehand
        self._extend(number, way, is_relevant, was_answered)

    def _extend(self, number: int, way: str, is_relevant: bool, was_answered: bool) -> None:
        """Extend the order of reading by a record, so that it need not be made anew after every answer."""
        if was_answered:
            self._finds = None
        elif way not in UNRANKED and not self.n_sampled and self._ranked is not None:
            self._ranked.append(number)
            if is_relevant and self._finds is not None:
                self._finds.append(len(self._ranked))

    def search(
        self, text: str = "", among: Mapping[int, ScreeningEntry] | None = None
    ) -> list[tuple[int, ScreeningEntry]]:
        """Return records with all words of a text in their title, authors, reason, tags or note, the last first."""
        words, entries = text.casefold().split(), self.current if among is None else among
        result = [
            (number, entry)
            for number, entry in entries.items()
            if not words or all(word in self._text(number, entry) for word in words)
        ]
        return sorted(result, key=lambda item: item[1].time)[::-1]

    def _text(self, number: int, entry: ScreeningEntry) -> str:
        records, note = self.unique.unique, self.notes.get(number, "")
        parts = (records.titles[number], records.ids[number], *records.details[number].authors)
        return " ".join((*parts, entry.action, entry.reason, *entry.tags, note)).casefold()

    @property
    def last(self) -> int | None:
        return self._history[-1][0] if self._history else None

    @property
    def last_adjudicated(self) -> int | None:
        return next(reversed(self.adjudicated), None)

    @property
    def judged(self) -> tuple[list[int], list[bool]]:
        """The judged records and the answers to them; duplicates of other records are left out."""
        judged = self.relevant
        if self.duplicates:
            judged = {number: relevant for number, relevant in judged.items() if number not in self.duplicates}
        return [*judged], [*judged.values()]

    @property
    def has_found(self) -> bool:
        return self.n_found > 0

    @property
    def beforehand(self) -> list[int]:
        """Records whose answer was known before the screening, and those that a judge looked for."""
        return list(self._beforehand)

    @property
    def is_sampled(self) -> bool:
        return self.n_sampled > 0

    @property
    def before_sample(self) -> list[int]:
        """Records answered before random sampling began; all answered records if it has not."""
        numbers, ways = [*self.chosen_by], [*self.chosen_by.values()]
        return numbers[: ways.index("sample")] if self.is_sampled else numbers

    @property
    def ranked(self) -> list[int]:
        """Records read before any sample, in the order of reading; those known beforehand are left out."""
        if self._ranked is None:
            self._ranked = [number for number in self.before_sample if self.chosen_by[number] not in UNRANKED]
            self._finds = None
        return self._ranked

    @property
    def finds(self) -> list[int]:
        """Positions of the relevant records in `ranked`, from 1."""
        ranked = self.ranked
        if self._finds is None:
            self._finds = [place for place, number in enumerate(ranked, 1) if self.relevant[number]]
        return self._finds


def prior_entries(
    answers: ScreeningAnswers, known: Iterable[str], rejected: Iterable[str], *, labels: bool
) -> list[ScreeningEntry]:
    """Return entries for what is known before a screening and not answered yet."""
    unique = answers.unique
    ids, values = unique.unique.ids, unique.unique.labels
    start: dict[int, ScreeningEntry] = {}
    if labels:
        for number in np.flatnonzero(~np.isnan(values)).tolist():
            start[number] = ScreeningEntry("relevant" if values[number] else "not", ids[number], "known", LABEL)
    for action, listed in (("relevant", known), ("not", rejected)):
        for given in unique.everything.numbers_of(listed):
            number = unique.place(given)
            start[number] = ScreeningEntry(action, ids[number], "known")
    entries = [entry for number, entry in start.items() if number not in answers.current]
    if not labels:
        old = [number for number in answers.beforehand if answers.current[number].text == LABEL]
        entries += [ScreeningEntry("undo", ids[number], "known") for number in old if number not in start]
    return entries


Judges = Mapping[str, ScreeningAnswers]
"""The answers of each judge, by name."""


def find_conflicts(judges: Judges, *, settled: bool = False) -> list[int]:
    """Return the records that one judge includes and another excludes."""
    result: dict[int, set[bool]] = {}
    for answers in judges.values():
        for number, relevant in independent(answers).items():
            result.setdefault(number, set()).add(relevant)
    done = set() if settled else {number for answers in judges.values() for number in answers.adjudicated}
    return sorted(number for number, verdicts in result.items() if len(verdicts) > 1 and number not in done)


def independent(answers: ScreeningAnswers) -> dict[int, bool]:
    """Return the answers that a judge gave by reading; records found to be duplicates are left out."""
    return {
        number: relevant
        for number, relevant in answers.relevant.items()
        if answers.chosen_by[number] not in ("known", "adjudication") and number not in answers.duplicates
    }


def combine(judges: Judges) -> ScreeningAnswers:
    """Put the answers of all judges together, in the order of their times."""
    first: dict[int, tuple[str, str, ScreeningEntry]] = {}
    verdicts: dict[int, set[str]] = {}
    settled: dict[int, ScreeningEntry] = {}
    for judge, answers in judges.items():
        time = ""
        for number in answers.relevant:
            entry = answers.current[number]
            # a later change does not move the record in the order of reading; lines of earlier versions have no time
            time = answers.answered_at[number] or time
            result = (time, judge, replace(entry, by=answers.chosen_by[number]))
            first[number] = min(first.get(number, result), result, key=lambda element: element[:2])
            if entry.action != "duplicate":
                verdicts.setdefault(number, set()).add(entry.action)
        for number, entry in answers.adjudicated.items():
            settled[number] = max(settled.get(number, entry), entry, key=lambda latest: latest.time)
    together = ScreeningAnswers(next(iter(judges.values())).unique)
    for number, (_, _, entry) in sorted(first.items(), key=lambda item: item[1][:2]):
        if number in settled:
            final = settled[number]
            entry = replace(entry, action=final.action, reason=final.reason, tags=final.tags)
        elif len(verdicts.get(number, ())) > 1:
            entry = replace(entry, action="relevant", reason="")
        elif verdicts.get(number) and entry.action == "duplicate":
            entry = replace(entry, action=next(iter(verdicts[number])))
        together.add(entry)
    for answers in judges.values():
        together.topic = together.topic or answers.topic
        together.notes |= {number: text for number, text in answers.notes.items() if number not in together.notes}
    return together
