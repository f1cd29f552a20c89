"""Answers: what the lines of a journal amount to, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from corank.data.formats.items import Choices
from corank.errors import InputError
from corank.judging.preferences.journal import Line
from corank.judging.preferences.question import Question

# answers that lie between a question and its repetition, so that nobody answers from memory
_APART = 4


class Told(NamedTuple):
    """An answer: the better of two, by number; where they are equal, in any order."""

    better: int
    worse: int
    is_equal: bool = False


class Answers:
    """
    What was answered so far.

    choices: what the lines speak of.
    lines: those of a journal.

    n_lines: how many lines there were, those that were taken back and those that take back among them.
    """

    def __init__(self, choices: Choices, lines: Iterable[Line] = ()) -> None:
        self._choices = choices
        self._kept: list[tuple[str, Question]] = []
        self.n_lines = 0
        for line in lines:
            self.take(line)

    def take(self, line: Line) -> None:
        """Take one line."""
        self.n_lines += 1
        if line.action == "undo":
            if self._kept:
                self._kept.pop()
            return
        for name in (line.left, line.right):
            if name not in self._choices.number:
                raise InputError(
                    f"the journal speaks of {name!r}, which is not among the {len(self._choices)} things to choose "
                    "between; open the file that it was begun with."
                )
        number = self._choices.number
        self._kept.append((line.action, Question(number[line.left], number[line.right], line.by)))

    @property
    def last(self) -> Question | None:
        """The question that was answered or skipped last."""
        return self._kept[-1][1] if self._kept else None

    @property
    def told(self) -> list[Told]:
        """What was answered, in the order of answering."""
        return [_told(action, question) for action, question in self._kept if action != "skip"]

    @property
    def asked(self) -> list[tuple[int, int]]:
        """What was asked, skipped or not; each pair once."""
        return list(dict.fromkeys(_pair(question) for _, question in self._kept))

    @property
    def n_skipped(self) -> int:
        """Number of questions that were skipped."""
        return sum(action == "skip" for action, _ in self._kept)

    @property
    def repeatable(self) -> list[tuple[int, int]]:
        """Pairs that were asked once, answered, and not just now."""
        times = Counter(_pair(question) for _, question in self._kept)
        earlier = self._kept[: max(len(self._kept) - _APART, 0)]
        return [_pair(question) for action, question in earlier if action != "skip" and times[_pair(question)] == 1]

    @property
    def repeats(self) -> list[bool]:
        """Of every question that was answered again: whether as before."""
        before: dict[tuple[int, int], int] = {}
        found = []
        for action, question in self._kept:
            if action == "skip":
                continue
            pair, answer = _pair(question), _told(action, question)
            # the better one, or -1
            said = -1 if answer.is_equal else answer.better
            if question.by == "repeat" and pair in before:
                found.append(said == before[pair])
            before[pair] = said
        return found


def _pair(question: Question) -> tuple[int, int]:
    return min(question[:2]), max(question[:2])


def _told(action: str, question: Question) -> Told:
    if action == "right":
        return Told(question.right, question.left)
    return Told(question.left, question.right, action == "equal")
