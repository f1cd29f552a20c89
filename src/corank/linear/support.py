"""Which rows a margin rests on: the pairs inside it, counted without visiting one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from corank.core.pairs.squared_hinge import squared_hinge_loss
from corank.core.threads import cut, n_threads, spread
from corank.data.problem.ranking import RankingData
from corank.solvers.smooth_losses import block_of

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
    # with weights of 0 and 1, the weight of partners is their number
    counted = data if data.weights is None else replace(data, weights=(data.weights > 0.0).astype(np.float64))
    rows, (block, _) = data.order[data.is_scored[data.order]], block_of(counted)
    order, gradient, degree = np.empty(len(rows), dtype=np.int64), np.empty(len(rows)), np.empty(len(rows))
    s, runs = scores[rows], cut(block.starts, n_threads())
    spread(lambda first, last: squared_hinge_loss(block, s, first, last, order, gradient, degree), runs)
    out[rows] = np.rint(degree).astype(np.int64)
    return out
