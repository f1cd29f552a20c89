"""
Charts as SVG for reports and pages: lines and intervals. No library, no script, no fonts.

Colours are variables of the page, so that dark mode changes them. Widths of letters are estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from corank.comparison.report import Block
from corank.tables import escape_markdown

WIDTH, HEIGHT = 400.0, 230.0
"""Natural size of a chart in CSS pixels; pages scale it to their width, so that letters fit phones and screens."""
DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (2, 3), (9, 3, 2, 3), (4, 2), (12, 4))
"""Dash patterns of the six series: colour is never the only difference."""
N_LINES = len(DASHES)
"""Largest number of lines in a chart: each has its own colour and dash pattern."""
_LETTER, _LINE, _GAP = 6.6, 17.0, 6.0
Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """One line of a chart."""

    name: str  # text of the legend
    points: tuple[Point, ...]  # (x, y) in order
    band: tuple[Point, ...] = ()  # (low, high) at each point; empty for none
    has_markers: bool = True  # whether points are marked


@dataclass(frozen=True)
class IntervalRow:
    """One row of an interval chart."""

    name: str
    mean: float  # mean, low, high: value and ends of its interval; ends that are not finite draw no interval
    low: float
    high: float
    is_strong: bool = False  # whether the row is emphasised


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis."""

    low: float  # low, high: numbers at its ends
    high: float
    label: str = ""  # its title
    is_log: bool = False
    is_whole: bool = False  # whether only whole numbers are marked

    @staticmethod
    def around(values: Iterable[float], label: str = "", *, is_log: bool = False, margin: float = 0.06) -> Axis:
        """Return an axis that holds some values, with a margin."""
        known = [value for value in values if math.isfinite(value)] or [0.0]
        low, high = min(known), max(known)
        if is_log:
            factor = max(high / low, 1.5) ** margin
            return Axis(low / factor, high * factor, label, is_log=True)
        space = margin * ((high - low) or abs(high) or 1.0)
        return Axis(low - space, high + space, label)

    def place(self, value: float) -> float:
        """Return the place of a number, from 0 to 1; numbers beyond the ends are at the ends."""
        low, high = (math.log(self.low), math.log(self.high)) if self.is_log else (self.low, self.high)
        value = math.log(max(value, self.low)) if self.is_log else value
        return min(max((value - low) / ((high - low) or 1e-300), 0.0), 1.0)

    def ticks(self, n: int = 5) -> list[tuple[float, str]]:
        """
        Return the values and labels of at most n + 1 marks: multiples of 1, 2 or 5 times a power of ten.

        >>> [label for _, label in Axis(0, 164).ticks()], [label for _, label in Axis(-0.7, 1.1).ticks(4)]
        (['0', '50', '100', '150'], ['−0.5', '0', '0.5', '1'])
        """
        if self.is_log:
            return [(value, _power(value)) for value in self._powers(n)]
        span = max(self.high - self.low, 1e-300)
        power = 10.0 ** math.floor(math.log10(span / n))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * n >= span * (1 - 1e-9))
        step = max(step, 1.0) if self.is_whole else step
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(step * k, f"{step * k:,.10g}".replace("-", "−")) for k in range(first, last + 1)]

    def _powers(self, n: int) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        factors = (1.0,) if self.high / self.low > 100 else (1.0, 2.0, 5.0)
        marks = [factor * 10.0**k for k in range(first, last + 1) for factor in factors]
        marks = [mark for mark in marks if self.low <= mark <= self.high]
        return marks[:: -(-len(marks) // (n + 1))]


@dataclass
class Chart:
    """A chart to draw: axes in numbers, and what lies between them."""

    x: Axis
    y: Axis
    height: float = HEIGHT
    lines: list[tuple[Curve, int]] = field(default_factory=list)  # curve and number of its style
    dots: list[tuple[float, float, float]] = field(default_factory=list)  # x, y, radius
    names: list[tuple[float, str, bool]] = field(default_factory=list)  # y, text above a row, is strong
    legend: list[str] = field(default_factory=list)
    has_y_ticks: bool = True

    def svg(self, name: str, title: str, description: str) -> str:
        """Return an ``svg`` element for a page."""
        columns = 2 if max(map(len, self.legend), default=0) * _LETTER + 40 <= WIDTH / 2 else 1
        n_legend = -(-len(self.legend) // columns)
        height = self.height + _LINE * n_legend
        ticks = self.y.ticks() if self.has_y_ticks else []
        left = max((len(label) * _LETTER for _, label in ticks), default=0.0) + _GAP
        top, bottom, right = _LINE * bool(self.y.label) + _GAP, height - _LINE * (2.2 + n_legend), WIDTH - 3 * _GAP

        def at(point: Point) -> Point:
            return left + self.x.place(point[0]) * (right - left), bottom - self.y.place(point[1]) * (bottom - top)

        parts = []
        for value, label in self.x.ticks():
            x, half = at((value, self.y.low))[0], len(label) * _LETTER / 2
            parts += [_path("grid", [(x, top), (x, bottom)])]
            parts += [_text(min(max(x, half), WIDTH - half), bottom + 15, label, "tick", "middle")]
        for value, label in ticks:
            y = at((self.x.low, value))[1]
            parts += [_path("grid", [(left, y), (right, y)]), _text(left - _GAP, y + 4, label, "tick", "end")]
        parts.append(_path("edge", [(left, bottom), (right, bottom)]))
        for curve, style in self.lines:
            parts += _line(curve, style, at)
        parts += [_circle(*at((x, y)), radius, "dot s1") for x, y, radius in self.dots]
        for y, text, is_strong in self.names:
            shown = _shortened(text, WIDTH * (0.88 if is_strong else 1.0))
            parts.append(_text(0, at((self.x.low, y))[1] - 9, shown, "strong" if is_strong else ""))
        parts += [_text(0, 12, self.y.label, "strong")] if self.y.label else []
        parts.append(_text(right, bottom + 2 * _LINE - 2, self.x.label, "strong", "end"))
        for number, text in enumerate(self.legend):
            x, y = (number % columns) * WIDTH / 2, height - _LINE * (n_legend - number // columns) + 10
            parts += _line(Curve("", ((x + 2, y - 4), (x + 28, y - 4)), has_markers=False), number + 1, lambda p: p)
            parts.append(_text(x + 36, y, _shortened(text, WIDTH / columns - 40)))
        head = f'<title id="{name}-title">{escape(title)}</title>\n<desc id="{name}-desc">{escape(description)}</desc>'
        frame = f'xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH:g} {height:g}" role="img"'
        drawn = "\n".join(parts)
        return f'<svg {frame} aria-labelledby="{name}-title {name}-desc">\n{head}\n{drawn}\n</svg>'


def line_chart(
    curves: Sequence[Curve],
    x_label: str,
    y_label: str,
    *,
    is_log: bool = False,
    x: Axis | None = None,
    y: Axis | None = None,
) -> Chart:
    """Return a chart of up to `N_LINES` curves; axes hold all points and bands if they are not given."""
    if len(curves) > N_LINES:
        raise ValueError(f"there are {len(curves)} curves; a chart shows at most {N_LINES}")
    points = [point for curve in curves for point in curve.points]
    ends = [end for curve in curves for pair in curve.band for end in pair]
    return Chart(
        x or Axis.around([a for a, _ in points], x_label, is_log=is_log),
        y or Axis.around([b for _, b in points] + ends, y_label),
        lines=[(curve, number) for number, curve in enumerate(curves, 1)],
        legend=[curve.name for curve in curves] if len(curves) > 1 else [],
    )


def interval_chart(rows: Sequence[IntervalRow], x_label: str) -> Chart:
    """Return a chart with a dot and an interval for each row, from the top, with the name above it."""
    known = [(row, math.isfinite(row.low) and math.isfinite(row.high)) for row in rows]
    ends = [end for row, is_known in known for end in (row.mean, *((row.low, row.high) if is_known else ()))]
    chart = Chart(Axis.around(ends, x_label), Axis(len(rows) - 0.4, -0.75), 46 + 33.0 * len(rows), has_y_ticks=False)
    for y, (row, is_known) in enumerate(known):
        # rounding may place the mean of equal values beside their interval
        low, high = (min(row.low, row.mean), max(row.high, row.mean)) if is_known else (row.mean, row.mean)
        chart.lines.append((Curve("", ((low, y), (high, y)), has_markers=False), 1))
        chart.dots.append((row.mean, y, 5.0 if row.is_strong else 3.5))
        chart.names.append((y, row.name, row.is_strong))
    return chart


def plot(chart: Chart, name: str, title: str, description: str, caption: str) -> Block:
    """Return a chart with its caption, which is all that Markdown shows; its name is unique on a page."""
    text = f"<strong>{escape(title)}.</strong> {escape(caption)}"
    return Block(
        f"<figure>\n{chart.svg(name, title, description)}\n<figcaption>{text}</figcaption>\n</figure>",
        f"*{escape_markdown(title)}.* {escape_markdown(caption)}",
    )


def _line(curve: Curve, style: int, place: Callable[[Point], Point]) -> list[str]:
    points = [place(point) for point in curve.points]
    parts = []
    if curve.band:
        lows = [place((x, low)) for (x, _), (low, _) in zip(curve.points, curve.band, strict=True)]
        highs = [place((x, high)) for (x, _), (_, high) in zip(curve.points, curve.band, strict=True)]
        parts.append(_path(f"band s{style}", [*lows, *highs[::-1]], "Z"))
    dash = f' stroke-dasharray="{" ".join(map(str, DASHES[style - 1]))}"' if DASHES[style - 1] else ""
    parts.append(_path(f"line s{style}", points, dash=dash))
    if curve.has_markers:
        parts += [_circle(x, y, 3.2, f"dot s{style}") for x, y in points]
    return parts


def _path(kind: str, points: Sequence[Point], end: str = "", dash: str = "") -> str:
    return f'<path class="{kind}"{dash} d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}{end}"/>'


def _circle(x: float, y: float, radius: float, kind: str) -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    look = f' class="{kind}"' if kind else ""
    aligned = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text{look}{aligned} x="{x:.1f}" y="{y:.1f}">{escape(text, quote=False)}</text>'


def _shortened(text: str, width: float) -> str:
    """Cut a text that is wider than `width`, with an ellipsis at the end."""
    n = max(int(width / _LETTER), 2)
    return text if len(text) <= n else text[: n - 1] + "…"


def _power(x: float) -> str:
    """Write a number of a logarithmic axis: as a power of ten below 0.001 and from 100,000 on."""
    if 0.999e-3 <= x < 1e5:
        return f"{x:g}"
    factor, _, power = f"{x:.0e}".partition("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return ("" if factor == "1" else f"{factor}·") + f"10{raised}"
