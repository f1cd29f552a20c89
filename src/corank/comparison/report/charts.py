"""Charts of a report, drawn by matplotlib, as SVG that takes its colours and fonts from the page."""

from __future__ import annotations

import io
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from corank.comparison.report.page import COLOURS, DASHES, LIGHT, PLOT
from corank.errors import import_extra

WIDTH, HEIGHT = 320.0, 215.0
"""Size of a chart in CSS pixels at its natural size; pages scale it to the column."""

WIDER, HIGHER = 2.5, 1.3
"""Factors of the drawing of a lone chart for wide windows, where the natural one would have huge letters."""

N_LINES = len(DASHES)
"""Largest number of lines in a chart: each has its own colour, dash pattern and marker."""

N_STEPS = 240
"""Largest number of steps in a step chart; more values are drawn as quantiles."""

FONT_SIZE = 11.5
_MARKERS = "os^DvX"
_LETTER = 6.6  # mean width of a letter at `FONT_SIZE`
_ROW = 17.0
_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_VARIABLES = {colour: f"var(--{name})" for name, colour in LIGHT.items()}
_STYLE = {
    "font.size": FONT_SIZE, "axes.titlesize": FONT_SIZE, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.labelweight": "bold", "xaxis.labellocation": "right", "text.color": LIGHT["ink"], "axes.grid": True,
    "axes.labelcolor": LIGHT["ink"], "axes.titlecolor": LIGHT["ink"], "axes.edgecolor": LIGHT["quiet"],
    "xtick.color": LIGHT["quiet"], "ytick.color": LIGHT["quiet"], "grid.color": LIGHT["line"], "grid.linewidth": 0.7,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False, "ytick.major.size": 0.0,
    "axes.axisbelow": True, "lines.linewidth": 2.0, "lines.markersize": 6.5, "lines.scale_dashes": False,
    "figure.facecolor": "none", "axes.facecolor": "none", "legend.frameon": False, "legend.handlelength": 2.4,
    "figure.constrained_layout.w_pad": 3 / 72, "figure.constrained_layout.h_pad": 3 / 72,
    "svg.fonttype": "none", "svg.hashsalt": "corank", "xtick.minor.size": 0.0,
}  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """One line of a chart."""

    name: str  # text of the legend
    points: tuple[tuple[float, float], ...]  # (x, y) in order
    band: tuple[tuple[float, float], ...] = ()  # (low, high) at each point; empty for none
    notes: tuple[str, ...] = ()  # a label for each point; empty for none


@dataclass(frozen=True)
class Interval:
    """One row of an interval chart."""

    name: str
    mean: float  # mean, low, high: value and ends of its interval; ends that are not finite draw no interval
    low: float
    high: float
    is_strong: bool = False  # whether the row is emphasised


def line_chart(
    curves: Sequence[Curve],
    x_label: str,
    y_label: str,
    *,
    is_log: bool = False,
    chosen: tuple[float, float] | None = None,
) -> Any:
    """Draw up to `N_LINES` curves."""
    if len(curves) > N_LINES:
        raise ValueError(f"there are {len(curves)} curves; a chart shows at most {N_LINES}")
    names = [_shortened(curve.name, 0.85 * WIDTH) for curve in curves] if len(curves) > 1 else []
    columns = 2 if names and max(map(len, names)) * _LETTER + 40 <= WIDTH / 2 else 1
    with _axes(HEIGHT + _ROW * math.ceil(len(names) / columns), x_label, y_label) as ax:
        if is_log:
            _log_axis(ax, [x for curve in curves for x, _ in curve.points])
        for at, curve in enumerate(curves):
            colour, dash = LIGHT[f"s{at + 1}"], DASHES[at]
            x, y = np.array(curve.points).T
            if curve.band:
                ax.fill_between(x, *np.array(curve.band).T, color=colour, alpha=0.11, linewidth=0)
            ax.plot(x, y, color=colour, marker=_MARKERS[at], linestyle=(0, dash) if dash else "-")
            _add_notes(ax, curve)
        if chosen is not None:
            ax.plot(*chosen, "o", markersize=14, markerfacecolor="none", color=LIGHT["ink"], markeredgewidth=1.6)
        if names:
            ax.figure.legend(ax.lines[: len(names)], names, loc="outside lower left", ncols=columns, borderpad=0)
    return ax.figure


