"""
Stopping rules: estimate from the finds so far how many relevant records are still unread.

Finds are modelled as a Poisson process over the order of reading, with a declining rate. At position i of n it is
proportional to

    h(i) = (1 − ε) e^(−b (i/n)^c) / Σ + ε / n.

b and c lie on a grid with a uniform prior. For each of them the number of relevant records among the unread is negative
binomial; the mixture gives the probability that the target recall is reached. To add a rule, write a subclass of
`StoppingRule` and list it in `STOPPING_RULES`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln

from corank.errors import InputError, suggest_names
from corank.judging.screening.answers import ScreeningAnswers

MIN_FOUND = 5
"""Number of finds below which no estimate is made."""
PLACES = 2000
"""Maximum number of positions at which cumulated rates are tabulated; they are interpolated in between."""
GROWTH = 1.25
"""Ratio of successive sample sizes."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class RecallEstimate:
    """
    Estimate of the recall reached so far.

    Attributes
    ----------
    recall : float
        Posterior median of the recall.
    low, high : float
        Central 95 % interval of the recall.
    expected : float
        Expected number of relevant records among the next 100.
    probability : float
        Probability that the target is reached.
    """

    recall: float
    low: float
    high: float
    expected: float
    probability: float


@dataclass(frozen=True, eq=False)
class DecliningRate:
    """
    Poisson process with a declining rate.

    n: number of records that are read in the order of the ranking.
    shapes: values of c.
    slopes: values of b.
    background: ε.
    """

    n: int
    shapes: tuple[float, ...]
    slopes: Floats
    background: float

    def estimate(self, finds: Sequence[int], read: int, known: int, target: float) -> RecallEstimate | None:
        """
        Estimate the recall.

        finds: positions of the relevant records in the order of reading, from 1.
        read: number of records read.
        known: number of relevant records known beforehand.
        target: the recall to be reached.
        Returns: None with fewer than `MIN_FOUND` finds.
        """
        if len(finds) < MIN_FOUND:
            return None
        cdf, posterior = self._missing_cdf(finds, read)
        n_unread, found = self.n - read, len(finds) + known
        median, low, high = (found / (found + _quantile(cdf, level, n_unread)) for level in (0.5, 0.975, 0.025))
        soon = self._cumulated(min(read + 100, self.n)) / self._cumulated(read) - 1
        probability = self.probability(finds, read, known, target)
        return RecallEstimate(median, low, high, float(len(finds) * posterior @ soon), probability)

    def probability(self, finds: Sequence[int], read: int, known: int, target: float) -> float:
        """Return the probability that the target is reached; 0 with fewer than `MIN_FOUND` finds."""
        allowed = missing_allowed(len(finds) + known, target)
        if len(finds) < MIN_FOUND or allowed >= self.n - read:
            return float(len(finds) >= MIN_FOUND)
        return self._missing_cdf(finds, read)[0](allowed)

    def _missing_cdf(self, finds: Sequence[int], read: int) -> tuple[Callable[[int], float], Floats]:
        """
        Return the distribution function of the number of relevant records among the unread, and the posterior of the
        rates. Given the share of the rate that was read, that number is negative binomial; its sum is a beta integral.
        """
        r, mass_read = len(finds), self._cumulated(read)
        evidence = self._log_rates(np.array(finds)).sum(axis=1) - r * np.log(mass_read)
        posterior = np.exp(evidence - evidence.max())
        posterior /= posterior.sum()
        share = np.minimum(mass_read / self._cumulated(self.n), 1.0)
        return lambda missing: float(posterior @ betainc(r, missing + 1, share)), posterior

    @cached_property
    def _grid(self) -> tuple[Floats, Floats]:
        b, c = np.meshgrid(self.slopes, self.shapes)
        return b.ravel(), c.ravel()

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Positions, and for each b and c the cumulated rate up to them."""
        begin = np.arange(min(self.n, PLACES // 2))  # every position where rates decline fast
        edges = np.unique(np.r_[begin, np.linspace(len(begin), self.n, min(self.n, PLACES) + 1).round()])
        middles, widths = (edges[1:] + edges[:-1] + 1) / 2, np.diff(edges)
        b, c = self._grid
        falling = np.exp(-b[:, None] * (middles / self.n) ** c[:, None]) * widths
        return edges, np.hstack([np.zeros((len(b), 1)), falling.cumsum(axis=1)])

    def _cumulated(self, place: int) -> Floats:
        edges, sums = self._table
        at = min(int(np.searchsorted(edges, place)), len(edges) - 1)
        before = max(at - 1, 0)
        part = (place - edges[before]) / (edges[at] - edges[before]) if at else 0.0
        falling = (1 - part) * sums[:, before] + part * sums[:, at]
        return np.asarray((1 - self.background) * falling / sums[:, -1] + self.background * place / self.n)

    def _log_rates(self, places: NDArray[np.intp]) -> Floats:
        b, c = self._grid
        falling = np.exp(-b[:, None] * (places / self.n) ** c[:, None]) / self._table[1][:, -1:]
        return np.log(np.maximum((1 - self.background) * falling + self.background / self.n, 1e-300))


@dataclass(frozen=True)
class StoppingRule(ABC):
    """
    When ranked reading may stop.

    n: number of records that are read in the order of the ranking.
    target: the recall to be reached.
    confidence: required probability that it is reached.
    """

    needs_sample: ClassVar[bool] = False
    """Whether a random sample of the unread must confirm the target."""

    n: int
    target: float = 0.95
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name in ("target", "confidence"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise InputError(f"{name} is {getattr(self, name)!r}; pass a number above 0 and below 1, such as 0.95.")

    @abstractmethod
    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Decide at one look; parameters as in `DecliningRate.estimate`."""

    def advises(self, finds: Sequence[int], read: int, known: int) -> bool:
        """
        Return whether ranked reading may stop; if the rule needs a sample, whether sampling may begin.

        finds, read, known: as in `DecliningRate.estimate`; finds after the last look are ignored.
        """
        n_looks = len(range(self.looks.start, min(read, self.n) + 1, self.looks.step))
        look = self.looks[min(n_looks, len(self.looks)) - 1] if n_looks and self.looks else 0
        if read >= self.n or not look:
            return read >= self.n
        return self.is_reached([place for place in finds if place <= look], look, known)

    def estimate(self, finds: Sequence[int], read: int, known: int) -> RecallEstimate | None:
        """Estimate the recall, with the careful model for every rule; see `DecliningRate.estimate`."""
        return self._careful.estimate(finds, read, known, self.target)

    def replay(self, found: Flags, rng: np.random.Generator) -> tuple[int, int]:
        """
        Apply the rule to a finished reading.

        found: whether each record is relevant, in the order of reading; one more relevant record was known beforehand.
        rng: draws the sample, if the rule needs one.
        Returns: the number of records read, and the number of relevant ones known then.
        """
        finds = (np.flatnonzero(found) + 1).tolist()
        stops = (look for look in self.looks if self.advises([place for place in finds if place <= look], look, 1))
        read = next(stops, len(found))
        n_known = 1 + int(found[:read].sum())
        if not self.needs_sample:
            return read, n_known
        rest = found[read:]
        labels = rest[rng.permutation(len(rest))].tolist()
        plan = SamplePlan(len(rest), n_known, self.target, self.confidence)
        size = next(size for size in [0, *plan.sizes] if plan.proves(labels[:size]))
        return read + size, n_known + sum(labels[:size])

    @property
    def looks(self) -> range:
        """Numbers of records read at which the rule decides. Each look may err, so there are few."""
        return range(max(10, int(0.02 * self.n)), self.n, max(1, int(0.01 * self.n)))

    @cached_property
    def _careful(self) -> DecliningRate:
        return DecliningRate(max(self.n, 1), (0.3, 0.5, 0.7, 1.0), np.r_[0.0, np.geomspace(0.5, 200, 40)], 0.02)


