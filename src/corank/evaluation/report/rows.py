"""Plots with a row for each thing: means with their intervals, and bars to both sides of zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from corank.evaluation.report.scale import Scale
from corank.evaluation.report.svg import BOTTOM, LETTER, RIGHT, WIDTH, below, figure, fitting, label, tag

_INTERVAL_ROW, _BAR_ROW = 33.0, 19.0
_TOP = 4.0


@dataclass(frozen=True)
class Interval:
    """
    One row of a plot of intervals.

    name: whose it is.
    mean, low, high: the value and the ends of its interval; NaN ends for none.
    is_strong: whether it is to stand out.
    """

    name: str
    mean: float
    low: float
    high: float
    is_strong: bool = False


def interval_plot(name: str, title: str, description: str, rows: Sequence[Interval], x_label: str) -> str:
    """
    Draw a dot and an interval for each row, below its name, which so is never cut short.

    name: unlike that of any other drawing on the page.
    title, description: what it is, and what it shows for people who cannot see it.
    rows: from the top.
    x_label: what the dots measure.
    Returns: an ``svg`` element.
    """
    x = Scale.over((end for row in rows for end in (row.mean, row.low, row.high)), 8, WIDTH - RIGHT)
    end = _TOP + len(rows) * _INTERVAL_ROW
    parts = _grid(x, end)
    for at, row in enumerate(rows):
        y = _TOP + at * _INTERVAL_ROW
        place = y + 23
        # bold letters are wider
        shown = fitting(row.name, 0.88 * WIDTH if row.is_strong else WIDTH)
        parts.append(label(shown, 0, y + 12, "strong" if row.is_strong else None))
        drawn = ""
        if row.low <= row.high:  # not NaN
            low, high = x(row.low), x(row.high)
            drawn += tag("line", x1=low, x2=high, y1=place, y2=place, class_="curve")
            drawn += "".join(
                tag("line", x1=to, x2=to, y1=place - 4, y2=place + 4, class_="curve") for to in (low, high)
            )
        size = 5.5 if row.is_strong else 4
        drawn += tag("circle", cx=x(row.mean), cy=place, r=size, class_="dot")
        parts.append(tag("g", drawn, class_="s1"))
    return _closed(name, title, description, x, end, x_label, parts)


def bar_plot(name: str, title: str, description: str, rows: Sequence[tuple[str, float]], x_label: str) -> str:
    """
    Draw a bar for each row, to the left or to the right of zero.

    name: unlike that of any other drawing on the page.
    title, description: what it is, and what it shows for people who cannot see it.
    rows: names and values, from the top.
    x_label: what the bars measure.
    Returns: an ``svg`` element.
    """
    left = min(max(len(text) for text, _ in rows) * LETTER + 8, 0.42 * WIDTH)
    x = Scale.over([0.0, *(value for _, value in rows)], left, WIDTH - RIGHT, 4)
    end = _TOP + len(rows) * _BAR_ROW
    parts = _grid(x, end)
    for at, (text, value) in enumerate(rows):
        y = _TOP + at * _BAR_ROW
        ends = sorted((x(0.0), x(value)))
        whole = f"<title>{escape(text, quote=False)}: {value:.4g}</title>"
        parts.append(label(fitting(text, left - 6), left - 6, y + 13, anchor="end"))
        bar = tag("rect", whole, x=ends[0], y=y + 3, width=ends[1] - ends[0], height=_BAR_ROW - 6, class_="area")
        parts.append(tag("g", bar, class_="s1" if value >= 0 else "s2"))
    parts.append(tag("line", x1=x(0.0), x2=x(0.0), y1=_TOP, y2=end, class_="axis"))
    return _closed(name, title, description, x, end, x_label, parts)


def _grid(x: Scale, end: float) -> list[str]:
    return [tag("line", x1=x(tick), x2=x(tick), y1=_TOP, y2=end, class_="grid") for tick in x.ticks]


def _closed(name: str, title: str, description: str, x: Scale, end: float, x_label: str, parts: list[str]) -> str:
    axis = [tag("line", x1=x.start, x2=x.end, y1=end, y2=end, class_="axis"), *below(x, end)]
    named = label(x_label, x.end, end + 31, "strong", "end")
    return figure(name, title, description, end + BOTTOM, [*parts, *axis, named])
