"""Dataset: rows with scores, query ids and document ids, as returned by the readers of files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.column_roles import ColumnRoles
from corank.data.judges import JudgeGrades
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.data.rows import NamedRows, has_missing

LONG, MANY = 64, 1 << 24
"""Length of a name, and total number of characters, above which numpy's fixed-width strings waste memory."""


def _nothing() -> None:
    return None


def _indexed(X: Any, y: NDArray[np.float64], queries: Queries) -> RankingData:
    return replace(RankingData.of_checked(X, y, queries), has_missing=has_missing(X))


def as_names(names: list[str]) -> NDArray[Any]:
    """Make an array of strings."""
    distinct = set(names)
    longest = max(map(len, distinct), default=0)
    is_wide = longest > LONG and longest * len(names) > MANY
    if not is_wide and not any(name.endswith("\0") for name in distinct):
        return np.array(names, dtype=np.str_)
    return as_texts(names)


def as_texts(names: list[str]) -> NDArray[np.object_]:
    """Make an array of string objects."""
    result = np.empty(len(names), dtype=object)
    result[:] = names
    return result


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(NamedRows):
    """
    Rows with scores, query ids and document ids.

    `data`, `qid`, `docids`, `judges` and `comments` are computed on first access.

    X: The rows.
    y: Scores; NaN marks an unjudged row.
    names: Names of the features, if the file has them.
    roles: What the columns of a table were taken as.
    judged: The grades of all judges, if rows of the same document were merged.
    """

    X: Any
    y: NDArray[np.float64]
    names: list[str] | None = None
    roles: ColumnRoles | None = None
    judged: JudgeGrades | None = None
    _qid: Callable[[], NDArray[Any] | None] = _nothing
    _docids: Callable[[], NDArray[np.object_] | None] = _nothing
    _judges: Callable[[], NDArray[np.object_] | None] = _nothing
    _comments: Callable[[], NDArray[np.object_] | None] = _nothing
    _data: Callable[[], RankingData | None] = _nothing

    def __repr__(self) -> str:
        n_scored = np.count_nonzero(~np.isnan(self.y))
        return f"<{type(self).__name__}: {len(self.y)} rows, {n_scored} scored, {self.X.shape[1]} features>"

    @cached_property
    def qid(self) -> NDArray[Any] | None:
        """Query id of each row (integers if all ids are), or None without query ids."""
        return self._qid()

    @cached_property
    def docids(self) -> NDArray[np.object_] | None:
        """Document id of each row, a string, or None without document ids."""
        return self._docids()

    @cached_property
    def judges(self) -> NDArray[np.object_] | None:
        """Name of the judge of each row, a string, or None without a column of judges."""
        return self._judges()

    @cached_property
    def comments(self) -> NDArray[np.object_] | None:
        """Text after ``#`` in each row of a LETOR file ("" if there is none), or None without comments."""
        return self._comments()

    @cached_property
    def data(self) -> RankingData:
        """The rows as a checked and indexed ranking problem."""
        ready = self._data() or _indexed(self.X, self.y, Queries.of(self.qid, len(self.y)))
        return ready if self.names is None else replace(ready, names=tuple(self.names))

    def revised(self, X: Any, y: NDArray[np.float64], *, one_query: bool, roles: ColumnRoles | None = None) -> Dataset:
        """Replace rows and scores, and keep the ids."""

        def data() -> RankingData:
            return _indexed(X, y, Queries.of(None, len(y)) if one_query else self.data.queries)

        qid = _nothing if one_query else self._qid
        names, roles = (self.names, self.roles) if roles is None else (list(roles.features), roles)
        return Dataset(X, y, names, roles, self.judged, qid, self._docids, self._judges, self._comments, data)

    def merged(self, judged: JudgeGrades, y: NDArray[np.float64]) -> Dataset:
        """Keep the first row of each document."""
        first = judged.first

        def kept(column: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if column is None else column[first]

        return Dataset(
            self.X[first], y, self.names, self.roles, judged, lambda: kept(self.qid), lambda: kept(self.docids),
            _comments=lambda: kept(self.comments),
        )  # fmt: skip
