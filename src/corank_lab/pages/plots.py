"""
Plots of the pages: scales with round ticks, and the curve of finds of a screening.

A plot is a stretched drawing with a viewBox of 1000 × 1000; its labels are texts at percentages next to it. They stay
readable on narrow pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import Any, NamedTuple

from corank_lab.screening.stopping.forecast import Forecast

SIZE = 1000
"""Units of the drawing, in both directions."""
MAX_POINTS = 400


class Tick(NamedTuple):
    """A mark of an axis."""

    percent: float  # its place
    label: str  # the number


class Scale(NamedTuple):
    """A linear axis."""

    low: float  # low, high: numbers at its ends
    high: float

    def percent(self, value: float) -> float:
        """Return the place of a number; numbers beyond the ends are at the ends."""
        share = (value - self.low) / max(self.high - self.low, 1e-12)
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def ticks(self, n: int = 5, *, whole: bool = False) -> list[Tick]:
        """
        Return marks at multiples of 1, 2 or 5 times a power of ten.

        >>> [tick.label for tick in Scale(0, 164).ticks()], [tick.label for tick in Scale(-0.7, 1.1).ticks(4)]
        (['0', '50', '100', '150'], ['−0.5', '0', '0.5', '1'])
        """
        span = max(self.high - self.low, 1e-12)
        power = 10.0 ** floor(log10(span / n))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * n >= span * (1 - 1e-9))
        step = max(step, 1.0) if whole else step
        first = -floor(-self.low / step + 1e-9)
        marks = [step * at for at in range(first, floor(self.high / step + 1e-9) + 1)]
        return [Tick(self.percent(mark), f"{mark:,.10g}".replace("-", "−")) for mark in marks]


def curve(finds: Sequence[int], read: int, n: int, known: int, forecast: Forecast | None) -> dict[str, Any] | None:
    """Return the plot of relevant records against records read in the order of the ranking."""
    if not read:
        return None
    found = known + len(finds)
    estimate = forecast.estimate if forecast is not None else None
    ahead = forecast.to_reach if forecast is not None and forecast.to_reach else 0
    total = found / estimate.recall if estimate is not None else None
    x = Scale(0, min(n, max(1.15 * read, read + ahead)))
    y = Scale(0, max(1.12 * (total or found), 1.0))
    places = [(0, known)]
    for at, place in enumerate(finds, known + 1):
        places += [(place - 1, at - 1), (place, at)]
    places.append((read, found))
    step = -(-len(places) // MAX_POINTS)
    points = [f"{10 * x.percent(a):.1f},{SIZE - 10 * y.percent(b):.1f}" for a, b in [*places[::step], places[-1]]]
    band = None
    if estimate is not None:
        top, bottom = y.percent(found / max(estimate.low, 1e-9)), y.percent(found / max(estimate.high, 1e-9))
        band = {"y": SIZE - 10 * top, "height": 10 * (top - bottom), "total": SIZE - 10 * y.percent(total or 0)}
    return {
        "points": " ".join(points), "read": read, "found": found, "band": band,
        "start": SIZE - 10 * y.percent(known),
        # what reading in random order would find
        "even": None if total is None else SIZE - 10 * y.percent(known + (total - known) * x.high / max(n, 1)),
        "x": x.ticks(whole=True), "y": y.ticks(4, whole=True),
    }  # fmt: skip
