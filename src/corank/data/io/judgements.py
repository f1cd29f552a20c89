"""
Judgement lists, read from and written to the formats of other tools.

| format | read by | one grade per document | judges, notes, unrateable, later |
|---|---|---|---|
| ``table`` (CSV; also TSV, Parquet, JSON lines), ``quepid-book`` (JSON) | columns; ``query_doc_pairs`` | no | kept |
| ``quepid`` (CSV), ``opensearch``, ``rank-eval`` (JSON) | ``judgmentRatings``; ``requests`` | yes | counted |
| ``qrels``, ``ranklib`` (text) | number and form of the words of a line | yes | counted |

LETOR text with document ids is read, too, and a log of clicks becomes grades by clicks over expected clicks.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from corank.data.collection import as_texts
from corank.data.column_roles import ANY_COLUMNS, USUAL_NAMES, ColumnChoice
from corank.data.durable.compressed import write_text
from corank.data.durable.text import open_text
from corank.data.io.letor_reader import read_letor
from corank.data.io.read import detect_format
from corank.data.io.tables import (
    JSON,
    Table,
    at_path,
    csv_text,
    json_values,
    plain_text,
    read_table,
    read_utf8,
    shortened,
    suffix_of,
)
from corank.data.io.trec import is_qrels, read_qrels
from corank.data.judges import JudgementList
from corank.errors import InputError, suggest_names

ANSWERS, NOTES, QUERY_TEXTS = ("answer",), ("explanation", "note", "reason", "comment"), ("query_text", "user_query")
"""Usual names of the columns of answers, notes and words of queries."""
JUDGMENT = "judgment"
"""Column of grades of UMBRELA, whose other columns are the model, the query, the passage and the answer."""
GRADED, UNRATEABLE, LATER = "grade", "unrateable", "later"
"""Kinds of answers; the last two have no grade, and are not the grade 0."""

_WHOLE = re.compile(r"(-?\d+(\.0*)?)?", re.ASCII)
# RankLib's judgements without features: "4 qid:1 # 7555 rambo", and "# qid:1: rambo" for the words of a query
_RANKLIB = re.compile(r"(\S+)\s+qid:(\S+)\s+#\s*(\S+)(?:[ \t]+(\S.*?))?\s*")
_RANKLIB_QUERY = re.compile(r"#\s*qid:(\S+?):\s*(\S.*?)\s*")
_ENCODED = "percent-encoded; --decode reverses this"
_FORMULA_SIGNS = ("-", "=", "+", "@", "\t", "\r")


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
        table = read_table(path)
        if suffix in JSON and {*_LISTS, "hits"} & set(table.columns):
            return _of_json(path)
        return _of_table(table, ColumnChoice(y=y, qid=qid, docid=docid, judge=judge, drop=drop, keep=keep))
    text = open_text(path)
    if is_qrels(text.first_line().split()):
        qrels = read_qrels(text)
        return JudgementList(qrels.y, qrels.qid, qrels.docids)
    if ranklib := read_ranklib(path):
        return ranklib
    rows = read_letor(text)
    if rows.docids is None:
        raise InputError(f"{path} has no document ids, so rows of the same document cannot be found; add them.")
    queries = None if rows.qid is None else as_texts(list(map(str, rows.qid.tolist())))
    return JudgementList(rows.y, queries, rows.docids)


def _of_table(table: Table, choice: ColumnChoice) -> JudgementList:
    if choice == ANY_COLUMNS and (judges := _judge_columns(table)):
        table = _unpivoted(table, judges)
    if choice.y is None and JUDGMENT in table.columns and not {*USUAL_NAMES["y"]} & set(table.columns):
        choice = replace(choice, y=JUDGMENT)
    roles = table.roles(choice)
    if roles.docid is None or roles.y is None or not len(table):
        missing = "no rows" if not len(table) else "no column of document ids; name it with docid="
        raise InputError(f"{table.name} has {missing}.")
    documents = table.texts(roles.docid)
    # a query without judgement has an empty document
    used = [row for row, texts in enumerate(zip(documents, table.texts(roles.y), strict=True)) if any(texts)]
    cells, column = table.columns[roles.y], f"column {roles.y!r}"
    grades = np.array([_grade(cells[row], f"{table.place(row)}, {column}") for row in used], dtype=np.float64)

    def texts_of(name: str | None) -> Any:
        return None if name is None else as_texts(table.texts(name))[used]

    qid, answers, words = texts_of(roles.qid), texts_of(table.find(ANSWERS)), texts_of(table.find(QUERY_TEXTS))
    if answers is not None and set(answers.tolist()) - {"", GRADED, UNRATEABLE, LATER}:
        answers = None  # a column of that name with another meaning
    pairs = () if qid is None or words is None else zip(qid.tolist(), words.tolist(), strict=True)
    return JudgementList(
        grades, qid, as_texts(documents)[used], texts_of(roles.judge), answers, texts_of(table.find(NOTES)),
        {query: text for query, text in pairs if text},
    )  # fmt: skip


def _judge_columns(table: Table) -> list[str]:
    """Return the columns of a table without a label that hold the whole grades of a judge each, as in Quepid's CSV."""
    roles = table.roles(ColumnChoice(y=False))
    if roles.y is not None or roles.judge is not None or len(roles.features) < 2:
        return []
    cells = {text for name in roles.features for text in table.texts(name)}
    return list(roles.features) if all(map(_WHOLE.fullmatch, cells)) else []


