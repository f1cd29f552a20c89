"""
Pairwise comparison by one judge or several: the next question of each, one model of all answers, and the ranking.

A model never delays a question on the pages: `learn` is a function of a list of answers, which runs in the background,
and chooses some pairs ahead; while the model is behind the answers, the best of some random pairs under it are asked
when those are used up. `next` fits first, so that a terminal always asks the best pair.

From the second judge on, each judge has values and a noise of their own (`corank.models.gp.fit_judges`), and the order
is that of the overall values. A judge is asked the pair whose answer by this judge is most informative about these
values.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.data import Items, Votes
from corank.errors import InputError, UsageWarning
from corank.models import PAIR_STRATEGIES, JudgeModel, Leaderboard, Posterior, gains, suggest_pairs
from corank.parameters import check_values, integer, number, one_of
from corank_lab.database.database import ANY_NUMBER, ClaimableItem
from corank_lab.preferences.answers import (
    PairwiseAnswer,
    PreferenceAnswers,
    PreferenceEntry,
    PreferenceJournal,
    Question,
    pair_key,
)
from corank_lab.preferences.model import ItemPosterior, PreferenceModel, Ranking

STRATEGY, REPEAT, OVERLAP, TOL = "bald", 0.1, 0.2, 0.03
N_AHEAD = 40
"""Number of pairs that are chosen ahead for several judges."""
# a terminal fits the model of several judges after every answer, from so many on after every second one, and so on
_REFIT = 100
_N_DRAWN = 300
_RULES = {
    "strategy": one_of(*PAIR_STRATEGIES), "repeat": number(0, 1, inside="[)"), "overlap": number(0, 1),
    "tol": number(0), "random_state": integer(0),
}  # fmt: skip
Pair = tuple[int, int]
Floats = NDArray[np.float64]
Answers = Mapping[str, Sequence[PairwiseAnswer]]


@dataclass(frozen=True)
class PreferenceProgress:
    """State of a session for one judge."""

    answered: int  # answered, equal, skipped: number of answered questions, of ties among them, of skipped questions
    equal: int
    skipped: int
    repeated: int  # repeated, same: number of repeated questions, and of those answered as before
    same: int
    gain: float | None  # expected information gain of the next answer in nats; None before the first, and at the end
    is_complete: bool  # whether every pair was asked
    n_entries: int  # number of answers, skips and corrections


@dataclass(frozen=True, eq=False)
class PreferenceFit:
    """Posterior from all judges' answers."""

    n_answers: int
    posterior: ItemPosterior
    ranking: Ranking
    ahead: tuple[Pair, ...]  # pairs that no judge was asked yet, by decreasing information
    best: Pair | None  # the most informative pair of all; None if none reaches the tolerance
    # names, judges: the judges in the order of the second; no names and None for a single judge
    names: tuple[str, ...] = ()
    judges: JudgeModel | None = None
    board: Leaderboard | None = None  # of a session with votes

    @property
    def repeats_pairs(self) -> bool:
        """Whether a pair that was answered may be the most informative one."""
        return self.judges is not None or self.board is not None

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each judge, from 0 (answers at random) to 1; empty for a single judge."""
        return {} if self.judges is None else dict(zip(self.names, self.judges.weights.tolist(), strict=True))

    @property
    def intervals(self) -> tuple[Floats, Floats]:
        """The ends of the 95 % intervals of the scores, in the order of the ranking."""
        if self.board is not None:
            return self.board.lower_, self.board.upper_
        score, std = self.ranking.score[self.ranking.order], self.ranking.std[self.ranking.order]
        return score - 1.96 * std, score + 1.96 * std

    def table(self, items: Items) -> list[list[object]]:
        """Return a row for each item, the best first, below a header; of several judges also the score of each."""
        if self.board is not None:
            return list(self.board.rows())
        ranking, of_judge = self.ranking, []
        if self.judges is not None:
            of_judge = [Ranking.of(self.judges.of(number)).score for number in range(len(self.names))]
        header = ["rank", "name", "score", "std", "low", "high", *(f"score_{judge}" for judge in self.names)]
        rows: list[list[object]] = [[*header]]
        for rank, (i, low, high) in enumerate(zip(ranking.order.tolist(), *self.intervals, strict=True), 1):
            values = (ranking.score[i], ranking.std[i], low, high, *(score[i] for score in of_judge))
            rows.append([rank, items.names[i], *(f"{value:.6g}" for value in values)])
        return rows

    @property
    def is_precise(self) -> bool:
        """Whether no more answers are needed."""
        return self.best is None

    def gains(self, pairs: Sequence[Pair], judge: str | None = None) -> NDArray[np.float64]:
        """Expected information of a judge's answers about the overall values, in nats; at most log 2."""
        if self.judges is None:
            return gains(self.posterior.values, 2.0 * self.posterior.sigma_**2, "bald", pairs)
        return self.judges.gains(self.names.index(judge) if judge in self.names else -1, pairs)

    def gain(self, pair: Pair, judge: str | None = None) -> float:
        return float(self.gains([pair], judge)[0])


