"""
Stopping rules: estimate, test or prove from the finds so far that few relevant records are still unread.

A rule is a subclass of `StoppingRule` in this module with a `name`, its `summary`, the sentence `assumes` and the kind
of `evidence` ("estimated", "tested" or "proved"). Help texts, pages, replays and certificates find it by themselves.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError, suggest_names
from corank_lab.screening.stopping.rates import RateModel, RecallEstimate
from corank_lab.screening.stopping.urns import SamplePlan, p_by_betting, p_missed

DEFAULT_RULE = "agree"
"""Name of the default rule."""
RUN = 50
"""Length of a run of irrelevant records after which users commonly stop."""
REMOVED_RULES = ("knee", "safe", "qbcb", "decline", "poisson", "draws")
"""Rules of earlier versions that no longer exist; projects and certificates may name them."""
OTHERS = 0.15
"""Share of screenings of which the rule ``"agree"`` assumes no more than that the order is never worse than random."""

Flags = NDArray[np.bool_]
Evidence = Literal["estimated", "tested", "proved"]


@dataclass(frozen=True)
class StoppingRule(ABC):
    """
    When ranked reading may stop.

    n: number of records that are read in the order of the ranking.
    target: the recall to be reached.
    confidence: required probability that it is reached.
    """

    name: ClassVar[str]
    """Name in the registry."""
    summary: ClassVar[str]
    """One line for pages."""
    assumes: ClassVar[str]
    """What must hold for the statement of the rule, as one sentence."""
    evidence: ClassVar[Evidence] = "estimated"
    """Kind of the statement: estimated by a model, tested under an assumption about the order, or proved."""
    record: ClassVar[str] = ""
    """How often its advice was right in replays, as a sentence; empty for rules that test or prove."""
    confidence_by_default: ClassVar[float] = 0.95
    """Confidence if none is chosen."""
    needs_sample: ClassVar[bool] = False
    """Whether a random sample of the unread must confirm the target after ranked reading."""

    n: int
    target: float = 0.95
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name in ("target", "confidence"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise InputError(f"{name} is {getattr(self, name)!r}; pass a number above 0 and below 1, such as 0.95.")

    @abstractmethod
    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Decide at one look; parameters as in `corank_lab.screening.stopping.rates.RateModel.estimate`."""

    def reason(self, finds: Sequence[int], read: int, known: int) -> str:
        """Say by which figures the rule decides, in a clause."""
        return f"{read - (finds[-1] if finds else 0)} records in a row are irrelevant"

    def advises(self, finds: Sequence[int], read: int, known: int) -> bool:
        """
        Return whether ranked reading may stop; if the rule needs a sample afterwards, whether sampling may begin.

        Advice comes at a look. It is withdrawn as soon as its condition fails, and can come again at a later look.
        """
        return read >= self.n or any(True for _ in self._advised(finds, read, known))

    def advised_since(self, finds: Sequence[int], read: int, known: int) -> int | None:
        """Return the number of records read when the present advice came, None without advice; see `advises`."""
        return min(self._advised(finds, read, known), default=None)

    def withdrawn_at(self, finds: Sequence[int], read: int, known: int) -> int | None:
        """Return the last find that ended an advice, if no advice came since; at most five finds are looked at."""
        if self.advises(finds, read, known):
            return None
        for place in range(len(finds) - 1, max(len(finds) - 6, -1), -1):
            if self.advises(finds[:place], finds[place] - 1, known):
                return finds[place]
        return None

    def _advised(self, finds: Sequence[int], read: int, known: int) -> Iterator[int]:
        """Yield the looks since which the condition of the advice holds without a break, the last one first."""
        looks = range(self.looks.start, min(read, self.n - 1) + 1, self.looks.step)
        for place in sorted({*looks, *finds, read}, reverse=True):  # only a find makes the condition fail
            if not self.is_reached([find for find in finds if find <= place], place, known):
                return
            if place in looks:
                yield place

    def plan(self, unread: int, found: int) -> SamplePlan:
        """Return the sizes and tests of the random sample, if the rule needs one; parameters as in `SamplePlan`."""
        return SamplePlan(unread, found, self.target, self.confidence)

    def estimate(self, finds: Sequence[int], read: int, known: int) -> RecallEstimate | None:
        """Estimate the recall, with the same model for every rule; see `RateModel.estimate`."""
        return self.rates.estimate(finds, read, known, self.target)

    def stops_at(self, found: Flags, known: int = 1) -> int:
        """Return the number of records read when ranked reading may stop."""
        finds = np.flatnonzero(found) + 1
        for look in self.looks:
            if self.is_reached(finds[: np.searchsorted(finds, look, side="right")].tolist(), look, known):
                return look
        return len(found)

    def replay(self, found: Flags, rng: np.random.Generator) -> tuple[int, int]:
        """Apply the rule to a finished reading; return the numbers of records read and of relevant ones known."""
        read = self.stops_at(found)
        return read, 1 + int(found[:read].sum())

    @property
    def looks(self) -> range:
        """Numbers of records read at which the rule decides. Each look may err, so there are few."""
        return range(max(10, int(0.02 * self.n)), self.n, max(1, int(0.01 * self.n)))

    @cached_property
    def rates(self) -> RateModel:
        """The model of the finds."""
        return RateModel(max(self.n, 1))


