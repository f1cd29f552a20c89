"""Splits by query, masked scores and presumed negatives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator

from corank.data.problem.inputs import as_numbers
from corank.data.problem.queries import Queries
from corank.data.problem.ranking import RankingData
from corank.data.problem.routing import how_to_pass_qid
from corank.errors import InputError
from corank.parameters import Rules, check_values, integer, number, rng_of, seed

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


class _QuerySplit(BaseCrossValidator):
    """
    Base class of splitters that keep queries whole.

    ``split`` takes the query ids as `qid` (metadata routing passes it without a request) or as the third positional
    argument `groups`, which scikit-learn uses when routing is off.
    """

    __metadata_request__split: ClassVar[dict[str, bool]] = {"qid": True}

    n_splits: int

    def split(
        self, X: Any, y: Any = None, groups: ArrayLike | None = None, *, qid: ArrayLike | None = None
    ) -> Iterator[Fold]:
        """
        Yield row numbers of training and test rows; no query is in both.

        X: the rows; only their number is used.
        groups (n_rows,): query ids, if metadata routing is off.
        qid (n_rows,): query ids.
        Yields: row numbers, ascending.
        """
        ids = groups if qid is None else qid
        if ids is None:
            raise InputError(f"{type(self).__name__} needs query ids, but qid is missing; {how_to_pass_qid()}.")
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        queries = Queries.of(ids, n_rows)
        for test_queries in self._test_queries(len(queries)):
            is_test = np.zeros(len(queries), dtype=bool)
            is_test[test_queries] = True
            test = is_test[queries.codes]
            yield np.flatnonzero(~test), np.flatnonzero(test)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, *, qid: Any = None) -> int:
        """Return the number of splits."""
        return self.n_splits

    @abstractmethod
    def _test_queries(self, n_queries: int) -> Iterator[NDArray[np.int64]]:
        """Yield the numbers of the queries of each test part."""


class QueryKFold(_QuerySplit):
    """
    K-fold cross-validation that keeps queries whole.

    Parameters
    ----------
    n_splits : int
        Number of folds, at least 2.
    shuffle : bool
        Whether to shuffle the queries before they are split. Otherwise they are in order of first appearance.
    random_state : int, optional
        Random seed.

    Examples
    --------
    >>> import numpy as np
    >>> qid = ["a", "a", "b", "c", "c", "d"]
    >>> [test.tolist() for _, test in QueryKFold(2).split(np.zeros((6, 1)), qid=qid)]
    [[0, 1, 2], [3, 4, 5]]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: int | None = None) -> None:
        check_values({"n_splits": n_splits}, {"n_splits": integer(2)})
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def _test_queries(self, n_queries: int) -> Iterator[NDArray[np.int64]]:
        if n_queries < self.n_splits:
            raise InputError(
                f"{n_queries} queries cannot make {self.n_splits} folds; set n_splits to at most {n_queries}."
            )
        order = np.arange(n_queries)
        if self.shuffle:
            order = np.random.default_rng(self.random_state).permutation(n_queries)
        yield from np.array_split(order, self.n_splits)


class QueryShuffleSplit(_QuerySplit):
    """
    Repeated random splits of whole queries into training and test.

    Parameters
    ----------
    n_splits : int
        Number of repeats.
    test_size : float
        Share of the queries in the test part, between 0 and 1.
    random_state : int, optional
        Random seed.

    Examples
    --------
    >>> import numpy as np
    >>> qid = np.repeat(np.arange(10), 3)
    >>> train, test = next(QueryShuffleSplit(1, test_size=0.3, random_state=0).split(qid, qid=qid))
    >>> len(np.unique(qid[test])), len(np.intersect1d(qid[train], qid[test]))
    (3, 0)
    """

    def __init__(self, n_splits: int = 10, *, test_size: float = 0.3, random_state: int | None = None) -> None:
        rules = {"n_splits": integer(1), "test_size": number(0, 1, inside="()")}
        check_values({"n_splits": n_splits, "test_size": test_size}, rules)
        self.n_splits = n_splits
        self.test_size = test_size
        self.random_state = random_state

    def _test_queries(self, n_queries: int) -> Iterator[NDArray[np.int64]]:
        n_test = round(self.test_size * n_queries)
        if not 0 < n_test < n_queries:
            raise InputError(
                f"test_size={self.test_size} of {n_queries} queries leaves {n_test} for testing and "
                f"{n_queries - n_test} for training, but both need at least one; change test_size."
            )
        rng = np.random.default_rng(self.random_state)
        for _ in range(self.n_splits):
            yield rng.permutation(n_queries)[:n_test]


