"""Plots of many values at once: differences query by query, sorted, and predictions against what came true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corank.evaluation.report.lines import HEIGHT
from corank.evaluation.report.scale import Scale
from corank.evaluation.report.svg import BOTTOM, RIGHT, TOP, WIDTH, axes, figure, left_of, points, tag, upright

N_STEPS = 240
"""The most steps of a waterfall, about one for each unit of its width."""


def waterfall(name: str, title: str, description: str, differences: Sequence[float], x_label: str, y_label: str) -> str:
    """
    Draw differences, the highest first, as one flight of steps around zero.

    name: unlike that of any other drawing on the page.
    title, description: what it is, and what it shows for people who cannot see it.
    differences: in any order; NaN are passed over. Of more than `N_STEPS`, as many quantiles are drawn.
    x_label, y_label: what is counted, and what differs.
    Returns: an ``svg`` element.
    """
    known = np.sort(np.asarray(differences, dtype=np.float64))[::-1]
    known = known[np.isfinite(known)]
    y = upright([0.0, *known[[0, -1]].tolist()] if len(known) else [], HEIGHT)
    x = Scale(0.0, float(len(known)), left_of(map(y.text, y.ticks)), WIDTH - RIGHT, _counts(len(known)))
    n = min(len(known), N_STEPS)
    steps = known if len(known) == n else np.quantile(known, (n - 0.5 - np.arange(n)) / n)
    edges = [x(len(known) * at / n) for at in range(n + 1)]
    parts = axes(x, y, x_label, y_label)
    for series, inside in (("s1", steps > 0), ("s2", steps < 0)):
        at = np.flatnonzero(inside)
        if len(at) == 0:
            continue
        # the signs are runs: positive steps stand before all others, negative ones after
        outline = [(edges[at[0]], y(0.0))]
        for step in at:
            outline += [(edges[step], y(float(steps[step]))), (edges[step + 1], y(float(steps[step])))]
        outline.append((edges[at[-1] + 1], y(0.0)))
        parts.append(tag("g", tag("polygon", points=points(outline), class_="area"), class_=series))
    parts.append(tag("line", x1=x.start, x2=x.end, y1=y(0.0), y2=y(0.0), class_="axis"))
    return figure(name, title, description, TOP + HEIGHT + BOTTOM, parts)


def _counts(n: int) -> tuple[float, ...]:
    """Ticks of a scale that counts to n: round numbers inside it."""
    ticks = Scale.over([0.0, float(n)], 0, 1, 4).ticks
    return tuple(tick for tick in ticks if tick <= n and tick == int(tick))


@dataclass(frozen=True)
class Bin:
    """
    Rows of about the same prediction.

    predicted, observed: means of what was predicted and of what came true, between 0 and 1.
    n_rows: how many they are.
    """

    predicted: float
    observed: float
    n_rows: int


def reliability_plot(name: str, title: str, description: str, bins: Sequence[Bin], x_label: str, y_label: str) -> str:
    """
    Draw what came true against what was predicted; the areas of the dots are their numbers of rows.

    name: unlike that of any other drawing on the page.
    title, description: what it is, and what it shows for people who cannot see it.
    bins: the dots.
    x_label, y_label: what the axes measure.
    Returns: an ``svg`` element.
    """
    size = 226.0
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0)
    y = Scale(0.0, 1.0, TOP + size, TOP, ticks)
    left = left_of(map(y.text, ticks))
    x = Scale(0.0, 1.0, left, left + size, ticks)
    most = max(one.n_rows for one in bins)
    parts = axes(x, y, x_label, y_label)
    parts.append(tag("line", x1=x(0.0), y1=y(0.0), x2=x(1.0), y2=y(1.0), class_="axis", stroke_dasharray="4 3"))
    places = [(x(one.predicted), y(one.observed)) for one in bins]
    drawn = tag("polyline", points=points(places), class_="curve") if len(bins) > 1 else ""
    for one, (across, up) in zip(bins, places, strict=True):
        told = f"<title>{one.n_rows} rows: {one.predicted:.3f} predicted, {one.observed:.3f} observed</title>"
        drawn += tag("circle", told, cx=across, cy=up, r=2.5 + 6 * math.sqrt(one.n_rows / most), class_="dot")
    parts.append(tag("g", drawn, class_="s1"))
    return figure(name, title, description, TOP + size + BOTTOM, parts)
