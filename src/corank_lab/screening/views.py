"""
Views of records as rows whose products are similarities: text, citations within the collection, and all references.

Rows have norm 1, or 0 if a record lacks the view, which then contributes nothing. The kernel is

    K = .7 text + .2 links + .1 references + 1,

where 1 is a penalised intercept. If no record has references, the text has weight 1. The weights were chosen on reviews
(docs/experiments/screening.md).
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.errors import InputError
from corank.text import split_words
from corank_lab.records.records import Records

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

    vocabulary: TfidfVocabulary  # makes tf-idf rows of other texts
    root: float  # factor of the tf-idf rows, which are the first columns of `sparse`
    kernel: Rows | None  # kernel of all records, or None if they are more than `MAX_KERNEL`

    @cached_property
    def typical(self) -> Rows:
        """Mean similarity of each record to all records."""
        return self.times(self, np.full(len(self), 1 / len(self)))

    def likeness(self, topic: str) -> Rows:
        """Compare a description with every record."""
        return self.text_times(self.vocabulary.rows([topic]))

    def text_of(self, rows: Any) -> Any:
        """Return the tf-idf rows of some records."""
        return self.sparse[rows][:, : self.n_terms] / self.root

    def text_times(self, text: Any) -> Rows:
        """Multiply the tf-idf rows of all records by one row; there is no copy of them."""
        dense = np.zeros(self.sparse.shape[1], dtype=np.float32)
        dense[: self.n_terms] = text.toarray().ravel() if sparse.issparse(text) else text
        return np.asarray((self.sparse @ dense) / np.float32(self.root))

    @property
    def n_terms(self) -> int:
        """Number of words and word pairs."""
        return len(self.vocabulary.weights)


def make_views(records: Records, *, max_kernel: int = MAX_KERNEL) -> Views:
    """Make the views of a collection. Screenings and replays of the same records can share them."""
    both = (f"{title} {abstract}" for title, abstract in zip(records.titles, records.abstracts, strict=True))
    vocabulary, blocks = TfidfVocabulary.learn(both)
    if not any(block.nnz for block in blocks):
        raise InputError(
            f"the titles and abstracts of the {len(records)} records have no word that distinguishes them; check the "
            "columns, or pass more records."
        )
    own, root = _missing(blocks), 1.0
    if any(records.references):
        links, references = map(_shared, reference_views(records))
        shares = np.array([TEXT, LINKS, REFERENCES], dtype=np.float32)
        own = shares @ np.array([own, links[1], references[1]])
        roots, root = np.sqrt(shares), float(np.sqrt(TEXT))
        for block in blocks:
            block.data *= roots[0]
        blocks += [links[0] * roots[1], references[0] * roots[2]]
        del links, references
    shared = join_columns(blocks)
    kernel = None
    if len(records) <= max_kernel:
        kernel = (shared @ shared.T).toarray() + np.float32(LEVEL)
        kernel[np.diag_indices(len(records))] += own
    return Views(shared, own, vocabulary, root, kernel)


def join_columns(blocks: list[Any]) -> Any:
    """
    Put the columns of sparse blocks side by side in one CSR matrix of float32.

    Unlike in `scipy.sparse.hstack`, each block is removed from the list, and freed, once it is copied.
    """
    n, width = blocks[0].shape[0], sum(block.shape[1] for block in blocks)
    sizes = np.zeros(n, dtype=np.int64)
    for block in blocks:
        sizes += np.bincount(block.indices, minlength=n) if block.format == "csc" else np.diff(block.indptr)
    ends = np.r_[0, np.cumsum(sizes)]
    ends = ends.astype(np.int32 if ends[-1] < 2**31 else np.int64)
    places, column = ends[:-1].copy(), 0
    indices, data = np.empty(ends[-1], np.int32), np.empty(ends[-1], np.float32)
    while blocks:
        block = blocks.pop(0).tocsr()
        sizes = np.diff(block.indptr)
        positions = np.repeat((places - block.indptr[:-1]).astype(ends.dtype), sizes)
        positions += np.arange(len(positions), dtype=ends.dtype)
        indices[positions] = block.indices + np.int32(column)
        data[positions] = block.data
        places += sizes
        column += block.shape[1]
    return sparse.csr_matrix((data, indices, ends), shape=(n, width))


def reference_views(records: Records) -> tuple[Any, Any]:
    """Make the views of citations."""
    n = len(records)
    number = dict(records.number)  # works outside the collection follow
    # each work once, in order: the order of a set differs from process to process, and with it the last bits
    cites = [
        (i, number.setdefault(work, len(number)))
        for i, of in enumerate(records.references)
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
    weighted = (counts @ sparse.diags(idf.astype(np.float32))).tocsr()
    _scale_rows([weighted], 0.0)
    return weighted


def _missing(blocks: Sequence[Any]) -> Rows:
    """What the columns of rows of norm 1, in several blocks, lack to it, per record; 0 for empty rows."""
    squares = _squares(blocks)
    return np.where(squares > 0, np.maximum(1 - squares, 0), 0).astype(np.float32)


def _squares(blocks: Sequence[Any]) -> NDArray[np.float64]:
    """Sum of the squares of each row of blocks of columns, added in the order of the columns."""
    n = blocks[0].shape[0]
    sums = np.zeros(n)
    for block in blocks:
        rows = _rows_of(block)
        for start in range(0, len(rows), PART):
            part = slice(start, start + PART)
            # the sums so far come first, which adds in one order and is faster than `np.add.at`
            sums = np.bincount(np.r_[np.arange(n), rows[part]], np.r_[sums, np.square(block.data[part])], n)
    return sums


def _rows_of(block: Any) -> Numbers:
    """Row of each value."""
    if block.format == "csc":
        return np.asarray(block.indices)
    return np.repeat(np.arange(block.shape[0], dtype=np.int32), np.diff(block.indptr))


def _shared(features: Any) -> tuple[Any, Rows]:
    """Columns that occur in at least two records, and per record the sum of squares of the others."""
    frequency = np.bincount(features.indices, minlength=features.shape[1])
    own = features.multiply(features) @ (frequency < 2).astype(np.float32)
    return features[:, frequency >= 2].tocsr(), np.asarray(own, dtype=np.float32).ravel()


MAX_FREQUENCY = 0.95
"""Share of the texts above which a term is dropped."""

PART = 2_000_000
"""Number of pairs that are sorted at once."""

Integers = NDArray[np.int64]
Numbers = NDArray[np.int32]
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TfidfVocabulary:
    """Words and word pairs with their weights."""

    number: dict[str, int]  # column of each word
    n_words: int  # number of these columns
    # sorted codes of the pairs that occur in several texts: column of the first word × `n_words` + column of the second
    # word. Their columns follow those of the words
    pairs: Integers
    weights: Floats  # idf of all columns; 0 for dropped terms

    @classmethod
    def learn(cls, texts: Iterable[str]) -> tuple[TfidfVocabulary, list[Any]]:
        """
        Learn the vocabulary of texts; return it with the rows of these texts.

        The rows are blocks of columns for `join_columns`: the words, then ranges of the pairs by their first words.
        """
        number: defaultdict[str, int] = defaultdict()
        number.default_factory = number.__len__  # a new word gets the next number
        words, ends = _numbers(texts, number)
        n, n_words = len(ends) - 1, len(number)

        def idf(frequency: Any) -> Floats:
            weights = np.log((1 + n) / (1 + frequency)) + 1
            return np.where(frequency > MAX_FREQUENCY * n, 0.0, weights).astype(np.float32)

        singles = _count_words(words, ends, n_words)
        weights = [idf(np.bincount(singles.indices, minlength=n_words))]
        _apply_weights(singles.data, weights[0][singles.indices])
        singles.eliminate_zeros()
        blocks, codes, squares = [singles], [np.empty(0, np.int64)], np.zeros(n)
        for first in _pairs_by_first_word(words, ends, n_words):
            pairs = words[first].astype(np.int64) * n_words + words[first + 1]
            texts_of = np.repeat(np.arange(n, dtype=np.int32), np.diff(np.searchsorted(first, ends)))
            rows, counts, known, frequency = _count_pairs(pairs, texts_of, squares)
            weight = idf(frequency)
            _apply_weights(counts, np.repeat(weight, frequency))
            block = sparse.csc_matrix((counts, rows, np.r_[0, np.cumsum(frequency)]), shape=(n, len(frequency)))
            block.eliminate_zeros()
            blocks.append(block)
            codes.append(known)
            weights.append(weight)
        del words
        _scale_rows(blocks, squares * float(idf(np.array(1))) ** 2)
        return cls(dict(number), n_words, np.concatenate(codes), np.concatenate(weights)), blocks

    def rows(self, texts: Sequence[str]) -> Any:
        """Return the rows of other texts; unknown words are dropped and break pairs, and unknown pairs are dropped."""
        words, ends = _numbers(texts, defaultdict(lambda: -1, self.number))
        texts_of = np.repeat(np.arange(len(texts)), np.diff(ends))
        first, second = words[:-1], words[1:]
        codes = first.astype(np.int64) * self.n_words + second
        places = np.minimum(np.searchsorted(self.pairs, codes), max(len(self.pairs) - 1, 0))
        is_pair = (texts_of[1:] == texts_of[:-1]) & (first >= 0) & (second >= 0)
        is_pair &= self.pairs[places] == codes if len(self.pairs) else False
        known = words >= 0
        rows = np.r_[texts_of[known], texts_of[1:][is_pair]]
        columns = np.r_[words[known], places[is_pair] + self.n_words]
        shape = (len(texts), len(self.weights))
        counts = sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
        _apply_weights(counts.data, self.weights[counts.indices])
        counts.eliminate_zeros()
        _scale_rows([counts], 0.0)
        return counts


def _apply_weights(counts: Floats, weights: Floats) -> None:
    """Replace counts by (1 + log count) × weight."""
    np.log(counts, out=counts)
    counts += 1
    counts *= weights


def _scale_rows(blocks: Sequence[Any], squares: Any) -> None:
    """
    Scale the rows of blocks of columns to norm 1, in place; empty rows stay empty.

    squares: Sums of squares of what has no column.
    """
    norms = np.sqrt(_squares(blocks) + squares)
    norms[norms == 0.0] = 1.0
    norms = norms.astype(np.float32)
    for block in blocks:
        block.data /= norms[_rows_of(block)]


def _numbers(texts: Iterable[str], number: dict[str, int]) -> tuple[Numbers, Numbers]:
    """Numbers of all words of the texts in order, and where each text begins, with the end of the last."""
    words, ends, of = array("i"), array("i", [0]), number.__getitem__
    for text in texts:
        words.extend(map(of, split_words(text.lower())))
        ends.append(len(words))
    return np.frombuffer(words, dtype=np.int32), np.array(ends, dtype=np.int32)


def _count_words(words: Numbers, ends: Numbers, n_words: int) -> Any:
    """Count the words of each text."""
    ones = np.ones(len(words), np.float32)
    counts = sparse.csr_matrix((ones, words.copy(), ends.copy()), shape=(len(ends) - 1, n_words))
    counts.sum_duplicates()
    return counts.copy()  # without the space of the duplicates


def _pairs_by_first_word(words: Numbers, ends: Numbers, n_words: int) -> Iterator[NDArray[np.intp]]:
    """Yield the places of the first words of pairs of neighbours, by ranges of the word, about `PART` places each."""
    inside = np.ones(len(words), dtype=np.bool_)
    inside[ends[1:][ends[1:] > 0] - 1] = False
    part_of = np.cumsum(np.bincount(words[inside], minlength=n_words)) // PART
    parts = part_of.astype(np.int16)[words]
    for part in range(int(part_of[-1]) + 1 if len(part_of) else 0):
        yield np.flatnonzero(inside & (parts == part))


def _count_pairs(codes: Integers, at: Numbers, squares: Any) -> tuple[Numbers, Floats, Integers, Integers]:
    """Count pairs per text: rows and counts, column by column, and the codes and sizes of the columns."""
    codes, at = _sorted_pairs(codes, at, len(squares))
    is_new_pair = np.ones(len(codes), dtype=np.bool_)
    is_new_pair[1:] = codes[1:] != codes[:-1]
    is_new = is_new_pair.copy()
    is_new[1:] |= at[1:] != at[:-1]
    entries = np.flatnonzero(is_new)
    counts = np.diff(entries, append=len(codes)).astype(np.float32)
    rows, begins = at[entries], np.flatnonzero(is_new_pair[entries])
    frequency = np.diff(begins, append=len(entries))
    is_shared = np.repeat(frequency > 1, frequency)
    np.add.at(squares, rows[~is_shared], (1 + np.log(counts[~is_shared].astype(np.float64))) ** 2)
    return rows[is_shared], counts[is_shared], codes[entries[begins[frequency > 1]]], frequency[frequency > 1]


def _sorted_pairs(codes: Integers, at: Numbers, n: int) -> tuple[Integers, Numbers]:
    """Sort pairs by code and text; `at` is in the order of the texts, from 0 to n - 1."""
    shift = (n - 1).bit_length()
    if int(codes.max(initial=0)).bit_length() + shift > 62:
        order = np.argsort(codes, kind="stable")
        return codes[order], at[order]
    # sorting one array of numbers is several times as fast as sorting places
    both = codes << shift
    both |= at
    both.sort()
    return both >> shift, (both & ((1 << shift) - 1)).astype(np.int32)
