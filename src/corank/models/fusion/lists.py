"""
Retrieved lists and their transforms: what a retriever says of a document, on a scale that other retrievers share.

Row i of X is one document of one query, column j one retriever, and NaN means that the retriever did not return the
document. The documents of query q that retriever j returned are its list L; r is the rank in L, by falling score, and
equal scores keep the order of the rows. A transform φ is computed from L alone, and is 0 for documents outside of L.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank._lazy import is_sparse
from corank.data.inputs import MAX_VALUE
from corank.data.queries import Queries
from corank.data.rows import as_rows
from corank.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RetrievedLists:
    """
    The lists of several retrievers for several queries.

    X (n_rows, m): scores; NaN where the retriever did not return the document.
    queries: the rows grouped by query.

    >>> lists = RetrievedLists.of([[3.0, np.nan], [1.0, 0.5], [np.nan, 0.9]])
    >>> lists.ranks.tolist()
    [[1, 0], [2, 2], [0, 1]]
    """

    X: Floats
    queries: Queries

    @classmethod
    def of(cls, X: Any, qid: ArrayLike | None = None) -> RetrievedLists:
        """Check scores and group them by query."""
        if is_sparse(X):
            raise InputError("X is sparse, but 0 is a score and NaN means not returned; pass a dense X with NaN.")
        scores = np.asarray(as_rows(X, missing=True), dtype=np.float64)
        nowhere = np.flatnonzero(np.isnan(scores).all(axis=1))
        if len(nowhere):
            raise InputError(
                f"no retriever returned the document of row {nowhere[0]}: all its scores are NaN; leave such rows out."
            )
        largest = float(np.nanmax(np.abs(scores)))
        if largest > MAX_VALUE:
            raise InputError(f"X holds the score {largest:.3g}; pass scores from -1e15 to 1e15, or scale them.")
        return cls(scores, Queries.of(qid, len(scores)))

    def take(self, chosen: NDArray[Any]) -> RetrievedLists:
        """Return the lists of some queries, given by position."""
        rows = np.flatnonzero(np.isin(self.queries.codes, chosen))
        return RetrievedLists(self.X[rows], Queries.of(self.queries.ids[self.queries.codes[rows]], len(rows)))

    @cached_property
    def is_returned(self) -> NDArray[np.bool_]:
        """Which retriever returned which document (n_rows, m)."""
        return ~np.isnan(self.X)

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """Ranks from 1, by falling score; equal scores keep the order of the rows, 0 marks an absent document."""
        ranks = np.empty(self.X.shape, dtype=np.int64)
        for j in range(self.X.shape[1]):  # NaN is sorted behind all scores
            ranks[:, j] = self.queries.ranks(self.X[:, j])
        return np.where(self.is_returned, ranks, 0)

    @cached_property
    def lowest(self) -> Floats:
        """The lowest score of each list (n_queries, m); 0 for an empty list."""
        return self._extreme(np.minimum, np.inf)

    @cached_property
    def highest(self) -> Floats:
        """The highest score of each list (n_queries, m); 0 for an empty list."""
        return self._extreme(np.maximum, -np.inf)

    def sums(self, values: Floats) -> Floats:
        """Return sums of rows (n_rows, ...) over each query."""
        return np.add.reduceat(values[self.queries.order], self.queries.starts[:-1], axis=0)

    def _extreme(self, function: np.ufunc, start: float) -> Floats:
        values = np.where(self.is_returned, self.X, start)[self.queries.order]
        extreme = function.reduceat(values, self.queries.starts[:-1], axis=0)
        return np.where(np.isfinite(extreme), extreme, 0.0)


def minmax(lists: RetrievedLists, k: float) -> Floats:
    """φ = (s − min)/(max − min); 1 in a list of equal scores, such as one of a single document."""
    codes = lists.queries.codes
    span = (lists.highest - lists.lowest)[codes]
    with np.errstate(invalid="ignore"):
        scaled = np.divide(lists.X - lists.lowest[codes], span, out=np.ones_like(lists.X), where=span > 0)
    return np.where(lists.is_returned, scaled, 0.0)


def reciprocal_rank(lists: RetrievedLists, k: float) -> Floats:
    """φ = 1/(k + r)."""
    return np.where(lists.is_returned, 1.0 / (k + np.maximum(lists.ranks, 1)), 0.0)


def presence(lists: RetrievedLists, k: float) -> Floats:
    """φ = 1."""
    return lists.is_returned.astype(np.float64)


TRANSFORMS: dict[str, Callable[[RetrievedLists, float], Floats]] = {
    function.__name__: function for function in (minmax, reciprocal_rank, presence)
}
"""φ of all rows and retrievers (n_rows, m) by name; only ``reciprocal_rank`` depends on k."""
