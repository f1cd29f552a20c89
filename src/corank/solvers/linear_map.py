"""Linear algebra by products only: rows as a linear map, on threads, and conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.core.rows.access import as_core_rows
from corank.core.rows.products import gather_rows, score_rows
from corank.core.rows.scaled import factors_of, plain
from corank.core.threads import spread, threads_for

Floats = NDArray[np.float64]
Vector = Callable[[Floats], Floats]
"""Multiplies a vector by a matrix."""

# a fixed number of pieces, so that sums do not depend on the number of threads
_PIECES = 8
# smallest number of rows of a piece, if there are that many
_ROWS = 512


@dataclass(frozen=True, eq=False)
class LinearMap:
    """
    The matrix A with rows x_i, i = order[k]; X is not copied.

    order (m,): the chosen rows.

    >>> A = LinearMap(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1]))
    >>> A.scores(np.array([1.0, 1.0])).tolist(), A.gather(np.array([2.0])).tolist()
    ([7.0], [6.0, 8.0])
    """

    X: Any
    order: NDArray[np.int64]

    def scores(self, w: Floats) -> Floats:
        """Return A w, summed in float64."""
        order, out, w = self.order.view(np.uint64), np.empty(len(self.order)), self._scaled(w)
        spread(lambda first, last: score_rows(self._rows, order, w, out, first, last), self._pieces, self._n_jobs)
        return out

    def gather(self, h: Floats) -> Floats:
        """Return Aᵀ h."""
        order, d = self.order.view(np.uint64), self.X.shape[1]

        def piece(first: int, last: int) -> Floats:
            out = np.zeros(d)
            gather_rows(self._rows, order, h, out, first, last)
            return out

        parts = spread(piece, self._pieces, self._n_jobs)
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


class ConjugateGradients(NamedTuple):
    """
    An approximate solution of a linear system.

    x: the solution.
    n_iter: number of steps.
    converged: whether the residual is small enough.
    """

    x: Floats
    n_iter: int
    converged: bool


def conjugate_gradients(A: Vector, b: Floats, precondition: Vector, tol: float, max_iter: int) -> ConjugateGradients:
    """
    Solve A x = b from x = 0, A symmetric and positive definite, until ‖b − Ax‖² ≤ tol ‖b‖².

    A: multiplies by the matrix.
    precondition: multiplies by an approximation of its inverse.
    max_iter: largest number of steps.
    """
    x, r, p = np.zeros_like(b), b.copy(), b
    previous, enough = 1.0, tol * float(b @ b)
    for n_iter in range(max_iter):
        if float(r @ r) <= enough:
            return ConjugateGradients(x, n_iter, True)
        z = precondition(r)
        rz = float(r @ z)
        p = z + rz / previous * p if n_iter else z
        Ap = A(p)
        curvature = float(p @ Ap)
        if not curvature > 0.0:
            return ConjugateGradients(x, n_iter, False)
        x += rz / curvature * p
        r -= rz / curvature * Ap
        previous = rz
    return ConjugateGradients(x, max_iter, float(r @ r) <= enough)
