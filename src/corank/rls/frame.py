"""Frame: what is compared, query by query, as rows of a least-squares problem whose squares are the mean loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.metrics import MetricResult, evaluate, parse_metric
from corank.pairwise import Laplacian, QueryLaplacian, drawn_weight, weigh_queries
from corank.rls.accuracy import Held, Sizes, level

Floats = NDArray[np.float64]
Features = Callable[[Any], Floats]
Design = tuple[slice, NDArray[np.int64], Floats, Floats]

# rows whose features are held in memory at a time; a query is never cut
_BLOCK = 8192


@dataclass(frozen=True, eq=False)
class Frame(ABC):
    """
    What is compared: scored rows or preferences, grouped by query.

    rows: rows of X that are compared, each once.
    starts (n_queries + 1,): where each query begins.
    shares (n_queries,): weight of each query's pairs over that of all. With `ties`, every row is a pair with itself
        too, as in `corank.pairwise.drawn_weight`, and rows alone in their query hold what is left to 1.
    query_weight {"pairs", "equal", "rows"}: how much a query counts, see `corank.pairwise.weigh_queries`.
    ties: whether two rows of equal score make a pair too.
    """

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    shares: Floats
    query_weight: str
    ties: bool

    @staticmethod
    def of(data: RankingData, query_weight: str, ties: bool, total: float | None = None) -> Frame:
        """
        Collect what is compared in a problem.

        query_weight {"pairs", "equal", "rows"}: how much a query counts.
        ties: whether two rows of equal score make a pair too.
        total: weight of all pairs, where the problem is a part of a larger one of scored rows.
        Returns: scored rows, or preferences.
        """
        return (
            _row_frame(data, query_weight, ties, total) if data.pairs is None else _pair_frame(data, query_weight, ties)
        )

    @property
    def n_queries(self) -> int:
        """Number of queries in which something is compared."""
        return len(self.shares)

    @property
    @abstractmethod
    def targets(self) -> Floats:
        """The targets t of `design` for all queries."""

    @abstractmethod
    def sizes(self, lengths: Floats | float) -> Sizes:
        """
        Measure what rounding errors are relative to.

        lengths: k(x, x) of each row, or of all.
        """

    @abstractmethod
    def design(self, first: int, last: int, X: Any, features: Features) -> tuple[Floats, Floats]:
        """
        Compute rows Z and targets t of some queries, so that ‖t − Z w‖² over all is the mean squared error of pairs.

        first, last: queries first to last − 1.
        features: gives Φ for rows of X.
        Returns: as many rows as the queries have in the frame.
        """

    @abstractmethod
    def scores(self, held: Held, metric: str) -> Floats:
        """
        Evaluate predictions Z w, one column for each candidate; what their accuracy cannot tell apart is a tie.

        held: predictions for each row of the frame.
        metric: name of a metric, under the default convention.
        Returns: its mean over the queries.
        """

    def designs(self, X: Any, features: Features) -> Iterator[Design]:
        """
        Compute the rows of the least-squares problem, some queries at a time.

        features: gives Φ for rows of X.
        Yields: which queries, where each of them begins in Z, and Z and t of `design`.
        """
        first = 0
        while first < self.n_queries:
            last = int(np.searchsorted(self.starts, self.starts[first] + _BLOCK, side="right")) - 1
            last = max(last, first + 1)
            starts = self.starts[first : last + 1] - self.starts[first]
            yield slice(first, last), starts, *self.design(first, last, X, features)
            first = last


@dataclass(frozen=True, eq=False)
class RowFrame(Frame):
    """
    Scored rows that are compared with another, query by query.

    y, prior (n,): scores of `rows`, and what is known of them before learning.
    L: over these rows in this order, divided by the weight of all pairs: Z = H Φ and t = H (y − prior), L = HᵀH.
    """

    y: Floats
    prior: Floats
    L: QueryLaplacian

    @property
    def w(self) -> Floats:
        """Row weights."""
        return self.L.weights if len(self.L.weights) else np.ones(len(self.rows))

    @property
    def targets(self) -> Floats:
        """H (y − prior)."""
        return np.asarray(self.L.half(self.y - self.prior))

    def sizes(self, lengths: Floats | float) -> Sizes:
        """Measure the targets, and rows √(s w) φ(x)."""
        scale = np.repeat(self.L.scale, np.diff(self.starts)) * self.w
        return Sizes(float(np.linalg.norm(self.targets)), float(np.sum(scale * lengths)))

    def design(self, first: int, last: int, X: Any, features: Features) -> tuple[Floats, Floats]:
        """Return HΦ and H (y − prior) of some queries."""
        part = slice(self.starts[first], self.starts[last])
        values = np.column_stack([features(X[self.rows[part]]), self.y[part] - self.prior[part]])
        values = values.astype(np.float64, copy=False)
        # H does not see a constant: without it, means round to what differences are made of
        begins = self.starts[first:last] - self.starts[first]
        values -= np.repeat(values[begins], np.diff(self.starts[first : last + 1]), axis=0)
        values = self.L.of_queries(first, last).half(values)
        return values[:, :-1], values[:, -1]

    def scores(self, held: Held, metric: str) -> Floats:
        """Return the mean of a metric over the queries, for predictions H g."""
        return np.array([result.mean for result in self.results(held, metric)])

    def results(self, held: Held, metric: str) -> Iterator[MetricResult]:
        """Evaluate predictions H g query by query, one candidate after the other."""
        query = np.repeat(np.arange(self.n_queries), np.diff(self.starts))
        columns = zip(self.L.half_inverse(held.values).T, self._noise(held.noise).T, strict=True)
        for f, noise in columns:
            yield evaluate(self.y, level(self.prior + f, noise, self.starts), query, metric)[metric]

    def _noise(self, of_half: Floats) -> Floats:
        """Return what f may be wrong by, for errors of H f: H⁻¹ divides what is left of a run's mean by `keep`."""
        L, sizes = self.L, np.diff(self.L.runs)
        scale = np.repeat(L.scale, np.diff(self.starts))
        own = of_half / np.sqrt(scale * self.w)[:, None]
        mean = np.add.reduceat(own * self.w[:, None], L.runs[:-1]) / np.add.reduceat(self.w, L.runs[:-1])[:, None]
        mean, keep = np.repeat(mean, sizes, axis=0), np.repeat(L.keep, sizes)[:, None]
        return np.asarray((own + mean) / keep + mean)


