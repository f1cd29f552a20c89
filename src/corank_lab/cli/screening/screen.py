"""`corank screen`: read the records that are most likely relevant, learn when to stop, and write the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.errors import InputError

if TYPE_CHECKING:
    from corank_lab.cli.screening.session import ScreeningFiles

MAX_NAME = 255
"""Letters of the name of a file."""

Files = Annotated[
    list[Path],
    typer.Argument(help="Records: RIS, CSV, Excel, PubMed and others; several files are joined."),
]


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """Columns of records, their duplicates, and where the answers are."""

    title: Annotated[str | None, typer.Option(help="Column of titles.", metavar="COLUMN", show_default=False)] = None
    text: Annotated[
        str | None, typer.Option(help="Column of abstracts or texts.", metavar="COLUMN", show_default=False)
    ] = None
    answers: Annotated[
        Path | None,
        typer.Option(help="Folder of corank.db.  [default: that of RECORDS]", metavar="FOLDER", show_default=False),
    ] = None
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Judge every record by itself, including duplicates.")
    ] = False

    def files(self, records: Sequence[Path]) -> ScreeningFiles:
        from corank_lab.cli.screening.session import ScreeningFiles

        if any(str(path) == "-" for path in records):
            raise InputError("RECORDS is - (standard input), which is needed for the keys; pass the name of a file.")
        columns = {name: column for name, column in (("title", self.title), ("text", self.text)) if column is not None}
        return ScreeningFiles(tuple(records), self.answers, not self.keep_duplicates, columns)


@dataclass(frozen=True, kw_only=True)
class StoppingOptions:
    """When reading may stop; None for what the project keeps."""

    rule: Annotated[
        str | None,
        typer.Option(help="Stopping rule; an unknown name lists all of them.  [default: agree]", metavar="RULE"),
    ] = None
    target: Annotated[
        float | None, typer.Option(help="Recall to reach: share of the relevant records.  [default: 0.95]")
    ] = None
    accept: Annotated[
        str | None,
        typer.Option(
            "--accept", "--confidence",
            help="Error that you accept, such as '1 in 20', or a confidence.  [default: 1 in 20]",
        ),
    ] = None  # fmt: skip

    def given(self) -> dict[str, Any]:
        """Return the values that are given, by the names of a `ScreeningPlan`."""
        from corank_lab.screening.project import SHARE_LIMITS, ScreeningPlan
        from corank_lab.screening.stopping import read_confidence

        named = {"confidence" if name == "accept" else name: value for name, value in vars(self).items()}
        given = {name: value for name, value in named.items() if value is not None}
        if self.accept is not None:
            given["confidence"] = read_confidence(self.accept)
        ScreeningPlan(**given).rule_for(1)  # it checks the name
        for name in ("target", "confidence"):
            low, high = SHARE_LIMITS
            if not low <= given.get(name, low) <= high:
                raise InputError(f"{name} is {given[name]}; write a number from {low:g} to {high:g}.")
        return given


@dataclass(frozen=True, kw_only=True)
class PlanOptions(StoppingOptions):
    """The plan of a screening; None for what the project keeps."""

    seed: Annotated[int | None, typer.Option(min=0, max=2**32, help="Random seed.  [default: 0]")] = None


Richness = Annotated[
    int | None,
    typer.Option(min=0, help="Random records to read first, to estimate how many are relevant.  [default: 0]"),
]
Judge = Annotated[str, typer.Option(help="Name of the judge.")]

MOVED = {
    "--simulate": "screen replay RECORDS", "--export": "screen export RECORDS --output FILE",
    "--report": "screen report RECORDS --output FOLDER", "--agreement": "screen report RECORDS",
    "--adjudicate": "screen settle RECORDS", "--settle": "screen settle RECORDS",
}  # fmt: skip
"""Options of earlier versions that are commands now."""


def read(
    records: Files,
    columns: RecordOptions,
    plan: PlanOptions,
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
        str | None,
        typer.Option(
            help="Column with a probability of relevance, such as that of an LLM; '' for none.",
            metavar="COLUMN",
            show_default=False,
        ),
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(help="Ids of records known to be relevant, separated by commas.", show_default=False),
    ] = None,
    judge: Judge = "me",
    ignore_labels: Annotated[
        bool, typer.Option("--ignore-labels", help="Do not use labels of the file as known answers.")
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
        typer.Option(help="Words to highlight, separated by commas; * is any ending; stored.", show_default=False),
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
    richness: Richness = None,
    page: Annotated[
        bool,
        typer.Option("--page", help="Read in the browser; corank.db next to the file keeps the answers."),
    ] = False,
) -> None:
    """Read the most likely relevant record next, answer with a key, stop when nearly all are found."""
    from corank_lab.cli.screening import session

    if overlap and not share:
        raise InputError("--overlap is a part of shared reading; pass --share too, or leave --overlap out.")
    given = {
        **plan.given(), "richness": richness, "topic": _criteria(topic), "reasons": _reasons(reason, reasons),
        **_highlights(highlight, highlight_against),
    }  # fmt: skip
    sources = (prior or (), probability)
    if page:  # pages are always shared
        session.require_possible(**vars(columns), known=known, overlap=overlap)
        session.read_on_page(records, judge, {**given, "use_labels": False if ignore_labels else None}, sources)
        return
    ids = [item.strip() for listed in known or () for item in listed.split(",") if item.strip()]
    session.read(
        columns.files(records), judge, given, sources, known=ids, ignore_labels=ignore_labels,
        overlap=overlap if share else None,
    )  # fmt: skip


def settle(records: Files, columns: RecordOptions, judge: Judge = "me") -> None:
    """Read only records on which judges disagree, and settle them, with the reasons and words of the project."""
    from corank_lab.cli.screening import session

    session.adjudicate(columns.files(records), judge)


def _highlights(wanted: list[str] | None, unwanted: list[str] | None) -> dict[str, str | None]:
    """Return words as a project keeps them; None if none are given."""
    named = {"highlight": wanted, "highlight_against": unwanted}
    return {name: ", ".join(words) if words else None for name, words in named.items()}


def _reasons(given: list[str] | None, path: Path | None = None) -> str | None:
    """Return reasons of exclusion as a project keeps them; None if none are given."""
    from corank.data import read_utf8
    from corank_lab.screening.project import read_reasons

    lines = [*(given or ()), *(read_utf8(path).splitlines() if path is not None else ())]
    return "\n".join(read_reasons(lines)) or None


def _criteria(topic: str | None) -> str | None:
    from corank.data import read_utf8

    if topic is None or len(topic) > MAX_NAME:
        return topic
    path = Path(topic)
    if path.is_file():
        words = read_utf8(path)
        if not words.strip():
            raise InputError(f"{topic} is empty; write criteria in words.")
        return words
    if path.suffix in (".txt", ".md") and len(topic.split()) == 1:
        raise InputError(f"there is no file {topic}; check the path, or pass words.")
    return topic
