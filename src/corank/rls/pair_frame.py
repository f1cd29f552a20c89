"""PairFrame: preferences of a problem, query by query, as rows of a least-squares problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.graphs import require_alike
from corank.metrics import parse_metric
from corank.rls.frame import Features, Floats, Frame, query_runs


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
        for first, last in query_runs(self.starts):
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
    require_alike(data, query_weight)
    return Frame.of(data, query_weight, weights) if data.pairs is None else PairFrame.of(data, weights)
