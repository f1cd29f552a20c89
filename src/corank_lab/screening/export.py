"""Results of a screening as a file: the settled answer to each record, with reasons, tags, judges and times."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from corank.errors import InputError, suggest_names
from corank_lab.records.records import Records
from corank_lab.records.writer import write_records

if TYPE_CHECKING:  # it imports rapidfuzz
    from corank_lab.records.duplicates import DuplicateGroups

ONLY = ("all", "included", "excluded", "conflicts", "unread")
"""Which records an export holds."""


@dataclass(frozen=True)
class JudgeAnswer:
    """What one judge answered about one record."""

    label: float = math.nan  # 1 for relevant, 0 for irrelevant, NaN for neither, such as a record put aside
    reason: str = ""  # why the record is excluded
    tags: tuple[str, ...] = ()  # words of the judge
    note: str = ""  # note of the judge
    time: str = ""  # when the answer was given, as in the journal
    shown: str = ""  # why the record was shown, such as "model, rank 1"
    duplicate_of: str = ""  # id of the record that this one is a duplicate of


@dataclass(frozen=True)
class SettledAnswer:
    """What all judges together answered about one record."""

    number: int  # number of the record, from 0
    label: float = math.nan  # 1 for included, 0 for excluded; NaN if the judges disagree or have not decided
    reason: str = ""  # reasons of exclusion, in the order of the judges
    tags: tuple[str, ...] = ()  # tags of all judges
    note: str = ""  # notes; with several judges, each begins with a name
    # answer of each judge who gave one: 1, 0, or NaN for a record put aside
    judges: Mapping[str, float] = field(default_factory=dict)
    times: Mapping[str, str] = field(default_factory=dict)  # time of each answer
    is_conflict: bool = False  # whether judges disagree and no adjudicator has settled it
    settled_by: str = ""  # the adjudicator; empty without one
    shown: str = ""  # why the record was shown first
    duplicate_of: str = ""  # id of the record that a judge marked this one as a duplicate of

    @property
    def status(self) -> str:
        """One of "included", "excluded", "conflict", "duplicate" and "unread"."""
        if self.is_conflict:
            return "conflict"
        if self.duplicate_of and math.isnan(self.label):
            return "duplicate"
        return "unread" if math.isnan(self.label) else "included" if self.label else "excluded"


@dataclass(frozen=True)
class ExportCounts:
    """What an export holds."""

    n_records: int  # number of records in the file
    # n_relevant, n_not, n_disagreed, n_unread: number of works of each kind; with `all_copies`, of records, duplicates
    # with the answer of their group
    n_relevant: int
    n_not: int
    n_disagreed: int
    n_unread: int
    n_duplicates: int  # number of duplicates among all records
    changes: tuple[str, ...] = ()  # what the format could not hold, one sentence each


def settle(
    answers: Mapping[str, Mapping[int, JudgeAnswer]],
    adjudicated: Mapping[int, tuple[str, JudgeAnswer]] | None = None,
) -> dict[int, SettledAnswer]:
    """Put the answers of several judges together."""
    finals = adjudicated or {}
    numbers = sorted({*finals, *(number for result in answers.values() for number in result)})
    return {number: _settled(number, answers, finals.get(number)) for number in numbers}


def export_screening(
    path: str | os.PathLike[str],
    records: Records,
    settled: Mapping[int, SettledAnswer],
    *,
    groups: DuplicateGroups | None = None,
    only: str = "all",
    tag: str | None = None,
    all_copies: bool = False,
    overwrite: bool = False,
    keep_formulas: bool = False,
) -> ExportCounts:
    """Write records with their settled answers; `tag` keeps those with a tag, or with ``!`` before it those without."""
    require_only(only)
    answers = spread(len(records), settled, groups)
    origins = _origins(records, answers, groups)
    status = [answer.status for answer in answers]
    wanted = {"conflicts": "conflict"}.get(only, only)
    works = range(len(records)) if all_copies else _works(records, origins, status)
    numbers = [number for number in works if wanted in ("all", status[number])]
    name, has_tag = "", True
    if tag is not None:
        name, has_tag = tag.removeprefix("!"), not tag.startswith("!")
        tags = _distinct(word for answer in answers for word in answer.tags)
        if name not in tags:  # a wrong name after ! would export what is to be left out
            known = suggest_names(name, tags) if tags else "no record has a tag"
            raise InputError(f"no record has the tag {name!r}; {known}.")
        numbers = [number for number in numbers if (name in answers[number].tags) == has_tag]
    if not numbers:
        kind = "in conflict" if only == "conflicts" else only
        tagged = f" {'with' if has_tag else 'without'} the tag {name!r}" if name else ""
        raise InputError(f"no record{tagged} is {kind}, so {path} was not written.")
    columns = _columns(answers, origins)
    changes = write_records(
        path,
        records.take(numbers),
        np.array([answers[number].label for number in numbers]),
        {name: [column[number] for number in numbers] for name, column in columns.items()},
        overwrite=overwrite,
        keep_formulas=keep_formulas,
    )
    count = [status[number] for number in works].count
    n_duplicates = sum(map(bool, origins))
    return ExportCounts(
        len(numbers), count("included"), count("excluded"), count("conflict"), count("unread"), n_duplicates, changes
    )


def require_only(only: str) -> None:
    """Raise `InputError` for an unknown choice of records."""
    if only not in ONLY:
        raise InputError(f"only is {only!r}; {suggest_names(only, ONLY)}.")


def spread(n: int, settled: Mapping[int, SettledAnswer], groups: DuplicateGroups | None = None) -> list[SettledAnswer]:
    """Return one answer per record: its own, that of another member of its group, or an empty one."""
    answers = []
    for number in range(n):
        members = (number, *(() if groups is None else groups.group_of(number)))
        result = next((settled[member] for member in members if member in settled), SettledAnswer(number))
        answers.append(result)
    return answers


def _settled(
    number: int, answers: Mapping[str, Mapping[int, JudgeAnswer]], final: tuple[str, JudgeAnswer] | None
) -> SettledAnswer:
    given = {judge: result[number] for judge, result in answers.items() if number in result}
    votes = {judge: item.label for judge, item in given.items() if not (math.isnan(item.label) or item.duplicate_of)}
    is_conflict = len(set(votes.values())) > 1 and final is None
    agreed = math.nan if is_conflict or not votes else next(iter(votes.values()))
    label = agreed if final is None else final[1].label
    chosen = [given[judge] for judge, vote in votes.items() if is_conflict or vote == label]
    reasons = [final[1]] if final is not None and final[1].reason else chosen
    first = min(given.values(), key=lambda entry: (not entry.time, entry.time), default=JudgeAnswer())
    everyone = [*given.values(), *([final[1]] if final else [])]
    is_named = len(answers) > 1
    notes = [(f"{judge}: " if is_named else "") + item.note for judge, item in given.items() if item.note]
    notes += [f"{final[0]}: {final[1].note}"] if final and final[1].note and final[1].note not in notes else []
    return SettledAnswer(
        number,
        label,
        " / ".join(sorted(_distinct(item.reason for item in reasons))) if label != 1 else "",
        tuple(_distinct(tag for item in everyone for tag in item.tags)),
        "; ".join(notes),
        {judge: item.label for judge, item in given.items()},
        {judge: item.time for judge, item in given.items()},
        is_conflict,
        final[0] if final else "",
        first.shown,
        next((item.duplicate_of for item in everyone if item.duplicate_of), ""),
    )


def _origins(records: Records, answers: Sequence[SettledAnswer], groups: DuplicateGroups | None) -> list[str]:
    """Return the id of the record that each one is a duplicate of; empty for the others."""
    if groups is None:
        return [answer.duplicate_of for answer in answers]
    judged = set(groups.representatives)
    return [
        answer.duplicate_of or ("" if number in judged else records.ids[_representative(number, judged, groups)])
        for number, answer in enumerate(answers)
    ]


def _works(records: Records, origins: Sequence[str], status: Sequence[str]) -> list[int]:
    """Return one record of each work; a duplicate whose answer differs from that of the work stays."""
    work_of: dict[int, int] = {}
    for number in range(len(records)):
        chain: dict[int, None] = {}
        i: int | None = number
        work = number
        while i is not None and i not in chain and i not in work_of:
            chain[i], work = None, i
            i = records.number.get(origins[i])
        if i is not None:  # records that are marked as duplicates of each other are one work: the first of them
            work = work_of[i] if i in work_of else min(list(chain)[list(chain).index(i) :])
        work_of |= dict.fromkeys(chain, work)
    return [
        position
        for position, work in sorted(work_of.items())
        if position == work or status[position] not in ("duplicate", status[work])
    ]


def _representative(number: int, judged: set[int], groups: DuplicateGroups) -> int:
    return next((item for item in groups.group_of(number) if item in judged), number)


def _columns(answers: Sequence[SettledAnswer], origins: list[str]) -> dict[str, list[str]]:
    columns = {
        "reason": [answer.reason for answer in answers],
        "tags": ["; ".join(answer.tags) for answer in answers],
        "note": [answer.note for answer in answers],
        "judges": ["; ".join(answer.judges) for answer in answers],
        "time": [max(answer.times.values(), default="") for answer in answers],
        "shown": [answer.shown for answer in answers],
        "conflict": [_conflict(answer) for answer in answers],
        "duplicate_of": origins,
    }
    names = _distinct(judge for answer in answers for judge in answer.judges)
    for judge in names if len(names) > 1 else ():
        columns[f"included_{judge}"] = [_label(answer.judges.get(judge, math.nan)) for answer in answers]
        columns[f"time_{judge}"] = [answer.times.get(judge, "") for answer in answers]
    return columns


def _conflict(answer: SettledAnswer) -> str:
    return "open" if answer.is_conflict else f"settled by {answer.settled_by}" if answer.settled_by else ""


def _label(label: float) -> str:
    return "" if math.isnan(label) else str(int(label))


def _distinct(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]
