"""Ridge systems (A + λI) x = b: one Cholesky factorisation, or one eigendecomposition for many λ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from corank.base.kernels.kernel import INDEFINITE, indefinite
from corank.errors import InputError

Floats = NDArray[np.float64]

# if units differ by more, a common floor would dominate the smallest
_GRADED = 1e-6
# λ is raised to this share of the unit of each direction, times their number; below, rounding errors dominate
FLOOR = 1e-13


class Equations(NamedTuple):
    """
    A symmetric system (A + λI) x = b.

    units (n,): scale of the rounding errors of each direction: the diagonal of A for columns, its mean for a kernel.
    """

    A: Floats  # (n, n): positive semidefinite up to rounding
    b: Floats  # (n,): the right-hand side
    units: Floats
    closed_alpha: float  # λ by the closed rule, see `corank.base.solvers.penalty.alpha_of`

    def floors(self) -> Floats:
        """Return the smallest λ of each direction; raise if sums overflowed."""
        # |A_ij| is at most the mean of A_ii and A_jj, so the diagonal shows any overflow
        if not (np.isfinite(np.trace(self.A)) and np.isfinite(self.b).all()):
            raise InputError("the sums over the rows overflow float64; rescale the columns of X or the scores.")
        smallest = self.units[self.units > 0.0].min(initial=np.inf)
        units = np.where(self.units > 0.0, self.units, smallest if np.isfinite(smallest) else 1.0)
        return FLOOR * len(self.A) * units


@dataclass(frozen=True, eq=False)
class RidgeSpectrum:
    """A system for every λ, by the eigendecomposition A = V diag(e) Vᵀ: O(n²) each, in the coordinates Vᵀx."""

    values: Floats  # (n,): e, from zero
    vectors: Floats  # (n, n): V, one eigenvector per column
    target: Floats
    floor: float = 0.0  # smallest λ to use

    @classmethod
    def of(cls, A: Floats, b: Floats, floor: float = 0.0) -> RidgeSpectrum:
        """
        Decompose a system, in O(n³) time and twice the memory of A.

        A (n, n): symmetric, positive semidefinite; overwritten.
        """
        # A is symmetric: its transpose has the memory order that LAPACK overwrites
        values, vectors = linalg.eigh(A.T, overwrite_a=True, check_finite=False, driver="evr")
        return cls(np.maximum(values, 0.0), vectors, vectors.T @ b, floor)

    @property
    def scale(self) -> float:
        """The largest eigenvalue."""
        return float(self.values.max(initial=0.0))

    largest = scale

    def transform(self, Z: Floats) -> Floats:
        """Return Z V."""
        return np.asarray(Z @ self.vectors)

    def shifts(self, alphas: ArrayLike) -> Floats:
        """Return `alphas`, raised to the floor."""
        smallest = self.floor if self.floor > 0.0 else np.finfo(np.float64).tiny
        return np.maximum(np.asarray(alphas, dtype=np.float64), smallest)

    def jitter(self, alpha: float) -> float:
        """Return the amount added to λ."""
        return float(self.shifts(alpha)) - alpha

    def matrices(self, shifts: Floats) -> Floats:
        """Return diag(e + λ)."""
        return np.asarray(np.eye(len(self.values)) * (self.values + shifts[:, None])[:, None, :])

    def times_inverse(self, rows: Floats, shift: float) -> Floats:
        """Divide by e + λ."""
        return np.asarray(rows / (self.values + shift))

    def log_det(self, shift: float) -> float:
        """Sum over the eigenvalues."""
        return float(np.sum(np.log1p(self.values / shift)))

    def solve(self, alphas: ArrayLike) -> Floats:
        """Solve for every λ."""
        return np.asarray(self.vectors @ (self.target[:, None] / (self.values[:, None] + self.shifts(alphas))))


@dataclass(frozen=True, eq=False)
class EquilibratedRidge:
    """
    A system with columns of very different size: D^(−½) A D^(−½), of diagonal 1, with penalty λ/D; every λ is O(n³).

    Eigenvalues are accurate relative to the largest, so a column of size 1e7 would dominate columns of size 1; a
    factorisation of the scaled matrix does not depend on sizes.
    """

    matrix: Floats  # (n, n): D^(−½) A D^(−½)
    units: Floats  # (n,): D
    target: Floats

    @classmethod
    def of(cls, A: Floats, b: Floats, units: Floats) -> EquilibratedRidge:
        """Scale a system to diagonal 1."""
        root = np.sqrt(units)
        return cls(A / np.outer(root, root), units, b / root)

    @property
    def scale(self) -> float:
        """The trace."""
        return float(np.trace(self.matrix))

    @property
    def largest(self) -> float:
        """The trace of A."""
        return float(np.diag(self.matrix) @ self.units)

    def transform(self, Z: Floats) -> Floats:
        """Return Z D^(−½)."""
        return np.asarray(Z / np.sqrt(self.units))

    def shifts(self, alphas: ArrayLike) -> Floats:
        """Return `alphas`, raised to the floor of the smallest column; `matrices` applies those of the others."""
        least = float(FLOOR * len(self.units) * self.units.min())
        return np.maximum(np.asarray(alphas, dtype=np.float64), least)

    def jitter(self, alpha: float) -> float:
        """Return the largest amount added to λ for a column."""
        return max(float(FLOOR * len(self.units) * self.units.max(initial=0.0)) - alpha, 0.0)

    def matrices(self, shifts: Floats) -> Floats:
        """Return the matrix plus λ/D, at least `FLOOR`."""
        penalty = np.maximum(shifts[:, None] / self.units, FLOOR * len(self.units))
        return np.asarray(self.matrix + np.eye(len(self.units)) * penalty[:, None, :])

    def times_inverse(self, rows: Floats, shift: float) -> Floats:
        """Solve for each row."""
        factor = linalg.cho_factor(self.matrices(np.array([shift]))[0], overwrite_a=True, check_finite=False)
        return np.asarray(linalg.cho_solve(factor, rows.T, check_finite=False).T)

    def log_det(self, shift: float) -> float:
        """Compare the determinants with and without A."""
        whole = self.matrices(np.array([shift]))[0]
        penalty = np.diag(whole) - np.diag(self.matrix)
        return float(np.linalg.slogdet(whole)[1] - np.sum(np.log(penalty)))

    def solve(self, alphas: ArrayLike) -> Floats:
        """Solve for every λ."""
        columns = [self.times_inverse(self.target, float(shift)) for shift in self.shifts(alphas)]
        return np.asarray(np.stack(columns, axis=1) / np.sqrt(self.units)[:, None])


Ridge = RidgeSpectrum | EquilibratedRidge
"""A system prepared for every λ, in its own coordinates."""


def ridge_of(equations: Equations, alphas: Floats) -> Ridge:
    """Prepare a system for given weights of the penalty."""
    floors, (A, b, _, _) = equations.floors(), equations
    mean = float(np.mean(floors)) if len(floors) else 0.0
    if alphas.min() < mean and floors.min() < _GRADED * mean:
        return EquilibratedRidge.of(A, b, floors / (FLOOR * len(A)))
    return RidgeSpectrum.of(A, b, mean)


def solve_one(equations: Equations, alpha: float) -> tuple[Floats, float]:
    """
    Solve (A + λI) x = b for one λ by a Cholesky factorisation in place: O(n³/3).

    A is only semidefinite if rows repeat or features are constant, so λ is raised to a floor, in the unit of each
    direction, and then tenfold until the factorisation succeeds. The factorisation is invariant to scaling of columns.
    """
    floors, (A, b, _, _) = equations.floors(), equations
    diagonal, raised = np.diag(A).copy(), 1.0
    while raised * FLOOR <= INDEFINITE:
        shift = np.maximum(alpha, raised * floors)
        np.fill_diagonal(A, diagonal + shift)
        try:
            # only the upper triangle is overwritten: the lower one keeps A for another attempt
            factor = linalg.cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            for i in range(len(A)):
                A[i, i + 1 :] = A[i + 1 :, i]
            raised *= 10.0
        else:
            x = np.asarray(linalg.cho_solve(factor, b, check_finite=False))
            return x, float(shift.max(initial=alpha)) - alpha
    raise indefinite()
