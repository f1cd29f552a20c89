"""`corank check-lambda`: is there a cost that forces are slopes of, and is it convex?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corank.cli.output import Json, emit


def check_lambda(
    forces: Annotated[
        str, typer.Argument(help="A shipped λ, such as ndcg@10, or a function of your own, module:function.")
    ],
    labels: Annotated[
        str | None, typer.Option(help="Grades of the query to look at, such as 2,1,0.", metavar="GRADES")
    ] = None,
    points: Annotated[int, typer.Option(min=1, help="Scores to look at.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="PNG file for a picture of the forces.", dir_okay=False, metavar="FILE")
    ] = None,
    as_json: Json = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Ask whether forces are the slopes of a cost, whether it is convex, and what speaks against it."""
    from corank.cli.learn.models import add_working_directory
    from corank.data.durable.atomic import require_place
    from corank.errors import InputError
    from corank.lambdarank import check_lambda as check
    from corank.lambdarank import plot_lambda

    if plot is not None:
        require_place(plot, overwrite=force)
    try:
        grades = None if labels is None else [float(label) for label in labels.split(",")]
    except ValueError:
        raise InputError(f"--labels is {labels!r}; write grades divided by commas, such as 2,1,0.") from None
    add_working_directory()
    found = check(forces, grades, n_points=points, random_state=seed)
    if plot is not None:
        plot_lambda(forces, plot, overwrite=force)
    written = "" if plot is None else f"\nwrote {plot}"
    emit(as_json, "check-lambda", {"check": found, "plot": plot}, f"{found}{written}")
