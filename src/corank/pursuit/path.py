"""Path: the terms that a pursuit chose, in order, with the coefficients of every shorter model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from corank.errors import InputError
from corank.estimator.held_out import HeldOut
from corank.pursuit.dictionary import Dictionary

Floats = NDArray[np.float64]


class Step(NamedTuple):
    """
    One more term.

    coefs (p,): coefficients of all p terms so far.
    gain: by how much the objective fell.
    """

    chosen: int
    coefs: Floats
    gain: float


@dataclass(frozen=True, eq=False)
class Path:
    """
    A sequence of models, each with one term more than the last.

    indices (P,): columns of the dictionary in the order of choice; basic fitting may choose one twice.
    coefs: the coefficients of all models, see `coefs_of`.
    gains (P,): by how much the objective fell at each step.
    """

    indices: NDArray[np.int64]
    coefs: Floats
    gains: Floats

    @classmethod
    def follow(
        cls, steps: Iterator[Step], n_basis: int, least_gain: float, watch: Callable[[NDArray[np.int64], Floats], bool]
    ) -> Path:
        """
        Take steps until there are `n_basis`, one gains too little, or `watch` has seen enough.

        steps: from `corank.pursuit.fits`.
        n_basis: most steps to take.
        least_gain: A step that gains no more is not taken.
        watch: takes the indices and coefficients of a model; returns whether to stop.
        Returns: the steps taken.
        """
        indices: list[int] = []
        gains: list[float] = []
        rows = [np.empty(0)]
        stay = True
        for step in steps:
            if not step.gain > least_gain:
                break
            indices.append(step.chosen)
            gains.append(step.gain)
            if stay and not np.array_equal(rows[-1], step.coefs[:-1]):
                stay, rows = False, [rows[-1][:p] for p in range(1, len(indices))]
            # while coefficients stay, the last row holds all others
            rows = [step.coefs] if stay else [*rows, step.coefs]
            if watch(np.array(indices), step.coefs) or len(indices) == n_basis:
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
    """
    Return the coefficients of the first p of P terms.

    path: those of every model: P numbers where no term changes the coefficients before it, else 1, 2, ... and P of
        them one after the other.

    >>> coefs_of(np.array([3.0, 4.0, 5.0]), 3, 2), coefs_of(np.array([3.0, 4.0, 5.0]), 2, 2)
    (array([3., 4.]), array([4., 5.]))
    """
    begin = 0 if len(path) == P else p * (p - 1) // 2
    return path[begin : begin + p]


def path_table(path: Floats, P: int) -> Floats:
    """Return the coefficients of every model in a row of its own, zeros behind them."""
    table = np.zeros((P, P))
    for p in range(1, P + 1):
        table[p - 1, :p] = coefs_of(path, P, p)
    return table


def as_length(n_terms: Any, P: int, what: str) -> int:
    """
    Check the number of terms that a user asks for.

    n_terms: what the user gave; None asks for all.
    P: the most there are.
    what: who has them, and the verb, for the message.
    Returns: from 0 to P.

    >>> as_length(None, 5, "this model has"), as_length(np.int64(2), 5, "this model has")
    (5, 2)
    """
    if n_terms is None:
        return P
    if isinstance(n_terms, bool) or not isinstance(n_terms, Integral) or not 0 <= int(n_terms) <= P:
        raise InputError(f"n_terms is {n_terms!r}; {what} 0 to {P} terms, so pass a whole number of them, or None.")
    return int(n_terms)


def sum_terms(numbers: NDArray[np.int64], indices: NDArray[np.int64], coefs: Floats) -> Floats:
    """
    Add up the coefficients of terms that stand for the same row.

    numbers (r,): rows, ascending.
    indices (p,): the row of each term.
    coefs (p,): the coefficient of each term.
    Returns: the coefficient of each row.

    >>> sum_terms(np.array([2, 5, 9]), np.array([9, 2, 9]), np.array([1.0, 2.0, 3.0]))
    array([2., 0., 4.])
    """
    out = np.zeros(len(numbers))
    np.add.at(out, np.searchsorted(numbers, indices), coefs)
    return out


class Watch:
    """
    Judge each model of a path; true when enough steps went by without improvement.

    seen: the dictionary over ``held.rows``.
    held: what was set aside.
    patience: steps without improvement.
    level: what predictions add to the dictionary's terms.
    errors: error with 0, 1, 2, ... terms.
    """

    def __init__(self, seen: Dictionary, held: HeldOut, patience: int, level: float = 0.0) -> None:
        self._seen, self._held, self._patience, self._level = seen, held, patience, level
        self.errors = [held.error(np.full(len(held.rows), level))]

    def __call__(self, indices: NDArray[np.int64], coefs: NDArray[np.float64]) -> bool:
        """Note the error of the model, and say whether to stop."""
        f = np.asarray(self._seen.D[:, indices] @ coefs, dtype=np.float64)
        self.errors.append(self._held.error(f + self._level))
        return len(self.errors) - 1 - self.best_length >= self._patience

    @property
    def best_length(self) -> int:
        """Number of terms of the shortest model among the best."""
        return int(np.argmin(self.errors))


class TermContribution(NamedTuple):
    """
    What one chosen row (or column) does to a score.

    chosen: the training row, or the column of X with ``dictionary="columns"``.
    coefficient: its coefficient, summed over the terms that chose it.
    similarity: how similar the explained row is to it, or its value in that column.
    contribution: the product: above zero it term_contributions the score up, below zero down.
    """

    chosen: int
    coefficient: float
    similarity: float
    contribution: float


def term_contributions(chosen: NDArray[np.int64], coefficients: Floats, similarities: Any) -> list[TermContribution]:
    """
    List what term_contributions a score up and what term_contributions it down.

    chosen (P,): rows or columns, each once.
    coefficients (P,): their coefficients; those of zero are left out.
    similarities (1, P): of the explained row to each.
    Returns: the strongest pull upwards first, the strongest downwards last.

    >>> parts = term_contributions(np.array([3, 7, 9]), np.array([-1.0, 0.0, 2.0]), np.ones((1, 3)))
    >>> [part.contribution for part in parts]
    [2.0, -1.0]
    """
    values = np.asarray(similarities.toarray() if sparse.issparse(similarities) else similarities)[0]
    made = [
        TermContribution(int(number), float(a), float(k), float(a * k))
        for number, a, k in zip(chosen, coefficients, values, strict=True)
        if a != 0.0
    ]
    return sorted(made, key=lambda pull: -pull.contribution)
