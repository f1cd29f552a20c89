"""
Tests of recall: a sequential test by betting, and records as balls in an urn.

**Betting.** The hypothesis is that the target is missed: that at least T relevant records exist, more than the finds so
far allow. With u unread records, of which k would then be relevant, suppose only that the order is never worse than
random: the next record is relevant with probability at least p = k/u. Before each record a bet q ≤ p is placed, from
earlier answers alone, and the capital is multiplied by q/p if the record is relevant, else by (1 − q)/(1 − p). Under
the hypothesis its expectation never grows, whatever the bets, so that by Ville's inequality it ever reaches 1/α with
probability at most α: one test for the whole screening, which may be looked at after every record.

**Urns.**
Let the recall be r/T, with r relevant records found among T. The target t is missed if at least m + 1 relevant records
are unread, where m is the largest number with r/(r + m) ≥ t (`missing_allowed`). Suppose that the last s records read
were drawn at random from the N records that were unread before them, x of these s are relevant, and u = N − s are
unread now. If the target is missed, at least K = x + m + 1 of the N are relevant, and the probability of finding at
most x of K among the s is that of leaving at least m + 1 of K unread:

    p = P(Y ≥ m + 1),  Y ~ Hypergeometric(N, K, u),
      = 1 − Σ_{y ≤ m} C(K, y) C(N − K, u − y) / C(N, u).

More than K relevant records make it smaller. A small p rejects the hypothesis that the target is missed (Callaghan and
Müller-Hansen, 2020, Systematic Reviews 9:273).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

GROWTH = 1.25
"""Ratio of successive sample sizes."""
MAX_URNS = 500
"""Largest number of urns that are tested."""
SHADE = 0.8
"""Ratio of a bet and the rate of the last finds, which declines further."""
MAX_SHOWN = 0.5
"""p-value of the bets from which on larger numbers of relevant records are not tested."""

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


def missing_allowed(found: int, target: float) -> int:
    """Return how many relevant records may be missing at the target."""
    return math.floor(found * (1 - target) / target + 1e-9)


def chance_of_missing(n: Numbers, relevant: Numbers, unread: Numbers, missing: int) -> Floats:
    """
    Return P(Y ≥ missing) for Y hypergeometric: of n records with `relevant` relevant ones, `unread` random ones are
    unread.
    """
    y = np.arange(missing)[:, None]
    is_possible = (y <= relevant) & (y <= unread) & (unread - y <= n - relevant)
    left = np.where(is_possible, unread - y, 0)
    logs = log_choose(relevant, np.where(is_possible, y, 0)) + log_choose(n - relevant, left) - log_choose(n, unread)
    return np.asarray(np.clip(1.0 - np.where(is_possible, np.exp(logs), 0.0).sum(axis=0), 0.0, 1.0))


def p_values(finds: Sequence[int], read: int, n: int, known: int, target: float, max_urns: int = MAX_URNS) -> Floats:
    """
    Test every urn of the last records read, as if its records were drawn at random.

    Only urns that begin after a find, or with the first record, are listed: if the record before an urn is irrelevant,
    the urn that includes it has a smaller p, since the same finds were made in more draws. Of more than
    `max_urns` of them, evenly spaced ones are used.
    """
    before = np.array([0, *(place for place in finds if place < read)], dtype=np.int64)
    inside = len(finds) - np.arange(len(before))
    if len(before) > max_urns:
        some = np.linspace(0, len(before) - 1, max_urns).round().astype(np.intp)
        before, inside = before[some], inside[some]
    missing = missing_allowed(len(finds) + known, target) + 1
    if missing > n - read:
        return np.zeros(len(before))
    return chance_of_missing(n - before, inside + missing, np.full(len(before), n - read), missing)


def p_missed(finds: Sequence[int], read: int, n: int, known: int = 0, target: float = 0.95) -> float:
    """
    Return the smallest p-value of the urns: ranked quasi-sampling (Callaghan and Müller-Hansen, 2020).

    It is a heuristic: the urn is chosen after the finds, and ranked reading does not draw at random. It holds with
    margin if relevant records become rarer in the order of reading.

    >>> round(p_missed([1, 2, 3, 5, 8], read=60, n=100, target=0.7), 4)
    0.0787
    """
    return float(p_values(finds, read, n, known, target).min()) if read else 1.0


def p_by_betting(finds: Sequence[int], read: int, n: int, known: int = 0, target: float = 0.95) -> float:
    """
    Return one over the capital of the bets against a missed target, at most 1: a p-value for the whole screening.

    The bet is the rate since the last but one find, times `SHADE`, or no bet where that is more than p. Validity does
    not depend on this choice.

    >>> round(p_by_betting([1, 2, 3, 5, 8], read=80, n=100, target=0.7), 3)
    0.076
    """
    least = len(finds) + missing_allowed(len(finds) + known, target) + 1  # relevant records in the order, if missed
    most = len(finds) + n - read
    if least > most:
        return 0.0
    result = np.zeros(read, dtype=np.bool_)
    result[np.array(finds, dtype=np.intp) - 1] = True
    before: Numbers = np.cumsum(result) - result
    place = np.arange(read)
    begins = np.r_[0, 0, np.array(finds, dtype=np.intp) - 1][before]  # place of the last but one find, from 0
    rate = SHADE * (np.minimum(before, 1) + 0.5) / (place - begins + 1)

    def p_of(relevant: int) -> float:
        p = (relevant - before) / (n - place)
        bet = np.minimum(rate, p)
        with np.errstate(divide="ignore"):
            logs = np.where(result, np.log(bet) - np.log(p), np.log1p(-bet) - np.log1p(-p))
        return float(np.exp(-max(logs.sum(), 0.0)))

    p = p_of(least)
    if p < MAX_SHOWN:  # every larger number must be rejected too; the capital grows with it, nearly always
        p = max(p, *(p_of(round(number)) for number in np.geomspace(least, most, 8)[1:]))
    return p


def most_relevant(n: int, size: int, finds: int, error: float) -> int:
    """
    Return an exact upper confidence bound of the number of relevant records, from a random sample.

    It is the largest K with P(X ≤ finds) > error for X hypergeometric with K relevant among n, found by bisection,
    since the probability falls with K.
    """
    low, high = finds, n - size + finds
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if hypergeometric_cdf(finds, n, middle, size) > error else (low, middle - 1)
    return low


def hypergeometric_cdf(finds: int, n: int, relevant: int, size: int) -> float:
    """Probability of at most `finds` relevant records in a random sample of `size` of n records."""
    k = np.arange(max(0, size - (n - relevant)), min(finds, relevant, size) + 1)
    chances = log_choose(relevant, k) + log_choose(n - relevant, size - k) - log_choose(n, np.array(size))
    return min(float(np.exp(chances).sum()), 1.0)


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
    def first_size(self) -> int:
        """The smallest sample that proves the target, if no relevant record is in it."""
        missing = missing_allowed(self.found, self.target) + 1
        low, high = 1, self.unread
        while low < high:
            middle = (low + high) // 2
            if hypergeometric_cdf(0, self.unread, min(missing, self.unread), middle) <= self.error(0):
                high = middle
            else:
                low = middle + 1
        return low

    @cached_property
    def sizes(self) -> list[int]:
        """Sample sizes at which a test is made; the last one is all unread records."""
        sizes = [self.first_size]
        while sizes[-1] < self.unread:
            sizes.append(min(math.ceil(GROWTH * sizes[-1]), self.unread))
        return sizes

    def error(self, look: int) -> float:
        """Return the allowed error of one test."""
        return (1 - self.confidence) / 2.0 ** (look + 1)

    def proves(self, labels: Sequence[bool]) -> bool:
        """Return whether one of the tests so far proved the target."""
        return self.proved_at(labels) is not None

    def proved_at(self, labels: Sequence[bool]) -> int | None:
        """Return the size of the sample at which the target was proved first; None if it is not proved yet."""
        if missing_allowed(self.found, self.target) >= self.unread:
            return 0
        counts = np.cumsum(labels, dtype=np.int64)
        for look, size in enumerate(self.sizes):
            if size > len(labels):
                return None
            finds = int(counts[size - 1]) if size else 0
            # fewest relevant records among the unread for which the target would be missed now
            missed = missing_allowed(self.found + finds, self.target) + finds + 1
            if missed > self.unread or hypergeometric_cdf(finds, self.unread, missed, size) <= self.error(look):
                return size
        return self.unread

    def most(self, labels: Sequence[bool]) -> int:
        """
        Return an upper bound of the relevant records among those unread before the sample.

        Each test bounds it exactly (`most_relevant`). All bounds hold together with the confidence; the smallest is
        used.
        """
        finds = int(np.count_nonzero(labels))
        most = finds + self.unread - len(labels)
        for look, size in enumerate(self.sizes):
            if size > len(labels):
                break
            most = min(most, most_relevant(self.unread, size, int(np.count_nonzero(labels[:size])), self.error(look)))
        return max(most, finds)

    def bound(self, labels: Sequence[bool]) -> float:
        """Return the largest recall that the tests so far prove: an exact lower confidence bound."""
        finds, total = int(np.count_nonzero(labels)), self.found + self.most(labels)
        return (self.found + finds) / total if total else 1.0


def log_choose(n: NDArray[np.int64] | int, k: NDArray[np.int64] | int) -> Floats:
    """Logarithm of the binomial coefficient."""
    return np.asarray(gammaln(np.add(n, 1)) - gammaln(np.add(k, 1)) - gammaln(np.subtract(n, k) + 1.0))
