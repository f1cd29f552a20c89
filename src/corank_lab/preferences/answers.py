"""Questions about two items, the journal of answers, and what the answers amount to."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from corank.data import Items
from corank.errors import InputError
from corank_lab.database.journal import Journal, JournalEntry

# answers between a question and its repetition, so that the judge does not answer from memory
_APART = 4


class Question(NamedTuple):
    """Two items to compare, by number."""

    left: int  # the item on the left
    right: int  # the item on the right
    # how the pair was chosen: "start" (at random before the first answer), "model" (by the strategy), "repeat",
    # "overlap" (another judge answered it) or "change"
    chosen_by: str = "model"


class PairwiseAnswer(NamedTuple):
    """The better and the worse of two items, by number; if they are equal, in any order."""

    better: int
    worse: int
    is_equal: bool = False  # whether the judge finds them equal


@dataclass(frozen=True)
class PreferenceEntry(JournalEntry):
    """
    One entry of a journal of preferences.

    action {"left", "right", "equal", "bad", "skip", "undo"}: which item is better; "bad" means that both are equally
        bad, "skip" gives no answer, "undo" withdraws the last entry.
    """

    ACTIONS: ClassVar[tuple[str, ...]] = ("left", "right", "equal", "bad", "skip", "undo")

    left: str = ""  # left, right: names of the items
    right: str = ""
    by: str = ""  # see `Question.chosen_by`; "change" replaces the last answer to the same pair


class PreferenceAnswers:
    """The answers so far."""

    def __init__(self, items: Items, entries: Iterable[PreferenceEntry] = ()) -> None:
        self._items = items
        self.answers: list[tuple[str, Question]] = []  # actions and questions that were not withdrawn
        self.n_entries = 0
        for entry in entries:
            self.add(entry)

    def add(self, entry: PreferenceEntry) -> None:
        self.n_entries += 1
        if entry.action == "undo":
            if self.answers:
                self.answers.pop()
            return
        number = self._items.number
        for name in (entry.left, entry.right):
            if name not in number:
                raise entry.unknown(name, f"{len(self._items)} items")
        if entry.left == entry.right:
            where = f"{entry.place}: " if entry.place else ""
            raise InputError(f"{where}an answer compares {entry.left!r} with itself; remove this line.")
        question = Question(number[entry.left], number[entry.right], entry.by)
        if entry.by == "change":
            before = [i for i, (_, item) in enumerate(self.answers) if _pair(item) == _pair(question)]
            if before:
                question = question._replace(chosen_by=self.answers[before[-1]][1].chosen_by)
                del self.answers[before[-1]]
        self.answers.append((entry.action, question))

    @property
    def last(self) -> Question | None:
        """The question that was answered or skipped last."""
        return self.answers[-1][1] if self.answers else None

    @property
    def pairwise(self) -> list[PairwiseAnswer]:
        return [_answer(action, question) for action, question in self.answers if action != "skip"]

    @property
    def asked(self) -> list[tuple[int, int]]:
        """Pairs that were answered or skipped, each once."""
        return list(dict.fromkeys(_pair(question) for _, question in self.answers))

    @property
    def n_skipped(self) -> int:
        return sum(action == "skip" for action, _ in self.answers)

    @property
    def repeatable(self) -> list[tuple[int, int]]:
        """Pairs that were asked once, answered, and not recently."""
        times = Counter(_pair(question) for _, question in self.answers)
        earlier = self.answers[: max(len(self.answers) - _APART, 0)]
        return [_pair(question) for action, question in earlier if action != "skip" and times[_pair(question)] == 1]

    @property
    def repeats(self) -> list[bool]:
        """For each repeated question, whether it was answered as before."""
        before: dict[tuple[int, int], int] = {}
        is_same = []
        for action, question in self.answers:
            if action == "skip":
                continue
            pair, answer = _pair(question), _answer(action, question)
            better = -1 if answer.is_equal else answer.better
            if question.chosen_by == "repeat" and pair in before:
                is_same.append(better == before[pair])
            before[pair] = better
        return is_same


def _pair(question: Question) -> tuple[int, int]:
    return min(question[:2]), max(question[:2])


def _answer(action: str, question: Question) -> PairwiseAnswer:
    if action == "right":
        return PairwiseAnswer(question.right, question.left)
    return PairwiseAnswer(question.left, question.right, action in ("equal", "bad"))


class PreferenceJournal(Journal[PreferenceEntry]):  # noqa: D101
    __doc__ = Journal.__doc__
    entry = PreferenceEntry
    kind = "compare"
    folder = "preferences"

    def begin(self, items: Items, file: str = "", **settings: Any) -> None:
        self._items = items
        payload = items_payload(items)
        self._begin(self.hash_of(payload), lambda: payload, file, **settings)

    @classmethod
    def hash_of(cls, payload: Any) -> str:
        return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()

    def shares(self, payload: Any) -> bool:
        """Return whether all items of a project are among the items now, so that every answer stays valid."""
        return all(name in self._items.number for name in payload["names"])

    def completed(self, entry: PreferenceEntry) -> tuple[str, PreferenceEntry]:
        numbers = [self._items.number.get(name, 0) for name in (entry.left, entry.right)]
        return pair_key(numbers), entry


def items_payload(items: Items) -> dict[str, Any]:
    """Return items as a project keeps them."""
    fields = [dict(values) for values in items.fields]
    return {"names": list(items.names), "X": items.X.tolist(), "fields": fields, "columns": list(items.columns)}


def pair_key(pair: Sequence[Any]) -> str:
    """Return the key of a pair of items, given their numbers first."""
    return f"{min(pair[:2])}-{max(pair[:2])}"
