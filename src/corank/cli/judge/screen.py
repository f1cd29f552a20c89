"""`corank screen`: read the records that are most likely relevant, and learn when to stop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.cli.judge import STOPPING_RULES
from corank.cli.options import Force, Json, KeepFormulas, Seed
from corank.cli.output import emit, print_json, table_fields
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.data.records.records import Records
    from corank.judging.screening import ScreeningReplay
    from corank.judging.screening.answers import ScreeningAnswers
    from corank.tables import ReportTable

REPORT_FILES = ("curves.csv", "recall.png", "report.html", "report.json", "report.md")
"""Files of the folder that `--simulate --output` writes."""


def screen(
    records: Annotated[Path, typer.Argument(help="Records: RIS, CSV, Excel, PubMed or others.")],
    topic: Annotated[
        str | None, typer.Option(help="Description of relevant records, in words.", show_default=False)
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(help="Ids of records known to be relevant, separated by commas.", show_default=False),
    ] = None,
    judge: Annotated[str, typer.Option(help="Name of the judge; each judge has a file of answers.")] = "me",
    rule: Annotated[str, typer.Option(help=f"Stopping rule: {STOPPING_RULES}.")] = "decline",
    target: Annotated[float, typer.Option(help="Recall to reach: share of the relevant records.")] = 0.95,
    confidence: Annotated[float, typer.Option(help="Required probability that it is reached.")] = 0.95,
    export: Annotated[
        Path | None,
        typer.Option(help="Write all judges' answers to this .csv or .ris, and exit.", show_default=False),
    ] = None,
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
    if simulate and export is not None:
        raise InputError("--simulate and --export cannot be combined; pass one of them.")
    if output is not None and not simulate:
        raise InputError("--output is for the results of --simulate; pass --simulate too, or leave --output out.")
    if as_json and not simulate and export is None:
        raise InputError("--json works with --simulate or --export only; leave it out to read records.")
    if str(records) == "-":
        raise InputError("RECORDS is - (standard input), which is needed for the keys; pass the name of a file.")
    stopping = {"rule": rule, "target": target, "confidence": confidence}
    if simulate:
        _simulate(records, starts, stopping, output, force, as_json)
    elif export is not None:
        _export(records, export, force, as_json, keep_formulas)
    else:
        ids = [one.strip() for listed in known or () for one in listed.split(",") if one.strip()]
        _read(records, judge, {**stopping, "topic": topic, "known": ids, "random_state": seed})


def _read(path: Path, judge: str, options: dict[str, Any]) -> None:
    from corank.cli.judge.screen_terminal import read_all
    from corank.cli.judge.terminal import has_terminal
    from corank.cli.output import make_console
    from corank.console import printable_console
    from corank.data.records.records import read_records
    from corank.judging.screening import Screening, ScreeningJournal

    has_terminal()  # before anything is written
    answers = ScreeningJournal.path_for(path, judge)
    records = read_records(path)
    with ScreeningJournal(answers) as journal:
        with printable_console(err=True).status(f"comparing {len(records)} records"):
            screening = Screening(records, journal=journal, **options)
        read_all(screening)
    make_console().print(f"Your answers are saved in {answers}. Run the same command to continue.")


def _export(source: Path, target: Path, force: bool, as_json: bool, keep_formulas: bool) -> None:
    import numpy as np

    from corank.data.durable.atomic import require_no_input
    from corank.data.formats.compressed import require_text_place
    from corank.data.records.records import read_records
    from corank.data.records.writer import require_records_suffix, write_records
    from corank.judging.screening.answers import ScreeningAnswers, ScreeningJournal

    require_records_suffix(target)
    require_no_input(target, ScreeningJournal.paths(source))
    require_text_place(target, overwrite=force)
    records = read_records(source)
    journals = ScreeningJournal.read_all(source)
    judges = {judge: ScreeningAnswers(records, entries) for judge, entries in journals if entries}
    if not judges:
        raise InputError(f"there are no answers for {source} yet; run corank screen {source} first.")
    labels_by_judge = np.full((len(judges), len(records)), np.nan)
    for row, answers in zip(labels_by_judge, judges.values(), strict=True):
        row[list(answers.relevant)] = list(answers.relevant.values())
    judged, relevant = (~np.isnan(labels_by_judge)).sum(axis=0), (labels_by_judge == 1).sum(axis=0)
    disagree = (relevant > 0) & (relevant < judged)
    labels = np.where((judged == 0) | disagree, np.nan, relevant > 0)
    more = {"note": _notes(records, judges)}
    if len(judges) > 1:
        for judge, row in zip(judges, labels_by_judge, strict=True):
            more[f"included_{judge}"] = ["" if np.isnan(label) else str(int(label)) for label in row]
    write_records(target, records, labels, more, overwrite=force, keep_formulas=keep_formulas)
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
        f"wrote {target}: {len(records)} records, {fields['n_relevant']} relevant, {fields['n_not']} not relevant, "
        f"{fields['n_unread']} unread"
        + (f", {fields['n_disagreed']} on which the judges disagree (left empty)" if len(judges) > 1 else "")
    )
    emit(as_json, "screen", fields, sentence)


def _notes(records: Records, judges: dict[str, ScreeningAnswers]) -> list[str]:
    is_named = len(judges) > 1
    return [
        "; ".join(
            (f"{judge}: " if is_named else "") + answers.notes[number]
            for judge, answers in judges.items()
            if number in answers.notes
        )
        for number in range(len(records))
    ]


def _simulate(
    source: Path, starts: int, stopping: dict[str, Any], output: Path | None, force: bool, as_json: bool
) -> None:
    from corank.cli.judge.curve import recall_curve
    from corank.cli.output import make_console, show
    from corank.data.durable.atomic import require_place
    from corank.data.records.records import read_records
    from corank.judging.screening import simulate

    if output is not None:
        _require_report_only(output)
        require_place(output, overwrite=force, folder=True)
    records = read_records(source)
    replays = simulate(records, starts, **stopping)
    title = f"{source.name}: {len(records)} records, {int(records.labels.sum())} relevant"
    table = _replay_table(title, replays, stopping["rule"], stopping["target"])
    if as_json:
        print_json("screen", {"output": output, "table": table_fields(table)})
    else:
        console = make_console()
        show(table, console)
        console.print(recall_curve(replays, console.width))
    if output is not None:
        _write_report(output, source.name, table, replays, force)
        if not as_json:
            typer.echo(f"wrote {output}: report, curves and plot")


def _replay_table(title: str, replays: list[ScreeningReplay], rule: str, target: float) -> ReportTable:
    import numpy as np

    from corank.tables import ReportTable

    cells = [
        (replay.atd, replay.wss95, replay.recall10, replay.stop / len(replay.found), replay.stop_recall, replay.seconds)
        for replay in replays
    ]
    rows = [(str(replay.start), *row) for replay, row in zip(replays, cells, strict=True)]
    rows.append(("mean", *np.mean(cells, axis=0).tolist()))
    reached = np.mean([replay.stop_recall >= target - 1e-12 for replay in replays])
    return ReportTable(
        title,
        ("start", "ATD", "WSS@95", "recall@10 %", "read at stop", "recall at stop", "s"),
        tuple(rows),
        digits=3,
        note=f"The stopping rule {rule!r} reached a recall of {target:g} in {reached:.0%} of the starts.",
    )


def _require_report_only(place: Path) -> None:
    """Refuse to replace a folder that holds anything else, such as answers."""
    for entry in sorted(place.iterdir()) if place.is_dir() else ():
        if entry.name not in REPORT_FILES:
            raise InputError(
                f"{place} holds {entry.name}, which is not part of a report, so it is kept; choose another folder."
            )


def _write_report(output: Path, name: str, table: ReportTable, replays: list[ScreeningReplay], force: bool) -> None:
    from corank.data.durable.atomic import atomic_folder
    from corank.evaluation.report import Report
    from corank.judging.screening.simulate import plot_recall

    with atomic_folder(output, overwrite=force) as folder:
        plot = folder / "recall.png"
        plot_recall(replays, plot, title=name)
        about = (
            "Each start is one relevant and one irrelevant record. The other records are read in the order of the "
            "model, which learns from every answer. ATD: mean position of the relevant records; WSS@95: share of "
            "unread records at 95 % recall, minus 5 %; both as shares of all records."
        )
        Report(f"Screening {name}", about, (table,), plots=(plot,)).write(folder)
        lines = ["start,place,record,relevant\n"]
        for replay in replays:
            read = zip(replay.order.tolist(), replay.found.astype(int).tolist(), strict=True)
            lines += [f"{replay.start},{place},{number + 1},{hit}\n" for place, (number, hit) in enumerate(read, 1)]
        (folder / "curves.csv").write_text("".join(lines), encoding="utf-8")
