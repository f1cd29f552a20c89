"""`corank evaluate RUN... --gold FILE --cheap FILE`: few human grades, many cheap ones."""

from __future__ import annotations

from pathlib import Path

import typer

from corank.cli.output import make_console, print_json, show
from corank.cli.rows import ColumnOptions
from corank.errors import InputError


def evaluate_with_cheap(
    runs: list[Path], gold: Path, cheap: list[Path], names: list[str], convention: str, columns: ColumnOptions, *,
    unjudged: float | None, these_queries: bool, fail_if_worse: float | None, junit: Path | None, as_json: bool,
    force: bool,
) -> None:  # fmt: skip
    """Print human only, cheap only and corrected values of runs; exit with status 1 if a run is much worse."""
    from corank.cli.learn.predictions import read_run_file, read_truth
    from corank.console import printable
    from corank.data.io.compressed import require_text_place, write_text
    from corank.metrics.cheap.report import fields, losses, sentences, tables
    from corank.metrics.cheap.report import junit as junit_text
    from corank.metrics.cheap.runs import evaluate_runs

    if (junit is not None or fail_if_worse is not None) and len(runs) < 2:
        raise InputError("--fail-if-worse compares with the first run; pass two runs or more.")
    if junit is not None and fail_if_worse is None:
        raise InputError("--junit reports the gate; pass --fail-if-worse, too.")
    for what, files in (("run", runs), ("--cheap", cheap)):
        if twice := next((str(one) for at, one in enumerate(files) if one in files[:at]), None):
            raise InputError(f"{twice} was passed twice as {what}; pass each file once.")
    if junit is not None:
        require_text_place(junit, overwrite=force)
    found = evaluate_runs(
        read_truth(gold, unjudged, columns),
        dict(zip(_short_names(runs), map(read_run_file, runs), strict=True)),
        names,
        cheap={
            name: read_truth(path, unjudged, columns) for name, path in zip(_short_names(cheap), cheap, strict=True)
        },
        convention=convention,
        these_queries=these_queries,
    )
    failed = [] if fail_if_worse is None else losses(found, fail_if_worse)
    if junit is not None:
        with write_text(junit, overwrite=force) as stream:
            stream.write(junit_text(found, fail_if_worse or 0.0).encode())
    if as_json:
        print_json("evaluate", fields(found, fail_if_worse))
    else:
        console = make_console()
        for result in found.values():
            for table in tables(result):
                show(table, console)
            typer.echo(printable("\n".join(sentences(result, these_queries))))
        for _, _, sentence in failed:
            typer.echo(printable(sentence), err=True)
    if failed:
        raise typer.Exit(1)


def _short_names(files: list[Path]) -> list[str]:
    """Return the names of files without folders and endings, or the paths if these are not distinct."""
    names = [path.name.removesuffix(".gz").removesuffix(".run").removesuffix(".qrels") for path in files]
    return names if len(set(names)) == len(names) and all(names) else [str(path) for path in files]
