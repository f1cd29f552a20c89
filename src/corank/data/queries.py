"""Which row belongs to which query: ids of any hashable type, in any order, grouped once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError


@dataclass(frozen=True, eq=False)
class Queries:
    """
    The rows of a problem grouped by query.

    Attributes
    ----------
    ids : array, shape (n_queries,)
        The distinct ids in the order in which they first appear.
    codes : array of int64, shape (n_rows,)
        Position in `ids` of each row's query.
    order : array of int64, shape (n_rows,)
        Rows grouped by query; input order is kept inside a query.
    starts : array of int64, shape (n_queries + 1,)
        Query q owns ``order[starts[q]:starts[q + 1]]``.

    Examples
    --------
    >>> queries = Queries.of(["b", "a", "b"], n_rows=3)
    >>> queries.ids.tolist(), queries.order.tolist(), queries.starts.tolist()
    (['b', 'a'], [0, 2, 1], [0, 2, 3])
    """

    ids: NDArray[Any]
    codes: NDArray[np.int64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, qid: ArrayLike | None, n_rows: int) -> Queries:
        """
        Group rows by their query id.

        Parameters
        ----------
        qid : array-like of shape (n_rows,), optional
            One id per row, any hashable type, any order; None puts all rows in one query.
        n_rows : int
            Number of rows of X.

        Returns
        -------
        Queries
            The grouping.
        """
        if qid is None:
            starts = np.array([0, n_rows] if n_rows else [0], dtype=np.int64)
            codes = np.zeros(n_rows, dtype=np.int64)
            return cls(np.arange(len(starts) - 1), codes, np.arange(n_rows, dtype=np.int64), starts)
        values = _one_id_per_row(qid, n_rows)
        blocks = _block_starts(values)
        ids, codes_of_blocks = _first_appearance(values[blocks])
        lengths = np.diff(np.append(blocks, n_rows))
        codes = np.repeat(codes_of_blocks, lengths)
        starts = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum(np.bincount(codes, minlength=len(ids)), out=starts[1:])
        contiguous = len(ids) == len(blocks)
        order = np.arange(n_rows, dtype=np.int64) if contiguous else np.argsort(codes, kind="stable")
        return cls(ids, codes, order, starts)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each query."""
        return np.diff(self.starts)


def _one_id_per_row(qid: ArrayLike, n_rows: int) -> NDArray[Any]:
    values = np.asarray(qid)
    if values.dtype.kind == "U" and not isinstance(qid, np.ndarray):
        # a list that mixes types would have been turned into strings: keep what the user gave
        values = _as_objects(qid) if any(not isinstance(v, str) for v in qid) else values  # type: ignore[union-attr]
    if (values.ndim == 2 and values.dtype.kind == "O") or (values.ndim > 1 and isinstance(qid, list | tuple)):
        values = _as_objects(qid)  # a list of tuples: each tuple is one id
    if values.ndim != 1:
        raise InputError(f"qid has shape {values.shape}; pass one query id per row, a vector of {n_rows} ids.")
    if len(values) != n_rows:
        message = f"qid has {len(values)} values for {n_rows} rows of X; pass one query id per row"
        if values.dtype.kind in "iu" and len(values) < n_rows and int(values.sum()) == n_rows:
            message += (
                f" (these look like group sizes, since they sum to {n_rows}: "
                "use numpy.repeat(numpy.arange(len(sizes)), sizes))"
            )
        raise InputError(message + ".")
    if values.dtype.kind == "f" and np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0])
        raise InputError(f"qid is NaN at row {row}; every row needs a query id.")
    return values


def _as_objects(qid: Any) -> NDArray[Any]:
    items = list(qid)
    values = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        values[i] = tuple(item) if isinstance(item, list) else item
    return values


def _block_starts(values: NDArray[Any]) -> NDArray[np.int64]:
    if len(values) == 0:
        return np.empty(0, dtype=np.int64)
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.concatenate([[0], changes]).astype(np.int64)


def _first_appearance(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Distinct values in order of first appearance, and the code of each value."""
    if values.dtype.kind == "O":
        try:
            seen: dict[Any, int] = {}
            codes = np.array([seen.setdefault(v, len(seen)) for v in values], dtype=np.int64)
        except TypeError as error:
            raise InputError(f"qid holds a value that cannot be hashed ({error}); use numbers or strings.") from error
        return _as_objects(seen), codes
    ids, first, codes = np.unique(values, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    rank = np.empty_like(by_appearance)
    rank[by_appearance] = np.arange(len(ids))
    return ids[by_appearance], rank[codes].astype(np.int64)
