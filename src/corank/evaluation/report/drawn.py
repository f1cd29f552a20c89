"""The plots of a study; each is left out where the study holds nothing to draw."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from corank.evaluation.report.blocks import Plot
from corank.evaluation.report.lines import N_LINES, Line, line_plot
from corank.evaluation.report.rows import Interval, bar_plot, interval_plot
from corank.evaluation.report.spread import Bin, reliability_plot, waterfall

if TYPE_CHECKING:
    from corank.evaluation.compare.values import Outcome, Study

PLOTS = ("leaderboard", "curve", "path", "coefficients", "reliability", "trade-off", "differences")
"""Names of all plots that a study may have."""

N_BARS = 20
"""The most coefficients that are drawn."""


def held_against(study: Study) -> Outcome | None:
    """
    Find what the winner is held against, query by query.

    study: what was found.
    Returns: the simplest method, or the best other one where that is the winner; None where there is no other.
    """
    if study.simplest and study.simplest != study.winner:
        return study.outcome(study.simplest)
    return next((one for one in study.outcomes if one.is_complete and one.name != study.winner), None)


def intervals(study: Study) -> Plot | None:
    """Draw the mean of every complete method, the best first, with its interval."""
    rows = [
        Interval(one.title, one.evaluation[study.metric].mean, one.low, one.high, one.name == study.winner)
        for one in study.outcomes
        if one.evaluation is not None
    ]
    rows = [row for row in rows if math.isfinite(row.mean)]
    if not rows:
        return None
    told = "; ".join(f"{row.name} {row.mean:.4f} ({row.low:.4f} to {row.high:.4f})" for row in rows)
    chosen = " In bold: the chosen method." if any(row.is_strong for row in rows) else ""
    caption = (
        f"{study.metric} with {study.level:.0%} intervals.{chosen} Intervals of two methods may overlap although they "
        "differ on the same queries: the paired tests say so."
    )
    title = f"{study.metric} of each method"
    return Plot("leaderboard", title, interval_plot("leaderboard", title, told, rows, study.metric), caption)


def curves(study: Study) -> Plot | None:
    """Draw the metric against the number of scored queries, for the first methods of the leaderboard."""
    by_method = {
        one.name: [p for p in study.curve if p.method == one.name and math.isfinite(p.mean)] for one in study.outcomes
    }
    known = {name: points for name, points in by_method.items() if points}
    if not known:
        return None
    # the simplest is drawn in any case: it is what the others have to beat
    kept = list(known)[:N_LINES]
    if study.simplest in known and study.simplest not in kept:
        kept[-1] = study.simplest
    lines = [
        Line(
            study.outcome(name).title,
            tuple((float(p.n_queries), p.mean) for p in known[name]),
            tuple((p.low, p.high) for p in known[name]) if all(p.low <= p.high for p in known[name]) else (),
        )
        for name in kept
    ]
    is_log = min(x for line in lines for x, _ in line.places) > 0
    told = "; ".join(f"{line.name}: " + ", ".join(f"{y:.4f} at {x:g}" for x, y in line.places) for line in lines)
    some = f" The first {len(kept)} of {len(known)} methods; the table has all." if len(kept) < len(known) else ""
    caption = (
        f"{study.metric} by the number of scored queries that were learnt from, with {study.level:.0%} intervals.{some}"
    )
    title = "Learning curves"
    drawing = line_plot("curve", title, told, lines, "scored queries", study.metric, is_log=is_log)
    return Plot("curve", title, drawing, caption)


def path(study: Study) -> Plot | None:
    """Draw what held-out queries said of each candidate of the winner's parameter."""
    points = sorted((p for p in study.path if math.isfinite(p.mean)), key=lambda p: p.value)
    if len(points) < 2:
        return None
    name = points[0].parameter
    places = tuple((p.value, p.mean) for p in points)
    chosen = next(((p.value, p.mean) for p in points if p.is_chosen), None)
    told = ", ".join(f"{y:.4f} at {x:g}" for x, y in places)
    caption = f"What held-out queries said of each {name}" + ("; the ringed one was kept." if chosen else ".")
    is_log = places[0][0] > 0 and places[-1][0] / places[0][0] > 20
    title = f"Choice of {name}"
    drawing = line_plot("path", title, told, [Line(name, places)], name, "held out", is_log=is_log, chosen=chosen)
    return Plot("path", title, drawing, caption)


