"""Pages of results: a study, as HTML and as Markdown with its plots in files, and a leaderboard from votes."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corank.comparison.charts import N_LINES, Curve, IntervalRow, interval_chart, line_chart, plot, step_chart
from corank.comparison.report import Document, PageBlock, bullets, code, collapsed, facts, paragraph, part
from corank.data.durable.atomic import atomic_file, require_place
from corank.errors import InputError
from corank.metrics.conventions import CONVENTIONS
from corank.tables import Cell, ReportTable

if TYPE_CHECKING:  # not needed at run time; importing them is slow
    from corank.comparison.values import CurvePoint, Study
    from corank.models import Leaderboard

N_WORST = 20
"""Rows of the table of the queries with the lowest values."""

PLOTS = ("leaderboard", "curve", "differences")
"""Names of the plots that a report may have."""


def study_html(study: Study) -> str:
    """Return a study as one self-contained HTML page, without scripts, images or fonts to load."""
    return _document(study).html()


def study_markdown(study: Study) -> str:
    """Return a study as Markdown with links to the plots that `write` saves."""
    return _document(study).markdown()


def write(study: Study, folder: str | os.PathLike[str], *, overwrite: bool = False) -> tuple[Path, ...]:
    """Write ``report.html``, which is self-contained, and ``report.md`` with its plots in files next to it."""
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{folder} is not a folder; create it before writing a report to it.")
    report = _document(study)
    texts = {"report.html": report.html(), "report.md": report.markdown(), **report.files}
    for name in texts:  # check all files before writing the first
        require_place(place / name, overwrite=overwrite)
    for name in reversed(texts):  # the page last: if it exists, the report is complete
        with atomic_file(place / name, overwrite=overwrite) as scratch:
            scratch.write_text(texts[name], encoding="utf-8")
    if overwrite:  # remove plots of the replaced report that this one does not have
        for name in {f"report-{name}.svg" for name in PLOTS} - set(texts):
            (place / name).unlink(missing_ok=True)
    return tuple(place / name for name in texts)


def _document(study: Study) -> Document:
    # file names only; the command shows whole paths
    names = ", ".join(Path(name).name for name in study.data.name.split(", "))
    notes = [bullets(study.notes)] if study.notes else []
    sections = [
        part("data", "The data", _data(study)),
        part("leaderboard", "Methods", _leaderboard(study)),
        part("curve", "How many judgements are needed", _curve(study)),
        part("queries", "Query by query", _queries(study)),
        part("tuning", "How methods were tuned", _tuning(study)),
        part("repeat", "How to repeat the study", _repeat(study)),
    ]
    opening = [paragraph(study.verdict, "verdict"), paragraph(study.rule), *notes]
    return Document(f"Rankers compared on {names}", [*opening, *sections])


def _data(study: Study) -> list[PageBlock]:
    data = study.data
    counts = {
        "queries": data.n_queries, "rows": data.n_rows, "features": data.n_features,
        "unjudged rows": data.n_unscored_rows, "queries without a score": data.n_unscored_queries,
        "queries of a single grade": data.n_single_grade_queries, "further unjudged rows": data.n_pool_rows,
    }  # fmt: skip
    blocks: list[PageBlock] = [facts([(name, f"{n:,}") for name, n in counts.items()])]
    if n := data.n_single_grade_queries + data.n_unscored_queries:
        text = (
            f"{n:,} {'query' if n == 1 else 'queries'} of {data.n_queries:,} cannot distinguish a good order from a "
            "bad one: all their rows have the same grade or none."
        )
        blocks.append(paragraph(text, "note"))
    if data.grades:
        total = sum(n for _, n in data.grades)
        rows: tuple[tuple[Cell, ...], ...] = tuple((f"{g:g}", n, 100.0 * n / total) for g, n in data.grades)
        blocks.append(ReportTable("Scored rows by grade", ("grade", "rows", "%"), rows, digits=1))
    return blocks


def _leaderboard(study: Study) -> list[PageBlock]:
    from corank.comparison.values import leaderboard

    if not study.outcomes:
        return []
    # only evaluations hold a convention that the user defined
    own = (outcome.evaluation.convention for outcome in study.outcomes if outcome.evaluation is not None)
    rules = next(own, CONVENTIONS.get(study.convention))
    convention = f"Convention {study.convention}." if rules is None else rules.describe()
    direction = "higher is better" if study.larger_is_better else "lower is better"
    blocks: list[PageBlock] = [paragraph(f"{study.metric}, {direction}. {convention}")]
    rows = [
        IntervalRow(item.title, item.evaluation[study.metric].mean, item.low, item.high, item.name == study.winner)
        for item in study.outcomes
        if item.evaluation is not None
    ]
    rows = [row for row in rows if math.isfinite(row.mean)]
    if rows:
        described = "; ".join(f"{row.name} {row.mean:.4f} ({row.low:.4f} to {row.high:.4f})" for row in rows)
        chosen = " The chosen method is in bold." if any(row.is_strong for row in rows) else ""
        caption = (
            f"{study.metric} with {study.level:.0%} intervals.{chosen} Overlapping intervals do not mean that two "
            "methods are equal: the paired tests compare them query by query."
        )
        title = f"{study.metric} of each method"
        chart = interval_chart(rows, study.metric)
        blocks.append(plot(chart, "leaderboard", title, described, caption, is_lone=True))
    return [*blocks, leaderboard(study)]


def _curve(study: Study) -> list[PageBlock]:
    """Return the metric against the number of scored queries, for the first methods of the leaderboard."""
    if not study.curve:
        return []
    titles = {outcome.name: outcome.title for outcome in study.outcomes}
    known: dict[str, list[CurvePoint]] = {}
    for name in titles:
        if points := [p for p in study.curve if p.method == name and math.isfinite(p.mean)]:
            known[name] = points
    kept = list(known)[:N_LINES]
    # the simplest method is always shown: it is the baseline
    if study.simplest in known and study.simplest not in kept:
        kept[-1] = study.simplest
    lines = []
    for name in kept:
        has_band = all(math.isfinite(p.low) for p in known[name])
        band = tuple((p.low, p.high) for p in known[name]) if has_band else ()
        lines.append(Curve(titles[name], tuple((float(p.n_queries), p.mean) for p in known[name]), band))
    blocks: list[PageBlock] = []
    if lines:
        is_log = min(x for line in lines for x, _ in line.points) > 0
        described = "; ".join(
            f"{line.name}: " + ", ".join(f"{y:.4f} at {x:g}" for x, y in line.points) for line in lines
        )
        some = f" The first {len(kept)} of {len(known)} methods; the table has all." if len(kept) < len(known) else ""
        caption = f"{study.metric} by the number of scored training queries, with {study.level:.0%} intervals.{some}"
        chart = line_chart(lines, "scored queries", study.metric, is_log=is_log)
        blocks.append(plot(chart, "curve", "Learning curves", described, caption, is_lone=True))
    rows = tuple(
        (titles.get(p.method, p.method), p.fraction, p.n_queries, p.mean, p.low, p.high, p.n_repeats)
        for p in study.curve
    )
    columns = ("method", "share scored", "queries", study.metric, "low", "high", "draws")
    table = ReportTable("Learning curves", columns, rows, formats=("", ".3g", *[""] * 5))
    return [*blocks, collapsed("Values of the plot", table)]


def _queries(study: Study) -> list[PageBlock]:
    """Return the improvement of the winner over the simplest, or else the best other method, on each query."""
    evaluation = study.outcome(study.winner).evaluation if study.winner else None
    if evaluation is None:
        return []
    title, other = study.outcome(study.winner).title, study.reference
    blocks: list[PageBlock] = []
    if study.model is not None:
        training = "which needs no judgements" if study.outcome(study.winner).is_label_free else "fitted on all rows"
        blocks.append(paragraph(f"{title}, {training}, is saved as {study.model}."))
    sign = 1.0 if study.larger_is_better else -1.0
    values = study.values(study.winner)
    bases = values if other is None else study.values(other.name)
    known = [value for value in (sign * (values - bases)).tolist() if math.isfinite(value)]
    if other is not None and known:
        better, worse = sum(value > 0 for value in known), sum(value < 0 for value in known)
        caption = (
            f"{title} against {other.title}: better on {better}, worse on {worse}, equal on "
            f"{len(known) - better - worse} of {len(known)} queries."
        )
        described = f"{caption} From {max(known):+.4f} to {min(known):+.4f}, mean {sum(known) / len(known):+.4f}."
        chart = step_chart(known, "queries", f"{study.metric}, better by")
        blocks.append(plot(chart, "differences", "Differences by query", described, caption, is_lone=True))
    columns = ("query", title, *([other.title] if other else []))
    ids, order = evaluation.query_ids.tolist(), (sign * values).argsort(kind="stable").tolist()
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (str(ids[i]), float(values[i]), *([float(bases[i])] if other else [])) for i in order if values[i] == values[i]
    )
    heading = f"Queries on which {title} is worst, by {study.metric}"
    return [*blocks, ReportTable(heading, columns, rows[:N_WORST])]


def _tuning(study: Study) -> list[PageBlock]:
    result = ((outcome.title, outcome.tuning, _chosen(outcome.chosen)) for outcome in study.outcomes)
    rows = tuple(row for row in result if any(row[1:]))
    if not rows:
        return []
    note = "Chosen values are listed fold by fold, or once if all folds agree."
    return [ReportTable("Tuning within the training part of each fold", ("method", "how", "chosen"), rows, note=note)]


def _chosen(folds: Sequence[Mapping[str, Any]]) -> str:
    """Return each parameter with its values, fold by fold."""
    names = dict.fromkeys(name for fold in folds for name in fold)
    values = {
        name: [
            f"{fold[name]:.3g}" if isinstance(fold[name], float) else str(fold[name]) for fold in folds if name in fold
        ]
        for name in names
    }
    return "; ".join(
        f"{name} {' / '.join(chosen[:1] if len(set(chosen)) == 1 else chosen)}" for name, chosen in values.items()
    )


def _repeat(study: Study) -> list[PageBlock]:
    versions = [("outer folds", str(study.folds)), ("seed", str(study.seed)), ("run time", f"{study.seconds:,.0f} s")]
    note = f"Fingerprint of rows, scores and query ids: {study.data.fingerprint}"
    blocks: list[PageBlock] = [code(study.command)] if study.command else []
    return [*blocks, facts([*versions, *study.versions.items()]), paragraph(note, "note")]


MAX_INTERVALS, MAX_COLUMNS, N_NEXT = 40, 12, 5
"""Items of the chart and of the matrix of wins, and number of next votes."""


def leaderboard_page(board: Leaderboard, title: str, command: str = "") -> str:
    """Return one self-contained HTML page."""
    from corank.models.votes import board_table, judge_table, sentences

    first, *rest = sentences(board)
    votes = board.votes_
    counts = (
        ("votes", f"{len(votes):,}"), ("items", str(len(board.items_))), ("ties", f"{votes.n_ties:,}"),
        ("both bad", f"{votes.n_both_bad:,}"), ("judges", str(len(votes.judges) or "unknown")),
        ("groups", str(len(votes.groups) or "none")),
    )  # fmt: skip
    sections = [
        part(
            "result", "Leaderboard", [paragraph(first, "verdict"), facts(counts), _intervals(board), board_table(board)]
        ),
        part("wins", "Win probabilities", [_matrix(board)]),
        part(
            "groups",
            "Items that cannot be told apart",
            [bullets([", ".join(group) for group in board.groups_])],
        ),
        part("judges", "Judges", [judge_table(board)] if board.judges_ else []),
        part("next", "Next votes", [_next(board)]),
        part("notes", "Notes", [bullets(rest)] if rest else []),
        part("repeat", "How to repeat", [code(command)] if command else []),
    ]
    return Document(title, sections).html()


def _intervals(board: Leaderboard) -> PageBlock:
    rows = [
        IntervalRow(name, float(board.scores_[i]), float(board.lower_[i]), float(board.upper_[i]), is_strong=i == 0)
        for i, name in enumerate(board.items_[:MAX_INTERVALS])
    ]
    chart = interval_chart(rows, "score, difference to the mean item")
    described = "; ".join(f"{row.name} {row.mean:.2f}, {row.low:.2f} to {row.high:.2f}" for row in rows)
    caption = f"Score of each item with its {board.level:.0%} interval."
    return plot(chart, "scores", "Scores", described, caption, is_lone=True)


def _matrix(board: Leaderboard) -> PageBlock:
    n = min(len(board.items_), MAX_COLUMNS)
    wins = board.win_matrix()[:n, :n]
    rows = tuple(
        (name, *(None if a == b else float(wins[a, b]) for b in range(n))) for a, name in enumerate(board.items_[:n])
    )
    note = "Expected share of votes of the row against the column, ties half."
    more = f" The first {n} of {len(board.items_)} items." if n < len(board.items_) else ""
    return ReportTable("Wins", ("item", *board.items_[:n]), rows, digits=2, note=note + more)


def _next(board: Leaderboard) -> PageBlock:
    rows = tuple((a, b, who or "anybody") for a, b, who in board.next_votes(N_NEXT))
    return ReportTable("Votes that say most about the best item", ("item", "against", "judge"), rows)
