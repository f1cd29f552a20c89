"""`corank records`: read records of any format, say what was found, and convert them."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corank.cli import Force, Json, KeepFormulas, print_json, table_fields
from corank.errors import InputError

if TYPE_CHECKING:
    from corank_lab.records.duplicates import DuplicateGroups
    from corank_lab.records.records import Records
    from corank_lab.records.summary import ImportSummary


def records(
    source: Annotated[
        list[Path], typer.Argument(help="Files of records, as databases and reference managers export them.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write: .ris, .csv, .tsv, .xlsx, .bib, .nbib or .jsonl.", metavar="FILE"
        ),
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
    from corank_lab.records.summary import summarise
    from corank_lab.records.writer import require_records_suffix, write_records

    if (unique or references) and output is None:
        option = "--unique" if unique else "--references"
        raise InputError(f"{option} needs a file to write; pass --output too.")
    if any(str(path) == "-" for path in source):
        raise InputError("SOURCE is - (standard input), whose format is not known; pass the name of a file.")
    if output is not None:
        require_records_suffix(output)
        require_text_place(output, overwrite=force)
    found = read_records(*source)
    fetched = ""
    if references:
        found, fetched = _fetch(found, Path(f"{source[0]}.openalex.jsonl"), address, mail, key)
    groups = find_duplicates(found)
    summary = summarise(found, groups, match_references(found)[1].n_matched_inside)
    written = found.take(groups.representatives) if unique else found
    changes: tuple[str, ...] = ()
    if output is not None:
        changes = write_records(output, written, overwrite=force, keep_formulas=keep_formulas)
    if as_json:
        _print_json(summary, found, groups, duplicates, output, len(written), changes)
    else:
        if fetched:
            typer.echo(fetched)
        _print(summary, found, groups, duplicates, output, len(written), changes)


def _fetch(found: Records, cache: Path, address: str, mail: str | None, key: str | None) -> tuple[Records, str]:
    """Return the records with references of OpenAlex, and what was fetched."""
    from corank_lab.records.openalex import fetch_references

    fetched = fetch_references(found, cache=cache, address=address, mail=mail, key=key)
    return fetched.records, str(fetched)


def _print(
    summary: ImportSummary,
    found: Records,
    groups: DuplicateGroups,
    duplicates: bool,
    output: Path | None,
    n_written: int,
    changes: tuple[str, ...],
) -> None:
    from corank.cli import make_console, show
    from corank.console import printable
    from corank_lab.records.summary import duplicate_table

    console = make_console()
    show(replace(summary.table(), note=""), console)
    for sentence in summary.sentences():
        typer.echo(printable(sentence))
    if duplicates and groups.groups:
        show(duplicate_table(found, groups), console)
    elif groups.groups:
        typer.echo("--duplicates lists the groups of duplicates.")
    if output is not None:
        typer.echo(printable(f"wrote {output}: {n_written} records"))
        for change in changes:
            typer.echo(printable(f"{output}: {change}"))


def _print_json(
    summary: ImportSummary,
    found: Records,
    groups: DuplicateGroups,
    duplicates: bool,
    output: Path | None,
    n_written: int,
    changes: tuple[str, ...],
) -> None:
    from corank_lab.records.summary import duplicate_table

    fields = {
        "output": output, "n_written": n_written if output is not None else 0, "changes": changes,
        "n_records": summary.n_records, "n_duplicates": summary.n_duplicates, "n_groups": summary.n_groups,
        "n_relevant": summary.n_relevant, "n_irrelevant": summary.n_irrelevant,
        "n_references": summary.n_references, "n_matched": summary.n_matched,
        "files": [asdict(file) for file in summary.files], "remarks": summary.remarks,
        "duplicates": table_fields(duplicate_table(found, groups)) if duplicates else None,
    }  # fmt: skip
    print_json("records", fields)
