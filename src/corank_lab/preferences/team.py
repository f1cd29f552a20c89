"""
Pairwise comparison by several judges: questions for each of them, and one model of all answers.

The model learns in the background: `TeamPreferences.fit` is a function of a list of answers, and `install` makes its
result current. The next question never waits for it: a fit chooses some pairs ahead, and when they are used up, the
best of some random pairs under the last model is asked.

From the second judge on, each judge has values and a noise of their own (`corank.models.gp.fit_judges`), and the order
is that of the overall values. A judge is asked the pair whose answer by this judge is most informative about these
values.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.data import Items
from corank.models import JudgeModel, gains, suggest_pairs
from corank_lab.preferences.answers import PairwiseAnswer, PreferenceAnswers, PreferenceEntry, Question
from corank_lab.preferences.model import ItemPosterior, PreferenceModel
from corank_lab.preferences.ranking import Ranking
from corank_lab.preferences.session import REPEAT, TOL

OVERLAP = 0.2
AHEAD = 40
"""Number of pairs that a fit chooses ahead."""
_DRAWN = 300
Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class TeamModel:
    """
    What all answers say.

    n_answers: number of answers that were used.
    posterior: joint Gaussian of the items, overall.
    ranking: the items in order.
    ahead: pairs that no judge was asked yet, by decreasing information.
    best: the most informative pair of all; None if none reaches the tolerance.
    names, judges: the judges in the order of the second; no names and None for a single judge.
    """

    n_answers: int
    posterior: ItemPosterior
    ranking: Ranking
    ahead: tuple[Pair, ...]
    best: Pair | None
    names: tuple[str, ...] = ()
    judges: JudgeModel | None = None

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each judge, from 0 (answers at random) to 1; empty for a single judge."""
        return {} if self.judges is None else dict(zip(self.names, self.judges.weights.tolist(), strict=True))

    @property
    def is_precise(self) -> bool:
        """Whether no more answers are needed."""
        return self.best is None

    def gains(self, pairs: Sequence[Pair], judge: str | None = None) -> NDArray[np.float64]:
        """Expected information of answers about the overall values, in nats; at most log 2. judge: who answers."""
        if self.judges is None:
            return gains(self.posterior.values, 2.0 * self.posterior.sigma_**2, "bald", pairs)
        return self.judges.gains(self.names.index(judge) if judge in self.names else -1, pairs)

    def gain(self, pair: Pair, judge: str | None = None) -> float:
        """Expected information of one answer."""
        return float(self.gains([pair], judge)[0])


class Choice(NamedTuple):
    """
    A pair that a judge may get next.

    pair: numbers of the items, the smaller first.
    is_shared: whether another judge may get it at the same time.
    """

    pair: Pair
    is_shared: bool


