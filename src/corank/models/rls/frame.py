"""Compared rows or preference pairs, by query, as rows of a least-squares problem equal to the mean pairwise loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.base.pairs import Laplacian, QueryLaplacian
from corank.base.pairs.losses import drawn_weight, weigh_queries
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.metrics import MetricResult, evaluate, parse_metric
from corank.models.rls.leave_out import ErrorScales, LeaveOutScores, merge_ties

Floats = NDArray[np.float64]
Features = Callable[[Any], Floats]
Design = tuple[slice, NDArray[np.int64], Floats, Floats]

# rows per block of features in memory; a query is never split
_BLOCK = 8192


@dataclass(frozen=True, eq=False)
class ComparedRows(ABC):
    """
    Compared rows or preference pairs, grouped by query.

    shares (n_queries,): weight of the pairs of each query, relative to all. With `ties`, every row also forms a pair
        with itself, as in `corank.base.pairs.losses.drawn_weight`, and single rows of a query have the rest.
    """

    rows: NDArray[np.int64]  # compared rows of X, each once
    starts: NDArray[np.int64]  # (n_queries + 1,): where each query begins
    shares: Floats
    query_weight: str  # {"pairs", "equal", "rows"}: weight of a query, see `corank.base.pairs.losses.weigh_queries`
    ties: bool  # whether two rows of equal score form a pair

    @staticmethod
    def of(data: RankingData, query_weight: str, ties: bool, total: float | None = None) -> ComparedRows:
        """Collect the comparisons of a problem."""
        return (
            _row_frame(data, query_weight, ties, total) if data.pairs is None else _pair_frame(data, query_weight, ties)
        )

    @property
    def n_queries(self) -> int:
        """Number of queries with comparisons."""
        return len(self.shares)

    @property
    @abstractmethod
    def targets(self) -> Floats:
        """The targets t of `design` for all queries."""

    @abstractmethod
    def error_scales(self, lengths: Floats | float) -> ErrorScales:
        """Return the scales of rounding errors, from k(x, x) of each row, or of all."""

    @abstractmethod
    def design(self, first: int, last: int, X: Any, features: Features) -> tuple[Floats, Floats]:
        """
        Return rows Z and targets t of queries first to last − 1; ‖t − Z w‖² is the mean squared error of all pairs.
        """

    @abstractmethod
    def scores(self, held: LeaveOutScores, metric: str) -> Floats:
        """Return the mean of a metric over queries for each candidate; differences below rounding errors are ties."""

    def designs(self, X: Any, features: Features) -> Iterator[Design]:
        """Compute the rows of the least-squares problem in blocks of queries."""
        first = 0
        while first < self.n_queries:
            last = int(np.searchsorted(self.starts, self.starts[first] + _BLOCK, side="right")) - 1
            last = max(last, first + 1)
            starts = self.starts[first : last + 1] - self.starts[first]
            yield slice(first, last), starts, *self.design(first, last, X, features)
            first = last


@dataclass(frozen=True, eq=False)
class ScoredRows(ComparedRows):
    """
    Compared scored rows, by query.

    L: Laplacian of these rows, divided by the weight of all pairs: Z = H Φ and t = H (y − prior), L = HᵀH.
    """

    y: Floats  # y, prior (n,): scores of `rows`, and their priors
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

    def error_scales(self, lengths: Floats | float) -> ErrorScales:
        """Return the norms of the targets and of rows √(s w) φ(x)."""
        scale = np.repeat(self.L.scale, np.diff(self.starts)) * self.w
        return ErrorScales(float(np.linalg.norm(self.targets)), float(np.sum(scale * lengths)))

    def design(self, first: int, last: int, X: Any, features: Features) -> tuple[Floats, Floats]:
        """Return HΦ and H (y − prior) of some queries."""
        part = slice(self.starts[first], self.starts[last])
        values = np.column_stack([features(X[self.rows[part]]), self.y[part] - self.prior[part]])
        values = values.astype(np.float64, copy=False)
        # H removes constants; subtracting one first reduces rounding errors
        begins = self.starts[first:last] - self.starts[first]
        values -= np.repeat(values[begins], np.diff(self.starts[first : last + 1]), axis=0)
        values = self.L.of_queries(first, last).half(values)
        return values[:, :-1], values[:, -1]

    def scores(self, held: LeaveOutScores, metric: str) -> Floats:
        """Return the mean of a metric over the queries, for predictions H g."""
        return np.array([result.mean for result in self.results(held, metric)])

    def results(self, held: LeaveOutScores, metric: str) -> Iterator[MetricResult]:
        """Evaluate predictions H g by query, one candidate after the other."""
        query = np.repeat(np.arange(self.n_queries), np.diff(self.starts))
        columns = zip(self.L.half_inverse(held.values).T, self._noise(held.noise).T, strict=True)
        for f, noise in columns:
            yield evaluate(self.y, merge_ties(self.prior + f, noise, self.starts), query, metric)[metric]

    def _noise(self, of_half: Floats) -> Floats:
        """Bound the errors of f from those of H f: H⁻¹ divides the rest of the mean of a run by `keep`."""
        L, sizes = self.L, np.diff(self.L.runs)
        scale = np.repeat(L.scale, np.diff(self.starts))
        own = of_half / np.sqrt(scale * self.w)[:, None]
        mean = np.add.reduceat(own * self.w[:, None], L.runs[:-1]) / np.add.reduceat(self.w, L.runs[:-1])[:, None]
        mean, keep = np.repeat(mean, sizes, axis=0), np.repeat(L.keep, sizes)[:, None]
        return np.asarray((own + mean) / keep + mean)


@dataclass(frozen=True, eq=False)
class PreferredRows(ComparedRows):
    """Preference pairs, by query; the target difference is 1."""

    winners: NDArray[np.int64]  # winners, losers (n,): row numbers in X
    losers: NDArray[np.int64]
    w: Floats  # (n,): weight of each pair, above zero; their sum is 1
    prior_gap: Floats  # (n,): difference of the priors of winner and loser

    @property
    def targets(self) -> Floats:
        """√w (1 − prior_gap)."""
        return np.sqrt(self.w) * (1.0 - self.prior_gap)

    def error_scales(self, lengths: Floats | float) -> ErrorScales:
        """Return the norms of the targets and of rows √w φ(x) of winners and losers."""
        return ErrorScales(float(np.linalg.norm(self.targets)), 2.0 * float(np.mean(lengths)))

    def design(self, first: int, last: int, X: Any, features: Features) -> tuple[Floats, Floats]:
        """Return √w (Φ_winner − Φ_loser) and √w (1 − prior_gap) of some queries."""
        part = slice(self.starts[first], self.starts[last])
        root = np.sqrt(self.w[part])
        D = np.asarray(features(X[self.winners[part]]), dtype=np.float64) - features(X[self.losers[part]])
        return root[:, None] * D, root * (1.0 - self.prior_gap[part])

    def scores(self, held: LeaveOutScores, metric: str) -> Floats:
        """Return the share of pairs in the wrong order, predicted ties counting ½, averaged over queries."""
        if str(parse_metric(metric)) != "disagreement":
            raise InputError(f"metric is {metric!r}, but preference pairs have no grades; use metric='disagreement'.")
        margins = held.values + (np.sqrt(self.w) * self.prior_gap)[:, None]
        wrong = np.where(np.abs(margins) <= held.noise, 0.5, margins < 0)
        return np.asarray((np.add.reduceat(wrong, self.starts[:-1]) / np.diff(self.starts)[:, None]).mean(axis=0))


def _row_frame(data: RankingData, query_weight: str, ties: bool, total: float | None) -> ScoredRows:
    assert data.y is not None
    full = Laplacian.per_query(data, query_weight, "scored", ties=ties)
    L, of_query = full.of_queries(0, len(full.scale)), full.pair_weight
    if ties:
        W_q = np.add.reduceat(L.weights, L.starts[:-1]) if len(L.weights) else np.diff(L.starts)
        of_query = L.scale * W_q / 2
    if total is None:
        total = drawn_weight(data, query_weight) if ties else float(of_query.sum())
    L = replace(L, scale=L.scale / total)
    y, prior = data.y[full.order], data.prior_of(full.order)
    return ScoredRows(full.order, L.starts, of_query / total, query_weight, ties, y, prior, L)


def _pair_frame(data: RankingData, query_weight: str, ties: bool) -> PreferredRows:
    assert data.pairs is not None
    w, codes = weigh_queries(data, query_weight).pair_weight, data.queries.codes[data.pairs[:, 0]]
    order = np.argsort(codes, kind="stable")
    order = order[w[order] > 0]
    winners, losers = data.pairs[order].T
    sizes = np.bincount(codes[order], minlength=len(data.queries))
    starts, w = np.append(0, np.cumsum(sizes[sizes > 0])), w[order] / w.sum()
    shares = np.add.reduceat(w, starts[:-1]) if len(w) else w
    rows = np.unique(np.concatenate([winners, losers]))
    return PreferredRows(
        rows, starts, shares, query_weight, ties, winners, losers, w, data.prior_gap(data.pairs[order])
    )
