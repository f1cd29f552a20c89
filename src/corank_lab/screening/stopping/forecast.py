"""The price of certainty: how many more records an estimate, a test and a proof of the target need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corank_lab.screening.stopping.rates import RecallEstimate
from corank_lab.screening.stopping.rules import StoppingRule
from corank_lab.screening.stopping.urns import (
    SamplePlan,
    missing_allowed,
    p_by_betting,
    p_of_missing,
    percent,
    smallest,
)

LADDER = (0.99, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.3)
"""Recalls that may be proved if the target cannot."""
CONFIDENCE = 0.95
"""Confidence of tests and proofs, if the rule accepts a larger error."""
MUCH = 0.8
"""Share of the unread from which on a proof is called too expensive."""


@dataclass(frozen=True)
class Forecast:
    """What is known of the recall, and what more would cost."""

    unread: int
    found: int  # number of relevant records found so far
    target: float  # recall to reach
    confidence: float  # of test and proof
    estimate: RecallEstimate | None  # None before five finds
    # estimated: number of further records after which the target is expected to be reached; 0 if it is now
    to_reach: int | None
    to_stop: int | None  # the same until the stopping rule advises to stop, if none of them is relevant
    p: float  # tested: p-value of a missed target (`corank_lab.screening.stopping.urns.p_by_betting`)
    to_test: int  # number of further records, none relevant, after which this test rejects at the confidence
    to_prove: int  # proved: number of random draws, none relevant, that prove the target at the confidence
    # if that is most of the unread: the largest recall that half of them can prove, and the number of draws
    provable: tuple[float, int] | None

    def lines(self) -> tuple[str, ...]:
        """Return plain sentences: what is estimated, what is tested and what can be proved."""
        if not self.unread:
            return ("Proved: every record is read, so every relevant one is found, if every answer is right.",)
        return (self._estimated(), self._tested(), self._proved())

    def _estimated(self) -> str:
        if self.estimate is None or self.to_reach is None:
            return "Estimated: nothing yet; an estimate needs five relevant records found by reading."
        low, high = percent(self.estimate.low), percent(self.estimate.high)
        result = f"Estimated: {percent(self.estimate.recall)} of the relevant records are found ({low} to {high})"
        if self.estimate.recall == 1.0:  # not "all are found" while records are unread
            result = f"Estimated: {low} to 100 % of the relevant records are found"
        if self.to_reach == 0:
            more = "; the model expects no less than the target"
        else:
            more = f"; {percent(self.target)} recall by the model after about {self._about(self.to_reach)} more"
        if self.to_stop is None or not self.to_stop:
            return f"{result}{more}."
        return f"{result}{more}; the rule stops after {self._about(self.to_stop)} more, if none is relevant."

    def _tested(self) -> str:
        if self.p <= 1 - self.confidence:
            return (
                f"Tested: a recall below {percent(self.target)} is rejected at {percent(self.confidence)} confidence "
                f"(p = {self.p:.2g}, valid for the whole screening), if the order was never worse than random."
            )
        if self.to_test >= self.unread:
            return (
                f"Tested: not yet (p = {self.p:.2g}); nothing but reading all {self.unread} unread records rejects it."
            )
        more = self._about(self.to_test)
        return f"Tested: not yet (p = {self.p:.2g}); the next {more} records would have to be irrelevant."

    def _proved(self) -> str:
        target, sure = percent(self.target), f"at {percent(self.confidence)} confidence"
        if not self.to_prove:
            return f"Proved: {target} recall; too few records are unread to miss it, if every answer is right."
        if self.provable is None:
            return (
                f"Proved: nothing yet; {target} recall {sure} needs about {self._about(self.to_prove)} random records, "
                "none of them relevant."
            )
        recall, draws = self.provable
        finds = "one find is" if self.found == 1 else f"{self.found} finds are"
        lower = f"; {percent(recall)} can be proved after {self._about(draws)}" if draws else ""
        return (
            f"Proved: nothing yet; {finds} too few to prove {target} recall {sure} without reading "
            f"{self.to_prove} of the {self.unread} unread records{lower}."
        )

    def _about(self, n: int) -> str:
        """Return a number of records, rounded up to two digits if it is large, but not above the unread ones."""
        unit = 10 ** max(0, len(str(n)) - 2)
        return f"{min(-(-n // unit) * unit, max(n, self.unread)):,}"


class Forecaster:
    """
    Forecasts of one screening, from answer to answer.

    Where the test rejects and the rule stops depends on the finds only, if no further record is relevant. Both places
    are kept until the next find, since they are expensive with many finds; the whole forecast is kept until the next
    answer.

    >>> from corank_lab.screening.stopping import Forecaster, stopping_rule
    >>> forecast = Forecaster(stopping_rule("agree", 1000)).forecast(list(range(1, 81, 2)), read=300)
    >>> forecast.to_prove, forecast.provable
    (495, None)
    """

    def __init__(self, rule: StoppingRule) -> None:
        self.rule = rule
        self._last: tuple[tuple[tuple[int, ...], int, int], Forecast] | None = None
        self._found: tuple[tuple[int, ...], int] | None = None
        self._places: dict[str, int] = {}

    def forecast(self, finds: Sequence[int], read: int, known: int = 0) -> Forecast:
        key = (tuple(finds), read, known)
        if self._last is None or self._last[0] != key:
            self._last = (key, self._make(finds, read, known))
        return self._last[1]

    def _make(self, finds: Sequence[int], read: int, known: int) -> Forecast:
        rule = self.rule
        if self._found != (tuple(finds), known):
            self._found, self._places = (tuple(finds), known), {}
        unread, result = rule.n - read, len(finds) + known
        confidence = max(rule.confidence, CONFIDENCE)
        alpha = 1 - confidence
        place = rule.rates.place_of(finds, read, known, rule.target)
        missing = missing_allowed(result, rule.target) + 1
        is_certain = missing > unread
        to_prove = 0 if is_certain else SamplePlan(unread, result, rule.target, confidence).first_size
        to_stop = _to_stop(rule, finds, read, known) if self._is_new("stop", read) else self._places["stop"] - read
        if to_stop is not None:
            self._places["stop"] = read + to_stop
        if self._is_new("test", read):
            self._places["test"] = read + smallest(
                lambda more: p_of_missing(finds, read + more, rule.n, missing, 2) <= alpha, 0, unread
            )
        return Forecast(
            unread, result, rule.target, confidence, rule.estimate(finds, read, known),
            None if place is None else place - read, to_stop, p_by_betting(finds, read, rule.n, known, rule.target),
            self._places["test"] - read, to_prove,
            _provable(unread, result, rule.target, confidence) if to_prove > MUCH * unread else None,
        )  # fmt: skip

    def _is_new(self, name: str, read: int) -> bool:
        """Whether a place is not known, or was reached by now."""
        return self._places.get(name, 0) <= read


def _to_stop(rule: StoppingRule, finds: Sequence[int], read: int, known: int) -> int | None:
    """More records until the rule stops, if none of them is relevant; None if it needs a sample."""
    if rule.needs_sample:
        return None
    if rule.advises(finds, read, known):
        return 0
    looks = [look for look in rule.looks if look > read]
    i = smallest(lambda more: more > 0 and rule.is_reached(finds, looks[more - 1], known), 0, len(looks))
    reached = i > 0 and (i < len(looks) or rule.is_reached(finds, looks[i - 1], known))
    return (looks[i - 1] if reached else rule.n) - read


def _provable(unread: int, found: int, target: float, confidence: float) -> tuple[float, int]:
    """Largest recall of the ladder that half of the unread can prove, without finds; (0, 0) if there is none."""
    for recall in LADDER:
        if recall < target:
            size = SamplePlan(unread, found, recall, confidence).first_size
            if size <= unread / 2:
                return recall, size
    return 0.0, 0


@dataclass(frozen=True)
class ScreeningAdvice:
    """What is known of the recall, and whether reading may stop."""

    forecast: tuple[str, ...] = ()  # what is estimated, tested and proved, and what further reading may find
    may_stop: bool = False  # whether the stopping rule advises to stop, or all records are read
    to_sample: int = 0  # with the rule ``"sample"``, number of records of the random sample up to its next test
    evidence: str | None = None  # what the advice to stop is based on: "rule", "sample" or "all read"
    # number of records read when the present advice of a rule came; it is withdrawn when its condition fails
    advised_since: int | None = None
    advice: str = ""  # since when and by which figures advice is given, or that it was withdrawn; empty without either
    figures: Forecast | None = None  # numbers behind the forecast; None before the first, and while a sample is read
    given: tuple[int, tuple[int, ...]] = (0, ())  # number of answers, and the finds, for which it holds

    @property
    def estimate(self) -> RecallEstimate | None:
        """Estimate of the recall; None before five finds, and once a random sample has begun."""
        return None if self.figures is None else self.figures.estimate


@dataclass(frozen=True, kw_only=True)
class ScreeningProgress(ScreeningAdvice):
    """State of a screening."""

    n: int  # number of records
    read: int  # number of answered records, including those known beforehand
    found: int  # number of relevant records among them
    aside: int = 0  # number of records put aside
    elsewhere: int = 0  # in a shared reading, number of unanswered records that other judges hold or have put aside


def advice_sentence(
    rule: StoppingRule, finds: Sequence[int], read: int, known: int, *, before: int = 0
) -> tuple[int | None, str]:
    """
    Return the record at which the present advice of a rule came, and the sentence to show.

    before: number of answered records that the ranking did not choose; they come first in the count.
    """
    since = rule.advised_since(finds, read, known)
    if since is not None:
        why = rule.reason(finds, read, known)
        sentence = f"The rule '{rule.name}' advises to stop since record {before + since}: {why}. {rule.record}"
        return before + since, sentence.strip()
    withdrawn = rule.withdrawn_at(finds, read, known)
    if withdrawn is None:
        return None, ""
    return None, f"The advice to stop was withdrawn at record {before + withdrawn}, which is relevant; read on."
