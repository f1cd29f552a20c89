"""Scale: numbers to places on a line, with ticks that people read at a glance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Scale:
    """
    A line from `start` to `end` that stands for numbers from `low` to `high`.

    low, high: the numbers at its ends, low < high; above 0 where it is logarithmic.
    start, end: places in the drawing; end < start where numbers grow upwards.
    ticks: numbers to be written beside it, ascending, inside the line.
    is_log: whether equal ratios are equally far.

    >>> scale = Scale.over([0.31, 0.48], 0, 100)
    >>> scale.ticks, round(scale(0.4), 6)
    ((0.3, 0.35, 0.4, 0.45, 0.5), 50.0)
    """

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    is_log: bool = False

    @staticmethod
    def over(values: Iterable[float], start: float, end: float, n_ticks: int = 5, *, is_log: bool = False) -> Scale:
        """
        Make a scale that holds some numbers, from tick to tick.

        values: the numbers; those that are not finite are passed over.
        start, end: places in the drawing.
        n_ticks: about how many ticks are wanted.
        is_log: whether equal ratios are equally far; ticks are then powers of ten, or 1, 2 and 5 times them.
        Returns: the scale.
        """
        known = [float(value) for value in values if math.isfinite(value)]
        if not known:
            raise ValueError("there is no finite number to make a scale for")
        low, high = min(known), max(known)
        if is_log:
            if low <= 0:
                raise ValueError(f"a logarithmic scale cannot hold {low:g}")
            return _decades(low, high, start, end, n_ticks)
        if high - low <= 1e-9 * max(abs(low), abs(high)):  # one number: some room on both sides
            room = 0.1 * abs(low) or 1.0
            low, high = low - room, high + room
        step = _step((high - low) / max(n_ticks - 1, 1))
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        # sums of steps gather rounding errors, products of whole numbers do not; 12 digits are those of the step
        ticks = tuple(float(f"{at * step:.12g}") for at in range(first, last + 1))
        return Scale(ticks[0], ticks[-1], start, end, ticks)

    def __call__(self, value: float) -> float:
        """Return the place of a number."""
        low, high, at = (math.log(number) for number in (self.low, self.high, value)) if self.is_log else (
            self.low, self.high, value
        )  # fmt: skip
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def text(self, tick: float) -> str:
        """Return how a tick is written: all ticks of a scale with as many decimals as their step has."""
        if self.is_log:
            power = math.floor(math.log10(tick) + 1e-9)
            if -4 < power < 5:
                return f"{tick:.3g}" if tick < 1000 else f"{tick:.0f}"
            first = tick / 10.0**power
            return ("" if abs(first - 1) < 1e-9 else f"{first:.2g}·") + "10" + str(power).translate(_RAISED)
        step = self.ticks[1] - self.ticks[0]
        size = max(abs(self.low), abs(self.high))
        if size >= 1e6 or step < 1e-5:
            return f"{tick:.3g}"
        decimals = next(d for d in range(8) if abs(step - round(step, d)) < 1e-6 * step)
        return f"{tick:.{decimals}f}".replace("-", "−")


def _step(width: float) -> float:
    """Round a step up to 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(nice for nice in _STEPS if nice * power >= width * (1 - 1e-9)) * power


def _decades(low: float, high: float, start: float, end: float, n_ticks: int) -> Scale:
    """A scale just over the numbers; ticks are powers of ten, not all where they are many, or 1, 2, 5 times them."""
    if high / low < 1.1:  # one number: some room on both sides
        low, high = low / 2, high * 2
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    tens = [10.0**power for power in powers if low <= 10.0**power <= high]
    if len(tens) < 3:
        tens = [nice * 10.0**power for power in powers for nice in (1, 2, 5) if low <= nice * 10.0**power <= high]
    ticks = tuple(tens[:: math.ceil(len(tens) / (n_ticks + 1))] if tens else (low, high))
    return Scale(low, high, start, end, ticks, is_log=True)
