"""A session of pairwise comparisons: the next question, the answers, and the ranking."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from corank.data import Items
from corank.errors import InputError
from corank.models import PAIR_STRATEGIES, gains, suggest_pairs
from corank.parameters import check_values, integer, number, one_of
from corank_lab.preferences.answers import PreferenceAnswers, PreferenceEntry, Question
from corank_lab.preferences.journal import PreferenceJournal, pair_key
from corank_lab.preferences.model import PreferenceModel
from corank_lab.preferences.ranking import Ranking

TOL = 0.03
REPEAT = 0.1
_RULES = {
    "strategy": one_of(*PAIR_STRATEGIES), "repeat": number(0, 1, inside="[)"), "tol": number(0),
    "random_state": integer(0),
}  # fmt: skip


@dataclass(frozen=True)
class PreferenceProgress:
    """
    State of a session.

    answered, equal, skipped: Number of answered questions, of ties among them, and of skipped questions.
    repeated, same: Number of repeated questions, and of those answered as before.
    gain: Expected information gain of the next answer in nats; None before the first answer, and without a question.
    is_complete: Whether every pair was asked.
    """

    answered: int
    equal: int
    skipped: int
    repeated: int
    same: int
    gain: float | None
    is_complete: bool


class PreferenceSession:
    """
    Rank items by asking which of two is better, the most informative pair first.

    A Gaussian process learns from every answer (see `corank_lab.preferences.model`). Answers may contradict each
    other. A share of the questions is repeated: the share answered as before shows how reliable the answers are. The
    sides are random.

    items: Items to rank.
    journal: Keeps the answers in a database; answers in it are used. Without one, they are in memory only.
    strategy: How to choose pairs: a strategy of `corank.models.suggest_pairs`.
    repeat: Share of repeated questions.
    tol: Stop when no answer has an expected information gain of `tol` nats, once there are as many answers as items. An
        answer gains log 2 at most.
    random_state: Random seed of sides, repetitions and the first question.

    >>> from corank_lab.preferences import Items, PreferenceSession
    >>> session = PreferenceSession(Items(["tea", "coffee", "milk"]), repeat=0.0)
    >>> while (question := session.next()) is not None:
    ...     session.answer(question, "left" if question.left < question.right else "right")
    >>> session.ranking().order.tolist(), session.progress().answered
    ([0, 1, 2], 3)
    """

    def __init__(
        self,
        items: Items,
        *,
        journal: PreferenceJournal | None = None,
        strategy: str = "bald",
        repeat: float = REPEAT,
        tol: float = TOL,
        random_state: int = 0,
    ) -> None:
        values = {"strategy": strategy, "repeat": repeat, "tol": tol, "random_state": random_state}
        check_values(values, _RULES)
        self.items = items
        self.tol = tol
        self._strategy, self._repeat, self._seed = strategy, repeat, random_state
        self._journal = journal
        self._answers = PreferenceAnswers(items)
        self._next: tuple[Question | None, float | None] | None = None
        self._n_applied = 0
        if journal is not None:
            journal.begin(items)
            self._apply_log()
        self._model = PreferenceModel(items.X)

    def next(self) -> Question | None:
        """Choose the next question, the same until it is answered; None if no question is informative enough."""
        if self._journal is not None:
            self._journal.refresh()
            self._apply_log()
        if self._next is None:
            # the seed depends only on the number of entries: a later session asks the same question
            self._next = self._choose(np.random.default_rng([self._seed, self._answers.n_entries]))
        question = self._next[0]
        if self._journal is not None and question is not None:
            self._journal.claim(pair_key(min(question[:2]), max(question[:2])))
        return question

    def answer(self, question: Question, answer: str) -> None:
        """Record an answer. If there is a journal, the answer is on the disk when this returns."""
        if answer not in PreferenceEntry.ACTIONS[:-1]:
            raise InputError(f"answer is {answer!r}; pass one of {', '.join(PreferenceEntry.ACTIONS[:-1])}.")
        self._record(answer, question)

    def undo(self) -> Question | None:
        """Withdraw the last answer or skip."""
        last = self._answers.last
        if last is not None:
            self._record("undo", last)
            self._next = (last, None)
        return last

    def ranking(self) -> Ranking | None:
        """Rank the items by the answers so far."""
        answers = self._answers.pairwise
        return Ranking.of(self._model.learn(answers).values) if answers else None

    def progress(self) -> PreferenceProgress:
        """Return the state of the session."""
        answers, repeats, n = self._answers.pairwise, self._answers.repeats, len(self.items)
        return PreferenceProgress(
            answered=len(answers), equal=sum(one.is_equal for one in answers), skipped=self._answers.n_skipped,
            repeated=len(repeats), same=sum(repeats), gain=self._next[1] if self._next else None,
            is_complete=len(self._answers.asked) == n * (n - 1) // 2,
        )  # fmt: skip

    def _record(self, action: str, question: Question) -> None:
        names = self.items.names
        entry = PreferenceEntry(action, names[question.left], names[question.right], question.chosen_by)
        if self._journal is not None:
            self._journal.append(entry)
            self._apply_log()
        else:
            self._answers.add(entry)
        self._next = None

    def _apply_log(self) -> None:
        """Apply what is new in the journal, also answers that the judge gave on a page."""
        assert self._journal is not None
        new = self._journal.log[self._n_applied :]
        self._n_applied += len(new)
        for judge, entry in new:
            if judge == self._journal.judge:
                self._answers.add(entry)
            else:
                self._hear(judge, entry)
        if new:
            self._next = None

    def _hear(self, judge: str, entry: PreferenceEntry) -> None:
        """Take the answer of another judge into account."""

    def _choose(self, rng: np.random.Generator) -> tuple[Question | None, float | None]:
        """The next question, and its expected information gain."""
        answers, asked = self._answers.pairwise, self._answers.asked
        is_swapped, is_repeat = rng.random() < 0.5, rng.random() < self._repeat
        gain = None
        if answers:
            learnt = self._model.learn(answers)
            # the gain depends on the noise, which is uncertain with few answers
            tol = self.tol if len(answers) >= len(self.items) else 0.0
            seed = int(rng.integers(2**31))
            best = suggest_pairs(learnt, strategy=self._strategy, asked=np.array(asked), tol=tol, random_state=seed)
            if not len(best):
                return None, None
            repeatable = self._answers.repeatable
            is_repeat &= len(repeatable) > 0
            pair = repeatable[rng.integers(len(repeatable))] if is_repeat else tuple(best[0].tolist())
            chosen_by = "repeat" if is_repeat else "model"
            (gain,) = gains(learnt.values, 2.0 * learnt.sigma_**2, "bald", [pair]).tolist()
        else:
            pairs = sorted(set(_some_pairs(len(self.items), rng)) - set(asked))
            if not pairs:
                return None, None
            pair, chosen_by = pairs[rng.integers(len(pairs))], "start"
        left, right = reversed(pair) if is_swapped else pair
        return Question(left, right, chosen_by), gain


def _some_pairs(n: int, rng: np.random.Generator) -> Iterable[tuple[int, int]]:
    """All pairs of up to 100 items, else 1,000 random pairs."""
    if n <= 100:
        return [(a, b) for a in range(n) for b in range(a + 1, n)]
    a = rng.integers(0, n, 1000)
    b = (a + rng.integers(1, n, 1000)) % n
    return list(zip(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), strict=True))
