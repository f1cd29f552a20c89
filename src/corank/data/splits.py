"""Splits of queries for cross-validation, masked scores, and equal rows of different groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.data.columns import MissingValues
from corank.data.inputs import as_numbers
from corank.data.queries import Queries, qid_of_index
from corank.data.ranking import RankingData
from corank.data.routing import how_to_pass_qid
from corank.data.rows import has_missing
from corank.data.scoring import first_equals
from corank.errors import InputError
from corank.parameters import check_values, integer, number


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

    >>> data = RankingData.of([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> keep_scores(data, np.array([True, False, True])).y.tolist()
    [0.0, nan, 2.0]
    """
    assert data.y is not None
    masked = RankingData.of_checked(data.X, np.where(kept, data.y, np.nan), data.queries, data.weights)
    return replace(masked.with_prior(data.prior), has_missing=data.has_missing, filling=data.filling)


def shared_rows(X: Any, groups: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """
    Find equal rows of different groups, such as products without features of the query.

    >>> shared_rows(np.array([[1.0], [2.0], [1.0]]), np.array([0, 0, 1]), np.arange(3)).tolist()
    [0, 1, 0]
    """
    chosen = X[rows]
    # NaN equals nothing: compare filled rows and indicators
    first = first_equals(MissingValues.of(chosen).fill(chosen) if has_missing(chosen) else chosen)
    if first is None or (groups[rows[first]] == groups[rows]).all():
        return None
    result = np.arange(len(groups))
    result[rows] = rows[first]
    return result


Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


class _QuerySplit(ABC):
    """
    Base class of splitters that keep queries whole.

    ``split`` takes the query ids as `qid` (metadata routing passes it without a request) or as the third positional
    argument `groups`, which scikit-learn uses when routing is off, or from an index of X that is named "qid".
    """

    n_splits: int

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({given})"

    def get_metadata_routing(self) -> Any:
        """Request `qid` for ``split``; scikit-learn calls this."""
        from sklearn.utils.metadata_routing import MetadataRequest  # takes long to import

        request = MetadataRequest(owner=type(self).__name__)
        request.split.add_request(param="qid", alias=True)
        return request

    def split(
        self, X: Any, y: Any = None, groups: ArrayLike | None = None, *, qid: ArrayLike | None = None
    ) -> Iterator[Fold]:
        """Yield the ascending numbers of training rows and of test rows; no query is in both."""
        ids = qid_of_index(X, groups if qid is None else qid)
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

    n_splits: Number of repeats.
    test_size: Share of the queries in the test part, between 0 and 1.
    random_state: Random seed.
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
