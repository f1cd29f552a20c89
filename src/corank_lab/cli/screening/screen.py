"""`corank screen`: read the records that are most likely relevant, and learn when to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from corank.cli import STOPPING_RULES, Force, Json, KeepFormulas, Seed
from corank.errors import InputError


def screen(
    records: Annotated[
        list[Path], typer.Argument(help="Records: RIS, CSV, Excel, PubMed and others; several files are joined.")
    ],
    topic: Annotated[
        str | None, typer.Option(help="Description of relevant records, in words.", show_default=False)
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(help="Ids of records known to be relevant, separated by commas.", show_default=False),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Column of titles.", metavar="COLUMN", show_default=False)] = None,
    text: Annotated[
        str | None, typer.Option(help="Column of abstracts or texts.", metavar="COLUMN", show_default=False)
    ] = None,
    judge: Annotated[str, typer.Option(help="Name of the judge.")] = "me",
    answers: Annotated[
        Path | None,
        typer.Option(help="Folder of corank.db.  [default: that of RECORDS]", metavar="FOLDER", show_default=False),
    ] = None,
    ignore_labels: Annotated[
        bool, typer.Option("--ignore-labels", help="Do not use labels of the file as known answers.")
    ] = False,
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Read every record, including duplicates.")
    ] = False,
    reason: Annotated[
        list[str] | None,
        typer.Option(help="Reason of exclusion for the keys 1 to 9; repeatable, and stored.", show_default=False),
    ] = None,
    reasons: Annotated[
        Path | None,
        typer.Option(help="File of reasons of exclusion, one per line.", metavar="FILE", show_default=False),
    ] = None,
    highlight: Annotated[
        list[str] | None,
        typer.Option(help="Words to highlight, separated by commas; * is any ending.", show_default=False),
    ] = None,
    highlight_against: Annotated[
        list[str] | None,
        typer.Option(help="Words that speak against relevance, highlighted otherwise.", show_default=False),
    ] = None,
    share: Annotated[
        bool, typer.Option("--share", help="Read together with other judges: no record twice, one model for all.")
    ] = False,
    overlap: Annotated[
        float, typer.Option(help="With --share, share of the records that every judge reads.", min=0.0, max=1.0)
    ] = 0.0,
    adjudicate: Annotated[
        bool, typer.Option("--adjudicate", help="Read only records on which judges disagree, and settle them.")
    ] = False,
    rule: Annotated[str, typer.Option(help=f"Stopping rule: {STOPPING_RULES}.")] = "agree",
    target: Annotated[float, typer.Option(help="Recall to reach: share of the relevant records.")] = 0.95,
    confidence: Annotated[float, typer.Option(help="Required probability that it is reached.")] = 0.95,
    export: Annotated[
        Path | None,
        typer.Option(
            help="Write records and answers (.ris, .csv, .xlsx) or the log (.jsonl), and exit.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[str, typer.Option(help="Records to export: all, included, excluded, conflicts or unread.")] = "all",
    all_copies: Annotated[
        bool, typer.Option("--all-copies", help="With --export, write duplicates too, not each work once.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Write PRISMA numbers, diagram, methods paragraph and certificate to this folder, and exit.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None,
    page: Annotated[
        bool,
        typer.Option("--page", help="Read in the browser; corank.db next to the file keeps the answers."),
    ] = False,
    agreement: Annotated[bool, typer.Option("--agreement", help="Print how far the judges agree, and exit.")] = False,
    simulate: Annotated[bool, typer.Option("--simulate", help="Replay records that are all judged.")] = False,
    starts: Annotated[int, typer.Option(min=1, help="Number of replays, each from another pair of records.")] = 10,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for report, curves and plot of a replay.", show_default=False),
    ] = None,
    seed: Seed = 0,
    keep_formulas: KeepFormulas = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Screen records: read the most likely one next, answer with a key, stop when nearly all are found."""
    modes = {
        "--simulate": simulate, "--export": export is not None, "--report": report is not None,
        "--agreement": agreement, "--adjudicate": adjudicate, "--page": page,
    }  # fmt: skip
    chosen = [name for name, is_given in modes.items() if is_given]
    if len(chosen) > 1:
        raise InputError(f"{chosen[0]} and {chosen[1]} cannot be combined; pass one of them.")
    if output is not None and not simulate:
        raise InputError("--output is for the results of --simulate; pass --simulate too, or leave --output out.")
    if as_json and (not chosen or adjudicate or page):
        raise InputError(
            "--json works with --simulate, --export, --report or --agreement only; leave it out to read records."
        )
    if all_copies and export is None:
        raise InputError("--all-copies is a part of --export; pass --export FILE too, or leave --all-copies out.")
    if overlap and not share:
        raise InputError("--overlap is a part of shared reading; pass --share too, or leave --overlap out.")
    if any(str(path) == "-" for path in records):
        raise InputError("RECORDS is - (standard input), which is needed for the keys; pass the name of a file.")
    columns = {name: column for name, column in (("title", title), ("text", text)) if column is not None}
    if page and columns:
        raise InputError(
            f"--{next(iter(columns))} does not work with --page; name the column title or abstract in the file, or "
            "leave --page out."
        )
    if page:
        from corank_lab.cli.screening.on_page import read_on_page

        options = {
            "topic": topic or "", "reasons": "\n".join(reason or ()), "highlight": ", ".join(highlight or ()),
            "highlight_against": ", ".join(highlight_against or ()), "rule": rule, "target": target,
            "confidence": confidence, **({"use_labels": False} if ignore_labels else {}),
        }  # fmt: skip
        read_on_page(records, judge, options)
        return
    from corank_lab.cli.screening.files import ScreeningFiles

    files = ScreeningFiles(tuple(records), answers, not keep_duplicates, columns)
    stopping: dict[str, Any] = {"rule": rule, "target": target, "confidence": confidence}
    if export is not None or report is not None or agreement:
        from corank_lab.cli.screening import results

        if export is not None:
            results.export(
                files, export, only, all_copies=all_copies, force=force, as_json=as_json, keep_formulas=keep_formulas
            )
        elif report is not None:
            results.report(files, report, stopping, seed, force=force, as_json=as_json, keep_formulas=keep_formulas)
        else:
            results.show_agreement(files, as_json=as_json)
        return
    if not simulate:
        from corank_lab.cli.screening import session
        from corank_lab.cli.screening.view import Highlights

        words = Highlights.of(highlight or (), highlight_against or ())
        if adjudicate:
            session.adjudicate(files, judge, reasons=reason or (), highlights=words)
            return
        ids = [one.strip() for listed in known or () for one in listed.split(",") if one.strip()]
        is_done = session.read(
            files, judge, {**stopping, "topic": topic, "known": ids, "random_state": seed},
            reasons=reason or (), reasons_file=reasons, highlights=words, ignore_labels=ignore_labels,
            overlap=overlap if share else None,
        )  # fmt: skip
        if is_done:
            return
    from corank_lab.cli.screening.replay import replay

    replay(files, starts, stopping, output, force, as_json)