def _unpivoted(table: Table, judges: Sequence[str]) -> Table:
    """Return one row per judge."""
    n, kept = len(judges), [name for name in table.columns if name not in judges]
    columns = {name: [cell for cell in table.columns[name] for _ in judges] for name in kept}
    columns["judge"] = [*judges] * len(table)
    columns["rating"] = [table.columns[judge][row] for row in range(len(table)) for judge in judges]
    return Table(table.name, columns, lambda row: table.place(row // n))


def _grade(cell: Any, where: str) -> float:
    if ("" if cell is None else plain_text(cell).strip()).lower() in ("", "na", "nan", "null"):
        return float("nan")
    try:
        grade = float(cell)
    except (TypeError, ValueError, OverflowError):
        grade = float("inf")
    if not math.isfinite(grade):
        raise InputError(f"{where}: {shortened(cell)} is not a grade; write a number, or nothing if there is none.")
    return grade


class _Answers:
    """Collects answers one by one."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, str, str, str, str, str]] = []
        self.texts: dict[str, str] = {}  # words of queries

    def add(
        self, cell: Any, where: str, query: object, document: object, judge: str = "", answer: str = GRADED,
        note: object = "",
    ) -> None:  # fmt: skip
        grade = _grade(cell, where) if answer == GRADED else float("nan")
        texts = (plain_text(item) for item in (query, document, judge, answer))
        self.rows.append((grade, *texts, "" if note is None else plain_text(note).strip()))  # type: ignore[arg-type]

    def result(self) -> JudgementList:
        y, queries, documents, judges, answers, notes = (list(column) for column in zip(*self.rows, strict=True))
        return JudgementList(
            np.array(y, dtype=np.float64), as_texts(queries), as_texts(documents),
            as_texts(judges) if any(judges) else None, as_texts(answers) if set(answers) != {GRADED} else None,
            as_texts(notes) if any(notes) else None,
            {plain_text(query): plain_text(text) for query, text in self.texts.items()},
        )  # fmt: skip


def read_ranklib(path: str | os.PathLike[str]) -> JudgementList | None:
    """Read judgements of RankLib, which have no features; None if a line is different."""
    answers = _Answers()
    for number, line in enumerate(read_utf8(path).splitlines(), 1):
        if line.startswith("#") or not line.strip():
            if query := _RANKLIB_QUERY.fullmatch(line):
                answers.texts[query[1]] = query[2]
            continue
        words = _RANKLIB.fullmatch(line)
        if not words or words[3] in ("docid", "docid="):
            return None
        answers.add(words[1], f"{path}, line {number}", words[2], words[3])
        if words[4]:
            answers.texts.setdefault(words[2], words[4])
    return answers.result() if answers.rows else None


def _of_json(path: str | os.PathLike[str]) -> JudgementList:
    """Read the first kind of judgements that a value has: a book, a list of the workbench, or `_rank_eval`."""
    answers = _Answers()
    n_values = 0
    for where, value in json_values(read_utf8(path), str(path)):
        for item in _unwrapped(value):
            n_values += 1
            kind = next((key for key in _LISTS if isinstance(at_path(item, key), list)), None)
            if kind is None:
                raise InputError(
                    f"{where}: found {shortened(item)}, but no list of Quepid, OpenSearch or _rank_eval "
                    f"({', '.join(_LISTS)}); export the judgements again."
                )
            for number, entry in enumerate(item[kind], 1):
                place = f"{path if kind == 'query_doc_pairs' else where}, {kind} {number}"
                _LISTS[kind](answers, entry, place, item)
    if not answers.rows:
        raise InputError(f"{path} has no judgements in {n_values} JSON objects; judge some documents first.")
    return answers.result()


def _unwrapped(value: Any) -> Iterable[Any]:
    """Return the documents of a saved answer of `_search`, or the value itself."""
    if isinstance(value, list):
        return [item for part in value for item in _unwrapped(part)]
    if isinstance(hits := at_path(value, "hits", "hits"), list):
        return [item for hit in hits for item in _unwrapped(hit)]
    return [value["_source"] if isinstance(at_path(value, "_source"), dict) else value]


def _add_book_pair(answers: _Answers, pair: Any, where: str, book: Any) -> None:
    query, document, judgements = (at_path(pair, key) for key in ("query_text", "doc_id", "judgements"))
    if query is None or document is None:
        raise InputError(f"{where}: expected query_text and doc_id; check the export.")
    for number, item in enumerate(judgements if isinstance(judgements, list) else (), 1):
        if not isinstance(item, dict):
            raise InputError(f"{where}: judgement {number} is {shortened(item)}; expected an object with a rating.")
        answer = UNRATEABLE if item.get("unrateable") else LATER if item.get("judge_later") else GRADED
        judge = str(item.get("user_email") or item.get("user_name") or item.get("user_id") or f"unknown {number}")
        if item.get("llm_key") or item.get("ai_judge"):
            judge = f"llm:{judge}"
        place = f"{where}, judgement {number}"
        answers.add(item.get("rating"), place, query, document, judge, answer, item.get("explanation"))


def _add_ratings(query_key: str, document_key: str, answers: _Answers, item: Any, where: str, content: Any) -> None:
    """Add the ratings of a query in a list of the workbench, whose judge may be a model, or in `_rank_eval`."""
    query, ratings = at_path(item, query_key), at_path(item, "ratings")
    if query is None or not isinstance(ratings, list):
        raise InputError(f"{where} is {shortened(item)}; expected {query_key} and ratings.")
    is_llm = str(at_path(content, "type")).upper().startswith("LLM")
    model = at_path(content, "metadata", "modelId") or at_path(content, "name") or at_path(content, "id")
    for number, rating in enumerate(ratings, 1):
        place = f"{where}, rating {number}"
        if at_path(rating, document_key) is None:
            raise InputError(f"{place} is {shortened(rating)}; expected {document_key} and rating.")
        judge = f"llm:{model}" if is_llm and model else ""
        answers.add(rating.get("rating"), place, query, rating[document_key], judge)
    words = at_path(item, "request", "query", "query_string", "query") or at_path(item, "params", "query_string")
    if isinstance(words, str) and words != str(query):
        answers.texts[str(query)] = words


_LISTS: dict[str, Callable[[_Answers, Any, str, Any], None]] = {
    "query_doc_pairs": _add_book_pair, "judgmentRatings": partial(_add_ratings, "query", "docId"),
    "requests": partial(_add_ratings, "id", "_id"),
}  # fmt: skip
"""Keys of the lists of judgements of Quepid, OpenSearch and Elasticsearch, and how an element is read."""


def write_judgements(
    path: str | os.PathLike[str],
    judgements: JudgementList,
    format: str,
    *,
    rule: str = "median",
    name: str = "corank",
    index: str = "documents",
    overwrite: bool = False,
) -> list[str]:
    """
    Write judgements atomically in a format of the table above, and return what the format cannot keep, in words such as
    "2 notes".

    path: the suffixes .gz, .xz and .zst select compression, "-" is standard output.
    rule: grade of a document with several grades: "median", "mean" or "majority".
    name, index: name of the list or book, and index of the documents of `_rank_eval`.
    """
    if format not in JUDGEMENT_WRITERS:
        raise InputError(f"the format {format!r} is unknown; {suggest_names(format, list(JUDGEMENT_WRITERS))}.")
    if format in COMPLETE_FORMATS:
        lost: list[str] = []
    else:
        lost = _lost(judgements, rule)
        judgements = judgements.final(rule)
        if not len(judgements):
            raise InputError("there are no grades to write; grade some documents first.")
    text, more = JUDGEMENT_WRITERS[format](judgements, name, index)
    with write_text(path, overwrite=overwrite) as stream:
        stream.write(text.encode(errors="surrogateescape"))
    return lost + more


def decoded(judgements: JudgementList) -> JudgementList:
    """Return judgements with percent-encoded names decoded."""
    qid = None if judgements.qid is None else as_texts(list(map(unquote, judgements.qid)))
    return replace(judgements, qid=qid, docids=as_texts(list(map(unquote, judgements.docids))))


def _lost(judgements: JudgementList, rule: str) -> list[str]:
    """Return what a format with one grade per document cannot keep, in words."""
    judges = set() if judgements.judges is None else set(judgements.judges.tolist()) - {""}
    n_notes = 0 if judgements.notes is None else int(np.count_nonzero(judgements.notes != ""))
    counts = {"note" + "s" * (n_notes != 1): n_notes}
    counts |= {f"{answer!r}": judgements.count(answer) for answer in (UNRATEABLE, LATER)}
    names = ["the name of the judge"] * bool(judges)
    if len(judges) > 1:
        names = [f"the {len(judges)} judges (each document has the {rule} of its grades)"]
    return names + [f"{count} {what}" for what, count in counts.items() if count]


def _columns(judgements: JudgementList) -> Iterator[tuple[str, str, float, str, str, str]]:
    """Yield query, document, grade, judge, answer and note of each row, "" for nothing."""
    n = len(judgements)
    texts = (judgements.judges, judgements.answers, judgements.notes)
    cells = [[""] * n if column is None else column.tolist() for column in texts]
    queries = ["all"] * n if judgements.qid is None else judgements.qid.tolist()
    return zip(queries, judgements.docids.tolist(), judgements.y.tolist(), *cells, strict=True)


def _whole(grade: float) -> int | float:
    return int(grade) if grade.is_integer() else grade


def _by_query(judgements: JudgementList) -> dict[str, list[tuple[str, int | float]]]:
    """Return the documents and grades of each query, in the order in which queries first appear."""
    result: dict[str, list[tuple[str, int | float]]] = {}
    for query, document, grade, *_ in _columns(judgements):
        result.setdefault(query, []).append((document, _whole(grade)))
    return result


Written = tuple[str, list[str]]


def _as_table(judgements: JudgementList, name: str, index: str) -> Written:
    """CSV: query, docid, rating, judge, answer, explanation."""
    rows: list[Sequence[object]] = [("query", "query_text", "docid", "rating", "judge", "answer", "explanation")]
    for query, document, grade, judge, answer, note in _columns(judgements):
        rating: object = _whole(grade) if grade == grade else ""
        text, kind = judgements.query_texts.get(query, ""), answer or (GRADED if rating != "" else "")
        rows.append((query, text, document, rating, judge, kind, note))
    return csv_text(rows), []


def _as_quepid(judgements: JudgementList, name: str, index: str) -> Written:
    """CSV for a case of Quepid: query, docid, rating."""

    def guarded(text: str) -> str:
        """Put a blank before signs that a spreadsheet would run, as Quepid does; readers strip it."""
        return f" {text}" if text.startswith(_FORMULA_SIGNS) else text

    rows: list[Sequence[object]] = [("query", "docid", "rating")]
    for query, graded in _by_query(judgements).items():
        rows += [(guarded(judgements.text_of(query)), guarded(document), grade) for document, grade in graded]
    return csv_text(rows, keep_formulas=True), []


def _as_book(judgements: JudgementList, name: str, index: str) -> Written:
    """JSON of a book of Quepid."""
    pairs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for query, document, grade, judge, answer, note in _columns(judgements):
        answers = pairs.setdefault((query, document), [])
        if grade != grade and (answer == GRADED or judgements.answers is None):
            continue  # an unjudged document
        answers.append(
            {
                "rating": None if grade != grade else grade, "unrateable": answer == UNRATEABLE,
                "judge_later": answer == LATER, "user_email": judge, "explanation": note,
            }
        )  # fmt: skip
    grades = sorted({_whole(grade) for grade in judgements.y.tolist() if grade == grade})
    book: dict[str, Any] = {
        "name": name, "scale": grades, "scale_with_labels": {str(grade): "" for grade in grades},
        "query_doc_pairs": [
            {
                "query_text": judgements.text_of(query), "doc_id": document, "position": None, "information_need": "",
                "document_fields": {}, "notes": "", "options": {}, "judgements": answers,
            }
            for (query, document), answers in pairs.items()
        ],
    }  # fmt: skip
    n_lost = sum(text != query for query, text in judgements.query_texts.items())
    return _json(book), [f"{n_lost} ids of queries (the book has their words)"] * bool(n_lost)


def _as_workbench(judgements: JudgementList, name: str, index: str) -> Written:
    """Judgement list of OpenSearch's Search Relevance Workbench."""
    ratings = [
        {"query": judgements.text_of(query), "ratings": [{"docId": item, "rating": grade} for item, grade in graded]}
        for query, graded in _by_query(judgements).items()
    ]
    return _json({"name": name, "description": "", "type": "IMPORT_JUDGMENT", "judgmentRatings": ratings}), []


def _as_rank_eval(judgements: JudgementList, name: str, index: str) -> Written:
    """Request of Elasticsearch's `_rank_eval`, whose queries are to be replaced by those of the application."""
    requests = []
    not_whole = int(np.count_nonzero(judgements.y != np.floor(judgements.y)))
    if not_whole:
        raise InputError(
            f"{not_whole} grades are not whole numbers, which _rank_eval requires; round them, or aggregate judges by "
            "their median."
        )
    for query, graded in _by_query(judgements).items():
        ratings = [{"_index": index, "_id": document, "rating": grade} for document, grade in graded]
        search = {"query": {"query_string": {"query": judgements.text_of(query)}}}
        requests.append({"id": query, "request": search, "ratings": ratings})
    return _json({"requests": requests, "metric": {"dcg": {"k": 10, "normalize": True}}}), []


def _as_qrels(judgements: JudgementList, name: str, index: str) -> Written:
    """Text for trec_eval, with blanks in names percent-encoded."""
    lines, encoded = [], set()
    for query, graded in _by_query(judgements).items():
        for document, grade in graded:
            names = encode_name(query), encode_name(document)
            encoded |= {query, document} - {*names}
            lines.append(f"{names[0]} 0 {names[1]} {grade}\n")
    lost = [f"the words of {len(judgements.query_texts)} queries"] * bool(judgements.query_texts)
    return "".join(lines), lost + [f"blanks in {len(encoded)} names ({_ENCODED})"] * bool(encoded)


def _as_ranklib(judgements: JudgementList, name: str, index: str) -> Written:
    """Text for RankLib, with blanks in names percent-encoded."""
    head, lines, encoded = [], [], 0
    for number, (query, graded) in enumerate(_by_query(judgements).items(), 1):
        words = " ".join(judgements.text_of(query).split())
        head.append(f"# qid:{number}: {words}\n")
        for document, grade in graded:
            encoded += encode_name(document) != document
            lines.append(f"{grade} qid:{number} # {encode_name(document)} {words}\n")
    return "".join([*head, "\n", *lines]), [f"blanks in {encoded} document ids ({_ENCODED})"] * bool(encoded)


def encode_name(name: str) -> str:
    """Percent-encode the blanks of a name, so that it is one word; a name without blanks stays as it is."""
    if not any(item.isspace() for item in name):
        return name
    return "".join(quote(item) if item.isspace() or item == "%" else item for item in name)


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


JUDGEMENT_WRITERS: dict[str, Callable[[JudgementList, str, str], Written]] = {
    "table": _as_table, "quepid": _as_quepid, "quepid-book": _as_book, "opensearch": _as_workbench,
    "rank-eval": _as_rank_eval, "qrels": _as_qrels, "ranklib": _as_ranklib,
}  # fmt: skip
"""Each format: a function of judgements, name and index that returns the text, and what it does not keep."""
COMPLETE_FORMATS = ("table", "quepid-book")
"""Formats that keep judges, notes and answers without a grade."""
