"""Judgement lists for other tools: TREC qrels, LETOR, Quepid, OpenSearch and Elasticsearch."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from corank.data import (
    JUDGEMENT_WRITERS,
    JudgementList,
    as_texts,
    blank_before_formula,
    csv_text,
    encode_name,
    write_letor,
)
from corank.errors import InputError
from corank_lab.grading.features import GradingFeatures
from corank_lab.grading.session import GradingSession, judges_in_order


def _final(session: GradingSession) -> JudgementList:
    """Return the final grade of each graded document."""
    task, grades = session.task, session.final()
    rows = np.flatnonzero(~np.isnan(grades))
    if not len(rows):
        raise InputError("there are no grades yet; grade some documents first.")
    documents = [task.documents[row] for row in rows.tolist()]
    queries = [task.queries[document.query].id for document in documents]
    ids = [document.id for document in documents]
    return JudgementList(grades[rows], as_texts(queries), as_texts(ids), query_texts=_query_texts(session))


def _answers(session: GradingSession) -> JudgementList:
    """Return the answers of all judges."""
    task = session.task
    result = [
        (task.documents[number], judge, entry)
        for judge in judges_in_order(session)
        for number, entry in sorted(session.judges[judge].items())
    ]
    return JudgementList(
        np.array([np.nan if entry.grade is None else entry.grade for *_, entry in result], dtype=np.float64),
        as_texts([task.queries[item.query].id for item, *_ in result]),
        as_texts([item.id for item, *_ in result]),
        as_texts([judge for _, judge, _ in result]),
        as_texts([entry.action for *_, entry in result]),
        as_texts([entry.text for *_, entry in result]),
        _query_texts(session),
    )


def _query_texts(session: GradingSession) -> dict[str, str]:
    return {query.id: query.text for query in session.task.queries}


def _text(judgements: JudgementList, format: str, name: str = "", index: str = "") -> str:
    return JUDGEMENT_WRITERS[format](judgements, name, index)[0]


def as_qrels(session: GradingSession) -> str:
    """Return TREC qrels: query, 0, document, grade."""
    return _text(_final(session), "qrels")


def as_queries(session: GradingSession) -> str:
    """Return the text of each query of the qrels, as a table."""
    rows: list[list[object]] = [["qid", "query", "information_need"]]
    rows += [[encode_name(query.id), query.text, query.need] for query in session.task.queries]
    return csv_text(rows)


def as_letor(session: GradingSession, features: GradingFeatures) -> bytes:
    """Return LETOR text with the features of the graded documents."""
    result = _final(session)
    assert result.qid is not None
    rows = np.flatnonzero(~np.isnan(session.final()))
    # a sign # would begin the comment of a line
    qid, docids = ([encode_name(id_).replace("#", "%23") for id_ in ids] for ids in (result.qid, result.docids))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "grades.txt")
        write_letor(path, features.X[rows], result.y, np.array(qid), [f"docid = {docid}" for docid in docids])
        return path.read_bytes()


def as_features(session: GradingSession, features: GradingFeatures) -> str:
    """Return all documents as a table: query, document, final grade or nothing, features; for `corank compare`."""
    task = session.task
    rows: list[list[object]] = [["qid", "docid", "rating", *features.columns]]
    for item, grade, values in zip(task.documents, session.final().tolist(), features.X.tolist(), strict=True):
        rows.append([task.queries[item.query].id, item.id, int(grade) if grade == grade else "", *values])
    return csv_text(rows)


def as_quepid_csv(session: GradingSession) -> str:
    """Return the CSV of Quepid: query, docid, rating; queries without a grade have an empty docid."""
    result = _final(session)
    assert result.qid is not None
    graded = set(result.qid.tolist())
    rows: list[list[object]] = [
        [blank_before_formula(query.text), "", ""] for query in session.task.queries if query.id not in graded
    ]
    return _text(result, "quepid") + csv_text(rows, keep_formulas=True)


def as_quepid_book(session: GradingSession, name: str) -> str:
    """Return a book of Quepid, with the answers of all judges."""
    task, scale = session.task, session.scale
    pairs = []
    for number, item in enumerate(task.documents):
        judgements: list[dict[str, Any]] = []
        for judge in judges_in_order(session):
            result = session.judges[judge].get(number)
            if result is not None:
                judgements.append(
                    {
                        "rating": None if result.grade is None else float(result.grade),
                        "unrateable": result.action == "unrateable", "judge_later": result.action == "later",
                        "user_email": judge, "explanation": result.text,
                    }
                )  # fmt: skip
        query = task.queries[item.query]
        pairs.append(
            {
                "query_text": query.text, "doc_id": item.id, "position": item.position, "information_need": query.need,
                "document_fields": dict(item.fields), "notes": "", "options": {}, "judgements": judgements,
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
    return _text(_final(session), "opensearch", name)


def as_rank_eval(session: GradingSession, index: str = "documents") -> str:
    """Return a request of Elasticsearch's `_rank_eval` with the graded documents."""
    return _text(_final(session), "rank-eval", index=index)


def as_judgements(session: GradingSession) -> str:
    """Return all answers as a table: query, docid, rating, judge; rating is empty for "unrateable" and "later"."""
    return _text(_answers(session), "table")
