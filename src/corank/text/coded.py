"""Coded: the different values of tf, df and length in a corpus, and which of them each posting, word and text has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.core.text.links import LinkProblem, Tables
from corank.core.text.postings import sizes
from corank.text.corpus import Corpus
from corank.text.links import Links

Floats = NDArray[np.float64]
Codes = NDArray[np.uint32]


# codes of a unit of log tf where lengths make every one different: steps of 3 %
_STEPS = 32


@dataclass(frozen=True, eq=False)
class Coded:
    """
    The inputs of the three functions, each different value once.

    inputs: log tf, log(N/df) and log(length/mean length), a table each.
    tf: code of each posting.
    df: of each word.
    length: of each document.
    text_tf, text_length: the same of the words of linked texts, and of the texts; empty without links.
    """

    inputs: Tables
    tf: Codes
    df: Codes
    length: Codes
    text_tf: Codes
    text_length: Codes

    @classmethod
    def of(cls, corpus: Corpus, b: float, links: Links | None = None) -> Coded:
        """
        Code a corpus, and the texts that are linked with its documents.

        b: how much tf is held against the length of its text, see `tf_inputs`; 0 counts as the paper does.
        """
        tf = tf_inputs(corpus.postings.values, corpus.lengths[corpus.postings.docs], corpus.mean_length, b)
        length = length_inputs(corpus.lengths, corpus.mean_length)
        text_tf = text_length = np.empty(0)
        if links is not None:
            lengths = np.repeat(links.lengths, sizes(links.texts.starts))
            text_tf = tf_inputs(links.texts.values, lengths, corpus.mean_length, b)
            text_length = length_inputs(links.lengths, corpus.mean_length)
        if b > 0.0:
            tf, text_tf = np.rint(_STEPS * tf) / _STEPS, np.rint(_STEPS * text_tf) / _STEPS
        df, df_codes = np.unique(corpus.document_frequency, return_inverse=True)
        tf_table, tf_codes = np.unique(np.concatenate([tf, text_tf]), return_inverse=True)
        length_table, length_codes = np.unique(np.concatenate([length, text_length]), return_inverse=True)
        return cls(
            Tables(tf_table, df_inputs(df, corpus.n_documents), length_table),
            tf_codes[: len(tf)].astype(np.uint32),
            df_codes.astype(np.uint32),
            length_codes[: len(length)].astype(np.uint32),
            tf_codes[len(tf) :].astype(np.uint32),
            length_codes[len(length) :].astype(np.uint32),
        )

    def problem(self, links: Links, symmetric: bool) -> LinkProblem:
        """
        Lay out links, and postings sorted by word and tf, as kernels follow them.

        symmetric: whether texts are weighed as documents are.
        """
        postings, n_values = links.corpus.postings, len(self.inputs.tf)
        terms = np.repeat(np.arange(links.corpus.n_terms, dtype=np.int64), links.corpus.document_frequency)
        key = terms * n_values + self.tf
        order = np.argsort(key, kind="stable")
        key = key[order]
        is_first = np.ones(len(key), dtype=bool)
        is_first[1:] = key[1:] != key[:-1]
        begins = np.flatnonzero(is_first)
        runs = np.bincount(key[begins] // n_values, minlength=links.corpus.n_terms)
        return LinkProblem(
            np.concatenate([[0], np.cumsum(runs)]).astype(np.uint64),
            np.append(begins, len(key)).astype(np.uint64),
            (key[begins] % n_values).astype(np.uint32),
            postings.docs[order],
            links.texts.starts,
            links.texts.terms,
            self.text_tf,
            links.texts.values.astype(np.float64),
            not symmetric,
            self.df,
            self.length,
            self.text_length,
            links.starts,
            links.linked,
            links.own,
        )


def tf_inputs(counts: NDArray[Any], lengths: NDArray[Any], mean_length: float, b: float) -> Floats:
    """
    Return log tf, of a count that is held against the length of its text as in BM25: tf/(1 − b + b · length/mean).

    lengths: length of the text of each count.
    """
    return np.asarray(np.log(counts) - np.log(1.0 - b + b * np.maximum(lengths, 1) / mean_length))


def df_inputs(df: NDArray[Any], n_documents: int) -> Floats:
    """Return log(N/df)."""
    return np.asarray(np.log(max(n_documents, 1) / np.maximum(df, 1)))


def length_inputs(lengths: NDArray[Any], mean_length: float) -> Floats:
    """Return log(length/mean length); an empty text is taken for one of one word."""
    return np.asarray(np.log(np.maximum(lengths, 1) / mean_length))
