"""`corank screen`: read the records that are most likely relevant, one at a time, and say when enough were found."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corank.cli.output import Json, emit, print_json, table_fields
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.data.records.records import Records
    from corank.judging.screening.answers import Answers


class StoppingRule(StrEnum):
    """When reading may stop."""

    decline = "decline"
    poisson = "poisson"
    sample = "sample"


def screen(
    records: Annotated[Path, typer.Argument(help="Works to screen: .csv, .tsv, .ris or .jsonl, perhaps packed.")],
    topic: Annotated[
        str | None, typer.Option(help="What relevant records are about, in words.", show_default=False)
    ] = None,
    known: Annotated[
        list[str] | None, typer.Option(help="Ids of records known to be relevant, with commas.", show_default=False)
    ] = None,
    judge: Annotated[str, typer.Option(help="Who reads; each judge has answers of their own.")] = "me",
    rule: Annotated[
        StoppingRule,
        typer.Option(help="When to stop: a careful model of the finds, a cheap one, or a random sample as proof."),
    ] = StoppingRule.decline,
    target: Annotated[float, typer.Option(help="Share of the relevant records that is wanted.")] = 0.95,
    confidence: Annotated[float, typer.Option(help="How sure of it one must be.")] = 0.95,
    export: Annotated[
        Path | None,
        typer.Option(help="Write all judges' answers to this .csv or .ris, and read nothing.", show_default=False),
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Replay records that are all judged.")] = False,
    starts: Annotated[int, typer.Option(min=1, help="Replays, each from another pair of records.")] = 10,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for report, curves and plot of a replay.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is chosen at random.")] = 0,
    as_json: Json = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Screen records: read the most likely one next, answer with a key, and stop when nearly all were found."""
    from rich.console import Console

    from corank.data.records.records import read_records

    if simulate and export is not None:
        raise InputError("--simulate and --export do different things; pass one of them.")
    if output is not None and not simulate:
        raise InputError("--output is for what --simulate finds; pass --simulate too, or leave it out.")
    if as_json and not simulate and export is None:
        raise InputError("--json is for --simulate and --export; leave it out to read.")
    if str(records) == "-":
        raise InputError("- is standard input, where keys come from, and answers stand beside RECORDS; name a file.")
    if simulate:
        _simulate(records, starts, rule.value, target, confidence, output, force, as_json)
        return
    if export is not None:
        _export(records, export, force, as_json)
        return

    from corank.cli.judge.reading import read_all
    from corank.cli.tables import screen as terminal
    from corank.judging.screening.journal import Journal
    from corank.judging.screening.screening import Screening

    path = Journal.place(records, judge)
    works = read_records(records)
    ids = [one.strip() for given in known or () for one in given.split(",") if one.strip()]
    with Journal(path) as journal:
        with Console(stderr=True).status(f"comparing {len(works)} records"):
            screening = Screening(
                works, topic=topic, known=ids, journal=journal, rule=rule.value, target=target, confidence=confidence,
                random_state=seed,
            )  # fmt: skip
        read_all(screening)
    terminal().print(f"answers are in {path}; the same command goes on from here.")


