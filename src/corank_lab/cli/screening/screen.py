"""`corank screen`: read the records that are most likely relevant, learn when to stop, and write the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.cli import Force, Json, KeepFormulas, Seed, emit
from corank.errors import InputError

if TYPE_CHECKING:
    from corank_lab.cli.screening.session import ScreeningFiles

MAX_NAME = 255
"""Letters of the name of a file."""
STARTS = 10
"""Default number of replays."""

Files = Annotated[
    list[Path],
    typer.Argument(help="Records: RIS, CSV, Excel, PubMed and others; several files are joined."),
]
Answers = Annotated[
    Path | None,
    typer.Option(help="Folder of corank.db.  [default: that of RECORDS]", metavar="FOLDER", show_default=False),
]
Title = Annotated[str | None, typer.Option(help="Column of titles.", metavar="COLUMN", show_default=False)]
Text = Annotated[str | None, typer.Option(help="Column of abstracts or texts.", metavar="COLUMN", show_default=False)]
Rule = Annotated[str, typer.Option(help="Stopping rule; an unknown name lists all of them.", metavar="RULE")]
Target = Annotated[float, typer.Option(help="Recall to reach: share of the relevant records.")]
Accept = Annotated[
    str | None,
    typer.Option(
        "--accept", "--confidence",
        help="Error that you accept, such as '1 in 20', or a confidence.  [default: that of the rule]",
        show_default=False,
    ),
]  # fmt: skip
KeepDuplicates = Annotated[
    bool, typer.Option("--keep-duplicates", help="Judge every record by itself, including duplicates.")
]
Richness = Annotated[int, typer.Option(min=0, help="Random records to read first, to estimate how many are relevant.")]
Judge = Annotated[str, typer.Option(help="Name of the judge.")]
Reason = Annotated[
    list[str] | None,
    typer.Option(help="Reason of exclusion for the keys 1 to 9; repeatable, and stored.", show_default=False),
]
Highlight = Annotated[
    list[str] | None,
    typer.Option(help="Words to highlight, separated by commas; * is any ending.", show_default=False),
]
HighlightAgainst = Annotated[
    list[str] | None,
    typer.Option(help="Words that speak against relevance, highlighted otherwise.", show_default=False),
]

MOVED = {
    "--simulate": "screen replay RECORDS", "--export": "screen export RECORDS --output FILE",
    "--report": "screen report RECORDS --output FOLDER", "--agreement": "screen report RECORDS",
    "--adjudicate": "screen settle RECORDS", "--settle": "screen settle RECORDS",
}  # fmt: skip
"""Options of earlier versions that are commands now."""


def read(
    records: Files,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            "--criteria",
            help="Description of relevant records, or a text file of criteria.",
            show_default=False,
        ),
    ] = None,
    prior: Annotated[
        list[Path] | None,
        typer.Option(help="Old review with labels on a similar question; repeatable.", show_default=False),
    ] = None,
    probability: Annotated[
        str,
        typer.Option(help="Column with a probability of relevance, such as that of an LLM.", metavar="COLUMN"),
    ] = "",
    known: Annotated[
        list[str] | None,
        typer.Option(help="Ids of records known to be relevant, separated by commas.", show_default=False),
    ] = None,
    title: Title = None,
    text: Text = None,
    judge: Judge = "me",
    answers: Answers = None,
    ignore_labels: Annotated[
        bool, typer.Option("--ignore-labels", help="Do not use labels of the file as known answers.")
    ] = False,
    keep_duplicates: KeepDuplicates = False,
    reason: Reason = None,
    reasons: Annotated[
        Path | None,
        typer.Option(help="File of reasons of exclusion, one per line.", metavar="FILE", show_default=False),
    ] = None,
    highlight: Highlight = None,
    highlight_against: HighlightAgainst = None,
    share: Annotated[
        bool, typer.Option("--share", help="Read together with other judges: no record twice, one model for all.")
    ] = False,
    overlap: Annotated[
        float, typer.Option(help="With --share, share of the records that every judge reads.", min=0.0, max=1.0)
    ] = 0.0,
    rule: Rule = "agree",
    target: Target = 0.95,
    accept: Accept = None,
    richness: Richness = 0,
    page: Annotated[
        bool,
        typer.Option("--page", help="Read in the browser; corank.db next to the file keeps the answers."),
    ] = False,
    seed: Seed = 0,
) -> None:
    """Read the most likely relevant record next, answer with a key, stop when nearly all are found."""
    if overlap and not share:
        raise InputError("--overlap is a part of shared reading; pass --share too, or leave --overlap out.")
    if topic is not None and len(topic) < MAX_NAME and Path(topic).is_file():
        topic = Path(topic).read_text(encoding="utf-8", errors="replace")
    if page:
        from corank_lab.cli.screening.session import read_on_page, require_possible

        # pages are always shared
        require_possible(
            title=title, text=text, known=known, answers=answers, overlap=overlap, seed=seed,
            keep_duplicates=keep_duplicates, prior=prior, probability=probability, richness=richness,
        )  # fmt: skip
        options = {
            "topic": topic, "highlight": ", ".join(highlight or ()), **stopping_options(rule, target, accept),
            "highlight_against": ", ".join(highlight_against or ()),
            "use_labels": False if ignore_labels else None,
        }  # fmt: skip
        read_on_page(records, judge, options, reason or (), reasons)
        return
    from corank_lab.cli.screening import session
    from corank_lab.cli.screening.results import replay as replay_labels
    from corank_lab.cli.screening.view import Highlights

    files = _files(records, title, text, answers, keep_duplicates)
    stopping = stopping_options(rule, target, accept)
    ids = [item.strip() for listed in known or () for item in listed.split(",") if item.strip()]
    is_done = session.read(
        files, judge,
        {
            **stopping, "topic": topic, "prior": (prior or (), probability), "known": ids, "random_state": seed,
            "richness": richness,
        },
        reasons=reason or (), reasons_file=reasons, highlights=Highlights.of(highlight or (), highlight_against or ()),
        ignore_labels=ignore_labels, overlap=overlap if share else None,
    )  # fmt: skip
    if not is_done:
        replay_labels(files, STARTS, stopping, None, False, False)


def replay(
    records: Files,
    title: Title = None,
    text: Text = None,
    rule: Rule = "agree",
    target: Target = 0.95,
    accept: Accept = None,
    starts: Annotated[int, typer.Option(min=1, help="Number of replays, each from another pair of records.")] = STARTS,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for report, curves and plot.", metavar="FOLDER", show_default=False
        ),
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Replay records that are all judged: how fast would the relevant ones be found, and when would a rule stop?"""
    from corank_lab.cli.screening.results import replay as replay_labels

    stopping = stopping_options(rule, target, accept)
    replay_labels(_files(records, title, text), starts, stopping, output, force, as_json)