class AgreeRule(StoppingRule):
    """
    Agreement of a model of the finds and of a sequential test, with a stated error for the whole screening.

    A share w = `OTHERS` of all screenings is assumed to follow no model. With the accepted error α = 1 − confidence,
    the rule stops when the model (`corank_lab.screening.stopping.rates.RateModel`) gives a missed target a probability
    of at most α / (2 (1 − w)), and the test by betting (`BettingRule`) a p-value of at most α / (2w). A posterior
    probability holds whenever one stops, on average over the prior of the model; the test holds at all moments
    together. So advice is wrong with probability at most (1 − w) α / (2 (1 − w)) + w α / (2w) = α. The prior and w are
    assumptions, measured in docs/experiments/screening.md.
    """

    name = "agree"
    summary = "A model and a sequential test agree"
    assumes = (
        "Every answer is right; in 85 of 100 screenings, finds become rarer like a power law or a stretched "
        "exponential, and in the others, the next record is never less likely to be relevant than a random unread one."
    )
    confidence_by_default = 0.8
    record = (
        "On 24 reviews, among them those it was chosen on, advice at the default confidence came before the target in "
        "none of 120 starts."
    )

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Run the test first, which is cheaper, then the model."""
        half = (1 - self.confidence) / 2
        return (
            OTHERS * p_by_betting(finds, read, self.n, known, self.target) <= half
            and (1 - OTHERS) * (1 - self.rates.probability(finds, read, known, self.target)) <= half
        )

    def reason(self, finds: Sequence[int], read: int, known: int) -> str:
        """Say the probability of the model and the p-value."""
        probability = self.rates.probability(finds, read, known, self.target)
        p = p_by_betting(finds, read, self.n, known, self.target)
        return (
            f"probability {probability:.3f} by the model, p = {p:.2g} by the sequential test, accepted error "
            f"{1 - self.confidence:.2g}"
        )


class HypergeometricRule(StoppingRule):
    """
    Exact hypergeometric test, with the last records read as if drawn at random (Callaghan and Müller-Hansen, 2020).

    The ranked quasi-sampling of their paper: the smallest p-value over all urns of the last records read must be below
    1 − confidence (`corank_lab.screening.stopping.urns.p_missed`).
    """

    name = "hypergeometric"
    summary = "An exact test on the ranking"
    assumes = (
        "Unread records are not likelier to be relevant than the last ones read, and choosing the urn and looking "
        "again and again does not matter."
    )
    evidence: ClassVar[Evidence] = "tested"

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Decide by the smallest p-value."""
        return p_missed(finds, read, self.n, known, self.target) < 1 - self.confidence

    def reason(self, finds: Sequence[int], read: int, known: int) -> str:
        """Say the p-value."""
        return f"p = {p_missed(finds, read, self.n, known, self.target):.2g} by the urn test"


