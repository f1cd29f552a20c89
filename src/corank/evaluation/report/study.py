"""A study as one page: what was found, how sure it is, what the winner is like, and how to repeat it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corank.data.durable.atomic import atomic_file, require_place
from corank.errors import InputError
from corank.evaluation.report import drawn
from corank.evaluation.report.blocks import Block, Code, Facts, Folded, Items, Plot, Plots, Section, Text, plot_file
from corank.evaluation.report.page import page
from corank.evaluation.report.svg import standalone
from corank.evaluation.report.words import counted, duration, in_words
from corank.metrics.conventions import CONVENTIONS
from corank.tables import Cell, ReportTable

if TYPE_CHECKING:  # whoever has a study has imported these, and reports without one need not
    from corank.evaluation.bounds.bound import Bound
    from corank.evaluation.compare.values import Study

N_WORST = 20
"""Rows of the table of queries on which the winner does worst."""


def study_html(study: Study) -> str:
    """
    Return a study as one page of HTML, which loads nothing else: no script, no picture, no font.

    Parameters
    ----------
    study : Study
        What `corank.evaluation.compare` found.

    Returns
    -------
    str
        The page; parts for which the study holds nothing are left out.
    """
    parts = _sections(study)
    links = [(part.anchor, part.name) for part in parts]
    body = "\n".join([*(block.html() for block in _opening(study)), *(part.html() for part in parts)])
    return page(_title(study), body, links, sealed=True)


def study_markdown(study: Study) -> str:
    """
    Return a study as Markdown; its plots are files beside it, as `write` names them.

    Parameters
    ----------
    study : Study
        What `corank.evaluation.compare` found.

    Returns
    -------
    str
        The same parts as the page.
    """
    blocks = [*_opening(study), *_sections(study)]
    return "\n\n".join([f"# {_title(study)}", *(block.markdown() for block in blocks)]) + "\n"


def write(study: Study, folder: str | os.PathLike[str], *, overwrite: bool = False) -> tuple[Path, ...]:
    """
    Write a study as ``report.html``, one page for itself, and as ``report.md`` with its plots beside it.

    Parameters
    ----------
    study : Study
        What `corank.evaluation.compare` found.
    folder : path
        An existing folder.
    overwrite : bool
        Whether reports that stand there are replaced, with all their plots.

    Returns
    -------
    tuple of Path
        The page, the Markdown, and ``report-NAME.svg`` for each plot.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{folder} is no folder to write a report to; create it first.")
    plots = [plot for part in _sections(study) for block in part.blocks for plot in _plots_of(block)]
    texts = {"report.html": study_html(study), "report.md": study_markdown(study)}
    texts |= {plot.file: standalone(plot.drawing) for plot in plots}
    for name in texts:  # all of them or none
        require_place(place / name, overwrite=overwrite)
    for name in reversed(texts):  # the page last: where it stands, everything does
        with atomic_file(place / name, overwrite=overwrite) as scratch:
            scratch.write_text(texts[name], encoding="utf-8")
    if overwrite:  # plots that the replaced report had, and this one has not
        for name in {plot_file(name) for name in drawn.PLOTS} - set(texts):
            if (place / name).is_file():
                (place / name).unlink()
    return tuple(place / name for name in texts)


def _title(study: Study) -> str:
    # files by their names alone; the command has them whole
    return f"Rankers compared on {', '.join(Path(part).name for part in study.data.name.split(', '))}"


def _plots_of(block: Block) -> Iterator[Plot]:
    if isinstance(block, Plot):
        yield block
    elif isinstance(block, Plots):
        yield from block.plots


def _sections(study: Study) -> list[Section]:
    """The parts of the page that hold anything."""
    parts = [
        Section("data", "The data", _data(study)),
        Section("leaderboard", "Methods", _leaderboard(study)),
        Section("curve", "How many judgements are needed", _curve(study)),
        Section("winner", "The chosen method", _winner(study)),
        Section("queries", "Query by query", _queries(study)),
        Section("bounds", "What theory promises", _promised(study.bounds)),
        Section("tuning", "How methods were tuned", _tuning(study)),
        Section("repeat", "To repeat it", _repeat(study)),
    ]
    return [part for part in parts if part.blocks]


def _opening(study: Study) -> list[Block]:
    blocks: list[Block] = [Text(study.verdict, "verdict"), Text(study.rule)]
    return [*blocks, Items(study.notes)] if study.notes else blocks


def _data(study: Study) -> list[Block]:
    data = study.data
    counts = [
        ("queries", data.n_queries),
        ("rows", data.n_rows),
        ("features", data.n_features),
        ("unscored rows", data.n_unscored_rows),
        ("queries without a score", data.n_unscored_queries),
        ("queries of a single grade", data.n_single_grade_queries),
        ("queries of one row", data.n_one_row_queries),
        ("repeated rows", data.n_duplicated_rows),
    ]
    if data.n_pool_rows:
        counts += [("unscored rows beside it", data.n_pool_rows), ("their queries", data.n_pool_queries)]
    blocks: list[Block] = [Facts(tuple((name, f"{n:,}") for name, n in counts))]
    if data.n_single_grade_queries or data.n_unscored_queries:
        silent = data.n_single_grade_queries + data.n_unscored_queries
        blocks.append(
            Text(
                f"{counted(silent, 'query', 'queries')} of {data.n_queries:,} cannot tell a good order from a bad one: "
                "their rows have one grade, or none.",
                "note",
            )
        )
    if data.constant_columns:
        shown = ", ".join(data.constant_columns[:20]) + (", ..." if len(data.constant_columns) > 20 else "")
        blocks.append(Text(f"Columns with one value only: {shown}.", "note"))
    if data.grades:
        total = sum(n for _, n in data.grades)
        rows: tuple[tuple[Cell, ...], ...] = tuple((f"{g:g}", n, 100.0 * n / total) for g, n in data.grades)
        blocks.append(ReportTable("Scored rows by grade", ("grade", "rows", "%"), rows, digits=1))
    return blocks


