"""``python -m experiments.datasets``: list the data sets of the experiments, and download one."""

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
        str | None, typer.Option(help="Download the missing files of this data set.", metavar="NAME")
    ] = None,
    verify: Annotated[bool, typer.Option(help="Verify the checksum of every file.")] = False,
    as_json: Json = False,
) -> None:
    """List the data sets of the experiments: content, location and terms of use."""
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
        results = _share(n_files - len(entry.missing), n_files, "verified" if verify else "yes")
        counts = {"n_files": n_files, "n_found": n_files - len(entry.missing), "n_addresses": n_addresses}
        listed.append({"name": entry.name, **counts, "about": entry.about, "terms": entry.terms})
        rows.append((entry.name, results, _share(n_addresses, n_files, "yes"), entry.about, entry.terms))
    if as_json:
        print_json("data", {"root": catalog.data_root(), "sets": listed})
        return
    columns = ("name", "found", "fetch", "what it is", "terms of use")
    show(ReportTable(f"Data sets under {catalog.data_root()}", columns, tuple(rows)), make_console())
    typer.echo(
        "Set CORANK_DATA to the folder of the data sets. 'fetch' is the number of files that can be downloaded: "
        "python -m experiments.datasets --fetch NAME. Get the others by hand, on their terms of use."
    )


def _share(n: int, total: int, complete: str) -> str:
    return "no" if n == 0 else complete if n == total else f"{n} of {total}"
