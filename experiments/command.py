"""``python -m experiments``: repeat one or all experiments of the papers, with the papers' figures for comparison."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Annotated

import typer

from corank.cli import Command
from corank.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from corank.comparison.report import Report
    from experiments.options import ExperimentOptions

ALL = "all"
QUICK = "They show that the experiment works, not which method is better: see the page of the full run."
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command)
def experiment(
    name: Annotated[
        str | None,
        typer.Argument(help="Experiment, or all; without it, the names are listed.", show_default=False),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Describe each experiment.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Run a short version with rough results.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    repeats: Annotated[int | None, typer.Option(min=1, help="Number of repeats, if the experiment has any.")] = None,
    asreview: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            show_default=False,
            help="For screening: replays of ASReview for comparison, as JSON lines.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", file_okay=False, help="Folder for results and report; a second run continues there."
        ),
    ] = None,
    store: Annotated[
        bool, typer.Option("--store", help="Store the results of a full run, and fill the pages with them.")
    ] = False,
    reuse: Annotated[
        bool, typer.Option("--reuse", help="With --store: take results of earlier commits; the page names them.")
    ] = False,
    stored: Annotated[bool, typer.Option("--stored", help="Print the stored results of the full run.")] = False,
) -> None:
    """Repeat a paper's experiment on real data; results are stored, and a second run continues."""
    from experiments import EXPERIMENTS, about, find

    if listed:
        from corank.cli.output import make_console, show
        from corank.tables import ReportTable
        from experiments.stored import duration, stored_seconds

        rows = tuple((known, about(known), duration(stored_seconds(known))) for known in EXPERIMENTS)
        show(ReportTable("", ("experiment", "question", "processor time"), rows), make_console())
        return
    if name is None:
        typer.echo("\n".join(EXPERIMENTS))
        return
    if asreview is not None and name not in ("screening", ALL):
        raise InputError(f"--asreview is for the experiment 'screening'; leave it out for {name!r}.")
    if store and quick:
        raise InputError("--store is for full runs, and --quick was given; leave one of them out.")
    if stored:
        from experiments.stored import StoredResults

        for known in EXPERIMENTS if name == ALL else (name,):
            results = StoredResults.read(known)
            _print(replace(results.report, about=f"{results.provenance.strip('*')} {results.report.about}"))
        return
    options = _RunOptions(quick, seed, repeats, asreview, store, reuse)
    if name == ALL:
        _run_all(options, output or Path("out/experiments"))
        return
    run = find(name)
    folder = output or Path("out/experiments") / options.subfolder(name)
    report = options.run(name, run, folder)
    written = (*report.write(folder), *report.plots)
    _print(report)
    typer.echo(f"wrote {', '.join(map(str, written))}")
    if store:
        from experiments.pages import fill_pages

        fill_pages()


@dataclass(frozen=True)
class _RunOptions:
    """The options of the command."""

    quick: bool
    seed: int
    repeats: int | None
    asreview: Path | None
    store: bool = False
    reuse: bool = False

    def subfolder(self, name: str) -> str:
        return f"{name}-quick" if self.quick else name

    def command(self, name: str) -> str:
        """Return the command that runs one experiment."""
        words = ["python -m experiments", name, *(["--quick"] if self.quick else [])]
        words += [f"--seed {self.seed}"] if self.seed else []
        repeats = self.repeats_of(name)
        words += [f"--repeats {repeats}"] if repeats is not None else []
        return " ".join([*words, *([f"--asreview {self.asreview}"] if self.asreview and name == "screening" else [])])

    def repeats_of(self, name: str) -> int | None:
        """Return the given number of repeats; to store results, the number of the stored run."""
        from experiments.stored import stored_repeats

        return stored_repeats(name) if self.store and self.repeats is None else self.repeats

    def run(self, name: str, run: Callable[[ExperimentOptions], Report], folder: Path) -> Report:
        """Run one experiment with a progress bar."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        from experiments.options import ExperimentOptions
        from experiments.stored import StoredResults, code_commit, committed_code, keep

        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(name, total=None)

            def expect(n: int) -> None:
                bar.update(task, total=(bar.tasks[task].total or 0) + n)

            def report_done(result: str) -> None:
                bar.update(task, advance=1, description=result[:60])

            asreview = self.asreview if name == "screening" else None
            commit = committed_code() if self.store else code_commit()
            options = ExperimentOptions(
                folder, self.quick, self.seed, self.repeats_of(name), asreview, expect, report_done, commit,
                self.reuse or not self.store,
            )  # fmt: skip
            began = process_time()
            report = run(options)
            seconds = process_time() - began
        if self.quick:
            report = replace(report, about=f"{_quick_note(run)}{report.about}")
        if self.store:
            for line in keep(StoredResults.of(name, self.command(name), report, options, seconds)):
                typer.echo(f"{name}: {line}")
        return report


def _quick_note(run: Callable[[ExperimentOptions], Report]) -> str:
    """Return one line on what quick runs leave out and cannot show; empty if they are full runs."""
    outcomes = re.search(r"quick runs (.*?)\.$", inspect.getdoc(run) or "", flags=re.DOTALL | re.MULTILINE)
    return f"Quick runs {' '.join(outcomes[1].split())}. {QUICK} " if outcomes else ""


def _run_all(options: _RunOptions, root: Path) -> None:
    """Run every experiment in its own folder; report those that cannot run, with exit code 1."""
    from experiments import EXPERIMENTS, find
    from experiments.index_page import ExperimentRun, write_index

    if options.store:
        from experiments.stored import duration, stored_seconds

        for name in EXPERIMENTS:
            typer.echo(f"{name}: about {duration(stored_seconds(name))} of processor time")
    stem = options.subfolder("index")
    runs = [
        ExperimentRun(name, options.command(name), options.subfolder(name), None, "not reached yet.")
        for name in EXPERIMENTS
    ]
    for index, name in enumerate(EXPERIMENTS):
        folder = root / runs[index].folder
        try:
            report = options.run(name, find(name), folder)
            report.write(folder)
        except (InputError, MissingExtra) as error:
            runs[index] = ExperimentRun(name, runs[index].command, runs[index].folder, None, f"{error}")
            typer.echo(f"{name}: not run: {error}", err=True)
        else:
            runs[index] = ExperimentRun(name, runs[index].command, runs[index].folder, report)
            typer.echo(f"{name}: {report.title}")
        written = write_index(runs, root, stem)
    if options.store:
        from experiments.pages import fill_pages

        fill_pages()
    skipped = [item.name for item in runs if item.report is None]
    typer.echo(f"wrote {', '.join(map(str, written))}")
    if skipped:
        typer.echo(f"corank: {len(skipped)} of {len(runs)} experiments were not run: {', '.join(skipped)}.", err=True)
        raise typer.Exit(1)


def _print(report: Report) -> None:
    from corank.cli.output import make_console, show

    console = make_console()
    console.print(report.title, style="bold")
    console.print(report.about)
    for table in report.tables:
        show(table, console)
    for finding in report.findings:
        console.print(f"- {finding}")
