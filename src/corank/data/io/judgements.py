"""Judgement lists, read from tables, TREC qrels, LETOR text, books of Quepid, lists of OpenSearch and `_rank_eval`."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from corank.data.collection import as_texts
from corank.data.column_roles import ColumnChoice
from corank.data.durable.text import open_text
from corank.data.io.click_files import HITS
from corank.data.io.frames import parquet_rows
from corank.data.io.letor_reader import read_letor
from corank.data.io.read import detect_format
from corank.data.io.search_responses import is_response
from corank.data.io.table_text import (
    LocatedRows,
    at_path,
    csv_rows,
    json_values,
    jsonl_rows,
    plain_text,
    read_utf8,
    shortened,
    suffix_of,
)
from corank.data.io.trec import is_qrels, read_qrels
from corank.data.judges import JudgeGrades
from corank.errors import InputError

JSON = (".json", ".jsonl", ".ndjson")
LISTS = ("query_doc_pairs", "judgmentRatings", "requests")
"""Keys of the lists of judgements of Quepid, OpenSearch and Elasticsearch."""
ANSWERS, NOTES, QUERY_TEXTS = ("answer",), ("explanation", "note", "reason", "comment"), ("query_text", "user_query")
"""Usual names of the columns of answers, notes and words of queries."""

JUDGMENT = "judgment"
"""Column of grades of UMBRELA, whose other columns are the model, the query, the passage and the answer."""

_WHOLE = re.compile(r"(-?\d+(\.0*)?)?", re.ASCII)
# RankLib's judgements without features: "4 qid:1 # 7555 rambo", and "# qid:1: rambo" for the words of a query
_RANKLIB = re.compile(r"(\S+)\s+qid:(\S+)\s+#\s*(\S+)(?:[ \t]+(\S.*?))?\s*")
_RANKLIB_QUERY = re.compile(r"#\s*qid:(\S+?):\s*(\S.*?)\s*")

Texts = NDArray[np.object_]

GRADED, UNRATEABLE, LATER = "grade", "unrateable", "later"
"""Kinds of answers; the last two have no grade, and are not the grade 0."""


@dataclass(frozen=True, eq=False)
class JudgementList:
    """Answers of judges, one per row; made by `read_judgements`."""

    y: NDArray[np.float64]  # grades; NaN if the judge gave none
    qid: Texts | None  # qid, docids: query and document of each row
    docids: Texts
    judges: Texts | None = None  # judge of each row; None if the file does not name them
    answers: Texts | None = None  # "grade", "unrateable" or "later"; None if all rows are grades or empty
    notes: Texts | None = None  # explanation of each answer, "" for none
    query_texts: Mapping[str, str] = field(default_factory=dict)  # words of queries whose ids are not their words

    def __len__(self) -> int:
        return len(self.y)

    def text_of(self, query: str) -> str:
        """Return the words of a query, or its id if they are unknown."""
        return self.query_texts.get(query) or query

    def count(self, answer: str) -> int:
        """Return the number of answers of a kind."""
        return 0 if self.answers is None else int(np.count_nonzero(self.answers == answer))

    def final(self, rule: str) -> JudgementList:
        """Return one grade per document, without judges, notes and documents without grade."""
        # `JudgeGrades` refuses a grade without a judge
        judges = None if self.judges is None or (self.judges == "").any() else self.judges
        grades = JudgeGrades.of(self.y, self.qid, self.docids, judges)
        y = grades.aggregate(rule)
        first, y = grades.first[~np.isnan(y)], y[~np.isnan(y)]
        return JudgementList(
            y, None if self.qid is None else self.qid[first], self.docids[first], query_texts=self.query_texts
        )

    def decoded(self) -> JudgementList:
        """Return the list with percent-encoded names decoded."""
        qid = None if self.qid is None else as_texts(list(map(unquote, self.qid)))
        return replace(self, qid=qid, docids=as_texts(list(map(unquote, self.docids))))

    def grades_of(self, qid: Texts | None, docids: Texts) -> NDArray[np.float64]:
        """Look up the grades of documents of queries, which may be named by their words; NaN if there is none."""
        known = dict(zip(_keys(self.qid, self.docids), self.y.tolist(), strict=True))
        if self.query_texts:
            known |= {(self.text_of(query), document): grade for (query, document), grade in known.items()}
        return np.array([known.get(key, np.nan) for key in _keys(qid, docids)], dtype=np.float64)


def _keys(qid: Texts | None, docids: Texts) -> list[tuple[str, str]]:
    queries = ["all"] * len(docids) if qid is None else list(map(str, qid.tolist()))
    return list(zip(queries, docids.tolist(), strict=True))


RESPONSES, CLICKS, JUDGEMENTS = "responses", "clicks", "judgements"


def kind_of(path: Path) -> str | None:
    """Return the kind of a file that is not a table of rows: answers of an engine, clicks, judgements; or None."""
    if not path.is_file() or suffix_of(path) in (".csv", ".tsv", ".parquet", ".store"):
        return None
    if suffix_of(path) not in JSON:
        words = open_text(path).first_line().split()  # without the comment
        if len(words) == 2 and words[1].startswith(b"qid:"):
            return JUDGEMENTS if _of_ranklib(path) else None  # else the first row has no features
        return JUDGEMENTS if is_qrels(words) else None
    first = next(json_values(read_utf8(path), str(path)), None)
    value = first[1] if first else None
    hits = at_path(value, "hits", "hits")
    for source in (value, *(at_path(hit, "_source") for hit in (hits if isinstance(hits, list) else ())[:1])):
        if isinstance(source, dict) and ("action_name" in source or any(key in source for key in HITS)):
            return CLICKS
        if isinstance(source, dict) and "judgmentRatings" in source:
            return JUDGEMENTS
    return RESPONSES if is_response(value) else JUDGEMENTS


_Row = tuple[float, str, str, str, str, str]  # grade, query, document, judge, answer, note


def read_judgements(
    path: str | os.PathLike[str],
    *,
    y: str | None = None,
    qid: str | None = None,
    docid: str | None = None,
    judge: str | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> JudgementList:
    """Read grades of documents by one or more judges; the parameters choose columns of a table as in `corank.read`."""
    suffix = suffix_of(path)
    if suffix == ".json":
        return _of_json(path)
    if suffix in JSON or suffix == ".parquet" or detect_format(path) == "csv":
        columns, rows = _rows(path, suffix)
        if suffix in JSON and {*LISTS, "hits"} & set(columns):
            return _of_json(path)
        return _of_table(
            path, columns, rows, ColumnChoice(y=y, qid=qid, docid=docid, judge=judge, drop=drop, keep=keep)
        )
    text = open_text(path)
    if is_qrels(text.first_line().split()):
        qrels = read_qrels(text)
        return JudgementList(qrels.y, qrels.qid, qrels.docids)
    if ranklib := _of_ranklib(path):
        return ranklib
    result = read_letor(text)
    if result.docids is None:
        raise InputError(f"{path} has no document ids, so rows of the same document cannot be found; add them.")
    queries = None if result.qid is None else as_texts(list(map(str, result.qid.tolist())))
    return JudgementList(result.y, queries, result.docids)


def _rows(path: str | os.PathLike[str], suffix: str) -> tuple[list[str], LocatedRows]:
    if suffix == ".parquet":
        return parquet_rows(path)
    return (jsonl_rows if suffix in JSON else csv_rows)(read_utf8(path), str(path))


def _of_table(
    path: str | os.PathLike[str], columns: list[str], rows: LocatedRows, choice: ColumnChoice
) -> JudgementList:
    if _has_judge_columns(columns, rows, choice, path):
        of_judges = _judge_columns(columns, path)
        rows = [(where, {**row, "judge": item, "rating": row.get(item)}) for where, row in rows for item in of_judges]
        columns = [*(item for item in columns if item not in of_judges), "judge", "rating"]
    if choice.y is None and JUDGMENT in columns and not {"label", "grade", "relevance", "rating", "y"} & set(columns):
        choice = replace(choice, y=JUDGMENT)
    roles = choice.roles(columns, path)
    if roles.docid is None or roles.y is None or not rows:
        missing = "no rows" if not rows else "no column of document ids; name it with docid="
        raise InputError(f"{path} has {missing}.")
    # a query without judgement has an empty document
    kept = [(where, row) for where, row in rows if _text(row.get(roles.docid)) or _text(row.get(roles.y))]
    grades = np.array(
        [_grade(row.get(roles.y), f"{where}, column {roles.y!r}") for where, row in kept], dtype=np.float64
    )
    lower = {column.casefold(): column for column in reversed(columns)}
    answer, note, words = (
        next((lower[item] for item in usual if item in lower), None) for usual in (ANSWERS, NOTES, QUERY_TEXTS)
    )
    names = (roles.qid, roles.docid, roles.judge, answer, note)
    cells = [None if name is None else as_texts([_text(row.get(name)) for _, row in kept]) for name in names]
    qid, docids, judges, answers, notes = cells
    if answers is not None and set(answers.tolist()) - {"", GRADED, UNRATEABLE, LATER}:
        answers = None  # a column of that name with another meaning
    texts = {} if words is None or qid is None else {
        query: text for query, (_, row) in zip(qid.tolist(), kept, strict=True) if (text := _text(row.get(words)))
    }  # fmt: skip
    return JudgementList(grades, qid, docids, judges, answers, notes, texts)  # type: ignore[arg-type]


def _judge_columns(columns: list[str], path: str | os.PathLike[str]) -> list[str]:
    """Return the columns that are neither query nor document: one per judge, as in the CSV of Quepid's books."""
    roles = ColumnChoice(y=False).roles(columns, path)
    return [feature for feature in roles.features if roles.y is None and roles.judge is None]