def protocol(
    records: Files,
    title: Title = None,
    text: Text = None,
    keep_duplicates: KeepDuplicates = False,
    rule: Rule = "agree",
    target: Target = 0.95,
    accept: Accept = None,
    richness: Richness = 0,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write the plan of a screening in a paragraph, to be registered before it begins."""
    from corank_lab.screening.methods import protocol_paragraph
    from corank_lab.screening.stopping import stopping_rule

    files = _files(records, title, text, None, keep_duplicates)
    n = len(files.records) if files.groups is None else len(files.groups.representatives)
    hashes = {source.name: source.sha256 for source in files.records.sources}
    paragraph = protocol_paragraph(
        n, hashes, stopping_rule(rule, n, target, stopping_options(rule, target, accept)["confidence"]), seed, richness
    )
    emit(as_json, "screen protocol", {"protocol": paragraph}, paragraph)


def report(
    records: Files,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o",
            help="Write PRISMA numbers, diagram, methods paragraph and certificate to this folder.",
            metavar="FOLDER", show_default=False,
        ),
    ] = None,
    title: Title = None,
    text: Text = None,
    answers: Answers = None,
    keep_duplicates: KeepDuplicates = False,
    rule: Rule = "agree",
    target: Target = 0.95,
    accept: Accept = None,
    seed: Seed = 0,
    keep_formulas: KeepFormulas = False,
    as_json: Json = False,
    force: Force = False,
) -> None:  # fmt: skip
    """Say whether the screening is finished and how far the judges agree; with --output, write a report."""
    from corank_lab.cli.screening import results

    files = _files(records, title, text, answers, keep_duplicates)
    stopping = stopping_options(rule, target, accept)
    results.report(files, output, stopping, seed, force=force, as_json=as_json, keep_formulas=keep_formulas)


def export(
    records: Files,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File of records and answers to write: .ris, .csv or .xlsx.")
    ],
    only: Annotated[str, typer.Option(help="Records to export: all, included, excluded, conflicts or unread.")] = "all",
    tag: Annotated[str, typer.Option(help="Only records with this tag; with ! before it, those without.")] = "",
    all_copies: Annotated[bool, typer.Option("--all-copies", help="Write duplicates too, not each work once.")] = False,
    title: Title = None,
    text: Text = None,
    answers: Answers = None,
    keep_duplicates: KeepDuplicates = False,
    keep_formulas: KeepFormulas = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Write the records with the answers of all judges."""
    from corank_lab.cli.screening import results

    files = _files(records, title, text, answers, keep_duplicates)
    results.export(
        files, output, only, tag=tag, all_copies=all_copies, force=force, as_json=as_json, keep_formulas=keep_formulas
    )


def settle(
    records: Files,
    judge: Judge = "me",
    title: Title = None,
    text: Text = None,
    answers: Answers = None,
    keep_duplicates: KeepDuplicates = False,
    reason: Reason = None,
    highlight: Highlight = None,
    highlight_against: HighlightAgainst = None,
) -> None:
    """Read only records on which judges disagree, and settle them."""
    from corank_lab.cli.screening import session
    from corank_lab.cli.screening.view import Highlights

    files = _files(records, title, text, answers, keep_duplicates)
    words = Highlights.of(highlight or (), highlight_against or ())
    session.adjudicate(files, judge, reasons=reason or (), highlights=words)


def stopping_options(rule: str, target: float, accept: str | None) -> dict[str, Any]:
    """Return name, target and confidence, which is that of the rule if no error is accepted."""
    from corank_lab.screening.stopping import read_confidence, stopping_rule

    chosen = stopping_rule(rule, 1, target, None if accept is None else read_confidence(accept))
    return {"rule": rule, "target": target, "confidence": chosen.confidence}


def _files(
    records: Sequence[Path],
    title: str | None,
    text: str | None,
    answers: Path | None = None,
    keep_duplicates: bool = False,
) -> ScreeningFiles:
    from corank_lab.cli.screening.session import ScreeningFiles

    if any(str(path) == "-" for path in records):
        raise InputError("RECORDS is - (standard input), which is needed for the keys; pass the name of a file.")
    columns = {name: column for name, column in (("title", title), ("text", text)) if column is not None}
    return ScreeningFiles(tuple(records), answers, not keep_duplicates, columns)