def _leaderboard(study: Study) -> list[Block]:
    from corank.evaluation.compare.display import leaderboard, paired_table

    if not study.outcomes:
        return []
    table = leaderboard(study)
    direction = "higher is better" if study.larger_is_better else "lower is better"
    blocks: list[Block] = [Text(f"{study.metric}, {direction}. {_convention(study)}")]
    plot = drawn.intervals(study)
    blocks += [plot] if plot else []
    blocks.append(table)
    if study.tests:
        blocks.append(Folded("Every paired test", paired_table(study)))
    return blocks


def _convention(study: Study) -> str:
    """What the names of metrics leave open; a convention of the user's own is known to the evaluations only."""
    own = (one.evaluation.convention for one in study.outcomes if one.evaluation is not None)
    rules = next(own, CONVENTIONS.get(study.convention))
    return f"Convention {study.convention}." if rules is None else in_words(rules)


def _curve(study: Study) -> list[Block]:
    plot = drawn.curves(study)
    if plot is None:
        return []
    titles = {one.name: one.title for one in study.outcomes}
    rows = tuple(
        (titles.get(p.method, p.method), p.fraction, p.n_queries, p.mean, p.low, p.high, p.n_repeats)
        for p in study.curve
    )
    columns = ("method", "share scored", "queries", study.metric, "low", "high", "draws")
    table = ReportTable("Learning curves", columns, rows, formats=("", ".3g", *[""] * 5))
    return [plot, Folded("The numbers of the plot", table)]


def _winner(study: Study) -> list[Block]:
    if not study.winner:
        return []
    found = [drawn.path(study), drawn.coefficients(study), drawn.reliability(study), drawn.trade_off(study)]
    plots = tuple(plot for plot in found if plot is not None)
    blocks: list[Block] = []
    if study.model is not None:
        winner = study.outcome(study.winner)
        learnt = "which needs no judgements" if winner.is_label_free else "learnt from all scored rows"
        blocks.append(Text(f"{winner.title}, {learnt}, is saved as {study.model}."))
    if plots:
        blocks.append(Plots(plots))
    if study.coefficients:
        weights = tuple((one.column, one.scaled, one.weight) for one in study.coefficients)
        columns = ("column", "weight × deviation", "weight")
        table = ReportTable("Weights of the columns", columns, weights, formats=("", ".4g", ".6g"))
        blocks.append(Folded("Every weight", table))
    return blocks


def _queries(study: Study) -> list[Block]:
    if not study.queries or not study.winner:
        return []
    other = drawn.held_against(study)
    columns = ("query", study.outcome(study.winner).title, *([other.title] if other else []), "rows", "scored")
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (one.query, one.value, *([one.base] if other else []), one.n_rows, one.n_scored)
        for one in study.queries[:N_WORST]
    )
    title = f"Queries on which {columns[1]} does worst, by {study.metric}"
    plot = drawn.differences(study)
    return [*([plot] if plot else []), ReportTable(title, columns, rows)]


def _promised(bounds: Sequence[Bound]) -> list[Block]:
    if not bounds:
        return []
    columns = ("error", "observed", "low", "high", "probability", "of a random order", "remark")
    rows = tuple((one.name, one.error, one.low, one.high, 1.0 - one.delta, one.random, one.verdict) for one in bounds)
    note = "With this probability over the draw of the data, the expected error lies between low and high."
    parts: tuple[tuple[Cell, ...], ...] = tuple((one.name, name, value) for one in bounds for name, value in one.parts)
    made = ReportTable("Parts of the bounds", ("error", "part", "value"), parts)
    held: dict[str, list[str]] = {}
    for one in bounds:
        for text in one.assumptions:
            held.setdefault(text, []).append(one.name)
    assumed = (text if len(of) == len(bounds) else f"{text} ({', '.join(of)})" for text, of in held.items())
    return [
        ReportTable("Where the expected error lies", columns, rows, note=note, formats=("", "", "", "", "g", "", "")),
        Text("What has to be true for that:"),
        Items(tuple(assumed)),
        Folded("What the bounds are made of", made),
    ]


def _tuning(study: Study) -> list[Block]:
    told = ((one.title, one.tuning, _chosen(one.chosen)) for one in study.outcomes)
    rows = tuple(row for row in told if any(row[1:]))
    if not rows:
        return []
    note = "What was chosen stands fold by fold, once where all folds agree."
    return [ReportTable("Tuning, inside the training part of each fold", ("method", "how", "chosen"), rows, note=note)]


def _chosen(folds: Sequence[Mapping[str, Any]]) -> str:
    """Each parameter with its values, fold by fold."""
    names = dict.fromkeys(name for fold in folds for name in fold)
    values = {name: [_value(fold[name]) for fold in folds if name in fold] for name in names}
    return "; ".join(
        f"{name} {' / '.join(found[:1] if len(set(found)) == 1 else found)}" for name, found in values.items()
    )


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _repeat(study: Study) -> list[Block]:
    facts = [
        ("outer folds", str(study.folds)),
        ("seed", str(study.seed)),
        ("this run took", duration(study.seconds)),
        *study.versions.items(),
    ]
    blocks: list[Block] = [Code(study.command)] if study.command else []
    note = f"Fingerprint of rows, scores and query ids: {study.data.fingerprint}"
    return [*blocks, Facts(tuple(facts)), Text(note, "note")]
