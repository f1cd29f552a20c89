"""Queries: rows grouped by query id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError, warn


@dataclass(frozen=True, eq=False)
class Queries:
    """The rows of a problem grouped by query."""

    ids: NDArray[Any]  # (n_queries,): the distinct ids in the order in which they first appear
    codes: NDArray[np.int64]  # (n_rows,): position in `ids` of each row's query
    order: NDArray[np.int64]  # (n_rows,): rows grouped by query; input order is kept inside a query
    starts: NDArray[np.int64]  # (n_queries + 1,): query q owns ``order[starts[q]:starts[q + 1]]``

    @classmethod
    def of(cls, qid: ArrayLike | None, n_rows: int) -> Queries:
        """
        Group rows by their query id.

        qid (n_rows,): one id per row, any hashable type, any order; None puts all rows in one query.
        """
        if qid is None:
            starts = np.array([0, n_rows] if n_rows else [0], dtype=np.int64)
            codes = np.zeros(n_rows, dtype=np.int64)
            return cls(np.arange(len(starts) - 1), codes, np.arange(n_rows, dtype=np.int64), starts)
        values = _one_id_per_row(qid, n_rows)
        blocks = _block_starts(values)
        ids, codes_of_blocks = _first_appearance(values[blocks])
        _require_ids(ids, blocks, codes_of_blocks)
        lengths = np.diff(np.append(blocks, n_rows))
        codes = np.repeat(codes_of_blocks, lengths)
        starts = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum(np.bincount(codes, minlength=len(ids)), out=starts[1:])
        contiguous = len(ids) == len(blocks)
        order = np.arange(n_rows, dtype=np.int64) if contiguous else np.argsort(codes, kind="stable")
        return cls(ids, codes, order, starts)

    def __len__(self) -> int:
        return len(self.ids)

    def ranks(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Rank the rows of each query by falling score."""
        order = np.lexsort((-scores, self.codes))
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order)) - np.repeat(self.starts[:-1], self.sizes) + 1
        return ranks

    def plain_ids(self, place: str) -> NDArray[Any]:
        """Return the ids as an array of numbers or strings, which files can store."""
        plain = self.ids
        if plain.dtype.kind == "O":
            names = plain.tolist()
            kinds = (str,) if any(isinstance(name, str) for name in names) else (int, float)
            plain = np.array(names) if all(isinstance(name, kinds) for name in names) else plain
            # numpy drops trailing NULs of strings and rounds large integers in arrays of floats
            plain = plain if plain.tolist() == names else self.ids
        if plain.dtype.kind not in "iufUb" or (plain.dtype.kind == "f" and plain.itemsize > 8):
            raise InputError(f"qid holds ids that {place} cannot store; use numbers or strings.")
        return plain

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each query."""
        return np.diff(self.starts)


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, NaT or pandas.NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # comparing pandas.NA gives pandas.NA
        return True
    except ValueError:  # an array has no truth value
        return False


def qid_of_index(X: Any, qid: ArrayLike | None) -> Any:
    """
    Return qid or, if it is None, the level "qid" of the index of a pandas frame.

    The index follows the rows through folds, pipelines and searches of scikit-learn, which pass no qid by themselves.
    """
    # a list has a method called index
    if qid is not None or "qid" not in getattr(getattr(X, "index", None), "names", ()):
        return qid
    return X.index.get_level_values("qid").to_numpy()


def qid_of_group(group: ArrayLike, n_rows: int) -> NDArray[np.int64]:
    """Return query ids from sizes of queries, as LightGBM and XGBoost take them."""
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any() or sizes.sum() != n_rows:
        total = f"sum {sizes.sum()}" if sizes.dtype.kind in "iu" else f"type {sizes.dtype}"
        raise InputError(
            f"group has {total}, but X has {n_rows} rows; pass the number of rows of each query, in the order of X, or "
            "one query id per row as qid."
        )
    return np.repeat(np.arange(len(sizes)), sizes)


def _one_id_per_row(qid: ArrayLike, n_rows: int) -> NDArray[Any]:
    values = _as_array(qid) if isinstance(qid, list | tuple) else np.asarray(qid)
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
    return values.astype(object) if values.dtype.kind == "T" else values


def _as_array(qid: list[Any] | tuple[Any, ...]) -> NDArray[Any]:
    """Return ids as an array without merging distinct ids."""
    kinds = set(map(type, qid))
    kind = kinds.pop() if len(kinds) == 1 else object
    # numpy converts mixed ids to strings or floats, reads tuples as rows, and drops trailing NULs
    if kind is object or issubclass(kind, list | tuple):
        return _as_objects(qid)
    if issubclass(kind, str | bytes) and any(name[-1:] in ("\0", b"\0") for name in qid):
        return _as_objects(qid)
    values = np.asarray(qid)
    # integers beyond 64 bits became floats
    return _as_objects(qid) if kind is int and values.dtype.kind == "f" else values


def _as_objects(qid: Any) -> NDArray[Any]:
    items = list(qid)
    if any(issubclass(kind, list) for kind in set(map(type, items))):
        items = [tuple(item) if isinstance(item, list) else item for item in items]
    return np.fromiter(items, dtype=object, count=len(items))


def _block_starts(values: NDArray[Any]) -> NDArray[np.int64]:
    if len(values) == 0:
        return np.empty(0, dtype=np.int64)
    try:
        changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    except (TypeError, ValueError):  # objects that cannot be compared with each other
        return np.arange(len(values))
    return np.concatenate([[0], changes]).astype(np.int64)


def take_blocks(starts: NDArray[Any], blocks: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of the entries of some blocks, concatenated, and where each block begins among them."""
    first = starts.astype(np.int64, copy=False)
    sizes = first[blocks + 1] - first[blocks]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return np.repeat(first[blocks] - ends[:-1], sizes) + np.arange(ends[-1]), ends


def _first_appearance(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct values in order of first appearance, and the code of each value."""
    if values.dtype.kind == "O":
        try:
            code_of = {value: code for code, value in enumerate(dict.fromkeys(values.tolist()))}
            codes = np.fromiter(map(code_of.__getitem__, values.tolist()), dtype=np.int64, count=len(values))
        except TypeError as error:
            raise InputError(f"qid holds a value that cannot be hashed ({error}); use numbers or strings.") from error
        return _as_objects(code_of), codes
    ids, first, codes = np.unique(values, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    rank = np.empty_like(by_appearance)
    rank[by_appearance] = np.arange(len(ids))
    return ids[by_appearance], rank[codes].astype(np.int64)


def _require_ids(ids: NDArray[Any], blocks: NDArray[np.int64], codes: NDArray[np.int64]) -> None:
    if ids.dtype.kind not in "OfcmM" or set(map(type, ids.tolist())) == {str}:
        return
    missing = [code for code, name in enumerate(ids.tolist()) if is_missing(name)]
    if missing:
        row = int(blocks[np.flatnonzero(codes == missing[0])[0]])
        raise InputError(f"qid is missing (None or NaN) at row {row}; every row needs a query id.")
    texts = {name for name in ids.tolist() if isinstance(name, str)}
    alike = [name for name in ids.tolist() if isinstance(name, int | float | np.number) and texts & _as_texts(name)]
    if alike:
        text = min(texts & _as_texts(alike[0]))
        warn(
            f"qid holds the number {alike[0]} and the text {text!r}, which are different queries; if they should be "
            "one, convert all ids to the same type."
        )


def _as_texts(number: Any) -> set[str]:
    return {str(number), f"{number:g}"}