@dataclass(frozen=True, eq=False)
class PairFrame(Frame):
    """
    Preferences, query by query.

    winners, losers (n,): row numbers in X.
    w (n,): weight of each pair, above zero; their sum is 1.
    known (n,): by how much the winner is better before learning; a difference of 1 is asked for.
    """

    winners: NDArray[np.int64]
    losers: NDArray[np.int64]
    w: Floats
    known: Floats

    @property
    def targets(self) -> Floats:
        """√w (1 − known)."""
        return np.sqrt(self.w) * (1.0 - self.known)

    def sizes(self, lengths: Floats | float) -> Sizes:
        """Measure the targets, and rows √w φ(x) of winners and losers."""
        return Sizes(float(np.linalg.norm(self.targets)), 2.0 * float(np.mean(lengths)))

    def design(self, first: int, last: int, X: Any, features: Features) -> tuple[Floats, Floats]:
        """Return √w (Φ_winner − Φ_loser) and √w (1 − known) of some queries."""
        part = slice(self.starts[first], self.starts[last])
        root = np.sqrt(self.w[part])
        D = np.asarray(features(X[self.winners[part]]), dtype=np.float64) - features(X[self.losers[part]])
        return root[:, None] * D, root * (1.0 - self.known[part])

    def scores(self, held: Held, metric: str) -> Floats:
        """Return the share of pairs ordered wrongly, a predicted tie counting ½, averaged over queries."""
        if str(parse_metric(metric)) != "disagreement":
            raise InputError(f"metric is {metric!r}, but preference pairs have no grades; use metric='disagreement'.")
        margins = held.values + (np.sqrt(self.w) * self.known)[:, None]
        wrong = np.where(np.abs(margins) <= held.noise, 0.5, margins < 0)
        return np.asarray((np.add.reduceat(wrong, self.starts[:-1]) / np.diff(self.starts)[:, None]).mean(axis=0))


def _row_frame(data: RankingData, query_weight: str, ties: bool, total: float | None) -> RowFrame:
    assert data.y is not None
    whole = Laplacian.per_query(data, query_weight, "scored", ties=ties)
    L, of_query = whole.of_queries(0, len(whole.scale)), whole.pair_weight
    if ties:
        W_q = np.add.reduceat(L.weights, L.starts[:-1]) if len(L.weights) else np.diff(L.starts)
        of_query = L.scale * W_q / 2
    if total is None:
        total = drawn_weight(data, query_weight) if ties else float(of_query.sum())
    L = replace(L, scale=L.scale / total)
    y, prior = data.y[whole.order], data.prior_of(whole.order)
    return RowFrame(whole.order, L.starts, of_query / total, query_weight, ties, y, prior, L)


def _pair_frame(data: RankingData, query_weight: str, ties: bool) -> PairFrame:
    assert data.pairs is not None
    w, codes = weigh_queries(data, query_weight).pair_weight, data.queries.codes[data.pairs[:, 0]]
    order = np.argsort(codes, kind="stable")
    order = order[w[order] > 0]
    winners, losers = data.pairs[order].T
    sizes = np.bincount(codes[order], minlength=len(data.queries))
    starts, w = np.append(0, np.cumsum(sizes[sizes > 0])), w[order] / w.sum()
    shares = np.add.reduceat(w, starts[:-1]) if len(w) else w
    rows = np.unique(np.concatenate([winners, losers]))
    return PairFrame(rows, starts, shares, query_weight, ties, winners, losers, w, data.prior_gap(data.pairs[order]))
