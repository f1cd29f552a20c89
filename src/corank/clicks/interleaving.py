"""
Team-draft interleaving: compare rankers by clicks on one list that is merged from their rankings.

For identical rankings, and for rankings that users cannot distinguish, it gives ties in expectation for any click
model. Averaged over many lists, the signs of preferences show which ranker is better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.clicks.ranker import as_clicks
from corank.core.clicks.sessions import interleave_team_draft
from corank.core.random import seed_state
from corank.errors import InputError
from corank.parameters import check_values, integer

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class InterleavedList:
    """One list merged from several rankings."""

    rows: Integers  # numbers of the rows of the list, from the top
    rankings: Integers  # the rankings: all rows, best first, of each
    teams: Integers  # the ranking that chose each row, −1 for none


@dataclass(frozen=True)
class TeamDraft:
    """
    Team-draft interleaving: rankings choose rows in turns (Radlinski et al., 2008; Schuth et al., 2014).

    A click is credited to the ranking that chose the row. A common prefix of all rankings earns no credit. Nothing is
    kept between the two methods.

    k: Ranks of a list; all rows are shown if there are fewer.
    """

    k: int = 10

    def __post_init__(self) -> None:
        check_values({"k": self.k}, {"k": integer(1)})

    def interleave(self, rankings: ArrayLike, rng: np.random.Generator) -> InterleavedList:
        """Merge two or more rankings into one list."""
        checked = _as_rankings(rankings)
        return self._interleave(checked, np.empty(min(self.k, checked.shape[1]), dtype=np.int64), seed_state(rng))

    def credit(self, merged: InterleavedList, clicks: ArrayLike) -> Floats:
        """Count the clicks on the rows that each ranking chose."""
        chosen = merged.teams[as_clicks(clicks, len(merged.rows))]
        return np.bincount(chosen[chosen >= 0], minlength=len(merged.rankings)).astype(np.float64)

    def preferences(self, merged: InterleavedList, clicks: ArrayLike) -> Floats:
        """Compare every two rankings."""
        credit = self.credit(merged, clicks)
        return np.sign(credit[:, None] - credit)

    def _interleave(self, rankings: Integers, rows: Integers, rng_state: NDArray[np.uint64]) -> InterleavedList:
        teams = np.empty_like(rows)
        interleave_team_draft(rankings, rng_state, rows, teams)
        return InterleavedList(rows, rankings, teams)


def _as_rankings(rankings: ArrayLike) -> Integers:
    lengths = (
        {len(ranking) for ranking in rankings} if isinstance(rankings, list | tuple) and np.ndim(rankings[0]) else set()
    )
    if len(lengths) > 1:
        raise InputError(f"rankings have {min(lengths)} to {max(lengths)} rows; pass the same rows in every ranking.")
    values = np.asarray(rankings)
    if values.ndim != 2 or values.dtype.kind not in "iu" or len(values) < 2 or values.shape[1] < 1:
        raise InputError(
            f"rankings has shape {values.shape} and type {values.dtype}; pass row numbers, best first, of two or more "
            "rankings."
        )
    checked = np.ascontiguousarray(values, dtype=np.int64)
    wrong = (np.sort(checked, axis=1) != np.arange(checked.shape[1])).any(axis=1)
    if wrong.any():
        raise InputError(
            f"ranking {int(np.flatnonzero(wrong)[0])} does not hold each of the rows 0 to {checked.shape[1] - 1} once; "
            "pass every row exactly once in each ranking."
        )
    return checked