class Choice(NamedTuple):
    """A pair that a judge may get next, the smaller number first, and whether another judge may get it as well."""

    pair: Pair
    is_shared: bool


class PreferenceSession:
    """
    Rank items by asking which of two is better, the most informative pair first.

    A Gaussian process learns from every answer (see `corank_lab.preferences.model`). Answers may contradict each
    other. A share of the questions is repeated: the share answered as before shows how reliable the answers are. The
    sides are random. Answers of other judges, such as those of the journal, are used by the default strategy.

    items: Items to rank.
    journal: Keeps the answers in a database; answers in it are used. Without one, they are in memory only.
    judge: Name of the judge; that of the journal if there is one.
    strategy: How to choose pairs: a strategy of `corank.models.suggest_pairs`.
    repeat: Share of repeated questions.
    overlap: Share of questions that another judge answered.
    tol: Stop when no answer has an expected information gain of `tol` nats, once there are as many answers as items. An
        answer gains log 2 at most.
    random_state: Random seed of sides, repetitions and the first question.
    has_votes: Whether to learn a `Leaderboard`, for thousands of votes on items without features.

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
        judge: str = "me",
        strategy: str = STRATEGY,
        repeat: float = REPEAT,
        overlap: float = OVERLAP,
        tol: float = TOL,
        random_state: int = 0,
        has_votes: bool = False,
    ) -> None:
        values = {"strategy": strategy, "repeat": repeat, "overlap": overlap, "tol": tol, "random_state": random_state}
        check_values(values, _RULES)
        self.items, self.repeat, self.overlap, self.tol, self.has_votes = items, repeat, overlap, tol, has_votes
        self.judge = judge if journal is None else journal.judge
        self.model: PreferenceFit | None = None
        self._strategy, self._seed, self._journal = strategy, random_state, journal
        self._judges: dict[str, PreferenceAnswers] = {}
        self._learner, self._own = PreferenceModel(items.X), PreferenceModel(items.X)
        self._fitted: tuple[int, int] | None = None
        self._next: tuple[Question | None, float | None] | None = None
        self._n_applied = 0
        if journal is not None:
            journal.begin(items)
            self._apply_log()

    def next(self) -> Question | None:
        """Choose the next question, the same until it is answered; None if no question is informative enough."""
        if self._journal is not None:
            self._journal.refresh()
            self._apply_log()
        if self._next is None:
            self.fit()
            choices = self.choices(self.judge)
            self._next = self.question(self.judge, choices[0].pair) if choices else (None, None)
        question = self._next[0]
        if self._journal is not None and question is not None:
            self._journal.claim([ClaimableItem(pair_key(question), ANY_NUMBER)])
        return question

    def answer(self, question: Question, answer: str) -> None:
        """Record an answer. If there is a journal, the answer is on the disk when this returns."""
        if answer not in PreferenceEntry.ACTIONS[:-1]:
            raise InputError(f"answer is {answer!r}; pass one of {', '.join(PreferenceEntry.ACTIONS[:-1])}.")
        self._record(self.entry(answer, question))

    def undo(self) -> Question | None:
        last = self.answers_of(self.judge).last
        if last is not None:
            self._record(self.entry("undo", last))
            self._next = (last, None)
        return last

    def progress(self, judge: str | None = None) -> PreferenceProgress:
        mine, n = self.answers_of(judge or self.judge), len(self.items)
        answers, repeats = mine.pairwise, mine.repeats
        return PreferenceProgress(
            answered=len(answers), equal=sum(answer.is_equal for answer in answers), skipped=mine.n_skipped,
            repeated=len(repeats), same=sum(repeats), gain=self._next[1] if self._next else None,
            is_complete=len(mine.asked) == n * (n - 1) // 2, n_entries=mine.n_entries,
        )  # fmt: skip

    def fit(self) -> None:
        """Learn from the answers so far, if there are new ones."""
        answers, asked = self.pairwise(), self.asked()
        mine = answers.pop(self.judge, [])
        n_others = sum(map(len, answers.values()))
        # depends on the number of answers only: a later session asks the same question
        every = 1 + (n_others + len(mine)) // _REFIT if n_others else 1
        n_used = len(mine) - len(mine) % every
        state = (n_used, n_others if n_others else -len(asked))
        if state != self._fitted:
            used = {**answers, self.judge: mine[:n_used]} if n_used else answers
            self.model = self.learn(used, asked, N_AHEAD if n_others else 1)
            self._fitted = state

    def ranking(self) -> Ranking | None:
        """Rank the items by the judge's own answers so far."""
        answers = self.answers_of(self.judge).pairwise
        learner = self._learner if self.pairwise().keys() <= {self.judge} else self._own
        return Ranking.of(learner.learn(answers).values) if answers else None

    @property
    def judges(self) -> Mapping[str, PreferenceAnswers]:
        return self._judges

    def add(self, judge: str, entry: PreferenceEntry) -> None:
        self.answers_of(judge).add(entry)

    def answers_of(self, judge: str) -> PreferenceAnswers:
        return self._judges.setdefault(judge, PreferenceAnswers(self.items))

    def entry(self, action: str, question: Question) -> PreferenceEntry:
        names = self.items.names
        return PreferenceEntry(action, names[question.left], names[question.right], question.chosen_by)

    def pairwise(self) -> dict[str, Sequence[PairwiseAnswer]]:
        """Return the answers of each judge who gave any."""
        return {judge: answers.pairwise for judge, answers in self._judges.items() if answers.pairwise}

    def asked(self) -> list[Pair]:
        """Return the pairs that a judge answered or skipped, each once."""
        return sorted({pair for answers in self._judges.values() for pair in answers.asked})

    def learn(self, answers: Answers, asked: Sequence[Pair], n_ahead: int = N_AHEAD) -> PreferenceFit | None:
        """Learn from answers; may take seconds. Call it from one thread at a time, then set `model`."""
        if not answers:
            return None
        if self.has_votes:
            return self._learn_votes(answers, n_ahead)
        pooled = [answer for of_judge in answers.values() for answer in of_judge]
        learnt, judges = self._learner.learn(pooled), None
        seed = int(np.random.default_rng([self._seed, len(asked)]).integers(2**31))
        # the gain depends on the noise, which is uncertain with few answers
        tol = self.tol if len(pooled) >= len(self.items) else 0.0
        precise = learnt
        if len(answers) > 1:
            judges = self._learner.learn_judges(answers)
            precise = ItemPosterior(judges.overall, judges.sigma, learnt.pairs)
            # what a judge's own values add to the noise
            var = judges.sigma**2 + float(np.diagonal(judges.deviation).mean())
            learnt = ItemPosterior(judges.overall, float(np.sqrt(var)), learnt.pairs)
        names = tuple(answers) if judges is not None else ()
        if not n_ahead:  # only the ranking is wanted
            return PreferenceFit(len(pooled), learnt, Ranking.of(learnt.values), (), None, names, judges)
        options: dict[str, Any] = {"strategy": self._strategy, "random_state": seed}
        new = suggest_pairs(learnt, n=n_ahead, asked=asked, tol=tol if judges is None else 0.0, **options)
        ahead = tuple((min(pair), max(pair)) for pair in new.tolist())
        best = ahead[0] if ahead and judges is None else None
        if best is None:
            # precise means the same for one judge and for several: judges' own values do not count as noise here;
            # when each pair was asked, the second answer of another judge may still be informative
            again = suggest_pairs(precise, asked=[], tol=tol, **options).tolist()
            best, ahead = ((min(again[0]), max(again[0])), ahead) if again else (None, ())
        return PreferenceFit(len(pooled), learnt, Ranking.of(learnt.values), ahead, best, names, judges)

    def _learn_votes(self, answers: Answers, n_ahead: int) -> PreferenceFit:
        """Fit a leaderboard, and choose pairs by mutual information with the scores."""
        rows = [(judge, *answer) for judge, (_, given) in enumerate(answers.items()) for answer in given]
        judge, better, worse, is_equal = np.array(rows, dtype=np.int64).T
        names, ones = tuple(self.items.names), np.ones(len(rows), dtype=np.int64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UsageWarning)  # items that nobody compared yet
            votes = Votes(names, better, worse, is_equal, ones, judge, tuple(answers), has_sides=False)
            board = Leaderboard().fit(votes)
        i = np.array([board.items_.index(name) for name in names])
        values = Posterior(board.scores_[i], board.covariance_[np.ix_(i, i)])
        # the normal distribution with the variance of the logistic one, which is 2 sigma²
        learnt = ItemPosterior(values, np.pi / np.sqrt(6.0), np.column_stack([better, worse]))
        # one vote of thousands tells little: questions are about items whose sets of ranks overlap, until none do
        low, high = board.ranks_[i].T
        open_pairs = np.argwhere(np.triu((low[:, None] <= high) & (low <= high[:, None]), 1))
        ahead = suggest_pairs(learnt, n=n_ahead, candidates=open_pairs, asked=[]).tolist() if len(open_pairs) else []
        pairs = tuple((min(pair), max(pair)) for pair in ahead)
        best = pairs[0] if pairs else None
        return PreferenceFit(len(rows), learnt, Ranking.of(values), pairs, best, board=board)

    def choices(self, judge: str) -> list[Choice]:
        """Return pairs that a judge may get next, the best first; empty if no more answers are needed."""
        mine, model = self.answers_of(judge), self.model
        if model is not None and model.is_precise:
            return []
        rng = self._rng(judge, mine.n_entries)
        is_repeat, is_overlap = rng.random() < self.repeat, rng.random() < self.overlap
        mine_asked, repeatable = set(mine.asked), mine.repeatable
        theirs = sorted(set(self.asked()) - mine_asked)
        chosen: list[Choice] = []
        if is_repeat and repeatable:
            chosen.append(Choice(repeatable[rng.integers(len(repeatable))], True))
        if is_overlap and theirs and (model is None or model.board is None):
            chosen.append(Choice(theirs[rng.integers(len(theirs))], True))
        if model is not None and model.repeats_pairs:
            # judges differ, so a pair that another judge answered may still be the most informative one
            pairs = list(model.ahead)
            if model.board is None:
                pairs = [pair for pair in dict.fromkeys([*pairs, *self._drawn(rng)]) if pair not in mine_asked]
            values = model.gains(pairs, judge)
            is_over = model.board is None and model.n_answers >= len(self.items) and values.max(initial=0.0) < self.tol
            if not len(values) or is_over:
                return []
            return chosen + [Choice(pairs[k], pairs[k] in theirs) for k in np.argsort(-values, kind="stable")]
        everyones = mine_asked.union(theirs)
        new = [] if model is None else [pair for pair in model.ahead if pair not in everyones]
        if model is None or model.n_answers < sum(map(len, self.pairwise().values())):
            drawn = [pair for pair in self._drawn(rng) if pair not in everyones]
            if model is not None and drawn:
                drawn = [drawn[k] for k in np.argsort(-model.gains(drawn), kind="stable")]
            new += drawn
        if not new and not theirs:
            return []
        # if each pair was asked by some judge, or is before one, the others may answer it too
        shared = [Choice(theirs[k], True) for k in rng.permutation(len(theirs))]
        return chosen + [Choice(pair, False) for pair in new] + shared

    def question(self, judge: str, pair: Pair) -> tuple[Question, float | None]:
        """Return the question about a pair with random sides, and its expected information."""
        mine = self.answers_of(judge)
        is_swapped = self._rng(judge, mine.n_entries).random(3)[2] < 0.5
        if pair in mine.asked:
            by = "repeat"
        elif pair in self.asked():
            by = "overlap"
        else:
            by = "start" if self.model is None else "model"
        left, right = reversed(pair) if is_swapped else pair
        return Question(left, right, by), None if self.model is None else self.model.gain(pair, judge)

    def _record(self, entry: PreferenceEntry) -> None:
        if self._journal is not None:
            self._journal.append(entry)
            self._apply_log()
        else:
            self.add(self.judge, entry)
        self._next = None

    def _apply_log(self) -> None:
        """Apply what is new in the journal, also answers that judges gave on a page."""
        assert self._journal is not None
        new = self._journal.log[self._n_applied :]
        self._n_applied += len(new)
        for judge, entry in new:
            if judge == self.judge or self._strategy == STRATEGY:
                self.add(judge, entry)
                self._next = None

    def _rng(self, judge: str, n_entries: int) -> np.random.Generator:
        # the same question until it is answered, also after a restart
        return np.random.default_rng([self._seed, zlib.crc32(judge.encode()), n_entries])

    def _drawn(self, rng: np.random.Generator) -> list[Pair]:
        """All pairs in random order; some random pairs if there are too many."""
        n = len(self.items)
        if n * (n - 1) // 2 <= _N_DRAWN:
            pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
            return [pairs[k] for k in rng.permutation(len(pairs))]
        a = rng.integers(0, n, _N_DRAWN)
        b = (a + rng.integers(1, n, _N_DRAWN)) % n
        return list(dict.fromkeys(zip(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), strict=True)))