def interval_chart(rows: Sequence[Interval], x_label: str) -> Any:
    """Draw a dot and an interval for each row, from the top, with the name above it."""
    with _axes(40 + 33.0 * len(rows), x_label) as ax:
        for at, row in enumerate(rows):
            # rounding may place the mean of equal values beside their interval
            ends = [[max(row.mean - row.low, 0.0)], [max(row.high - row.mean, 0.0)]] if math.isfinite(row.low) else None
            ax.errorbar(row.mean, at, xerr=ends, fmt="o", capsize=4, color=LIGHT["s1"], ms=10 if row.is_strong else 7)
            width = WIDTH * (0.88 if row.is_strong else 1.0)
            ax.text(
                0, at - 0.32, _shortened(row.name, width), transform=ax.get_yaxis_transform(), in_layout=False,
                weight="bold" if row.is_strong else "normal",
            )  # fmt: skip
        ax.set_ylim(len(rows) - 0.6, -0.85)
        ax.set_yticks([])
    return ax.figure


def bar_chart(rows: Sequence[tuple[str, float]], x_label: str) -> Any:
    """Draw a bar to the left or right of zero for each (name, value), from the top."""
    with _axes(40 + 19.0 * len(rows), x_label) as ax:
        values = [value for _, value in rows]
        ax.barh(range(len(rows)), values, 0.68, color=[LIGHT["s1" if value >= 0 else "s2"] for value in values])
        ax.set_yticks(range(len(rows)), [_shortened(name, 0.42 * WIDTH) for name, _ in rows], color=LIGHT["ink"])
        ax.axvline(0.0, color=LIGHT["quiet"], linewidth=1)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.grid(False, axis="y")
    return ax.figure


def step_chart(values: Sequence[float], x_label: str, y_label: str) -> Any:
    """Draw values in descending order as steps around zero; NaN is left out, more than `N_STEPS` become quantiles."""
    known = np.sort(np.asarray(values, dtype=np.float64))[::-1]
    known = known[np.isfinite(known)]
    n = min(len(known), N_STEPS)
    steps = known if len(known) == n else np.quantile(known, (n - 0.5 - np.arange(n)) / n)
    edges = np.linspace(0, len(known), n + 1)
    with _axes(HEIGHT, x_label, y_label) as ax:
        for colour, sign in (("s1", 1.0), ("s2", -1.0)):
            at = np.flatnonzero(sign * steps > 0)  # consecutive: the steps are sorted
            if len(at):
                ax.stairs(steps[at], edges[at[0] : at[-1] + 2], fill=True, color=LIGHT[colour])
        ax.axhline(0.0, color=LIGHT["quiet"], linewidth=1)
        ax.set_xlim(0, len(known))
        ax.xaxis.get_major_locator().set_params(integer=True, nbins=5)
    return ax.figure


def reliability_chart(bins: Sequence[tuple[float, float, int]], x_label: str, y_label: str) -> Any:
    """Draw observed against predicted for bins (predicted, observed, number of rows); areas are numbers of rows."""
    predicted, observed, n_rows = np.array(bins).T
    with _axes(270.0, x_label, y_label) as ax:
        ax.plot([0, 1], [0, 1], color=LIGHT["quiet"], linewidth=1, linestyle=(0, (4, 3)))
        ax.plot(predicted, observed, color=LIGHT["s1"])
        ax.scatter(predicted, observed, (5 + 12 * np.sqrt(n_rows / n_rows.max())) ** 2, color=LIGHT["s1"], linewidth=0)
        ax.set_aspect("equal", anchor="W")
        ax.set_xticks(np.arange(5) / 4)
        ax.set_yticks(np.arange(5) / 4)
    return ax.figure


@contextmanager
def _axes(height: float, x_label: str, y_label: str = "") -> Iterator[Any]:
    """Yield the axes of a new figure, with matplotlib's defaults instead of the user's settings."""
    matplotlib = import_extra("matplotlib", "report")
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        ax = Figure((WIDTH / 72, height / 72), dpi=72, layout="constrained").subplots()
        ax.set_xlabel(x_label)
        ax.set_title(y_label)
        ax.locator_params(nbins=6)
        yield ax


