"""What a user hands to a comparison: arrays, a frame, a file that was read, or an indexed problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corank.data.problem.collection import Collection
from corank.data.problem.ranking import RankingData
from corank.errors import InputError
from corank.parameters import is_whole


@dataclass(frozen=True, eq=False)
class Given:
    """
    Rows as they came.

    X, y, qid: as `Ranker.fit` takes them; y is None where there are no scores.
    docids: documents of the rows, for conventions that order ties by them.
    names: of the columns; None where they have none.
    """

    X: Any
    y: Any
    qid: Any
    docids: Any = None
    names: Sequence[str] | None = None

    @classmethod
    def of(cls, X: Any, y: Any, qid: Any) -> Given:
        """Take rows, or what brings scores and queries along."""
        if X is None:
            raise InputError("X is missing; pass the rows, or what corank.read returns.")
        if isinstance(X, Collection | RankingData):
            if y is not None or qid is not None:
                raise InputError(f"y or qid came beside a {type(X).__name__}, which holds them; pass it alone.")
            if isinstance(X, Collection):
                return cls(X.X, X.y, X.qid, X.docids, X.names)
            if X.pairs is not None:
                raise InputError(
                    "the data holds preferences only, and methods are judged by scores; pass one score per row, NaN "
                    "where unscored."
                )
            return cls(X.X, X.y, X.queries.ids[X.queries.codes])
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        return cls(X, y, qid, None, names)

    def columns(self, prior: Sequence[int], n: int) -> tuple[int, ...]:
        """Check numbers of columns that are scores already, of `n` columns."""
        found = tuple(prior)
        if not found or not all(is_whole(at) and 0 <= at < n for at in found):
            raise InputError(f"prior is {list(found)!r}; pass one or more column numbers from 0 to {n - 1}.")
        return tuple(int(at) for at in found)

    def names_of(self, n: int) -> tuple[str, ...]:
        """Return names of `n` columns, or their numbers from 1."""
        return tuple(str(at + 1) for at in range(n)) if self.names is None else tuple(self.names)
