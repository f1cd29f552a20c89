"""Answers: the preferences of a problem, given as they are or made from scores inside queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corank.data.problem.ranking import RankingData

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def answers_of(data: RankingData, most: int, rng: np.random.Generator) -> tuple[Integers, Floats]:
    """
    Pairs of rows, the preferred first, and their weights.

    most: where scores make more pairs than this, so many random ones stand for all, and weigh as much together.
    """
    if data.pairs is not None:
        return data.pairs, data.pair_weight
    sizes = data.pairs_per_query
    total, chosen = int(sizes.sum()), None
    if total > most:
        chosen = np.sort(rng.choice(total, most, replace=False))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    found = []
    for q in np.flatnonzero(sizes):
        pairs = _of_query(data, int(q))
        if chosen is not None:
            first, last = np.searchsorted(chosen, starts[q : q + 2])
            pairs = pairs[chosen[first:last] - starts[q]]
        found.append(pairs)
    pairs = np.concatenate(found)
    weight = data.weight_of(pairs.ravel()).reshape(pairs.shape).prod(axis=1)
    return pairs, weight if chosen is None else weight * (total / most)


def _of_query(data: RankingData, q: int) -> Integers:
    """All pairs of rows of one query whose scores differ, grade by grade."""
    pairs = []
    begin = data.starts[q]
    for g in range(data.query_grades[q] + 1, data.query_grades[q + 1]):
        better, worse = data.order[data.grade_starts[g] : data.grade_stops[g]], data.order[begin : data.grade_starts[g]]
        pairs.append(np.column_stack([np.repeat(better, len(worse)), np.tile(worse, len(better))]))
    return np.concatenate(pairs)
