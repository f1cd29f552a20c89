"""The base of stopping rules: when they look, what they assume, and how they replay a finished reading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank_lab.screening.stopping.rates import MixedRate, RecallEstimate
from corank_lab.screening.stopping.urns import SamplePlan

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
    assumes: ClassVar[str]
    """What must hold for the statement of the rule, as one sentence."""
    evidence: ClassVar[Evidence] = "estimated"
    """Kind of the statement: estimated by a model, tested under an assumption about the order, or proved."""
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

    def advises(self, finds: Sequence[int], read: int, known: int) -> bool:
        """
        Return whether ranked reading may stop; if the rule needs a sample afterwards, whether sampling may begin.

        Advice comes at a look. It is withdrawn as soon as its condition fails, and can come again at a later look.
        """
        return read >= self.n or any(True for _ in self._advised(finds, read, known))

    def advised_since(self, finds: Sequence[int], read: int, known: int) -> int | None:
        """Return the number of records read when the present advice came, None without advice; see `advises`."""
        return min(self._advised(finds, read, known), default=None)

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
        """Estimate the recall, with the same heavy-tailed model for every rule; see `RateModel.estimate`."""
        return self.rates.estimate(finds, read, known, self.target)

    def stops_at(self, found: Flags, known: int = 1) -> int:
        """Return the number of records read when ranked reading may stop."""
        finds = np.flatnonzero(found) + 1
        for look in self.looks:
            if self.is_reached(finds[: np.searchsorted(finds, look, side="right")].tolist(), look, known):
                return look
        return len(found)

    def replay(self, found: Flags, rng: np.random.Generator) -> tuple[int, int]:
        """Apply the rule to a finished reading."""
        read = self.stops_at(found)
        return read, 1 + int(found[:read].sum())

    @property
    def looks(self) -> range:
        """Numbers of records read at which the rule decides. Each look may err, so there are few."""
        return range(max(10, int(0.02 * self.n)), self.n, max(1, int(0.01 * self.n)))

    @cached_property
    def rates(self) -> MixedRate:
        """The heavy-tailed model of the finds, from which recall is estimated."""
        return MixedRate(max(self.n, 1))
