"""Charts hold the values they were made from, are reproducible, described in words, and use the page's colours."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from corank.comparison.report.charts import (
    N_LINES,
    N_STEPS,
    WIDTH,
    Curve,
    Interval,
    bar_chart,
    interval_chart,
    line_chart,
    reliability_chart,
    standalone,
    step_chart,
    to_svg,
)
from corank.comparison.report.page import DARK, DASHES, LIGHT
from corank.errors import MissingExtra

mpl = pytest.importorskip("matplotlib")

SVG = "{http://www.w3.org/2000/svg}"
TITLE, DESCRIPTION = "A title & more", "What <it> shows."
CURVES = [
    Curve("SPD", ((10.0, 0.3), (40.0, 0.42), (90.0, 0.45)), ((0.28, 0.32), (0.4, 0.44), (0.43, 0.47))),
    Curve("LCRA <2>", ((10.0, 0.35), (90.0, 0.41)), notes=("few", "many")),
]
ROWS = [Interval("best & first", 0.48, 0.45, 0.51, True), Interval("other " * 12, 0.4, float("nan"), float("nan"))]
BARS = [("long name " * 6, 2.0), ("minus", -1.5), ("none", 0.0)]
BINS = [(0.1, 0.12, 400), (0.5, 0.4, 100), (0.9, 1.0, 1)]
CHARTS = {
    "lines": lambda: line_chart(CURVES, "queries", "AP", chosen=(40.0, 0.42)),
    "log": lambda: line_chart(CURVES[:1], "queries", "AP", is_log=True),
    "decades": lambda: line_chart([Curve("a", ((1e-7, 0.5), (1e6, 0.6)))], "x", "y", is_log=True),
    "one point": lambda: line_chart([Curve("a", ((1.0, 0.5),))], "x", "y"),
    "intervals": lambda: interval_chart(ROWS, "AP"),
    "equal values": lambda: interval_chart([Interval("a", 1.0, 1.0 + 3e-16, 1.0 - 2e-16)], "AP"),  # by rounding
    "bars": lambda: bar_chart(BARS, "weight"),
    "steps": lambda: step_chart([0.2, -0.1, 0.0, float("nan")], "queries", "AP"),
    "many": lambda: step_chart(np.random.default_rng(0).normal(size=5000), "queries", "AP"),
    "one sign": lambda: step_chart([0.2, 0.3], "queries", "AP"),
    "reliability": lambda: reliability_chart(BINS, "predicted", "observed"),
}


def drawn(name):
    return to_svg(CHARTS[name](), "plot", TITLE, DESCRIPTION)


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
    assert len(drawing) < 20_000
    file = ET.fromstring(standalone(drawing).encode())
    assert "--s1" in file.find(f"{SVG}style").text


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
        places = [float(value) for value in re.findall(r"-?[\d.]+", part.get("d") or "")] if not part.get("id") else []
        if part.get("x") is not None:
            places += [float(part.get("x")), float(part.get("y"))]
        assert all(-1 <= x <= width + 1 for x in places[::2])
        assert all(-1 <= y <= height + 1 for y in places[1::2])
        if part.tag == f"{SVG}text":
            wide = len(part.text) * 6.0
            anchor = re.search("text-anchor: (\\w+)", part.get("style") or "")
            start = places[0] - {"middle": wide / 2, "end": wide}.get(anchor[1] if anchor else "", 0.0)
            assert start >= -6
            assert start + wide <= width + 6


def test_a_setting_of_the_user_changes_nothing_and_stays():
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": "x"}):
        other = drawn("lines")
        assert mpl.rcParams["font.size"] == 30
    assert other == drawn("lines")


def test_curves_hold_their_points_bands_and_the_choice():
    (ax,) = CHARTS["lines"]().axes
    for curve, line in zip(CURVES, ax.lines, strict=False):
        np.testing.assert_array_equal(line.get_xydata(), curve.points)
    np.testing.assert_array_equal(ax.lines[-1].get_xydata(), [[40.0, 0.42]])
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert {round(y, 9) for y in heights} == {end for ends in CURVES[0].band for end in ends}
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["SPD", "LCRA <2>"]


def test_labels_of_points_cover_neither_points_nor_each_other():
    points = ((0.9, 0.48), (0.42, 0.481), (0.4, 0.479), (0.38, 0.477), (0.3, 0.45))
    (ax,) = line_chart([Curve("CRR", points, notes=("0", "0.25", "0.5", "0.75", "1"))], "error", "AP").axes
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 5
    for at, box in enumerate(boxes):
        assert not any(box.contains(*place) for place in ax.transData.transform(points))
        assert not any(box.shrunk(0.8, 0.8).overlaps(other.shrunk(0.8, 0.8)) for other in boxes[:at])


def test_intervals_bars_and_reliability_hold_their_values():
    (ax,) = CHARTS["intervals"]().axes
    assert [one.lines[0].get_xdata()[0] for one in ax.containers] == [0.48, 0.4]
    (span,) = ax.containers[0].lines[2]
    assert span.get_segments()[0][:, 0].tolist() == pytest.approx([0.45, 0.51])
    (ax,) = CHARTS["bars"]().axes
    assert [bar.get_width() for bar in ax.patches] == [value for _, value in BARS]
    (ax,) = CHARTS["reliability"]().axes
    (dots,) = ax.collections
    np.testing.assert_array_equal(dots.get_offsets(), [one[:2] for one in BINS])
    assert dots.get_sizes().tolist() == sorted(dots.get_sizes(), reverse=True)


@pytest.mark.parametrize("n", [3, N_STEPS, 5000])
def test_steps_are_the_sorted_values_or_their_quantiles(n):
    values = np.random.default_rng(n).normal(0.3, 1.0, size=n)
    (ax,) = step_chart(values, "queries", "AP").axes
    steps = np.concatenate([patch.get_data().values for patch in ax.patches])
    edges = np.concatenate([patch.get_data().edges for patch in ax.patches])
    wanted = np.sort(values)[::-1]
    if n > N_STEPS:
        wanted = np.quantile(values, 1 - (np.arange(N_STEPS) + 0.5) / N_STEPS)
    np.testing.assert_allclose(steps, wanted)
    assert (edges.min(), edges.max()) == (0, n)


def test_ticks_of_logarithmic_axes_are_powers_of_ten():
    (ax,) = CHARTS["decades"]().axes
    ax.figure.draw_without_rendering()
    ticks = [text.get_text() for text in ax.get_xticklabels()]
    assert "10⁻⁶" in ticks or "10⁻⁷" in ticks
    assert len(ticks) <= 8


def test_too_many_curves_are_refused():
    with pytest.raises(ValueError, match=f"at most {N_LINES}"):
        line_chart(CURVES * 4, "x", "y")


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'corank\[report\]'"):
        CHARTS["bars"]()


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
