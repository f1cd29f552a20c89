"""Results of a screening: exports, the report folder, the agreement of judges, and certificates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.cli import Force, Json, KeepFormulas, emit, print_json, table_fields
from corank.errors import InputError
from corank_lab.cli.screening.screen import Files, PlanOptions, RecordOptions, Richness, StoppingOptions

if TYPE_CHECKING:
    from corank.tables import ReportTable
    from corank_lab.cli.screening.session import ScreeningFiles
    from corank_lab.screening import ScreeningReplay
    from corank_lab.screening.methods import ScreeningFacts
    from corank_lab.screening.project import ScreeningPlan


def export(
    records: Files,
    columns: RecordOptions,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File of records and answers to write: .ris, .csv or .xlsx.")
    ],
    only: Annotated[str, typer.Option(help="Records to export: all, included, excluded, conflicts or unread.")] = "all",
    tag: Annotated[
        str | None, typer.Option(help="Only records with this tag; with ! before it, those without.")
    ] = None,
    all_copies: Annotated[bool, typer.Option("--all-copies", help="Write duplicates too, not each work once.")] = False,
    keep_formulas: KeepFormulas = False,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Write the records with the answers of all judges."""
    from corank.data import require_no_input, require_text_place, suffix_of
    from corank_lab.database.journal import journal_paths
    from corank_lab.records.writer import require_records_suffix
    from corank_lab.screening.export import export_screening, require_only
    from corank_lab.screening.report import settled_answers

    files = columns.files(records)
    require_only(only)
    is_log = suffix_of(output) == ".jsonl"
    if not is_log:
        require_records_suffix(output)
    require_no_input(output, [files.database, *journal_paths(files.old_folder)])
    require_text_place(output, overwrite=force)
    unique, judges = files.judged
    if is_log:
        if tag or only != "all":
            raise InputError(f"{output} is the log of all answers; leave out --tag and --only, or write a table.")
        _export_log(files, output, force=force, as_json=as_json)
        return
    counts = export_screening(
        output, files.records, settled_answers(unique, judges), groups=unique.groups, only=only, tag=tag,
        all_copies=all_copies, overwrite=force, keep_formulas=keep_formulas,
    )  # fmt: skip
    values = {name: value for name, value in vars(counts).items() if name != "changes"}
    fields = {"output": output, "only": only, **values, "judges": list(judges)}
    n, n_copies = counts.n_records, counts.n_duplicates
    parts = [f"{n} record{'s' * (n != 1)}{f' ({only})' if only != 'all' else ''}"]
    parts += [f"{counts.n_relevant} relevant", f"{counts.n_not} not relevant", f"{counts.n_unread} unread"]
    parts += [f"{counts.n_disagreed} on which the judges disagree (left empty)"] if len(judges) > 1 else []
    copies = f"; {n_copies} duplicate{'s' * (n_copies > 1)} {'among them' if all_copies else 'left out'}"
    sentence = f"wrote {output}: {', '.join(parts)}{copies if n_copies else ''}"
    emit(as_json, "screen export", fields, "\n".join([sentence, *counts.changes]))


def _export_log(files: ScreeningFiles, target: Path, *, force: bool, as_json: bool) -> None:
    """Write the answers of all judges as JSON lines, which `corank screen verify` and pages read."""
    from corank.data import atomic_file
    from corank_lab.database.journal import project_logs

    with files.journal() as (journal, _), atomic_file(target, overwrite=force) as scratch:
        logs = project_logs(journal.store, journal.id)
        scratch.write_bytes(b"".join(logs.values()))
    n_lines = sum(lines.count(b"\n") for lines in logs.values())
    fields = {"output": target, "n_lines": n_lines, "judges": list(logs)}
    emit(as_json, "screen", fields, f"wrote {target}: {n_lines} entries of {', '.join(logs)}")


