"""The report of a screening: one folder with the flow diagram, the numbers, a methods paragraph and further tables."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from corank.data import atomic_folder, csv_text
from corank.errors import InputError
from corank.tables import ReportTable
from corank_lab.screening.agreement import ScreeningAgreement
from corank_lab.screening.answers import Judges, ScreeningAnswers, ScreeningEntry, combine, independent
from corank_lab.screening.matching import UniqueRecords
from corank_lab.screening.reporting.export import JudgeAnswer, SettledAnswer, settle
from corank_lab.screening.reporting.flow_diagram import flow_diagram
from corank_lab.screening.reporting.methods import KappaFacts, ScreeningFacts, methods_paragraph
from corank_lab.screening.reporting.prisma import prisma_counts
from corank_lab.screening.stopping.rules import StoppingRule, stopping_rule

ALWAYS = ("methods.txt", "prisma.csv", "prisma.md", "prisma.svg")
"""Files of every report."""

KNOWN = (*ALWAYS, "agreement.csv", "agreement.md", "certificate.html", "certificate.json")
"""Files that a report may hold; a folder with another file is not replaced."""


def write_report(
    folder: str | os.PathLike[str],
    facts: ScreeningFacts,
    *,
    agreement: ReportTable | None = None,
    files: Mapping[str, str | bytes] | None = None,
    overwrite: bool = False,
    keep_formulas: bool = False,
) -> tuple[str, ...]:
    """Write the report of a screening; the folder appears with all files or not at all."""
    require_report_place(folder, files or {})
    table = facts.counts.table()
    contents: dict[str, str | bytes] = {
        "prisma.svg": flow_diagram(facts.counts),
        "prisma.csv": table_csv(table, keep_formulas=keep_formulas),
        "prisma.md": table.markdown() + "\n",
        "methods.txt": methods_paragraph(facts) + "\n",
    }
    if agreement is not None:
        contents["agreement.csv"] = table_csv(agreement, keep_formulas=keep_formulas)
        contents["agreement.md"] = agreement.markdown() + "\n"
    contents |= files or {}
    with atomic_folder(folder, overwrite=overwrite) as scratch:
        for name, content in contents.items():
            (scratch / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    return tuple(sorted(contents))


def require_report_place(folder: str | os.PathLike[str], files: Mapping[str, object] | None = None) -> None:
    """Raise `InputError` if a folder holds a file that is not part of a report, such as answers."""
    place = Path(folder)
    allowed = {*KNOWN, *(files or {})}
    for entry in sorted(place.iterdir()) if place.is_dir() else ():
        if entry.name not in allowed:
            raise InputError(
                f"{place} holds {entry.name}, which is not part of a report, so it is kept; choose another folder."
            )


def table_csv(table: ReportTable, *, keep_formulas: bool = False) -> str:
    """Return a table as CSV, with the decimals that the table shows."""
    rows = [list(table.columns), *(table.texts(row) for row in table.rows)]
    return csv_text(rows, keep_formulas=keep_formulas)


MODEL = "a kernel least-squares model of {features}"
"""The model, for the methods paragraph."""


def settled_answers(unique: UniqueRecords, judges: Judges) -> dict[int, SettledAnswer]:
    """Return the answer of all judges together to each record, by its number among all records."""
    originals = unique.originals.tolist()
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


def screening_facts(
    unique: UniqueRecords,
    judges: Judges,
    agreement: ScreeningAgreement,
    *,
    rule: str,
    target: float,
    confidence: float,
    seed: int | None = None,
    is_reached: bool | None = None,
    bound: float | None = None,
) -> ScreeningFacts:
    """Return what is known about a screening."""
    included = [pair for pair in agreement.pairs if pair.question == "included"]
    read = Counter(number for answers in judges.values() for number in independent(answers))
    team = combine(judges)
    used: StoppingRule = stopping_rule(rule, len(unique.unique) - len(team.beforehand), target, confidence)
    if is_reached is None:
        is_reached = not used.needs_sample and used.advises(team.finds, len(team.ranked), team.n_known)
    stopped_by = f"stopped by the rule '{rule}'" if is_reached else ""
    ways: defaultdict[str, set[int]] = defaultdict(set)
    for answers in judges.values():
        for number, way in answers.chosen_by.items():
            ways[way].add(number)
    features = "words and citations" if any(unique.everything.references) else "words"
    return ScreeningFacts(
        prisma_counts(unique.everything, settled_answers(unique, judges), unique.groups, stopped_by=stopped_by),
        judges=[judge for judge, answers in judges.items() if independent(answers)],
        model=MODEL.format(features=features),
        seed=seed,
        rule=used,
        is_reached=is_reached,
        bound=bound,
        duplicates_by="identifiers and similar titles, years and authors" if unique.groups is not None else "",
        n_known=len(ways["known"]),
        n_searched=len(ways["search"]),
        n_sampled=len(ways["sample"]),
        n_double=sum(times > 1 for times in read.values()),
        agreement=[
            KappaFacts(item.first, item.second, item.n_both, item.kappa, item.low, item.high) for item in included
        ],
        n_settled=agreement.n_settled,
        adjudicators=[judge for judge, answers in judges.items() if answers.adjudicated],
    )


def _given(answers: ScreeningAnswers, originals: list[int]) -> dict[int, JudgeAnswer]:
    """Return what a judge answered by reading, by the number among all records; a note alone counts too."""
    result = {
        originals[number]: _answer(entry, answers.notes.get(number, ""))
        for number, entry in answers.current.items()
        if answers.chosen_by.get(number) != "adjudication"
    }
    noted = {originals[number]: JudgeAnswer(note=text) for number, text in answers.notes.items()}
    return {**noted, **result}


def _answer(entry: ScreeningEntry, note: str) -> JudgeAnswer:
    label = {"relevant": 1.0, "not": 0.0}.get(entry.action, math.nan)
    shown = entry.by + (f", rank {entry.rank}" if entry.rank else "")
    return JudgeAnswer(label, entry.reason, entry.tags, note, entry.time, shown, entry.of)
