"""Asking: which two things to ask about next, what was answered, and what order that makes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from corank.data.formats.items import Choices
from corank.errors import InputError
from corank.gp import gains, suggest_pairs
from corank.judging.preferences.answers import Answers
from corank.judging.preferences.journal import Journal, Line
from corank.judging.preferences.model import Model
from corank.judging.preferences.question import Question
from corank.judging.preferences.ranking import Ranking
from corank.parameters import check_values, number, one_of, whole

TOL = 0.03
REPEAT = 0.1
_RULES = {
    "by": one_of("bald", "entropy", "uncertainty", "random"), "repeat": number(0, 1, inside="[)"), "tol": number(0),
    "random_state": whole(0),
}  # fmt: skip


@dataclass(frozen=True)
class Progress:
    """
    How far an asking has come.

    Attributes
    ----------
    answered, equal, skipped : int
        Questions that were answered, ties among these, and questions that were skipped.
    repeated, same : int
        Questions that were answered again, and those of them that were answered as before.
    gain : float or None
        What the next answer is expected to tell, in nats; None before the first answer, and where nothing is asked.
    is_complete : bool
        Whether every pair was asked.
    """

    answered: int
    equal: int
    skipped: int
    repeated: int
    same: int
    gain: float | None
    is_complete: bool


class Asking:
    """
    Order things by asking which of two is better, the most telling two first.

    Every answer teaches a Gaussian process (see `corank.judging.preferences.model`). Answers may contradict each
    other. A share of the questions was asked before: how often the answer is the same tells how much answers can be
    trusted. Which thing stands left is chance.

    Parameters
    ----------
    choices : Choices
        What to order.
    journal : Journal, optional
        Where answers are kept; those that it holds are taken up.
    by : {"bald", "entropy", "uncertainty", "random"}
        What is worth asking, see `corank.suggest_pairs`.
    repeat : float
        Share of the questions that were asked before.
    tol : float
        What an answer must be expected to tell, in nats, to be worth asking for, once there are as many answers as
        things; an answer tells log 2 at most.
    random_state : int
        Seed of sides, repetitions and the first question.

    Examples
    --------
    >>> from corank.judging.preferences import Asking, Choices
    >>> asking = Asking(Choices(["tea", "coffee", "milk"]), repeat=0.0)
    >>> while (question := asking.next()) is not None:
    ...     asking.answer(question, "left" if question.left < question.right else "right")
    >>> asking.ranking().order.tolist(), asking.progress().answered
    ([0, 1, 2], 3)
    """

    def __init__(
        self,
        choices: Choices,
        *,
        journal: Journal | None = None,
        by: str = "bald",
        repeat: float = REPEAT,
        tol: float = TOL,
        random_state: int = 0,
    ) -> None:
        check_values({"by": by, "repeat": repeat, "tol": tol, "random_state": random_state}, _RULES)
        self.choices = choices
        self.tol = tol
        self._by, self._repeat, self._seed = by, repeat, random_state
        self._journal = journal
        self._answers = Answers(choices, journal.lines if journal else ())
        self._model = Model(choices.X)
        self._next: tuple[Question | None, float | None] | None = None

    def next(self) -> Question | None:
        """
        Choose the two things to ask about next.

        Returns
        -------
        Question or None
            The same until it is answered, also after a break; None where no question is worth asking.
        """
        if self._next is None:
            # dice of this question alone: whoever goes on later is asked the same
            self._next = self._chosen(np.random.default_rng([self._seed, self._answers.n_lines]))
        return self._next[0]

    def answer(self, question: Question, answer: str) -> None:
        """
        Take an answer; it is on the disk when this returns, where there is a journal.

        Parameters
        ----------
        question : Question
            What was asked.
        answer : {"left", "right", "equal", "skip"}
            Which is better; to skip is to say nothing, and not to be asked again.
        """
        if answer not in Line.ACTIONS[:-1]:
            raise InputError(f"answer is {answer!r}; pass one of {', '.join(Line.ACTIONS[:-1])}.")
        self._note(answer, question)

    def undo(self) -> Question | None:
        """
        Take the last answer, or the last skipping, back.

        Returns
        -------
        Question or None
            What is asked again; None where nothing was answered.
        """
        last = self._answers.last
        if last is not None:
            self._note("undo", last)
            self._next = (last, None)
        return last

    def ranking(self) -> Ranking | None:
        """
        Order the things by what was answered.

        Returns
        -------
        Ranking or None
            None where nothing was answered.
        """
        told = self._answers.told
        return Ranking.of(self._model.learn(told).posterior()) if told else None

    def progress(self) -> Progress:
        """
        Say how far it has come.

        Returns
        -------
        Progress
            With what the next answer is expected to tell.
        """
        answers = self._answers
        told, repeats, n = answers.told, answers.repeats, len(self.choices)
        return Progress(
            answered=len(told), equal=sum(one.is_equal for one in told), skipped=answers.n_skipped,
            repeated=len(repeats), same=sum(repeats), gain=self._next[1] if self._next else None,
            is_complete=len(answers.asked) == n * (n - 1) // 2,
        )  # fmt: skip

    def _note(self, action: str, question: Question) -> None:
        names = self.choices.names
        line = Line(action, names[question.left], names[question.right], question.by)
        if self._journal is not None:
            self._journal.append(line)
        self._answers.take(line)
        self._next = None

    def _chosen(self, rng: np.random.Generator) -> tuple[Question | None, float | None]:
        told, asked = self._answers.told, self._answers.asked
        is_swapped, is_repeat = rng.random() < 0.5, rng.random() < self._repeat
        gain = None
        if told:
            gp = self._model.learn(told)
            # what an answer tells depends on the noise, which few answers say little of
            tol = self.tol if len(told) >= len(self.choices) else 0.0
            how: dict[str, Any] = {"strategy": self._by, "asked": np.array(asked), "tol": tol}
            found = suggest_pairs(gp, random_state=int(rng.integers(2**31)), **how)
            if not len(found):
                return None, None
            repeatable = self._answers.repeatable
            is_repeat &= len(repeatable) > 0
            pair = repeatable[rng.integers(len(repeatable))] if is_repeat else tuple(found[0].tolist())
            by = "repeat" if is_repeat else "model"
            (gain,) = gains(gp.posterior(), 2.0 * gp.sigma_**2, "bald", [pair]).tolist()
        else:
            pairs = sorted(set(_all_pairs(len(self.choices), rng)) - set(asked))
            if not pairs:
                return None, None
            pair, by = pairs[rng.integers(len(pairs))], "start"
        left, right = reversed(pair) if is_swapped else pair
        return Question(left, right, by), gain


def _all_pairs(n: int, rng: np.random.Generator) -> Iterable[tuple[int, int]]:
    """Every pair of few things, some of many."""
    if n <= 100:
        return [(a, b) for a in range(n) for b in range(a + 1, n)]
    a = rng.integers(0, n, 1000)
    b = (a + rng.integers(1, n, 1000)) % n
    return list(zip(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), strict=True))
