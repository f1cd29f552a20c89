"""
BM25 (Robertson et al., 1994): the weight of a word in a document by three numbers that need no learning.

    d_t = (k1 + 1) · tf · idf_t / (k1 · (1 − b + b · length / mean length) + tf),    score(q, d) = Σ_t q_t d_t

q_t is how often the query holds the word. O(postings) for a whole corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.core.text.postings import Bags
from corank.data.problem.ranking import RankingData
from corank.data.problem.rows import as_rows
from corank.errors import InputError
from corank.estimator.base import Ranker
from corank.estimator.contract import check_parameters
from corank.estimator.held_out import HeldOut
from corank.parameters import Rule, Rules, none, number, one_of
from corank.text.corpus import Corpus
from corank.text.index import Index

Floats = NDArray[np.float64]

IDFS = ("lucene", "robertson", "plain")
"""What a word that stands in n of N documents may be worth."""

_array = Rule("one number for each column", lambda value: not isinstance(value, str | bytes | dict))


@dataclass(frozen=True, eq=False)
class _Statistics:
    """See the attributes of `BM25`."""

    idf: Floats
    mean_length: float
    query: Floats


class BM25(Ranker):
    """
    BM25: order documents by the words they share with a query, without learning.

    `to_index` makes a corpus of documents ready for any number of queries. As a ranker, which `OnTop` takes for a prior
    ranker, its rows are documents as word counts, a column each, and `query` is what all of them are compared with;
    ``fit`` needs no y, and learns in how many rows each word stands and how long rows are.

    Parameters
    ----------
    k1 : float
        How slowly repeated words stop counting (K in the paper); 0 counts each word once.
    b : float
        How much long documents are held against their mean length, from 0 to 1 (B in the paper).
    idf : {"lucene", "robertson", "plain"}
        What a word in n of N documents is worth: log(1 + (N − n + ½)/(n + ½)), the same without the 1, which is
        negative for words of more than half of the documents, or log(N/n), as Grangier and Bengio have it.
    query : array-like of shape (n_features,), optional
        How often the query holds the word of each column, for ``fit`` and ``predict``; None asks for every word once.

    Attributes
    ----------
    idf_ : array of shape (n_features,)
        What the word of each column is worth.
    mean_length_ : float
        Mean number of words of the rows.
    query_ : array of shape (n_features,)
        The query.

    Examples
    --------
    >>> from corank.text import BM25, Corpus
    >>> corpus = Corpus.of(["tin is soft", "iron rusts, tin does not", "wheat"], language=None)
    >>> found = BM25().to_index(corpus).search(["soft tin", "wheat prices"], k=2)
    >>> found.documents.tolist()
    [[0, 1], [2, -1]]

    As a ranker of rows:

    >>> asked = corpus.counts[[0]].toarray()[0]
    >>> BM25(query=asked).fit(corpus.counts).rank(corpus.counts).tolist()
    [1, 2, 3]
    """

    _needs_judgements: bool = False
    _needs_pairs: bool = False

    _rules: ClassVar[Rules] = {
        "k1": number(0),
        "b": number(0, 1),
        "idf": one_of(*IDFS),
        "query": _array | none,
    }

    idf_: Floats
    mean_length_: float
    query_: Floats

    def __init__(
        self, k1: float = 1.2, b: float = 0.75, *, idf: str = "lucene", query: ArrayLike | None = None
    ) -> None:
        self.k1 = k1
        self.b = b
        self.idf = idf
        self.query = query

    def to_index(self, corpus: Corpus) -> Index:
        """
        Weigh the words of documents once, for all queries.

        Parameters
        ----------
        corpus : Corpus
            The documents.

        Returns
        -------
        Index
            Ready to be searched.
        """
        check_parameters(self)
        df, postings = corpus.document_frequency, corpus.postings
        idf = idf_values(self.idf, df, corpus.n_documents)
        weights = np.repeat(idf.astype(np.float32), df)
        k = self._k(corpus.lengths, corpus.mean_length).astype(np.float32)
        tf = postings.values.astype(np.float32)
        weights *= _saturated(tf, k[postings.docs], np.float32(self.k1))
        return Index(corpus, weights, _counts)

    def _k(self, lengths: NDArray[Any], mean_length: float) -> Floats:
        return np.asarray(self.k1 * (1.0 - self.b + self.b * lengths / mean_length))

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> _Statistics:
        counts = _as_counts(data.X)
        weights = np.ones(data.n_rows) if data.weights is None else data.weights
        n = float(weights.sum())
        df = (counts > 0.0).T @ weights
        mean_length = float(weights @ counts.sum(axis=1)) / n if n else 0.0
        return _Statistics(idf_values(self.idf, df, n), mean_length or 1.0, self._asked(data.n_features))

    def _asked(self, n_features: int) -> Floats:
        if self.query is None:
            return np.ones(n_features)
        try:
            query = np.asarray(as_rows(np.reshape(np.asarray(self.query, dtype=np.float64), (1, -1))))[0]
        except (TypeError, ValueError) as error:
            raise InputError(f"query is no list of numbers ({error}); pass one for each column.") from error
        if len(query) != n_features:
            raise InputError(f"query has {len(query)} numbers for {n_features} columns; pass one for each.")
        return np.asarray(query, dtype=np.float64)

    def _score_rows(self, X: Any) -> Floats:
        counts = _as_counts(self._checked_rows(X))
        k = np.repeat(self._k(np.asarray(counts.sum(axis=1)).ravel(), self.mean_length_), np.diff(counts.indptr))
        weights = _saturated(counts.data, k, self.k1)
        weighed = sparse.csr_array((weights, counts.indices, counts.indptr), shape=counts.shape)
        return np.asarray(weighed @ (self.idf_ * self.query_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def idf_values(name: str, df: NDArray[Any], n_documents: float) -> Floats:
    """
    What words are worth.

    name: one of `IDFS`.
    df: in how many documents each stands; a word that stands in none is worth what one in a single document is.
    """
    n = np.maximum(df, 1).astype(np.float64)
    if name == "plain":
        return np.asarray(np.log(max(n_documents, 1) / n))
    odds = np.maximum(n_documents - n + 0.5, 0.5) / (n + 0.5)
    return np.asarray(np.log1p(odds) if name == "lucene" else np.log(odds))


def _saturated(tf: Any, k: Any, k1: Any) -> Any:
    """(k1 + 1) tf / (k + tf), and 0 where the word is missing."""
    return np.divide((k1 + 1) * tf, k + tf, out=np.zeros_like(tf), where=tf > 0)


def _counts(bags: Bags) -> Floats:
    return bags.values.astype(np.float64)


def _as_counts(X: Any) -> Any:
    counts = sparse.csr_array(X).astype(np.float64)
    if counts.data.min(initial=0.0) < 0.0:
        raise InputError("Negative values in data: X holds some, and BM25 takes counts of words; pass numbers from 0.")
    return counts
