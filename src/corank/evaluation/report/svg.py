"""
SVG as text: elements, axes and the frame that every plot stands in.

Plots are 320 units wide and are drawn about as wide on a phone, so that their text stays readable; colours come from
the variables of `corank.evaluation.report.style`.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from corank.evaluation.report.scale import Scale
from corank.evaluation.report.style import COLOURS, PLOT

WIDTH = 320.0
# the mean width of a letter, in a font of 11.5 units
LETTER = 6.6
RIGHT, TOP, BOTTOM = 12.0, 24.0, 36.0


def tag(name: str, content: str = "", **attributes: str | float | None) -> str:
    """
    Write one element.

    name: such as "circle".
    content: what it holds, as SVG.
    attributes: numbers with one decimal; a trailing _ is dropped and other _ become -; None leaves one out.
    Returns: the element.

    >>> tag("circle", cx=1, cy=2.25, class_="dot")
    '<circle cx="1" cy="2.2" class="dot"/>'
    """
    texts = [
        f' {key.rstrip("_").replace("_", "-")}="{value if isinstance(value, str) else number(value)}"'
        for key, value in attributes.items()
        if value is not None
    ]
    return f"<{name}{''.join(texts)}>{content}</{name}>" if content else f"<{name}{''.join(texts)}/>"


def number(value: float) -> str:
    """Write a place with one decimal, and without it where it is 0."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def label(text: str, x: float, y: float, class_: str | None = None, anchor: str | None = None) -> str:
    """Write text at a place: its start there, or its "middle" or "end"."""
    return tag("text", escape(text), x=x, y=y, class_=class_, text_anchor=anchor)


def points(places: Iterable[tuple[float, float]]) -> str:
    """Write places as the `points` of a line."""
    return " ".join(f"{number(x)},{number(y)}" for x, y in places)


def fitting(text: str, width: float) -> str:
    """Cut text that is wider than there is room, with an ellipsis in place of what is missing."""
    room = max(int(width / LETTER), 2)
    return text if len(text) <= room else text[: room - 1] + "…"


def axes(x: Scale, y: Scale, x_label: str, y_label: str) -> list[str]:
    """
    Draw a grid with ticks below and on the left; the name of the upright axis stands above it, where it can be read.

    x, y: the scales; the first tick of each lies on the edge of the other.
    x_label, y_label: what they measure.
    Returns: elements.
    """
    drawn = [label(y_label, 0, 11, "strong"), label(x_label, x.end, y.start + 31, "strong", "end")]
    for tick in y.ticks:
        drawn.append(tag("line", x1=x.start, x2=x.end, y1=y(tick), y2=y(tick), class_="grid"))
        drawn.append(label(y.text(tick), x.start - 5, y(tick) + 4, "tick", "end"))
    drawn.append(tag("line", x1=x.start, x2=x.end, y1=y.start, y2=y.start, class_="axis"))
    return drawn + below(x, y.start)


def below(x: Scale, height: float) -> list[str]:
    """
    Draw the ticks of a scale that lies below a plot, without those that would run into the one before.

    x: the scale.
    height: where the plot ends.
    Returns: elements.
    """
    drawn, free = [], float("-inf")
    for tick in x.ticks:
        text = x.text(tick)
        half = len(text) * LETTER / 2
        middle = min(max(x(tick), half), WIDTH - half)
        drawn.append(tag("line", x1=x(tick), x2=x(tick), y1=height, y2=height + 4, class_="axis"))
        if middle - half >= free:
            drawn.append(label(text, middle, height + 16, "tick", "middle"))
            free = middle + half + LETTER
    return drawn


def left_of(texts: Iterable[str]) -> float:
    """Return the room that the longest of some texts takes on the left."""
    return max((len(text) for text in texts), default=0) * LETTER + 8


def upright(values: Iterable[float], height: float, n_ticks: int = 5) -> Scale:
    """Return the scale of an upright axis for a plot of a given height, with its name above."""
    return Scale.over(values, TOP + height, TOP, n_ticks)


def figure(name: str, title: str, description: str, height: float, parts: Iterable[str]) -> str:
    """
    Put a drawing together.

    name: unlike that of any other on the page.
    title: what it is.
    description: what it shows, for people who cannot see it.
    height: in units, of which the width has 320.
    parts: elements.
    Returns: an ``svg`` element.
    """
    told = f'<title id="{name}-title">{escape(title)}</title>\n<desc id="{name}-desc">{escape(description)}</desc>'
    content = "\n".join(["", told, *parts, ""])
    frame = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(WIDTH)} {number(height)}" role="img"'
    return f'<svg {frame} aria-labelledby="{name}-title {name}-desc">{content}</svg>'


def standalone(drawing: str) -> str:
    """
    Make a file of a drawing: with the style that a page would have given it.

    drawing: an ``svg`` element.
    Returns: the content of a file.
    """
    style = f"<style>{COLOURS}{PLOT}\nsvg {{ background: var(--paper); }}</style>"
    head, rest = drawing.split(">", 1)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}>\n{style}{rest}\n'
