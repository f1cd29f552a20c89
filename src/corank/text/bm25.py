"""
BM25 (Robertson et al., 1994): weights of words without learning, and tune_bm25, which chooses k1 and b.

    d_t = (k1 + 1) · tf · idf_t / (k1 · (1 − b + b · length / mean length) + tf),    score(q, d) = Σ_t q_t d_t

q_t is the count of the word in the query. O(postings) for a whole corpus. `tune_bm25` needs one index and one search of
all queries per setting; all folds choose among the same values, so cross-validation costs no more than the grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.base.base import Ranker
from corank.base.contract import check_parameters
from corank.base.held_out import HeldOut
from corank.base.solvers.choice import choose
from corank.core.text.postings import Bags
from corank.data.ranking import RankingData
from corank.data.rows import as_rows
from corank.errors import InputError
from corank.fitted import Predictions, Relations, Shapes
from corank.metrics import evaluate
from corank.parameters import Rule, Rules, check_values, integer, none, number, rng_of, seed
from corank.text.corpus import Corpus, Index, tiny_corpus

Floats = NDArray[np.float64]
Idf = Literal["lucene", "robertson", "plain"]


_array = Rule("one number for each column", lambda value: not isinstance(value, str | bytes | dict))


@dataclass(frozen=True, eq=False)
class FittedBM25:
    """The fitted attributes of `BM25`."""

    idf: Floats
    mean_length: float
    query: Floats


@dataclass(eq=False, repr=False)
class BM25(Ranker):
    """
    BM25: rank documents by the words they share with a query, without learning.

    `to_index` prepares a corpus for any number of queries. As a ranker (for example the prior of `ResidualRanker`), its
    rows are documents with one column of counts per word, which are compared with `query`; ``fit`` needs no y, and
    computes document frequencies and the mean length.

    Parameters
    ----------
    k1 : float
        Saturation of repeated words (K in the paper); 0 counts each word once.
    b : float
        Length normalisation, from 0 to 1 (B in the paper).
    idf : {"lucene", "robertson", "plain"}
        Weight of a word in n of N documents: log(1 + (N − n + ½)/(n + ½)), the same without the 1, which is
        negative for words of more than half of the documents, or log(N/n), as in Grangier and Bengio.
    query : array-like of shape (n_features,), optional
        Count of the word of each column in the query, for ``fit`` and ``predict``; None means every word once.

    Attributes
    ----------
    idf_ : array of shape (n_features,)
        Inverse document frequency of each column.
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

    >>> query = corpus.counts[[0]].toarray()[0]
    >>> BM25(query=query).fit(corpus.counts).rank(corpus.counts).tolist()
    [1, 2, 3]
    """

    _needs_judgements = False
    _needs_pairs = False

    _rules: ClassVar[Rules] = {
        "k1": number(0),
        "b": number(0, 1),
        "query": _array | none,
    }

    _shapes: ClassVar[Shapes] = {"idf_": ("n_features_in_",), "query_": ("n_features_in_",)}
    _relations: ClassVar[Relations] = {
        "mean_length_ is positive": lambda m: m.mean_length_ > 0.0,
    }
    _predictions: ClassVar[Predictions] = {
        "to_index": lambda model, X: model.to_index(tiny_corpus()).weights,
    }

    k1: float = 1.2
    b: float = 0.75
    _: KW_ONLY
    idf: Idf = "lucene"
    query: ArrayLike | None = None

    def to_index(self, corpus: Corpus) -> Index:
        """Compute the weights of the words of documents, for any number of queries."""
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

    def _fit(self, data: RankingData, held: HeldOut | None, rng: np.random.Generator) -> FittedBM25:
        counts = _as_counts(data.X)
        weights = np.ones(data.n_rows) if data.weights is None else data.weights
        n = float(weights.sum())
        df = (counts > 0.0).T @ weights
        mean_length = float(weights @ counts.sum(axis=1)) / n if n else 0.0
        return FittedBM25(idf_values(self.idf, df, n), mean_length or 1.0, self._query_counts(data.n_features))

    def _query_counts(self, n_features: int) -> Floats:
        if self.query is None:
            return np.ones(n_features)
        try:
            query = np.asarray(as_rows(np.reshape(np.asarray(self.query, dtype=np.float64), (1, -1))))[0]
        except (TypeError, ValueError) as error:
            raise InputError(f"query must be a list of numbers ({error}); pass one for each column.") from error
        if len(query) != n_features:
            raise InputError(f"query has {len(query)} numbers for {n_features} columns; pass one for each.")
        return np.asarray(query, dtype=np.float64)

    def _score_rows(self, X: Any) -> Floats:
        counts = _as_counts(self._checked_rows(X))
        k = np.repeat(self._k(np.asarray(counts.sum(axis=1)).ravel(), self.mean_length_), np.diff(counts.indptr))
        weights = _saturated(counts.data, k, self.k1)
        weighted = sparse.csr_array((weights, counts.indices, counts.indptr), shape=counts.shape)
        return np.asarray(weighted @ (self.idf_ * self.query_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def idf_values(name: str, df: NDArray[Any], n_documents: float) -> Floats:
    """Return inverse document frequencies."""
    n = np.maximum(df, 1).astype(np.float64)
    if name == "plain":
        return np.asarray(np.log(max(n_documents, 1) / n))
    odds = np.maximum(n_documents - n + 0.5, 0.5) / (n + 0.5)
    return np.asarray(np.log1p(odds) if name == "lucene" else np.log(odds))


def _saturated(tf: Any, k: Any, k1: Any) -> Any:
    """Return (k1 + 1) tf / (k + tf), and 0 if the word is missing."""
    return np.divide((k1 + 1) * tf, k + tf, out=np.zeros_like(tf), where=tf > 0)


def _counts(bags: Bags) -> Floats:
    return bags.values.astype(np.float64)


def _as_counts(X: Any) -> Any:
    counts = sparse.csr_array(X).astype(np.float64)
    if counts.data.min(initial=0.0) < 0.0:
        raise InputError("Negative values in data: X holds some, and BM25 takes counts of words; pass numbers from 0.")
    return counts


K1S, BS = (0.6, 0.9, 1.2, 1.5, 2.0, 3.0), (0.3, 0.5, 0.75, 0.9)
"""Default values of k1 and b in the grid."""


class TunedBM25(NamedTuple):
    """Result of `tune_bm25`; values are mean average precisions."""

    model: BM25  # with the best parameters over all queries
    held_out: float  # cross-validated: each query uses the best parameters of the other folds
    grid: dict[tuple[float, float], float]  # over all queries, by k1 and b


def tune_bm25(
    corpus: Corpus,
    queries: Sequence[str],
    relevant: Sequence[Iterable[Any]],
    *,
    k1s: Sequence[float] = K1S,
    bs: Sequence[float] = BS,
    idf: Idf = "lucene",
    cv: int = 5,
    random_state: Any = 0,
) -> TunedBM25:
    """
    Choose k1 and b of BM25 by the mean average precision of judged queries.

    >>> from corank.text import Corpus, tune_bm25
    >>> corpus = Corpus.of(["tin tin tin", "tin mine", "tin and wheat", "wheat"], language=None)
    >>> found = tune_bm25(corpus, ["tin", "mine"], [["0"], ["1"]], k1s=(0.0, 2.0), bs=(0.0,))
    >>> found.model.k1 in (0.0, 2.0), sorted(found.grid) == [(0.0, 0.0), (2.0, 0.0)]
    (True, True)
    """
    check_values({"cv": cv, "random_state": random_state}, {"cv": integer(2), "random_state": seed})
    settings = [(float(k1), float(b)) for k1 in k1s for b in bs]
    if not settings:
        raise InputError("k1s or bs is empty; pass at least one value of each.")
    y, judged = _judged(corpus, queries, relevant)
    bags, qid = corpus.count([queries[q] for q in judged]), np.repeat(np.arange(len(judged)), corpus.n_documents)
    indices = [BM25(k1, b, idf=idf).to_index(corpus) for k1, b in settings]
    values = np.array([evaluate(y, index.scores(bags).ravel(), qid, "AP")["AP"].values for index in indices])
    means = values.mean(axis=1)
    # the value of each query with the setting that is best on the other folds
    fold, held = rng_of(random_state).permutation(len(judged)) % min(cv, len(judged)), np.empty(len(judged))
    for f in np.unique(fold):
        held[fold == f] = values[choose(values[:, fold != f].mean(axis=1))[0], fold == f]
    best = BM25(*settings[choose(means)[0]], idf=idf)
    return TunedBM25(best, float(held.mean()), dict(zip(settings, means.tolist(), strict=True)))


def _judged(corpus: Corpus, queries: Sequence[str], relevant: Sequence[Iterable[Any]]) -> tuple[Floats, list[int]]:
    """Return 1 for relevant documents, query by query, and the queries that have any."""
    is_text = isinstance(queries, str) or any(isinstance(ids, str | bytes) for ids in relevant)
    if is_text or len(queries) != len(relevant):
        raise InputError(
            f"queries and relevant have {len(queries)} and {len(relevant)} entries, or hold a text instead of a list; "
            "pass a list of texts, and a list of ids for each."
        )
    numbers = [[corpus.number[str(name)] for name in ids if str(name) in corpus.number] for ids in relevant]
    judged = [q for q, documents in enumerate(numbers) if documents]
    if len(judged) < 2:
        raise InputError(
            f"{len(judged)} of {len(queries)} queries have a relevant document in the corpus; pass at least two."
        )
    rows = [np.bincount(numbers[q], minlength=corpus.n_documents) > 0 for q in judged]
    return np.concatenate(rows).astype(np.float64), judged
