"""Judgements in record files: columns of decisions, and the notes of ASReview, Rayyan, Covidence and Abstrackr."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from corank.errors import InputError

STRICT_COLUMNS = (
    "included", "label included", "relevant", "final included", "included label", "included final", "included flag",
    "include", "asreview label",
)  # fmt: skip
"""Columns that must hold judgements; another value raises."""

LABEL_COLUMNS = (
    *STRICT_COLUMNS, "label", "labels included", "inclusion", "inclusion status", "include exclude",
    "screening decision",
    "final decision", "decision", "screening status", "item status", "itemstatus", "consensus decision", "screened",
    "relevance", "is relevant", "is included", "included in review", "eligible", "final status",
)  # fmt: skip
"""Columns that may hold judgements, as normalised names."""

YES = frozenset((
    "1", "1.0", "true", "yes", "y", "relevant", "included", "include", "i", "in", "eligible", "accept", "accepted",
    "included in review", "asreview_relevant", "is included", "selected", "keep",
))  # fmt: skip
NO = frozenset((
    "0", "0.0", "false", "no", "n", "irrelevant", "not relevant", "excluded", "exclude", "e", "out", "ineligible",
    "not eligible", "reject", "rejected", "not included", "excluded from review", "asreview_irrelevant",
    "asreview_not_relevant", "not_relevant", "is excluded",
))  # fmt: skip
UNJUDGED = frozenset((
    "", "-1", "-1.0", "nan", "none", "null", "na", "n/a", "o", "not screened", "unscreened", "not judged",
    "unlabelled", "unlabeled", "pending", "to do", "todo", "asreview_not_seen", "not_seen",
))  # fmt: skip
UNDECIDED = frozenset(
    ["maybe", "unsure", "undecided", "unclear", "conflict", "disagreement", "uncertain", "?", "no consensus"]
)
"""Words of a judgement, in lower case."""

_RAYYAN = re.compile(r"RAYYAN-INCLUSION:\s{0,9}\{([^{}]*)\}", re.IGNORECASE)
_VOTE = re.compile(r"""=>\s*["']?\s*([A-Za-z ]+)""")
_EXCLUSION = re.compile(r"\s*(?:covidence\s+)?exclusion reason\s*:\s*\S", re.IGNORECASE)
_REVIEWER = re.compile(r"general notes \((.+)\)", re.IGNORECASE | re.DOTALL)
_PER_JUDGE = re.compile(r"(?:included|include|decision|vote|screening decision|inclusion)\s+(?:by\s+)?\S.*")


@dataclass
class LabelCounts:
    """What was found in the judgements of a file, for its remarks."""

    disagreeing: int = 0
    undecided: int = 0
    ignored: dict[str, str] = field(default_factory=dict)

    def remarks(self) -> list[str]:
        """Return one sentence for each finding."""
        result = []
        if self.disagreeing:
            result.append(f"Reviewers disagree on {_records(self.disagreeing)}, read as not judged.")
        if self.undecided:
            result.append(f"The judgement of {_records(self.undecided)} is undecided, read as not judged.")
        result += [
            f"Column {column!r} holds values such as {value!r} and was not read as judgements."
            for column, value in self.ignored.items()
        ]
        return result


def _records(n: int) -> str:
    return f"{n} record{'s' * (n != 1)}"


def judge_columns(columns: Sequence[str], normalise: Mapping[str, str]) -> list[str]:
    """Return the columns with one judge each, such as ``included (Ann)``, or those of Abstrackr."""
    reviewers = [found[1] for column in columns if (found := _REVIEWER.fullmatch(column.strip()))]
    if reviewers:
        return [column for column in columns if column in reviewers]
    return [column for column in columns if _PER_JUDGE.fullmatch(normalise.get(column, ""))]


def is_abstrackr(columns: Iterable[str]) -> bool:
    """Return whether a table is from Abstrackr, where 1 is relevant, -1 irrelevant and 0 borderline."""
    return {"(internal) id", "consensus"} <= {column.strip().lower() for column in columns}


def label_of(value: str, place: str) -> float:
    """Return 1, 0 or NaN for a judgement; raise `InputError` for another value."""
    judged = _known(value)
    if judged is None:
        raise InputError(
            f"{place}: the judgement is {value[:80]!r}; expected 1 (relevant), 0 (not relevant), or an empty cell."
        )
    return judged


def is_judgement(value: str) -> bool:
    """Return whether a value is a judgement or empty."""
    return _known(value) is not None


def is_undecided(value: str) -> bool:
    """Return whether a judge could not decide."""
    return _folded(value) in UNDECIDED


def settle(votes: Sequence[float], counts: LabelCounts) -> float:
    """Return the label of several judges; NaN if none judged or they disagree."""
    known = {vote for vote in votes if not math.isnan(vote)}
    counts.disagreeing += len(known) > 1
    return known.pop() if len(known) == 1 else math.nan


def abstrackr_vote(value: str) -> float:
    """Return the label of Abstrackr's 1, -1 or 0."""
    return {"1": 1.0, "-1": 0.0}.get(value.strip().removesuffix(".0"), math.nan)


def label_of_notes(notes: Iterable[str], counts: LabelCounts) -> float:
    """
    Return the label in notes: ASReview's marks (the last counts), Rayyan's inclusions, Covidence's exclusion reasons.
    """
    label = math.nan
    for note in notes:
        folded = _folded(note)
        if folded in ("asreview_relevant", "asreview_irrelevant", "asreview_not_relevant"):
            label = float(folded == "asreview_relevant")
        elif result := _RAYYAN.search(note):
            votes = [vote.strip() for vote in _VOTE.findall(result[1])]
            counts.undecided += any(is_undecided(vote) for vote in votes)
            label = settle([math.nan if (one := _known(vote)) is None else one for vote in votes], counts)
        elif _EXCLUSION.match(note):
            label = 0.0
    return label


def _folded(value: str) -> str:
    return " ".join(value.split()).lower()


def _known(value: str) -> float | None:
    folded = _folded(value)
    if folded in YES:
        return 1.0
    if folded in NO:
        return 0.0
    return math.nan if folded in UNJUDGED or folded in UNDECIDED else None
