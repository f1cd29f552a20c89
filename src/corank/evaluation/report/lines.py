"""Line plots: learning curves with their intervals, paths of a parameter, trade-offs of two measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corank.evaluation.report.scale import Scale
from corank.evaluation.report.svg import (
    BOTTOM,
    LETTER,
    RIGHT,
    TOP,
    WIDTH,
    axes,
    figure,
    fitting,
    label,
    left_of,
    number,
    points,
    tag,
    upright,
)

N_LINES = 6
"""The most lines of a plot: more cannot be told apart."""

HEIGHT = 170.0
# left, right, top and bottom
Box = tuple[float, float, float, float]
_ROW = 17.0
# each around the place 0, 0: circle, square, triangle, diamond, triangle on its head, cross
_MARKS = (
    "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z", "M-3.2-3.2h6.4v6.4h-6.4z", "M0-4.2L4 3.2H-4z",
    "M0-4.6L4.2 0L0 4.6L-4.2 0z", "M0 4.2L-4-3.2H4z", "M-4-2L-2-4L0-2L2-4L4-2L2 0L4 2L2 4L0 2L-2 4L-4 2L-2 0z",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """
    One line of a plot.

    name: what the legend calls it.
    places: x and y of its points, in order.
    band: lowest and highest y at each point; empty for none.
    notes: a word beside each point; empty for none.
    """

    name: str
    places: tuple[tuple[float, float], ...]
    band: tuple[tuple[float, float], ...] = ()
    notes: tuple[str, ...] = ()


def line_plot(
    name: str,
    title: str,
    description: str,
    lines: Sequence[Line],
    x_label: str,
    y_label: str,
    *,
    is_log: bool = False,
    chosen: tuple[float, float] | None = None,
) -> str:
    """
    Draw lines, each with a colour, a dash and a mark of its own.

    name: unlike that of any other drawing on the page.
    title, description: what it is, and what it shows for people who cannot see it.
    lines: at most `N_LINES`.
    x_label, y_label: what the axes measure.
    is_log: whether x is drawn by its logarithm.
    chosen: a place to be ringed.
    Returns: an ``svg`` element.
    """
    if len(lines) > N_LINES:
        raise ValueError(f"{len(lines)} lines in a plot that has room for {N_LINES}")
    heights = [
        y for line in lines for y in (*(y for _, y in line.places), *(end for ends in line.band for end in ends))
    ]
    y = upright(heights, HEIGHT)
    left = left_of(map(y.text, y.ticks))
    x = Scale.over((x for line in lines for x, _ in line.places), left, WIDTH - RIGHT, is_log=is_log)
    parts = axes(x, y, x_label, y_label)
    for at, line in enumerate(lines, 1):
        places = [(x(across), y(up)) for across, up in line.places]
        drawn = []
        if line.band:
            low = [(x(across), y(ends[0])) for (across, _), ends in zip(line.places, line.band, strict=True)]
            high = [(x(across), y(ends[1])) for (across, _), ends in zip(line.places, line.band, strict=True)]
            drawn.append(tag("polygon", points=points([*low, *reversed(high)]), class_="band"))
        drawn.append(tag("polyline", points=points(places), class_="curve"))
        drawn += _notes(line.notes, places)
        drawn += [_mark(at, *place) for place in places]
        parts.append(tag("g", "".join(drawn), class_=f"s{at}"))
    if chosen is not None:
        parts.append(tag("circle", cx=x(chosen[0]), cy=y(chosen[1]), r=7, class_="ring"))
    bottom = TOP + HEIGHT + BOTTOM
    legend, height = _legend([line.name for line in lines], bottom) if len(lines) > 1 else ([], 0.0)
    return figure(name, title, description, bottom + height, [*parts, *legend])


def _mark(at: int, x: float, y: float) -> str:
    return tag("path", d=_MARKS[at - 1], transform=f"translate({number(x)} {number(y)})", class_="dot")


def _notes(texts: Sequence[str], places: Sequence[tuple[float, float]]) -> list[str]:
    """A word beside each point, where it covers neither another word nor another point, if there is such a place."""
    drawn, taken = [], [(x - 3, x + 3, y - 3, y + 3) for x, y in places]
    for text, (x, y) in zip(texts, places, strict=False):
        width = len(text) * LETTER
        corners = [(left, base) for base in (y - 6, y + 14) for left in (x + 5, x - 5 - width)]
        boxes = [(left, left + width, base - 9, base) for left, base in corners]
        free = (box for box in boxes if box[0] >= 0 and box[1] <= WIDTH and not any(_meet(box, one) for one in taken))
        box = next(free, boxes[0])
        taken.append(box)
        drawn.append(label(text, box[0], box[3], "tick"))
    return drawn


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def _legend(names: Sequence[str], top: float) -> tuple[list[str], float]:
    """The names with a piece of each line, in two columns where they are short; and the height they take."""
    columns = 2 if max(map(len, names)) * LETTER + 36 <= WIDTH / 2 else 1
    width = WIDTH / columns
    drawn = []
    for at, name in enumerate(names):
        x, y = (at % columns) * width, top + 12 + (at // columns) * _ROW
        sample = tag("line", x1=x, x2=x + 26, y1=y, y2=y, class_="curve") + _mark(at + 1, x + 13, y)
        drawn.append(tag("g", sample, class_=f"s{at + 1}") + label(fitting(name, width - 36), x + 32, y + 4))
    return drawn, 12 + -(-len(names) // columns) * _ROW
