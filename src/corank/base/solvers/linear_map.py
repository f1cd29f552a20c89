"""Rows as a linear map, whose products run on threads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.rows.access import as_core_rows
from corank.core.rows.products import gather_rows, score_rows
from corank.core.rows.scaled import factors_of, plain
from corank.core.threads import parallel_map, threads_for

Floats = NDArray[np.float64]

# a fixed number of pieces, so that sums do not depend on the number of threads
_PIECES = 8
# smallest number of rows of a piece, if there are that many
_ROWS = 512


@dataclass(frozen=True, eq=False)
class LinearMap:
    """The matrix A with rows x_i, i = order[k]; X is not copied."""

    X: Any
    order: NDArray[np.int64]  # (m,): the chosen rows

    def scores(self, w: Floats) -> Floats:
        """Return A w, summed in float64."""
        order, out, w = self.order.view(np.uint64), np.empty(len(self.order)), self._scaled(w)
        parallel_map(lambda first, last: score_rows(self._rows, order, w, out, first, last), self._pieces, self._n_jobs)
        return out

    def gather(self, h: Floats) -> Floats:
        """Return Aᵀ h."""
        order, d = self.order.view(np.uint64), self.X.shape[1]

        def piece(first: int, last: int) -> Floats:
            out = np.zeros(d)
            gather_rows(self._rows, order, h, out, first, last)
            return out

        parts = parallel_map(piece, self._pieces, self._n_jobs)
        return self._scaled(np.sum(parts, axis=0) if parts else np.zeros(d))

    def gather_squares(self, h: Floats) -> Floats:
        """Return Σ_k h_k x_i², i = order[k], for every column."""
        total, X = np.zeros(self.X.shape[1]), plain(self.X)
        for first, last in self._pieces:
            rows = X[self.order[first:last]]
            if sparse.issparse(rows):
                total += rows.power(2).T @ h[first:last]
            else:
                total += np.einsum("kj,kj,k->j", rows, rows, h[first:last])
        return self._scaled(self._scaled(total))

    def _scaled(self, w: Floats) -> Floats:
        factors = factors_of(self.X)
        return w if factors is None else factors * w

    @cached_property
    def _rows(self) -> Any:
        return as_core_rows(plain(self.X))

    @cached_property
    def _n_jobs(self) -> int:
        X = plain(self.X)
        return threads_for(len(self.order) * (X.nnz // max(X.shape[0], 1) if sparse.issparse(X) else X.shape[1]))

    @cached_property
    def _pieces(self) -> list[tuple[int, int]]:
        ends = np.linspace(0, len(self.order), min(_PIECES, len(self.order) // _ROWS + 1) + 1).astype(int)
        return [(int(first), int(last)) for first, last in pairwise(ends) if last > first]
