"""`corank compare`: choose a ranker for a file by cross-validation, and save it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corank.cli.options import INTERRUPTED, Convention, Data, Json, JudgedColumns, Prior, Seed
from corank.cli.output import print_json

if TYPE_CHECKING:
    from corank.comparison import Study
    from corank.data.durable.text import TextFile

QUICK_FOLDS, QUICK_SHARES = 3, (0.1, 0.5)
"""Folds and shares of the learning curve with ``--quick``."""


def compare(
    data: Data,
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            help="Methods, separated by commas: rankrls, crr, lcra, lightgbm, ...; eleven by default.",
            show_default=False,
        ),
    ] = None,
    unjudged: Annotated[
        list[str] | None,
        typer.Option(
            help="File of unjudged rows for semi-supervised methods, or label that marks an unjudged row, such as -1; "
            "repeatable.",
            metavar="POOL",
        ),
    ] = None,
    prior: Prior = None,
    budget: Annotated[str | None, typer.Option(help="Time limit: 90s, 10m, 1h.", metavar="TIME")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Four methods, three folds, a short learning curve.")] = False,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="Metric such as nDCG@10, AP, P@5, RR; the first one chooses; repeatable.",
            show_default=False,
        ),
    ] = None,
    convention: Convention = "corank",
    folds: Annotated[
        int | None, typer.Option(min=2, help="Number of outer folds.  [default: 5]", show_default=False)
    ] = None,
    curve: Annotated[bool, typer.Option("--curve/--no-curve", help="Whether to compute the learning curve.")] = True,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            file_okay=False,
            help="Folder for results, report and model; a second run continues there.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of processes; all processors by default, at most 4.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    columns: JudgedColumns,
    force: Annotated[bool, typer.Option("--force", help="Replace the study of other data in the folder.")] = False,
) -> None:
    """Compare rankers by nested cross-validation over queries, choose one, and save it; a second run continues."""
    import shlex
    import sys

    from corank.data.durable.text import require_exists

    seconds = None if budget is None else parse_time(budget)
    marker, pools = parse_unjudged(unjudged or [])
    # report a missing file before slow imports
    for path in (*data, *pools):
        require_exists(path)

    from corank.cli.learn.models import parse_features, resolve_features
    from corank.cli.rows import read_rows
    from corank.comparison import compare as run
    from corank.comparison.methods import DEFAULT, QUICK, find_methods
    from corank.comparison.outcomes import write
    from corank.comparison.study import FRACTIONS, STUDY, study_record
    from corank.data.io.read import open_source, read
    from corank.metrics import parse_metric
    from corank.metrics.conventions import find_convention

    prior_features = None if prior is None else parse_features(prior, "--prior")
    names = [name.strip() for name in models.split(",")] if models else QUICK if quick else DEFAULT
    # report a misspelt name before a large file is read
    find_methods(names, None)
    find_convention(convention)
    for metric in metrics or ():
        parse_metric(metric)
    sources = [open_source(path) for path in data]
    refuse_preferences(sources[0])
    rows = read_rows(sources, columns, needs_labels=True, unjudged=marker)
    prior_columns = None
    if prior_features is not None:
        prior_columns = resolve_features(prior_features, "--prior", rows.names, rows.X.shape[1])
    more = None
    if pools:
        ignored = [*(columns.drop or ()), *([columns.label] if columns.label else [])] if rows.roles else None
        unlabelled = replace(columns, label=None, drop=ignored, judge_column=None, judges="keep")
        more = read(pools, n_features=rows.X.shape[1], features=rows.names, **unlabelled.arguments(needs_labels=False))
    folder = output or Path("out/compare") / (_stem(data[0]) + ("-quick" if quick else ""))
    shares = QUICK_SHARES if quick else FRACTIONS
    try:
        study = run(
            names, rows, unjudged=more, prior=prior_columns, metrics=metrics, convention=convention,
            folds=folds or (QUICK_FOLDS if quick else 5), fractions=shares if curve else (),
            budget=seconds, folder=folder, overwrite=force, n_jobs=jobs, random_state=seed, verbose=True,
            name=", ".join(path.name for path in data), command=shlex.join(["corank", *sys.argv[1:]]),
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo(f"corank: interrupted; the results are in {folder}. Run the same command to continue.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    written = [*write(study, folder, overwrite=True), *([study.model] if study.model else [])]
    if as_json:
        print_json("compare", study_record(study))
    else:
        show_study(study)
        files = [folder / STUDY, *written]
        typer.echo(f"wrote {', '.join(map(str, files))}; {study.seconds:.0f} s")
    if not study.winner:
        typer.echo("corank: no method finished all folds, so there is no winner.", err=True)
        raise typer.Exit(1)


def parse_time(text: str) -> float:
    """Parse a duration such as 90, 90s, 10m or 1h30m; return seconds."""
    import re

    from corank.errors import InputError

    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}
    result = re.fullmatch(r"(?:\d+(?:\.\d+)?[hms]?)(?:\d+(?:\.\d+)?[ms])*", text.strip().lower())
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms]?)", text.strip().lower()) if result else []
    seconds = sum(float(size) * units[unit] for size, unit in parts)
    if not seconds > 0:
        raise InputError(f"--budget is {text!r}; pass a duration such as 90s, 10m or 1h30m.")
    return seconds


def parse_unjudged(values: list[str]) -> tuple[float | None, list[Path]]:
    """Separate the label that marks unjudged rows, or None, from files of unjudged rows."""
    from corank.errors import InputError

    labels: list[float] = []
    files: list[Path] = []
    for text in values:
        try:
            labels.append(float(text))
        except ValueError:
            files.append(Path(text))
    if len(labels) > 1:
        raise InputError(f"--unjudged has {len(labels)} labels; pass at most one label, and files.")
    return (labels[0] if labels else None), files


def refuse_preferences(source: TextFile | Path) -> None:
    """Raise `InputError` if a file holds preferences instead of scores."""
    from corank.data.io.read import detect_format
    from corank.errors import InputError

    if isinstance(source, Path) or detect_format(source) != "csv":
        return
    names = {name.strip() for name in source.first_line().decode(errors="replace").lower().split(",")}
    if {"winner", "loser"} <= names:
        raise InputError(
            f"{source} holds preferences only, but methods are evaluated by scores; pass rows with scores."
        )


def show_study(study: Study) -> None:
    """Print the leaderboard, the verdict and the notes."""
    from corank.cli.output import make_console, show
    from corank.comparison.outcomes import leaderboard

    console = make_console()
    data = study.data
    pool = f", {data.n_pool_rows} further unjudged rows" if data.n_pool_rows else ""
    console.print(
        f"{data.name}: {data.n_rows} rows in {data.n_queries} queries, {data.n_features} features, "
        f"{data.n_rows - data.n_unscored_rows} scored{pool}; {study.folds} folds of whole queries, convention "
        f"{study.convention}, seed {study.seed}"
    )
    show(leaderboard(study, is_brief=True), console)
    console.print(study.verdict, style="bold")
    for note in study.notes:
        console.print(f"- {note}")
    if study.winner:
        console.print(study.rule, style="dim")


def _stem(path: Path) -> str:
    name = path.name.split(".")[0]
    return name if name not in ("", "-") else "stdin"
