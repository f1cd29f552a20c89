"""`corank lab recover`: copy what can still be read of a damaged database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corank.cli import Force, Json


def recover(
    database: Annotated[Path, typer.Argument(help="Damaged database, or its folder; it is only read.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="New folder, which will hold corank.db.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Copy the sound rows of a damaged database to a new one, and list the answers that are lost."""
    from corank.cli import emit
    from corank_lab.api.tables import TABLES
    from corank_lab.database.recover import recover as copy_sound_rows

    damaged = database / "corank.db" if database.is_dir() else database
    result = copy_sound_rows(damaged, output, apps=(TABLES,), overwrite=force)
    lines = [
        f"Copied {result.n_rows['projects']} projects, {result.n_rows['answers']} answers and "
        f"{result.n_rows['events']} events to {output / 'corank.db'}.",
        *(f"Lost: {what}." for what in result.lost),
    ]
    emit(as_json, "lab recover", {"rows": dict(result.n_rows), "lost": result.lost}, "\n".join(lines))
