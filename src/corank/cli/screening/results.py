"""Results of a screening: exports, the report folder and the agreement of judges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from corank.cli.output import emit, print_json, table_fields
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.cli.screening.files import ScreeningFiles


def export(files: ScreeningFiles, target: Path, only: str, *, force: bool, as_json: bool, keep_formulas: bool) -> None:
    """Write the records with the answers of all judges."""
    from corank.data.durable.atomic import require_no_input
    from corank.data.formats.compressed import require_text_place
    from corank.data.records.writer import require_records_suffix
    from corank.judging.reporting.export import export_screening, require_only
    from corank.judging.reporting.facts import settled_answers
    from corank.judging.screening import ScreeningJournal

    require_only(only)
    require_records_suffix(target)
    require_no_input(target, ScreeningJournal.paths(files.paths[0], files.answers))
    require_text_place(target, overwrite=force)
    judges = files.judges
    counts = export_screening(
        target, files.records, settled_answers(files.unique, judges), groups=files.unique.groups, only=only,
        overwrite=force, keep_formulas=keep_formulas,
    )  # fmt: skip
    fields = {
        "output": target,
        "only": only,
        "n_records": counts.n_records,
        "n_relevant": counts.n_included,
        "n_not": counts.n_excluded,
        "n_unread": counts.n_unread,
        "n_disagreed": counts.n_conflicts,
        "n_duplicates": counts.n_duplicates,
        "judges": list(judges),
    }
    sentence = (
        f"wrote {target}: {counts.n_records} records"
        + (f" ({only})" if only != "all" else "")
        + f", {counts.n_included} relevant, {counts.n_excluded} not relevant, {counts.n_unread} unread"
        + (f", {counts.n_conflicts} on which the judges disagree (left empty)" if len(judges) > 1 else "")
        + (f", {counts.n_duplicates} duplicates among them" if counts.n_duplicates else "")
    )
    emit(as_json, "screen", fields, "\n".join([sentence, *counts.changes]))


def report(
    files: ScreeningFiles, folder: Path, stopping: dict[str, Any], *, force: bool, as_json: bool, keep_formulas: bool
) -> None:
    """Write the PRISMA numbers and diagram, the methods paragraph and the agreement of judges."""
    from corank.data.durable.atomic import require_place
    from corank.judging.reporting.facts import screening_facts
    from corank.judging.reporting.report import require_report_place, write_report
    from corank.judging.screening.agreement import screening_agreement

    require_report_place(folder)
    require_place(folder, overwrite=force, folder=True)
    agreement = screening_agreement(files.judges)
    facts = screening_facts(files.unique, files.judges, agreement, **stopping)
    table = agreement.table() if agreement.pairs else None
    names = write_report(folder, facts, agreement=table, overwrite=force, keep_formulas=keep_formulas)
    emit(as_json, "screen", {"output": folder, "files": list(names)}, f"wrote {folder}: {', '.join(names)}")


def show_agreement(files: ScreeningFiles, *, as_json: bool) -> None:
    """Print how far the judges agree."""
    from corank.cli.output import make_console, show
    from corank.judging.screening.agreement import screening_agreement

    agreement = screening_agreement(files.judges)
    if not agreement.pairs:
        raise InputError(
            f"no two of the judges {', '.join(files.judges)} have read the same record; agreement needs records that "
            "two judges read, for example with --share --overlap 0.1."
        )
    if as_json:
        fields = {"n_conflicts": agreement.n_conflicts, "n_settled": agreement.n_settled}
        print_json("screen", {**fields, "table": table_fields(agreement.table())})
        return
    show(agreement.table(), make_console())
    if agreement.n_conflicts > agreement.n_settled:
        typer.echo("Settle conflicts with --adjudicate --judge NAME.")