class BettingRule(StoppingRule):
    """
    Sequential test by betting, valid however often it is looked at (`corank_lab.screening.stopping.urns`).

    It assumes nothing about the finds except that the order is never worse than random. That is weak, so nearly
    everything must be read where few records are relevant.
    """

    name = "betting"
    summary = "A test that holds however often it is looked at"
    assumes = "Every answer is right, and the next record is never less likely to be relevant than a random unread one."
    evidence: ClassVar[Evidence] = "tested"

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Compare the capital of the bets with one over the allowed error."""
        return p_by_betting(finds, read, self.n, known, self.target) <= 1 - self.confidence

    def reason(self, finds: Sequence[int], read: int, known: int) -> str:
        """Say the p-value."""
        return f"p = {p_by_betting(finds, read, self.n, known, self.target):.2g} by the sequential test"


class SampleRule(StoppingRule):
    """
    Proof by sampling: when the model is sure of the target, a random sample of the unread must confirm it.

    The plan of the sample is fixed beforehand. Exact tests share the allowed error (a half, a quarter, ...), so that
    the confidence holds for any ranking. With less than a hundred relevant records most records must be read.
    """

    name = "sample"
    summary = "A proof by a random sample"
    assumes = "Every answer is right, and the sample is drawn at random."
    evidence: ClassVar[Evidence] = "proved"
    needs_sample: ClassVar[bool] = True

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Decide by the model whether sampling may begin."""
        return self.rates.probability(finds, read, known, self.target) >= BEGIN

    def replay(self, found: Flags, rng: np.random.Generator) -> tuple[int, int]:
        """Read in the order until sampling may begin, then sample; see `StoppingRule.replay`."""
        read = self.stops_at(found)
        n_known, rest = 1 + int(found[:read].sum()), found[read:]
        labels = rest[rng.permutation(len(rest))].tolist()
        size = self.plan(len(rest), n_known).proved_at(labels) or 0
        return read + size, n_known + sum(labels[:size])


BEGIN = 0.9
"""Probability of the model at which random sampling begins; it affects the cost of the proof, not its validity."""


class ConsecutiveRule(StoppingRule):
    """
    Fifty irrelevant records in a row.

    The most common rule of thumb. It ignores target and confidence, and reached a recall of 95 % in half of the replays
    of 24 reviews.
    """

    name = "consecutive"
    summary = "Fifty irrelevant records in a row; missed 95 % recall in 49 % of 240 replays"
    assumes = "No relevant record comes after fifty irrelevant ones in a row."

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Compare the run since the last find with fifty."""
        return read - (finds[-1] if finds else 0) >= RUN

    @property
    def looks(self) -> range:
        """After every record."""
        return range(1, self.n)


STOPPING_RULES: dict[str, type[StoppingRule]] = {rule.name: rule for rule in StoppingRule.__subclasses__()}
"""Stopping rules by name."""


def stopping_rule(name: str, n: int, target: float = 0.95, confidence: float | None = None) -> StoppingRule:
    """Make a stopping rule by its name, with its own confidence if none is given; see `StoppingRule`."""
    if name in REMOVED_RULES:
        raise InputError(removed_sentence(name))
    if name not in STOPPING_RULES:
        raise InputError(f"rule is {name!r}; {suggest_names(name, list(STOPPING_RULES))}.")
    rule = STOPPING_RULES[name]
    return rule(n, target, rule.confidence_by_default if confidence is None else confidence)


def read_confidence(text: str) -> float:
    """
    Return the confidence that a text states: a number of at least one half, or the error that a user accepts.

    >>> read_confidence("1 in 20"), read_confidence("0.9"), read_confidence("5 %")
    (0.95, 0.9, 0.95)
    """
    odds = re.fullmatch(r"\s*(\d{1,9})\s*(?:in|of|/)\s*(\d{1,9})\s*", text)
    share = re.fullmatch(r"\s*(\d*\.?\d+)\s*(%?)\s*", text)
    value = 0.0
    if odds and int(odds[2]):
        value = 1 - int(odds[1]) / int(odds[2])
    elif share:
        value = float(share[1]) / (100 if share[2] else 1)
        value = value if value >= 0.5 else 1 - value
    if not 0.5 <= value < 1.0:
        raise InputError(f"the accepted error is {text!r}; write it as '1 in 20', or a confidence such as 0.95.")
    return round(value, 12)


def removed_sentence(name: str) -> str:
    """Return what to do about a rule that no longer exists."""
    names = ", ".join(STOPPING_RULES)
    return f"the stopping rule {name!r} was removed; choose one of {names}, such as {DEFAULT_RULE!r}."
