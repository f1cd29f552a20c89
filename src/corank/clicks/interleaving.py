"""
Compare rankers by clicks: one list blended from several rankings, and whom the clicks on it speak for.

`blend` makes the list, `credit` says what each ranking earned, `preferences` who won against whom. All are pure: a
`Blend` holds what was compared, and nothing waits in between. For identical rankings, and for rankings of which users
see no difference, every method gives ties in expectation, whatever the users are like; averaged over many lists, the
signs of preferences say which ranker is better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.core.clicks import interleaving as blends
from corank.core.random import seed_state
from corank.errors import InputError

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Blend:
    """
    One list out of several rankings.

    Attributes
    ----------
    rows : array of int64, shape (k,)
        Numbers of the rows of the list, from the top.
    rankings : array of int64, shape (n_rankings, n_rows)
        What was blended: all rows, best first, of each ranking.
    teams : array of int64, shape (k,), or None
        Which ranking chose each row, −1 for none; of `TeamDraft` only.
    log_propensities : array of float64, shape (k,), or None
        Logarithm of the chance of each row given those above it; of `Probabilistic` only.
    """

    rows: Whole
    rankings: Whole
    teams: Whole | None = None
    log_propensities: Floats | None = None

    @property
    def ranks(self) -> Whole:
        """Rank of each row, 0 for the best, in each ranking."""
        ranks = np.empty_like(self.rankings)
        blends.invert(self.rankings, ranks)
        return ranks


@dataclass(frozen=True)
class Comparison(ABC):
    """
    A way to compare rankings by clicks.

    Parameters
    ----------
    k : int
        Ranks of a list; all rows are shown where there are fewer.
    """

    k: int = 10

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"k is {self.k}; pass a number of rows of at least 1.")

    def blend(self, rankings: ArrayLike, rng: np.random.Generator) -> Blend:
        """
        Make one list out of rankings.

        Parameters
        ----------
        rankings : array-like of int, shape (n_rankings, n_rows)
            Of each ranking, the numbers 0 to n_rows − 1 of all rows, best first.
        rng : numpy.random.Generator
            Dice.

        Returns
        -------
        Blend
            The list.
        """
        checked = _as_rankings(rankings)
        return self._blend(checked, np.empty(min(self.k, checked.shape[1]), dtype=np.int64), seed_state(rng))

    @abstractmethod
    def credit(self, blend: Blend, clicks: ArrayLike) -> Floats:
        """
        Say what each ranking earned by clicks.

        Parameters
        ----------
        blend : Blend
            The list.
        clicks : array-like of bool, shape (k,)
            For each rank, whether it was clicked.

        Returns
        -------
        array of float64, shape (n_rankings,)
            Higher is better; only differences mean anything.
        """

    def preferences(self, blend: Blend, clicks: ArrayLike) -> Floats:
        """
        Say who won against whom.

        Parameters
        ----------
        blend : Blend
            The list.
        clicks : array-like of bool, shape (k,)
            For each rank, whether it was clicked.

        Returns
        -------
        array of float64, shape (n_rankings, n_rankings)
            Entry (i, j) is above 0 where ranking i won against j; what is averaged over lists.
        """
        earned = self.credit(blend, clicks)
        return np.sign(earned[:, None] - earned)

    @abstractmethod
    def _blend(self, rankings: Whole, rows: Whole, rng_state: NDArray[np.uint64]) -> Blend: ...


@dataclass(frozen=True)
class TeamDraft(Comparison):
    """
    Rankings choose rows in turns; a click counts for who chose the row (Radlinski et al., 2008; Schuth et al., 2014).

    What all rankings begin with is nobody's choice and earns no credit.

    Parameters
    ----------
    k : int
        Ranks of a list.

    Examples
    --------
    >>> blend = TeamDraft(3).blend([[0, 1, 2], [0, 2, 1]], np.random.default_rng(0))
    >>> int(blend.rows[0]), int(blend.teams[0])
    (0, -1)
    >>> TeamDraft(3).credit(blend, [True, False, False]).tolist()
    [0.0, 0.0]
    """

    def credit(self, blend: Blend, clicks: ArrayLike) -> Floats:
        """Count the clicks on the rows that each ranking chose."""
        if blend.teams is None:
            raise InputError("this blend has no teams; pass what the blend of TeamDraft returned.")
        chosen = blend.teams[_as_clicks(blend, clicks)]
        return np.bincount(chosen[chosen >= 0], minlength=len(blend.rankings)).astype(np.float64)

    def _blend(self, rankings: Whole, rows: Whole, rng_state: NDArray[np.uint64]) -> Blend:
        teams = np.empty_like(rows)
        blends.draft_teams(rankings, rng_state, rows, teams)
        return Blend(rows, rankings, teams)


@dataclass(frozen=True)
class Balanced(Comparison):
    """
    Two rankings are merged so that any beginning of the list is fair to both (Joachims, 2003).

    Clicked rows count for every ranking that has them among its best κ, where κ is just deep enough for the lowest
    click. It is kept for comparison: where two rankings differ by one row moved to the end, it prefers one of them
    even under random clicks.

    Parameters
    ----------
    k : int
        Ranks of a list.

    Examples
    --------
    >>> blend = Balanced(2).blend([[0, 1, 2], [2, 1, 0]], np.random.default_rng(0))
    >>> sorted(blend.rows.tolist())
    [0, 2]
    """

    def credit(self, blend: Blend, clicks: ArrayLike) -> Floats:
        """Count the clicked rows among the best κ of each ranking."""
        out = np.zeros(2)
        blends.credit_two(blend.rankings, blend.rows, _as_clicks(blend, clicks), out)
        return out

    def _blend(self, rankings: Whole, rows: Whole, rng_state: NDArray[np.uint64]) -> Blend:
        if len(rankings) != 2:
            raise InputError(f"Balanced compares 2 rankings, but {len(rankings)} came; use TeamDraft for more.")
        blends.merge_two(rankings, rng_state, rows)
        return Blend(rows, rankings)


@dataclass(frozen=True)
class Probabilistic(Comparison):
    """
    Each row is drawn from a ranking chosen at random (Hofmann et al., 2011; Schuth et al., 2015).

    A ranking draws a row with a chance in proportion to rank^−tau over the rows left. Who chose a row is not kept: a
    click is shared by the chances that each ranking had to contribute it, which any list can be credited by.

    Parameters
    ----------
    k : int
        Ranks of a list.
    tau : float
        How much rankings insist on their best rows.

    Examples
    --------
    >>> blend = Probabilistic().blend([[0, 1, 2], [2, 1, 0]], np.random.default_rng(0))
    >>> Probabilistic().credit(blend, [True, False, False]).sum().round(12)
    np.float64(1.0)
    """

    tau: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.tau) and self.tau >= 0.0):
            raise InputError(f"tau is {self.tau}; pass a finite number of at least 0.")

    def credit(self, blend: Blend, clicks: ArrayLike) -> Floats:
        """Share clicks out by the chances that each ranking had to contribute the row."""
        return np.asarray(self._shares(blend, clicks).sum(axis=0))

    def preferences(self, blend: Blend, clicks: ArrayLike) -> Floats:
        """Say who won against whom, in expectation over who contributed the clicked rows."""
        shares = self._shares(blend, clicks)
        m, c = len(blend.rankings), len(shares)
        out, law, new = np.zeros((m, m)), np.zeros(2 * c + 1), np.zeros(2 * c + 1)
        for i in range(m):
            for j in range(i):
                out[i, j] = blends.expected_sign(shares, c, i, j, law, new)
        return out - out.T

    def _shares(self, blend: Blend, clicks: ArrayLike) -> Floats:
        clicked, n = _as_clicks(blend, clicks), blend.rankings.shape[1]
        shares = np.zeros((len(clicked), len(blend.rankings)))
        left = np.empty(n, dtype=np.bool_)
        n_clicks = blends.share_clicks(blend.ranks, self._worth(n), blend.rows, clicked, left, shares)
        return shares[:n_clicks]

    def _blend(self, rankings: Whole, rows: Whole, rng_state: NDArray[np.uint64]) -> Blend:
        n = rankings.shape[1]
        log_chances, left = np.empty(len(rows)), np.empty(n, dtype=np.bool_)
        blends.blend_by_chance(Blend(rows, rankings).ranks, self._worth(n), rng_state, rows, log_chances, left)
        return Blend(rows, rankings, log_propensities=log_chances)

    def _worth(self, n: int) -> Floats:
        return np.arange(1, n + 1, dtype=np.float64) ** -self.tau


@dataclass(frozen=True)
class PairwisePreference(Comparison):
    """
    Pairs of a clicked and a passed-over row speak for the rankings that order them so (Oosterhuis and de Rijke, 2017).

    Rank r is drawn from the rows that some ranking has among its best r, all alike, so that rows that two lists could
    have shown in either order were as likely to stand in one as in the other; only such pairs count.

    Parameters
    ----------
    k : int
        Ranks of a list.

    Examples
    --------
    >>> method = PairwisePreference(2)
    >>> blend = method.blend([[0, 1, 2], [1, 0, 2]], np.random.default_rng(0))
    >>> clicked = blend.rows == 1
    >>> method.credit(blend, clicked).tolist()
    [-1.0, 1.0]
    """

    def credit(self, blend: Blend, clicks: ArrayLike) -> Floats:
        """Add up what pairs say."""
        out = np.zeros(len(blend.rankings))
        blends.credit_pairs(blend.rankings, blend.ranks, blend.rows, _as_clicks(blend, clicks), out)
        return out

    def preferences(self, blend: Blend, clicks: ArrayLike) -> Floats:
        """Say who won against whom."""
        earned = self.credit(blend, clicks)
        return np.asarray(earned[:, None] - earned)

    def _blend(self, rankings: Whole, rows: Whole, rng_state: NDArray[np.uint64]) -> Blend:
        blends.blend_by_union(rankings, rng_state, rows)
        return Blend(rows, rankings)


def _as_rankings(rankings: ArrayLike) -> Whole:
    lengths = {len(one) for one in rankings} if isinstance(rankings, list | tuple) and np.ndim(rankings[0]) else set()
    if len(lengths) > 1:
        raise InputError(f"rankings have {min(lengths)} to {max(lengths)} rows; pass the same rows in every ranking.")
    given = np.asarray(rankings)
    if given.ndim != 2 or given.dtype.kind not in "iu" or len(given) < 2 or given.shape[1] < 1:
        raise InputError(
            f"rankings has shape {given.shape} and type {given.dtype}; pass row numbers, best first, of two or more "
            "rankings."
        )
    checked = np.ascontiguousarray(given, dtype=np.int64)
    wrong = (np.sort(checked, axis=1) != np.arange(checked.shape[1])).any(axis=1)
    if wrong.any():
        raise InputError(
            f"ranking {int(np.flatnonzero(wrong)[0])} is no order of the rows 0 to {checked.shape[1] - 1}; pass each "
            "row once in every ranking."
        )
    return checked


def _as_clicks(blend: Blend, clicks: ArrayLike) -> NDArray[np.bool_]:
    given = np.asarray(clicks)
    if given.shape != blend.rows.shape or given.dtype.kind not in "biuf":
        raise InputError(
            f"clicks has shape {given.shape} and type {given.dtype} for a list of {len(blend.rows)} rows; pass for "
            "each rank whether it was clicked."
        )
    return np.asarray(given > 0)
