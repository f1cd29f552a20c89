"""Entries of a log of grades, and the judgements that they amount to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from corank_lab.database.entries import JournalEntry


@dataclass(frozen=True)
class GradingEntry(JournalEntry):
    """
    One line of a log of grades.

    action {"grade", "unrateable", "later", "settle", "undo"}: what the judge did; "unrateable" and "later" are not
        grades, "settle" fixes the grade of a document that judges grade differently, "undo" withdraws the last entry.
    query, document: ids.
    grade: the grade, for "grade" and "settle".
    text: explanation.
    by {"model", "depth", "query", "change", "file"}: why the document was shown.
    """

    ACTIONS: ClassVar[tuple[str, ...]] = ("grade", "unrateable", "later", "settle", "undo")

    query: str = ""
    document: str = ""
    grade: str = ""
    text: str = ""
    by: str = ""


class Judgement(NamedTuple):
    """
    The last answer of a judge about a document.

    action: What the judge did.
    grade: The grade, None for the other actions.
    text: Explanation.
    """

    action: str
    grade: int | None
    text: str = ""
