"""Collection: rows with their scores, queries and documents, as a file gives them; what every reader returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.problem.queries import Queries
from corank.data.problem.ranking import RankingData

LONG, MANY = 64, 1 << 24
"""Characters of a name, and of all names at that length, from which numpy's text wastes memory."""


def _nothing() -> None:
    return None


def as_names(names: list[str]) -> NDArray[Any]:
    """
    Make an array of text.

    Parameters
    ----------
    names : list of str
        The texts.

    Returns
    -------
    ndarray
        Of numpy's text, or of objects where one long name would widen all, or a NUL at the end would be lost.
    """
    distinct = set(names)
    longest = max(map(len, distinct), default=0)
    is_wide = longest > LONG and longest * len(names) > MANY
    if not is_wide and not any(name.endswith("\0") for name in distinct):
        return np.array(names, dtype=np.str_)
    return as_texts(names)


def as_texts(names: list[str]) -> NDArray[np.object_]:
    """
    Make an array of text of any length.

    Parameters
    ----------
    names : list of str
        The texts.

    Returns
    -------
    ndarray of objects
        The same strings.
    """
    found = np.empty(len(names), dtype=object)
    found[:] = names
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Collection:
    """
    Rows with their scores, queries and documents.

    What takes work (the index in `data`, the strings of `docids`) is made when it is first asked for.

    Attributes
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        The rows.
    y : array of float64, shape (n_rows,)
        Scores; NaN marks an unscored row.
    names : list of str or None
        Names of the features, where the file has them.
    """

    X: Any
    y: NDArray[np.float64]
    names: list[str] | None = None
    _qid: Callable[[], NDArray[Any] | None] = _nothing
    _docids: Callable[[], NDArray[np.object_] | None] = _nothing
    _comments: Callable[[], NDArray[np.object_] | None] = _nothing
    _data: Callable[[], RankingData | None] = _nothing

    def __repr__(self) -> str:
        n_scored = np.count_nonzero(~np.isnan(self.y))
        return f"<{type(self).__name__}: {len(self.y)} rows, {n_scored} scored, {self.X.shape[1]} features>"

    @cached_property
    def qid(self) -> NDArray[Any] | None:
        """Query id of each row, integers where all of them are, or None where the rows came without."""
        return self._qid()

    @cached_property
    def docids(self) -> NDArray[np.object_] | None:
        """Document of each row, a string, or None where the rows came without."""
        return self._docids()

    @cached_property
    def comments(self) -> NDArray[np.object_] | None:
        """What LETOR text has behind ``#`` in each row ("" where nothing stands there), or None without any."""
        return self._comments()

    @cached_property
    def data(self) -> RankingData:
        """The rows as a checked and indexed ranking problem."""
        ready = self._data()
        return ready or RankingData.of_checked(self.X, self.y, Queries.of(self.qid, len(self.y)))

    def revised(self, X: Any, y: NDArray[np.float64], *, one_query: bool) -> Collection:
        """
        Make a collection of the same rows in other numbers.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Finite rows.
        y : array of float64
            Their scores.
        one_query : bool
            Whether the query ids are dropped.

        Returns
        -------
        Collection
            With the same documents and names.
        """

        def data() -> RankingData:
            return RankingData.of_checked(X, y, Queries.of(None, len(y)) if one_query else self.data.queries)

        qid = _nothing if one_query else self._qid
        return Collection(X, y, self.names, qid, self._docids, self._comments, data)
