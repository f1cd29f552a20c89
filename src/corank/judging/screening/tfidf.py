"""
Tf-idf rows of texts, over words and pairs of neighbouring words.

    x_w ∝ (1 + ln count of w in the text) · (ln((1 + n) / (1 + number of texts with w)) + 1),  |x| = 1

Texts are in lower case. Terms that occur in more than 95 % of the texts are dropped. The rows equal those of
scikit-learn's ``TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_df=0.95)``, whose import alone takes longer
than reading a thousand abstracts; word pairs are numbers here, not strings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.data.tokens import split_words

MAX_FREQUENCY = 0.95
"""Share of the texts above which a term is dropped."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TfidfVocabulary:
    """
    Words and word pairs with their idf weights.

    number: number of each word.
    pairs: sorted codes of the pairs: number of the first word × number of words + number of the second word.
    weights: idf of all words, then of all pairs; 0 for dropped terms.
    """

    number: dict[str, int]
    pairs: Integers
    weights: NDArray[np.float32]

    @classmethod
    def learn(cls, texts: Sequence[str]) -> tuple[TfidfVocabulary, Any]:
        """Learn the vocabulary of texts; return it with the rows of these texts."""
        number: defaultdict[str, int] = defaultdict()
        number.default_factory = number.__len__
        words, texts_of = _numbers(texts, number)
        first, second, at = _neighbours(words, texts_of)
        pairs, places = np.unique(first * len(number) + second, return_inverse=True)
        counts = _counts(texts_of, words, at, places + len(number), (len(texts), len(number) + len(pairs)))
        frequency = np.bincount(counts.indices, minlength=counts.shape[1])
        weights = np.log((1 + len(texts)) / (1 + frequency)) + 1
        weights[frequency > MAX_FREQUENCY * len(texts)] = 0.0
        learnt = cls(dict(number), pairs, weights.astype(np.float32))
        return learnt, learnt._weighted(counts)

    def rows(self, texts: Sequence[str]) -> Any:
        """Return the rows of other texts; unknown words are dropped and break pairs."""
        words, texts_of = _numbers(texts, defaultdict(lambda: -1, self.number))
        first, second, at = _neighbours(words, texts_of)
        codes = first * len(self.number) + second
        places = np.minimum(np.searchsorted(self.pairs, codes), max(len(self.pairs) - 1, 0))
        found = (first >= 0) & (second >= 0)
        found &= self.pairs[places] == codes if len(self.pairs) else False
        known = words >= 0
        shape = (len(texts), len(self.weights))
        pairs = places[found] + len(self.number)
        return self._weighted(_counts(texts_of[known], words[known], at[found], pairs, shape))

    def _weighted(self, counts: Any) -> Any:
        counts.data = (1 + np.log(counts.data)) * self.weights[counts.indices]
        counts.eliminate_zeros()
        return unit_rows(counts)


def unit_rows(rows: Any) -> Any:
    """Scale sparse rows to norm 1; empty rows stay empty."""
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float32)).ravel()
    norms[norms == 0.0] = 1.0
    rows.data = rows.data / np.repeat(norms, np.diff(rows.indptr))
    return rows


def _numbers(texts: Sequence[str], number: dict[str, int]) -> tuple[Integers, Integers]:
    """Numbers of all words of the texts in order, and the text of each."""
    found = [[number[word] for word in split_words(text.lower())] for text in texts]
    sizes = [len(words) for words in found]
    return np.array([one for words in found for one in words], dtype=np.int64), np.repeat(np.arange(len(texts)), sizes)


def _neighbours(words: Integers, texts_of: Integers) -> tuple[Integers, Integers, Integers]:
    """Pairs of neighbouring words of a text, and their texts."""
    inside = texts_of[1:] == texts_of[:-1]
    return words[:-1][inside], words[1:][inside], texts_of[1:][inside]


def _counts(texts_of: Integers, words: Integers, texts_of_pairs: Integers, pairs: Integers, shape: Any) -> Any:
    """Counts of words and pairs per text."""
    rows, columns = np.r_[texts_of, texts_of_pairs], np.r_[words, pairs]
    return sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