def _export(source: Path, target: Path, force: bool, as_json: bool) -> None:
    import numpy as np

    from corank.data.formats.compressed import require_text_place
    from corank.data.records.records import read_records
    from corank.data.records.writer import require_records_suffix, write_records
    from corank.judging.screening.answers import Answers
    from corank.judging.screening.journal import Journal

    require_records_suffix(target)
    require_text_place(target, overwrite=force)
    records = read_records(source)
    judges = {judge: Answers(records, lines) for judge, lines in Journal.read_all(source) if lines}
    if not judges:
        raise InputError(f"there are no answers for {source} yet; screen it first.")
    given = np.full((len(judges), len(records)), np.nan)
    for row, answers in zip(given, judges.values(), strict=True):
        row[list(answers.relevant)] = list(answers.relevant.values())
    judged, relevant = (~np.isnan(given)).sum(axis=0), (given == 1).sum(axis=0)
    disagree = (relevant > 0) & (relevant < judged)
    labels = np.where((judged == 0) | disagree, np.nan, relevant > 0)
    more = {"note": _notes(records, judges)}
    if len(judges) > 1:
        for judge, row in zip(judges, given, strict=True):
            more[f"included_{judge}"] = ["" if np.isnan(label) else str(int(label)) for label in row]
    write_records(target, records, labels, more, overwrite=force)
    fields = {
        "output": target,
        "n_records": len(records),
        "n_relevant": np.count_nonzero(labels == 1),
        "n_not": np.count_nonzero(labels == 0),
        "n_unread": np.count_nonzero(judged == 0),
        "n_disagreed": np.count_nonzero(disagree),
        "judges": list(judges),
    }
    sentence = (
        f"wrote {target}: {len(records)} records, {np.count_nonzero(labels == 1)} relevant, "
        f"{np.count_nonzero(labels == 0)} not, {np.count_nonzero(judged == 0)} unread"
        + (f", {np.count_nonzero(disagree)} on which judges disagree (left empty)" if len(judges) > 1 else "")
    )
    emit(as_json, "screen", fields, sentence)


def _notes(records: Records, judges: dict[str, Answers]) -> list[str]:
    named = len(judges) > 1
    return [
        "; ".join(
            (f"{judge}: " if named else "") + answers.notes[number]
            for judge, answers in judges.items()
            if number in answers.notes
        )
        for number in range(len(records))
    ]


def _simulate(
    source: Path,
    starts: int,
    rule: str,
    target: float,
    confidence: float,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    import numpy as np

    from corank.cli.judge.curve import recall_curve
    from corank.cli.tables import screen, show
    from corank.data.durable.atomic import atomic_folder, require_place
    from corank.data.records.records import read_records
    from corank.evaluation.report import Report
    from corank.judging.screening.plot import plot_recall
    from corank.judging.screening.simulate import simulate
    from corank.tables import ReportTable

    if output is not None:
        require_place(output, overwrite=force, folder=True)
    records = read_records(source)
    replays = simulate(records, starts, rule=rule, target=target, confidence=confidence)
    cells = [
        (replay.atd, replay.wss95, replay.recall10, replay.stop / len(replay.found), replay.stop_recall, replay.seconds)
        for replay in replays
    ]
    rows = [(str(replay.start), *row) for replay, row in zip(replays, cells, strict=True)]
    rows.append(("mean", *np.mean(cells, axis=0).tolist()))
    reached = np.mean([replay.stop_recall >= target - 1e-12 for replay in replays])
    table = ReportTable(
        f"{source.name}: {len(records)} records, {int(records.labels.sum())} relevant",
        ("start", "ATD", "WSS@95", "recall@10 %", "read at stop", "recall at stop", "s"),
        tuple(rows),
        digits=3,
        note=f"The rule {rule!r} reached a recall of {target:g} in {reached:.0%} of the starts.",
    )
    if as_json:
        print_json("screen", {"output": output, "table": table_fields(table)})
    else:
        console = screen()
        show(table, console)
        console.print(recall_curve(replays, console.width))
    if output is None:
        return
    with atomic_folder(output, overwrite=force) as folder:
        plot = folder / "recall.png"
        plot_recall(replays, plot, title=source.name)
        about = (
            "Each start is one relevant and one other record; the rest is read in the order of the model, which "
            "learns every answer. ATD: mean place of the relevant records; WSS@95: share saved at 95 % recall, less "
            "5 %; all as shares of the records read."
        )
        Report(f"Screening {source.name}", about, (table,), plots=(plot,)).write(folder)
        lines = ["start,place,record,relevant\n"]
        for replay in replays:
            read = zip(replay.order.tolist(), replay.found.astype(int).tolist(), strict=True)
            lines += [f"{replay.start},{place},{number + 1},{hit}\n" for place, (number, hit) in enumerate(read, 1)]
        (folder / "curves.csv").write_text("".join(lines), encoding="utf-8")
    if not as_json:
        typer.echo(f"wrote {output}: report, curves and plot")
