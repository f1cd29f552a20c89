"""
The files of an opened store, mapped; what kernels follow is checked before they first see it.

A file may hold anything, and a checksum proves nothing to whoever forged it. So rows and index are held against each
other when they are first asked for, in one pass at the speed of memory or of the disk, and never again. The files of
a store that is written anew are others: who has it open keeps the old ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.rows.structure import ProblemIndex, index_fault
from corank.data.problem.inputs import as_scores
from corank.data.problem.queries import Queries
from corank.data.problem.ranking import RankingData
from corank.data.problem.rows import require_finite, require_structure, require_whole
from corank.errors import InputError, reason

INDEX = ("order", "scored_stops", "grade_starts", "grade_stops", "query_grades")
"""The arrays of a `RankingData` beside X, y and queries, in its order."""

# bytes of a query id above which ids are kept once, not once a row
_LONG = 256


class StoreFiles:
    """
    The mapped files of a store; what they hold is checked when it is first asked for, and remembered.

    path: the folder.
    header: as `read_header` gave it.
    """

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path, self.header = path, header
        self.arrays = {name: map_file(path, name, entry) for name, entry in header["arrays"].items()}

    @cached_property
    def X(self) -> Any:
        """The rows: finite, and of columns that exist."""
        return self._checked(self._rows)

    @cached_property
    def y(self) -> NDArray[np.float64]:
        """The scores: finite, or NaN."""
        return np.asarray(self._checked(lambda: as_scores(self.arrays["y"], self.header["n_rows"])))

    @cached_property
    def queries(self) -> Queries:
        """The rows grouped by query; the whole index is such as `RankingData.of` would make it."""
        index, ids = ProblemIndex(*(self.arrays[name] for name in ProblemIndex._fields)), self.arrays["ids"]
        fault = index_fault(index, self.y) or _fault_of(ids)
        if fault is not None:
            raise self._damaged(f"{fault}.bin does not belong to its rows")
        return Queries(ids, index.codes, index.query_order, index.starts)

    @cached_property
    def data(self) -> RankingData:
        """The problem."""
        return RankingData(self.X, self.y, self.queries, *(self.arrays[name] for name in INDEX))

    def qid(self) -> NDArray[Any] | None:
        """Make the query id of each row."""
        ids = self.queries.ids
        ids = ids.astype(object) if ids.itemsize > _LONG else ids
        return ids[self.queries.codes] if self.header["has_qid"] else None

    def docids(self) -> NDArray[np.object_] | None:
        """Make the document of each row."""
        if "docid_stops" not in self.arrays:
            return None
        require_whole(*self.arrays.values())
        text, stops = self.arrays["docid_bytes"].tobytes(), self.arrays["docid_stops"].tolist()
        starts = [0, *stops[:-1]]
        if stops[-1] != len(text) or any(begin > stop for begin, stop in zip(starts, stops, strict=True)):
            raise self._damaged("docid_stops.bin does not belong to docid_bytes.bin")
        found = np.empty(len(stops), dtype=object)
        found[:] = [
            text[begin:stop].decode(errors="surrogateescape") for begin, stop in zip(starts, stops, strict=True)
        ]
        return found

    def _rows(self) -> Any:
        X: Any = self.arrays["values"]
        if self.header["layout"] == "csr":
            parts = (X, self.arrays["indices"], self.arrays["indptr"])
            shape = (self.header["n_rows"], self.header["n_features"])
            X = sparse.csr_matrix(parts, shape=shape, copy=False)
            if not require_structure(X) or X.nnz != len(parts[0]):
                raise InputError("its CSR matrix does not hold each entry once, in rising order")
            X.has_sorted_indices = X.has_canonical_format = True
        require_finite(X)
        return X

    def _checked(self, make: Callable[[], Any]) -> Any:
        require_whole(*self.arrays.values())
        try:
            return make()
        except ValueError as error:
            raise self._damaged(reason(error)) from error

    def _damaged(self, what: str) -> InputError:
        return InputError(f"{self.path} is damaged: {what}; write the store again.")


def map_file(place: Path, name: str, entry: dict[str, Any]) -> NDArray[Any]:
    """
    Map one array of a store.

    place: the folder.
    entry: what the header says of the array.
    """
    file, dtype, shape = place / f"{name}.bin", np.dtype(entry["dtype"]), tuple(entry["shape"])
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    found = file.stat().st_size if file.is_file() else None
    if found != size:
        state = "is missing" if found is None else f"has {found} bytes instead of {size}"
        raise InputError(f"{place} is damaged: {file.name} {state}; write the store again.")
    if size == 0:
        return np.empty(shape, dtype)
    # a plain array over the map: kernels and scipy treat subclasses as strangers
    return np.asarray(np.memmap(file, dtype, mode="r", shape=shape))


def _fault_of(ids: NDArray[Any]) -> str | None:
    """Query ids are distinct, and made of numbers or characters that exist."""
    if ids.dtype.kind == "U":
        exist = ids.view(np.uint32).max() <= sys.maxunicode
    elif ids.dtype.kind == "b":
        exist = ids.view(np.uint8).max() <= 1
    else:
        exist = (ids == ids).all()  # all but NaN
    return None if exist and len(np.unique(ids)) == len(ids) else "ids"
