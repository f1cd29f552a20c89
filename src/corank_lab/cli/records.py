"""`corank records`: read records of any format, say what was found, and convert them."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from corank.cli import Force, Json, KeepFormulas, make_console, print_json, show, table_fields
from corank.console import printable
from corank.errors import InputError


def records(
    source: Annotated[
        list[Path], typer.Argument(help="Files of records, as databases and reference managers export them.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write: .ris, .csv, .tsv, .xlsx, .jsonl or .dat.", metavar="FILE"),
    ] = None,
    duplicates: Annotated[
        bool, typer.Option("--duplicates", help="List the groups of duplicates with the evidence.")
    ] = False,
    unique: Annotated[bool, typer.Option("--unique", help="Write one record of each group of duplicates.")] = False,
    references: Annotated[
        bool, typer.Option("--references", help="Fetch references by DOI or PubMed id from OpenAlex.")
    ] = False,
    mail: Annotated[str | None, typer.Option(help="Your address, which OpenAlex asks for.", show_default=False)] = None,
    key: Annotated[
        str | None,
        typer.Option(help="Key of OpenAlex, for many records.", envvar="OPENALEX_API_KEY", show_default=False),
    ] = None,
    address: Annotated[str, typer.Option(help="Address of OpenAlex.")] = "https://api.openalex.org",
    keep_formulas: KeepFormulas = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Read records, print what was found (missing fields, duplicates, labels, references), and convert them."""
    from corank.data import require_text_place
    from corank_lab.records.duplicates import find_duplicates
    from corank_lab.records.records import read_records
    from corank_lab.records.references import match_references
    from corank_lab.records.summary import duplicate_table, summarise
    from corank_lab.records.writer import require_records_suffix, write_records

    if (unique or references) and output is None:
        option = "--unique" if unique else "--references"
        raise InputError(f"{option} needs a file to write; pass --output too.")
    if any(str(path) == "-" for path in source):
        raise InputError("SOURCE is - (standard input), whose format is not known; pass the name of a file.")
    if output is not None:
        require_records_suffix(output)
        require_text_place(output, overwrite=force)
    matches = read_records(*source)
    fetched = ""
    if references:
        from corank_lab.records.openalex import fetch_references

        cache = Path(f"{source[0]}.openalex.jsonl")
        result = fetch_references(matches, cache=cache, address=address, mail=mail, key=key)
        matches, fetched = result.records, str(result)
    groups = find_duplicates(matches)
    summary = summarise(matches, groups, match_references(matches)[1].n_matched_inside)
    written = matches.take(groups.representatives) if unique else matches
    changes: tuple[str, ...] = ()
    if output is not None:
        changes = write_records(output, written, overwrite=force, keep_formulas=keep_formulas)
    if as_json:
        fields = {
            "output": output, "n_written": len(written) if output is not None else 0, "changes": changes,
            "n_records": summary.n_records, "n_duplicates": summary.n_duplicates, "n_groups": summary.n_groups,
            "n_relevant": summary.n_relevant, "n_irrelevant": summary.n_irrelevant,
            "n_references": summary.n_references, "n_matched": summary.n_matched,
            "files": [asdict(file) for file in summary.files], "remarks": summary.remarks,
            "duplicates": table_fields(duplicate_table(matches, groups)) if duplicates else None,
        }  # fmt: skip
        print_json("records", fields)
        return
    if fetched:
        typer.echo(fetched)
    console = make_console()
    show(replace(summary.table(), note=""), console)
    for line in summary.sentences():
        typer.echo(printable(line))
    if duplicates and groups.groups:
        show(duplicate_table(matches, groups), console)
    elif groups.groups:
        typer.echo("--duplicates lists the groups of duplicates.")
    if output is not None:
        typer.echo(printable(f"wrote {output}: {len(written)} records"))
        for change in changes:
            typer.echo(printable(f"{output}: {change}"))
