"""
Corpus: documents as an inverted index of word counts.

It is built from a stream of texts, which are not kept, in O(words) time with 8 bytes per posting. A weighting of words
(`BM25`, `LinkLearn`) makes an `Index` of it: score(q, d) = Σ over words t of q_t · d_t. One query costs O(postings of
its words + documents); a heap keeps the k best documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count, islice, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.text.postings import (
    NO_TERM,
    Bags,
    Postings,
    add_scores,
    count_words,
    sizes,
    top_documents,
    totals,
    transpose,
)
from corank.core.threads import n_threads, parallel_map
from corank.data.durable.files import require_unchanged
from corank.errors import InputError
from corank.parameters import check_values, integer
from corank.text.words import Words, fold, split_words

# control characters, line separators and surrogates, which are not allowed in ids
NOT_IN_NAMES = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

# words that are counted at once
_BATCH = 1 << 21


class TermNumbers(dict[str, int]):
    """Numbers of words; a new word gets the next number."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class Counter:
    """
    Counts the words of a stream of documents.

    words: the tokeniser.
    terms: numbers of known terms; new terms are added, unless it is a plain dict.
    """

    def __init__(self, words: Words, terms: dict[str, int]) -> None:
        self.terms = terms
        self._stop = frozenset(words.stop_words)
        self._stem = words.stemmer()
        # words before stemming, and the number of the term of each
        self._word_numbers = TermNumbers()
        self._term_of = np.empty(0, np.uint32)

    def count(self, texts: Iterable[str]) -> Iterator[Bags]:
        """Yield the distinct words of documents with their counts, some documents at a time."""
        number, tokens, sizes, size = self._word_numbers.__getitem__, [], [], 0
        for text in texts:
            # faster than a Python loop over words by a factor of three
            numbers = np.fromiter(map(number, split_words(fold(text))), np.uint32)
            tokens.append(numbers)
            sizes.append(len(numbers))
            size += len(numbers)
            if size >= _BATCH:
                yield self._counted(tokens, sizes)
                tokens, sizes, size = [], [], 0
        if sizes:
            yield self._counted(tokens, sizes)

    def _counted(self, tokens: list[NDArray[np.uint32]], sizes: list[int]) -> Bags:
        self._learn()
        stream = self._term_of[np.concatenate(tokens)]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        terms, counts = np.empty(len(stream), np.uint32), np.empty(len(stream), np.uint32)
        ends = np.zeros(len(sizes) + 1, np.uint64)
        n = count_words(stream, starts, len(self.terms), terms, counts, ends[1:])
        return Bags(ends, terms[:n].copy(), counts[:n].copy())

    def _learn(self) -> None:
        """Number the terms of new words."""
        new = list(islice(self._word_numbers, len(self._term_of), None))
        is_counted = [word not in self._stop for word in new]
        stems = self._stem(new)
        lookup = self.terms.__getitem__ if isinstance(self.terms, TermNumbers) else _lookup(self.terms)
        numbers = [lookup(stem) if counted else NO_TERM for stem, counted in zip(stems, is_counted, strict=True)]
        self._term_of = np.append(self._term_of, np.array(numbers, dtype=np.uint32))


