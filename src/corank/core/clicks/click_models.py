"""Clicks of simulated users on a list, and what the list is worth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import jit
from corank.core.random import random_uniform


class Habits(NamedTuple):
    """
    How a user reads a list from the top.

    click, stop (n_grades,): chances that a row of each grade is clicked when it is looked at, and ends the reading.
    fading: rank r is looked at with chance r^−fading, beside having been reached.
    needs_click: whether only a clicked row may end the reading.
    """

    click: NDArray[np.float64]
    stop: NDArray[np.float64]
    fading: float
    needs_click: bool


@jit
def read_list(habits, grades, rng_state, clicks):  # type: ignore[no-untyped-def]
    """
    Write which of the rows with these grades are clicked, and return how many ranks were reached.

    Two numbers are drawn for every rank, reached or not, so that the draws of a rank do not depend on those above it.
    """
    reached = len(grades)
    for rank in range(len(grades)):
        for_click, for_stop = random_uniform(rng_state), random_uniform(rng_state)
        clicks[rank] = False
        if rank >= reached:
            continue
        grade = grades[rank]
        looks = (rank + 1.0) ** -habits.fading
        clicks[rank] = for_click < looks * habits.click[grade]
        if (clicks[rank] or not habits.needs_click) and for_stop < habits.stop[grade]:
            reached = rank + 1
    return reached


@jit
def list_worth(gains, shown, ideal):  # type: ignore[no-untyped-def]
    """Return nDCG of a list: Σ gain of rank r / log2(r + 1), over the best possible; 0 where nothing can be gained."""
    total = 0.0
    for rank in range(len(shown)):
        total += gains[shown[rank]] / np.log2(rank + 2.0)
    return total / ideal if ideal > 0.0 else 0.0
