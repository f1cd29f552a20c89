"""MQ2008 as papers on online learning use it: columns scaled to [0, 1] inside each query, train parts served."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from corank.base.transformers import QueryScaler
from corank.clicks import CLICK_MODELS, CascadeClicks
from corank.data.ranking import RankingData
from experiments.datasets.mq2008 import N_FOLDS, folds, read_parts

K, LISTS, DISCOUNT = 10, 10_000, 0.9995
"""Rows of a list, lists of a run, and the discount of online performance (Oosterhuis and de Rijke, 2018)."""

USERS = tuple(CLICK_MODELS)[:3]
STOPS = ("click", "any")
BM25 = slice(20, 25)
"""Columns of BM25: of body, anchor, title, URL and all of them."""


@cache
def part(fold: int, which: str) -> RankingData:
    """
    Read one part of a fold.

    fold: 0 to 4.
    which {"train", "validation", "test"}: which part.
    """
    numbers = getattr(folds()[fold], which)
    rows = read_parts(numbers if which == "train" else (numbers,))
    X = QueryScaler().fit_transform(rows.X, qid=rows.qid)
    return RankingData.of(X, rows.y, rows.qid)


def user_of(kind: str, stop_after: str) -> CascadeClicks:
    """Return a user of three grades."""
    return CascadeClicks(kind, 3, stop_after)


def seed_of(*words: int) -> int:
    """Return a random seed that is the same for all methods of one fold and purpose."""
    return int(np.random.SeedSequence(words).generate_state(1)[0] % 2**31)


def fold_error(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """
    Return the standard error of a mean over runs, with fixed folds.

    values (n_runs, ...): those of the folds one after the other, equally many of each.
    """
    by_fold = values.reshape(N_FOLDS, -1, *values.shape[1:])
    if by_fold.shape[1] < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(np.sqrt(by_fold.var(axis=1, ddof=1).mean(axis=0) / len(values)))


def bm25(data: RankingData) -> NDArray[np.float64]:
    """Return the mean of BM25's columns, in [0, 1]."""
    return np.asarray(data.X[:, BM25].mean(axis=1))
