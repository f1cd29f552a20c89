"""
Words: texts as rows of weighted words and pairs of neighbouring words.

    x_w ∝ (1 + ln count of w in the text) · (ln((1 + n) / (1 + number of texts with w)) + 1),  |x| = 1

A word is two letters, digits or underscores or more, in small letters; what more than 95 % of the texts have is left
out. These are the rows of scikit-learn's ``TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_df=0.95)``, whose
import alone takes longer than reading a thousand abstracts; pairs of words are numbers here, not strings.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

MOST = 0.95
"""Share of the texts beyond which what they have tells nothing."""

_WORD = re.compile(r"\w\w+")

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Words:
    """
    What texts are compared by.

    number: each word's number.
    pairs: codes of the pairs, sorted: number of the first times the number of words, plus that of the second.
    weights: of all words, then of all pairs; 0 where it is left out.
    """

    number: dict[str, int]
    pairs: Integers
    weights: NDArray[np.float32]

    @classmethod
    def learn(cls, texts: Sequence[str]) -> tuple[Words, Any]:
        """
        Learn the words of texts.

        Returns: them, and the texts as rows.
        """
        number: defaultdict[str, int] = defaultdict()
        number.default_factory = number.__len__
        words, texts_of = _numbers(texts, number)
        first, second, at = _neighbours(words, texts_of)
        pairs, places = np.unique(first * len(number) + second, return_inverse=True)
        counts = _counts(texts_of, words, at, places + len(number), (len(texts), len(number) + len(pairs)))
        shown = np.bincount(counts.indices, minlength=counts.shape[1])
        weights = np.log((1 + len(texts)) / (1 + shown)) + 1
        weights[shown > MOST * len(texts)] = 0.0
        learnt = cls(dict(number), pairs, weights.astype(np.float32))
        return learnt, learnt._weighted(counts)

    def rows(self, texts: Sequence[str]) -> Any:
        """Return other texts as rows; words that were not learnt are passed over, and part what stands beside them."""
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
    """Scale sparse rows to norm 1; empty ones stay."""
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float32)).ravel()
    norms[norms == 0.0] = 1.0
    rows.data = rows.data / np.repeat(norms, np.diff(rows.indptr))
    return rows


def _numbers(texts: Sequence[str], number: dict[str, int]) -> tuple[Integers, Integers]:
    """Numbers of all words of the texts, one text after the other, and the text of each."""
    found = [[number[word] for word in _WORD.findall(text.lower())] for text in texts]
    sizes = [len(words) for words in found]
    return np.array([one for words in found for one in words], dtype=np.int64), np.repeat(np.arange(len(texts)), sizes)


def _neighbours(words: Integers, texts_of: Integers) -> tuple[Integers, Integers, Integers]:
    """Pairs of words that stand side by side in a text, and their texts."""
    inside = texts_of[1:] == texts_of[:-1]
    return words[:-1][inside], words[1:][inside], texts_of[1:][inside]


def _counts(texts_of: Integers, words: Integers, texts_of_pairs: Integers, pairs: Integers, shape: Any) -> Any:
    """How often each text has each word and pair."""
    rows, columns = np.r_[texts_of, texts_of_pairs], np.r_[words, pairs]
    return sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
