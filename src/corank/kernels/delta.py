"""DeltaKernel: rows are similar only to equal rows; the distinct rows of a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.kernels.kernel import Gram, Kernel

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class DeltaKernel(Kernel):
    """
    k(x, z) = 1 if all columns of x and z are equal, else 0: each distinct row has a value of its own.

    Examples
    --------
    >>> DeltaKernel()([[0.0, 1.0], [2.0, 3.0]], [[2.0, 3.0]]).tolist()
    [[0.0], [1.0]]
    """

    def diag(self, X: Any) -> Gram:
        """Return 1 for each row."""
        return np.ones(self._rows(X).shape[0])

    def _gram(self, X: Any, Z: Any) -> Gram:
        if Z is X:
            left = right = distinct_rows(X)[1]
        else:
            both = (
                sparse.vstack([X, Z], format="csr") if sparse.issparse(X) or sparse.issparse(Z) else np.vstack([X, Z])
            )
            left, right = np.split(distinct_rows(both)[1], [X.shape[0]])
        return np.asarray(left[:, None] == right, dtype=np.float64)


def distinct_rows(rows: Any) -> tuple[Integers, Integers]:
    """Return the positions of the sorted distinct rows, and the number of the distinct row that equals each row."""
    if rows.ndim == 1:  # objects are assumed to be distinct
        return np.arange(len(rows)), np.arange(len(rows))
    if not sparse.issparse(rows):
        _, first, code = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        return first, code.ravel()
    rows.sum_duplicates()
    rows_of_key: dict[tuple[bytes, bytes], list[int]] = {}
    for row in range(rows.shape[0]):
        part = slice(rows.indptr[row], rows.indptr[row + 1])
        key = rows.indices[part].astype(np.int64).tobytes(), rows.data[part].tobytes()
        rows_of_key.setdefault(key, []).append(row)
    code = np.empty(rows.shape[0], dtype=np.int64)
    ordered = sorted(rows_of_key.items())
    for number, (_, members) in enumerate(ordered):
        code[members] = number
    return np.array([members[0] for _, members in ordered], dtype=np.int64), code
