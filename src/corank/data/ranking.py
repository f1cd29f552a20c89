"""RankingData: a checked ranking problem, rows with scores or preference pairs grouped by query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.rows.blocks import sort_blocks
from corank.core.threads import cut, n_threads, parallel_map, threads_for
from corank.data.columns import MissingValues
from corank.data.durable.files import require_unchanged
from corank.data.inputs import as_pairs, as_prior, as_scores, as_weights, require_moderate
from corank.data.queries import Queries
from corank.data.rows import NamedRows, as_rows, has_missing
from corank.errors import InputError


@dataclass(frozen=True, eq=False)
class RankingData(NamedRows):
    """
    A checked ranking problem: rows with scores or preference pairs, grouped by query.

    Create one with `of` (scores) or `of_pairs` (preferences). X is not copied if it is a float array or CSR matrix.

    Attributes
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        The rows.
    y : array of float64, shape (n_rows,), or None
        Scores; NaN marks an unjudged row. None if the problem is given by pairs.
    queries : Queries
        Rows grouped by query.
    order : array of int64, shape (n_rows,)
        Rows sorted by (query, score), the unjudged rows of a query after its scored ones.
    scored_stops : array of int64, shape (n_queries,)
        Query q's scored rows are ``order[starts[q]:scored_stops[q]]``, its unjudged rows follow.
    grade_starts, grade_stops : arrays of int64, shape (n_grades,)
        A grade is a run of equal scores inside a query: ``order[grade_starts[g]:grade_stops[g]]``.
    query_grades : array of int64, shape (n_queries + 1,)
        Query q owns grades ``query_grades[q]`` to ``query_grades[q + 1]``.
    pairs : array of int64, shape (n_pairs, 2), or None
        Preferences, winner first.
    weights : array of float64, shape (n_rows,), or None
        Row weights; None if all are 1. A row of weight 0 is ignored.
    pair_weights : array of float64, shape (n_pairs,), or None
        Weights of the preferences, see `pair_weight`; None if all are 1.
    prior : array of float64, shape (n_rows,), or None
        Scores s₀ known before learning: a ranker learns g, and the loss is that of f = s₀ + g. None if all are 0.
    names : tuple of str or None
        Names of the columns of X, which a fitted ranker remembers; None without names.
    has_missing : bool
        Whether X contains NaN, which only some rankers accept.
    filling : MissingValues or None
        How missing values were filled, if X has indicator columns.

    Examples
    --------
    >>> data = RankingData.of([[1.0], [2.0], [3.0], [4.0]], [1, 0, 1, float("nan")], qid=[7, 7, 7, 7])
    >>> data.n_pairs, data.n_scored, data.order.tolist()
    (2, 3, [1, 0, 2, 3])
    """

    X: Any
    y: NDArray[np.float64] | None
    queries: Queries
    order: NDArray[np.int64]
    scored_stops: NDArray[np.int64]
    grade_starts: NDArray[np.int64]
    grade_stops: NDArray[np.int64]
    query_grades: NDArray[np.int64]
    pairs: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None
    pair_weights: NDArray[np.float64] | None = None
    prior: NDArray[np.float64] | None = None
    names: tuple[str, ...] | None = None
    has_missing: bool = False
    filling: MissingValues | None = None

    @classmethod
    def of(cls, X: Any, y: ArrayLike, qid: ArrayLike | None = None, weights: ArrayLike | None = None) -> RankingData:
        """
        Check and index rows with scores.

        Parameters
        ----------
        X : ndarray, CSR matrix, pandas or polars DataFrame, shape (n_rows, n_features)
            The rows; finite numbers, or NaN for missing values.
        y : array-like of shape (n_rows,)
            Scores; NaN marks an unjudged row.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None puts all rows in one query.
        weights : array-like of shape (n_rows,), optional
            Row weights.

        Returns
        -------
        RankingData
            The indexed problem.
        """
        rows = as_rows(X, missing=True)
        data = cls.of_checked(rows, as_scores(y, rows.shape[0]), Queries.of(qid, rows.shape[0]))
        return replace(data.weighted(weights), has_missing=has_missing(rows))

    @classmethod
    def of_pairs(
        cls,
        X: Any,
        pairs: ArrayLike,
        qid: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        pair_weights: ArrayLike | None = None,
    ) -> RankingData:
        """
        Check and index rows with preference pairs.

        Parameters
        ----------
        X : ndarray, CSR matrix, pandas or polars DataFrame, shape (n_rows, n_features)
            The rows; finite numbers, or NaN for missing values.
        pairs : array-like of int, shape (n_pairs, 2)
            Row numbers, the preferred row first.
        qid : array-like of shape (n_rows,), optional
            One query id per row; a pair may not join two queries.
        weights : array-like of shape (n_rows,), optional
            Row weights.
        pair_weights : array-like of shape (n_pairs,), optional
            Weights of the preferences.

        Returns
        -------
        RankingData
            The indexed problem, with `y` None.
        """
        rows = as_rows(X, missing=True)
        data = cls.of_checked_pairs(rows, pairs, Queries.of(qid, rows.shape[0]))
        return replace(data.weighted(weights, pair_weights), has_missing=has_missing(rows))

    @classmethod
    def of_checked_pairs(cls, X: Any, pairs: ArrayLike, queries: Queries) -> RankingData:
        """Index preferences between rows that were already checked; `y` is None."""
        nothing, no_grades = np.empty(0, dtype=np.int64), np.zeros(len(queries) + 1, dtype=np.int64)
        checked = as_pairs(pairs, queries.codes)
        return cls(X, None, queries, queries.order, queries.starts[:-1], nothing, nothing, no_grades, checked)

    @classmethod
    def of_checked(
        cls, X: Any, y: NDArray[np.float64], queries: Queries, weights: NDArray[np.float64] | None = None
    ) -> RankingData:
        """Index rows that were already checked (by a store or an estimator); y is NaN for unjudged rows."""
        order, starts = queries.order.copy(), queries.starts
        runs = cut(starts, 4 * n_threads())
        parallel_map(lambda first, last: sort_blocks(y, order, starts, first, last), runs, threads_for(16 * len(y)))
        scores = y[order]
        scored_before = np.concatenate([[0], np.cumsum(~np.isnan(scores))])
        scored_stops = starts[:-1] + np.diff(scored_before[starts])
        is_start = np.ones(len(scores), dtype=bool)
        is_start[1:] = scores[1:] != scores[:-1]
        is_start[starts[:-1][starts[:-1] < len(scores)]] = True
        is_start &= ~np.isnan(scores)
        grade_starts = np.flatnonzero(is_start).astype(np.int64)
        query_grades = np.searchsorted(grade_starts, starts).astype(np.int64)
        grade_stops = np.append(grade_starts[1:], len(scores))
        has_grade = query_grades[1:] > query_grades[:-1]
        grade_stops[query_grades[1:][has_grade] - 1] = scored_stops[has_grade]
        stops = grade_stops[: len(grade_starts)]
        return cls(X, y, queries, order, scored_stops, grade_starts, stops, query_grades, weights=weights)

    def weighted(self, weights: ArrayLike | None = None, pair_weights: ArrayLike | None = None) -> RankingData:
        """Set the weights of rows or preferences; None leaves them as they are."""
        w, v = self.weights, self.pair_weights
        if weights is not None:
            w = as_weights(weights, self.n_rows, "row", "sample_weight")
            require_moderate(w, "row", "sample_weight")
        if pair_weights is not None:
            if self.pairs is None:
                raise InputError("pair_weight was passed, but pairs was not; pass pairs, or leave out pair_weight.")
            v = as_weights(pair_weights, len(self.pairs), "pair", "pair_weight")
            require_moderate(v, "pair", "pair_weight")
        return replace(self, weights=w, pair_weights=v)

    def with_prior(self, prior: ArrayLike | None) -> RankingData:
        """Add finite prior scores, higher is better; None changes nothing."""
        return self if prior is None else replace(self, prior=as_prior(prior, self.n_rows))

    def __repr__(self) -> str:
        judged = f"{self.n_scored} scored" if self.pairs is None else f"{len(self.pairs)} preferences"
        return f"RankingData({self.n_rows} rows, {judged}, {len(self.queries)} queries, X of shape {self.X.shape})"

    @property
    def n_rows(self) -> int:
        """Number of rows, scored or not."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each query's block begins in `order`."""
        return self.queries.starts

    @cached_property
    def is_scored(self) -> NDArray[np.bool_]:
        """Whether each row has a score or, with preferences, is in a pair of positive weight."""
        if self.y is not None:
            return ~np.isnan(self.y)
        named = np.zeros(self.n_rows, dtype=bool)
        if self.pairs is not None:
            named[self.pairs[self.pair_weight > 0.0]] = True
        return named

    @cached_property
    def scored_rows(self) -> NDArray[np.int64]:
        """Rows to learn from: scored (or named by a preference), of positive weight, ascending."""
        return np.flatnonzero(self.is_scored if self.weights is None else self.is_scored & (self.weights > 0.0))

    @cached_property
    def unscored_rows(self) -> NDArray[np.int64]:
        """Rows of positive weight without a score (that no preference names), ascending."""
        return np.flatnonzero(~self.is_scored if self.weights is None else ~self.is_scored & (self.weights > 0.0))

    @cached_property
    def pair_weight(self) -> NDArray[np.float64]:
        """Weight of each preference: its own times those of its two rows."""
        assert self.pairs is not None
        given = np.ones(len(self.pairs)) if self.pair_weights is None else self.pair_weights
        return given if self.weights is None else given * self.weights[self.pairs].prod(axis=1)

    @property
    def targets(self) -> NDArray[np.float64] | None:
        """Targets of g under a squared loss: y − s₀ per row; None if the problem is given by pairs."""
        return self.y if self.y is None or self.prior is None else self.y - self.prior

    @property
    def pair_targets(self) -> NDArray[np.float64]:
        """Targets of g under a squared loss: 1 − (s₀_a − s₀_b) for each preference of a to b."""
        assert self.pairs is not None
        return 1.0 - self.prior_gap(self.pairs)

    def prior_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return s₀, the prior scores of some rows; 0 without a prior."""
        return np.zeros(len(rows)) if self.prior is None else self.prior[rows]

    def prior_gap(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the differences of prior scores s₀_a − s₀_b of pairs (a, b)."""
        return self.prior_of(pairs[:, 0]) - self.prior_of(pairs[:, 1])

    def weight_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weights of some rows; 1 if no weights were given."""
        return np.ones(len(rows)) if self.weights is None else self.weights[rows]

    @cached_property
    def n_scored(self) -> int:
        """Number of scored rows."""
        return int(self.is_scored.sum())

    @cached_property
    def pairs_per_query(self) -> NDArray[np.int64]:
        """Number of comparable pairs of each query: (n_q² − Σ_g n_qg²)/2, computed without listing them."""
        if self.pairs is not None:
            return np.bincount(self.queries.codes[self.pairs[:, 0]], minlength=len(self.queries)).astype(np.int64)
        n_q = self.scored_stops - self.starts[:-1]
        squares = np.concatenate([[0], np.cumsum((self.grade_stops - self.grade_starts) ** 2)])
        same = squares[self.query_grades[1:]] - squares[self.query_grades[:-1]]
        return np.asarray((n_q * n_q - same) // 2, dtype=np.int64)

    @property
    def n_pairs(self) -> int:
        """Number of comparable pairs of the whole problem."""
        return int(self.pairs_per_query.sum())

    @property
    def single_grade_queries(self) -> NDArray[np.int64]:
        """Queries whose scored rows all have the same score, so that they contain no pair."""
        has_rows = self.scored_stops > self.starts[:-1]
        return np.flatnonzero(has_rows & (self.pairs_per_query == 0)).astype(np.int64)

    def require_pairs(self) -> None:
        """Raise `InputError` if no pair of rows can be compared."""
        if self.n_rows == 1:
            raise InputError("X has 1 sample, which cannot be compared; pass at least two rows of one query.")
        if self.y is not None and self.n_scored == 0:
            raise InputError(f"y is NaN for all {self.n_rows} rows; score at least two rows of one query.")
        if self.n_pairs == 0:
            raise InputError(
                f"no two of the {self.n_scored} scored rows share a query and differ in score, so no pair can be "
                "compared; check qid or score more rows."
            )
        if not self._has_weighted_pair:
            raise InputError("no pair has a positive weight; give some rows a weight above zero.")

    def require_unchanged(self) -> None:
        """Raise `InputError` if a memory-mapped file of the problem was truncated or overwritten."""
        require_unchanged(*vars(self).values(), *vars(self.queries).values())

    @property
    def _has_weighted_pair(self) -> bool:
        if self.pairs is not None:
            return bool(self.pair_weight.any())
        if self.y is None or self.weights is None or self.weights.all():
            return True
        return RankingData.of_checked(self.X, np.where(self.weights > 0.0, self.y, np.nan), self.queries).n_pairs > 0
