"""Frame: the compared rows of a problem, query by query, and their errors as plain squares: L = HᵀH."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.graphs import QueryLaplacian
from corank.metrics import evaluate, parse_metric

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
        codes, n_queries = data.queries.codes, len(data.queries)
        n_q = np.bincount(codes[data.is_scored & (w > 0)], minlength=n_queries)
        rows = data.queries.order
        rows = rows[(data.is_scored & (w > 0) & (n_q >= 2)[codes])[rows]]
        starts = np.append(0, np.cumsum(n_q[n_q >= 2]))
        w, query = w[rows], np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        W, squares = (np.asarray(np.bincount(query, weights=v), dtype=np.float64) for v in (w, w * w))
        return cls(rows, starts, data.y[rows], w, query_scale(W, squares, query_weight))

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
        for first, last in _runs(self.starts):
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


@dataclass(frozen=True, eq=False)
class PairFrame:
    """
    Preference pairs grouped by query: each asks for a difference of 1.

    Attributes
    ----------
    winners, losers : arrays of int64, shape (n,)
        Row numbers in X.
    starts : array of int64, shape (n_queries + 1,)
        Where each query begins.
    w : array of shape (n,)
        Weight of each pair, above zero.
    """

    winners: NDArray[np.int64]
    losers: NDArray[np.int64]
    starts: NDArray[np.int64]
    w: Floats

    @classmethod
    def of(cls, data: RankingData, weights: Floats | None) -> PairFrame:
        """
        Collect the pairs of a problem with preferences.

        Parameters
        ----------
        data : RankingData
            The problem.
        weights : array of shape (n_rows,), optional
            Row weights; a pair weighs their product.

        Returns
        -------
        PairFrame
            The pairs.
        """
        assert data.pairs is not None
        w = np.ones(len(data.pairs)) if weights is None else weights[data.pairs].prod(axis=1)
        codes = data.queries.codes[data.pairs[:, 0]]
        order = np.argsort(codes, kind="stable")
        order = order[w[order] > 0]
        winners, losers = data.pairs[order].T
        sizes = np.bincount(codes[order], minlength=len(data.queries))
        return cls(winners, losers, np.append(0, np.cumsum(sizes[sizes > 0])), w[order])

    def designs(self, X: Any, features: Features) -> Iterator[tuple[slice, NDArray[np.int64], Floats, Floats]]:
        """
        Compute the rows of the least-squares problem, some queries at a time.

        Parameters
        ----------
        X : ndarray or CSR matrix
            All rows.
        features : callable
            Gives Φ for rows of X.

        Yields
        ------
        part : slice
            Which pairs of the frame.
        starts : array of int64
            Where each query begins in the part.
        Z, t : arrays
            √w (Φ_winner − Φ_loser) and √w.
        """
        for first, last in _runs(self.starts):
            part = slice(int(self.starts[first]), int(self.starts[last]))
            root = np.sqrt(self.w[part])
            D = features(X[self.winners[part]]) - features(X[self.losers[part]])
            yield part, self.starts[first : last + 1] - part.start, root[:, None] * D, root

    def scores(self, held: Floats, metric: str) -> Floats:
        """
        Return the share of pairs ordered wrongly, a predicted tie counting ½, averaged over queries.

        Parameters
        ----------
        held : array of shape (n, m)
            Predicted margins times √w, one column for each candidate.
        metric : str
            "disagreement"; preferences know no other.

        Returns
        -------
        array of shape (m,)
            The error.
        """
        if str(parse_metric(metric)) != "disagreement":
            raise InputError(f"metric is {metric!r}, but preference pairs have no grades; use metric='disagreement'.")
        wrong = np.where(held < 0, 1.0, np.where(held > 0, 0.0, 0.5))
        return np.asarray((np.add.reduceat(wrong, self.starts[:-1]) / np.diff(self.starts)[:, None]).mean(axis=0))


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
        c_q W_q.
    """
    if query_weight == "pairs":
        return W
    return np.ones_like(W) if query_weight == "rows" else np.asarray(W / (W**2 - squares))


def frame_of(data: RankingData, query_weight: str, weights: Floats | None) -> Frame | PairFrame:
    """
    Collect what is compared.

    Parameters
    ----------
    data : RankingData
        The problem.
    query_weight : {"pairs", "equal", "rows"}
        How much a query counts, see `Frame.of`; pairs that were given weigh alike.
    weights : array of shape (n_rows,), optional
        Row weights.

    Returns
    -------
    Frame or PairFrame
        The rows or pairs.
    """
    if data.pairs is None:
        return Frame.of(data, query_weight, weights)
    if query_weight != "pairs":
        raise InputError(f"query_weight is {query_weight!r}, but given pairs weigh alike; use query_weight='pairs'.")
    return PairFrame.of(data, weights)


def _runs(starts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    first, n_queries = 0, len(starts) - 1
    while first < n_queries:
        last = max(int(np.searchsorted(starts, starts[first] + _BLOCK, side="right")) - 1, first + 1)
        yield first, last
        first = last
