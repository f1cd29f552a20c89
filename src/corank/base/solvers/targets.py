"""Targets of a loss: scores reduced to their order, or mapped to shares between 0 and 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from corank.data.ranking import RankingData

Range = tuple[float, float]


def ordered(data: RankingData) -> RankingData:
    """Return the same problem with scores 0, 1, 2, ... inside each query, for a loss that uses only the order."""
    if data.y is None:
        return data
    y, grades = data.y.copy(), np.diff(data.query_grades)
    sizes = data.grade_stops - data.grade_starts
    rank = np.arange(len(sizes)) - np.repeat(data.query_grades[:-1], grades)
    y[data.order[data.is_scored[data.order]]] = np.repeat(rank, sizes)
    return replace(data, y=y)


def unit_range(data: RankingData, rows: bool) -> Range:
    """Return the scores that are mapped to 0 and 1 by a loss that learns shares."""
    if data.y is None:
        return 0.0, 1.0
    if rows:
        y = data.y[data.scored_rows]
        low, high = float(y.min()), float(y.max())
        return (low, high) if low < 0.0 or high > 1.0 else (0.0, 1.0)
    # sorted by score inside queries
    learns = np.zeros(data.n_rows, dtype=bool)
    learns[data.scored_rows] = True
    by_score = data.order[learns[data.order]]
    y, codes = data.y[by_score], data.queries.codes[by_score]
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    return 0.0, max(1.0, float((y[np.append(first[1:], len(y)) - 1] - y[first]).max()))


def in_unit(data: RankingData, limits: Range) -> RankingData:
    """Return the same problem with scores mapped to shares."""
    if data.y is None or limits == (0.0, 1.0):
        return data
    low, high = limits
    return replace(data, y=(data.y - low) / (high - low) if low < high else data.y - low + 0.5)
