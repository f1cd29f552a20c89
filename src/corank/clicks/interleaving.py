"""
Interleaving: compare rankers by the clicks on one list that is merged from their rankings.

`interleave` makes the list, `credit` gives each ranking's credit for clicks, `preferences` compares every two rankings.
The methods keep no state: an `InterleavedList` holds everything. For identical rankings, and for rankings that users
cannot distinguish, every method gives ties in expectation for any click model. Averaged over many lists, the signs of
preferences show which ranker is better. `INTERLEAVINGS` is the registry of methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.clicks.ranker import as_clicks
from corank.core.clicks import interleaving as kernels
from corank.core.random import seed_state
from corank.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class InterleavedList:
    """
    One list merged from several rankings.

    log_propensities: Logarithm of the probability of each row given those above it; `Probabilistic` only.
    """

    rows: Integers  # numbers of the rows of the list, from the top
    rankings: Integers  # the rankings: all rows, best first, of each
    teams: Integers | None = None  # the ranking that chose each row, −1 for none; `TeamDraft` only
    log_propensities: Floats | None = None

    @property
    def ranks(self) -> Integers:
        """Rank of each row, 0 for the best, in each ranking."""
        ranks = np.empty_like(self.rankings)
        kernels.invert(self.rankings, ranks)
        return ranks


@dataclass(frozen=True)
class Interleaving(ABC):
    """Base class of interleaving methods."""

    k: int = 10  # ranks of a list; all rows are shown if there are fewer

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"k is {self.k}; pass a number of rows of at least 1.")

    def interleave(self, rankings: ArrayLike, rng: np.random.Generator) -> InterleavedList:
        """Merge rankings into one list."""
        checked = _as_rankings(rankings)
        return self._interleave(checked, np.empty(min(self.k, checked.shape[1]), dtype=np.int64), seed_state(rng))

    @abstractmethod
    def credit(self, merged: InterleavedList, clicks: ArrayLike) -> Floats:
        """Return each ranking's credit for clicks."""

    def preferences(self, merged: InterleavedList, clicks: ArrayLike) -> Floats:
        """Compare every two rankings."""
        credit = self.credit(merged, clicks)
        return np.sign(credit[:, None] - credit)

    @abstractmethod
    def _interleave(self, rankings: Integers, rows: Integers, rng_state: NDArray[np.uint64]) -> InterleavedList: ...


@dataclass(frozen=True)
class TeamDraft(Interleaving):
    """
    Team-draft interleaving: rankings choose rows in turns (Radlinski et al., 2008; Schuth et al., 2014).

    A click is credited to the ranking that chose the row. A common prefix of all rankings earns no credit.

    k: Ranks of a list.
    """

    def credit(self, merged: InterleavedList, clicks: ArrayLike) -> Floats:
        """Count the clicks on the rows that each ranking chose."""
        if merged.teams is None:
            raise InputError("this list has no teams; pass a list that TeamDraft.interleave returned.")
        chosen = merged.teams[as_clicks(clicks, len(merged.rows))]
        return np.bincount(chosen[chosen >= 0], minlength=len(merged.rankings)).astype(np.float64)

    def _interleave(self, rankings: Integers, rows: Integers, rng_state: NDArray[np.uint64]) -> InterleavedList:
        teams = np.empty_like(rows)
        kernels.interleave_team_draft(rankings, rng_state, rows, teams)
        return InterleavedList(rows, rankings, teams)


@dataclass(frozen=True)
class Probabilistic(Interleaving):
    """
    Probabilistic interleaving: each row is drawn from a random ranking (Hofmann et al., 2011; Schuth et al., 2015).

    A ranking draws a row with probability proportional to rank^−tau over the rows left. A click is shared among the
    rankings by the probabilities that each contributed the row, so any list can be credited.

    k: Ranks of a list.
    """

    tau: float = 3.0  # concentration on the best rows of a ranking

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.tau) and self.tau >= 0.0):
            raise InputError(f"tau is {self.tau}; pass a finite number of at least 0.")

    def credit(self, merged: InterleavedList, clicks: ArrayLike) -> Floats:
        """Share clicks by the probabilities that each ranking contributed the row."""
        return np.asarray(self._shares(merged, clicks).sum(axis=0))

    def preferences(self, merged: InterleavedList, clicks: ArrayLike) -> Floats:
        """Compare every two rankings, in expectation over which ranking contributed the clicked rows."""
        shares = self._shares(merged, clicks)
        m, c = len(merged.rankings), len(shares)
        out, distribution, new = np.zeros((m, m)), np.zeros(2 * c + 1), np.zeros(2 * c + 1)
        for i in range(m):
            for j in range(i):
                out[i, j] = kernels.expected_sign(shares, c, i, j, distribution, new)
        return out - out.T

    def _shares(self, merged: InterleavedList, clicks: ArrayLike) -> Floats:
        clicked, n = as_clicks(clicks, len(merged.rows)), merged.rankings.shape[1]
        shares = np.zeros((len(clicked), len(merged.rankings)))
        left = np.empty(n, dtype=np.bool_)
        n_clicks = kernels.assign_clicks(merged.ranks, self._softmax(n), merged.rows, clicked, left, shares)
        return shares[:n_clicks]

    def _interleave(self, rankings: Integers, rows: Integers, rng_state: NDArray[np.uint64]) -> InterleavedList:
        n = rankings.shape[1]
        log_propensities, left = np.empty(len(rows)), np.empty(n, dtype=np.bool_)
        kernels.interleave_probabilistic(
            InterleavedList(rows, rankings).ranks, self._softmax(n), rng_state, rows, log_propensities, left
        )
        return InterleavedList(rows, rankings, log_propensities=log_propensities)

    def _softmax(self, n: int) -> Floats:
        return np.arange(1, n + 1, dtype=np.float64) ** -self.tau


@dataclass(frozen=True)
class PairwisePreference(Interleaving):
    """
    Pairwise preference multileaving (Oosterhuis and de Rijke, 2017).

    A pair of a clicked and a skipped row is credited to the rankings that order them so. Rank r is drawn uniformly from
    the rows that some ranking has among its best r, so that two rows available at both ranks were equally likely in
    either order; only such pairs count.

    k: Ranks of a list.
    """

    def credit(self, merged: InterleavedList, clicks: ArrayLike) -> Floats:
        """Sum the credit of pairs."""
        out = np.zeros(len(merged.rankings))
        kernels.credit_pairwise(merged.rankings, merged.ranks, merged.rows, as_clicks(clicks, len(merged.rows)), out)
        return out

    def preferences(self, merged: InterleavedList, clicks: ArrayLike) -> Floats:
        """Compare every two rankings."""
        credit = self.credit(merged, clicks)
        return np.asarray(credit[:, None] - credit)

    def _interleave(self, rankings: Integers, rows: Integers, rng_state: NDArray[np.uint64]) -> InterleavedList:
        kernels.interleave_pairwise(rankings, rng_state, rows)
        return InterleavedList(rows, rankings)


INTERLEAVINGS: dict[str, type[Interleaving]] = {
    "team_draft": TeamDraft,
    "probabilistic": Probabilistic,
    "pairwise_preference": PairwisePreference,
}
"""Registry of interleaving methods, by name."""


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
