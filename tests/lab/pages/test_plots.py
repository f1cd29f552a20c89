"""The curve of finds."""

from __future__ import annotations

import re

import pytest

from corank_lab.pages.markup import MAX_POINTS, curve
from corank_lab.screening.stopping.forecast import Forecaster
from corank_lab.screening.stopping.rules import stopping_rule


def points(drawing, kind="line s1"):
    path = re.search(rf'class="{kind}"[^>]* d="([^"]+)"', drawing)[1]
    return [tuple(map(float, one.split())) for one in path.strip("MZ").split("L")]


def test_the_curve_rises_at_each_find_and_the_band_holds_the_estimate():
    finds, read, n = [1, 2, 3, 5, 9, 14], 40, 200
    forecast = Forecaster(stopping_rule("agree", n)).forecast(finds, read)
    drawing = curve(finds, read, n, 0, forecast)["drawing"]
    found = points(drawing)
    left, bottom = found[0]
    right, top = found[-1]
    for x, y in found:
        records, relevant = (x - left) / (right - left) * read, (y - bottom) / (top - bottom) * len(finds)
        assert relevant == pytest.approx(sum(one <= records + 0.2 for one in finds), abs=0.02)
    level = points(drawing, "line s2")[0][1]
    heights = [y for _, y in points(drawing, "band s2")]
    assert min(heights) <= level <= max(heights)
    for title in ("records read", "relevant records"):
        assert title in drawing


def test_a_long_curve_has_few_points_and_ends_at_the_last_record():
    shown = curve(list(range(1, 6000, 2)), 7000, 20_000, 3, None)
    assert len(points(shown["drawing"])) <= MAX_POINTS + 1
    assert "band" not in shown["drawing"]
    assert (shown["read"], shown["found"]) == (7000, 3003)
    assert curve([], 0, 10, 0, None) is None
