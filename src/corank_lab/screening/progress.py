"""The state of a screening, and the advice to go on or to stop."""

from __future__ import annotations

from dataclasses import dataclass

from corank_lab.screening.stopping import RecallEstimate
from corank_lab.screening.stopping.forecast import Forecast


@dataclass(frozen=True)
class ScreeningAdvice:
    """
    What is known of the recall.

    lines: what is estimated, tested and proved, one sentence each.
    may_stop, to_sample, evidence, advised_since: as in `ScreeningProgress`.
    figures: the numbers behind the lines; None before the first forecast and while a sample is read.
    n_found: number of relevant records known at the forecast.
    """

    lines: tuple[str, ...] = ()
    may_stop: bool = False
    to_sample: int = 0
    evidence: str | None = None
    advised_since: int | None = None
    figures: Forecast | None = None
    n_found: int = 0


@dataclass(frozen=True)
class ScreeningProgress:
    """
    State of a screening.

    n: Number of records.
    read: Number of answered records, including those known beforehand.
    found: Number of relevant records among them.
    estimate: Estimate of the recall; None before five finds, and once a random sample has begun.
    may_stop: Whether the stopping rule advises to stop, or all records are read.
    to_sample: With the rule ``"sample"``, number of records of the random sample up to its next test.
    evidence: What the advice to stop is based on; None without it. A model may be wrong: reading may stop before the
        target is reached.
    aside: Number of records put aside.
    elsewhere: In a shared reading, number of unanswered records that other judges hold or have put aside.
    forecast: What further reading is expected to find, one sentence each.
    advised_since: Value of `read` at which the present advice of a model came; None without it. The advice is withdrawn
        when its condition fails.
    """

    n: int
    read: int
    found: int
    estimate: RecallEstimate | None
    may_stop: bool
    to_sample: int
    evidence: str | None = None
    aside: int = 0
    elsewhere: int = 0
    forecast: tuple[str, ...] = ()
    advised_since: int | None = None
