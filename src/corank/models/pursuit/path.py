"""
Path: the terms that a pursuit chose, with the coefficients of every shorter model; validation; contributions.

The three fits of a pursuit (Vincent and Bengio, Kernel matching pursuit, 2002) in the inner product of L̃.

With r = s − f the residual, v = L̃r, and k_γ a column of the dictionary:

* basic: γ maximises (k_γᵀv)² / k_γᵀL̃k_γ; its coefficient is k_γᵀv / k_γᵀL̃k_γ, the others do not change;
* back: γ is chosen as in basic, then all coefficients are refitted;
* pre: γ maximises the decrease after refitting all coefficients, (k_γᵀv)² / ‖k_γ − its projection‖².

Back and pre keep an L̃-orthonormal basis q_1..q_p of the span. The new direction q updates the correlations with the
residual, Dᵀv ← Dᵀv − (qᵀv) DᵀL̃q, and the squared norms outside the span, which fall by (DᵀL̃q)². So each of the three
costs one product over the dictionary per step, O(nN), plus O(n p) for the basis. The coefficients of the first p terms
are R⁻¹t, where K_S = QR and t = QᵀL̃s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from corank.base.held_out import HeldOut
from corank.base.pairs import QueryLaplacian
from corank.base.solvers.choice import EarlyStopping
from corank.errors import InputError
from corank.models.pursuit.dictionary import Dictionary, InnerProduct, Target

Floats = NDArray[np.float64]


class Step(NamedTuple):
    """One more term."""

    chosen: int
    coefs: Floats  # (p,): coefficients of all p terms so far
    gain: float  # decrease of the objective


@dataclass(frozen=True, eq=False)
class Path:
    """
    A sequence of models, each with one term more than the last.

    indices (P,): columns of the dictionary in the order of choice; basic fitting may choose one twice.
    """

    indices: NDArray[np.int64]
    coefs: Floats  # the coefficients of all models, see `coefs_of`
    gains: Floats  # (P,): decrease of the objective at each step

    @classmethod
    def follow(
        cls, steps: Iterator[Step], n_basis: int, least_gain: float, stop: Callable[[NDArray[np.int64], Floats], bool]
    ) -> Path:
        """Take at most `n_basis` steps, until a gain is too small or `stop` returns true."""
        indices: list[int] = []
        gains: list[float] = []
        rows = [np.empty(0)]
        is_fixed = True
        for step in steps:
            if not step.gain > least_gain:
                break
            indices.append(step.chosen)
            gains.append(step.gain)
            if is_fixed and not np.array_equal(rows[-1], step.coefs[:-1]):
                is_fixed, rows = False, [rows[-1][:p] for p in range(1, len(indices))]
            # as long as coefficients do not change, the last row contains all others
            rows = [step.coefs] if is_fixed else [*rows, step.coefs]
            if stop(np.array(indices), step.coefs) or len(indices) == n_basis:
                break
        return cls(np.array(indices, dtype=np.int64), np.concatenate(rows), np.array(gains, dtype=np.float64))

    def model(self, p: int) -> Floats:
        """Return the coefficients of the first p terms."""
        return coefs_of(self.coefs, len(self.indices), p)

    def scaled(self, factors: Floats) -> Floats:
        """Return `coefs`, each times the factor of its term."""
        P = len(self.indices)
        return self.coefs * (factors if len(self.coefs) == P else factors[np.tril_indices(P)[1]])


def coefs_of(path: Floats, P: int, p: int) -> Floats:
    """Return the coefficients of the first p of P terms."""
    begin = 0 if len(path) == P else p * (p - 1) // 2
    return path[begin : begin + p]


def path_table(path: Floats, P: int) -> Floats:
    """Return a table with the coefficients of one model per row, filled up with zeros."""
    table = np.zeros((P, P))
    for p in range(1, P + 1):
        table[p - 1, :p] = coefs_of(path, P, p)
    return table


def as_n_terms(n_terms: Any, P: int, subject: str) -> int:
    """Check a number of terms."""
    if n_terms is None:
        return P
    if isinstance(n_terms, bool) or not isinstance(n_terms, Integral) or not 0 <= int(n_terms) <= P:
        raise InputError(f"n_terms is {n_terms!r}; {subject} 0 to {P} terms, so pass a whole number of them, or None.")
    return int(n_terms)


def sum_terms(numbers: NDArray[np.int64], indices: NDArray[np.int64], coefs: Floats) -> Floats:
    """Sum the coefficients of terms that refer to the same row; `numbers` are rows, ascending."""
    out = np.zeros(len(numbers))
    np.add.at(out, np.searchsorted(numbers, indices), coefs)
    return out


class PathValidation:
    """
    Held-out error of each model of a path, with early stopping; called after each term, it returns whether to stop.

    dictionary: over ``held.rows``.
    patience: number of terms without improvement after which to stop.
    level: intercept of the predictions.
    """

    def __init__(self, dictionary: Dictionary, held: HeldOut, patience: int, level: float = 0.0) -> None:
        self._dictionary, self._held, self._level = dictionary, held, level
        self._stopping = EarlyStopping(patience)
        self._stopping.record(held.error(np.full(len(held.rows), level)))

    def __call__(self, indices: NDArray[np.int64], coefs: Floats) -> bool:
        """Record the error of the model, and return whether to stop."""
        f = np.asarray(self._dictionary.D[:, indices] @ coefs, dtype=np.float64)
        self._stopping.record(self._held.error(f + self._level))
        return self._stopping.is_over

    @property
    def errors(self) -> Floats:
        """Errors with 0, 1, 2, ... terms."""
        return np.array(self._stopping.errors)

    @property
    def best_length(self) -> int:
        """Number of terms of the best model, at least 1; the shortest one in a tie."""
        return max(self._stopping.best, 1)


# share of its squared norm that a column must have outside the span to be chosen, in units of rounding of float64
_OUTSIDE = 1e4
# ... and to be a candidate, in units of rounding of the dictionary
_TRIED = 16.0


def steps(dictionary: Dictionary, target: Target, squares: Floats, fitting: str) -> Iterator[Step]:
    """Yield steps until no column is left; `squares` are kᵀL̃k of each column, 0 excludes it."""
    if fitting == "basic":
        return _basic(dictionary, target, squares)
    return _orthogonal(dictionary, target, squares, by_outside=fitting == "pre")


def _basic(dictionary: Dictionary, target: Target, squares: Floats) -> Iterator[Step]:
    v, usable = target.v.copy(), squares > 0.0
    coefs: list[float] = []
    while usable.any():
        c = dictionary.correlate(v)
        gains = np.divide(c * c, squares, out=np.full(len(c), -np.inf), where=usable)
        j = int(np.argmax(gains))
        coefs.append(float(c[j] / squares[j]))
        v -= coefs[-1] * target.inner.apply(dictionary.column(j))
        yield Step(j, np.array(coefs), float(gains[j]))


def _orthogonal(dictionary: Dictionary, target: Target, squares: Floats, by_outside: bool) -> Iterator[Step]:
    v, outside = target.v.copy(), squares.copy()
    tried = _TRIED * np.finfo(dictionary.D.dtype).eps * squares
    least = np.maximum(_OUTSIDE * np.finfo(np.float64).eps * squares, dictionary.rounding(target.inner))
    centre = _without_means(target.inner)
    c = dictionary.correlate(v)
    Q, R, t = np.empty((4, len(v))), np.zeros((4, 4)), np.empty(4)
    p = 0
    while (usable := (outside > tried) & (squares > 0.0)).any():
        scores = np.divide(c * c, outside if by_outside else squares, out=np.full(len(c), -np.inf), where=usable)
        j = int(np.argmax(scores))
        if p == len(t):
            Q, R, t = np.resize(Q, (2 * p, len(v))), np.pad(R, ((0, p), (0, p))), np.resize(t, 2 * p)
        k = centre(dictionary.column(j))
        R[:p, p] = 0.0
        for _ in range(2):  # twice, for orthogonality up to rounding
            h = Q[:p] @ target.inner.apply(k)
            k -= h @ Q[:p]
            R[:p, p] += h
        R[p, p] = np.sqrt(target.inner.squares(k[:, None])[0])
        if not R[p, p] ** 2 > least[j]:
            outside[j] = 0.0
            continue
        Q[p] = k / R[p, p]
        Lq = target.inner.apply(Q[p])
        t[p] = Q[p] @ v
        w = dictionary.correlate(Lq)
        v -= t[p] * Lq
        c -= t[p] * w
        outside -= w * w
        outside[j] = 0.0
        p += 1
        yield Step(j, solve_triangular(R[:p, :p], t[:p]), float(t[p - 1] ** 2))


def _without_means(inner: InnerProduct) -> Callable[[Floats], Floats]:
    """Return a function that centres columns inside queries: L̃ ignores means, but normalising would magnify them."""
    L = inner.L
    if inner.mix > 0.0 or not isinstance(L, QueryLaplacian):
        return lambda k: k
    query = np.full(L.n, len(L.scale))  # rows alone in their query form the last group
    query[L.order] = np.repeat(np.arange(len(L.scale)), np.diff(L.starts))
    w = np.ones(L.n)
    if len(L.weights):
        w[L.order] = L.weights
    total = np.bincount(query, weights=w)
    return lambda k: np.asarray(k - (np.bincount(query, weights=w * k) / total)[query])


def disjoint_paths(
    dictionary: Dictionary,
    target: Target,
    fitting: str,
    n_basis: int,
    tol: float,
    n_solutions: int,
    advance: Callable[[int], object],
) -> list[Path]:
    """
    Run several pursuits, each without the columns that the earlier ones chose.

    fitting {"basic", "back", "pre"}: see `corank.models.pursuit.path`.
    tol: a step that lowers J by at most this share of its initial value is not taken.
    Returns: the first path, which may be empty, and the others that have a term.
    """

    def report(indices: NDArray[np.int64], coefs: NDArray[np.float64]) -> bool:
        advance(1)
        return False

    squares = dictionary.squares(target.inner)
    paths: list[Path] = []
    while len(paths) < n_solutions:
        path = Path.follow(steps(dictionary, target, squares, fitting), n_basis, tol * target.J, report)
        if paths and not len(path.indices):
            break
        paths.append(path)
        squares[path.indices] = 0.0
    return paths
