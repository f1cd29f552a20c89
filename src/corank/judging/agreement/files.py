"""Read judgements from files: tables with or without features, TREC qrels, LETOR text and books of Quepid."""

from __future__ import annotations

import json
import os
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.data.formats.frames import parquet_rows
from corank.data.formats.read import detect_format, is_number
from corank.data.formats.table_text import LocatedRows, csv_rows, read_utf8, suffix_of
from corank.data.formats.text import open_text
from corank.data.formats.trec import QRELS_COLUMNS, read_qrels
from corank.data.letor.reader import read_letor
from corank.data.problem.collection import as_texts
from corank.data.problem.column_roles import ColumnChoice
from corank.errors import InputError

Texts = NDArray[np.object_]
_WHOLE = re.compile(r"(-?\d+(\.0*)?)?", re.ASCII)


class JudgementList(NamedTuple):
    """
    Grades of documents, one per row.

    Attributes
    ----------
    y : array of float64
        Grades; NaN if the judge gave none.
    qid, docids : arrays of str objects, or None for the query
        Query and document of each row.
    judges : array of str objects or None
        Judge of each row; None if the file does not name them.
    """

    y: NDArray[np.float64]
    qid: Texts | None
    docids: Texts
    judges: Texts | None


def read_judgements(
    path: str | os.PathLike[str],
    *,
    y: str | None = None,
    qid: str | None = None,
    docid: str | None = None,
    judge: str | None = None,
) -> JudgementList:
    """
    Read grades of documents by one or more judges.

    Parameters
    ----------
    path : path
        A table (.csv, .tsv or .parquet) with columns of queries, documents, grades and, if known, judges; a book of
        Quepid (.json, or .csv with one column per judge); TREC qrels; or LETOR text with document ids. Other columns
        of a table are ignored.
    y, qid, docid, judge : str, optional
        Columns of a table; by default those with usual names, see `corank.read`.

    Returns
    -------
    JudgementList
        The grades, in the order of the file.
    """
    suffix = suffix_of(path)
    if suffix == ".json":
        return _read_book(path)
    if suffix == ".parquet" or detect_format(path) == "csv":
        columns, rows = parquet_rows(path) if suffix == ".parquet" else csv_rows(read_utf8(path), str(path))
        return _of_table(path, columns, rows, ColumnChoice(y=y, qid=qid, docid=docid, judge=judge))
    text = open_text(path)
    words = text.first_line().split()
    if len(words) == len(QRELS_COLUMNS) and b":" not in words[1] and is_number(words[3]):
        qrels = read_qrels(text)
        return JudgementList(qrels.y, qrels.qid, qrels.docids, None)
    found = read_letor(text)
    if found.docids is None:
        raise InputError(f"{path} has no document ids, so rows of the same document cannot be found; add them.")
    queries = None if found.qid is None else as_texts(list(map(str, found.qid.tolist())))
    return JudgementList(found.y, queries, found.docids, None)


def _of_table(
    path: str | os.PathLike[str], columns: list[str], rows: LocatedRows, choice: ColumnChoice
) -> JudgementList:
    if _has_judge_columns(columns, rows, choice, path):
        judges = _judge_columns(columns, path)
        rows = [(where, {**row, "judge": one, "rating": row[one]}) for where, row in rows for one in judges]
        columns = [*(one for one in columns if one not in judges), "judge", "rating"]
    roles = choice.roles(columns, path)
    if roles.docid is None or roles.y is None or not rows:
        missing = "no rows" if not rows else "no column of document ids; name it with docid="
        raise InputError(f"{path} has {missing}.")
    # a query without judgement has an empty document
    kept = [(where, row) for where, row in rows if _text(row[roles.docid]) or _text(row[roles.y])]
    grades = np.array([_grade(row[roles.y], f"{where}, column {roles.y!r}") for where, row in kept], dtype=np.float64)
    names = (roles.qid, roles.docid, roles.judge)
    ids = [None if name is None else as_texts([_text(row[name]) for _, row in kept]) for name in names]
    return JudgementList(grades, ids[0], ids[1], ids[2])  # type: ignore[arg-type]


def _judge_columns(columns: list[str], path: str | os.PathLike[str]) -> list[str]:
    """Return the columns that are neither query nor document: one per judge, as in the CSV of Quepid's books."""
    roles = ColumnChoice(y=False).roles(columns, path)
    return [one for one in roles.features if roles.y is None and roles.judge is None]


def _has_judge_columns(
    columns: list[str], rows: LocatedRows, choice: ColumnChoice, path: str | os.PathLike[str]
) -> bool:
    """Return whether a table without a label has one column of whole grades per judge."""
    if choice != ColumnChoice() or len(judges := _judge_columns(columns, path)) < 2:
        return False
    cells = {_text(row[one]) for _, row in rows for one in judges}
    return all(_WHOLE.fullmatch(cell) for cell in cells)


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _grade(cell: Any, where: str) -> float:
    if _text(cell).lower() in ("", "na", "nan", "null"):
        return float("nan")
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise InputError(f"{where}: {cell!r} is not a grade; write a number, or nothing if there is none.") from None


def _read_book(path: str | os.PathLike[str]) -> JudgementList:
    """Read a book of Quepid; judgements that were postponed, or declared impossible, are unjudged."""
    try:
        book = json.loads(read_utf8(path))
    except (ValueError, RecursionError):
        book = None
    pairs = book.get("query_doc_pairs") if isinstance(book, dict) else None
    if not isinstance(pairs, list):
        raise InputError(f"{path} has no list query_doc_pairs, so it is not a book of Quepid; export the book as JSON.")
    rows: list[tuple[float, str, str, str]] = []
    for at, pair in enumerate(pairs, 1):
        where = f"{path}, query_doc_pairs {at}"
        if not isinstance(pair, dict) or pair.get("query_text") is None or pair.get("doc_id") is None:
            raise InputError(f"{where}: expected query_text and doc_id; check the export.")
        judgements = pair.get("judgements")
        for number, one in enumerate(judgements if isinstance(judgements, list) else (), 1):
            if not isinstance(one, dict):
                raise InputError(f"{where}: judgement {number} is {one!r}; expected an object with a rating.")
            is_graded = not (one.get("unrateable") or one.get("judge_later"))
            grade = _grade(one.get("rating"), f"{where}, judgement {number}") if is_graded else float("nan")
            judge = str(one.get("user_email") or one.get("user_id") or f"unknown {number}")
            rows.append((grade, str(pair["query_text"]), str(pair["doc_id"]), judge))
    if not rows:
        raise InputError(f"{path} has no judgements in {len(pairs)} pairs of query and document; judge some.")
    y, queries, documents, judges = zip(*rows, strict=True)
    return JudgementList(np.array(y), as_texts(list(queries)), as_texts(list(documents)), as_texts(list(judges)))
