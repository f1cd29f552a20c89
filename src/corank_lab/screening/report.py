"""The report of a screening: one folder with the flow diagram, the numbers, a methods paragraph and further tables."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from corank.comparison import Document, PageBlock, code, collapsed, paragraph, part
from corank.data import atomic_folder, csv_text
from corank.errors import InputError
from corank.tables import ReportTable
from corank_lab.screening.answers import Judges, ScreeningAnswers, ScreeningEntry, combine, independent
from corank_lab.screening.certificate import NOT_PROVED, certificate_bytes, result_part, sample_part
from corank_lab.screening.export import JudgeAnswer, SettledAnswer, settle
from corank_lab.screening.matching import UniqueRecords
from corank_lab.screening.methods import ScreeningAgreement, ScreeningFacts, methods_paragraph
from corank_lab.screening.prisma import flow_diagram, prisma_counts
from corank_lab.screening.project import ScreeningPlan

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
    require_report_place(folder, (*KNOWN, *(files or {})))
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


def require_report_place(folder: str | os.PathLike[str], known: Iterable[str] = KNOWN) -> None:
    """Raise `InputError` if a folder holds a file that is not part of a report, such as answers."""
    place = Path(folder)
    allowed = set(known)
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
    unique: UniqueRecords, judges: Judges, agreement: ScreeningAgreement, plan: ScreeningPlan
) -> ScreeningFacts:
    """Return what is known about a screening; a random sample that proves nothing for all judges is not stated."""
    included = [pair for pair in agreement.pairs if pair.question == "included"]
    read = Counter(number for answers in judges.values() for number in independent(answers))
    team = combine(judges)
    used = plan.rule_for(len(unique.unique) - len(team.beforehand))
    try:
        sample = sample_part(used, team, judges, plan.seed)
    except InputError:  # the certificate says why
        sample = None
    result = result_part(used, team, len(unique.unique), sample)
    stopped_by = f"stopped by the rule '{plan.rule}'" if result["reached"] else ""
    ways: defaultdict[str, set[int]] = defaultdict(set)
    for answers in judges.values():
        for number, way in answers.chosen_by.items():
            ways[way].add(number)
    features = "words and citations" if any(unique.everything.references) else "words"
    return ScreeningFacts(
        prisma_counts(unique.everything, settled_answers(unique, judges), unique.groups, stopped_by=stopped_by),
        judges=[judge for judge, answers in judges.items() if independent(answers)],
        model=MODEL.format(features=features),
        seed=plan.seed,
        rule=used,
        is_reached=result["reached"],
        bound=result["bound"],
        duplicates_by="identifiers and similar titles, years and authors" if unique.groups is not None else "",
        n_known=len(ways["known"]),
        n_searched=len(ways["search"]),
        n_sampled=len(ways["sample"]),
        n_double=sum(times > 1 for times in read.values()),
        agreement=included,
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


WORDS = {
    "proved": "Proved, if the answers are right",
    "tested": "Tested, under an assumption about the order",
    "estimated": "Estimated by a model; this proves nothing",
    "none": "No evidence yet",
}
"""What each kind of evidence amounts to."""


def certificate_files(certificate: Mapping[str, Any], name: str = "certificate.json") -> dict[str, bytes]:
    """Return a certificate as a file for `corank screen verify`, and as a page."""
    page = certificate_page(certificate, name).encode("utf-8", "replace")
    return {name: certificate_bytes(certificate), "certificate.html": page}


def certificate_page(certificate: Mapping[str, Any], name: str) -> str:
    """Return a certificate as an HTML page."""
    rule, records, reading, sample, result = (
        certificate[part_name] for part_name in ("rule", "records", "reading", "sample", "result")
    )
    files = " ".join(record["name"] for record in records["files"])
    missed = "" if result["reached"] else f" The target of {rule['target']:g} is not reached by this rule."
    verify = "The command computes everything on this page anew from records and logs, and names what differs."
    blocks = [
        part("result", "What is known", [paragraph(result["statement"] + missed, "verdict"), _pairs([
            ("Evidence", WORDS[result["evidence"]]),
            ("Assumed", result["assumes"]),
            ("Rule, target, confidence", f"{rule['name']}, {rule['target']:g}, {rule['confidence']:g}"),
            ("Proved lower bound of the recall", "none" if result["bound"] is None else f"{result['bound']:.4f}"),
            ("Probability of the target by the model", f"{result['probability_by_model']:.4f}"),
            ("p-value of a missed target by the sequential test", f"{result['p_missed']:.4f}"),
        ])]),
        part("reading", "What was read", [_pairs([
            ("Records", f"{records['n']:,}, {records['to_judge']:,} of them to judge"),
            ("Joined as duplicates, not read", f"{records['n'] - records['to_judge']:,}"),
            ("Read", f"{reading['read']:,}, {reading['known_beforehand']:,} of them known beforehand"),
            ("Relevant", f"{reading['found']:,}, {result['in_conflict']:,} of them not settled between judges"),
            ("Unread", f"{reading['unread']:,}"),
            ("Last answer", reading["last_answer"] or "no time in the log"),
            ("Software", certificate["software"]),
        ])]),
        *([part("sample", "The random sample", _sample(sample))] if sample else []),
        part("files", "Files", [_hashes(certificate)]),
        part("verify", "Verify it", [
            code(f"corank screen verify {name} {files} --answers FOLDER"), paragraph(verify),
        ]),
        part("limits", "What is not proved", [paragraph(NOT_PROVED)]),
    ]  # fmt: skip
    return Document("Certificate of a screening", blocks).html()


def _pairs(pairs: Sequence[tuple[str, str]]) -> ReportTable:
    return ReportTable("", ("figure", "value"), tuple(pairs))


def _sample(sample: Mapping[str, Any]) -> list[PageBlock]:
    answers = ("not relevant", "relevant")
    draws = enumerate(zip(sample["ids"], sample["relevant"], strict=True), 1)
    rows = tuple((str(draw), name, answers[bool(hit)]) for draw, (name, hit) in draws)
    tests = "; ".join(f"{item['size']} draws at error {item['error']:.4g}" for item in sample["tests"]) or "none yet"
    about = _pairs([
        ("Drawn from", f"{sample['drawn_from']:,} unread records, by seed {sample['seed']}"),
        ("Read", f"{len(sample['ids']):,}, {sum(sample['relevant'])} of them relevant"),
        ("Relevant records found before", f"{sample['found_before']:,}"),
        ("Tests", tests),
        ("Elusion", sample["elusion"].removeprefix("Elusion: ")),
    ])  # fmt: skip
    return [about, collapsed("All draws in their order", ReportTable("Draws", ("draw", "record", "answer"), rows))]


def _hashes(certificate: Mapping[str, Any]) -> ReportTable:
    rows = [(item["name"], "records", item["sha256"]) for item in certificate["records"]["files"]]
    rows += [
        (f"{item['judge']}.jsonl", f"log, {item['lines']} lines", item["sha256"]) for item in certificate["answers"]
    ]
    rows.append(("this certificate", "without this hash", certificate["sha256"]))
    return ReportTable("Hashes", ("file", "content", "SHA-256"), tuple(rows))
