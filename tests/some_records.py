"""A small collection of records: relevant ones share words and cite each other."""

from __future__ import annotations

import numpy as np

from corank.data.records.records import Records


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
