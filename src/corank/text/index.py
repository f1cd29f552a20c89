"""
Index: documents with weighted words, searched by sparse dot products.

    score(q, d) = Σ over words t of q_t · d_t

One query costs O(postings of its words + documents). Queries run on threads, and a heap keeps the k best documents, so
that scores are neither sorted nor stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.text.postings import Bags, Postings, add_scores, top_documents
from corank.core.threads import n_threads, parallel_map
from corank.errors import InputError
from corank.parameters import check_values, integer
from corank.text.corpus import Corpus

Weigh = Callable[[Bags], NDArray[np.float64]]


class SearchResult(NamedTuple):
    """
    Documents found by a search, best first.

    documents: Numbers of documents; −1 after the last one that shares a word with the query.
    scores: Their scores; −inf after the last.
    """

    documents: NDArray[np.int64]
    scores: NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class Index:
    """
    Documents with weighted words, and the weighting of queries.

    Made by `BM25.to_index` and `LinkLearn.to_index`.

    corpus: The documents.
    weights: The weight of each posting of the corpus, 4 bytes each.
    weigh: Takes the words of queries, as `Corpus.count` returns them, and returns a weight for each.
    """

    corpus: Corpus
    weights: NDArray[np.float32]
    weigh: Weigh

    def search(self, queries: str | Sequence[str] | Bags, k: int = 10, *, n_jobs: int | None = -1) -> SearchResult:
        """Find the best documents for each query."""
        check_values({"k": k}, {"k": integer(1)})
        bags = self._bags(queries)
        n, k = len(bags.starts) - 1, min(k, max(1, self.corpus.n_documents))
        result = SearchResult(np.empty((n, k), np.int64), np.empty((n, k), np.float32))
        postings = self._postings()

        def search_part(first: int, last: int) -> None:
            top_documents(postings, bags, first, last, self.corpus.n_documents, *result)

        parallel_map(search_part, _runs(n, n_jobs), n_threads(1 if n_jobs is None else n_jobs))
        return result

    def scores(self, queries: str | Sequence[str] | Bags, *, n_jobs: int | None = -1) -> NDArray[np.float64]:
        """Score every document for each query."""
        bags = self._bags(queries)
        n = len(bags.starts) - 1
        scores = np.zeros((n, self.corpus.n_documents))
        postings = self._postings()

        def score_part(first: int, last: int) -> None:
            for q in range(first, last):
                add_scores(postings, bags, np.uint64(q), scores[q])

        parallel_map(score_part, _runs(n, n_jobs), n_threads(1 if n_jobs is None else n_jobs))
        return scores

    def __repr__(self) -> str:
        return f"<Index of {self.corpus!r}>"

    def _postings(self) -> Postings:
        return Postings(self.corpus.postings.starts, self.corpus.postings.docs, self.weights)

    def _bags(self, queries: str | Sequence[str] | Bags) -> Bags:
        if isinstance(queries, Bags):
            if len(queries.terms) and int(queries.terms.max()) >= self.corpus.n_terms:
                raise InputError(
                    "queries contain words that are not in this corpus; count them with its own method `count`."
                )
            bags = queries
        else:
            bags = self.corpus.count([queries] if isinstance(queries, str) else queries)
        return Bags(bags.starts, bags.terms, self.weigh(bags).astype(np.float32))


def _runs(n: int, n_jobs: int | None) -> list[tuple[int, int]]:
    """Split queries into runs, several per thread, because they differ in length."""
    pieces = 1 if n_jobs is None else 4 * n_threads(n_jobs)
    edges = np.unique(np.linspace(0, n, pieces + 1).astype(int)).tolist()
    return list(pairwise(edges))
