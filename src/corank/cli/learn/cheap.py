"""`corank evaluate --gold --cheap` and `corank suggest --for evaluation`: few human grades, many cheap ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from corank.cli.options import ColumnOptions
from corank.cli.output import emit
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.metrics import RunsEvaluation
    from corank.tables import ReportTable

DRAW = ("probability", "share", "time")
"""Columns of a file of drawn documents, beside query and docid."""
MAX_CHART = 40
"""Number of systems in the plot of a page."""


def evaluate_with_cheap(
    runs: list[Path], gold: Path, cheap: list[Path], names: list[str], convention: str, columns: ColumnOptions, *,
    unjudged: float | None, these_queries: bool, fail_if_worse: float | None, junit: Path | None, report: Path | None,
    as_json: bool, force: bool,
) -> None:  # fmt: skip
    """Print human only, cheap only and corrected values of runs; exit with status 1 if a run is much worse."""
    from corank.cli.rows import read_run_file, read_truth
    from corank.console import printable
    from corank.data.durable.compressed import require_text_place, write_text
    from corank.metrics.cheap.report import fields, losses, sentences, tables
    from corank.metrics.cheap.report import junit as junit_text
    from corank.metrics.cheap.runs import evaluate_runs

    if (junit is not None or fail_if_worse is not None) and len(runs) < 2:
        raise InputError("--fail-if-worse compares with the first run; pass two runs or more.")
    if junit is not None and fail_if_worse is None:
        raise InputError("--junit reports the gate; pass --fail-if-worse, too.")
    for what, files in (("run", runs), ("--cheap", cheap)):
        if twice := next((str(item) for i, item in enumerate(files) if item in files[:i]), None):
            raise InputError(f"{twice} was passed twice as {what}; pass each file once.")
    for place in (junit, report):
        if place is not None:
            require_text_place(place, overwrite=force)
    matches = evaluate_runs(
        read_truth(gold, unjudged, columns),
        dict(zip(_short_names(runs), map(read_run_file, runs), strict=True)),
        names,
        cheap={
            name: read_truth(path, unjudged, columns) for name, path in zip(_short_names(cheap), cheap, strict=True)
        },
        convention=convention,
        these_queries=these_queries,
    )
    failed = [] if fail_if_worse is None else losses(matches, fail_if_worse)
    if junit is not None:
        with write_text(junit, overwrite=force) as stream:
            stream.write(junit_text(matches, fail_if_worse or 0.0).encode())
    if report is not None:
        write_page(report, matches, force=force)
    parts: list[ReportTable | str] = []
    for result in matches.values():
        parts += [*tables(result), *sentences(result, these_queries)]
    emit(as_json, "evaluate", fields(matches, fail_if_worse), *parts)
    if not as_json:
        for *_, sentence in failed:
            typer.echo(printable(sentence), err=True)
    if failed:
        raise typer.Exit(1)


def evaluate_drawn(
    runs: list[Path], gold: Path, cheap: list[Path], drawn: Path, metric: str, convention: str,
    columns: ColumnOptions, *, as_json: bool,
) -> None:  # fmt: skip
    """Print the estimates from human grades of drawn documents."""
    from corank.cli.rows import read_run_file, read_truth
    from corank.clicks.sequential import InterleavingTest
    from corank.data.io.judgements import read_judgements
    from corank.data.io.trec import Qrels
    from corank.metrics.cheap.documents import evaluate_documents
    from corank.metrics.conventions import find_convention

    if len(runs) < 2:
        raise InputError("documents are drawn for differences of runs; pass two runs or more.")
    listed = read_judgements(
        gold, y=columns.label, qid=columns.qid, docid=columns.id_column, judge=columns.judge_column
    ).final("median" if columns.judges == "keep" else columns.judges)
    if listed.qid is None:
        raise InputError(f"{gold} has no column of queries; add one.")
    if all(grade != grade for grade in listed.y.tolist()):
        raise InputError(f"{gold} has no grades; fill the column rating, or grade the file with corank lab.")
    result = evaluate_documents(
        Qrels(listed.qid, listed.docids, listed.y),
        dict(zip(_short_names(runs), map(read_run_file, runs), strict=True)),
        _read_drawn(drawn),
        metric,
        cheap={name: read_truth(path, None, columns) for name, path in zip(_short_names(cheap), cheap, strict=True)},
        convention=find_convention(convention),
    )
    others = result.systems[1:]
    verdicts = []
    for terms, bound in result.sequential:
        test = InterleavingTest(0.05 / len(others), bound=bound, tuned_for=max(1, result.n_drawn // 30))
        verdicts.append(test.add(terms).verdict())
    S = len(result.systems)
    fields = {
        "convention": convention, "metric": result.metric, "n_queries": result.n_queries, "n_drawn": result.n_drawn,
        "n_graded": result.n_graded, "notes": result.notes,
        "means": [
            {"system": name, "cheap": float(result.cheap[i]), "corrected": result.estimate.interval(i)._asdict()}
            for i, name in enumerate(result.systems)
        ],
        "differences": [
            {"base": result.systems[b], "other": result.systems[a],
             "corrected": result.estimate.interval(a, b)._asdict()} for b in range(S) for a in range(b + 1, S)
        ],
        "at_any_time": [
            {"base": result.systems[0], "other": name, "low": item.low, "high": item.high,
             "decided_after": item.decided_at, "p_value": item.p_value}
            for name, item in zip(others, verdicts, strict=False)
        ],
    }  # fmt: skip
    lines = [
        f"{result.n_graded} of {result.n_drawn} drawn documents have human grades. Intervals: 95%, for the "
        f"{result.n_queries} listed queries; they hold whatever the cheap judges' bias is, if you look once."
    ]
    for name, entry in zip(others, verdicts, strict=False):
        state = "not decided" if entry.winner is None else f"decided after {entry.decided_at} documents"
        lines.append(
            f"At any time: {name} against {result.systems[0]}: {state} ({entry.low:+.4f} to {entry.high:+.4f})."
        )
    lines += [f"Note: {remark}" for remark in result.notes]
    emit(as_json, "evaluate", fields, *result.tables(), *lines)


def _read_drawn(path: Path) -> list[tuple[str, str, float, float, float]]:
    from corank.data.io.tables import read_table
    from corank.parameters import number

    table = read_table(path)
    if lacking := [name for name in ("query", "docid", *DRAW) if name not in table.columns]:
        raise InputError(f"{path} has no column {lacking[0]}; pass the file of corank suggest --for evaluation.")
    if not len(table):
        raise InputError(f"{path} has no documents.")
    odds = [table.numbers(name, number(0.0, 1.0, inside="(]")).tolist() for name in DRAW]
    return list(zip(table.texts("query"), table.texts("docid"), *odds, strict=True))


def is_drawn(path: Path) -> bool:
    """Return whether a table has the columns of a draw."""
    from corank.data.durable.text import open_text
    from corank.data.io.read import detect_format
    from corank.data.io.tables import csv_table, suffix_of

    if suffix_of(path) not in (".csv", ".tsv") or detect_format(path) != "csv":
        return False
    return {*DRAW} <= set(csv_table(open_text(path).first_line().decode(errors="replace"), str(path)).columns)


def suggest_for_evaluation(
    runs: list[Path], cheap: list[Path], number: int, metric: str, convention: str, texts: list[Path],
    output: Path | None, *, seed: int, as_json: bool, force: bool, keep_formulas: bool,
) -> None:  # fmt: skip
    """Draw documents whose human grades decide between runs, and write them with their probabilities."""
    import numpy as np

    from corank.cli.output import emit_rows
    from corank.cli.rows import read_run_file, read_texts, read_truth
    from corank.data.durable.compressed import require_text_place
    from corank.metrics.cheap.documents import document_weights, gains, sample_documents, with_frame
    from corank.metrics.conventions import find_convention

    if output is not None:
        require_text_place(output, overwrite=force)
    if len(runs) < 2:
        raise InputError(f"found {len(runs)} run; documents are drawn for differences, so pass two runs or more.")
    rules = find_convention(convention)
    graded = with_frame(
        dict(zip(_short_names(runs), map(read_run_file, runs), strict=True)), [read_truth(path, None) for path in cheap]
    )
    W = document_weights(graded, metric, rules)
    sampled = sample_documents(W, gains(graded.grades[:-1], metric, rules).T, number, np.random.default_rng(seed))
    queries, names = graded.documents
    chosen = [(graded.queries[queries[i]], names[i]) for i in sampled.documents.tolist()]
    shown, cells = read_texts(texts, [document for _, document in chosen])
    header = ("query", "docid", *DRAW, *shown, "rating")
    lines = [
        (*pair, *(f"{value:.8g}" for value in odds), *more, "")
        for pair, odds, more in zip(chosen, zip(*sampled[1:], strict=True), cells, strict=True)
    ]
    sentence = (
        f"wrote {output}: {len(lines)} documents of {len({query for query, _ in chosen})} queries, in the order of "
        f"the draw. Fill the column rating, or grade them with corank lab; then corank evaluate RUN... --gold "
        f"GRADES --drawn {output} -m {metric}."
    )
    emit_rows(
        "suggest", [header, *lines], output, as_json=as_json, force=force, keep_formulas=keep_formulas,
        sentence=sentence, metric=metric,
    )  # fmt: skip


def write_page(path: Path, evaluation: RunsEvaluation, *, force: bool) -> None:
    """Write one HTML page with a plot of each metric: systems before and after the correction."""
    from corank.comparison.charts import IntervalRow, interval_chart, plot
    from corank.comparison.report import Document, bullets, paragraph, part
    from corank.data.durable.atomic import atomic_file
    from corank.metrics.cheap.report import sentences, tables

    sections = []
    for number, result in enumerate(evaluation.values()):
        rows = []
        for name in result.order[:MAX_CHART]:
            i = result.systems.index(name)
            before, after = (item.interval(i, level=result.level) for item in (result.human, result.corrected))
            if result.judges:
                rows.append(IntervalRow(f"{name}, corrected", *after[:3], is_strong=True))
                rows.append(IntervalRow(f"{name}, cheap only", float(result.cheap[i]), float("nan"), float("nan")))
            rows.append(IntervalRow(f"{name}, human only", *before[:3]))
        described = "; ".join(f"{row.name} {row.mean:.3f}, {row.low:.3f} to {row.high:.3f}" for row in rows)
        caption = f"Means with {result.level:.0%} intervals, before and after the correction by cheap grades."
        chart = interval_chart(rows, result.metric)
        drawn = plot(chart, f"m{number}", result.metric, described, caption)
        lines = sentences(result, evaluation.these_queries)
        opening = [paragraph(lines[0], "verdict"), drawn, bullets(lines[1:])]
        sections.append(part(f"m{number}", result.metric, [*opening, *tables(result)]))
    if evaluation.notes:
        sections.append(part("notes", "Notes", [bullets(evaluation.notes)]))
    n_graded, n_queries = len(evaluation.gold), len(evaluation.query_ids)
    title = f"{len(evaluation.systems)} runs, {n_graded} of {n_queries} queries with human grades"
    with atomic_file(path, overwrite=force) as scratch:
        scratch.write_text(Document(title, sections).html(), encoding="utf-8")


def _short_names(files: list[Path]) -> list[str]:
    """Return the names of files without folders and endings, or the paths if these are not distinct."""
    names = [path.name.removesuffix(".gz").removesuffix(".run").removesuffix(".qrels") for path in files]
    return names if len(set(names)) == len(names) and all(names) else [str(path) for path in files]
