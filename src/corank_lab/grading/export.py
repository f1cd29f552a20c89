"""
Judgement lists for other tools: TREC qrels, Quepid, OpenSearch and Elasticsearch; and features of documents.

Features are numeric columns of the table, the given order, and words that query and text share. Words of query q and
document d, with tf, idf and lengths counted over the documents of the task:

    bm25(q, d) as in `corank.text.BM25`,    words(q, d) = |q ∩ d| / |q| over distinct words,    length(d) = log(1 + |d|)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.data import JUDGEMENT_WRITERS, JudgementList, as_texts, csv_text, encode_name
from corank.errors import InputError
from corank_lab.grading.session import GradingSession
from corank_lab.grading.task import GradingDocument, GradingTask, Judgement, title_column


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


def _answers(session: GradingSession, *, unanswered: bool = False) -> JudgementList:
    """Return the answers of all judges; also documents that nobody answered, if wanted."""
    task, rows = session.task, list[tuple[GradingDocument, str, Judgement]]()
    for number, document in enumerate(task.documents):
        given = [(document, judge, mine[number]) for judge, mine in sorted(session.judges.items()) if number in mine]
        rows += given or ([(document, "", Judgement("grade", None))] if unanswered else [])
    return JudgementList(
        np.array([np.nan if entry.grade is None else entry.grade for *_, entry in rows], dtype=np.float64),
        as_texts([task.queries[document.query].id for document, *_ in rows]),
        as_texts([document.id for document, *_ in rows]),
        as_texts([judge for _, judge, _ in rows]),
        as_texts([entry.action for *_, entry in rows]),
        as_texts([entry.text for *_, entry in rows]),
        _query_texts(session),
    )


def _query_texts(session: GradingSession) -> dict[str, str]:
    return {query.id: query.text for query in session.task.queries}


def as_queries(session: GradingSession) -> str:
    """Return the text of each query of the qrels, as a table."""
    rows: list[list[object]] = [["qid", "query", "information_need"]]
    rows += [[encode_name(query.id), query.text, query.need] for query in session.task.queries]
    return csv_text(rows)


def as_features(session: GradingSession, features: GradingFeatures) -> str:
    """Return all documents as a table: query, document, final grade or nothing, features; for `corank compare`."""
    task = session.task
    rows: list[list[object]] = [["qid", "docid", "rating", *features.columns]]
    for item, grade, values in zip(task.documents, session.final().tolist(), features.X.tolist(), strict=True):
        rows.append([task.queries[item.query].id, item.id, int(grade) if grade == grade else "", *values])
    return csv_text(rows)


def as_quepid_book(session: GradingSession, name: str) -> str:
    """Return a book of Quepid, with the answers of all judges and what the task knows of queries and documents."""
    task, scale = session.task, session.scale
    book = json.loads(JUDGEMENT_WRITERS["quepid-book"](_answers(session, unanswered=True), name, "")[0])
    labels = {str(grade): label for grade, label in zip(scale.grades, scale.labels, strict=True)}
    book |= {"scale": list(scale.grades), "scale_with_labels": labels}
    for pair, document in zip(book["query_doc_pairs"], task.documents, strict=True):
        need = task.queries[document.query].need
        pair |= {"position": document.position, "information_need": need, "document_fields": dict(document.fields)}
    return json.dumps(book, indent=1)


class GradingExport(NamedTuple):
    """A file of judgements."""

    label: str
    suffix: str  # end of its name
    media_type: str
    make: Callable[[GradingSession, str, str], str]  # of a session, the name of the list and the index


def _final_as(format: str) -> Callable[[GradingSession, str, str], str]:
    return lambda session, name, index: JUDGEMENT_WRITERS[format](_final(session), name, index)[0]


EXPORTS = {
    "qrels": GradingExport("Final grades, TREC qrels", "qrels.txt", "text/plain", _final_as("qrels")),
    "queries": GradingExport(
        "Queries of the qrels (CSV)", "queries.csv", "text/csv", lambda session, *_: as_queries(session)
    ),
    "quepid": GradingExport("Final grades, Quepid CSV", "quepid.csv", "text/csv", _final_as("quepid")),
    "book": GradingExport(
        "All answers, Quepid book (JSON)", "book.json", "application/json",
        lambda session, name, _: as_quepid_book(session, name),
    ),
    "opensearch": GradingExport(
        "Final grades, OpenSearch workbench (JSON)", "opensearch.json", "application/json", _final_as("opensearch")
    ),
    "rank_eval": GradingExport(
        "Final grades, Elasticsearch _rank_eval (JSON)", "rank-eval.json", "application/json", _final_as("rank-eval")
    ),
    "judgements": GradingExport(
        "All answers with judges (CSV)", "judgements.csv", "text/csv",
        lambda session, *_: JUDGEMENT_WRITERS["table"](_answers(session), "", "")[0],
    ),
}  # fmt: skip
"""Files of judgements, by name."""
SCORES = ("score", "_score", "bm25")
"""Names of columns that hold the score of a search engine, for the order before learning."""
RANK = "rank discount"  # name of the feature of the order in the files


class GradingFeatures(NamedTuple):
    """Features of the documents of a task."""

    X: NDArray[np.float64]
    columns: Sequence[str]  # their names
    # name of the feature that gives the order without grades: the score or the rank in the files, else BM25
    prior: str | None


def grading_features(task: GradingTask, *, use_texts: bool = True) -> GradingFeatures:
    """
    Return the features of all documents: numeric columns, the given order, and words that query and text share.

    >>> from corank_lab.grading import GradingDocument, GradingQuery
    >>> documents = [GradingDocument(0, "a", {"text": "black tea"}), GradingDocument(0, "b", {"text": "tea pot"})]
    >>> features = grading_features(GradingTask([GradingQuery("1", "black tea")], documents))
    >>> features.columns, features.prior, features.X[:, 1].tolist()
    (['bm25 text', 'words text', 'length text'], 'bm25 text', [1.0, 0.5])
    """
    columns, parts = list(task.columns), [task.X]
    scores = [column for column in columns if column.casefold() in SCORES]
    if task.has_order and not scores:
        place = np.array([document.position for document in task.documents], dtype=np.float64)
        parts.append(1.0 / np.log2(1.0 + np.maximum(place, 1.0))[:, None])  # the discount of nDCG
        columns.append(RANK)
        scores.append(RANK)
    if use_texts:
        for name, texts in _texts(task).items():
            parts.append(_shared_words(task, texts))
            columns += [f"{what} {name}" for what in ("bm25", "words", "length")]
    if not columns:
        raise InputError(
            "the documents have no numeric columns, no known order, and no texts that may be used, so there is nothing "
            "to learn from; start a project with a table that has them."
        )
    prior = (*scores, *(column for column in columns if column.startswith("bm25 ")))
    return GradingFeatures(np.hstack(parts), columns, prior[0] if prior else None)


def _texts(task: GradingTask) -> dict[str, list[str]]:
    """Return the text of each document, and the titles if there are both."""
    titles, texts = [], []
    for document in task.documents:
        title = title_column(document.fields)
        titles.append(document.fields[title] if title else "")
        texts.append(" ".join(value for name, value in document.fields.items() if name not in task.columns))
    result = {"text": texts, "title": titles}
    if not any(titles) or texts == titles:
        del result["title"]
    return result if any(texts) else {}


def _shared_words(task: GradingTask, texts: Sequence[str]) -> NDArray[np.float64]:
    """Return BM25, the share of the query's words, and the length."""
    from corank.text import BM25, Corpus, as_matrix

    known: dict[tuple[str, str], int] = {}
    row = [known.setdefault((item.id, text), len(known)) for item, text in zip(task.documents, texts, strict=True)]
    corpus = Corpus.of([text for _, text in known], language=None, stop_words=None)
    index = BM25().to_index(corpus)
    shape = (corpus.n_documents, corpus.n_terms)
    starts, docs, _ = corpus.postings
    weights = sparse.csc_array((index.weights, docs.astype(np.int32), starts.astype(np.int64)), shape=shape).tocsr()
    counts = as_matrix(corpus.count([item.text for item in task.queries]), corpus.n_terms)
    asked = counts[[document.query for document in task.documents]]
    bm25 = np.asarray((asked * weights[row]).sum(axis=1))
    n_words = np.maximum((asked > 0).sum(axis=1), 1)
    words = np.asarray(((asked > 0) * (corpus.counts[row] > 0)).sum(axis=1)) / n_words
    return np.column_stack([bm25, words, np.log1p(corpus.lengths[row])])
