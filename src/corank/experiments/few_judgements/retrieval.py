"""
BM25 and Rocchio's feedback: the bars that relevance feedback has to pass.

BM25 (Robertson and Walker, 1994): a document scores Σ over the words t of the query of q_t idf_t · tf/(tf + k), k =
k1 (1 − b + b · its length / the mean length), idf_t = log(1 + (N − n_t + ½)/(n_t + ½)).
Rocchio (1971), with documents as vectors v of these weights, of norm 1: the query moves to q + β mean of v over the
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
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

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

    weights (n_documents, n_words): idf · tf/(tf + k), CSR.
    queries (n_queries, n_words): counts.
    """

    weights: Any
    queries: Any

    @classmethod
    def of(cls, texts: list[str], queries: list[str], k1: float, b: float) -> BM25Index:
        """Count words, without the most frequent ones of English."""
        counter = CountVectorizer(stop_words="english", dtype=np.float64)
        tf = sparse.csr_array(counter.fit_transform(texts))
        length = np.asarray(tf.sum(axis=1)).ravel()
        k = k1 * (1.0 - b + b * length / length.mean())
        n_t = np.bincount(tf.indices, minlength=tf.shape[1])
        idf = np.log1p((len(texts) - n_t + 0.5) / (n_t + 0.5))
        per_row = np.repeat(k, np.diff(tf.indptr))
        data = idf[tf.indices] * tf.data / (tf.data + per_row)
        return cls(
            sparse.csr_array((data, tf.indices, tf.indptr), shape=tf.shape),
            sparse.csr_array(counter.transform(queries)),
        )

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