def _lookup(terms: dict[str, int]) -> Callable[[str], Any]:
    return lambda stem: terms.get(stem, NO_TERM)


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """
    Documents as word counts.

    ids: Ids of the documents.
    terms: The words.
    postings: For each word, the documents that contain it and the counts, in 8 bytes each.
    lengths: Number of words of each document, with repetitions.
    words: The tokeniser.
    """

    ids: NDArray[np.object_]
    terms: NDArray[np.object_]
    _postings: Postings
    _lengths: NDArray[np.int64]
    words: Words

    @property
    def postings(self) -> Postings:
        """For each word, the documents that contain it and the counts; raises if its file was changed."""
        require_unchanged(*self._postings)
        return self._postings

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of words of each document, with repetitions; raises if its file was changed."""
        require_unchanged(self._lengths)
        return self._lengths

    @classmethod
    def of(
        cls,
        texts: Iterable[str],
        ids: Iterable[Any] | None = None,
        *,
        language: str | None = "english",
        stop_words: str | Iterable[str] | None = "english",
    ) -> Corpus:
        """
        Count the words of texts, which may be a generator and are not kept.

        >>> corpus = Corpus.of(["Tin is soft.", "Iron and tin rust."], ids=["a", "b"], language=None)
        >>> corpus
        <Corpus: 2 documents, 4 terms, 5 postings>
        >>> corpus.terms.tolist(), corpus.document_frequency.tolist()
        (['tin', 'soft', 'iron', 'rust'], [2, 1, 1, 1])
        """
        words = Words.of(language, stop_words)
        return _counted(words, TermNumbers(), texts, ids, None)

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.ids)

    @property
    def n_terms(self) -> int:
        """Number of distinct words."""
        return len(self.terms)

    @property
    def document_frequency(self) -> NDArray[np.int64]:
        """Number of documents that contain each word."""
        return sizes(self.postings.starts)

    @property
    def mean_length(self) -> float:
        """Mean number of words of a document; 1 if there are none."""
        return float(self.lengths.mean()) if self.lengths.any() else 1.0

    @cached_property
    def number(self) -> dict[str, int]:
        """Number of each document, by its id."""
        return {name: i for i, name in enumerate(self.ids.tolist())}

    @cached_property
    def bags(self) -> Bags:
        """The words of each document and their counts: the transposed postings."""
        starts = np.zeros(self.n_documents + 1, np.uint64)
        np.cumsum(np.bincount(self.postings.docs, minlength=self.n_documents), out=starts[1:])
        terms, counts = np.empty_like(self.postings.docs), np.empty_like(self.postings.values)
        transpose(Bags(*self.postings), starts, terms, counts)
        return Bags(starts, terms, counts)

    @property
    def counts(self) -> Any:
        """Word counts as a CSR matrix (n_documents, n_terms) of float64, for rankers."""
        return as_matrix(self.bags, self.n_terms)

    def count(self, texts: Sequence[str]) -> Bags:
        """Count the words of other texts, such as queries; words that are not in the corpus are ignored."""
        counter = Counter(self.words, self._term_number)
        return _joined(list(counter.count(_checked(texts))))

    def add(self, texts: Iterable[str], ids: Iterable[Any]) -> Corpus:
        """Append documents."""
        return _counted(self.words, TermNumbers(self._term_number), texts, ids, self)

    def subset(self, documents: Any) -> Corpus:
        """Select documents, with only the words that occur in them."""
        chosen = np.arange(self.n_documents)[np.asarray(documents)]
        rows = self.counts[chosen]
        used = np.flatnonzero(np.bincount(rows.indices, minlength=self.n_terms))
        return _assembled(self.ids[chosen], self.terms[used], [as_bags(rows[:, used])], self.words)

    def __len__(self) -> int:
        return self.n_documents

    def __repr__(self) -> str:
        return f"<Corpus: {self.n_documents} documents, {self.n_terms} terms, {len(self._postings.docs)} postings>"

    @cached_property
    def _term_number(self) -> dict[str, int]:
        return {term: i for i, term in enumerate(self.terms.tolist())}


def as_bags(rows: Any) -> Bags:
    """Return a CSR matrix of counts as bags."""
    return Bags(rows.indptr.astype(np.uint64), rows.indices.astype(np.uint32), rows.data.astype(np.uint32))


def as_matrix(bags: Bags, n_terms: int) -> Any:
    """Return bags as a CSR matrix of float64 with `n_terms` columns."""
    parts = (bags.values.astype(np.float64), bags.terms.astype(np.int32), bags.starts.astype(np.int64))
    return sparse.csr_array(parts, shape=(len(bags.starts) - 1, n_terms))


def _counted(
    words: Words, terms: TermNumbers, texts: Iterable[str], ids: Iterable[Any] | None, before: Corpus | None
) -> Corpus:
    counter = Counter(words, terms)
    new_bags = list(counter.count(_checked(texts)))
    old_bags = [] if before is None else [before.bags]
    names = _ids(ids, sum(len(bags.starts) - 1 for bags in new_bags))
    names = names if before is None else _distinct(np.concatenate([before.ids, names]))
    return _assembled(names, _texts(terms), [*old_bags, *new_bags], words)


def _assembled(ids: NDArray[np.object_], terms: NDArray[np.object_], parts: list[Bags], words: Words) -> Corpus:
    """Turn bags of documents into postings."""
    bags = _joined(parts)
    starts = np.zeros(len(terms) + 1, np.uint64)
    np.cumsum(np.bincount(bags.terms, minlength=len(terms)), out=starts[1:])
    docs, counts = np.empty_like(bags.terms), np.empty_like(bags.values)
    transpose(bags, starts, docs, counts)
    return Corpus(ids, terms, Postings(starts, docs, counts), totals(bags), words)


def _joined(parts: list[Bags]) -> Bags:
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([np.zeros(1, np.int64), *(sizes(part.starts) for part in parts)])
    empty = np.empty(0, np.uint32)
    return Bags(
        np.cumsum(lengths).astype(np.uint64),
        np.concatenate([empty, *(part.terms for part in parts)]),
        np.concatenate([empty, *(part.values for part in parts)]),
    )


def _checked(texts: Iterable[str]) -> Iterable[str]:
    if isinstance(texts, str | bytes):
        raise InputError(f"texts is one {type(texts).__name__}; pass a list of texts.")
    return map(_as_text, texts, count())


def _as_text(text: Any, number: int) -> str:
    if not isinstance(text, str):
        raise InputError(f"document {number} is a {type(text).__name__}; pass texts.")
    return text


def _ids(ids: Iterable[Any] | None, n: int) -> NDArray[np.object_]:
    names = _texts(range(n) if ids is None else ids)
    if len(names) != n:
        raise InputError(f"ids has {len(names)} values for {n} documents; pass one for each.")
    return _distinct(names)


def _distinct(names: NDArray[np.object_]) -> NDArray[np.object_]:
    seen: set[str] = set()
    for name in names.tolist():
        if not name.strip() or NOT_IN_NAMES.search(name):
            raise InputError(
                f"a document has the id {name!r}; use non-empty ids without control characters and line breaks."
            )
        if name in seen:
            raise InputError(f"two documents have the id {name!r}; pass distinct ids.")
        seen.add(name)
    return names


def _texts(values: Iterable[Any]) -> NDArray[np.object_]:
    strings = [str(item) for item in values]
    texts = np.empty(len(strings), dtype=object)
    texts[:] = strings
    return texts


@cache
def tiny_corpus() -> Corpus:
    """Return a corpus of three documents, on which a loaded model is tried."""
    return Corpus.of(["a b", "b c c", ""], language=None, stop_words=None)


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
