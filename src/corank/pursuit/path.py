"""Path: the terms that a pursuit chose, in order, with the coefficients of every shorter model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError

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
    coefs (P, P): ``coefs[p - 1, :p]`` belongs to the model of the first p terms, zeros follow.
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
        taken: list[Step] = []
        for step in steps:
            if not step.gain > least_gain:
                break
            taken.append(step)
            if watch(np.array([s.chosen for s in taken]), step.coefs) or len(taken) == n_basis:
                break
        coefs = np.zeros((len(taken), len(taken)))
        for p, step in enumerate(taken):
            coefs[p, : p + 1] = step.coefs
        indices = np.array([step.chosen for step in taken], dtype=np.int64)
        return cls(indices, coefs, np.array([step.gain for step in taken], dtype=np.float64))


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
