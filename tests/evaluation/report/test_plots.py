"""Plots are well-formed, told to people who cannot see them, and every mark stands where its number belongs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from corank.evaluation.report.lines import N_LINES, Line, line_plot
from corank.evaluation.report.rows import Interval, bar_plot, interval_plot
from corank.evaluation.report.spread import N_STEPS, Bin, reliability_plot, waterfall
from corank.evaluation.report.style import DARK, DASHES, LIGHT, PLOT
from corank.evaluation.report.svg import LETTER, WIDTH, standalone

SVG = "{http://www.w3.org/2000/svg}"
TOLD = ("plot", "A title & more", "What <it> shows.")
LINES = [
    Line("SPD", ((10.0, 0.3), (40.0, 0.42), (90.0, 0.45)), ((0.28, 0.32), (0.4, 0.44), (0.43, 0.47))),
    Line("LCRA <2>", ((10.0, 0.35), (90.0, 0.41)), notes=("few", "many")),
]
ROWS = [Interval("best & first", 0.48, 0.45, 0.51, True), Interval("other", 0.4, float("nan"), float("nan"))]
BARS = [("long name " * 6, 2.0), ("minus", -1.5), ("none", 0.0)]
BINS = [Bin(0.1, 0.12, 400), Bin(0.5, 0.4, 100), Bin(0.9, 1.0, 1)]
PLOTS = {
    "lines": lambda: line_plot(*TOLD, LINES, "queries", "AP", chosen=(40.0, 0.42)),
    "log": lambda: line_plot(*TOLD, LINES[:1], "queries", "AP", is_log=True),
    "one point": lambda: line_plot(*TOLD, [Line("a", ((1.0, 0.5),))], "x", "y"),
    "intervals": lambda: interval_plot(*TOLD, ROWS, "AP"),
    "bars": lambda: bar_plot(*TOLD, BARS, "weight"),
    "waterfall": lambda: waterfall(*TOLD, [0.2, -0.1, 0.0, float("nan")], "queries", "AP"),
    "many": lambda: waterfall(*TOLD, np.random.default_rng(0).normal(size=5000), "queries", "AP"),
    "one sign": lambda: waterfall(*TOLD, [0.2, 0.3], "queries", "AP"),
    "reliability": lambda: reliability_plot(*TOLD, BINS, "predicted", "observed"),
}


def parsed(text):
    return ET.fromstring(text)


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]


def scale_of(root, axis):
    """The map from places back to numbers, read off the written ticks alone."""
    ticks = [text for text in root.iter(f"{SVG}text") if text.get("class") == "tick"]
    below = axis == "x"
    found = [
        (float(text.get(axis)) - (0 if below else 4), float(text.text.replace("−", "-")))
        for text in ticks
        if (text.get("text-anchor") == "middle") == below and re.fullmatch(r"−?[\d.]+", text.text)
    ]
    # ticks on the edge are moved inwards, so that they are not cut: the line is that of the others
    (a, first), (b, second) = (found[1], found[2]) if below and len(found) > 2 else (found[0], found[1])
    return lambda place: first + (place - a) / (b - a) * (second - first)


@pytest.mark.parametrize("name", PLOTS)
def test_each_is_xml_that_says_what_it_shows(name):
    drawing = PLOTS[name]()
    assert drawing == PLOTS[name]()
    root = parsed(drawing)
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert (title.text, description.text) == TOLD[1:]
    assert root.get("aria-labelledby").split() == [title.get("id"), description.get("id")]
    assert not re.search("nan|inf", drawing)
    file = parsed(standalone(drawing).encode())
    assert "--s1" in file.find(f"{SVG}style").text


@pytest.mark.parametrize("name", PLOTS)
def test_everything_lies_inside_the_frame(name):
    root = parsed(PLOTS[name]())
    _, _, width, height = numbers(root.get("viewBox"))
    for part in root.iter():
        at = {key: float(part.get(key)) for key in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy") if part.get(key)}
        places = numbers(part.get("points") or "")
        assert all(-0.1 <= v <= width + 0.1 for v in [*(at[k] for k in at if "x" in k), *places[::2]])
        assert all(-0.1 <= v <= height + 0.1 for v in [*(at[k] for k in at if "y" in k), *places[1::2]])
        if part.tag == f"{SVG}text":
            wide, anchor = len(part.text) * LETTER * 0.95, part.get("text-anchor")
            start = at["x"] - {"middle": wide / 2, "end": wide}.get(anchor, 0.0)
            assert start >= -1.5
            assert start + wide <= WIDTH + 1.5


def test_points_of_lines_stand_where_the_ticks_say():
    root = parsed(PLOTS["lines"]())
    to_x, to_y = scale_of(root, "x"), scale_of(root, "y")
    curves = [p for p in root.iter(f"{SVG}polyline") if p.get("class") == "curve"]
    for line, curve in zip(LINES, curves, strict=True):
        places = numbers(curve.get("points"))
        assert [to_x(x) for x in places[::2]] == pytest.approx([x for x, _ in line.places], abs=0.3)
        assert [to_y(y) for y in places[1::2]] == pytest.approx([y for _, y in line.places], abs=1e-3)
    (band,) = root.iter(f"{SVG}polygon")
    heights = [to_y(y) for y in numbers(band.get("points"))[1::2]]
    low, high = zip(*LINES[0].band, strict=True)
    assert heights == pytest.approx([*low, *reversed(high)], abs=1e-3)
    (ring,) = [c for c in root.iter(f"{SVG}circle") if c.get("class") == "ring"]
    assert (to_x(float(ring.get("cx"))), to_y(float(ring.get("cy")))) == pytest.approx((40.0, 0.42), abs=0.3)


def test_notes_cover_neither_points_nor_each_other():
    near = Line(
        "CRR",
        ((0.9, 0.48), (0.42, 0.481), (0.4, 0.479), (0.38, 0.477), (0.3, 0.45)),
        notes=("0", "0.25", "0.5", "0.75", "1"),
    )
    root = parsed(line_plot(*TOLD, [near], "error", "AP"))
    (curve,) = root.iter(f"{SVG}polyline")
    places = np.array(numbers(curve.get("points"))).reshape(-1, 2)
    (series,) = [g for g in root.iter(f"{SVG}g") if g.get("class") == "s1"]
    boxes = []
    for text in series.iter(f"{SVG}text"):
        left, base = float(text.get("x")), float(text.get("y"))
        boxes.append((left, left + len(text.text) * LETTER, base - 9, base))
    assert len(boxes) == 5
    for at, (left, right, top, bottom) in enumerate(boxes):
        assert not any(left < x < right and top < y < bottom for x, y in places)
        for other in boxes[:at]:
            assert right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top


def test_dots_and_intervals_stand_where_the_ticks_say():
    root = parsed(PLOTS["intervals"]())
    to_x = scale_of(root, "x")
    dots = [float(dot.get("cx")) for dot in root.iter(f"{SVG}circle")]
    assert [to_x(x) for x in dots] == pytest.approx([0.48, 0.4], abs=1e-3)
    spans = [
        line for line in root.iter(f"{SVG}line") if line.get("class") == "curve" and line.get("y1") == line.get("y2")
    ]
    assert [[to_x(float(line.get(end))) for end in ("x1", "x2")] for line in spans] == [
        pytest.approx([0.45, 0.51], abs=1e-3)
    ]


def test_bars_reach_from_zero_to_their_value():
    root = parsed(PLOTS["bars"]())
    to_x = scale_of(root, "x")
    for (_, value), bar in zip(BARS, root.iter(f"{SVG}rect"), strict=True):
        ends = [float(bar.get("x")), float(bar.get("x")) + float(bar.get("width"))]
        assert [to_x(end) for end in ends] == pytest.approx(sorted([0.0, value]), abs=0.02)
    assert next(root.iter(f"{SVG}rect")).find(f"{SVG}title").text == f"{BARS[0][0]}: 2"


@pytest.mark.parametrize("n", [3, N_STEPS, 5000])
def test_steps_of_a_waterfall_are_the_sorted_differences(n):
    values = np.random.default_rng(n).normal(0.3, 1.0, size=n)
    root = parsed(waterfall(*TOLD, values, "queries", "AP"))
    to_y = scale_of(root, "y")
    steps = []
    for part in root.iter(f"{SVG}polygon"):
        heights = numbers(part.get("points"))[1::2]
        steps += [to_y(y) for y in heights[1:-1:2]]
    wanted = np.sort(values)[::-1]
    if n > N_STEPS:
        wanted = np.quantile(values, 1 - (np.arange(N_STEPS) + 0.5) / N_STEPS)
    assert steps == pytest.approx(wanted.tolist(), abs=0.02 * (1 if n <= N_STEPS else 2))


def test_reliable_predictions_lie_on_the_diagonal_and_areas_are_counts():
    root = parsed(PLOTS["reliability"]())
    to_x, to_y = scale_of(root, "x"), scale_of(root, "y")
    dots = list(root.iter(f"{SVG}circle"))
    assert [to_x(float(dot.get("cx"))) for dot in dots] == pytest.approx([one.predicted for one in BINS], abs=5e-3)
    assert [to_y(float(dot.get("cy"))) for dot in dots] == pytest.approx([one.observed for one in BINS], abs=5e-3)
    assert [float(dot.get("r")) for dot in dots] == sorted((float(dot.get("r")) for dot in dots), reverse=True)
    assert dots[0].find(f"{SVG}title").text.startswith("400 rows")


def test_too_many_lines_are_refused():
    with pytest.raises(ValueError, match=f"room for {N_LINES}"):
        line_plot(*TOLD, LINES * 4, "x", "y")


def luminance(colour):
    """Relative luminance as WCAG 2 defines it."""
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_contrasts_are_those_of_wcag_aa(colours):
    for text in ("ink", "quiet", "link"):
        assert contrast(colours[text], colours["paper"]) >= 4.5
        assert contrast(colours[text], colours["raised"]) >= 4.5
    series = [colours[f"s{at}"] for at in range(1, N_LINES + 1)]
    assert all(contrast(colour, colours["paper"]) >= 3 for colour in series)
    # lightness L* of CIE, what is left in a grey copy
    lightness = sorted(116 * luminance(colour) ** (1 / 3) - 16 for colour in series)
    assert min(np.diff(lightness)) >= 4


def test_lines_differ_in_dashes_too():
    assert len(set(DASHES)) == len(DASHES) == N_LINES
    assert all(f".s{at} .curve {{ stroke-dasharray: {dash}; }}" in PLOT for at, dash in enumerate(DASHES, 1) if dash)