def coefficients(study: Study) -> Plot | None:
    """Draw the largest weights of a linear winner, each times the deviation of its column."""
    rows = [
        (f"column {one.column}" if one.column.isdigit() else one.column, one.scaled)
        for one in study.coefficients[:N_BARS]
        if math.isfinite(one.scaled)
    ]
    if not rows:
        return None
    told = ", ".join(f"{name} {value:+.4g}" for name, value in rows)
    some = f", the {len(rows)} largest of {len(study.coefficients)}" if len(rows) < len(study.coefficients) else ""
    caption = f"What a usual step in a column, its deviation inside queries, moves the score by{some}."
    title = "Weights of columns"
    drawing = bar_plot("coefficients", title, told, rows, "weight × deviation")
    return Plot("coefficients", title, drawing, caption)


def reliability(study: Study) -> Plot | None:
    """Draw predicted against observed relevance."""
    if not study.reliability:
        return None
    bins = [Bin(one.predicted, one.observed, one.n_rows) for one in study.reliability]
    n = sum(one.n_rows for one in bins)
    error = sum(one.n_rows * abs(one.observed - one.predicted) for one in bins) / n
    told = ", ".join(f"{one.observed:.3f} where {one.predicted:.3f} was predicted ({one.n_rows} rows)" for one in bins)
    caption = (
        f"Calibrated scores against what was judged, out of fold: on the dashed line predictions come true. Larger "
        f"dots hold more rows; expected error {error:.3f}."
    )
    title = "Reliability"
    drawing = reliability_plot("reliability", title, told, bins, "predicted", "share relevant")
    return Plot("reliability", title, drawing, caption)


def trade_off(study: Study) -> Plot | None:
    """Draw the metric against the squared error of CRR, mix by mix."""
    points = [p for p in study.trade_off if math.isfinite(p.mean) and math.isfinite(p.squared_error)]
    if len(points) < 2:
        return None
    line = Line("CRR", tuple((p.squared_error, p.mean) for p in points), notes=tuple(f"{p.mix:g}" for p in points))
    told = ", ".join(f"mix {p.mix:g}: {study.metric} {p.mean:.4f}, squared error {p.squared_error:.4g}" for p in points)
    caption = "Ranking against regression: CRR at each mix, from 0 (ranking only) to 1 (regression only)."
    title = "Ranking and regression"
    drawing = line_plot("trade-off", title, told, [line], "mean squared error", study.metric)
    return Plot("trade-off", title, drawing, caption)


def differences(study: Study) -> Plot | None:
    """Draw by how much the winner is better on each query, the most first."""
    other = held_against(study)
    sign = 1.0 if study.larger_is_better else -1.0
    known = [sign * (one.value - one.base) for one in study.queries if math.isfinite(one.value - one.base)]
    if other is None or not known:
        return None
    winner = study.outcome(study.winner).title
    better, worse = sum(value > 0 for value in known), sum(value < 0 for value in known)
    counts = f"better on {better}, worse on {worse}, alike on {len(known) - better - worse} of {len(known)} queries"
    caption = f"{winner} against {other.title}: {counts}."
    told = f"{caption} From {max(known):+.4f} to {min(known):+.4f}, in the mean {sum(known) / len(known):+.4f}."
    title = "Differences, query by query"
    drawing = waterfall("differences", title, told, known, "queries", f"{study.metric}, better by")
    return Plot("differences", title, drawing, caption)
