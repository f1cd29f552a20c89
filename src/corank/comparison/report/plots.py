"""The plots of a study, each registered with the section of the report that shows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from corank.comparison.report.blocks import Plot
from corank.comparison.report.charts import (
    N_LINES,
    Chart,
    Curve,
    IntervalRow,
    bar_chart,
    interval_chart,
    line_chart,
    reliability_chart,
    step_chart,
)

if TYPE_CHECKING:
    from corank.comparison.values import MethodOutcome, Study

Drawing = tuple[str, Chart, str, str]
"""Title, figure, description for screen readers and caption of a plot."""

PLOTS: dict[str, tuple[str, Callable[[Study], Drawing | None]]] = {}
"""Name of each plot: its section, and the function that draws it, or returns None if the study lacks the data."""

SECTIONS = ("leaderboard", "curve", "winner", "queries")
"""Sections of the report that show plots."""

N_BARS = 20
"""Largest number of coefficients in a plot."""


def study_plot(name: str, section: str) -> Callable[[Callable[[Study], Drawing | None]], Any]:
    """Register a function as a plot of one of the `SECTIONS`."""
    if section not in SECTIONS:
        raise ValueError(f"section is {section!r}; choose one of {', '.join(SECTIONS)}.")

    def register(draw: Callable[[Study], Drawing | None]) -> Callable[[Study], Drawing | None]:
        PLOTS[name] = (section, draw)
        return draw

    return register


def plots_of(study: Study, section: str) -> tuple[Plot, ...]:
    """Draw the plots of one section."""
    drawn = {name: draw(study) for name, (place, draw) in PLOTS.items() if place == section}
    known = {name: drawing for name, drawing in drawn.items() if drawing is not None}
    # several plots share the width of the window, a lone one has it for itself
    is_lone = len(known) == 1
    return tuple(
        Plot.of(chart, name, title, description, caption, is_lone=is_lone)
        for name, (title, chart, description, caption) in known.items()
    )


def reference_of(study: Study) -> MethodOutcome | None:
    """Return the method that the winner is compared with: the simplest, or else the best other; None if alone."""
    if study.simplest and study.simplest != study.winner:
        return study.outcome(study.simplest)
    return next((item for item in study.outcomes if item.is_complete and item.name != study.winner), None)


@study_plot("leaderboard", "leaderboard")
def intervals(study: Study) -> Drawing | None:
    """Draw the mean and interval of every complete method, the best first."""
    rows = [
        IntervalRow(
            outcome.title,
            outcome.evaluation[study.metric].mean,
            outcome.low,
            outcome.high,
            outcome.name == study.winner,
        )
        for outcome in study.outcomes
        if outcome.evaluation is not None
    ]
    rows = [row for row in rows if math.isfinite(row.mean)]
    if not rows:
        return None
    description = "; ".join(f"{row.name} {row.mean:.4f} ({row.low:.4f} to {row.high:.4f})" for row in rows)
    chosen = " The chosen method is in bold." if any(row.is_strong for row in rows) else ""
    caption = (
        f"{study.metric} with {study.level:.0%} intervals.{chosen} Overlapping intervals do not mean that two methods "
        "are equal: the paired tests compare them query by query."
    )
    return f"{study.metric} of each method", interval_chart(rows, study.metric), description, caption


@study_plot("curve", "curve")
def curves(study: Study) -> Drawing | None:
    """Draw the metric against the number of scored queries, for the first methods of the leaderboard."""
    by_method = {
        item.name: [p for p in study.curve if p.method == item.name and math.isfinite(p.mean)]
        for item in study.outcomes
    }
    known = {name: points for name, points in by_method.items() if points}
    if not known:
        return None
    kept = list(known)[:N_LINES]
    # the simplest method is always shown: it is the baseline
    if study.simplest in known and study.simplest not in kept:
        kept[-1] = study.simplest
    lines = [
        Curve(
            study.outcome(name).title,
            tuple((float(p.n_queries), p.mean) for p in known[name]),
            tuple((p.low, p.high) for p in known[name]) if all(math.isfinite(p.low) for p in known[name]) else (),
        )
        for name in kept
    ]
    is_log = min(x for line in lines for x, _ in line.points) > 0
    description = "; ".join(f"{line.name}: " + ", ".join(f"{y:.4f} at {x:g}" for x, y in line.points) for line in lines)
    some = f" The first {len(kept)} of {len(known)} methods; the table has all." if len(kept) < len(known) else ""
    caption = f"{study.metric} by the number of scored training queries, with {study.level:.0%} intervals.{some}"
    figure = line_chart(lines, "scored queries", study.metric, is_log=is_log)
    return "Learning curves", figure, description, caption


@study_plot("path", "winner")
def path(study: Study) -> Drawing | None:
    """Draw the held-out metric of each candidate value of the winner's parameter."""
    points = sorted((p for p in study.path if math.isfinite(p.mean)), key=lambda p: p.value)
    if len(points) < 2:
        return None
    name = points[0].parameter
    places = tuple((p.value, p.mean) for p in points)
    chosen = next(((p.value, p.mean) for p in points if p.is_chosen), None)
    description = ", ".join(f"{y:.4f} at {x:g}" for x, y in places)
    caption = f"Mean metric on held-out queries for each {name}" + ("; the ring marks the choice." if chosen else ".")
    is_log = places[0][0] > 0 and places[-1][0] / places[0][0] > 20
    figure = line_chart([Curve(name, places)], name, "held out", is_log=is_log, chosen=chosen)
    return f"Choice of {name}", figure, description, caption


