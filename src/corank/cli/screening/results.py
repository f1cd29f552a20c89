"""Results of a screening: exports, the report folder and the agreement of judges."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from corank.cli.output import emit, print_json, table_fields
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.cli.screening.files import ScreeningFiles
    from corank.judging.reporting.export import JudgeAnswer, SettledAnswer
    from corank.judging.reporting.methods import ScreeningFacts
    from corank.judging.screening.answers import ScreeningAnswers, ScreeningEntry

MODEL = "a kernel least-squares model of {features}"
"""The model, for the methods paragraph."""


def export(files: ScreeningFiles, target: Path, only: str, *, force: bool, as_json: bool, keep_formulas: bool) -> None:
    """Write the records with the answers of all judges."""
    from corank.data.durable.atomic import require_no_input
    from corank.data.formats.compressed import require_text_place
    from corank.data.records.writer import require_records_suffix
    from corank.judging.reporting.export import export_screening, require_only
    from corank.judging.screening import ScreeningJournal

    require_only(only)
    require_records_suffix(target)
    require_no_input(target, ScreeningJournal.paths(files.paths[0], files.answers))
    require_text_place(target, overwrite=force)
    judges = files.judges
    counts = export_screening(
        target, files.records, settled_answers(files), groups=files.unique.groups, only=only, overwrite=force,
        keep_formulas=keep_formulas,
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
    files: ScreeningFiles,
    folder: Path,
    stopping: dict[str, Any],
    seed: int,
    *,
    force: bool,
    as_json: bool,
    keep_formulas: bool,
) -> None:
    """Write the PRISMA numbers and diagram, the methods paragraph, the certificate and the agreement of judges."""
    from corank.data.durable.atomic import require_place
    from corank.judging.reporting.methods import KappaFacts, ScreeningFacts
    from corank.judging.reporting.prisma import prisma_counts
    from corank.judging.reporting.report import require_report_place, write_report
    from corank.judging.screening.agreement import screening_agreement
    from corank.judging.screening.judges import independent
    from corank.judging.stopping import stopping_rule

    require_report_place(folder)
    require_place(folder, overwrite=force, folder=True)
    judges, unique = files.judges, files.unique
    certificate, remark = _certificate(files, stopping, seed)
    is_reached, bound = (certificate["result"][name] if certificate else None for name in ("reached", "bound"))
    agreement = screening_agreement(judges)
    included = [pair for pair in agreement.pairs if pair.question == "included"]
    read = Counter(number for answers in judges.values() for number in independent(answers))
    features = "words and citations" if any(files.records.references) else "words"
    stopped_by = f"stopped by the rule '{stopping['rule']}'" if is_reached else ""
    facts = ScreeningFacts(
        prisma_counts(files.records, settled_answers(files), unique.groups, stopped_by=stopped_by),
        judges=[judge for judge, answers in judges.items() if independent(answers)],
        model=MODEL.format(features=features),
        seed=seed,
        rule=stopping_rule(n=len(unique.unique), name=stopping["rule"], **_goal(stopping)),
        is_reached=bool(is_reached),
        bound=bound,
        duplicates_by="identifiers and similar titles, years and authors" if unique.groups is not None else "",
        n_known=len({number for answers in judges.values() for number in answers.beforehand}),
        n_sampled=len({n for answers in judges.values() for n, way in answers.chosen_by.items() if way == "sample"}),
        n_double=sum(times > 1 for times in read.values()),
        agreement=[KappaFacts(one.first, one.second, one.n_both, one.kappa, one.low, one.high) for one in included],
        n_settled=agreement.n_settled,
        adjudicators=[judge for judge, answers in judges.items() if answers.adjudicated],
    )
    table = agreement.table() if agreement.pairs else None
    names = write_report(
        folder, facts, agreement=table, files=_certificate_files(certificate), overwrite=force,
        keep_formulas=keep_formulas,
    )  # fmt: skip
    state = _state(facts, certificate, remark)
    fields = {"output": folder, "files": list(names), "finished": facts.is_reached or not facts.counts.unread}
    emit(as_json, "screen", {**fields, "state": state}, f"{state}\nwrote {folder}: {', '.join(names)}")


def _goal(stopping: dict[str, Any]) -> dict[str, Any]:
    return {name: stopping[name] for name in ("target", "confidence")}


def _certificate(files: ScreeningFiles, stopping: dict[str, Any], seed: int) -> tuple[dict[str, Any] | None, str]:
    """Make the certificate as `corank certify` does; if the judges have sampled apart, return None and the reason."""
    from corank.judging.reporting.certificate import SeparateSamplesError, make_certificate

    try:
        made = make_certificate(
            files.paths, files.answers, rule=stopping["rule"], seed=seed, keep_duplicates=not files.is_grouped,
            **_goal(stopping),
        )  # fmt: skip
    except SeparateSamplesError as error:
        return None, f"There is no certificate: {error}"
    return made, ""


def _certificate_files(certificate: dict[str, Any] | None) -> dict[str, str | bytes]:
    if certificate is None:
        return {}
    from corank.evaluation.report.certificate import certificate_page
    from corank.judging.reporting.certificate import certificate_bytes

    name = "certificate.json"
    return {name: certificate_bytes(certificate), "certificate.html": certificate_page(certificate, name)}


def _state(facts: ScreeningFacts, certificate: dict[str, Any] | None, remark: str) -> str:
    """Say whether the screening is finished, and what is known of the recall."""
    unread = facts.counts.unread
    said = certificate["result"]["statement"] if certificate else remark
    if not unread or facts.is_reached:
        return str(said)
    left = f"{unread} record{'s' * (unread != 1)} {'is' if unread == 1 else 'are'}"
    return f"The screening is not finished: {left} unread, and the rule does not advise to stop. {said}"


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


def settled_answers(files: ScreeningFiles) -> dict[int, SettledAnswer]:
    """Return the answer of all judges together to each record, by its number among all records."""
    from corank.judging.reporting.export import settle

    originals, judges = files.unique.originals.tolist(), files.judges
    given = {judge: _given(answers, originals) for judge, answers in judges.items()}
    finals: dict[int, tuple[str, ScreeningEntry, str]] = {}
    for judge, answers in judges.items():
        for number, entry in answers.adjudicated.items():
            if number not in finals or entry.time >= finals[number][1].time:
                finals[number] = (judge, entry, answers.notes.get(number, ""))
    return settle(
        {judge: answers for judge, answers in given.items() if answers},
        {originals[number]: (judge, _answer(entry, note)) for number, (judge, entry, note) in finals.items()},
    )


def _given(answers: ScreeningAnswers, originals: list[int]) -> dict[int, JudgeAnswer]:
    """Return what a judge answered by reading, by the number among all records; a note alone counts too."""
    from corank.judging.reporting.export import JudgeAnswer

    found = {
        originals[number]: _answer(entry, answers.notes.get(number, ""))
        for number, entry in answers.current.items()
        if answers.chosen_by.get(number) != "adjudication"
    }
    noted = {originals[number]: JudgeAnswer(note=text) for number, text in answers.notes.items()}
    return {**noted, **found}


def _answer(entry: ScreeningEntry, note: str) -> JudgeAnswer:
    from corank.judging.reporting.export import JudgeAnswer

    label = {"relevant": 1.0, "not": 0.0}.get(entry.action, math.nan)
    shown = entry.by + (f", rank {entry.rank}" if entry.rank else "")
    return JudgeAnswer(label, entry.reason, entry.tags, note, entry.time, shown, entry.of)
