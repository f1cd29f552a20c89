"""
Random samples as proof: sizes and tests that are fixed beforehand, and the sample of a session.

A sample drawn after the ranked reading is tested at several sizes. The allowed error α = 1 − confidence is shared: the
test at look i (from 0) may err with probability α/2^(i+1), so that by the union bound all tests together err with
probability at most α, for any ranking and any number of relevant records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from corank_lab.screening.stopping.rules import StoppingRule
from corank_lab.screening.stopping.urns import SamplePlan


class SampledAnswers(Protocol):
    """Answers to records by number, such as `corank_lab.screening.answers.ScreeningAnswers`."""

    @property
    def relevant(self) -> Mapping[int, bool]:
        """The answer to each record."""

    @property
    def chosen_by(self) -> Mapping[int, str]:
        """How each record was chosen, in the order of answering."""

    @property
    def later(self) -> Mapping[int, None]:
        """Postponed records."""

    @property
    def before_sample(self) -> Sequence[int]:
        """Records answered before random sampling began."""


@dataclass(frozen=True, eq=False)
class RandomSample:
    """State of a random sample. It follows from the answers alone, so that a later session continues it."""

    answers: SampledAnswers  # all answers so far; records answered before sampling are not sampled
    n: int  # number of records
    rule: StoppingRule  # gives the plan
    seed: int  # random seed of the order

    @cached_property
    def plan(self) -> SamplePlan:
        """Sizes and tests."""
        before = self.answers.before_sample
        result = sum(self.answers.relevant[number] for number in before)
        return self.rule.plan(self.n - len(before), result)

    @cached_property
    def drawn(self) -> list[int]:
        """The unread records in random order."""
        return draw_order(self.n, self.answers.before_sample, self.seed)

    @cached_property
    def labels(self) -> list[bool]:
        """The answers to the sample, up to the first record without one."""
        answered = self.answers.relevant
        end = next((i for i, number in enumerate(self.drawn) if number not in answered), len(self.drawn))
        return [answered[number] for number in self.drawn[:end]]

    @cached_property
    def left(self) -> list[int]:
        """Records to answer before the next test; none if the target is proved."""
        if self.plan.proves(self.labels):
            return []
        size = next(size for size in self.plan.sizes if size > len(self.labels))
        return [number for number in self.drawn[:size] if number not in self.answers.relevant]

    def lines(self) -> tuple[str, ...]:
        """Return what the sample proves or tests so far, in a sentence."""
        size = next((size for size in self.plan.sizes if size > len(self.labels)), len(self.drawn))
        more = "" if not self.left else f" The next test is after {size - len(self.labels)} more random records."
        if len(self.labels) < self.plan.sizes[0] and self.left:
            return (f"Proved: nothing yet.{more}",)
        unread, finds = len(self.drawn) - len(self.labels), sum(self.labels)
        most = self.plan.most(self.labels)
        elusion = (
            f"Elusion: {finds} of {len(self.labels)} random unread records are relevant; at "
            f"{percent(self.rule.confidence)} confidence at most {most} of {self.plan.unread} "
            f"({100 * most / self.plan.unread:.2g} %) were."
        )
        return (f"{proof_sentence(self.plan.bound(self.labels), unread, self.rule.confidence)}{more}", elusion)

    @property
    def next(self) -> int | None:
        """The record to read next; a postponed one only if no other is left before the test."""
        return next((number for number in self.left if number not in self.answers.later), next(iter(self.left), None))


def proof_sentence(bound: float, unread: int, confidence: float) -> str:
    """State a lower bound of the recall; 100 % is written only if every record is read."""
    sure = f"Proved at {percent(confidence)} confidence"
    if bound >= 1.0 and unread:
        return f"{sure}: no unread record is relevant."
    return f"{sure}: at least {percent(bound)} of the relevant records are found."


def percent(share: float) -> str:
    """Return a share as a percentage, rounded down, so that 100 % is written for all only."""
    return f"{int(share * 1000 + 1e-6) / 10:g} %"


def draw_order(n: int, before: Sequence[int], seed: int) -> list[int]:
    """Draw the order of a random sample."""
    rng = np.random.default_rng([seed, len(before)])
    return [int(number) for number in rng.permutation(np.setdiff1d(np.arange(n), np.array(before, dtype=np.intp)))]
