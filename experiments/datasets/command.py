"""``python -m experiments.datasets``: which data sets the experiments know, where they are, and on which terms."""

from __future__ import annotations

from typing import Annotated

import typer

from corank.cli import Command
from corank.cli.options import Json
from corank.cli.output import emit, print_json

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command)
def data(
    fetch: Annotated[
        str | None, typer.Option(help="Download what is missing of this data set.", metavar="NAME")
    ] = None,
    verify: Annotated[bool, typer.Option(help="Check the content of every file that is there.")] = False,
    as_json: Json = False,
) -> None:
    """List the known data sets: what they are, where they were found, terms of use."""
    from corank.cli.output import make_console, show
    from corank.errors import InputError
    from corank.tables import ReportTable
    from experiments.datasets import catalog

    if fetch is not None:
        entry = catalog.dataset(fetch)
        written = []
        for path in catalog.fetch(entry):
            written.append(path)
            if not as_json:
                typer.echo(f"wrote {path}")
        if entry.missing:
            raise InputError(catalog.by_hand(entry))
        fields = {"name": entry.name, "home": entry.home, "written": written, "terms": entry.terms}
        emit(as_json, "data", fields, f"{entry.name} is complete in {entry.home}; terms: {entry.terms}")
        return
    rows, listed = [], []
    for entry in catalog.datasets().values():
        if verify:
            catalog.verify(entry)
        n_files, n_addresses = len(entry.files), sum(file.url is not None for file in entry.files)
        found = _share(n_files - len(entry.missing), n_files, "verified" if verify else "yes")
        counts = {"n_files": n_files, "n_found": n_files - len(entry.missing), "n_addresses": n_addresses}
        listed.append({"name": entry.name, **counts, "about": entry.about, "terms": entry.terms})
        rows.append((entry.name, found, _share(n_addresses, n_files, "yes"), entry.about, entry.terms))
    if as_json:
        print_json("data", {"root": catalog.data_root(), "sets": listed})
        return
    columns = ("name", "found", "fetch", "what it is", "terms of use")
    show(ReportTable(f"Data sets under {catalog.data_root()}", columns, tuple(rows)), make_console())
    typer.echo(
        "Set CORANK_DATA to the folder that holds them. 'fetch' says how many files have an address: these are "
        "downloaded by python -m experiments.datasets --fetch NAME, the others you get on their terms."
    )


def _share(n: int, of: int, all_of_them: str) -> str:
    return "no" if n == 0 else all_of_them if n == of else f"{n} of {of}"