@study_plot("coefficients", "winner")
def coefficients(study: Study) -> Drawing | None:
    """Draw the largest weights of a linear winner, each times the standard deviation of its column."""
    rows = [
        (f"column {coefficient.column}" if coefficient.column.isdigit() else coefficient.column, coefficient.scaled)
        for coefficient in study.coefficients[:N_BARS]
        if math.isfinite(coefficient.scaled)
    ]
    if not rows:
        return None
    description = ", ".join(f"{name} {value:+.4g}" for name, value in rows)
    some = f" The {len(rows)} largest of {len(study.coefficients)}." if len(rows) < len(study.coefficients) else ""
    caption = f"Change of the score per standard deviation of a column within queries.{some}"
    return "Weights of columns", bar_chart(rows, "weight × deviation"), description, caption


@study_plot("reliability", "winner")
def reliability(study: Study) -> Drawing | None:
    """Draw observed against predicted relevance."""
    bins = [(item.predicted, item.observed, item.n_rows) for item in study.reliability]
    if not bins:
        return None
    error = sum(n * abs(observed - predicted) for predicted, observed, n in bins) / sum(n for _, _, n in bins)
    description = ", ".join(f"{observed:.3f} observed at {predicted:.3f} ({n} rows)" for predicted, observed, n in bins)
    caption = (
        "Calibrated out-of-fold scores against the judgements. Points on the dashed line are calibrated; larger points "
        f"hold more rows. Expected calibration error {error:.3f}."
    )
    return "Reliability", reliability_chart(bins, "predicted", "share relevant"), description, caption


@study_plot("trade-off", "winner")
def trade_off(study: Study) -> Drawing | None:
    """Draw the metric against the squared error of CRR at each mix."""
    points = [p for p in study.trade_off if math.isfinite(p.mean) and math.isfinite(p.squared_error)]
    if len(points) < 2:
        return None
    curve = Curve("CRR", tuple((p.squared_error, p.mean) for p in points), notes=tuple(f"{p.mix:g}" for p in points))
    description = ", ".join(
        f"mix {p.mix:g}: {study.metric} {p.mean:.4f}, squared error {p.squared_error:.4g}" for p in points
    )
    caption = "CRR at each mix, from 0 (ranking only) to 1 (regression only)."
    figure = line_chart([curve], "mean squared error", study.metric)
    return "Ranking and regression", figure, description, caption


@study_plot("differences", "queries")
def differences(study: Study) -> Drawing | None:
    """Draw the improvement of the winner on each query, the largest first."""
    other = reference_of(study)
    sign = 1.0 if study.larger_is_better else -1.0
    known = [sign * (query.value - query.base) for query in study.queries if math.isfinite(query.value - query.base)]
    if other is None or not known:
        return None
    better, worse = sum(value > 0 for value in known), sum(value < 0 for value in known)
    counts = f"better on {better}, worse on {worse}, equal on {len(known) - better - worse} of {len(known)} queries"
    caption = f"{study.outcome(study.winner).title} against {other.title}: {counts}."
    description = f"{caption} From {max(known):+.4f} to {min(known):+.4f}, mean {sum(known) / len(known):+.4f}."
    figure = step_chart(known, "queries", f"{study.metric}, better by")
    return "Differences by query", figure, description, caption
