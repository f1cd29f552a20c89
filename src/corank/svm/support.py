"""Which rows a margin rests on: the pairs inside it, counted without visiting one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.core.hinge_pairs import Block, sweep
from corank.core.threads import cut, n_threads, spread
from corank.data.ranking import RankingData

Floats = NDArray[np.float64]


def active_partners(data: RankingData, scores: Floats) -> NDArray[np.int64]:
    """
    Count for each row the rows it is compared with at a margin below 1, in O(n log n).

    data: the problem; rows and preferences of weight zero take no part.
    scores (n_rows,): scores by a model.
    Returns: number of active partners; each active pair is counted at both of its ends.

    >>> data = RankingData.of([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> active_partners(data, np.array([0.0, 0.5, 3.0])).tolist()
    [1, 1, 0]
    """
    out = np.zeros(data.n_rows, dtype=np.int64)
    if data.pairs is not None:
        winners, losers = data.pairs.T
        active = (scores[winners] - scores[losers] < 1.0) & (data.pair_weight > 0.0)
        np.add.at(out, data.pairs[active].ravel(), 1)
        return out
    assert data.y is not None
    takes_part = np.zeros(data.n_rows, dtype=bool)
    takes_part[data.scored_rows] = True
    rows = data.order[takes_part[data.order]]
    y, query = data.y[rows], data.queries.codes[rows]
    starts = np.append(0, np.cumsum(np.bincount(query, minlength=len(data.queries)))).astype(np.int64)
    new = np.ones(len(rows), dtype=np.int64)
    new[1:] = (query[1:] != query[:-1]) | (y[1:] != y[:-1])
    level = np.cumsum(new)
    begin = np.repeat(starts[:-1], np.diff(starts))
    block = Block(starts, level - level[begin], y, np.ones(len(rows)))
    s, order = scores[rows], np.empty(len(rows), dtype=np.int64)
    slope, degree = np.empty(len(rows)), np.empty(len(rows))
    spread(lambda first, last: sweep(block, s, first, last, order, slope, degree), cut(starts, n_threads()))
    out[rows] = np.rint(degree).astype(np.int64)
    return out
