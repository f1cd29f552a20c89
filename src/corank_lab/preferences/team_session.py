"""A session of one judge whose questions also depend on the answers of other judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from corank.data import Items
from corank_lab.preferences.answers import PreferenceAnswers, PreferenceEntry, Question
from corank_lab.preferences.session import PreferenceSession
from corank_lab.preferences.team import TeamPreferences

# the model of all judges is fitted again after every answer, from so many answers on after every second one, and so on
_REFIT = 100


class TeamSession(PreferenceSession):
    """
    A `PreferenceSession` whose questions are the most informative ones about the order of all judges.

    The session ends when no answer of the judge is expected to be informative. `ranking` is that of the judge's own
    answers, so that the judge does not see those of the others.

    items: Items to rank.
    judge: Name of the judge.
    others: Answers of the other judges, besides those of the journal.
    options: Further parameters of `PreferenceSession`, without `strategy`.
    """

    def __init__(self, items: Items, judge: str, others: Mapping[str, PreferenceAnswers], **options: Any) -> None:
        self._judge, self._others = judge, dict(others)
        super().__init__(items, **options)
        self._team = TeamPreferences(items, repeat=self._repeat, tol=self.tol, random_state=self._seed)
        for name, answers in {**self._others, judge: self._answers}.items():
            self._team.join(name, answers)
        self._fitted: tuple[int, int] | None = None

    def _hear(self, judge: str, entry: PreferenceEntry) -> None:
        if judge not in self._others:
            self._others[judge] = PreferenceAnswers(self.items)
            if hasattr(self, "_team"):
                self._team.join(judge, self._others[judge])
        self._others[judge].add(entry)

    def _choose(self, rng: np.random.Generator) -> tuple[Question | None, float | None]:
        answers = self._team.pairwise()
        mine = answers.pop(self._judge, [])
        n_others = sum(map(len, answers.values()))
        # depends on the number of answers only: a later session asks the same question
        n_used = len(mine) - len(mine) % (1 + (n_others + len(mine)) // _REFIT)
        if (n_used, n_others) != self._fitted:
            used = {**answers, self._judge: mine[:n_used]} if n_used else answers
            self._team.install(self._team.fit(used, self._team.asked()))
            self._fitted = (n_used, n_others)
        found = self._team.choices(self._judge)
        return self._team.question(self._judge, found[0].pair) if found else (None, None)
