"""`corank data`: which data sets corank knows, where they are, and on which terms."""

from __future__ import annotations

from typing import Annotated

import typer


def data(
    fetch: Annotated[
        str | None, typer.Option(help="Download what is missing of this data set.", metavar="NAME")
    ] = None,
    verify: Annotated[bool, typer.Option(help="Check the content of every file that is there.")] = False,
) -> None:
    """List the known data sets: what they are, where they were found, terms of use."""
    from rich.console import Console
    from rich.table import Table

    from corank.data import catalog

    if fetch is not None:
        entry = catalog.dataset(fetch)
        for path in catalog.fetch(entry):
            typer.echo(f"wrote {path}")
        typer.echo(f"{entry.name} is complete in {entry.home}; terms: {entry.terms}")
        return
    table = Table(title=f"Data sets under {catalog.data_root()}", title_justify="left")
    for column in ("name", "found", "what it is", "terms of use"):
        table.add_column(column)
    for entry in catalog.datasets().values():
        if verify:
            catalog.verify(entry)
        table.add_row(entry.name, _found(len(entry.files), len(entry.missing), verify), entry.about, entry.terms)
    Console().print(table)
    typer.echo("Set CORANK_DATA to the folder that holds them; fetch one with: corank data --fetch NAME")


def _found(n_files: int, n_missing: int, verified: bool) -> str:
    if n_missing == n_files:
        return "no"
    if n_missing:
        return f"{n_files - n_missing} of {n_files}"
    return "verified" if verified else "yes"
