"""
BM25 and Rocchio's feedback: the bars that relevance feedback has to pass.

BM25 is `corank.text.BM25`, of words as they stand. Rocchio (1971), with documents as vectors v of BM25's weights,
of norm 1: the query moves to q + β mean of v over the
relevant − γ mean over the others, of which the n_words largest weights are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

from corank.text import BM25, Corpus
from corank.text.corpus import as_matrix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Feedback(NamedTuple):
    """β, γ, and the number of words a moved query keeps."""

    beta: float
    gamma: float
    n_words: int


@dataclass(frozen=True, eq=False)
class BM25Index:
    """
    Documents and queries as BM25 sees them.

    weights (n_documents, n_words): what each word weighs in each document, CSR.
    queries (n_queries, n_words): counts.
    """

    weights: Any
    queries: Any

    @classmethod
    def of(cls, texts: list[str], queries: list[str], k1: float, b: float) -> BM25Index:
        """Count words, without the most frequent ones of English."""
        corpus = Corpus.of(texts, language=None)
        index, postings = BM25(k1, b).to_index(corpus), corpus.postings
        by_word = (index.weights.astype(np.float64), postings.docs.astype(np.int64), postings.starts.astype(np.int64))
        weights = sparse.csc_array(by_word, shape=(corpus.n_documents, corpus.n_terms)).tocsr()
        return cls(weights, as_matrix(corpus.count(queries), corpus.n_terms))

    def scores(self) -> Floats:
        """Score every document for every query, (n_queries, n_documents)."""
        return np.asarray((self.queries @ self.weights.T).toarray())

    def feedback(self, query: int, good: Ints, bad: Ints, ways: Sequence[Feedback]) -> Floats:
        """Score every document for a query that judged documents have moved, in each of several ways."""
        begun = _mean(normalize(self.queries[[query]]))
        towards, away = (_mean(self._vectors[rows]) if len(rows) else 0.0 * begun for rows in (good, bad))
        moved = [_largest(begun + how.beta * towards - how.gamma * away, how.n_words) for how in ways]
        return np.asarray((self.weights @ np.transpose(moved)).T)

    @cached_property
    def _vectors(self) -> Any:
        return normalize(self.weights)


def _mean(rows: Any) -> Floats:
    return np.asarray(rows.mean(axis=0)).ravel()


def _largest(weights: Floats, n_words: int) -> Floats:
    if np.count_nonzero(weights) <= n_words:
        return weights
    size = np.abs(weights)
    return np.where(size < np.partition(size, -n_words)[-n_words], 0.0, weights)
