"""Postings: word counts of documents, their transposition, and top-k search."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import inline, jit, relaxed

NO_TERM = np.uint32(0xFFFFFFFF)
"""Term number of words that are not counted."""

_BLOCK = 64


class Postings(NamedTuple):
    """
    The documents that contain each word.

    starts (n_terms + 1,) of uint64: where the postings of a word begin.
    docs: document numbers, uint32, ascending inside a word.
    values: count or weight of the word in the document.
    """

    starts: NDArray[np.uint64]
    docs: NDArray[np.uint32]
    values: NDArray[Any]


class Bags(NamedTuple):
    """
    Weighted words of queries or documents.

    starts (n_bags + 1,) of uint64: where each begins.
    terms: word numbers, uint32.
    values: the weight of each.
    """

    starts: NDArray[np.uint64]
    terms: NDArray[np.uint32]
    values: NDArray[Any]


def sizes(starts: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of entries of each word or bag."""
    begins = starts.astype(np.int64)
    return np.asarray(begins[1:] - begins[:-1])


def totals(bags: Bags) -> NDArray[np.int64]:
    """Return the sum of the counts of each bag."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(bags.values, dtype=np.int64)])
    i = bags.starts.astype(np.int64)
    return np.asarray(before[i[1:]] - before[i[:-1]])


@jit
def count_words(tokens, starts, n_terms, terms, counts, stops):  # type: ignore[no-untyped-def]
    """
    Count the words of each document; return the total number of distinct words per document.

    `tokens` are word numbers or `NO_TERM`, document i is starts[i]..starts[i + 1]-1. Its distinct words are written to
    `terms` in order of first appearance, their counts to `counts`; `stops[i]` is where they end.
    """
    last_seen = np.full(n_terms, -1, np.int64)
    place = np.empty(n_terms, np.int64)
    n = 0
    for i in range(len(starts) - 1):
        for p in range(starts[i], starts[i + 1]):
            term = tokens[p]
            if term == NO_TERM:
                continue
            if last_seen[term] != i:
                last_seen[term] = i
                place[term] = n
                terms[n] = term
                counts[n] = 0
                n += 1
            counts[place[term]] += 1
        stops[i] = n
    return n


@jit
def transpose(bags, starts, docs, values):  # type: ignore[no-untyped-def]
    """
    Transpose bags of documents into postings; `starts` is where those of each word begin.

    One counting sort, O(postings): documents ascend inside a word.
    """
    free = starts.copy()
    for i in range(np.uint64(len(bags.starts) - 1)):
        for p in range(bags.starts[i], bags.starts[i + np.uint64(1)]):
            term = bags.terms[p]
            index = free[term]
            docs[index] = i
            values[index] = bags.values[p]
            free[term] = index + np.uint64(1)


@jit
def add_scores(postings, bags, q, scores):  # type: ignore[no-untyped-def]
    """Add Σ over the words of bag q of its weight times the posting's to `scores` of the documents."""
    for p in range(bags.starts[q], bags.starts[q + np.uint64(1)]):
        term, weight = bags.terms[p], bags.values[p]
        for i in range(postings.starts[term], postings.starts[term + np.uint32(1)]):
            scores[postings.docs[i]] += weight * postings.values[i]


@inline
def _is_worse(score, doc, other_score, other_doc):  # type: ignore[no-untyped-def]
    return score < other_score or (score == other_score and doc > other_doc)


@inline
def _sink(heap_scores, heap_docs, size, score, doc):  # type: ignore[no-untyped-def]
    """Replace the root of a heap, its worst document."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _is_worse(
            heap_scores[child + 1], heap_docs[child + 1], heap_scores[child], heap_docs[child]
        ):
            child += 1
        if not _is_worse(heap_scores[child], heap_docs[child], score, doc):
            break
        heap_scores[i], heap_docs[i] = heap_scores[child], heap_docs[child]
        i = child
    heap_scores[i], heap_docs[i] = score, doc


@relaxed("nnan", "nsz")
def _largest(scores, begin, end):  # type: ignore[no-untyped-def]
    largest = scores[begin]
    for i in range(begin + 1, end):
        largest = max(largest, scores[i])
    return largest


@jit
def top_documents(postings, bags, first, last, n_docs, found, found_scores):  # type: ignore[no-untyped-def]
    """
    Write the best documents of the bags first..last-1, best first; ties are in the order of documents.

    found, found_scores (n_bags, k): document numbers, and their scores; −1 and −inf after the last one found. Those of
    score 0, which share no word with the bag, are not found. O(postings of its words + n_docs) per bag: one scan of
    the scores keeps the k best in a heap and clears them.
    """
    k = found.shape[1]
    scores = np.zeros(n_docs, found_scores.dtype)
    for q in range(np.uint64(first), np.uint64(last)):
        add_scores(postings, bags, q, scores)
        heap_scores, heap_docs = found_scores[q], found[q]
        heap_scores[:] = -np.inf
        heap_docs[:] = -1
        threshold = heap_scores[0]
        for begin in range(0, n_docs, _BLOCK):
            end = min(begin + _BLOCK, n_docs)
            # the vectorised maximum skips blocks without a candidate, which are most
            if _largest(scores, begin, end) <= threshold:
                continue
            for doc in range(begin, end):
                score = scores[doc]
                if score > threshold and score != 0.0:
                    # until k documents are kept, the root is an empty entry
                    _sink(heap_scores, heap_docs, k, score, doc)
                    threshold = heap_scores[0]
        scores[:] = 0.0
        for end in range(k - 1, 0, -1):
            score, doc = heap_scores[end], heap_docs[end]
            heap_scores[end], heap_docs[end] = heap_scores[0], heap_docs[0]
            _sink(heap_scores, heap_docs, end, score, doc)
