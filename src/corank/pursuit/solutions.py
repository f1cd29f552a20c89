"""Alternatives: near-optimal models that share no term."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from corank.pursuit.dictionary import Dictionary
from corank.pursuit.fits import steps
from corank.pursuit.inner import Goal
from corank.pursuit.path import Path


def alternatives(
    dictionary: Dictionary,
    goal: Goal,
    fitting: str,
    n_basis: int,
    tol: float,
    n_solutions: int,
    advance: Callable[[int], object],
) -> list[Path]:
    """
    Follow one pursuit after the other, each without what the earlier ones chose.

    goal: what to approximate.
    fitting {"basic", "back", "pre"}: see `corank.pursuit.fits`.
    n_basis: most terms of each.
    tol: A step that lowers J by no more than this share of its first value is not taken.
    n_solutions: most pursuits.
    advance: is told of each term.
    Returns: the first, which may have no term, and those after it that found one.
    """

    def told(indices: NDArray[np.int64], coefs: NDArray[np.float64]) -> bool:
        advance(1)
        return False

    squares = dictionary.squares(goal.inner)
    paths: list[Path] = []
    while len(paths) < n_solutions:
        walk = steps(dictionary, goal, squares, fitting)
        path = Path.follow(walk, n_basis, tol * goal.J, told)
        if paths and not len(path.indices):
            break
        paths.append(path)
        squares[path.indices] = 0.0
    return paths
