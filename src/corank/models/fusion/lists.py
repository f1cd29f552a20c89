"""
Retrieved lists and their transforms: what a retriever says of a document, on a scale that other retrievers share.

Row i of X is one document of one query, column j one retriever, and NaN means that the retriever did not return the
document. The documents of query q that retriever j returned are its list L; r is the rank in L, by falling score, and
equal scores keep the order of the rows. A transform φ is computed from L alone, and has a stated value for documents
that are not in L. All transforms are 0 for all documents of a query for which L is empty.
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
    def sizes(self) -> Floats:
        """Lengths of the lists (n_queries, m)."""
        return self.sums(self.is_returned.astype(np.float64))

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

    @cached_property
    def means(self) -> Floats:
        """Mean score of each list (n_queries, m)."""
        total = self.sums(np.where(self.is_returned, self.X, 0.0))
        return np.clip(total / np.maximum(self.sizes, 1.0), self.lowest, self.highest)

    @cached_property
    def deviations(self) -> Floats:
        """Population deviation of the scores of each list (n_queries, m)."""
        gaps = np.where(self.is_returned, self.X - self.means[self.queries.codes], 0.0)
        spread: Floats = np.sqrt(self.sums(gaps**2) / np.maximum(self.sizes, 1.0))
        # rounding must not make a constant list look like a varying one
        return np.where(self.highest > self.lowest, spread, 0.0)

    def fill(self, values: Floats, absent: Floats | float) -> Floats:
        """Return values, and `absent`, (n_queries, m) or a number, where X is NaN; 0 if the list is empty."""
        codes = self.queries.codes
        other = absent[codes] if isinstance(absent, np.ndarray) else absent
        return np.where(self.is_returned, values, np.where(self.sizes[codes] > 0, other, 0.0))

    def sums(self, values: Floats) -> Floats:
        """Return sums of rows (n_rows, ...) over each query."""
        return np.add.reduceat(values[self.queries.order], self.queries.starts[:-1], axis=0)

    def _extreme(self, function: np.ufunc, start: float) -> Floats:
        values = np.where(self.is_returned, self.X, start)[self.queries.order]
        extreme = function.reduceat(values, self.queries.starts[:-1], axis=0)
        return np.where(np.isfinite(extreme), extreme, 0.0)


@dataclass(frozen=True)
class Transform:
    """
    One function φ of a list.

    name: its name in files.
    absent: the value of documents that are not in the list, in words.
    compute: returns φ of all rows and retrievers, (n_rows, m), from the lists and k.
    takes_k: whether it depends on the constant k.
    """

    name: str
    absent: str
    compute: Callable[[RetrievedLists, float], Floats]
    takes_k: bool = False


TRANSFORMS: dict[str, Transform] = {}
"""All transforms by name."""


def transform(absent: str, takes_k: bool = False) -> Callable[[Callable[..., Floats]], Callable[..., Floats]]:
    """Register a transform under the name of its function."""

    def register(compute: Callable[..., Floats]) -> Callable[..., Floats]:
        TRANSFORMS[compute.__name__] = Transform(compute.__name__, absent, compute, takes_k)
        return compute

    return register


@transform("0, as the last document of the list")
def minmax(lists: RetrievedLists, k: float) -> Floats:
    """φ = (s − min)/(max − min); 1 in a list of equal scores, such as one of a single document."""
    codes = lists.queries.codes
    span = (lists.highest - lists.lowest)[codes]
    with np.errstate(invalid="ignore"):
        scaled = np.divide(lists.X - lists.lowest[codes], span, out=np.ones_like(lists.X), where=span > 0)
    return lists.fill(scaled, 0.0)


@transform("the value of the last document of the list")
def zscore(lists: RetrievedLists, k: float) -> Floats:
    """φ = (s − mean)/deviation; 0 in a list of equal scores."""
    codes = lists.queries.codes
    spread = lists.deviations
    unit = np.where(spread > 0, spread, 1.0)
    low = np.where(spread > 0, (lists.lowest - lists.means) / unit, 0.0)
    return lists.fill((lists.X - lists.means[codes]) / unit[codes] * (spread[codes] > 0), low)


@transform("0")
def positive_zscore(lists: RetrievedLists, k: float) -> Floats:
    """φ = max(0, (s − mean)/deviation), as OpenSearch computes z-scores."""
    return lists.fill(np.maximum(zscore(lists, k), 0.0), 0.0)


@transform("0")
def l2(lists: RetrievedLists, k: float) -> Floats:
    """φ = s / ‖s‖, the norm of the whole list; 0 in a list of zeros."""
    codes = lists.queries.codes
    norm = np.sqrt(lists.sums(np.where(lists.is_returned, lists.X, 0.0) ** 2))
    return lists.fill(lists.X / np.where(norm > 0, norm, 1.0)[codes], 0.0)


@transform("0", takes_k=True)
def reciprocal_rank(lists: RetrievedLists, k: float) -> Floats:
    """φ = 1/(k + r)."""
    return lists.fill(1.0 / (k + np.maximum(lists.ranks, 1)), 0.0)


@transform("0")
def presence(lists: RetrievedLists, k: float) -> Floats:
    """φ = 1 for every document of the list."""
    return lists.fill(np.ones_like(lists.X), 0.0)
