"""
Features of graded documents: numeric columns of the table, the given order, and words that query and text share.

Words of query q and document d, with tf, idf and lengths counted over the documents of the task:

    bm25(q, d) as in `corank.text.BM25`,    words(q, d) = |q ∩ d| / |q| over distinct words,    length(d) = log(1 + |d|)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.errors import InputError
from corank_lab.grading.task import GradingTask, title_column

SCORES = ("score", "_score", "bm25")
"""Names of columns that hold the score of a search engine, for the order before learning."""
RANK = "rank discount"
"""Name of the feature of the order in the files."""


class GradingFeatures(NamedTuple):
    """
    Features of the documents of a task.

    X: Features.
    columns: Their names.
    prior: Name of the feature that gives the order without grades: the score or the rank in the files, else BM25.
    """

    X: NDArray[np.float64]
    columns: Sequence[str]
    prior: str | None


def own_columns(task: GradingTask) -> list[str]:
    """Return the numeric columns of a task besides the score of a search engine."""
    return [column for column in task.columns if column.casefold() not in SCORES]


def grading_features(task: GradingTask, *, use_texts: bool = True) -> GradingFeatures:
    """
    Return the features of all documents: numeric columns, the given order, and words that query and text share.

    >>> from corank_lab.grading import GradingDocument, GradingQuery
    >>> documents = [GradingDocument(0, "a", {"text": "black tea"}), GradingDocument(0, "b", {"text": "tea pot"})]
    >>> found = grading_features(GradingTask([GradingQuery("1", "black tea")], documents))
    >>> found.columns, found.prior, found.X[:, 1].tolist()
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