def report(
    records: Files,
    columns: RecordOptions,
    plan: PlanOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o",
            help="Write PRISMA numbers, diagram, methods paragraph and certificate to this folder.",
            metavar="FOLDER", show_default=False,
        ),
    ] = None,
    keep_formulas: KeepFormulas = False,
    as_json: Json = False,
    force: Force = False,
) -> None:  # fmt: skip
    """Say whether the screening is finished and how far the judges agree; with --output, write a report."""
    from corank.cli import make_console, show
    from corank.data import require_place
    from corank_lab.screening.certificate import SeparateSamplesError
    from corank_lab.screening.methods import screening_agreement
    from corank_lab.screening.report import certificate_files, require_report_place, screening_facts, write_report

    files, given = columns.files(records), plan.given()
    if output is not None:
        require_report_place(output)
        require_place(output, overwrite=force, folder=True)
    used = files.plan(given)
    certificate, remark = None, ""
    try:
        certificate = _certificate(files, used)
    except SeparateSamplesError as error:
        remark = f"There is no certificate: {error}"
    agreement = screening_agreement(files.judged[1])
    facts = screening_facts(*files.judged, agreement, used)
    table = agreement.table() if agreement.pairs else None
    names: list[str] = []
    if output is not None:
        names += write_report(
            output, facts, agreement=table, files=certificate_files(certificate) if certificate else {},
            overwrite=force, keep_formulas=keep_formulas,
        )  # fmt: skip
    state = _state(facts, certificate, remark)
    if as_json:
        fields = {
            "output": output, "files": names, "finished": facts.is_reached or not facts.counts.unread, "state": state,
            "plan": vars(used), "n_conflicts": agreement.n_conflicts, "n_settled": agreement.n_settled,
            "agreement": table and table_fields(table),
        }  # fmt: skip
        print_json("screen report", fields)
        return
    typer.echo(f"{state}\nPlan of the project: {used}.")
    if table is not None:
        show(table, make_console())
    if agreement.n_conflicts > agreement.n_settled:
        typer.echo("Settle conflicts with corank screen settle --judge NAME.")
    if output is not None:
        typer.echo(f"wrote {output}: {', '.join(names)}")


def _certificate(files: ScreeningFiles, plan: ScreeningPlan, judge: str | None = None) -> dict[str, Any]:
    from corank_lab.screening.certificate import make_certificate

    return make_certificate(
        files.paths, files.answers, plan=plan, keep_duplicates=not files.is_grouped, judge=judge, columns=files.columns
    )


def _state(facts: ScreeningFacts, certificate: dict[str, Any] | None, remark: str) -> str:
    """Say whether the screening is finished, and what is known of the recall."""
    unread = facts.counts.unread
    statement = certificate["result"]["statement"] if certificate else remark
    if not unread or facts.is_reached:
        return str(statement)
    left = f"{unread} record{'s' * (unread != 1)} {'is' if unread == 1 else 'are'}"
    return f"The screening is not finished: {left} unread. {statement}"


def certify(
    records: Files,
    columns: RecordOptions,
    plan: PlanOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Certificate to write, a .json file.")] = Path(
        "certificate.json"
    ),
    page: Annotated[
        Path | None, typer.Option(help="Also write the certificate as a page, a .html file.", show_default=False)
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="Certify this judge alone.  [default: all judges together]", show_default=False),
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Write a certificate of a screening: rule, assumptions, sample, exact bound, hashes of records and answers."""
    from corank.data import atomic_file, require_place
    from corank_lab.screening.report import certificate_files

    for name, path, suffix in (("--output", output, ".json"), ("--page", page, ".html")):
        if path is not None and path.suffix != suffix:
            raise InputError(f"{name} is {str(path)!r}; pass a name that ends in {suffix}.")
        if path is not None:
            require_place(path, overwrite=force)
    files, given = columns.files(records), plan.given()
    certificate = _certificate(files, files.plan(given), judge)
    for path, content in zip((output, page), certificate_files(certificate, output.name).values(), strict=True):
        if path is not None:
            with atomic_file(path, overwrite=force) as scratch:
                scratch.write_bytes(content)
    result = certificate["result"]
    written = f"{output}, {page}" if page is not None else f"{output}"
    fields = {"output": output, "page": page, **result}
    emit(as_json, "screen certify", fields, f"{result['statement']}\nwrote {written}")


def verify(
    certificate: Annotated[Path, typer.Argument(help="Certificate: the .json file that corank screen certify wrote.")],
    records: Files,
    answers: Annotated[
        Path | None, typer.Option(help="Folder of corank.db.", metavar="FOLDER", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute a certificate anew from records and answers; name what differs, with exit code 1."""
    from corank.data import read_regular
    from corank_lab.screening.certificate import verify as verify_certificate

    try:
        lines = verify_certificate(read_regular(certificate), records, answers)
    except InputError as error:
        raise InputError(f"{certificate}: {error}") from None
    emit(as_json, "screen verify", {"certificate": certificate, "confirmed": list(lines)}, "\n".join(lines))


