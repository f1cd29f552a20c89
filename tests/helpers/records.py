"""A small collection of records: relevant ones share words and cite each other."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np

from corank.text.words import split_words
from corank_lab.records.records import Records


def collection(n: int = 60, n_relevant: int = 10, *, seed: int = 0, references: bool = True) -> Records:
    rng = np.random.default_rng(seed)
    relevant = np.zeros(n, dtype=bool)
    relevant[rng.choice(n, n_relevant, replace=False)] = True
    texts, cited = [], []
    for at in range(n):
        words = [f"w{k}" for k in rng.integers(0, 40, 12)]
        words += [f"topic{k}" for k in rng.integers(0, 6, 4 if relevant[at] else 1)]
        texts.append(" ".join(words))
        near = np.flatnonzero(relevant) if relevant[at] else np.arange(n)
        works = (*(f"r{k}" for k in rng.choice(near, 2)), f"far{rng.integers(5)}")
        cited.append(works if references and at % 4 else ())
    titles, abstracts = [text[:20] for text in texts], [text if at % 7 else "" for at, text in enumerate(texts)]
    return Records([f"r{at}" for at in range(n)], titles, abstracts, cited, relevant.astype(float))


def tfidf_products(texts):
    """Products from the definition, over words and their pairs, text by text."""
    words = [split_words(text.lower()) for text in texts]
    terms = [Counter([*of, *pairwise(of)]) for of in words]
    frequency = Counter(term for of in terms for term in of)
    rows = [
        {
            term: (1 + math.log(count)) * (math.log((1 + len(texts)) / (1 + frequency[term])) + 1)
            for term, count in of.items()
            if frequency[term] <= 0.95 * len(texts)
        }
        for of in terms
    ]
    norms = [math.sqrt(sum(value**2 for value in row.values())) or 1.0 for row in rows]
    units = [{term: value / norm for term, value in row.items()} for row, norm in zip(rows, norms, strict=True)]
    return np.array([[sum(value * b.get(term, 0.0) for term, value in a.items()) for b in units] for a in units])
