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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from corank.errors import InputError

GROWTH = 1.25
"""Ratio of successive sample sizes."""
MAX_URNS = 500
"""Largest number of urns that are tested."""
SHADE = 0.8
"""Ratio of a bet and the rate of the last finds, which declines further."""
MAX_SHOWN = 0.8
"""p-value of the bets from which on larger numbers of relevant records are not tested."""

if TYPE_CHECKING:
    from corank_lab.screening.answers import ScreeningAnswers
    from corank_lab.screening.stopping.rules import StoppingRule

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


def smallest(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest number from `low` on for which something holds that stays true; `high` if it never does."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


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

    >>> round(p_by_betting([1, 2, 3, 5, 8], read=80, n=100, target=0.7), 3)
    0.076
    """
    return p_of_missing(finds, read, n, missing_allowed(len(finds) + known, target) + 1)


def p_of_missing(finds: Sequence[int], read: int, n: int, missing: int, n_tested: int = 8) -> float:
    """
    Return one over the capital of the bets against `missing` or more relevant records among the unread, at most 1.

    The bet is the rate since the last but one find, times `SHADE`, or no bet where that is more than p. Validity does
    not depend on this choice.
    """
    least, most = len(finds) + missing, len(finds) + n - read  # numbers of relevant records in the order
    if least > most:
        return 0.0
    found, before, unread, rate = _bets(tuple(finds), read, n)

    def p_of(relevant: int) -> float:
        p = (relevant - before) / unread
        bet = np.minimum(rate, p)
        chance = np.where(found, p, 1 - p)
        with np.errstate(divide="ignore"):
            gain = np.log(np.where(found, bet, 1 - bet) / chance)
        return float(np.exp(-max(gain.sum(), 0.0)))

    p = p_of(least)
    if p < MAX_SHOWN:  # every larger number must be rejected too; the capital grows with it, nearly always
        p = max(p, *(p_of(round(number)) for number in np.geomspace(least, most, n_tested)[1:]))
    return p


@lru_cache(maxsize=2)
def _bets(finds: tuple[int, ...], read: int, n: int) -> tuple[NDArray[np.bool_], Numbers, Numbers, Floats]:
    """Which records are finds, and before each of them the finds, the unread records and the rate of the finds."""
    found = np.zeros(read, dtype=np.bool_)
    found[np.array(finds, dtype=np.intp) - 1] = True
    before: Numbers = np.cumsum(found) - found
    place = np.arange(read)
    begins = np.r_[0, 0, np.array(finds, dtype=np.intp) - 1][before]  # place of the last but one find, from 0
    return found, before, n - place, SHADE * (np.minimum(before, 1) + 0.5) / (place - begins + 1)


def most_relevant(n: int, size: int, finds: int, error: float) -> int:
    """
    Return an exact upper confidence bound of the number of relevant records, from a random sample.

    It is the largest K with P(X ≤ finds) > error for X hypergeometric with K relevant among n, found by bisection,
    since the probability falls with K.
    """

    def is_rejected(relevant: int) -> bool:
        return hypergeometric_cdf(finds, n, relevant + 1, size) <= error

    return smallest(is_rejected, finds, n - size + finds)


def hypergeometric_cdf(finds: int, n: int, relevant: int, size: int) -> float:
    """Probability of at most `finds` relevant records in a random sample of `size` of n records."""
    k = np.arange(max(0, size - (n - relevant)), min(finds, relevant, size) + 1)
    chances = log_choose(relevant, k) + log_choose(n - relevant, size - k) - log_choose(n, np.array(size))
    return min(float(np.exp(chances).sum()), 1.0)


@dataclass(frozen=True)
class SamplePlan:
    """Sizes and tests of a random sample of the unread records."""

    unread: int  # number of unread records when the plan is made
    found: int  # number of relevant records known then
    target: float = 0.95
    confidence: float = 0.95

    @cached_property
    def first_size(self) -> int:
        """The smallest sample that proves the target, if no relevant record is in it."""
        missing = min(missing_allowed(self.found, self.target) + 1, self.unread)
        error = self.error(0)
        return smallest(lambda size: hypergeometric_cdf(0, self.unread, missing, size) <= error, 1, self.unread)

    @cached_property
    def sizes(self) -> list[int]:
        """Sample sizes at which a test is made; the last one is all unread records."""
        sizes = [self.first_size]
        while sizes[-1] < self.unread:
            sizes.append(min(math.ceil(GROWTH * sizes[-1]), self.unread))
        return sizes

    def error(self, look: int) -> float:
        return (1 - self.confidence) / 2.0 ** (look + 1)

    def proves(self, labels: Sequence[bool]) -> bool:
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


@dataclass(frozen=True, eq=False)
class RandomSample:
    """State of a random sample. It follows from the answers alone, so that a later session continues it."""

    answers: ScreeningAnswers  # all answers so far; records answered before sampling are not sampled
    n: int  # number of records
    rule: StoppingRule  # gives the plan
    seed: int  # random seed of the order

    @cached_property
    def plan(self) -> SamplePlan:
        before = self.answers.before_sample
        result = sum(self.answers.relevant[number] for number in before)
        return self.rule.plan(self.n - len(before), result)

    @cached_property
    def drawn(self) -> list[int]:
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
        size = next((size for size in self.plan.sizes if size > len(self.labels)), len(self.drawn))
        more = "" if not self.left else f" The next test is after {size - len(self.labels)} more random records."
        if len(self.labels) < self.plan.sizes[0] and self.left:
            return (f"Proved: nothing yet.{more}",)
        proof = proof_sentence(self.plan.bound(self.labels), len(self.drawn) - len(self.labels), self.rule.confidence)
        return (f"{proof}{more}", self.elusion())

    def elusion(self) -> str:
        """State how many of the unread records are relevant at most; of those before the sample, and those now."""
        n, size, finds = self.plan.unread, len(self.labels), sum(self.labels)
        most = self.plan.most(self.labels)
        share = f" ({percent(finds / size)})" if size else ""
        return (
            f"Elusion: {finds} of {size} random unread records are relevant{share}. At "
            f"{percent(self.rule.confidence)} confidence, at most {most:,} of the {n:,} records that were unread "
            f"before the sample are relevant ({percent(most / n, up=True)}), so at most {most - finds:,} of the "
            f"{n - size:,} that are unread now."
        )


def proof_sentence(bound: float, unread: int, confidence: float) -> str:
    """State a lower bound of the recall; 100 % is written only if every record is read."""
    sure = f"Proved at {percent(confidence)} confidence"
    if bound >= 1.0 and unread:
        return f"{sure}: no unread record is relevant."
    return f"{sure}: at least {percent(bound)} of the relevant records are found."


def require_richness(richness: int, n: int) -> int:
    """Return the size of the first random sample, which cannot exceed the number of records."""
    if not 0 <= richness <= n:
        raise InputError(f"richness is {richness}, but there are {n} records to judge; draw at most these.")
    return richness


def richness_sentence(n: int, size: int, finds: int, confidence: float = 0.95) -> str:
    """State the share of relevant records by a random sample, with an exact interval of both bounds."""
    error = (1 - confidence) / 2
    high = most_relevant(n, size, finds, error)
    low = n - most_relevant(n, size, size - finds, error)
    return (
        f"Richness: {finds} of {size} random records are relevant ({percent(finds / size)}). At {percent(confidence)} "
        f"confidence, {low:,} to {high:,} of all {n:,} records are: {percent(low / n)} to {percent(high / n, up=True)}."
    )


def percent(share: float, *, up: bool = False) -> str:
    """Return a share as a percentage, rounded down, so that 100 % is written for all only; upper bounds are not."""
    return f"{(math.ceil(share * 1000 - 1e-6) if up else int(share * 1000 + 1e-6)) / 10:g} %"


def draw_order(n: int, before: Sequence[int], seed: int) -> list[int]:
    """Draw the order of a random sample."""
    rng = np.random.default_rng([seed, len(before)])
    return [int(number) for number in rng.permutation(np.setdiff1d(np.arange(n), np.array(before, dtype=np.intp)))]
