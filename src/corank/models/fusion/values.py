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
    n = len(scores)
    if n > 8 * k:
        # all rows of a tie at the k-th place stay, so that the stable sort below decides
        bound = np.partition(scores, n - k, axis=0)[n - k]
        rows = np.flatnonzero((scores >= bound).any(axis=1))
        return rows[np.argsort(-scores[rows], axis=0, kind="stable")[:k]]
    return np.argsort(-scores, axis=0, kind="stable")[:k]


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
    def of(cls, y: Floats, queries: Queries, k: int, missed: tuple[NDArray[np.int64], Floats] | None) -> JudgedQueries:
        """
        Index the queries with a relevant document; in others every order is equally good.

        missed: codes of queries, and grades of judged documents that no retriever returned.
        """
        rows, gains, ideals, codes = [], [], [], []
        graded = np.maximum(np.nan_to_num(y), 0.0)
        for q in range(len(queries)):
            members = queries.order[queries.starts[q] : queries.starts[q + 1]]
            all_grades = graded[members]
            if missed is not None:
                all_grades = np.concatenate([all_grades, np.maximum(missed[1][missed[0] == q], 0.0)])
            best = np.sort(all_grades)[::-1][:k]
            ideal = float(best @ discounts(len(best)))
            if ideal > 0:
                rows.append(members)
                gains.append(graded[members])
                ideals.append(ideal)
                codes.append(q)
        return cls(rows, gains, np.array(ideals), np.array(codes, dtype=np.int64), k)

    def __len__(self) -> int:
        return len(self.codes)

    def ndcg(self, scores: Floats) -> Floats:
        """Return nDCG@k (n_judged, n_columns) of scores (n_rows, n_columns) of all rows."""
        out = np.empty((len(self), scores.shape[1]))
        for q, (members, gains) in enumerate(zip(self.rows, self.gains, strict=True)):
            top = top_rows(scores[members], self.k)
            out[q] = discounts(len(top)) @ gains[top] / self.ideals[q]
        return out