def _has_judge_columns(
    columns: list[str], rows: LocatedRows, choice: ColumnChoice, path: str | os.PathLike[str]
) -> bool:
    """Return whether a table without a label has one column of whole grades per judge."""
    if choice != ColumnChoice() or len(judges := _judge_columns(columns, path)) < 2:
        return False
    cells = {_text(row.get(judge)) for _, row in rows for judge in judges}
    return all(_WHOLE.fullmatch(cell) for cell in cells)


def _text(cell: Any) -> str:
    return "" if cell is None else plain_text(cell).strip()


def _grade(cell: Any, where: str) -> float:
    if _text(cell).lower() in ("", "na", "nan", "null"):
        return float("nan")
    try:
        grade = float(cell)
    except (TypeError, ValueError, OverflowError):
        grade = float("inf")
    if not math.isfinite(grade):
        raise InputError(f"{where}: {shortened(cell)} is not a grade; write a number, or nothing if there is none.")
    return grade


def _of_ranklib(path: str | os.PathLike[str]) -> JudgementList | None:
    """Read judgements of RankLib, which have no features; None if a line is different."""
    rows: list[_Row] = []
    texts: dict[str, str] = {}
    for number, line in enumerate(read_utf8(path).splitlines(), 1):
        if line.startswith("#") or not line.strip():
            query = _RANKLIB_QUERY.fullmatch(line)
            if query:
                texts[query[1]] = query[2]
            continue
        result = _RANKLIB.fullmatch(line)
        if not result or result[3] in ("docid", "docid="):
            return None
        rows.append((_grade(result[1], f"{path}, line {number}"), result[2], result[3], "", GRADED, ""))
        if result[4]:
            texts.setdefault(result[2], result[4])
    return _of_rows(rows, texts) if rows else None


