"""One symmetric system for every weight of the penalty: (A + λI) x = b from one factorisation or decomposition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from corank.errors import InputError
from corank.kernels import INDEFINITE, indefinite

Floats = NDArray[np.float64]

# units that differ by more make one floor for all drown the smallest
_GRADED = 1e-6
# λ is raised to this share of what each direction is measured by, times their number: below, rounding errors drown it
FLOOR = 1e-13


class Equations(NamedTuple):
    """
    A symmetric system (A + λI) x = b.

    A (n, n): positive semidefinite; rounding may have left a trace below zero.
    b (n,): the right side.
    units (n,): what rounding errors of each direction are relative to. Columns have units of their own, the diagonal of
        A; directions of one kernel share the mean of theirs.
    closed_alpha: what the closed rule says of λ, see `corank.solvers.penalty.alpha_of`.
    """

    A: Floats
    b: Floats
    units: Floats
    closed_alpha: float

    def floors(self) -> Floats:
        """Return the least λ of each direction; one sentence where sums overflowed."""
        # |A_ij| is at most the mean of A_ii and A_jj: where anything has overflowed, the diagonal has
        if not (np.isfinite(np.trace(self.A)) and np.isfinite(self.b).all()):
            raise InputError("the sums over the rows overflow float64; rescale the columns of X or the scores.")
        smallest = self.units[self.units > 0.0].min(initial=np.inf)
        units = np.where(self.units > 0.0, self.units, smallest if np.isfinite(smallest) else 1.0)
        return FLOOR * len(self.A) * units


class Ridge(ABC):
    """
    A system made ready for every λ, in coordinates of its own.

    target (n,): the right side in these coordinates.
    """

    target: Floats

    @property
    @abstractmethod
    def most(self) -> float:
        """What rounding errors of the matrix are relative to, in these coordinates."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """What no eigenvalue of A is above."""

    @abstractmethod
    def seen(self, Z: Floats) -> Floats:
        """Return rows in these coordinates."""

    @abstractmethod
    def shifts(self, alphas: ArrayLike) -> Floats:
        """Return the λ that are used for `alphas` (m,)."""

    @abstractmethod
    def jitter(self, alpha: float) -> float:
        """Return the most that is added to λ in any direction."""

    @abstractmethod
    def matrices(self, shifts: Floats) -> Floats:
        """Return A + λI in these coordinates, one for each of `shifts` (m,)."""

    @abstractmethod
    def through(self, rows: Floats, shift: float) -> Floats:
        """Return rows in these coordinates times (A + λI)⁻¹."""

    @abstractmethod
    def log_det(self, shift: float) -> float:
        """Return log |I + A/λ|."""

    @abstractmethod
    def solve(self, alphas: ArrayLike) -> Floats:
        """Return x for each of `alphas` (m,), a column each."""


@dataclass(frozen=True, eq=False)
class Spectrum(Ridge):
    """
    A = V diag(e) Vᵀ and the right side seen from its eigenvectors: every λ is then O(n²).

    values (n,): e, none below zero.
    vectors (n, n): V, one eigenvector a column.
    floor: the least λ that is used.

    >>> spectrum = Spectrum.of(np.diag([1.0, 3.0]), np.array([2.0, 4.0]))
    >>> spectrum.solve([1.0, 5.0]).round(6).tolist()
    [[1.0, 0.333333], [1.0, 0.5]]
    """

    values: Floats
    vectors: Floats
    target: Floats
    floor: float = 0.0

    @classmethod
    def of(cls, A: Floats, b: Floats, floor: float = 0.0) -> Spectrum:
        """
        Decompose a system, in O(n³) and twice the memory of A.

        A (n, n): symmetric, positive semidefinite; destroyed.
        b (n,): the right side.
        floor: the least λ to use.
        """
        # A is symmetric, so its transpose is the same matrix in the order that LAPACK overwrites
        values, vectors = linalg.eigh(A.T, overwrite_a=True, check_finite=False, driver="evr")
        return cls(np.maximum(values, 0.0), vectors, vectors.T @ b, floor)

    @property
    def most(self) -> float:
        """The largest eigenvalue."""
        return float(self.values.max(initial=0.0))

    largest = most

    def seen(self, Z: Floats) -> Floats:
        """Return rows seen from the eigenvectors."""
        return np.asarray(Z @ self.vectors)

    def shifts(self, alphas: ArrayLike) -> Floats:
        """Return `alphas`, raised to the floor."""
        smallest = self.floor if self.floor > 0.0 else np.finfo(np.float64).tiny
        return np.maximum(np.asarray(alphas, dtype=np.float64), smallest)

    def jitter(self, alpha: float) -> float:
        """Return what is added to λ."""
        return float(self.shifts(alpha)) - alpha

    def matrices(self, shifts: Floats) -> Floats:
        """Return diag(e + λ)."""
        return np.asarray(np.eye(len(self.values)) * (self.values + shifts[:, None])[:, None, :])

    def through(self, rows: Floats, shift: float) -> Floats:
        """Divide by e + λ."""
        return np.asarray(rows / (self.values + shift))

    def log_det(self, shift: float) -> float:
        """Sum over the eigenvalues."""
        return float(np.sum(np.log1p(self.values / shift)))

    def solve(self, alphas: ArrayLike) -> Floats:
        """Solve for every λ."""
        return np.asarray(self.vectors @ (self.target[:, None] / (self.values[:, None] + self.shifts(alphas))))


@dataclass(frozen=True, eq=False)
class Equilibrated(Ridge):
    """
    Columns of very different size: D^(−½) A D^(−½), of diagonal 1, beside a penalty λ/D; every λ is O(n³).

    Eigenvalues are accurate beside the largest, so that those of a column of size 1e7 drown columns of size 1; a
    factorisation of the scaled matrix knows no sizes.

    matrix (n, n): D^(−½) A D^(−½).
    units (n,): D.
    """

    matrix: Floats
    units: Floats
    target: Floats

    @classmethod
    def of(cls, A: Floats, b: Floats, units: Floats) -> Equilibrated:
        """
        Bring a system to diagonal 1.

        A (n, n): symmetric, positive semidefinite.
        b (n,): the right side.
        units (n,): D, above zero.
        """
        root = np.sqrt(units)
        return cls(A / np.outer(root, root), units, b / root)

    @property
    def most(self) -> float:
        """The trace."""
        return float(np.trace(self.matrix))

    @property
    def largest(self) -> float:
        """The trace of A."""
        return float(np.diag(self.matrix) @ self.units)

    def seen(self, Z: Floats) -> Floats:
        """Return rows divided by the size of each column."""
        return np.asarray(Z / np.sqrt(self.units))

    def shifts(self, alphas: ArrayLike) -> Floats:
        """Return `alphas`, raised to the floor of the smallest column; `matrices` knows those of others."""
        least = float(FLOOR * len(self.units) * self.units.min())
        return np.maximum(np.asarray(alphas, dtype=np.float64), least)

    def jitter(self, alpha: float) -> float:
        """Return the most that is added to λ for a column."""
        return max(float(FLOOR * len(self.units) * self.units.max(initial=0.0)) - alpha, 0.0)

    def matrices(self, shifts: Floats) -> Floats:
        """Return the matrix with λ/D, or `FLOOR` where that is more."""
        penalty = np.maximum(shifts[:, None] / self.units, FLOOR * len(self.units))
        return np.asarray(self.matrix + np.eye(len(self.units)) * penalty[:, None, :])

    def through(self, rows: Floats, shift: float) -> Floats:
        """Solve for each row."""
        factor = linalg.cho_factor(self.matrices(np.array([shift]))[0], overwrite_a=True, check_finite=False)
        return np.asarray(linalg.cho_solve(factor, rows.T, check_finite=False).T)

    def log_det(self, shift: float) -> float:
        """Compare the factors of the matrix with and without A."""
        whole = self.matrices(np.array([shift]))[0]
        penalty = np.diag(whole) - np.diag(self.matrix)
        return float(np.linalg.slogdet(whole)[1] - np.sum(np.log(penalty)))

    def solve(self, alphas: ArrayLike) -> Floats:
        """Solve for every λ."""
        columns = [self.through(self.target, float(shift)) for shift in self.shifts(alphas)]
        return np.asarray(np.stack(columns, axis=1) / np.sqrt(self.units)[:, None])


def ridge_of(equations: Equations, alphas: Floats) -> Ridge:
    """
    Make a system ready for weights of the penalty.

    equations: the system; its matrix is destroyed.
    alphas (m,): the weights. Eigenvalues serve them all, unless one is so small that the largest column would drown
        what it weighs in others.
    """
    floors, (A, b, _, _) = equations.floors(), equations
    mean = float(np.mean(floors)) if len(floors) else 0.0
    if alphas.min() < mean and floors.min() < _GRADED * mean:
        return Equilibrated.of(A, b, floors / (FLOOR * len(A)))
    return Spectrum.of(A, b, mean)


def solve_one(equations: Equations, alpha: float) -> tuple[Floats, float]:
    """
    Solve (A + λI) x = b for one λ by Cholesky's factors, in place: O(n³/3).

    A is only semidefinite where rows repeat or features are constant, so λ is raised to a floor, in each direction by
    what that is measured in, and then tenfold until the factorisation succeeds. Factors of a matrix whose rows and
    columns are scaled are scaled factors: no column drowns another.

    equations: the system; its matrix is destroyed.
    Returns: the solution, and the most that was added to λ in any direction.

    >>> equations = Equations(np.diag([1.0, 3.0]), np.array([2.0, 4.0]), np.array([2.0, 2.0]), 0.0)
    >>> x, jitter = solve_one(equations, 1.0)
    >>> x.round(6).tolist(), jitter
    ([1.0, 1.0], 0.0)
    """
    floors, (A, b, _, _) = equations.floors(), equations
    diagonal, raised = np.diag(A).copy(), 1.0
    while raised * FLOOR <= INDEFINITE:
        shift = np.maximum(alpha, raised * floors)
        np.fill_diagonal(A, diagonal + shift)
        try:
            # only the upper triangle is overwritten: the lower one still holds A for another try
            factor = linalg.cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            for i in range(len(A)):
                A[i, i + 1 :] = A[i + 1 :, i]
            raised *= 10.0
        else:
            x = np.asarray(linalg.cho_solve(factor, b, check_finite=False))
            return x, float(shift.max(initial=alpha)) - alpha
    raise indefinite()
