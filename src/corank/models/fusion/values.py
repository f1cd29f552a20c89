"""nDCG@k of many weight vectors at once, query by query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corank.data.queries import Queries
from corank.models.fusion.lists import Floats


def discounts(n: int) -> Floats:
    """Return 1/log₂(1 + rank) for ranks 1 to n."""
    return 1.0 / np.log2(np.arange(2, n + 2))


def top_rows(scores: Floats, k: int) -> NDArray[np.int64]:
    """
    Return the rows of the k highest scores of each column, best first; equal scores keep the order of the rows.

    scores (n_rows, n_columns)

    >>> top_rows(np.array([[1.0], [3.0], [3.0], [2.0]]), 2).tolist()
    [[1], [2]]
    """
    if len(scores) <= 2 * k:
        return np.argsort(-scores, axis=0, kind="stable")[:k]
    by_column = np.ascontiguousarray(-scores.T)
    top = np.sort(np.argpartition(by_column, k - 1, axis=1)[:, :k], axis=1)
    chosen = np.take_along_axis(by_column, top, axis=1)
    top = np.take_along_axis(top, np.argsort(chosen, axis=1, kind="stable"), axis=1)
    # the partition may choose any row of a tie at the k-th place
    tied = (by_column <= chosen.max(axis=1, keepdims=True)).sum(axis=1) > k
    top[tied] = np.argsort(by_column[tied], axis=1, kind="stable")[:, :k]
    return top.T


@dataclass(frozen=True, eq=False)
class JudgedQueries:
    """
    The judged queries of a problem, for metrics.

    rows: for each query, its rows in input order.
    gains: for each query, max(grade, 0) of its rows; 0 where unjudged.
    ideals (n_judged,): DCG@k of the best possible order.
    codes (n_judged,): positions of the queries.
    k: cut-off of the metric.
    """

    rows: Sequence[NDArray[np.int64]]
    gains: Sequence[Floats]
    ideals: Floats
    codes: NDArray[np.int64]
    k: int

    @classmethod
    def of(
        cls,
        y: Floats,
        queries: Queries,
        k: int,
        missed: tuple[NDArray[np.int64], Floats] | None = None,
        *,
        condensed: bool = False,
        weights: Floats | None = None,
    ) -> JudgedQueries:
        """
        Index the queries with a relevant document; in others every order is equally good.

        missed: codes of queries, and grades of judged documents that no retriever returned.
        condensed: whether unjudged documents are left out of the lists (Sakai, 2007), not counted as irrelevant.
        weights: of rows, such as inverse probabilities that they were judged.
        """
        rows, gains, ideals, codes = [], [], [], []
        graded = np.maximum(np.nan_to_num(y), 0.0) * (1.0 if weights is None else weights)
        for q in range(len(queries)):
            members = queries.order[queries.starts[q] : queries.starts[q + 1]]
            members = members[~np.isnan(y[members])] if condensed else members
            all_grades = graded[members]
            if missed is not None:
                all_grades = np.concatenate([all_grades, np.maximum(missed[1][missed[0] == q], 0.0)])
            best = np.sort(all_grades)[::-1][:k]
            ideal = float(best @ discounts(len(best)))
            if ideal > 0 and len(members):
                rows.append(members)
                gains.append(graded[members])
                ideals.append(ideal)
                codes.append(q)
        return cls(rows, gains, np.array(ideals), np.array(codes, dtype=np.int64), k)

    def __len__(self) -> int:
        return len(self.codes)

    def ndcg_of(self, q: int, scores: Floats) -> Floats:
        """Return nDCG@k (n_columns,) of scores (rows of query q, n_columns)."""
        top = top_rows(scores, self.k)
        return np.asarray(discounts(len(top)) @ self.gains[q][top] / self.ideals[q])

    def ndcg(self, values: Floats, weights: Floats | None = None) -> Floats:
        """Return nDCG@k (n_judged, n_columns) of scores of all rows: `values`, or `values` times `weights`."""
        n_columns = (values if weights is None else weights).shape[1]
        out = np.empty((len(self), n_columns))
        for q, rows in enumerate(self.rows):
            out[q] = self.ndcg_of(q, values[rows] if weights is None else values[rows] @ weights)
        return out

    def shortened(self, chosen: Sequence[NDArray[np.int64]]) -> JudgedQueries:
        """Return the queries with some of their rows, given by position; the ideal stays the same."""
        rows = [part[some] for part, some in zip(self.rows, chosen, strict=True)]
        gains = [part[some] for part, some in zip(self.gains, chosen, strict=True)]
        return JudgedQueries(rows, gains, self.ideals, self.codes, self.k)
