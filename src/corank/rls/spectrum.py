"""One symmetric system for every weight of the penalty: (A + λI) x = b from one factorisation or decomposition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from corank.errors import InputError
from corank.kernels import INDEFINITE, indefinite

Floats = NDArray[np.float64]

# λ is raised to this share of the trace of A: below it the answer would be rounding errors
FLOOR = 1e-13


class Equations(NamedTuple):
    """
    A symmetric system (A + λI) x = b.

    b (n,): the right side.
    closed_alpha: what the closed rule says of λ, see `corank.exact.penalty.alpha_of`.
    """

    A: Floats
    b: Floats
    closed_alpha: float


@dataclass(frozen=True, eq=False)
class Spectrum:
    """
    A = V diag(e) Vᵀ and the right side seen from its eigenvectors: every λ is then O(n²).

    values (n,): e, none below zero.
    vectors (n, n): V, one eigenvector a column.
    floor: the least λ that is used (`FLOOR` times the trace).

    >>> spectrum = Spectrum.of(np.diag([1.0, 3.0]), np.array([2.0, 4.0]))
    >>> spectrum.solve([1.0, 5.0]).round(6).tolist()
    [[1.0, 0.333333], [1.0, 0.5]]
    """

    values: Floats
    vectors: Floats
    target: Floats
    floor: float

    @classmethod
    def of(cls, A: Floats, b: Floats) -> Spectrum:
        """
        Decompose a system, in O(n³) and twice the memory of A.

        A (n, n): symmetric, positive semidefinite; destroyed.
        b (n,): the right side.
        """
        floor = FLOOR * _trace(A, b)
        # A is symmetric, so its transpose is the same matrix in the order that LAPACK overwrites
        values, vectors = linalg.eigh(A.T, overwrite_a=True, check_finite=False, driver="evr")
        return cls(np.maximum(values, 0.0), vectors, vectors.T @ b, floor)

    def shifts(self, alphas: ArrayLike) -> Floats:
        """
        Return the λ that are used: `alphas`, raised to the floor.

        alphas (m,): weights of the penalty.
        """
        smallest = self.floor if self.floor > 0.0 else np.finfo(np.float64).tiny
        return np.maximum(np.asarray(alphas, dtype=np.float64), smallest)

    def solve(self, alphas: ArrayLike) -> Floats:
        """
        Solve for every λ.

        alphas (m,): weights of the penalty.
        Returns: x for each λ, a column each.
        """
        return np.asarray(self.vectors @ (self.target[:, None] / (self.values[:, None] + self.shifts(alphas))))


def solve_one(A: Floats, b: Floats, alpha: float) -> tuple[Floats, float]:
    """
    Solve (A + λI) x = b for one λ by Cholesky's factors, in place: O(n³/3).

    A is only semidefinite where rows repeat or features are constant, so λ is raised to `FLOOR` times the trace, and
    then tenfold until the factorisation succeeds.

    A (n, n): symmetric, positive semidefinite; destroyed.
    b (n,): the right side.
    Returns: the solution, and what was added to λ.

    >>> x, jitter = solve_one(np.diag([1.0, 3.0]), np.array([2.0, 4.0]), 1.0)
    >>> x.round(6).tolist(), jitter
    ([1.0, 1.0], 0.0)
    """
    diagonal = np.diag(A).copy()
    # an indefinite A may have a trace below zero, and must come to the end of the ladder too
    scale = abs(_trace(A, b)) or 1.0
    shift = max(alpha, FLOOR * scale)
    while shift <= max(alpha, INDEFINITE * scale):
        np.fill_diagonal(A, diagonal + shift)
        try:
            # only the upper triangle is overwritten: the lower one still holds A for another try
            factor = linalg.cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            for i in range(len(A)):
                A[i, i + 1 :] = A[i + 1 :, i]
            shift *= 10.0
        else:
            return np.asarray(linalg.cho_solve(factor, b, check_finite=False)), shift - alpha
    raise indefinite()


def _trace(A: Floats, b: Floats) -> float:
    trace = float(np.trace(A))
    # |A_ij| is at most the mean of A_ii and A_jj: where anything has overflowed, the diagonal has
    if not (np.isfinite(trace) and np.isfinite(b).all()):
        raise InputError("the sums over the rows exceed what float64 holds; scale the columns of X or the scores.")
    return trace
