"""`corank experiment`: repeat a paper's experiment, its figures beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corank.errors import InputError


def experiment(
    name: Annotated[str | None, typer.Argument(help="Which one; without it, the names are listed.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short version that shows the shape of the result.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    repeats: Annotated[int | None, typer.Option(help="Number of repeats, where there are any.")] = None,
    asreview: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            show_default=False,
            help="For screening: replays by ASReview to compare with, a JSON line each.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", file_okay=False, help="Folder for results and report; a second run continues there."
        ),
    ] = None,
) -> None:
    """Repeat a paper's experiment on real data; results are kept, so a second run goes on where one ended."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from corank.cli.tables import screen, show
    from corank.experiments import EXPERIMENTS, find
    from corank.experiments.options import ExperimentOptions

    if name is None:
        typer.echo("\n".join(EXPERIMENTS))
        return
    run = find(name)
    if asreview is not None and name != "screening":
        raise InputError(f"--asreview is for the experiment 'screening'; leave it out for {name!r}.")
    folder = output or Path("out/experiments") / (f"{name}-quick" if quick else name)
    console, watched = screen(), Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=watched, transient=True, disable=not watched.is_terminal) as bar:
        task = bar.add_task(name, total=None)

        def expect(n: int) -> None:
            bar.update(task, total=(bar.tasks[task].total or 0) + n)

        def tell(result: str) -> None:
            bar.update(task, advance=1, description=result[:60])

        report = run(ExperimentOptions(folder, quick, seed, repeats, asreview, expect, tell))
    console.print(report.title, style="bold")
    console.print(report.about)
    for table in report.tables:
        show(table, console)
    for finding in report.findings:
        console.print(f"- {finding}")
    written = (*report.write(folder), *report.plots)
    typer.echo(f"wrote {', '.join(map(str, written))}")
