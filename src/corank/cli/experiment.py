"""`corank experiment`: repeat a paper's experiment, its figures beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def experiment(
    name: Annotated[str | None, typer.Argument(help="Which one; without it, the names are listed.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short version that shows the shape of the result.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    repeats: Annotated[int | None, typer.Option(help="Number of repeats, where there are any.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for results and report; a second run continues there."),
    ] = None,
) -> None:
    """Repeat a paper's experiment on real data; results are kept, so a second run goes on where one ended."""
    import sys

    from rich.console import Console

    from corank.experiments import EXPERIMENTS, find
    from corank.experiments.settings import Settings

    if name is None:
        typer.echo("\n".join(EXPERIMENTS))
        return
    run = find(name)
    folder = output or Path("out/experiments") / (f"{name}-quick" if quick else name)
    console = Console()
    with Console(stderr=True).status(f"{name} ...") as status:
        on_terminal = sys.stderr.isatty()
        tell = (lambda line: status.update(line[:100])) if on_terminal else (lambda line: None)
        report = run(Settings(folder, quick=quick, seed=seed, repeats=repeats, tell=tell))
    console.print(report.title, style="bold")
    console.print(report.about)
    for table in report.tables:
        console.print(table.rich())
    for finding in report.findings:
        console.print(f"- {finding}")
    written = (*report.write(folder), *report.plots)
    typer.echo(f"wrote {', '.join(map(str, written))}")
