"""
What a project keeps besides answers: when reading may stop, random samples, prior knowledge, reasons, and words.

The terminal, the pages and the reports use the same values, whichever of them stored them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from corank.errors import InputError
from corank_lab.database.database import Database, Project
from corank_lab.records.records import Records, records_from_json, records_to_json
from corank_lab.screening.answers import BEFOREHAND, ScreeningEntry
from corank_lab.screening.prior import Prior, column_scores, judged_rows
from corank_lab.screening.stopping.rules import (
    DEFAULT_CONFIDENCE,
    DEFAULT_RULE,
    REMOVED_RULES,
    STOPPING_RULES,
    StoppingRule,
    accepted_error,
    removed_sentence,
    stopping_rule,
)

REVIEWS = "prior/reviews.json"
"""Name under which a project keeps the judged records of old reviews."""
MAX_REASONS = 9
"""Number of keys for reasons of exclusion."""
SHARE_LIMITS = (0.5, 0.999)
"""Limits of target and confidence in a project."""
ROUNDING = 1e-5
"""Difference below which two shares are equal: forms show them as percentages."""


@dataclass(frozen=True)
class ScreeningPlan:
    """What must be fixed before the reading, so that its result can be stated."""

    rule: str = DEFAULT_RULE
    target: float = 0.95
    confidence: float = DEFAULT_CONFIDENCE
    richness: int = 0  # number of random records to read first
    seed: int = 0

    @classmethod
    def stored(cls, settings: Mapping[str, Any]) -> Self:
        """Return the plan in the settings of a project, with the default rule in place of one that does not exist."""
        values = {field.name: settings.get(field.name, field.default) for field in fields(cls)}
        rule = values["rule"] if values["rule"] in STOPPING_RULES else DEFAULT_RULE
        return cls(**{**values, "rule": rule, "richness": int(values["richness"]), "seed": int(values["seed"])})

    @property
    def stopping(self) -> dict[str, Any]:
        """Rule, target and confidence, as parameters of a `Screening` or certificate."""
        return {"rule": self.rule, "target": self.target, "confidence": self.confidence}

    def rule_for(self, n: int) -> StoppingRule:
        """Return the stopping rule for n records; raise `InputError` if a value is not allowed."""
        return stopping_rule(self.rule, n, self.target, self.confidence)

    def __str__(self) -> str:
        first = f", {self.richness} random records first" if self.richness else ""
        error = accepted_error(self.confidence)
        return f"rule {self.rule!r}, recall {self.target:g}, accepted error {error}{first}, random seed {self.seed}"


DEFAULT_PLAN = ScreeningPlan()


def plan_changes(
    settings: Mapping[str, Any], given: Mapping[str, Any], entries: Iterable[ScreeningEntry]
) -> tuple[dict[str, Any], str]:
    """
    Return the given values that change the plan of a project, and a sentence about them; None changes nothing.

    Raise `InputError` if a random sample has begun that these values would make worthless.
    """
    before = {name: settings.get(name, default) for name, default in vars(DEFAULT_PLAN).items()}
    changed = {name: given[name] for name in before if given.get(name) not in (None, before[name])}
    for name in ("target", "confidence"):
        if name in changed and math.isclose(changed[name], before[name], abs_tol=ROUNDING):
            del changed[name]
    if not changed:
        return {}, ""
    ways = [entry.by for entry in entries if entry.action in ("relevant", "not")]
    n_read = sum(way not in BEFOREHAND for way in ways)
    is_sampling = "sample" in ways and ScreeningPlan.stored(settings).rule_for(1).needs_sample
    fixed = ("rule", "target", "confidence", "seed") if is_sampling else ("seed",) if "richness" in ways else ()
    for name in fixed:
        if name in changed and name in settings:
            raise InputError(
                f"{name} is {changed[name]!r}, but the project has {before[name]!r}, and its random sample has begun: "
                f"what it shows holds for a plan that is fixed beforehand, so keep {name} as it is."
            )
    listed = ", ".join(f"{name} {value} instead of {before[name]}" for name, value in changed.items())
    late = f" It changed after {n_read} answers, so name that in your report." if n_read else ""
    return changed, f"Stored for all sessions, pages and reports: {listed}.{late}"


def stored_options(store: Database, project: Project, records: Records) -> tuple[dict[str, Any], list[str]]:
    """Return the parameters of a `Screening` that a project keeps, and sentences about those that cannot be used."""
    plan, rule = ScreeningPlan.stored(project.settings), project.settings.get("rule")
    prior, remark = kept_prior(store, project, records)
    remarks = [f"{removed_sentence(rule)} {DEFAULT_RULE!r} is used now."] if rule in REMOVED_RULES else []
    first = min(plan.richness, len(records))  # the files may have fewer records now
    options = {**plan.stopping, "richness": first, "random_state": plan.seed, "prior": prior}
    return options, [*remarks, *filter(None, [remark])]


def read_reasons(lines: Iterable[str]) -> list[str]:
    """Return distinct reasons of exclusion; raise if there are more than keys."""
    reasons = list(dict.fromkeys(reason for line in lines if (reason := " ".join(line.split()))))
    if len(reasons) > MAX_REASONS:
        raise InputError(f"there are {len(reasons)} reasons; the keys 1 to 9 allow {MAX_REASONS}, so merge some.")
    return reasons


def split_words(text: str) -> list[str]:
    """Return the words of a setting, which commas or line ends separate."""
    return [word for part in re.split(r"[,\n]", text) if (word := " ".join(part.split()))]


def word_pattern(words: Sequence[str]) -> str:
    """
    Return a regular expression of whole words; blanks in a word match any blanks.

    A ``*`` is a wildcard only at the end of a word: several of them in one word could take exponential time.
    """
    parts = [
        r"\s+".join(re.escape(part.rstrip("*")) + r"\w*" * part.endswith("*") for part in word.split())
        for word in sorted(words, key=len, reverse=True)
        if word.strip("* ")
    ]
    return rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)" if parts else r"(?!)"


def keep_prior(
    store: Database, project: Project, records: Records, reviews: Records | None, column: str | None
) -> dict[str, Any]:
    """
    Keep sources of prior knowledge in a project, and return its settings that describe them; None changes nothing.

    Raise `InputError` if a source cannot be used with the records of the project.
    """
    settings: dict[str, Any] = {}
    if column is not None:
        settings["probability"] = column
        if column:
            column_scores(records, column)
    if reviews is not None:
        rows, target = judged_rows(reviews)
        judged = [int(row) for row in rows]
        kept = Records(
            [reviews.ids[row] for row in judged], [reviews.titles[row] for row in judged],
            [reviews.abstracts[row] for row in judged], labels=reviews.labels[rows],
        )  # fmt: skip
        content = json.dumps(records_to_json(kept)).encode()
        store.add_files(project.id, {REVIEWS: ("application/json", content)})
        names = ", ".join(source.name for source in reviews.sources) or "records"
        hashes = " ".join(source.sha256[:8] for source in reviews.sources)
        settings["prior"] = f"{names}: {len(judged)} judged records, {int((target > 0).sum())} relevant ({hashes})"
    return settings


def kept_prior(store: Database, project: Project, records: Records) -> tuple[Prior, str]:
    """Return the sources that a project keeps, and a sentence if the records lack the column of probabilities."""
    column, reviews, remark = str(project.settings.get("probability", "")), None, ""
    if project.settings.get("prior"):
        kept = store.file(project.id, REVIEWS)
        reviews = None if kept is None else records_from_json(json.loads(kept[1]))
    if column:
        try:
            column_scores(records, column)
        except InputError as error:
            column, remark = "", f"The probabilities are not used: {error}"
    return Prior(reviews, column), remark
