"""
Stopping rules: estimate, test or prove from the finds so far that few relevant records are still unread.

A rule is a subclass of `StoppingRule` with a `name`, the sentence `assumes` and the kind of `evidence` ("estimated",
"tested" or "proved"). To add one, write a subclass and list it in `STOPPING_RULES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from corank.errors import InputError, suggest_names
from corank_lab.screening.stopping.rates import SHAPES, SLOPES, DecliningRate, RecallEstimate
from corank_lab.screening.stopping.rule import Evidence, StoppingRule
from corank_lab.screening.stopping.sampling import DrawsRule, RandomSample, SampleRule, SamplingRule
from corank_lab.screening.stopping.urns import SamplePlan, missing_allowed, p_missed

__all__ = [
    "DEFAULT_RULE",
    "STOPPING_RULES",
    "RandomSample",
    "RecallEstimate",
    "SamplePlan",
    "SamplingRule",
    "StoppingRule",
    "missing_allowed",
    "stopping_rule",
]

DEFAULT_RULE = "agree"
"""Name of the default rule."""
RUN = 50
"""Length of a run of irrelevant records after which users commonly stop."""
REMOVED_RULES = ("knee", "safe", "qbcb")
"""Rules of version 0.2 that no longer exist; projects and certificates may name them."""
AGREEMENT = 0.25
"""Largest p-value with which the hypergeometric test agrees with the model in the rule ``"agree"``."""


class AgreeRule(StoppingRule):
    """
    Agreement of a heavy-tailed model and an exact test.

    The model (`corank_lab.screening.stopping.rates.MixedRate`) must be as sure as the confidence, and the ranked
    hypergeometric test (`HypergeometricRule`) must not contradict it: p ≤ .25. The two err on different reviews. The
    model stops too early if few relevant records are far apart; then the test demands more reading. The test alone
    reads much more where many relevant records were found early.
    """

    name = "agree"
    assumes = (
        "Finds become rarer steadily, like a power law or a stretched exponential, and unread records are not likelier "
        "to be relevant than the last ones read."
    )

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Ask the model first, then the test."""
        return (
            self.rates.probability(finds, read, known, self.target) >= self.confidence
            and p_missed(finds, read, self.n, known, self.target) <= AGREEMENT
        )


class DeclineRule(StoppingRule):
    """
    Stretched exponentials: the rate of finds declines fast, and 2 % of the relevant records lie anywhere.

    c ranges from .3 to 1, and ε = .02: a fiftieth of the relevant records is spread evenly, where no ranking finds it.

    The confidence holds only if finds follow the model. On the review ProtonPumpInhibitors (1,333 records, 51 relevant;
    Cohen et al., 2006) they do not: in most starts the rule stops at a recall of .78, after .31 of the records.
    """

    name = "decline"
    assumes = "Finds become rarer like a stretched exponential, and a fiftieth of the relevant records lies anywhere."

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Decide by the model."""
        return self._decline.probability(finds, read, known, self.target) >= self.confidence

    @cached_property
    def _decline(self) -> DecliningRate:
        return DecliningRate(max(self.n, 1), SHAPES, SLOPES, 0.02)


class PoissonRule(StoppingRule):
    """
    Cheap model: the rate declines exponentially.

    c = 1 and ε = 0. This model is too simple, so it must be five times as sure (99 % for a confidence of 95 %). When it
    misses the target, it often ends a few percent below.
    """

    name = "poisson"
    assumes = "Finds become rarer exponentially, and no relevant record lies far behind the others."

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Decide by the cheap model."""
        return self._cheap.probability(finds, read, known, self.target) >= 1 - (1 - self.confidence) / 5

    @cached_property
    def _cheap(self) -> DecliningRate:
        return DecliningRate(max(self.n, 1), (1.0,), np.linspace(0, 60, 81), 0.0)


class HypergeometricRule(StoppingRule):
    """
    Exact hypergeometric test, with the last records read as if drawn at random (Callaghan and Müller-Hansen, 2020).

    The ranked quasi-sampling of their paper: the smallest p-value over all urns of the last records read must be below
    1 − confidence (`corank_lab.screening.stopping.urns.p_missed`).
    """

    name = "hypergeometric"
    assumes = "Unread records are not likelier to be relevant than the last ones read."
    evidence: ClassVar[Evidence] = "tested"

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Decide by the smallest p-value."""
        return p_missed(finds, read, self.n, known, self.target) < 1 - self.confidence


class ConsecutiveRule(StoppingRule):
    """
    Fifty irrelevant records in a row.

    The most common rule of thumb. It ignores target and confidence, and reached a recall of 95 % in half of the replays
    of 24 reviews.
    """

    name = "consecutive"
    assumes = "No relevant record comes after fifty irrelevant ones in a row."

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Compare the run since the last find with fifty."""
        return read - (finds[-1] if finds else 0) >= RUN

    @property
    def looks(self) -> range:
        """After every record."""
        return range(1, self.n)


STOPPING_RULES: dict[str, type[StoppingRule]] = {
    rule.name: rule
    for rule in (AgreeRule, DeclineRule, PoissonRule, HypergeometricRule, DrawsRule, SampleRule, ConsecutiveRule)
}
"""Stopping rules by name."""


def stopping_rule(name: str, n: int, target: float = 0.95, confidence: float = 0.95) -> StoppingRule:
    """Make a stopping rule by its name; see `StoppingRule`."""
    if name in REMOVED_RULES:
        raise InputError(removed_sentence(name))
    if name not in STOPPING_RULES:
        raise InputError(f"rule is {name!r}; {suggest_names(name, list(STOPPING_RULES))}.")
    return STOPPING_RULES[name](n, target, confidence)


def removed_sentence(name: str) -> str:
    """Return what to do about a rule that no longer exists."""
    names = ", ".join(STOPPING_RULES)
    return f"the stopping rule {name!r} of corank 0.2 was removed; choose one of {names}, such as {DEFAULT_RULE!r}."
