"""Judgement lists for other tools: TREC qrels, LETOR, Quepid, OpenSearch and Elasticsearch."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from corank.data.formats.table_text import csv_text
from corank.data.letor.writer import write_letor
from corank.errors import InputError
from corank.judging.grading.features import GradingFeatures
from corank.judging.grading.session import GradingSession, judges_in_order


def _finished(session: GradingSession) -> list[tuple[int, int]]:
    """Return number and grade of each graded document."""
    found = [(number, int(grade)) for number, grade in enumerate(session.final().tolist()) if grade == grade]
    if not found:
        raise InputError("there are no grades yet; grade some documents first.")
    return found


def _name(id: str) -> str:
    """Return an id without blanks, which separate columns: they are percent-encoded."""
    return "".join(quote(letter) if letter.isspace() or letter == "#" else letter for letter in id)


def as_qrels(session: GradingSession) -> str:
    """Return TREC qrels: query, 0, document, grade."""
    task = session.task
    lines = []
    for number, grade in _finished(session):
        one = task.documents[number]
        lines.append(f"{_name(task.queries[one.query].id)} 0 {_name(one.id)} {grade}\n")
    return "".join(lines)


def as_queries(session: GradingSession) -> str:
    """Return the text of each query of the qrels, as a table."""
    rows: list[list[object]] = [["qid", "query", "information_need"]]
    rows += [[_name(one.id), one.text, one.need] for one in session.task.queries]
    return csv_text(rows)


def as_letor(session: GradingSession, features: GradingFeatures) -> bytes:
    """Return LETOR text with the features of the graded documents."""
    task = session.task
    found = _finished(session)
    rows = [number for number, _ in found]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "grades.txt")
        documents = [task.documents[number] for number in rows]
        write_letor(
            path, features.X[rows], np.array([grade for _, grade in found], dtype=np.float64),
            np.array([_name(task.queries[one.query].id) for one in documents]),
            [f"docid = {_name(one.id)}" for one in documents],
        )  # fmt: skip
        return path.read_bytes()


def as_features(session: GradingSession, features: GradingFeatures) -> str:
    """Return all documents as a table: query, document, final grade or nothing, features; for `corank compare`."""
    task = session.task
    rows: list[list[object]] = [["qid", "docid", "rating", *features.columns]]
    for one, grade, values in zip(task.documents, session.final().tolist(), features.X.tolist(), strict=True):
        rows.append([task.queries[one.query].id, one.id, int(grade) if grade == grade else "", *values])
    return csv_text(rows)


def as_quepid_csv(session: GradingSession) -> str:
    """Return the CSV of Quepid: query, docid, rating; queries without a grade have an empty docid."""
    task = session.task
    rows: list[list[object]] = [["query", "docid", "rating"]]
    graded: set[int] = set()
    for number, grade in _finished(session):
        one = task.documents[number]
        graded.add(one.query)
        rows.append([_unformulaic(task.queries[one.query].text), _unformulaic(one.id), grade])
    rows += [[_unformulaic(one.text), "", ""] for at, one in enumerate(task.queries) if at not in graded]
    return csv_text(rows, keep_formulas=True)


def _unformulaic(text: str) -> str:
    # Quepid puts a blank before signs that a spreadsheet would run
    return f" {text}" if text[:1] in ("-", "=", "+", "@", "\t", "\r") else text


def as_quepid_book(session: GradingSession, name: str) -> str:
    """Return a book of Quepid, with the answers of all judges."""
    task, scale = session.task, session.scale
    pairs = []
    for number, one in enumerate(task.documents):
        judgements: list[dict[str, Any]] = []
        for judge in judges_in_order(session):
            found = session.judges[judge].get(number)
            if found is not None:
                judgements.append(
                    {
                        "rating": None if found.grade is None else float(found.grade),
                        "unrateable": found.action == "unrateable", "judge_later": found.action == "later",
                        "user_email": judge, "explanation": found.text,
                    }
                )  # fmt: skip
        query = task.queries[one.query]
        pairs.append(
            {
                "query_text": query.text, "doc_id": one.id, "position": one.position, "information_need": query.need,
                "document_fields": dict(one.fields), "notes": "", "options": {}, "judgements": judgements,
            }
        )  # fmt: skip
    book = {
        "name": name, "scale": list(scale.grades),
        "scale_with_labels": {str(g): label for g, label in zip(scale.grades, scale.labels, strict=True)},
        "query_doc_pairs": pairs,
    }  # fmt: skip
    return json.dumps(book, indent=1)


def as_opensearch(session: GradingSession, name: str) -> str:
    """Return a judgement list of OpenSearch's Search Relevance Workbench."""
    task = session.task
    ratings: dict[int, list[dict[str, Any]]] = {}
    for number, grade in _finished(session):
        one = task.documents[number]
        ratings.setdefault(one.query, []).append({"docId": one.id, "rating": grade})
    return json.dumps(
        {
            "name": name, "description": "Judgements collected with corank", "type": "IMPORT_JUDGMENT",
            "judgmentRatings": [{"query": task.queries[at].text, "ratings": found} for at, found in ratings.items()],
        },
        indent=1,
    )  # fmt: skip


def as_rank_eval(session: GradingSession, index: str = "documents") -> str:
    """
    Return a request of Elasticsearch's `_rank_eval` with the graded documents.

    index: name of the index; the request of each query is a `query_string`, to be replaced by that of the application.
    """
    task = session.task
    ratings: dict[int, list[dict[str, Any]]] = {}
    for number, grade in _finished(session):
        one = task.documents[number]
        ratings.setdefault(one.query, []).append({"_index": index, "_id": one.id, "rating": grade})
    requests = [
        {
            "id": task.queries[at].id, "request": {"query": {"query_string": {"query": task.queries[at].text}}},
            "ratings": found,
        }
        for at, found in ratings.items()
    ]  # fmt: skip
    return json.dumps({"requests": requests, "metric": {"dcg": {"k": 10, "normalize": True}}}, indent=1)


def as_judgements(session: GradingSession) -> str:
    """Return all answers as a table: query, docid, rating, judge; rating is empty for "unrateable" and "later"."""
    task = session.task
    rows: list[list[object]] = [["query", "query_text", "docid", "rating", "judge", "answer", "explanation"]]
    for judge in judges_in_order(session):
        for number, found in sorted(session.judges[judge].items()):
            one = task.documents[number]
            query = task.queries[one.query]
            grade = "" if found.grade is None else found.grade
            rows.append([query.id, query.text, one.id, grade, judge, found.action, found.text])
    return csv_text(rows)
