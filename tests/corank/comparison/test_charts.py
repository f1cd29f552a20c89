"""Charts hold the values they were made from, are reproducible, described in words, and use the page's colours."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from corank.comparison.charts import (
    DASHES,
    N_LINES,
    WIDTH,
    Axis,
    Curve,
    IntervalRow,
    interval_chart,
    line_chart,
)
from corank.comparison.report import STYLE

SVG = "{http://www.w3.org/2000/svg}"
TITLE, DESCRIPTION = "A title & more", "What <it> shows."
CURVES = [
    Curve("SPD", ((10.0, 0.3), (40.0, 0.42), (90.0, 0.45)), ((0.28, 0.32), (0.4, 0.44), (0.43, 0.47))),
    Curve("LCRA <2>", ((10.0, 0.35), (90.0, 0.41))),
]
ROWS = [
    IntervalRow("best & first", 0.48, 0.45, 0.51, True),
    IntervalRow("other " * 12, 0.4, float("nan"), float("nan")),
]
CHARTS = {
    "lines": lambda: line_chart(CURVES, "queries", "AP"),
    "log": lambda: line_chart(CURVES[:1], "queries", "AP", is_log=True),
    "decades": lambda: line_chart([Curve("a", ((1e-7, 0.5), (1e6, 0.6)))], "x", "y", is_log=True),
    "one point": lambda: line_chart([Curve("a", ((1.0, 0.5),))], "x", "y"),
    "intervals": lambda: interval_chart(ROWS, "AP"),
    "equal values": lambda: interval_chart([IntervalRow("a", 1.0, 1.0 + 3e-16, 1.0 - 2e-16)], "AP"),  # by rounding
}


def drawn(name):
    return CHARTS[name]().svg("plot", TITLE, DESCRIPTION)


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", CHARTS)
def test_each_is_reproducible_xml_with_a_description(name):
    drawing = drawn(name)
    assert drawing == drawn(name)
    root = ET.fromstring(drawing)
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert (title.text, description.text) == (TITLE, DESCRIPTION)
    assert root.get("aria-labelledby").split() == [title.get("id"), description.get("id")]
    assert not re.search(r"\b(nan|inf)\b", drawing)
    assert len(drawing) < 30_000


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", CHARTS)
def test_nothing_names_a_host_a_date_a_font_or_a_colour_of_its_own(name):
    drawing = drawn(name).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"http|url\(|metadata|matplotlib|font-family|xlink", drawing, re.IGNORECASE)
    assert not re.search('#[0-9a-f]{6}[;"]', drawing), "a colour that dark mode would not change"
    ids = re.findall(r'\bid="(.*?)"', drawing)
    assert len(ids) == len(set(ids))
    assert all(one.startswith("plot-") for one in ids)
    assert set(re.findall(r'href="#(.*?)"', drawing)) <= set(ids)


@pytest.mark.thin(4)
@pytest.mark.parametrize("name", CHARTS)
def test_everything_lies_inside_the_frame(name):
    root = ET.fromstring(drawn(name))
    _, _, width, height = map(float, root.get("viewBox").split())
    assert width == WIDTH
    for part in root.iter():
        places = [float(value) for value in re.findall(r"-?[\d.]+", part.get("d") or "")]
        for x, y in (("x", "y"), ("cx", "cy")):
            places += [float(part.get(x)), float(part.get(y))] if part.get(x) is not None else []
        assert all(-1 <= x <= width + 1 for x in places[::2])
        assert all(-1 <= y <= height + 1 for y in places[1::2])
        if part.tag == f"{SVG}text":
            wide = len(part.text) * 6.0
            start = places[0] - {"middle": wide / 2, "end": wide}.get(part.get("text-anchor"), 0.0)
            assert start >= -6
            assert start + wide <= width + 6


def numbers(chart, kind):
    """Return the points of each path of a kind in numbers of the axes, read back from the drawing and its marks."""
    root = ET.fromstring(chart.svg("plot", TITLE, DESCRIPTION))
    grid = [re.findall(r"-?[\d.]+", one.get("d")) for one in root.iter(f"{SVG}path") if one.get("class") == "grid"]
    rows = {
        "x": [float(one[0]) for one in grid if one[0] == one[2]],
        "y": [float(one[1]) for one in grid if one[1] == one[3]],
    }
    fits = {}
    for name, axis in (("x", chart.x), ("y", chart.y)):
        known = [value for value, _ in axis.ticks()]
        slope = (known[-1] - known[0]) / (rows[name][-1] - rows[name][0])
        fits[name] = (slope, known[0] - slope * rows[name][0])
    found = []
    for one in root.iter(f"{SVG}path"):
        if one.get("class").split()[0] == kind:
            flat = [float(value) for value in re.findall(r"-?[\d.]+", one.get("d"))]
            found.append([
                (fits["x"][0] * x + fits["x"][1], fits["y"][0] * y + fits["y"][1])
                for x, y in zip(flat[::2], flat[1::2], strict=True)
            ])  # fmt: skip
    return found


def test_curves_and_bands_are_drawn_at_their_values():
    chart = CHARTS["lines"]()
    first, second, *samples = numbers(chart, "line")
    assert len(samples) == len(CURVES), "the legend has a sample of each line"
    np.testing.assert_allclose(first, CURVES[0].points, atol=0.3)
    np.testing.assert_allclose(second, CURVES[1].points, atol=0.3)
    np.testing.assert_allclose([y for _, y in first], [y for _, y in CURVES[0].points], atol=0.002)
    (band,) = numbers(chart, "band")
    ends = [low for low, _ in CURVES[0].band] + [high for _, high in CURVES[0].band[::-1]]
    np.testing.assert_allclose([y for _, y in band], ends, atol=0.002)
    assert chart.legend == ["SPD", "LCRA <2>"]


def test_intervals_hold_their_values():
    chart = CHARTS["intervals"]()
    assert [(x, y) for x, y, *_ in chart.dots] == [(0.48, 0), (0.4, 1)]
    assert [curve.points for curve, _ in chart.lines] == [((0.45, 0), (0.51, 0)), ((0.4, 1), (0.4, 1))]


@pytest.mark.parametrize("seed", range(20))
def test_ticks_are_few_round_and_inside(seed):
    rng = np.random.default_rng(seed)
    low = float(rng.normal()) * 10.0 ** rng.integers(-3, 4)
    axis = Axis(low, low + float(rng.exponential()) * 10.0 ** rng.integers(-2, 5) + 1e-3)
    values = [value for value, _ in axis.ticks(5)]
    assert 1 <= len(values) <= 6
    assert all(axis.low - 1e-9 <= value <= axis.high + 1e-9 for value in values)
    steps = np.diff(values)
    if len(steps):
        assert steps == pytest.approx(steps[0])
        assert min(abs(float(f"{steps[0]:e}"[:3]) - digit) for digit in (1, 2, 5)) < 0.11
    for value, label in axis.ticks(5):
        assert float(label.replace("−", "-").replace(",", "")) == pytest.approx(value, abs=1e-9)
        assert axis.place(value) == pytest.approx((value - axis.low) / (axis.high - axis.low), abs=1e-9)


def test_ticks_of_logarithmic_axes_are_powers_of_ten():
    labels = [label for _, label in CHARTS["decades"]().x.ticks()]
    assert "10⁻⁶" in labels or "10⁻⁷" in labels
    assert 3 <= len(labels) <= 8
    axis = Axis(1, 1000, is_log=True)
    assert [axis.place(value) for value in (1, 10, 100, 1000)] == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_too_many_curves_are_refused():
    with pytest.raises(ValueError, match=f"at most {N_LINES}"):
        line_chart(CURVES * 4, "x", "y")


def luminance(colour):
    """Relative luminance as WCAG 2 defines it."""
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("place", [0, 1])
def test_contrasts_are_those_of_wcag_aa(place):
    light_or_dark = re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)[place]
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", light_or_dark))
    for text in ("ink", "soft", "accent"):
        assert contrast(colours[text], colours["paper"]) >= 4.5
        assert contrast(colours[text], colours["card"]) >= 4.5
    series = [colours[f"s{at}"] for at in range(1, N_LINES + 1)]
    assert all(contrast(colour, colours["card"]) >= 3 for colour in series)
    # lightness L* of CIE, what is left in a grey copy
    lightness = sorted(116 * luminance(colour) ** (1 / 3) - 16 for colour in series)
    assert min(np.diff(lightness)) >= 4


def test_lines_differ_in_dashes_too():
    assert len(set(DASHES)) == len(DASHES) == N_LINES
