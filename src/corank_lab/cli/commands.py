"""Commands that `corank_lab` adds to `corank`, and `corank records`; light to import."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from corank.cli import (
    Commands,
    Force,
    Json,
    KeepFormulas,
    Verb,
    VerbGroup,
    make_console,
    print_json,
    show,
    table_fields,
)
from corank.console import printable
from corank.errors import InputError
from corank_lab.cli import serve
from corank_lab.cli.demo import demo
from corank_lab.cli.lab import pages, recover
from corank_lab.cli.prefer import prefer
from corank_lab.cli.screening import results, screen
from corank_lab.cli.serve import replay


def records(
    source: Annotated[
        list[Path], typer.Argument(help="Files of records, as databases and reference managers export them.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write: .ris, .csv, .tsv, .xlsx, .jsonl, .dat, .opt.", metavar="FILE"
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
    from corank_lab.records.records import duplicate_table, read_records, summarise
    from corank_lab.records.references import match_references
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
    total = summary.total
    written = matches.take(groups.representatives) if unique else matches
    changes: tuple[str, ...] = ()
    if output is not None:
        changes = write_records(output, written, overwrite=force, keep_formulas=keep_formulas)
    if as_json:
        fields = {
            "output": output, "n_written": len(written) if output is not None else 0, "changes": changes,
            "n_records": total.n_records, "n_duplicates": total.n_duplicates, "n_groups": summary.n_groups,
            "n_relevant": total.n_relevant, "n_irrelevant": total.n_irrelevant,
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


SCREEN = VerbGroup(
    "screen",
    "Find nearly all relevant records.",
    (
        Verb(
            screen.read,
            "Read records; the default: screen FILE.",
            "screen records.csv --topic 'heat pumps in old houses'",
        ),
        Verb(results.replay, "Replay records that are all judged.", "screen replay records.csv --starts 2"),
        Verb(results.protocol, "Write the plan of a screening.", "screen protocol records.csv --accept '1 in 10'"),
        Verb(results.report, "Report on progress and agreement.", "screen report reviewed.csv --output report"),
        Verb(results.export, "Write records and answers.", "screen export reviewed.csv --output answers.ris"),
        Verb(screen.settle, "Settle conflicts of judges.", "screen settle reviewed.csv --judge eve"),
        Verb(results.certify, "Write a certificate.", "screen certify reviewed.csv -o proof.json --page proof.html"),
        Verb(results.verify, "Verify a certificate.", "screen verify certificate.json reviewed.csv"),
    ),
    default="read",
    moved=screen.MOVED,
)

LAB = VerbGroup(
    "lab",
    "Judge in the browser, alone or in a team.",
    (
        Verb(pages, "Open the pages; the default: lab FOLDER.", "lab reviews --port 8700"),
        Verb(recover, "Copy what is sound of a damaged database.", "lab recover damaged.db --output recovered"),
    ),
    default="pages",
)

SERVE = VerbGroup(
    "serve",
    "Rank over HTTP and learn from clicks.",
    (
        Verb(serve.start, "Rank over HTTP and learn from clicks.", "serve start shop --port 8700"),
        Verb(serve.add, "Add a version of a model.", "serve add shop clicks --online PDGD --columns price,stars"),
        Verb(serve.models, "List the models and what they have learnt.", "serve models shop"),
        Verb(serve.activate, "Use a version of a model from now on.", "serve activate shop clicks 2"),
        Verb(serve.remove, "Remove a version that is not active.", "serve remove shop clicks 1"),
        Verb(serve.save, "Write what a model has learnt to a file.", "serve save shop clicks -o clicks.safetensors"),
        Verb(serve.key, "Add, revoke or list keys.", "serve key shop --scope rank --scope feedback --name web"),
        VerbGroup(
            "events",
            "Check and export the log; forget people.",
            (
                Verb(serve.verify, "Replay the log and compare.", "serve events verify shop"),
                Verb(serve.export, "Export the log.", "serve events export shop -o shop-log"),
                Verb(serve.forget, "Delete all events of a user.", "serve events forget shop ann"),
            ),
        ),
    ),
    hint="the pages are now 'corank lab'",
)

COMMANDS = Commands(
    sections={
        "Judge": (
            Verb(records, "Read, check and convert records.", "records records.csv --duplicates --output records.ris"),
            SCREEN,
            Verb(prefer, "Order items by pairwise questions.", "prefer items.csv"),
            LAB,
        ),
        "Search and clicks": (
            Verb(
                replay,
                "Estimate a new ranker from logged clicks.",
                "replay shown.csv --model model.safetensors --rows rows.csv --bias 1",
            ),
            SERVE,
        ),
        "Files": (Verb(demo, "Run a demonstration on included data.", "demo --output out/demo"),),
    },
    other_names={
        # names of earlier versions
        "service": "serve", "events": "serve events", "ask": "prefer", "certify": "screen certify",
        "verify": "screen verify", "recover": "lab recover",
        # names that other tools use
        "judge": "lab", "review": "screen", "deduplicate": "records", "dedup": "records", "web": "lab",
        "server": "serve", "ope": "replay", "counterfactual": "replay",
    },
)  # fmt: skip
"""The entry point of the group ``corank.commands``."""
