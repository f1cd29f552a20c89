"""Splits that keep a query whole, and hiding scores to simulate unjudged data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator

from corank.data.problem.inputs import as_numbers
from corank.data.problem.queries import Queries
from corank.data.problem.ranking import RankingData
from corank.data.problem.routing import how_to_pass_qid
from corank.errors import InputError
from corank.parameters import check_values, number, whole

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


class _QuerySplit(BaseCrossValidator):
    """
    What the splitters of whole queries share.

    ``split`` takes the query ids as `qid` (metadata routing hands them on without any request) or as the third
    positional argument `groups`, as scikit-learn's functions do where routing is off.
    """

    __metadata_request__split: ClassVar[dict[str, bool]] = {"qid": True}

    n_splits: int

    def split(
        self, X: Any, y: Any = None, groups: ArrayLike | None = None, *, qid: ArrayLike | None = None
    ) -> Iterator[Fold]:
        """
        Yield row numbers of training and test rows; no query is in both.

        X: the rows; only their number is used.
        groups (n_rows,): query ids where metadata routing is off.
        qid (n_rows,): query ids.
        Yields: row numbers, ascending.
        """
        ids = groups if qid is None else qid
        if ids is None:
            raise InputError(f"{type(self).__name__} splits queries but qid is missing; {how_to_pass_qid()}.")
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        queries = Queries.of(ids, n_rows)
        for test_queries in self._test_queries(len(queries)):
            is_test = np.zeros(len(queries), dtype=bool)
            is_test[test_queries] = True
            test = is_test[queries.codes]
            yield np.flatnonzero(~test), np.flatnonzero(test)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None, *, qid: Any = None) -> int:
        """
        Return the number of splits.

        Returns: the number of splits.
        """
        return self.n_splits

    @abstractmethod
    def _test_queries(self, n_queries: int) -> Iterator[NDArray[np.int64]]:
        """Yield the numbers of the queries of each test part."""


class QueryKFold(_QuerySplit):
    """
    K folds of whole queries, in order of first appearance or shuffled.

    Parameters
    ----------
    n_splits : int
        Number of folds, at least 2.
    shuffle : bool
        Whether queries are shuffled before they are dealt to folds.
    random_state : int, optional
        Seed of the shuffle.

    Examples
    --------
    >>> import numpy as np
    >>> qid = ["a", "a", "b", "c", "c", "d"]
    >>> [test.tolist() for _, test in QueryKFold(2).split(np.zeros((6, 1)), qid=qid)]
    [[0, 1, 2], [3, 4, 5]]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: int | None = None) -> None:
        check_values({"n_splits": n_splits}, {"n_splits": whole(2)})
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def _test_queries(self, n_queries: int) -> Iterator[NDArray[np.int64]]:
        if n_queries < self.n_splits:
            raise InputError(f"{n_queries} queries cannot make {self.n_splits} folds; use at most {n_queries}.")
        dealt = np.arange(n_queries)
        if self.shuffle:
            dealt = np.random.default_rng(self.random_state).permutation(n_queries)
        yield from np.array_split(dealt, self.n_splits)


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
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> qid = np.repeat(np.arange(10), 3)
    >>> train, test = next(QueryShuffleSplit(1, test_size=0.3, random_state=0).split(qid, qid=qid))
    >>> len(np.unique(qid[test])), len(np.intersect1d(qid[train], qid[test]))
    (3, 0)
    """

    def __init__(self, n_splits: int = 10, *, test_size: float = 0.3, random_state: int | None = None) -> None:
        rules = {"n_splits": whole(1), "test_size": number(0, 1, inside="()")}
        check_values({"n_splits": n_splits, "test_size": test_size}, rules)
        self.n_splits = n_splits
        self.test_size = test_size
        self.random_state = random_state

    def _test_queries(self, n_queries: int) -> Iterator[NDArray[np.int64]]:
        n_test = round(self.test_size * n_queries)
        if not 0 < n_test < n_queries:
            raise InputError(
                f"test_size={self.test_size} of {n_queries} queries leaves {n_test} for testing and "
                f"{n_queries - n_test} for training; both need at least one."
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
    Hide a share of the scores, as if those rows had never been judged.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Scores; rows that are NaN already stay so.
    qid : array-like of shape (n_rows,), optional
        Query ids; needed for ``by="query"``.
    fraction : float
        Share of the scored rows (or of the queries that have any) to hide, between 0 and 1.
    by : {"row", "query"}
        Hide single rows, or all the scores of whole queries.
    random_state : int, optional
        Seed.

    Returns
    -------
    array of float64
        A copy of y with NaN where a score was hidden.

    Examples
    --------
    >>> import numpy as np
    >>> int(np.isnan(mask_scores(np.arange(10), fraction=0.3, random_state=0)).sum())
    3
    """
    check_values({"fraction": fraction}, {"fraction": number(0, 1)})
    hidden = as_numbers(y, "y", "score").copy()
    rng = np.random.default_rng(random_state)
    scored = np.flatnonzero(~np.isnan(hidden))
    if by == "row":
        hidden[rng.permutation(scored)[: round(fraction * len(scored))]] = np.nan
        return hidden
    if by != "query":
        raise InputError(f"by is {by!r}; choose 'row' or 'query'.")
    if qid is None:
        raise InputError("by='query' hides whole queries but qid is missing; pass one query id per row.")
    codes = Queries.of(qid, len(hidden)).codes
    judged = np.unique(codes[scored])
    chosen = rng.permutation(judged)[: round(fraction * len(judged))]
    hidden[np.isin(codes, chosen)] = np.nan
    return hidden


def keep_scores(data: RankingData, kept: NDArray[np.bool_]) -> RankingData:
    """
    Hide all other scores of a problem; its rows are not copied.

    Parameters
    ----------
    data : RankingData
        A problem given by scores.
    kept : array of bool, shape (n_rows,)
        Rows whose scores, if any, stay.

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
    hidden = RankingData.of_checked(data.X, np.where(kept, data.y, np.nan), data.queries, data.weights)
    return hidden.on_top_of(data.prior)
