"""RankingData: rows, scores and queries (or preference pairs), checked and indexed once, then frozen."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.blocks import sort_blocks
from corank.core.threads import cut, n_threads, spread
from corank.data.queries import Queries, is_missing
from corank.data.rows import as_rows
from corank.errors import InputError, reason


@dataclass(frozen=True, eq=False)
class RankingData:
    """
    A ranking problem: who is compared with whom, and which rows are unscored.

    Make one with `of` (scores) or `of_pairs` (preferences). X is never copied when it is already a float
    array or CSR matrix.

    Attributes
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        The rows.
    y : array of float64, shape (n_rows,), or None
        Scores; NaN marks an unscored row. None where the problem is given by pairs.
    queries : Queries
        Rows grouped by query.
    order : array of int64, shape (n_rows,)
        Rows sorted by (query, score), the unscored rows of a query after its scored ones.
    scored_stops : array of int64, shape (n_queries,)
        Query q's scored rows are ``order[starts[q]:scored_stops[q]]``, its unscored rows follow.
    grade_starts, grade_stops : arrays of int64, shape (n_grades,)
        A grade is a run of equal scores inside a query: ``order[grade_starts[g]:grade_stops[g]]``.
    query_grades : array of int64, shape (n_queries + 1,)
        Query q owns grades ``query_grades[q]`` to ``query_grades[q + 1]``.
    pairs : array of int64, shape (n_pairs, 2), or None
        Preferences, winner first.

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
    pairs: NDArray[np.int64] | None = field(default=None)

    @classmethod
    def of(cls, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> RankingData:
        """
        Check and index rows with scores.

        Parameters
        ----------
        X : ndarray, CSR matrix, pandas or polars DataFrame, shape (n_rows, n_features)
            The rows; finite numbers.
        y : array-like of shape (n_rows,)
            Scores; NaN marks an unscored row.
        qid : array-like of shape (n_rows,), optional
            One query id per row; None puts all rows in one query.

        Returns
        -------
        RankingData
            The indexed problem.
        """
        rows = as_rows(X)
        return cls.of_checked(rows, as_scores(y, rows.shape[0]), Queries.of(qid, rows.shape[0]))

    @classmethod
    def of_pairs(cls, X: Any, pairs: ArrayLike, qid: ArrayLike | None = None) -> RankingData:
        """
        Check and index rows with preference pairs.

        Parameters
        ----------
        X : ndarray, CSR matrix, pandas or polars DataFrame, shape (n_rows, n_features)
            The rows; finite numbers.
        pairs : array-like of int, shape (n_pairs, 2)
            Row numbers, the preferred row first.
        qid : array-like of shape (n_rows,), optional
            One query id per row; a pair may not join two queries.

        Returns
        -------
        RankingData
            The indexed problem, with `y` None.
        """
        rows = as_rows(X)
        queries = Queries.of(qid, rows.shape[0])
        checked = _as_pairs(pairs, queries.codes)
        nothing = np.empty(0, dtype=np.int64)
        begins = queries.starts[:-1]
        return cls(
            rows, None, queries, queries.order, begins, nothing, nothing,
            np.zeros(len(queries) + 1, dtype=np.int64), checked,
        )  # fmt: skip

    @classmethod
    def of_checked(cls, X: Any, y: NDArray[np.float64], queries: Queries) -> RankingData:
        """
        Index rows that were checked before (a store, an estimator's validated input).

        Parameters
        ----------
        X : ndarray or CSR matrix
            Finite rows.
        y : array of float64
            Scores, NaN for unscored rows.
        queries : Queries
            The grouping of the rows.

        Returns
        -------
        RankingData
            The indexed problem.
        """
        order, starts = queries.order.copy(), queries.starts
        runs = cut(starts, 4 * n_threads())
        spread(lambda first, last: sort_blocks(y, order, starts, first, last), runs)
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
        return cls(X, y, queries, order, scored_stops, grade_starts, grade_stops[: len(grade_starts)], query_grades)

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
        """Whether each row carries a score."""
        return np.zeros(self.n_rows, dtype=bool) if self.y is None else ~np.isnan(self.y)

    @cached_property
    def n_scored(self) -> int:
        """Number of scored rows."""
        return int(self.is_scored.sum())

    @cached_property
    def pairs_per_query(self) -> NDArray[np.int64]:
        """Number of comparable pairs of each query: (n_q² − Σ_g n_qg²)/2, in 64 bits, without building one."""
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
        """Queries with scored rows but no pair to learn from, because all their scores are equal."""
        has_rows = self.scored_stops > self.starts[:-1]
        return np.flatnonzero(has_rows & (self.pairs_per_query == 0)).astype(np.int64)

    def require_pairs(self) -> None:
        """Raise one sentence when there is nothing to learn an order from."""
        if self.n_rows == 1:
            raise InputError("X has 1 sample, which compares with nothing; pass at least two rows of one query.")
        if self.y is not None and self.n_scored == 0:
            raise InputError(f"y is NaN for all {self.n_rows} rows; score at least two rows of one query.")
        if self.n_pairs == 0:
            raise InputError(
                f"no two of the {self.n_scored} scored rows share a query and differ in score, so there is no pair "
                "to learn from; check qid, or score more rows."
            )


def as_scores(y: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """
    Check scores: a vector of numbers, one per row, NaN for unscored rows.

    Parameters
    ----------
    y : array-like
        Scores.
    n_rows : int
        Number of rows of X.

    Returns
    -------
    array of float64
        The scores.
    """
    if y is None:
        raise InputError(
            "ranking requires y to be passed, but the target y is None; pass one score per row, NaN where unscored."
        )
    scores = as_numbers(y, "y", "score")
    if len(scores) != n_rows:
        raise InputError(f"y has {len(scores)} scores for {n_rows} rows of X; pass one score per row.")
    if np.isinf(scores).any():
        row = int(np.flatnonzero(np.isinf(scores))[0])
        raise InputError(f"y contains infinity at row {row}; pass a finite score, or NaN for an unscored row.")
    return scores


def as_numbers(values: ArrayLike, name: str, what: str) -> NDArray[np.float64]:
    """
    Check a vector of numbers, one per row; what is missing (None, NaN, pandas.NA) is NaN.

    Parameters
    ----------
    values : array-like
        A vector, or a table of one column.
    name : str
        How the caller calls it, for the message.
    what : str
        What one number is, for the message.

    Returns
    -------
    array of float64
        The numbers.
    """
    try:
        given = np.asarray(values)
        if given.dtype.kind in "cmM":
            raise TypeError(f"they are of type {given.dtype}")
        if given.dtype.kind in "OTU":
            given = given.astype(object)
            given = np.where(np.asarray(np.frompyfunc(is_missing, 1, 1)(given), dtype=bool), np.nan, given)
        numbers = given.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as numbers ({reason(error)}); pass one {what} per row.") from error
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1:
        raise InputError(f"{name} has shape {numbers.shape}; pass one {what} per row, a vector of numbers.")
    return numbers


def _as_pairs(pairs: ArrayLike, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    values = np.asarray(pairs)
    if values.size == 0:
        raise InputError("pairs is empty; pass at least one preference.")
    if values.ndim != 2 or values.shape[1] != 2 or values.dtype.kind not in "iu":
        raise InputError(
            f"pairs has shape {values.shape} and type {values.dtype}; "
            "pass integers of shape (n_pairs, 2), the preferred row first."
        )
    values = values.astype(np.int64, copy=False)
    if values.min() < 0 or values.max() >= len(codes):
        outlier = values.min() if values.min() < 0 else values.max()
        raise InputError(f"pairs names row {outlier}, but X has rows 0 to {len(codes) - 1}; pass row numbers.")
    selves = np.flatnonzero(values[:, 0] == values[:, 1])
    if len(selves):
        raise InputError(f"pairs compares row {values[selves[0], 0]} with itself at pair {selves[0]}; remove it.")
    strangers = np.flatnonzero(codes[values[:, 0]] != codes[values[:, 1]])
    if len(strangers):
        raise InputError(f"pairs joins rows of two queries at pair {strangers[0]}; compare rows of one query only.")
    return values
