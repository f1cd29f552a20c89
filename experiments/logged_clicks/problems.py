"""MQ2008 with a production ranker fitted to a few judgements, and simulated clicks on its lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.io.clicks import ClickLog
from corank.data.queries import Queries
from corank.models.linear import SPD
from experiments.datasets.mq2008 import folds, read_parts

K = 10
"""Length of a list."""
WANTED = np.array([0.05, 0.5, 0.95])
"""Probability of a click on an examined document of grade 0, 1, 2."""
SWAPPED = 0.1
"""Share of the lists in which two documents are swapped."""
BM25 = tuple(range(20, 25))
"""Columns whose mean ranks rows without judgements."""
JUDGED = 5
"""Number of queries that the production ranker is fitted to."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows, grades, queries and documents of some parts of MQ2008."""

    X: Any
    y: Floats
    queries: Queries
    docids: NDArray[np.int64]

    @property
    def qid(self) -> NDArray[np.int64]:
        """Number of each row's query."""
        return self.queries.codes

    @property
    def wanted(self) -> Floats:
        """Probability of a click on each document, if it is examined."""
        return WANTED[self.y.astype(np.int64)]


@cache
def part(fold: int, test: bool, longest: int | None = None) -> Part:
    """
    Read a fold.

    fold: from 0.
    test: whether the part to test on is wanted, else those to train on.
    longest: keeps the queries of up to so many documents.
    """
    of = folds()[fold]
    rows = read_parts((of.test,) if test else of.train)
    queries = rows.data.queries
    kept = np.flatnonzero(queries.sizes[queries.codes] <= (longest or len(rows.y)))
    return Part(rows.X[kept], rows.y[kept], Queries.of(queries.codes[kept], len(kept)), np.arange(len(kept)))


def production(train: Part, rng: np.random.Generator) -> SPD:
    """Fit the ranker whose lists are shown, to a few queries with more than one grade."""
    spread = np.array([np.ptp(train.y[rows]) for rows in np.split(train.queries.order, train.queries.starts[1:-1])])
    chosen = rng.choice(np.flatnonzero(spread > 0), JUDGED, replace=False)
    rows = np.isin(train.qid, chosen)
    return SPD().fit(train.X[rows], train.y[rows], qid=train.qid[rows])


def looks(eta: float) -> Floats:
    """Probability that each position is examined."""
    return np.arange(1.0, K + 1) ** -eta


def clicks(part: Part, scores: Floats, eta: float, n_lists: int, rng: np.random.Generator) -> ClickLog:
    """
    Show lists and draw clicks; in some lists the first document and a random one are swapped.

    scores: of the ranker that makes the lists.
    eta: power by which looks fall with the place.
    n_lists: how many; drawn uniformly over queries.
    """
    order = part.queries.order[np.lexsort((-scores[part.queries.order], part.qid[part.queries.order]))]
    starts, sizes = part.queries.starts, np.minimum(part.queries.sizes, K)
    query = rng.integers(len(sizes), size=n_lists)
    number = np.repeat(np.arange(n_lists), sizes[query])
    place = np.arange(len(number)) - np.repeat(np.cumsum(sizes[query]) - sizes[query], sizes[query])
    other = np.where(rng.random(n_lists) < SWAPPED, rng.integers(sizes[query]), 0)[number]
    index = np.where(place == 0, other, np.where(place == other, 0, place))
    rows = order[starts[query[number]] + index]
    clicked = (rng.random(len(rows)) < looks(eta)[place]) & (rng.random(len(rows)) < part.wanted[rows])
    return ClickLog.of(part.qid[rows], part.docids[rows], place + 1, clicked, impression=number)
