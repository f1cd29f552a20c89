"""Lists: the judged rows of a problem, grouped by query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.data.queries import take_blocks
from corank.data.ranking import RankingData

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lists:
    """
    Rows to learn from, grouped by query.

    pairs (n_pairs, 2): preferences between positions among `rows`, winner first, in order of their query; or None.
    """

    rows: Integers  # (n,): numbers of the rows in the problem
    starts: Integers  # (n_queries + 1,): where each query begins among them
    labels: Floats  # (n,): grades; zeros if preferences are given instead
    weights: Floats  # (n,): weights of the rows
    pairs: Integers | None = None
    pair_weights: Floats | None = None  # (n_pairs,): their weights, those of the two rows included
    pair_starts: Integers | None = None  # (n_queries + 1,): where the preferences of each query begin

    @classmethod
    def of(cls, data: RankingData, *, with_pairs_only: bool = False) -> Lists:
        """Select the judged rows of a problem."""
        codes = data.queries.codes
        is_wanted = np.zeros(data.n_rows, dtype=bool)
        is_wanted[data.scored_rows] = True
        if with_pairs_only and data.y is not None:
            # rows of weight zero are in no pair
            low, high = np.full(len(data.queries), np.inf), np.full(len(data.queries), -np.inf)
            np.minimum.at(low, codes[data.scored_rows], data.y[data.scored_rows])
            np.maximum.at(high, codes[data.scored_rows], data.y[data.scored_rows])
            is_wanted &= (low < high)[codes]
        rows = data.queries.order[is_wanted[data.queries.order]]
        # queries are in order of first appearance, so the codes of these rows never decrease
        kept, counts = np.unique(codes[rows], return_counts=True)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        weights = data.weight_of(rows)
        if data.pairs is None:
            assert data.y is not None
            return cls(rows, starts, np.ascontiguousarray(data.y[rows]), weights)
        position = np.empty(data.n_rows, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        counted = np.flatnonzero(data.pair_weight > 0.0)
        counted = counted[np.argsort(codes[data.pairs[counted, 0]], kind="stable")]
        pair_starts = np.searchsorted(codes[data.pairs[counted, 0]], np.append(kept, len(data.queries)))
        pairs = position[data.pairs[counted]]
        return cls(rows, starts, np.zeros(len(rows)), weights, pairs, data.pair_weight[counted], pair_starts)

    @classmethod
    def of_query(cls, labels: Floats) -> Lists:
        """Make one query of rows of weight 1."""
        n = len(labels)
        return cls(np.arange(n), np.array([0, n], dtype=np.int64), labels, np.ones(n))

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.starts) - 1

    @property
    def is_even(self) -> bool:
        """Whether the rows of each query have the same weight."""
        return bool((self.weights == np.repeat(self.weights[self.starts[:-1]], np.diff(self.starts))).all())

    def select(self, queries: Integers) -> tuple[Lists, Integers]:
        """Select queries."""
        positions, starts = take_blocks(self.starts, queries)
        rows, labels, weights = self.rows[positions], self.labels[positions], self.weights[positions]
        if self.pairs is None or self.pair_starts is None or self.pair_weights is None:
            return Lists(rows, starts, labels, weights), positions
        chosen, pair_starts = take_blocks(self.pair_starts, queries)
        shift = np.repeat(starts[:-1] - self.starts[queries], np.diff(pair_starts))
        pairs = self.pairs[chosen] + shift[:, None]
        return Lists(rows, starts, labels, weights, pairs, self.pair_weights[chosen], pair_starts), positions