def _of_json(path: str | os.PathLike[str]) -> JudgementList:
    """Read the first kind of judgements that a value has: a book, a list of the workbench, or `_rank_eval`."""
    rows: list[_Row] = []
    texts: dict[str, str] = {}
    n_values = 0
    for where, value in json_values(read_utf8(path), str(path)):
        for item in _unwrapped(value):
            n_values += 1
            if isinstance(pairs := at_path(item, "query_doc_pairs"), list):
                rows += _book_rows(pairs, str(path))
            elif isinstance(ratings := at_path(item, "judgmentRatings"), list):
                is_llm = str(at_path(item, "type")).upper().startswith("LLM")
                model = at_path(item, "metadata", "modelId") or at_path(item, "name") or at_path(item, "id")
                rows += _workbench_rows(ratings, where, f"llm:{model}" if is_llm and model else "")
            elif isinstance(requests := at_path(item, "requests"), list):
                rows += _rank_eval_rows(requests, where, texts)
            else:
                raise InputError(
                    f"{where}: found {shortened(item)}, but no list query_doc_pairs (a book of Quepid), "
                    "judgmentRatings (OpenSearch) or requests (_rank_eval); export the judgements again."
                )
    if not rows:
        raise InputError(f"{path} has no judgements in {n_values} JSON objects; judge some documents first.")
    return _of_rows(rows, texts)


