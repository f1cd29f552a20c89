"""Frame: the compared rows of a problem, query by query, and their errors as plain squares: L = HᵀH."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.ranking import RankingData
from corank.graphs import QueryLaplacian, query_factors
from corank.metrics import evaluate

Floats = NDArray[np.float64]
Features = Callable[[Any], Floats]

# rows whose features are held in memory at a time; a query is never cut
_BLOCK = 8192


@dataclass(frozen=True, eq=False)
class Frame:
    """
    Scored rows that are compared with another, grouped by query.

    With row weights w, W_q = Σ w and the query's factor c_q, L_q = c_q (W_q diag(w) − w wᵀ) = H_qᵀH_q where
    H_q v = √(c_q W_q w) ⊙ (v − w·v / W_q): centred in the query and scaled.

    Attributes
    ----------
    rows : array of int64, shape (n,)
        Row numbers in X; rows of weight zero and rows alone in their query are left out.
    starts : array of int64, shape (n_queries + 1,)
        Where each query begins.
    y : array of shape (n,)
        Scores.
    w : array of shape (n,)
        Row weights.
    scale : array of shape (n_queries,)
        c_q W_q.
    """

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    y: Floats
    w: Floats
    scale: Floats

    @classmethod
    def of(cls, data: RankingData, query_weight: str, weights: Floats | None) -> Frame:
        """
        Collect the rows of a problem with scores.

        Parameters
        ----------
        data : RankingData
            The problem.
        query_weight : {"pairs", "equal", "rows"}
            c_q = 1; 1 / (W_q² − Σ w²), one over twice the weight of the pairs; or 1 / W_q.
        weights : array of shape (n_rows,), optional
            Row weights.

        Returns
        -------
        Frame
            The rows.
        """
        assert data.y is not None
        w = np.ones(data.n_rows) if weights is None else weights
        rows = data.queries.order
        rows = rows[(data.is_scored & (w > 0))[rows]]
        query, w = data.queries.codes[rows], w[rows]
        n_queries = len(data.queries)
        n_q = np.bincount(query, minlength=n_queries)
        W, squares = (np.asarray(np.bincount(query, v, n_queries), dtype=np.float64) for v in (w, w * w))
        scale = query_scale(W, squares, query_weight)
        is_compared = (n_q >= 2) & (scale > 0)
        kept = is_compared[query]
        rows, starts = rows[kept], np.append(0, np.cumsum(n_q[is_compared]))
        return cls(rows, starts, data.y[rows], w[kept], scale[is_compared])

    @property
    def query(self) -> NDArray[np.int64]:
        """Number of the query of each row."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def root(self) -> Floats:
        """√(c_q W_q w), what H multiplies a centred row by."""
        return np.asarray(np.sqrt(np.repeat(self.scale, np.diff(self.starts)) * self.w))

    @property
    def laplacian(self) -> QueryLaplacian:
        """L over the rows of the frame, in their order."""
        n, weighted = len(self.rows), bool((self.w != 1.0).any())
        kept = self.w if weighted else np.empty(0)
        return QueryLaplacian(n, np.arange(n), self.starts, kept, self.scale, np.empty(0, dtype=np.int64))

    def designs(self, X: Any, features: Features) -> Iterator[tuple[slice, NDArray[np.int64], Floats, Floats]]:
        """
        Compute the rows of the least-squares problem ‖H y − HΦ w‖², some queries at a time.

        Parameters
        ----------
        X : ndarray or CSR matrix
            All rows.
        features : callable
            Gives Φ for rows of X.

        Yields
        ------
        part : slice
            Which rows of the frame.
        starts : array of int64
            Where each query begins in the part.
        Z, t : arrays
            HΦ and H y.
        """
        for first, last in query_runs(self.starts):
            part = slice(int(self.starts[first]), int(self.starts[last]))
            starts = self.starts[first : last + 1] - part.start
            query = np.repeat(np.arange(last - first), np.diff(starts))
            w, root = self.w[part], np.sqrt(self.scale[first:last][query] * self.w[part])
            values = np.column_stack([features(X[self.rows[part]]), self.y[part]])
            means = np.add.reduceat(w[:, None] * values, starts[:-1]) / np.add.reduceat(w, starts[:-1])[:, None]
            values -= means[query]
            values *= root[:, None]
            yield part, starts, values[:, :-1], values[:, -1]

    def scores(self, held: Floats, metric: str) -> Floats:
        """
        Evaluate predictions H f, one column for each candidate.

        Parameters
        ----------
        held : array of shape (n, m)
            H f: centred in each query and multiplied by `root`.
        metric : str
            Name of a metric, under the default convention.

        Returns
        -------
        array of shape (m,)
            Its mean over the queries.
        """
        predicted, query = held / self.root[:, None], self.query
        return np.array([evaluate(self.y, column, query, metric)[metric].mean for column in predicted.T])


def query_scale(W: Floats, squares: Floats, query_weight: str) -> Floats:
    """
    Return c_q W_q, what the centred rows of a query are multiplied by in L.

    Parameters
    ----------
    W, squares : arrays
        Σ w and Σ w² over the rows of each query.
    query_weight : {"pairs", "equal", "rows"}
        See `Frame.of`.

    Returns
    -------
    array
        c_q W_q; 0 where one row holds all the weight of a query.
    """
    return np.asarray(W * query_factors(W, query_weight, W**2 - squares))


def query_runs(starts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """
    Cut queries into runs of about `_BLOCK` rows.

    Parameters
    ----------
    starts : array of int64, shape (n_queries + 1,)
        Where each query begins.

    Yields
    ------
    first, last : int
        Queries first, ..., last − 1; one at least.
    """
    first, n_queries = 0, len(starts) - 1
    while first < n_queries:
        last = max(int(np.searchsorted(starts, starts[first] + _BLOCK, side="right")) - 1, first + 1)
        yield first, last
        first = last
