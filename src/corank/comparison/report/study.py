"""The report of a study as one HTML page and as Markdown with its plots in files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corank.comparison.report.blocks import (
    BulletList,
    Code,
    Collapsed,
    Document,
    Facts,
    PageBlock,
    Paragraph,
    Plot,
    PlotGrid,
    Section,
    plot_file,
)
from corank.comparison.report.charts import standalone
from corank.comparison.report.plots import PLOTS, plots_of, reference_of
from corank.data.durable.atomic import atomic_file, require_place
from corank.errors import InputError
from corank.metrics.conventions import CONVENTIONS, Convention
from corank.tables import Cell, ReportTable

if TYPE_CHECKING:  # not needed at run time; importing them is slow
    from corank.comparison.values import Study
    from corank.metrics.bounds.bound import Bound

N_WORST = 20
"""Rows of the table of the queries with the lowest values."""


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
    sections = [part for part in report.blocks if isinstance(part, Section)]
    plots = [plot for part in sections for block in part.blocks for plot in _plots_in(block)]
    texts = {"report.html": report.html(), "report.md": report.markdown()}
    texts |= {plot.file: standalone(plot.drawing) for plot in plots}
    for name in texts:  # check all files before writing the first
        require_place(place / name, overwrite=overwrite)
    for name in reversed(texts):  # the page last: if it exists, the report is complete
        with atomic_file(place / name, overwrite=overwrite) as scratch:
            scratch.write_text(texts[name], encoding="utf-8")
    if overwrite:  # remove plots of the replaced report that this one does not have
        for name in {plot_file(name) for name in PLOTS} - set(texts):
            (place / name).unlink(missing_ok=True)
    return tuple(place / name for name in texts)


def _document(study: Study) -> Document:
    return Document(_title(study), (*_opening(study), *_sections(study)))


def _title(study: Study) -> str:
    # file names only; the command shows whole paths
    return f"Rankers compared on {', '.join(Path(part).name for part in study.data.name.split(', '))}"


def _plots_in(block: PageBlock) -> Iterator[Plot]:
    if isinstance(block, Plot):
        yield block
    elif isinstance(block, PlotGrid):
        yield from block.plots


def _sections(study: Study) -> list[Section]:
    return [
        Section("data", "The data", _data(study)),
        Section("leaderboard", "Methods", _leaderboard(study)),
        Section("curve", "How many judgements are needed", _curve(study)),
        Section("winner", "The chosen method", _winner(study)),
        Section("queries", "Query by query", _queries(study)),
        Section("bounds", "Error bounds", _error_bounds(study.bounds)),
        Section("tuning", "How methods were tuned", _tuning(study)),
        Section("repeat", "How to repeat the study", _repeat(study)),
    ]


def _plots(study: Study, section: str) -> list[PageBlock]:
    """Return the plots of a section, in a grid if there are several."""
    plots = plots_of(study, section)
    return [PlotGrid(plots)] if len(plots) > 1 else list(plots)


def _opening(study: Study) -> list[PageBlock]:
    blocks: list[PageBlock] = [Paragraph(study.verdict, "verdict"), Paragraph(study.rule)]
    return [*blocks, BulletList(study.notes)] if study.notes else blocks


def _data(study: Study) -> list[PageBlock]:
    data = study.data
    counts = [
        ("queries", data.n_queries),
        ("rows", data.n_rows),
        ("features", data.n_features),
        ("unjudged rows", data.n_unscored_rows),
        ("queries without a score", data.n_unscored_queries),
        ("queries of a single grade", data.n_single_grade_queries),
        ("queries of one row", data.n_one_row_queries),
        ("repeated rows", data.n_duplicated_rows),
    ]
    if data.n_pool_rows:
        counts += [("further unjudged rows", data.n_pool_rows), ("their queries", data.n_pool_queries)]
    blocks: list[PageBlock] = [Facts(tuple((name, f"{n:,}") for name, n in counts))]
    if data.n_single_grade_queries or data.n_unscored_queries:
        n = data.n_single_grade_queries + data.n_unscored_queries
        blocks.append(
            Paragraph(
                f"{n:,} {'query' if n == 1 else 'queries'} of {data.n_queries:,} cannot distinguish a good order from "
                "a bad one: all their rows have the same grade or none.",
                "note",
            )
        )
    if data.constant_columns:
        names = ", ".join(data.constant_columns[:20]) + (", ..." if len(data.constant_columns) > 20 else "")
        blocks.append(Paragraph(f"Constant columns: {names}.", "note"))
    if data.grades:
        total = sum(n for _, n in data.grades)
        rows: tuple[tuple[Cell, ...], ...] = tuple((f"{g:g}", n, 100.0 * n / total) for g, n in data.grades)
        blocks.append(ReportTable("Scored rows by grade", ("grade", "rows", "%"), rows, digits=1))
    return blocks


def _leaderboard(study: Study) -> list[PageBlock]:
    from corank.comparison.values import leaderboard, paired_table

    if not study.outcomes:
        return []
    direction = "higher is better" if study.larger_is_better else "lower is better"
    blocks: list[PageBlock] = [Paragraph(f"{study.metric}, {direction}. {_convention(study)}")]
    blocks += [*_plots(study, "leaderboard"), leaderboard(study)]
    if study.tests:
        blocks.append(Collapsed("All paired tests", paired_table(study)))
    return blocks


def _convention(study: Study) -> str:
    """Describe the convention of the metrics; only evaluations hold one that the user defined."""
    own = (outcome.evaluation.convention for outcome in study.outcomes if outcome.evaluation is not None)
    rules = next(own, CONVENTIONS.get(study.convention))
    return f"Convention {study.convention}." if rules is None else describe_convention(rules)


def _curve(study: Study) -> list[PageBlock]:
    if not study.curve:
        return []
    titles = {outcome.name: outcome.title for outcome in study.outcomes}
    rows = tuple(
        (titles.get(p.method, p.method), p.fraction, p.n_queries, p.mean, p.low, p.high, p.n_repeats)
        for p in study.curve
    )
    columns = ("method", "share scored", "queries", study.metric, "low", "high", "draws")
    table = ReportTable("Learning curves", columns, rows, formats=("", ".3g", *[""] * 5))
    return [*_plots(study, "curve"), Collapsed("Values of the plot", table)]


def _winner(study: Study) -> list[PageBlock]:
    if not study.winner:
        return []
    blocks: list[PageBlock] = []
    if study.model is not None:
        winner = study.outcome(study.winner)
        training = "which needs no judgements" if winner.is_label_free else "fitted on all scored rows"
        blocks.append(Paragraph(f"{winner.title}, {training}, is saved as {study.model}."))
    blocks += _plots(study, "winner")
    if study.coefficients:
        weights = tuple(
            (coefficient.column, coefficient.scaled, coefficient.weight) for coefficient in study.coefficients
        )
        columns = ("column", "weight × deviation", "weight")
        table = ReportTable("Weights of the columns", columns, weights, formats=("", ".4g", ".6g"))
        blocks.append(Collapsed("All weights", table))
    return blocks


def _queries(study: Study) -> list[PageBlock]:
    if not study.queries or not study.winner:
        return []
    other = reference_of(study)
    columns = ("query", study.outcome(study.winner).title, *([other.title] if other else []), "rows", "scored")
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (item.query, item.value, *([item.base] if other else []), item.n_rows, item.n_scored)
        for item in study.queries[:N_WORST]
    )
    title = f"Queries on which {columns[1]} is worst, by {study.metric}"
    return [*_plots(study, "queries"), ReportTable(title, columns, rows)]


def _error_bounds(bounds: Sequence[Bound]) -> list[PageBlock]:
    if not bounds:
        return []
    columns = ("error", "observed", "low", "high", "probability", "of a random order", "remark")
    rows = tuple(
        (bound.name, bound.error, bound.low, bound.high, 1.0 - bound.delta, bound.random, bound.verdict)
        for bound in bounds
    )
    note = "With this probability over the draw of the data, the expected error lies between low and high."
    parts: tuple[tuple[Cell, ...], ...] = tuple(
        (bound.name, name, value) for bound in bounds for name, value in bound.parts
    )
    terms = ReportTable("Terms of the bounds", ("error", "term", "value"), parts)
    bounds_of: dict[str, list[str]] = {}
    for item in bounds:
        for text in item.assumptions:
            bounds_of.setdefault(text, []).append(item.name)
    assumed = (text if len(of) == len(bounds) else f"{text} ({', '.join(of)})" for text, of in bounds_of.items())
    return [
        ReportTable("Intervals of the expected error", columns, rows, note=note, formats=("", "", "", "", "g", "", "")),
        Paragraph("Assumptions:"),
        BulletList(tuple(assumed)),
        Collapsed("Terms of the bounds", terms),
    ]


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
    values = {name: [_value(fold[name]) for fold in folds if name in fold] for name in names}
    return "; ".join(
        f"{name} {' / '.join(chosen[:1] if len(set(chosen)) == 1 else chosen)}" for name, chosen in values.items()
    )


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _repeat(study: Study) -> list[PageBlock]:
    facts = [
        ("outer folds", str(study.folds)),
        ("seed", str(study.seed)),
        ("run time", duration(study.seconds)),
        *study.versions.items(),
    ]
    blocks: list[PageBlock] = [Code(study.command)] if study.command else []
    note = f"Fingerprint of rows, scores and query ids: {study.data.fingerprint}"
    return [*blocks, Facts(tuple(facts)), Paragraph(note, "note")]


_GAIN = {"exp": "grade y has gain 2^y − 1", "linear": "grade y has gain y"}
_DISCOUNT = {
    "log2": "divided by log2(i + 1) at rank i",
    "letor": "divided by 1, 1, log2 3, log2 4, ... from the first rank on",
}
_TIES = {
    "expectation": "ties count as the mean over all their orders",
    "input": "ties keep the order of the file",
    "docid": "ties are ordered by document id, highest first",
}
_EMPTY = {
    "skip": "queries without a relevant row are left out",
    "zero": "queries without a relevant row count as 0",
    "one": "queries without a relevant row count as 1",
}
_SHORT = {
    "pad": "lists shorter than k are padded with irrelevant rows",
    "zero": "lists shorter than k have an nDCG@k of 0",
}
_RARE = {
    "short_precision": ("zero", "lists shorter than k have a P@k of 0"),
    "ap_ties": ("block", "AP treats tied rows as retrieved together"),
    "ap_cut": ("possible", "AP@k divides by the number of relevant rows that fit into k"),
    "single_precision": (True, "scores are compared in single precision"),
}
_UNJUDGED = {"drop": "unjudged rows are left out", "irrelevant": "unjudged rows count as irrelevant"}


def describe_convention(rules: Convention) -> str:
    """Return a sentence with the choices of a convention."""
    choices = (
        f"{_GAIN[rules.gain]}, {_DISCOUNT[rules.discount]}",
        _TIES[rules.ties],
        _EMPTY[rules.empty],
        _SHORT[rules.short_ndcg],
        f"a row is relevant from grade {rules.relevant_from:g} on",
        _UNJUDGED[rules.unjudged],
        *(words for name, (value, words) in _RARE.items() if getattr(rules, name) == value),
    )
    return f"Convention {rules.name}: {'; '.join(choices)}."


def duration(seconds: float) -> str:
    """Format a duration."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
