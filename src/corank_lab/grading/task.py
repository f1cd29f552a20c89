"""What is graded: queries, documents with texts and features, and the scale."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError
from corank_lab.database.journal import JournalEntry

DEFAULT_SCALE = ((0, "Poor"), (1, "Fair"), (2, "Good"), (3, "Perfect"))


@dataclass(frozen=True)
class GradingScale:
    """
    The grades that judges may give.

    grades: Grades, the lowest first.
    labels: One label per grade; may be empty texts.
    """

    grades: tuple[int, ...] = tuple(grade for grade, _ in DEFAULT_SCALE)
    labels: tuple[str, ...] = tuple(label for _, label in DEFAULT_SCALE)

    def __post_init__(self) -> None:
        if len(self.grades) < 2 or list(self.grades) != sorted(set(self.grades)) or self.grades[0] < 0:
            raise InputError(f"the grades are {list(self.grades)}; give two or more different ones, from 0 upwards.")
        if len(self.labels) != len(self.grades):
            raise InputError(f"there are {len(self.labels)} labels for {len(self.grades)} grades; give one each.")

    @classmethod
    def of_lines(cls, text: str) -> GradingScale:
        """Read one grade per line, with its label after an equals sign or a blank."""
        pairs = []
        for line in (line.strip() for line in text.splitlines()):
            number, _, label = line.replace("=", " ", 1).partition(" ")
            if not line:
                continue
            if not (number.isascii() and number.isdigit()) or len(number) > 3:
                raise InputError(f"{line!r} does not begin with a grade; write lines such as 0 = off topic.")
            pairs.append((int(number), label.strip()))
        pairs.sort()
        return cls(tuple(grade for grade, _ in pairs), tuple(label for _, label in pairs))

    def lines(self) -> str:
        return "\n".join(f"{grade} = {label}" for grade, label in zip(self.grades, self.labels, strict=True))


@dataclass(frozen=True)
class GradingQuery:
    """
    A query.

    id: Short name without blanks, for judgement lists.
    text: What the user typed.
    need: What the user wants to know.
    """

    id: str
    text: str
    need: str = ""


@dataclass(frozen=True)
class GradingDocument:
    """
    A document of a query.

    query: Number of the query.
    id: Name of the document.
    fields: What is shown, by column.
    position: Rank in the list that was judged, from 1; hidden from judges by default.
    """

    query: int
    id: str
    fields: Mapping[str, str] = field(default_factory=dict)
    position: int = 0


@dataclass(frozen=True, eq=False)
class GradingTask:
    """
    Queries and their documents.

    queries: The queries.
    documents: The documents of all queries, each once per query.
    X: Features; no columns by default.
    columns: Names of the features.
    scale: The scale that the file names.
    has_order: Whether positions are ranks of a search engine; otherwise they only count rows.
    """

    queries: Sequence[GradingQuery]
    documents: Sequence[GradingDocument]
    X: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    columns: Sequence[str] = ()
    scale: GradingScale | None = None
    has_order: bool = False

    def __post_init__(self) -> None:
        X = np.asarray(self.X, dtype=np.float64)
        object.__setattr__(self, "X", X if X.size else np.empty((len(self.documents), 0)))
        if not self.documents:
            raise InputError("there are no documents to grade; give at least one query with a document.")
        if len(self.number) < len(self.documents):
            twice = next(key for i, key in enumerate(self.keys) if self.number[key] != i)
            query, document = json.loads(twice)
            raise InputError(f"document {document!r} appears twice for query {query!r}; remove one of the rows.")

    @cached_property
    def keys(self) -> list[str]:
        """Key of each document: query and document as JSON."""
        return [json.dumps([self.queries[document.query].id, document.id]) for document in self.documents]

    @cached_property
    def number(self) -> dict[str, int]:
        """Number of each document, by key."""
        return {key: i for i, key in enumerate(self.keys)}

    def to_json(self) -> dict[str, Any]:
        return {
            "queries": [[item.id, item.text, item.need] for item in self.queries],
            "documents": [
                [document.query, document.id, dict(document.fields), document.position] for document in self.documents
            ],
            "X": self.X.tolist() if self.X.shape[1] else [],
            "columns": list(self.columns),
            "has_order": self.has_order,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> GradingTask:
        queries = [GradingQuery(*value) for value in values["queries"]]
        documents = [GradingDocument(*value) for value in values["documents"]]
        X, has_order = np.array(values["X"], dtype=np.float64), bool(values.get("has_order"))  # absent before 0.2
        return cls(queries, documents, X, values["columns"], has_order=has_order)


def title_column(fields: Mapping[str, str]) -> str | None:
    """Return the column of the title of a document."""
    lower = {column.casefold(): column for column in reversed(list(fields))}
    return next((lower[item] for item in ("title", "name", "headline", "label") if item in lower), None)


@dataclass(frozen=True)
class GradingEntry(JournalEntry):
    """
    One line of a log of grades.

    action {"grade", "unrateable", "later", "settle", "undo"}: what the judge did; "unrateable" and "later" are not
        grades, "settle" fixes the grade of a document that judges grade differently, "undo" withdraws the last entry.
    """

    ACTIONS: ClassVar[tuple[str, ...]] = ("grade", "unrateable", "later", "settle", "undo")

    query: str = ""  # query, document: ids
    document: str = ""
    grade: str = ""  # the grade, for "grade" and "settle"
    text: str = ""  # explanation
    by: str = ""  # {"model", "depth", "query", "change", "file"}: why the document was shown


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