def _log_axis(ax: Any, values: Sequence[float]) -> None:
    """Draw x by its logarithm, with ticks at powers of ten, or at 1, 2 and 5 times these for less than two decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.set_xscale("log")
    subs = (1.0,) if max(values) / min(values) > 100 else (1.0, 2.0, 5.0)
    ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=6))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _power(x)))


def _power(x: float) -> str:
    """Write a number of a logarithmic axis: as a power of ten below 0.001 and from 100,000 on."""
    if 1e-3 <= x < 1e5:
        return f"{x:g}"
    factor, _, power = f"{x:.0e}".partition("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return ("" if factor == "1" else f"{factor}·") + f"10{raised}"


def _add_notes(ax: Any, curve: Curve) -> None:
    """Label each point at a corner where the label covers no point and no other label, if there is one."""
    if not curve.notes:
        return
    ax.margins(y=0.15)
    ax.figure.draw_without_rendering()  # computes the layout
    pixels, top = ax.transData.transform(curve.points), ax.bbox.y1
    taken = [(x - 3, x + 3, y - 3, y + 3) for x, y in pixels]
    for note, point, (x, y) in zip(curve.notes, curve.points, pixels, strict=True):
        width = len(note) * _LETTER
        corners = [(across, up) for up in (6, -14, 17, -25) for across in (5, -5 - width)]
        boxes = [(x + across, x + across + width, y + up - 2, y + up + 10) for across, up in corners]
        inside = [box[0] >= 0 and box[1] <= WIDTH and box[3] <= top for box in boxes]
        free = [at for at, box in enumerate(boxes) if inside[at] and not _overlaps(box, taken)]
        at = next(iter(free), inside.index(True) if any(inside) else 0)
        taken.append(boxes[at])
        ax.annotate(note, point, corners[at], textcoords="offset pixels", color=LIGHT["quiet"], in_layout=False)


def _overlaps(box: tuple[float, ...], others: Sequence[tuple[float, ...]]) -> bool:
    left, right, low, high = box
    return any(left < other[1] and other[0] < right and low < other[3] and other[2] < high for other in others)


def _shortened(text: str, width: float) -> str:
    """Cut a text that is wider than `width`, with an ellipsis at the end."""
    n = max(int(width / _LETTER), 2)
    return text if len(text) <= n else text[: n - 1] + "…"


def to_svg(figure: Any, name: str, title: str, description: str, *, is_wide: bool = False) -> str:
    """Return a figure as an ``svg`` element for a page."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    natural = figure.get_size_inches()
    if is_wide:
        figure.set_size_inches(natural[0] * WIDER, natural[1] * HIGHER)
    for artist in figure.findobj():
        artist.set_clip_on(False)  # everything lies inside the axes
    buffer = io.StringIO()
    with matplotlib.rc_context({key: _STYLE[key] for key in ("svg.fonttype", "svg.hashsalt")}):
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    figure.set_size_inches(natural)
    root = ET.fromstring(buffer.getvalue())
    content = "\n".join(_element(child, name) for child in root if child.tag == f"{_SVG}g")
    labels = f'<title id="{name}-title">{escape(title)}</title>\n<desc id="{name}-desc">{escape(description)}</desc>'
    frame = f'xmlns="http://www.w3.org/2000/svg" viewBox="{root.get("viewBox")}" role="img"'
    return f'<svg {frame} aria-labelledby="{name}-title {name}-desc">\n{labels}\n{content}\n</svg>'


def _element(node: ET.Element, name: str) -> str:
    """Write an element of matplotlib's SVG: own ids, no fonts, the page's colours, one decimal."""
    inside = "".join(_element(child, name) for child in node)
    tag = node.tag.removeprefix(_SVG)
    if tag == "g" and not node.get("transform"):
        return inside
    attributes = {}
    for key, value in node.items():
        if key == "style":
            attributes[key] = _style(value)
        elif key == "id":
            attributes[key] = f"{name}-{value}"
        elif key == _LINK:
            attributes["href"] = f"#{name}-{value.removeprefix('#')}"
        elif not (key == "transform" and value.startswith("rotate(-0 ")):
            attributes[key] = _rounded(value)
    texts = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items() if value)
    content = escape((node.text or "").strip(), quote=False) + inside
    return f"<{tag}{texts}>{content}</{tag}>" if content else f"<{tag}{texts}/>"


def _style(text: str) -> str:
    """Replace colours by variables of the page; the page chooses fonts."""
    rules = [rule.strip() for rule in text.split(";") if rule.strip() and not re.match(r"\s*font-(size|family)", rule)]
    return re.sub("#[0-9a-f]{6}", lambda found: _VARIABLES.get(found[0], found[0]), "; ".join(rules))


def _rounded(text: str) -> str:
    """Round coordinates to one decimal."""
    short = re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), " ".join(text.split()))
    return re.sub(r" ?([MLQCHVzZ]) ?", r"\1", short)


def standalone(drawing: str) -> str:
    """Return an ``svg`` element as the content of a file, with the styles that a page defines."""
    style = f"<style>{COLOURS}{PLOT}\nsvg {{ background: var(--paper); }}</style>"
    head, rest = drawing.split(">", 1)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}>\n{style}{rest}\n'
