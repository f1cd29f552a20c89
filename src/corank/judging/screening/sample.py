"""Sample: the random sample of the unread that a screening ends with, where its rule asks for a proof."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from corank.judging.screening.answers import Answers
from corank.judging.screening.stopping import Plan, Rule


@dataclass(frozen=True, eq=False)
class Sample:
    """
    Where a random sample stands, told by the answers alone, so that it goes on after a restart.

    answers: all answers so far; those that stood when sampling began, or that stand now, are not sampled.
    n: number of records.
    rule: gives target and confidence.
    seed: of the order.
    """

    answers: Answers
    n: int
    rule: Rule
    seed: int

    @cached_property
    def plan(self) -> Plan:
        """How many are read before each test."""
        before = self.answers.before_sample
        found = sum(self.answers.relevant[number] for number in before)
        return Plan(self.n - len(before), found, self.rule.target, self.rule.confidence)

    @cached_property
    def drawn(self) -> list[int]:
        """The unread records in a random order."""
        before = np.array(self.answers.before_sample, dtype=np.intp)
        rng = np.random.default_rng([self.seed, len(before)])
        return [int(number) for number in rng.permutation(np.setdiff1d(np.arange(self.n), before))]

    @cached_property
    def left(self) -> list[int]:
        """Records to be answered before the next test; none where the target is proved."""
        answered = self.answers.relevant
        for size in self.plan.sizes:
            if left := [number for number in self.drawn[:size] if number not in answered]:
                return [] if self.plan.proves([]) else left
            if self.plan.proves([answered[number] for number in self.drawn[:size]]):
                return []
        return []

    @property
    def next(self) -> int | None:
        """The record to be read next; of those put off, only where no other is left before the test."""
        return next((number for number in self.left if number not in self.answers.later), next(iter(self.left), None))