class DeclineRule(StoppingRule):
    """
    Careful model: the rate declines like a stretched exponential, and 2 % of the relevant records lie anywhere.

    c ranges from .3 to 1, and ε = .02: a fiftieth of the relevant records is spread evenly, where no ranking finds it.

    The confidence holds only if finds follow the model. On the review ProtonPumpInhibitors (1,333 records, 51 relevant;
    Cohen et al., 2006) they do not: in two of three starts the rule stops at a recall of .78, after .31 of the records.
    """

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Decide by the careful model."""
        return self._careful.probability(finds, read, known, self.target) >= self.confidence


class PoissonRule(StoppingRule):
    """
    Cheap model: the rate declines exponentially.

    c = 1 and ε = 0. This model is too simple, so it must be five times as sure (99 % for a confidence of 95 %). When it
    misses the target, it ends a few percent below.
    """

    def is_reached(self, finds: Sequence[int], read: int, known: int) -> bool:
        """Decide by the cheap model."""
        return self._cheap.probability(finds, read, known, self.target) >= 1 - (1 - self.confidence) / 5

    @cached_property
    def _cheap(self) -> DecliningRate:
        return DecliningRate(max(self.n, 1), (1.0,), np.linspace(0, 60, 81), 0.0)


class SampleRule(PoissonRule):
    """
    Proof by sampling: when the cheap model would stop, a random sample of the unread must confirm the target.

    The plan of the sample is fixed beforehand. Exact tests share the allowed error (a half, a quarter, ...), so that
    the confidence holds for any ranking, if every answer is right. With less than a hundred relevant records most
    records must be read.
    """

    needs_sample = True


STOPPING_RULES: dict[str, type[StoppingRule]] = {"decline": DeclineRule, "poisson": PoissonRule, "sample": SampleRule}
"""Stopping rules by name."""


def stopping_rule(name: str, n: int, target: float = 0.95, confidence: float = 0.95) -> StoppingRule:
    """Make a stopping rule by its name; see `StoppingRule`."""
    if name not in STOPPING_RULES:
        raise InputError(f"rule is {name!r}; {suggest_names(name, list(STOPPING_RULES))}.")
    return STOPPING_RULES[name](n, target, confidence)


@dataclass(frozen=True)
class SamplePlan:
    """
    Sizes and tests of a random sample of the unread records.

    unread: number of unread records when the plan is made.
    found: number of relevant records known then.
    target, confidence: see `StoppingRule`.
    """

    unread: int
    found: int
    target: float = 0.95
    confidence: float = 0.95

    @cached_property
    def sizes(self) -> list[int]:
        """Sample sizes at which a test is made; the last one is all unread records."""
        error, missing = (1 - self.confidence) / 2, missing_allowed(self.found, self.target) + 1
        low, high = 1, self.unread
        while low < high:
            middle = (low + high) // 2
            if _hypergeometric_cdf(0, self.unread, min(missing, self.unread), middle) <= error:
                high = middle
            else:
                low = middle + 1
        sizes = [low]
        while sizes[-1] < self.unread:
            sizes.append(min(math.ceil(GROWTH * sizes[-1]), self.unread))
        return sizes

    def proves(self, labels: Sequence[bool]) -> bool:
        """
        Return whether one of the tests so far proved the target.

        labels: the answers to the sample so far, in the order of the sample.
        """
        if missing_allowed(self.found, self.target) >= self.unread:
            return True
        for look, size in enumerate(self.sizes):
            if size > len(labels):
                return False
            finds = int(np.count_nonzero(labels[:size]))
            # fewest relevant records among the unread for which the target would be missed now
            missed = missing_allowed(self.found + finds, self.target) + finds + 1
            error = (1 - self.confidence) / 2 ** (look + 1)
            if missed > self.unread or _hypergeometric_cdf(finds, self.unread, missed, size) <= error:
                return True
        return True


@dataclass(frozen=True, eq=False)
class RandomSample:
    """
    State of a random sample. It follows from the answers alone, so that a later session continues it.

    answers: all answers so far; records answered before sampling are not sampled.
    n: number of records.
    rule: gives target and confidence.
    seed: random seed of the order.
    """

    answers: ScreeningAnswers
    n: int
    rule: StoppingRule
    seed: int

    @cached_property
    def plan(self) -> SamplePlan:
        """Sizes and tests."""
        before = self.answers.before_sample
        found = sum(self.answers.relevant[number] for number in before)
        return SamplePlan(self.n - len(before), found, self.rule.target, self.rule.confidence)

    @cached_property
    def drawn(self) -> list[int]:
        """The unread records in random order."""
        before = np.array(self.answers.before_sample, dtype=np.intp)
        rng = np.random.default_rng([self.seed, len(before)])
        return [int(number) for number in rng.permutation(np.setdiff1d(np.arange(self.n), before))]

    @cached_property
    def left(self) -> list[int]:
        """Records to answer before the next test; none if the target is proved."""
        answered = self.answers.relevant
        for size in self.plan.sizes:
            if left := [number for number in self.drawn[:size] if number not in answered]:
                return [] if self.plan.proves([]) else left
            if self.plan.proves([answered[number] for number in self.drawn[:size]]):
                return []
        return []

    @property
    def next(self) -> int | None:
        """The record to read next; a postponed one only if no other is left before the test."""
        return next((number for number in self.left if number not in self.answers.later), next(iter(self.left), None))


def missing_allowed(found: int, target: float) -> int:
    """
    Return how many relevant records may be missing at the target.

    >>> missing_allowed(95, 0.95), missing_allowed(18, 0.95)
    (5, 0)
    """
    return math.floor(found * (1 - target) / target + 1e-9)


def _hypergeometric_cdf(finds: int, n: int, relevant: int, size: int) -> float:
    """Probability of at most `finds` relevant records in a random sample of `size` of n records."""
    k = np.arange(max(0, size - (n - relevant)), min(finds, relevant, size) + 1)
    chances = _log_choose(relevant, k) + _log_choose(n - relevant, size - k) - _log_choose(n, np.array(size))
    return min(float(np.exp(chances).sum()), 1.0)


def _log_choose(n: int, k: NDArray[np.int64]) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _quantile(cdf: Callable[[int], float], level: float, n_unread: int) -> int:
    """The smallest number up to `n_unread` whose probability of not being exceeded is at least `level`."""
    low, high = 0, n_unread
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if cdf(middle) >= level else (middle + 1, high)
    return low
