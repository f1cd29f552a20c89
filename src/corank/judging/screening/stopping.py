"""
When to stop: what the finds so far say of those that are still unread, and a sample that proves it.

Finds are taken for a Poisson process over the order of reading whose rate falls: at place i of n it is in proportion to

    h(i) = (1 − ε) e^(−b (i/n)^c) / Σ + ε / n.

With b and c on a grid (equal prior), the number of relevant records among the unread is negative binomial for each of
them; their average says how probable the target is. Two such rules are offered, and one that assumes no model:

* ``"decline"``: c of .3 to 1 and ε = .02, a fiftieth of the relevant records spread evenly, which no ranking finds.
* ``"poisson"``, the cheap one: c = 1, ε = 0, asked to be 99 % sure because its model is too simple. Its misses end a
  few percent below the target.
* ``"sample"``: read as the cheap rule says, then a random sample of the unread on a plan that is fixed beforehand.
  Exact tests share the allowed error (half, a quarter, ...), so that the stated confidence holds whatever the ranking
  did, if every answer is right. Below a hundred relevant records it costs most of the reading.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln

from corank.errors import InputError, suggest_names

LEAST_FOUND = 5
"""Finds without which nothing is estimated."""
PLACES = 2000
"""Places that cumulated rates are tabulated at, at most; between them they are interpolated."""
GROWTH = 1.25
"""By how much each sample is larger than the last one."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """
    What is probably still unread.

    Attributes
    ----------
    recall : float
        Share of the relevant records that was found, its median.
    low, high : float
        The middle 95 % of it.
    expected : float
        Relevant records among the next 100 that are read.
    chance : float
        Probability that the target is reached.
    """

    recall: float
    low: float
    high: float
    expected: float
    chance: float


@dataclass(frozen=True, eq=False)
class Decline:
    """
    Rates that fall along the reading.

    n: number of records that are read in order, from first to last.
    shapes: values of c.
    slopes: values of b.
    background: ε.
    """

    n: int
    shapes: tuple[float, ...]
    slopes: Floats
    background: float

    def estimate(self, finds: Sequence[int], read: int, known: int, target: float) -> Estimate | None:
        """
        Estimate what is unread.

        finds: places of the relevant records that were read in order, from 1.
        read: number of records read in order.
        known: relevant records that were known beforehand.
        target: the recall that is wanted.
        Returns: None where too little was found.
        """
        if len(finds) < LEAST_FOUND:
            return None
        at_most, belief = self._missing(finds, read)
        most, found = self.n - read, len(finds) + known
        middle, low, high = (found / (found + _quantile(at_most, level, most)) for level in (0.5, 0.975, 0.025))
        soon = self._cumulated(min(read + 100, self.n)) / self._cumulated(read) - 1
        return Estimate(middle, low, high, float(len(finds) * belief @ soon), self.chance(finds, read, known, target))

    def chance(self, finds: Sequence[int], read: int, known: int, target: float) -> float:
        """Say how probable it is that the target is reached; 0 where too little was found. See `estimate`."""
        allowed = missing_allowed(len(finds) + known, target)
        if len(finds) < LEAST_FOUND or allowed >= self.n - read:
            return float(len(finds) >= LEAST_FOUND)
        return self._missing(finds, read)[0](allowed)

    def _missing(self, finds: Sequence[int], read: int) -> tuple[Callable[[int], float], Floats]:
        """
        Return the distribution of the number of relevant records among the unread, and the belief in each rate.

        Where a share of the finds is seen, the unseen ones are negative binomial, whose sum is a beta integral.
        """
        r, seen = len(finds), self._cumulated(read)
        evidence = self._log_rates(np.array(finds)).sum(axis=1) - r * np.log(seen)
        belief = np.exp(evidence - evidence.max())
        belief /= belief.sum()
        share = np.minimum(seen / self._cumulated(self.n), 1.0)
        return lambda missing: float(belief @ betainc(r, missing + 1, share)), belief

    @cached_property
    def _grid(self) -> tuple[Floats, Floats]:
        b, c = np.meshgrid(self.slopes, self.shapes)
        return b.ravel(), c.ravel()

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Places, and for each b and c the rates summed up to them."""
        begin = np.arange(min(self.n, PLACES // 2))  # where rates fall fast, place by place
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


RULES = ("decline", "poisson", "sample")
SLOPES = np.r_[0.0, np.geomspace(0.5, 200, 40)]


@dataclass(frozen=True)
class Rule:
    """
    When reading may stop.

    name {"decline", "poisson", "sample"}: as above.
    n: number of records that are read in order.
    target, confidence: the recall that is wanted, and how sure of it one must be.
    """

    name: str
    n: int
    target: float = 0.95
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.name not in RULES:
            raise InputError(f"rule is {self.name!r}; {suggest_names(self.name, RULES)}.")
        for name in ("target", "confidence"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise InputError(f"{name} is {getattr(self, name)!r}; pass a number above 0 and below 1, such as 0.95.")

    def estimate(self, finds: Sequence[int], read: int, known: int) -> Estimate | None:
        """Estimate what is unread after so many records; see `Decline.estimate`."""
        return self._careful.estimate(finds, read, known, self.target)

    def advises(self, finds: Sequence[int], read: int, known: int) -> bool:
        """
        Say whether reading may stop; ``"sample"`` says whether sampling may begin.

        finds, read, known: as in `Decline.estimate`; what came after the last look is not considered.
        """
        passed = len(range(self.looks.start, min(read, self.n) + 1, self.looks.step))
        looked = self.looks[min(passed, len(self.looks)) - 1] if passed and self.looks else 0
        if read >= self.n or not looked:
            return read >= self.n
        past = [place for place in finds if place <= looked]
        model, level = (self._careful, self.confidence)
        if self.name != "decline":
            model, level = self._cheap, 1 - (1 - self.confidence) / 5
        return model.chance(past, looked, known, self.target) >= level

    @property
    def looks(self) -> range:
        """Numbers of records read at which the rule is looked at; each look is a chance to err, so they are few."""
        return range(max(10, int(0.02 * self.n)), self.n, max(1, int(0.01 * self.n)))

    @cached_property
    def _careful(self) -> Decline:
        return Decline(max(self.n, 1), (0.3, 0.5, 0.7, 1.0), SLOPES, 0.02)

    @cached_property
    def _cheap(self) -> Decline:
        return Decline(max(self.n, 1), (1.0,), np.linspace(0, 60, 81), 0.0)


@dataclass(frozen=True)
class Plan:
    """
    A random sample of the unread that proves the target, or says that it is not reached.

    unread: records that were unread when it was planned.
    found: relevant records that were known then.
    """

    unread: int
    found: int
    target: float = 0.95
    confidence: float = 0.95

    @cached_property
    def sizes(self) -> list[int]:
        """Sample sizes after which is looked; the last one is everything."""
        error, missing = (1 - self.confidence) / 2, missing_allowed(self.found, self.target) + 1
        low, high = 1, self.unread
        while low < high:
            middle = (low + high) // 2
            if _at_most(0, self.unread, min(missing, self.unread), middle) <= error:
                high = middle
            else:
                low = middle + 1
        sizes = [low]
        while sizes[-1] < self.unread:
            sizes.append(min(math.ceil(GROWTH * sizes[-1]), self.unread))
        return sizes

    def proves(self, labels: Sequence[bool]) -> bool:
        """
        Say whether some look so far proved the target.

        labels: the answers to the sample so far, look by look.
        """
        if missing_allowed(self.found, self.target) >= self.unread:
            return True
        for look, size in enumerate(self.sizes):
            if size > len(labels):
                return False
            finds = int(np.count_nonzero(labels[:size]))
            # the fewest relevant records among the unread with which the target would be missed now
            missed = missing_allowed(self.found + finds, self.target) + finds + 1
            error = (1 - self.confidence) / 2 ** (look + 1)
            if missed > self.unread or _at_most(finds, self.unread, missed, size) <= error:
                return True
        return True


def missing_allowed(found: int, target: float) -> int:
    """
    Say how many relevant records may be missing at the target.

    >>> missing_allowed(95, 0.95), missing_allowed(18, 0.95)
    (5, 0)
    """
    return math.floor(found * (1 - target) / target + 1e-9)


def _at_most(finds: int, n: int, relevant: int, size: int) -> float:
    """Probability of at most so many finds in a random sample of `size` of n records, of which some are relevant."""
    k = np.arange(max(0, size - (n - relevant)), min(finds, relevant, size) + 1)
    chances = _log_choose(relevant, k) + _log_choose(n - relevant, size - k) - _log_choose(n, np.array(size))
    return min(float(np.exp(chances).sum()), 1.0)


def _log_choose(n: int, k: NDArray[np.int64]) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _quantile(at_most: Callable[[int], float], level: float, most: int) -> int:
    """The smallest number up to `most` of which at least `level` of the probability is no larger."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if at_most(middle) >= level else (middle + 1, high)
    return low
