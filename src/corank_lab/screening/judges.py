"""Several judges of one collection: their answers together, and their conflicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from corank_lab.screening.answers import ScreeningAnswers, ScreeningEntry

Judges = Mapping[str, ScreeningAnswers]
"""The answers of each judge, by name."""


def find_conflicts(judges: Judges, *, settled: bool = False) -> list[int]:
    """Return the records that one judge includes and another excludes."""
    found: dict[int, set[bool]] = {}
    for answers in judges.values():
        for number, relevant in independent(answers).items():
            found.setdefault(number, set()).add(relevant)
    done = set() if settled else {number for answers in judges.values() for number in answers.adjudicated}
    return sorted(number for number, verdicts in found.items() if len(verdicts) > 1 and number not in done)


def independent(answers: ScreeningAnswers) -> dict[int, bool]:
    """Return the answers that a judge gave by reading; records found to be duplicates are left out."""
    return {
        number: relevant
        for number, relevant in answers.relevant.items()
        if answers.chosen_by[number] not in ("known", "adjudication") and number not in answers.duplicates
    }


def combine(judges: Judges, *, conflicts: bool = True) -> ScreeningAnswers:
    """Put the answers of all judges together, in the order of their times."""
    first: dict[int, tuple[str, str, ScreeningEntry]] = {}
    verdicts: dict[int, set[str]] = {}
    settled: dict[int, ScreeningEntry] = {}
    for judge, answers in judges.items():
        time = ""
        for number in answers.relevant:
            entry = answers.current[number]
            # a later change does not move the record in the order of reading; lines of earlier versions have no time
            time = answers.answered_at[number] or time
            found = (time, judge, replace(entry, by=answers.chosen_by[number]))
            first[number] = min(first.get(number, found), found, key=lambda one: one[:2])
            if entry.action != "duplicate":
                verdicts.setdefault(number, set()).add(entry.action)
        for number, entry in answers.adjudicated.items():
            settled[number] = max(settled.get(number, entry), entry, key=lambda one: one.time)
    together = ScreeningAnswers(next(iter(judges.values())).unique)
    for number, (_, _, entry) in sorted(first.items(), key=lambda item: item[1][:2]):
        if number in settled:
            final = settled[number]
            entry = replace(entry, action=final.action, reason=final.reason, tags=final.tags)
        elif len(verdicts.get(number, ())) > 1:
            if not conflicts:
                continue
            entry = replace(entry, action="relevant", reason="")
        elif verdicts.get(number) and entry.action == "duplicate":
            entry = replace(entry, action=next(iter(verdicts[number])))
        together.add(entry)
    for answers in judges.values():
        together.topic = together.topic or answers.topic
        together.notes |= {number: text for number, text in answers.notes.items() if number not in together.notes}
    return together
