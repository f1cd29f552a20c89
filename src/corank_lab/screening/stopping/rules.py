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
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError, suggest_names
from corank_lab.screening.stopping.rates import RateModel, RecallEstimate
from corank_lab.screening.stopping.urns import SamplePlan, p_by_betting, p_missed, percent

DEFAULT_RULE, DEFAULT_CONFIDENCE = "agree", 0.95
"""Name of the default rule, and the confidence of every rule if none is chosen."""
RUN = 50
"""Length of a run of irrelevant records after which users commonly stop."""
REMOVED_RULES = ("knee", "safe", "qbcb", "decline", "poisson", "draws")
"""Rules of earlier versions that no longer exist; projects and certificates may name them."""
OTHERS = 0.15
"""Share of screenings of which the rule ``"agree"`` assumes no more than that the order is never worse than random."""


class Measured(NamedTuple):
    """What the default rule costs and holds with a confidence; measured by ``experiments screening-stopping``."""

    confidence: float
    read: float  # share of the records of 24 real reviews that is read
    worst_group: float  # share of the screenings that reach the target, in the worst group of reviews
    worst_review: float  # the same of the worst review


TRADE = (
    Measured(0.8, 0.779, 0.85, 0.6), Measured(0.9, 0.854, 0.933, 0.8), Measured(0.95, 0.892, 0.975, 0.9),
    Measured(0.98, 0.926, 0.983, 0.9),
)  # fmt: skip
"""Confidence against reading, with the default rule."""

Flags = NDArray[np.bool_]
Evidence = Literal["estimated", "tested", "proved"]


@dataclass(frozen=True)
class StoppingRule(ABC):
    """When ranked reading may stop."""

    name: ClassVar[str]
    """Name in the registry."""
    summary: ClassVar[str]
    """One line for pages."""
    assumes: ClassVar[str]
    """What must hold for the statement of the rule, as one sentence."""
    evidence: ClassVar[Evidence] = "estimated"
    """Kind of the statement: estimated by a model, tested under an assumption about the order, or proved."""
    needs_sample: ClassVar[bool] = False
    """Whether a random sample of the unread must confirm the target after ranked reading."""

    n: int  # number of records that are read in the order of the ranking
    target: float = 0.95  # recall to be reached
    confidence: float = DEFAULT_CONFIDENCE  # required probability that it is reached

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

    @property
    def record(self) -> str:
        """How often its advice was right in replays, in sentences; empty if that was not measured."""
        return ""

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
        "Every answer is right; in 85 of 100 screenings, finds become rarer along a power law or a stretched "
        "exponential, each as likely as the prior of the model says, and in the others, the next record is never less "
        "likely to be relevant than a random unread one."
    )

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Run the test first, which is cheaper, then the model."""
        half = (1 - self.confidence) / 2
        return (
            OTHERS * p_by_betting(finds, read, self.n, known, self.target) <= half
            and (1 - OTHERS) * (1 - self.rates.probability(finds, read, known, self.target)) <= half
        )

    def reason(self, finds: Sequence[int], read: int, known: int) -> str:
        probability = self.rates.probability(finds, read, known, self.target)
        p = p_by_betting(finds, read, self.n, known, self.target)
        return f"probability {probability:.3f} by the model, p = {p:.2g} by the sequential test"

    @property
    def record(self) -> str:
        """State the accepted error, and what held in the worst group of reviews with at most this confidence."""
        error = f"Accepted error: {accepted_error(self.confidence)}, over many screenings."
        levels = [level for level in TRADE if level.confidence <= self.confidence + 1e-9]
        if not levels or self.target != StoppingRule.target:
            return error
        level = levels[-1]
        given = "" if level.confidence > self.confidence - 1e-9 else f" with {accepted_error(level.confidence)}"
        group, review = percent(level.worst_group), percent(level.worst_review)
        return (
            f"{error} Measured{given}: such advice was right in {group} of the screenings of the worst of ten groups "
            f"of reviews, and in {review} of those of the worst review."
        )


class HypergeometricRule(StoppingRule):
    """
    Exact hypergeometric test, with the last records read as if drawn at random (Callaghan and Müller-Hansen, 2020).

    The ranked quasi-sampling of their paper: the smallest p-value over all urns of the last records read must be below
    1 − confidence (`corank_lab.screening.stopping.urns.p_missed`). No error is derived for the whole screening.
    """

    name = "hypergeometric"
    summary = "An exact test on the ranking"
    assumes = (
        "Every answer is right, unread records are not likelier to be relevant than the last ones read, and the error "
        "of one test is not raised by choosing the smallest of many p-values, nor by looking again and again."
    )

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        return p_missed(finds, read, self.n, known, self.target) < 1 - self.confidence

    def reason(self, finds: Sequence[int], read: int, known: int) -> str:
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
        return p_by_betting(finds, read, self.n, known, self.target) <= 1 - self.confidence

    def reason(self, finds: Sequence[int], read: int, known: int) -> str:
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
        return self.rates.probability(finds, read, known, self.target) >= BEGIN

    def replay(self, found: Flags, rng: np.random.Generator) -> tuple[int, int]:
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
    assumes = "Every answer is right, and no relevant record comes after fifty irrelevant ones in a row."

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        return read - (finds[-1] if finds else 0) >= RUN

    @property
    def looks(self) -> range:
        return range(1, self.n)


STOPPING_RULES: dict[str, type[StoppingRule]] = {rule.name: rule for rule in StoppingRule.__subclasses__()}
"""Stopping rules by name."""


def stopping_rule(name: str, n: int, target: float = 0.95, confidence: float = DEFAULT_CONFIDENCE) -> StoppingRule:
    """Make a stopping rule by its name; see `StoppingRule`."""
    if name in REMOVED_RULES:
        raise InputError(removed_sentence(name))
    if name not in STOPPING_RULES:
        raise InputError(f"rule is {name!r}; {suggest_names(name, list(STOPPING_RULES))}.")
    return STOPPING_RULES[name](n, target, confidence)


def accepted_error(confidence: float) -> str:
    """
    Return the error that a confidence accepts, in words.

    >>> accepted_error(0.95), accepted_error(0.85)
    ('1 in 20', '15 in 100')
    """
    error = 1 - confidence
    odds = round(1 / error)
    return f"1 in {odds}" if abs(odds * error - 1) < 1e-6 else f"{100 * error:.3g} in 100"


def trade_words() -> str:
    """Return what each confidence of the default rule costs, in a sentence."""
    levels = (
        f"{100 * level.confidence:g} accepts an error of {accepted_error(level.confidence)} and reads "
        f"{100 * level.read:.0f} %"
        for level in TRADE
    )
    return f"On 24 reviews, {'; '.join(levels)} of the records."


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
