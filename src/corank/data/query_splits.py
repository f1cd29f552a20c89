"""Splitters of cross-validation that keep queries whole."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator

from corank.data.queries import Queries, qid_of_index
from corank.data.routing import how_to_pass_qid
from corank.errors import InputError
from corank.parameters import check_values, integer, number

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


class _QuerySplit(BaseCrossValidator):
    """
    Base class of splitters that keep queries whole.

    ``split`` takes the query ids as `qid` (metadata routing passes it without a request) or as the third positional
    argument `groups`, which scikit-learn uses when routing is off, or from an index of X that is named "qid".
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
        Yields: row numbers, ascending.
        """
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