REPORT_FILES = ("curves.csv", "recall.png", "report.html", "report.json", "report.md")
"""Files of the folder that it writes."""


def replay(
    records: Files,
    columns: RecordOptions,
    stop: StoppingOptions,
    starts: Annotated[int, typer.Option(min=1, help="Number of replays, each from another pair of records.")] = 10,
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
    from corank.cli import make_console, show
    from corank.data import require_place
    from corank_lab.screening import simulate
    from corank_lab.screening.project import ScreeningPlan
    from corank_lab.screening.report import require_report_place

    if output is not None:
        require_report_place(output, known=REPORT_FILES)
        require_place(output, overwrite=force, folder=True)
    read, name, plan = columns.files(records).records, records[0].name, ScreeningPlan(**stop.given())
    replays = simulate(read, starts, **plan.stopping)
    title = f"{name}: {len(read)} records, {int(read.labels.sum())} relevant"
    table = _replay_table(title, replays, plan)
    if as_json:
        print_json("screen replay", {"output": output, "table": table_fields(table)})
    else:
        show(table, make_console())
    if output is not None:
        _write_report(output, name, table, replays, force)
        if not as_json:
            typer.echo(f"wrote {output}: report, curves and plot")


def _replay_table(title: str, replays: list[ScreeningReplay], plan: ScreeningPlan) -> ReportTable:
    import numpy as np

    from corank.tables import ReportTable
    from corank_lab.screening.simulate import read_by_accepted_error

    cells = [
        (item.atd, item.loss, item.wss95, item.recall10, item.stop / len(item.found), item.stop_recall, item.seconds)
        for item in replays
    ]
    rows = [(str(replay.start), *row) for replay, row in zip(replays, cells, strict=True)]
    rows.append(("mean", *np.mean(cells, axis=0).tolist()))
    reached = np.mean([replay.stop_recall >= plan.target - 1e-12 for replay in replays])
    note = f"The stopping rule {plan.rule!r} reached a recall of {plan.target:g} in {reached:.0%} of the starts."
    if costs := read_by_accepted_error(replays, plan):
        note += " Read by accepted error: " + "; ".join(f"{words} {share:.0%}" for words, share in costs.items()) + "."
    return ReportTable(
        title,
        ("start", "ATD", "loss", "WSS@95", "recall@10 %", "read at stop", "recall at stop", "s"),
        tuple(rows),
        digits=3,
        note=note,
    )


def _write_report(output: Path, name: str, table: ReportTable, replays: list[ScreeningReplay], force: bool) -> None:
    from corank.comparison import Report
    from corank.data import atomic_folder
    from corank_lab.screening.simulate import plot_recall

    with atomic_folder(output, overwrite=force) as folder:
        plot = folder / "recall.png"
        plot_recall(replays, plot, title=name)
        about = (
            "Each start is one relevant and one irrelevant record. The other records are read in the order of the "
            "model, which learns from every answer. ATD: mean position of the relevant records; loss: share of pairs "
            "of a relevant and an irrelevant record that were read in the wrong order; WSS@95: share of unread records "
            "at 95 % recall, minus 5 %; ATD and WSS@95 as shares of all records."
        )
        Report(f"Screening {name}", about, (table,), plots=(plot,)).write(folder)
        lines = ["start,place,record,relevant\n"]
        for replay in replays:
            read = zip(replay.order.tolist(), replay.found.astype(int).tolist(), strict=True)
            lines += [f"{replay.start},{place},{number + 1},{hit}\n" for place, (number, hit) in enumerate(read, 1)]
        (folder / "curves.csv").write_text("".join(lines), encoding="utf-8")


def protocol(
    records: Files,
    columns: RecordOptions,
    plan: PlanOptions,
    richness: Richness = None,
    as_json: Json = False,
) -> None:
    """Write the plan of a screening in a paragraph, to be registered before it begins."""
    from corank_lab.screening.methods import protocol_paragraph

    files, given = columns.files(records), {**plan.given(), "richness": richness}
    files.require_richness(given)
    n, used = files.n_to_judge, files.plan(given)
    hashes = {source.name: source.sha256 for source in files.records.sources}
    paragraph = protocol_paragraph(n, hashes, used.rule_for(n), used.seed, used.richness)
    emit(as_json, "screen protocol", {"protocol": paragraph}, paragraph)