class TeamPreferences:
    """
    The answers of all judges of a set of items.

    items: the items.
    repeat: share of questions that repeat an earlier one of the same judge.
    overlap: share of questions that another judge answered.
    tol: no more questions when no answer has this expected information, once there are as many answers as items.
    random_state: random seed.
    """

    def __init__(
        self, items: Items, *, repeat: float = REPEAT, overlap: float = OVERLAP, tol: float = TOL, random_state: int = 0
    ) -> None:
        self.items, self.repeat, self.overlap, self.tol = items, repeat, overlap, tol
        self.model: TeamModel | None = None
        self._seed = random_state
        self._judges: dict[str, PreferenceAnswers] = {}
        self._learner = PreferenceModel(items.X)

    @property
    def judges(self) -> Mapping[str, PreferenceAnswers]:
        """Answers by judge."""
        return self._judges

    def add(self, judge: str, entry: PreferenceEntry) -> None:
        """Apply an entry of a judge."""
        self.answers_of(judge).add(entry)

    def join(self, judge: str, answers: PreferenceAnswers) -> None:
        """Use the answers of a judge, also those that are added to them later."""
        self._judges[judge] = answers

    def answers_of(self, judge: str) -> PreferenceAnswers:
        """Return the answers of one judge."""
        return self._judges.setdefault(judge, PreferenceAnswers(self.items))

    def pairwise(self) -> dict[str, list[PairwiseAnswer]]:
        """Return the answers of each judge who gave any."""
        return {judge: answers.pairwise for judge, answers in self._judges.items() if answers.pairwise}

    def asked(self) -> list[Pair]:
        """Return the pairs that a judge answered or skipped, each once."""
        return sorted({pair for answers in self._judges.values() for pair in answers.asked})

    def fit(self, answers: Mapping[str, Sequence[PairwiseAnswer]], asked: Sequence[Pair]) -> TeamModel | None:
        """Learn from answers; may take seconds. Call it from one thread at a time, then `install` the result."""
        if not answers:
            return None
        pooled = [answer for of_judge in answers.values() for answer in of_judge]
        learnt, judges = self._learner.learn(pooled), None
        precise = learnt
        if len(answers) > 1:
            judges = self._learner.learn_judges(answers)
            precise = ItemPosterior(judges.overall, judges.sigma, learnt.pairs)
            # what a judge's own values add to the noise
            var = judges.sigma**2 + float(np.diagonal(judges.deviation).mean())
            learnt = ItemPosterior(judges.overall, float(np.sqrt(var)), learnt.pairs)
        # precise means the same for one judge and for several: judges' own values do not count as noise here;
        # when each pair was asked, the second answer of another judge may still be informative
        tol = self.tol if len(pooled) >= len(self.items) else 0.0
        again = suggest_pairs(precise, n=1, strategy="bald", asked=[], tol=tol, random_state=self._seed)
        best = None if not len(again) else (min(again[0].tolist()), max(again[0].tolist()))
        tol = tol if judges is None else 0.0
        ahead = suggest_pairs(learnt, n=AHEAD, strategy="bald", asked=np.array(asked), tol=tol, random_state=self._seed)
        pairs = () if best is None else tuple((min(pair), max(pair)) for pair in ahead.tolist())
        names = tuple(answers) if judges is not None else ()
        return TeamModel(len(pooled), learnt, Ranking.of(learnt.values), pairs, best, names, judges)

    def install(self, model: TeamModel | None) -> None:
        """Make a model current."""
        self.model = model

    def choices(self, judge: str) -> list[Choice]:
        """Return pairs that a judge may get next, the best first; empty if no more answers are needed."""
        mine = self.answers_of(judge)
        rng = self._rng(judge, mine.n_entries)
        is_repeat, is_overlap = rng.random() < self.repeat, rng.random() < self.overlap
        mine_asked = set(mine.asked)
        found: list[Choice] = []
        if self.model is not None and self.model.is_precise:
            return []
        if is_repeat and (repeatable := mine.repeatable):
            found.append(Choice(repeatable[rng.integers(len(repeatable))], True))
        theirs = set(self.asked()) - mine_asked
        if is_overlap and theirs:
            found.append(Choice(sorted(theirs)[rng.integers(len(theirs))], True))
        if self.model is not None and self.model.judges is not None:
            # judges differ, so a pair that another judge answered may still be the most informative one
            pairs = list(dict.fromkeys([*self.model.ahead, *self._drawn(rng)]))
            pairs = [pair for pair in pairs if pair not in mine_asked]
            values = self.model.gains(pairs, judge)
            if not len(values) or (values.max() < self.tol and self.model.n_answers >= len(self.items)):
                return []
            return found + [Choice(pairs[at], pairs[at] in theirs) for at in np.argsort(-values, kind="stable")]
        everyones = mine_asked | theirs
        if self.model is not None:
            found += [Choice(pair, False) for pair in self.model.ahead if pair not in everyones]
        drawn = [pair for pair in self._drawn(rng) if pair not in everyones]
        if self.model is not None and drawn:
            drawn = [drawn[at] for at in np.argsort(-self.model.gains(drawn), kind="stable")]
        found += [Choice(pair, False) for pair in drawn]
        # if each pair was asked by some judge, or is before one, the others may answer it too
        return found + [Choice(sorted(theirs)[at], True) for at in rng.permutation(len(theirs))]

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

    def wins(self) -> NDArray[np.float64]:
        """Return how often the row won against the column, all judges together; a tie is half a win for each."""
        table = np.zeros((len(self.items), len(self.items)))
        for better, worse, is_equal in (answer for answers in self.pairwise().values() for answer in answers):
            table[better, worse] += 0.5 if is_equal else 1.0
            table[worse, better] += 0.5 if is_equal else 0.0
        return table

    def _rng(self, judge: str, n_entries: int) -> np.random.Generator:
        # the same question until it is answered, also after a restart
        return np.random.default_rng([self._seed, zlib.crc32(judge.encode()), n_entries])

    def _drawn(self, rng: np.random.Generator) -> list[Pair]:
        """All pairs in random order; some random pairs if there are too many."""
        n = len(self.items)
        if n * (n - 1) // 2 <= _DRAWN:
            pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
            return [pairs[at] for at in rng.permutation(len(pairs))]
        a = rng.integers(0, n, _DRAWN)
        b = (a + rng.integers(1, n, _DRAWN)) % n
        return list(dict.fromkeys(zip(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), strict=True)))
