"""The data sets on which λ and scorers are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.data.collection import Dataset
from corank.data.io.letor_reader import read_letor
from experiments.datasets.catalog import dataset
from experiments.datasets.mq2008 import folds, read_parts

Floats = NDArray[np.float64]

# BM25 of body, anchor, title, URL and the whole document
_BM25_MQ2008, _BM25_MSLR = tuple(range(20, 25)), tuple(range(105, 110))
_MADE_ROWS, _MADE_COLUMNS = 30, 20


@dataclass(frozen=True, eq=False)
class Judged:
    """
    Rows with grades.

    X, y, qid: as `Ranker.fit` takes them.
    """

    X: Floats
    y: Floats
    qid: NDArray[np.int64]

    def some(self, n_queries: int, rng: np.random.Generator) -> Judged:
        """Draw queries."""
        kept = np.isin(self.qid, rng.permutation(np.unique(self.qid))[:n_queries])
        return Judged(self.X[kept], self.y[kept], self.qid[kept])


@dataclass(frozen=True, eq=False)
class Split:
    """
    Training and test rows.

    bm25: columns whose mean ranks rows without judgements; None if there are none.
    """

    train: Judged
    test: Judged
    bm25: tuple[int, ...] | None


def mq2008(fold: int) -> Split:
    """Return one official fold."""
    parts = folds()[fold]
    train, test = (_judged(read_parts(numbers)) for numbers in (parts.train, (parts.test,)))
    return Split(train, test, _BM25_MQ2008)


def mslr() -> Split:
    """Return the sample of MSLR-WEB30K: 43 training and 43 test queries."""
    entry = dataset("mslr-sample")
    parts = [read_letor([entry.path(f"msn1.fold1.{part}.5k.txt")], dtype=np.float64, layout="dense")
             for part in ("train", "test")]  # fmt: skip
    train, test = map(_judged, parts)
    return Split(train, test, _BM25_MSLR)


def _judged(rows: Dataset) -> Judged:
    return Judged(np.asarray(rows.X), rows.y, np.asarray(rows.qid))


def made(seed: int, n_queries: int = 1000) -> Split:
    """Return synthetic grades: a fixed function of sines, products and absolute values of columns, plus noise."""
    return Split(_made(2 * seed, n_queries), _made(2 * seed + 1, 200), None)


def _made(seed: int, n_queries: int) -> Judged:
    rng, truth = np.random.default_rng(seed), np.random.default_rng(99)
    n = n_queries * _MADE_ROWS
    X = rng.normal(size=(n, _MADE_COLUMNS))
    z = X @ (truth.normal(size=(_MADE_COLUMNS, 5)) / np.sqrt(_MADE_COLUMNS))
    u = np.sin(2.0 * z[:, 0]) + 1.5 * z[:, 1] * z[:, 2] + np.abs(z[:, 3]) + z[:, 4] + 0.5 * rng.normal(size=n)
    y = np.digitize(u, [0.75, 1.6, 2.5, 3.4]).astype(np.float64)
    return Judged(X, y, np.repeat(np.arange(n_queries), _MADE_ROWS))