def _unwrapped(value: Any) -> Iterable[Any]:
    """Return the documents of a saved answer of `_search`, or the value itself."""
    if isinstance(value, list):
        return [item for part in value for item in _unwrapped(part)]
    if isinstance(hits := at_path(value, "hits", "hits"), list):
        return [item for hit in hits for item in _unwrapped(hit)]
    return [value["_source"] if isinstance(at_path(value, "_source"), dict) else value]


def _book_rows(pairs: Sequence[Any], path: str) -> list[_Row]:
    rows: list[_Row] = []
    for i, pair in enumerate(pairs, 1):
        where = f"{path}, query_doc_pairs {i}"
        if not isinstance(pair, dict) or pair.get("query_text") is None or pair.get("doc_id") is None:
            raise InputError(f"{where}: expected query_text and doc_id; check the export.")
        judgements = pair.get("judgements")
        for number, item in enumerate(judgements if isinstance(judgements, list) else (), 1):
            if not isinstance(item, dict):
                raise InputError(f"{where}: judgement {number} is {shortened(item)}; expected an object with a rating.")
            answer = UNRATEABLE if item.get("unrateable") else LATER if item.get("judge_later") else GRADED
            grade = _grade(item.get("rating"), f"{where}, judgement {number}") if answer == GRADED else float("nan")
            judge = str(item.get("user_email") or item.get("user_name") or item.get("user_id") or f"unknown {number}")
            if item.get("llm_key") or item.get("ai_judge"):
                judge = f"llm:{judge}"
            note = _text(item.get("explanation"))
            rows.append((grade, str(pair["query_text"]), str(pair["doc_id"]), judge, answer, note))
    return rows


def _workbench_rows(ratings: Sequence[Any], where: str, judge: str) -> list[_Row]:
    rows: list[_Row] = []
    for i, item in enumerate(ratings, 1):
        result = at_path(item, "ratings")
        if at_path(item, "query") is None or not isinstance(result, list):
            raise InputError(f"{where}: judgmentRatings {i} is {shortened(item)}; expected a query and its ratings.")
        for number, rating in enumerate(result, 1):
            place = f"{where}, judgmentRatings {i}, rating {number}"
            if at_path(rating, "docId") is None:
                raise InputError(f"{place} is {shortened(rating)}; expected docId and rating.")
            grade = _grade(rating.get("rating"), place)
            rows.append((grade, str(item["query"]), str(rating["docId"]), judge, GRADED, ""))
    return rows


def _rank_eval_rows(requests: Sequence[Any], where: str, texts: dict[str, str]) -> list[_Row]:
    rows: list[_Row] = []
    for i, item in enumerate(requests, 1):
        ratings = at_path(item, "ratings")
        if at_path(item, "id") is None or not isinstance(ratings, list):
            raise InputError(f"{where}: request {i} is {shortened(item)}; expected an id and its ratings.")
        words = at_path(item, "request", "query", "query_string", "query") or at_path(item, "params", "query_string")
        if isinstance(words, str) and words != str(item["id"]):
            texts[str(item["id"])] = words
        for number, rating in enumerate(ratings, 1):
            place = f"{where}, request {i}, rating {number}"
            if at_path(rating, "_id") is None:
                raise InputError(f"{place} is {shortened(rating)}; expected _index, _id and rating.")
            rows.append((_grade(rating.get("rating"), place), str(item["id"]), str(rating["_id"]), "", GRADED, ""))
    return rows


def _of_rows(rows: Sequence[_Row], texts: Mapping[str, str]) -> JudgementList:
    y, queries, documents, judges, answers, notes = (list(item) for item in zip(*rows, strict=True))
    names = (queries, documents, judges, answers, notes)
    qid, docids, who, kinds, words = (as_texts([plain_text(item) for item in column]) for column in names)
    return JudgementList(
        np.array(y, dtype=np.float64), qid, docids, who if any(judges) else None,
        kinds if set(answers) != {GRADED} else None, words if any(notes) else None,
        {plain_text(query): plain_text(text) for query, text in texts.items()},
    )  # fmt: skip
