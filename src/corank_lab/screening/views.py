"""
Views of records as rows whose products are similarities: text, citations within the collection, and all references.

Rows have norm 1, or 0 if a record lacks the view, which then contributes nothing. The kernel is

    K = .7 text + .2 links + .1 references + 1,

where 1 is a penalised intercept. If no record has references, the text has weight 1. The weights were chosen on reviews
(docs/experiments/screening.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.errors import InputError
from corank_lab.records.records import Records
from corank_lab.screening.tfidf import TfidfVocabulary, unit_rows

TEXT, LINKS, REFERENCES, LEVEL = 0.7, 0.2, 0.1, 1.0
"""Weights of the views in the kernel, and the intercept."""

MAX_KERNEL = 3000
"""Number of records up to which the full kernel is stored (36 MB)."""

Rows = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class RecordRows:
    """Records as rows whose products are their similarities."""

    # columns of text, links and references that occur in at least two records, times the roots of the weights
    sparse: Any
    own: Rows  # contribution of the other columns to the similarity of a record with itself

    def __len__(self) -> int:
        return len(self.own)

    def take(self, rows: NDArray[np.intp]) -> RecordRows:
        """Return some of the records, by number."""
        return RecordRows(self.sparse[rows], self.own[rows])

    def times(self, others: RecordRows, a: NDArray[Any]) -> Rows:
        """Multiply the kernel of these records and some others by a vector, without `own`."""
        a = a.astype(np.float32)
        level = np.float32(LEVEL) * a.sum()
        product: Rows = self.sparse @ (others.sparse.T @ a) + level
        return product


@dataclass(frozen=True, eq=False)
class Views(RecordRows):
    """All records of a collection."""

    text: Any  # tf-idf rows of words and word pairs
    vocabulary: TfidfVocabulary  # makes such rows of other texts
    kernel: Rows | None  # kernel of all records, or None if they are more than `MAX_KERNEL`

    @cached_property
    def typical(self) -> Rows:
        """Mean similarity of each record to all records."""
        return self.times(self, np.full(len(self), 1 / len(self)))

    def likeness(self, topic: str) -> Rows:
        """Compare a description with every record."""
        cosines: Rows = (self.text @ self.vocabulary.rows([topic]).T).toarray().ravel()
        return cosines


def make_views(records: Records, *, max_kernel: int = MAX_KERNEL) -> Views:
    """Make the views of a collection. Screenings and replays of the same records can share them."""
    both = (f"{title} {abstract}" for title, abstract in zip(records.titles, records.abstracts, strict=True))
    vocabulary, text = TfidfVocabulary.learn(both)
    if not text.nnz:
        raise InputError(
            f"the titles and abstracts of the {len(records)} records have no word that distinguishes them; check the "
            "columns, or pass more records."
        )
    shared, own = text, _missing(text)
    if any(records.references):
        views = [(text, own), *(_shared(rows) for rows in reference_views(records))]
        shares = np.array([TEXT, LINKS, REFERENCES], dtype=np.float32)
        shared = sparse.hstack([rows for rows, _ in views], format="csr")
        begin = 0
        for (rows, _), root in zip(views, np.sqrt(shares), strict=True):  # in place, to save memory
            end = begin + rows.shape[1]
            shared.data[(begin <= shared.indices) & (shared.indices < end)] *= root
            begin = end
        own = shares @ np.array([alone for _, alone in views])
    kernel = None
    if len(records) <= max_kernel:
        kernel = (shared @ shared.T).toarray() + np.float32(LEVEL)
        kernel[np.diag_indices(len(records))] += own
    return Views(shared, own, text, vocabulary, kernel)


def reference_views(records: Records) -> tuple[Any, Any]:
    """Make the views of citations."""
    n = len(records)
    number = dict(records.number)  # works outside the collection follow
    # each work once, in order: the order of a set differs from process to process, and with it the last bits
    cites = [
        (at, number.setdefault(work, len(number)))
        for at, of in enumerate(records.references)
        for work in dict.fromkeys(of)
    ]
    rows, columns = np.array(cites).T
    cited = sparse.csr_matrix((np.ones(len(cites), np.float32), (rows, columns)), shape=(n, len(number)))
    inside = cited[:, :n]
    is_linked = (np.diff(inside.indptr) > 0) | (np.bincount(inside.indices, minlength=n) > 0)
    has_any = is_linked | (np.diff(cited.indptr) > 0)
    links = _weighted(inside + inside.T + sparse.identity(n, np.float32, "csr"))
    references = _weighted(cited + sparse.eye(n, len(number), dtype=np.float32, format="csr"))
    return sparse.diags(is_linked.astype(np.float32)) @ links, sparse.diags(has_any.astype(np.float32)) @ references


def _weighted(counts: Any) -> Any:
    """Rows of norm 1, weighted by the inverse document frequency of their columns; counts are ignored."""
    counts = counts.tocsr()
    counts.data[:] = 1.0
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log((1 + counts.shape[0]) / (1 + frequency)) + 1
    return unit_rows((counts @ sparse.diags(idf.astype(np.float32))).tocsr())


def _missing(unit: Any) -> Rows:
    """What the columns of rows of norm 1 lack to it, per record; 0 for empty rows."""
    at = np.repeat(np.arange(unit.shape[0], dtype=np.int32), np.diff(unit.indptr))
    squares = np.bincount(at, np.square(unit.data), minlength=unit.shape[0])
    return np.where(squares > 0, np.maximum(1 - squares, 0), 0).astype(np.float32)


def _shared(features: Any) -> tuple[Any, Rows]:
    """Columns that occur in at least two records, and per record the sum of squares of the others."""
    frequency = np.bincount(features.indices, minlength=features.shape[1])
    own = features.multiply(features) @ (frequency < 2).astype(np.float32)
    return features[:, frequency >= 2].tocsr(), np.asarray(own, dtype=np.float32).ravel()
