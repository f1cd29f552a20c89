"""Path: the terms that a pursuit chose, with the coefficients of every shorter model; validation; contributions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.base.held_out import HeldOut
from corank.base.solvers.early_stopping import EarlyStopping
from corank.errors import InputError
from corank.models.pursuit.dictionary import Dictionary

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
    """
    Sum the coefficients of terms that refer to the same row.

    numbers (r,): rows, ascending.
    """
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


class TermContribution(NamedTuple):
    """Contribution of one chosen row (or column) to a score."""

    chosen: int  # the training row, or the column of X with ``dictionary="columns"``
    coefficient: float  # its coefficient, summed over the terms that chose it
    similarity: float  # similarity of the explained row to it, or the row's value in that column
    contribution: float  # the product of both


def term_contributions(chosen: NDArray[np.int64], coefficients: Floats, similarities: Any) -> list[TermContribution]:
    """List the contributions to a score, largest first."""
    values = np.asarray(similarities.toarray() if sparse.issparse(similarities) else similarities)[0]
    contributions = [
        TermContribution(int(number), float(a), float(k), float(a * k))
        for number, a, k in zip(chosen, coefficients, values, strict=True)
        if a != 0.0
    ]
    return sorted(contributions, key=lambda one: -one.contribution)
