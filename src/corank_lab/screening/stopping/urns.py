"""
Exact tests of recall: records as balls in an urn.

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


def recall_frontier(
    finds: Sequence[int], read: int, n: int, known: int = 0, targets: Sequence[float] = (0.8, 0.9, 0.95)
) -> dict[float, float]:
    """Return the p-value of each target; the larger the target, the larger p. Parameters as in `p_missed`."""
    return {target: p_missed(finds, read, n, known, target) for target in targets}


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
    shares_error: whether the tests share the allowed error; if not, a test follows every draw and each test alone has
        the confidence, as Callaghan and Müller-Hansen (2020) propose.
    """

    unread: int
    found: int
    target: float = 0.95
    confidence: float = 0.95
    shares_error: bool = True

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
        if not self.shares_error:
            return list(range(self.first_size, self.unread + 1))
        sizes = [self.first_size]
        while sizes[-1] < self.unread:
            sizes.append(min(math.ceil(GROWTH * sizes[-1]), self.unread))
        return sizes

    def error(self, look: int) -> float:
        """Return the allowed error of one test."""
        return (1 - self.confidence) / (2 ** (look + 1) if self.shares_error else 1)

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

    def bound(self, labels: Sequence[bool]) -> float:
        """
        Return the largest recall that the tests so far prove: an exact lower confidence bound.

        Each test bounds the number of relevant records among those unread before the sample (`most_relevant`). All
        bounds hold together with the confidence, if the tests share the error; the smallest is used.
        """
        finds = int(np.count_nonzero(labels))
        most = finds + self.unread - len(labels)
        for look, size in enumerate(self.sizes):
            if size > len(labels):
                break
            inside = int(np.count_nonzero(labels[:size]))
            most = min(most, most_relevant(self.unread, size, inside, self.error(look)))
        total = self.found + max(most, finds)
        return (self.found + finds) / total if total else 1.0


def log_choose(n: NDArray[np.int64] | int, k: NDArray[np.int64] | int) -> Floats:
    """Logarithm of the binomial coefficient."""
    return np.asarray(gammaln(np.add(n, 1)) - gammaln(np.add(k, 1)) - gammaln(np.subtract(n, k) + 1.0))
