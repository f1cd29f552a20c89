"""Plots of the pages: ticks, and the curve of finds."""

from __future__ import annotations

import numpy as np
import pytest

from corank_lab.pages.plots import MAX_POINTS, Scale, curve
from corank_lab.screening.stopping.forecast import make_forecast
from corank_lab.screening.stopping.rules import stopping_rule


@pytest.mark.parametrize("seed", range(20))
def test_ticks_are_few_round_and_inside(seed):
    rng = np.random.default_rng(seed)
    low = float(rng.normal()) * 10.0 ** rng.integers(-3, 4)
    scale = Scale(low, low + float(rng.exponential()) * 10.0 ** rng.integers(-2, 5) + 1e-3)
    ticks = scale.ticks(5)
    assert 1 <= len(ticks) <= 6
    values = [float(tick.label.replace("−", "-").replace(",", "")) for tick in ticks]
    assert all(scale.low - 1e-9 <= value <= scale.high + 1e-9 for value in values)
    steps = np.diff(values)
    if len(steps):
        assert steps == pytest.approx(steps[0])
        assert min(abs(float(f"{steps[0]:e}"[:3]) - digit) for digit in (1, 2, 5)) < 0.11
    for tick, value in zip(ticks, values, strict=True):
        assert tick.percent == pytest.approx(100 * (value - scale.low) / (scale.high - scale.low), abs=0.01)


def points(found):
    return [tuple(map(float, one.split(","))) for one in found["points"].split()]


def test_the_curve_rises_at_each_find_and_the_band_holds_the_estimate():
    finds, read, n = [1, 2, 3, 5, 9, 14], 40, 200
    forecast = make_forecast(stopping_rule("agree", n), finds, read)
    found = curve(finds, read, n, 0, forecast)
    high = min(n, max(1.15 * read, read + forecast.to_reach))
    top = 1.12 * len(finds) / forecast.estimate.recall
    for x, y in points(found):
        records, relevant = x * high / 1000, (1000 - y) * top / 1000
        assert relevant == pytest.approx(sum(one <= records + 0.02 for one in finds), abs=0.02)
    assert points(found)[-1][0] == pytest.approx(1000 * read / high, abs=0.1)
    assert found["band"]["y"] <= found["band"]["total"] <= found["band"]["y"] + found["band"]["height"]


def test_a_long_curve_has_few_points_and_ends_at_the_last_record():
    finds = list(range(1, 6000, 2))
    found = curve(finds, 7000, 20_000, 3, None)
    assert len(points(found)) <= MAX_POINTS + 1
    assert found["band"] is None
    assert (found["read"], found["found"]) == (7000, 3003)
    assert curve([], 0, 10, 0, None) is None