def mask_scores(
    y: ArrayLike,
    qid: ArrayLike | None = None,
    fraction: float = 0.8,
    *,
    by: Literal["row", "query"] = "row",
    random_state: int | None = None,
) -> NDArray[np.float64]:
    """
    Replace a share of the scores by NaN, to simulate unjudged rows.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Scores; NaN marks an unscored row.
    qid : array-like of shape (n_rows,), optional
        Query ids; needed for ``by="query"``.
    fraction : float
        Share of the scored rows (or of the queries with scores) to mask, between 0 and 1.
    by : {"row", "query"}
        Mask single rows, or all scores of a query.
    random_state : int, optional
        Random seed.

    Returns
    -------
    array of float64
        A copy of y with NaN where a score was masked.

    Examples
    --------
    >>> import numpy as np
    >>> int(np.isnan(mask_scores(np.arange(10), fraction=0.3, random_state=0)).sum())
    3
    """
    check_values({"fraction": fraction}, {"fraction": number(0, 1)})
    masked = as_numbers(y, "y", "score").copy()
    rng = np.random.default_rng(random_state)
    scored = np.flatnonzero(~np.isnan(masked))
    if by == "row":
        masked[rng.permutation(scored)[: round(fraction * len(scored))]] = np.nan
        return masked
    if by != "query":
        raise InputError(f"by is {by!r}; choose 'row' or 'query'.")
    if qid is None:
        raise InputError("by='query' masks whole queries, but qid is missing; pass one query id per row.")
    codes = Queries.of(qid, len(masked)).codes
    judged = np.unique(codes[scored])
    chosen = rng.permutation(judged)[: round(fraction * len(judged))]
    masked[np.isin(codes, chosen)] = np.nan
    return masked


def keep_scores(data: RankingData, kept: NDArray[np.bool_]) -> RankingData:
    """
    Keep the scores of some rows of a problem and mask the others; X is not copied.

    Parameters
    ----------
    data : RankingData
        A problem given by scores.
    kept : array of bool, shape (n_rows,)
        Rows that keep their score.

    Returns
    -------
    RankingData
        The problem with the other rows unscored.

    Examples
    --------
    >>> data = RankingData.of([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> keep_scores(data, np.array([True, False, True])).y.tolist()
    [0.0, nan, 2.0]
    """
    assert data.y is not None
    masked = RankingData.of_checked(data.X, np.where(kept, data.y, np.nan), data.queries, data.weights)
    return replace(masked.with_prior(data.prior), has_missing=data.has_missing, filling=data.filling)


_RULES: Rules = {"n": integer(1), "weight": number(0, inside="()"), "score": number(), "random_state": seed}


def presumed_negatives(
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    n: int = 100,
    weight: float = 0.1,
    score: float = 0.0,
    random_state: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """
    Treat some random unscored rows as negatives with a small weight.

    If all judged rows are relevant, no pair differs and a pairwise ranker cannot learn. Nearly all unjudged rows of
    such a search are irrelevant, so that a random sample of them can serve as negatives. The weight of a pair is the
    product of the weights of its rows: a pair of judged rows counts 1 / `weight` times a pair with a presumed row.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Scores; NaN marks an unscored row.
    qid : array-like of shape (n_rows,), optional
        One query id per row; None means one query.
    n : int
        Number of presumed negatives per query with a scored row (all its unscored rows if they are fewer). Queries
        without scores are not changed.
    weight : float
        Weight of a presumed negative, relative to a judged row.
    score : float
        Score of presumed negatives.
    random_state : int, optional
        Random seed.

    Returns
    -------
    y : array of shape (n_rows,)
        The scores, with `score` for presumed negatives.
    sample_weight : array of shape (n_rows,)
        Weights for ``fit``: `weight` for presumed negatives, 1 for all other rows.

    Examples
    --------
    >>> import numpy as np
    >>> from corank import RankRLS, presumed_negatives
    >>> X, y = np.array([[3.0], [2.0], [0.0], [1.0]]), np.array([1, 1, np.nan, np.nan])
    >>> scores, weights = presumed_negatives(y, n=1, random_state=0)
    >>> scores.tolist(), weights.tolist()
    ([1.0, 1.0, 0.0, nan], [1.0, 1.0, 0.1, 1.0])
    >>> bool(RankRLS().fit(X, scores, sample_weight=weights).coef_[0] > 0)
    True
    """
    check_values({"n": n, "weight": weight, "score": score, "random_state": random_state}, _RULES)
    scores = as_numbers(y, "y", "score").copy()
    scored = ~np.isnan(scores)
    if not (scores[scored] > score).any():
        raise InputError(
            f"no judged row has a score above {score:g}, the score of presumed negatives; judge a relevant row or pass "
            "a lower score."
        )
    queries, rng, weights = Queries.of(qid, len(scores)), rng_of(random_state), np.ones(len(scores))
    has_score = np.bincount(queries.codes[scored], minlength=len(queries)) > 0
    # sort rows in random order by query and take the first n of each
    free = rng.permutation(np.flatnonzero(~scored & has_score[queries.codes]))
    free = free[np.argsort(queries.codes[free], kind="stable")]
    codes = queries.codes[free]
    drawn = free[np.arange(len(free)) - np.searchsorted(codes, codes) < n]
    scores[drawn], weights[drawn] = score, weight
    return scores, weights
