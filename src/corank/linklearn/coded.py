"""Coded: the different values of tf, df and length in a corpus, and which of them each posting, word and text has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.core.links import LinkProblem, Tables
from corank.linklearn.corpus import Corpus
from corank.linklearn.links import Links

Floats = NDArray[np.float64]
Codes = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Coded:
    """
    The inputs of the three functions, each different value once.

    inputs: log tf, log(N/df) and log(length/mean length), a table each; an empty text is taken for one of one word.
    tf: code of each posting.
    df: of each word.
    length: of each document.
    """

    inputs: Tables
    tf: Codes
    df: Codes
    length: Codes
    _tf_values: NDArray[np.int64]
    _length_values: NDArray[np.int64]

    @classmethod
    def of(cls, corpus: Corpus, links: Links | None = None) -> Coded:
        """Code a corpus, and the texts that are linked with its documents."""
        tf_parts, length_parts = [corpus.postings.values], [corpus.lengths]
        if links is not None:
            tf_parts.append(links.texts.values)
            length_parts.append(links.lengths)
        tf = _distinct(*tf_parts)
        df, df_codes = np.unique(corpus.document_frequency, return_inverse=True)
        length = _distinct(*(np.maximum(part, 1) for part in length_parts))
        inputs = Tables(
            np.log(tf), np.log(max(corpus.n_documents, 1) / np.maximum(df, 1)), np.log(length / corpus.mean_length)
        )
        return cls(
            inputs,
            _codes(tf, corpus.postings.values),
            df_codes.astype(np.uint32),
            _codes(length, np.maximum(corpus.lengths, 1)),
            tf,
            length,
        )

    def problem(self, links: Links) -> LinkProblem:
        """Lay out links, and postings sorted by word and tf, as kernels follow them."""
        postings = links.corpus.postings
        terms = np.repeat(np.arange(links.corpus.n_terms, dtype=np.int64), np.diff(postings.starts.astype(np.int64)))
        key = terms * len(self._tf_values) + self.tf
        order = np.argsort(key, kind="stable")
        key = key[order]
        is_first = np.ones(len(key), dtype=bool)
        is_first[1:] = key[1:] != key[:-1]
        begins = np.flatnonzero(is_first)
        of_run = key[begins]
        runs = np.bincount(of_run // len(self._tf_values), minlength=links.corpus.n_terms)
        return LinkProblem(
            np.concatenate([[0], np.cumsum(runs)]).astype(np.uint64),
            np.append(begins, len(key)).astype(np.uint64),
            (of_run % len(self._tf_values)).astype(np.uint32),
            postings.docs[order],
            links.texts.starts,
            links.texts.terms,
            _codes(self._tf_values, links.texts.values),
            self.df,
            self.length,
            _codes(self._length_values, np.maximum(links.lengths, 1)),
            links.starts,
            links.linked,
            links.own,
        )


def _distinct(*parts: NDArray[np.generic]) -> NDArray[np.int64]:
    """Different numbers, in ascending order; at least one."""
    found = [np.unique(part).astype(np.int64) for part in parts]
    values = np.unique(np.concatenate(found))
    return values if len(values) else np.ones(1, np.int64)


def _codes(values: NDArray[np.int64], numbers: NDArray[np.generic]) -> Codes:
    return np.searchsorted(values, numbers).astype(np.uint32)
