"""Impression: one list that was shown, with all that is needed to learn from clicks on it, whenever they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Duel:
    """
    What a dueling bandit compared in a list.

    Attributes
    ----------
    directions : array of float64, shape (n_candidates, n_features)
        Where each candidate lies, seen from the ranker.
    ranks : array of int64, shape (n_candidates + 1, n_rows)
        Rank of each row, 0 for the best, in the ranking of the ranker and of each candidate.
    """

    directions: Floats
    ranks: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Impression:
    """
    One list that was shown.

    It is self-contained: nothing of it waits in the ranker. Clicks may come late, in any order, twice or never.

    Attributes
    ----------
    id : int
        A random 64-bit number, by which an impression that comes twice is known.
    rows : array of int64, shape (k,)
        Numbers of the rows of X that were shown, from the top.
    log_propensities : array of float64, shape (k,)
        Logarithm of the chance that each of them had to stand where it stood, given the rows above it. Of rows that
        were not shown nothing is said: their chance is not zero.
    version : int
        Lists that the ranker had learnt from when it drew this one.
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        All rows of the query, as they came: not copied, so leave them as they are.
    scores : array of float64, shape (n_rows,)
        What the ranker thought of each row, prior included.
    view_scores : array of float64, shape (n_rows, n_views)
        What each view thought of it.
    prior : array of float64, shape (n_rows,), or None
        Scores known before learning.
    duel : Duel or None
        What was compared, where rankings were.
    """

    id: int
    rows: NDArray[np.int64]
    log_propensities: Floats
    version: int
    X: Any
    scores: Floats
    view_scores: Floats
    prior: Floats | None = None
    duel: Duel | None = None

    def __post_init__(self) -> None:
        for part in (self.rows, self.log_propensities, self.scores, self.view_scores):
            part.setflags(write=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Impression({len(self.rows)} of {self.X.shape[0]} rows, version {self.version}, id {self.id:#018x})"

    def as_clicks(self, clicks: ArrayLike) -> NDArray[np.bool_]:
        """
        Check clicks on this list.

        Parameters
        ----------
        clicks : array-like of bool or number, shape (k,)
            For each rank, whether or how often it was clicked.

        Returns
        -------
        array of bool
            Whether each rank was clicked; how often does not matter.
        """
        given = np.asarray(clicks)
        if given.shape != self.rows.shape or given.dtype.kind not in "biuf":
            raise InputError(
                f"clicks has shape {given.shape} and type {given.dtype} for a list of {len(self.rows)} rows; pass for "
                "each rank, from the top, whether it was clicked."
            )
        if not (given >= 0).all():
            raise InputError("clicks holds a number below 0 or NaN; pass for each rank whether it was clicked.")
        return np.asarray(given > 0)
