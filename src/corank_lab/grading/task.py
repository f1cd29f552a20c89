"""
What is graded: queries, documents with texts and features, and the scale; and how they are read.

Files are tables, CSV and books of Quepid, and TREC runs with texts.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.data import (
    ColumnChoice,
    current_budget,
    read_run,
    read_table,
    read_utf8,
    suffix_of,
)
from corank.errors import InputError
from corank_lab.database.journal import JournalEntry

DEFAULT_SCALE = ((0, "Poor"), (1, "Fair"), (2, "Good"), (3, "Perfect"))


@dataclass(frozen=True)
class GradingScale:
    """The grades that judges may give."""

    grades: tuple[int, ...] = tuple(grade for grade, _ in DEFAULT_SCALE)  # the lowest first
    labels: tuple[str, ...] = tuple(label for _, label in DEFAULT_SCALE)  # one per grade; may be empty texts

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
    """A query."""

    id: str  # short name without blanks, for judgement lists
    text: str  # what the user typed
    need: str = ""  # what the user wants to know


@dataclass(frozen=True)
class GradingDocument:
    """A document of a query."""

    query: int  # number of the query
    id: str  # name of the document
    fields: Mapping[str, str] = field(default_factory=dict)  # what is shown, by column
    position: int = 0  # rank in the list that was judged, from 1; hidden from judges by default


@dataclass(frozen=True, eq=False)
class GradingTask:
    """Queries and their documents."""

    queries: Sequence[GradingQuery]
    documents: Sequence[GradingDocument]  # of all queries, each once per query
    X: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))  # features; no columns by default
    columns: Sequence[str] = ()  # names of the features
    scale: GradingScale | None = None  # the scale that the file names
    has_order: bool = False  # whether positions are ranks of a search engine; otherwise they only count rows

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
    """The last answer of a judge about a document."""

    action: str  # what the judge did
    grade: int | None  # None for the other actions
    text: str = ""  # explanation


Path = str | os.PathLike[str]
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_TEXTS = ("query_text", "query_string", "user_query")
_NEEDS = ("information_need", "need", "narrative", "description_of_need")
_POSITIONS = ("position", "rank")
_REASONS = ("why", "probability", "share", "time")  # columns of `corank suggest` that judges should not see
_BLANK = re.compile(r"\s")
_PLACE = re.compile(r"\d{1,9}(\.0*)?")
MAX_GRADE = 100


class GradingFile(NamedTuple):
    """Content of files to grade."""

    task: GradingTask  # queries and documents
    known: Sequence[tuple[str, GradingEntry]]  # judge and entry of each grade in the files


def read_grading_task(path: Path, *more_paths: Path) -> GradingFile:
    """Read queries, documents and grades that they have already."""
    if any(suffix_of(entry) == ".index" for entry in (path, *more_paths)):
        raise InputError(
            "an index keeps no texts; search it with corank search wiki.index --queries queries.tsv -o bm25.run, and "
            "send the run with a table of the documents."
        )
    first, *rest = sorted([path, *more_paths], key=lambda item: suffix_of(item) in _TABLES)
    if suffix_of(first) not in _TABLES and suffix_of(first) != ".json":
        return GradingFile(_of_run(first, rest), [])
    if more_paths:
        raise InputError(f"found {len(more_paths) + 1} files without a TREC run; send one table or book.")
    if suffix_of(path) == ".json":
        return _of_book(path)
    return _of_table(path)


def _of_table(path: Path) -> GradingFile:
    table = read_table(path)
    columns, rows = table.names, table.rows()
    roles = ColumnChoice(y=False).roles(columns, path)
    if roles.qid is None or roles.docid is None:
        what = "queries" if roles.qid is None else "documents"
        raise InputError(
            f"{path} has no column of {what} ({', '.join(columns[:8])}); name the columns query and docid, and rating "
            "if there are grades."
        )
    lower = {column.casefold(): column for column in reversed(columns)}
    text_column = next((lower[item] for item in _TEXTS if item in lower), None)
    need_column = next((lower[item] for item in _NEEDS if item in lower), None)
    place_column = next((lower[item] for item in _POSITIONS if item in lower), None)
    shown = [item for item in columns if item not in (roles.qid, roles.docid, roles.y, roles.judge, place_column)]
    shown = [item for item in shown if item not in (text_column, need_column) and item.casefold() not in _REASONS]
    builder = TaskBuilder(str(path))
    cells: list[dict[str, Any]] = []
    for where, row in rows:
        document = _text(row.get(roles.docid))
        if not document:  # a query of Quepid without a document
            continue
        query = _text(row.get(roles.qid))
        fields = {item: text for item in shown if (text := _text(row.get(item)))}
        position = _text(row.get(place_column)) if place_column else ""
        need = _text(row.get(need_column)) if need_column else ""
        text = (_text(row.get(text_column)) if text_column else "") or query
        is_new = builder.add(where, query, text, need, document, fields, position)
        builder.has_order |= bool(position)
        if is_new:
            cells.append(row)
        if roles.y is not None and (grade := _text(row.get(roles.y))):
            judge = (_text(row.get(roles.judge)) if roles.judge else "") or "file"
            builder.answer(where, query, document, judge, "grade", grade)
    X, names = _features(cells, [item for item in shown if item in roles.features])
    return builder.result(X, names)


def _of_book(path: Path) -> GradingFile:
    text = read_utf8(path)
    current_budget().take_json(text, path)
    try:
        book = json.loads(text)
    except (ValueError, RecursionError):
        book = None
    pairs = book.get("query_doc_pairs") if isinstance(book, dict) else None
    if not isinstance(book, dict) or not isinstance(pairs, list):
        raise InputError(f"{path} has no list query_doc_pairs, so it is not a book of Quepid; export the book as JSON.")
    builder = TaskBuilder(str(path))
    for i, pair in enumerate(pairs, 1):
        where = f"{path}, query_doc_pairs {i}"
        if not isinstance(pair, dict) or pair.get("query_text") is None or pair.get("doc_id") is None:
            raise InputError(f"{where}: expected query_text and doc_id; check the export.")
        query, document, given = _text(pair["query_text"]), _text(pair["doc_id"]), pair.get("document_fields")
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                given = {"text": given}
        fields = {_text(k): _text(v) for k, v in given.items()} if isinstance(given, dict) else {}
        need = _text(pair.get("information_need")) or _text(pair.get("notes"))
        position = _text(pair.get("position"))
        builder.add(where, query, query, need, document, fields, position)
        builder.has_order |= bool(position)
        judgements = pair.get("judgements")
        for number, item in enumerate(judgements if isinstance(judgements, list) else (), 1):
            if not isinstance(item, dict):
                raise InputError(f"{where}: judgement {number} is {item!r:.60}; expected an object with a rating.")
            judge = _text(item.get("user_email") or item.get("user_id")) or f"unknown {number}"
            note = _text(item.get("explanation"))
            if item.get("unrateable") or item.get("judge_later"):
                action = "unrateable" if item.get("unrateable") else "later"
                builder.answer(where, query, document, judge, action, text=note)
            elif item.get("rating") is not None:
                builder.answer(where, query, document, judge, "grade", _text(item["rating"]), note)
    return builder.result(scale=_book_scale(book))


def _book_scale(book: Mapping[str, Any]) -> GradingScale | None:
    grades, labels = book.get("scale"), book.get("scale_with_labels")
    if isinstance(grades, str):
        grades = grades.split(",")
    try:
        numbers = sorted({int(float(grade)) for grade in grades}) if isinstance(grades, list) else []
    except (TypeError, ValueError, OverflowError):
        return None
    names = {_text(k): _text(v) for k, v in labels.items()} if isinstance(labels, dict) else {}
    if len(numbers) < 2 or numbers[0] < 0 or numbers[-1] > MAX_GRADE:
        return None
    return GradingScale(tuple(numbers), tuple(names.get(str(number), "") for number in numbers))


def _of_run(path: Path, tables: Sequence[Path]) -> GradingTask:
    run = read_run(path)
    texts: dict[str, dict[str, str]] = {}
    queries: dict[str, str] = {}
    for file in tables:
        table = read_table(file)
        columns, rows, roles = table.names, table.rows(), table.roles(ColumnChoice(y=False))
        if roles.docid is not None and roles.qid is None:
            others = [column for column in columns if column != roles.docid]
            for _, row in rows:
                texts[_text(row.get(roles.docid))] = {
                    other: text for other in others if (text := _text(row.get(other)))
                }
        elif roles.qid is not None and len(columns) > 1:
            queries |= _queries(columns, roles.qid, rows)
        else:
            raise InputError(
                f"{file} has neither a column docid with texts nor a column qid with queries; name its columns so."
            )
    builder = TaskBuilder(str(path))
    builder.has_order = True
    order = np.lexsort([-run.scores, run.qid.astype(str)])
    scores = []
    for row in order.tolist():
        query, document = str(run.qid[row]), str(run.docids[row])
        if builder.add(f"{path}", query, queries.get(query, query), "", document, texts.get(document, {}), ""):
            scores.append(float(run.scores[row]))
    return builder.result(np.array(scores)[:, None], ["score"]).task


def _queries(columns: Sequence[str], qid: str, rows: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """Return the texts of queries by id; the id is the text if there is no other column."""
    other = next((column for column in columns if column != qid), qid)
    return {id: _text(row.get(other)) or id for _, row in rows if (id := _text(row.get(qid)))}


class TaskBuilder:
    """Collects queries, documents and grades."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._queries: dict[str, tuple[int, GradingQuery]] = {}  # number and query, by text or id in the file
        self._ids: set[str] = set()
        self._documents: dict[tuple[int, str], GradingDocument] = {}
        self._counts: Counter[int] = Counter()
        self._known: list[tuple[str, GradingEntry]] = []
        self._grades: set[int] = set()
        self.has_order = False

    def add(
        self, where: str, query: str, text: str, need: str, document: str, fields: dict[str, str], position: str
    ) -> bool:
        """Add a document; return whether it is new."""
        if not query:
            raise InputError(f"{where}: the query is empty; fill the column.")
        if query not in self._queries:
            number = len(self._queries)
            id = f"q{number + 1}" if _BLANK.search(query) or len(query) > 40 else query
            while id in self._ids:
                id += "_"
            self._ids.add(id)
            self._queries[query] = (number, GradingQuery(id, text, need))
        number = self._queries[query][0]
        if (number, document) in self._documents:
            return False
        self._counts[number] += 1
        place = int(float(position)) if _PLACE.fullmatch(position) else self._counts[number]
        self._documents[number, document] = GradingDocument(number, document, fields, place)
        return True

    def answer(
        self, where: str, query: str, document: str, judge: str, action: str, grade: str = "", text: str = ""
    ) -> None:
        """Add what a judge said of a document."""
        if action == "grade":
            try:
                number = float(grade)
            except ValueError:
                number = -1.0
            if not number.is_integer() or not 0 <= number <= MAX_GRADE:
                raise InputError(
                    f"{where}: the grade is {grade!r:.40}; expected a whole number from 0 to {MAX_GRADE}, or nothing."
                )
            grade = str(int(number))
            self._grades.add(int(number))
        id = self._queries[query][1].id
        self._known.append((judge, GradingEntry(action, id, document, grade, text, "file")))

    def result(self, X: Any = None, columns: Sequence[str] = (), scale: GradingScale | None = None) -> GradingFile:
        if not self._documents:
            raise InputError(f"{self._path} has no documents; expected a query and a document in each row.")
        default = GradingScale()
        if self._grades - set((scale or default).grades):
            highest = max(self._grades | set((scale or default).grades))
            scale = GradingScale(tuple(range(highest + 1)), ("",) * (highest + 1)) if highest <= 10 else None
            if scale is None:
                raise InputError(f"{self._path} has grades up to {highest}; grades from 0 to 10 can be given on pages.")
        X = np.empty((0, 0)) if X is None else X
        documents = list(self._documents.values())
        return GradingFile(
            GradingTask([query for _, query in self._queries.values()], documents, X, columns, scale, self.has_order),
            self._known,
        )


def _features(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> tuple[Any, list[str]]:
    """Return the numeric columns without gaps."""
    result, names = [], []
    for column in columns:
        try:
            values = np.array([float(row.get(column, "")) for row in rows], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            continue
        if np.isfinite(values).all():
            result.append(values)
            names.append(column)
    return (np.column_stack(result), names) if result else (None, [])


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).encode("utf-8", "replace").decode().strip()
