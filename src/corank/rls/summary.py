"""
Summary: all that least squares has to know of the rows, as sums over queries that add up exactly.

With the views' features side by side, Φ = [Φ_1 … Φ_M], it holds [Φ y]ᵀ L [Φ y] over scored rows and Φᵀ L̂ Φ over
unscored rows. Parts of a data set that share no query are summed anywhere, in any order, and added. Cost O(n K² + l K²)
in time and O(K² + block · K) in memory, K the number of all features; solving is O(K³) and does not see the rows again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.basis.features import FeatureMap, beside
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.graphs import require_alike
from corank.moments import Moments
from corank.rls.spectrum import Spectrum

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Summary:
    """
    Sums of a problem, or of a part of one.

    Attributes
    ----------
    maps : tuple of FeatureMap
        One for each view; parts can be added when they share these.
    scored : Moments
        Sums over pairs of scored rows.
    unscored : Moments or None
        Sums over pairs of unscored rows, where there are views to agree.

    Examples
    --------
    >>> from corank.views import View
    >>> phi = FeatureMap.of_columns(View(), 1)
    >>> one = Summary.of((phi,), RankingData.of([[0.0], [1.0]], [0, 1]))
    >>> two = Summary.of((phi,), RankingData.of([[5.0], [7.0]], [0, 1]))
    >>> (one + two).spectrum().solve([5.0]).round(6).tolist()  # (1·1 + 2·1) / (1 + 4 + 5)
    [[0.3]]
    """

    maps: tuple[FeatureMap, ...]
    scored: Moments
    unscored: Moments | None

    @classmethod
    def of(
        cls,
        maps: tuple[FeatureMap, ...],
        data: RankingData,
        query_weight: str = "pairs",
        weights: Floats | None = None,
    ) -> Summary:
        """
        Sum over a problem, in one pass over the scored and one over the unscored rows.

        Parameters
        ----------
        maps : tuple of FeatureMap
            The views.
        data : RankingData
            The problem.
        query_weight : {"pairs", "equal", "rows"}
            How much a query counts, see `corank.moments.Moments.of`.
        weights : array of shape (n_rows,), optional
            Row weights.

        Returns
        -------
        Summary
            The sums.
        """
        require_alike(data, query_weight)
        how: dict[str, Any] = {"features": beside(maps), "query_weight": query_weight, "weights": weights}
        # sums beyond float64 get their sentence when they are solved
        with np.errstate(over="ignore", invalid="ignore"):
            scored = Moments.of(data, ties=True, **how)
            unscored = Moments.of(data, rows="unscored", **how) if len(maps) > 1 else None
        return cls(maps, scored, unscored)

    def __add__(self, other: Summary) -> Summary:
        alike = len(self.maps) == len(other.maps) and all(map(FeatureMap.is_like, self.maps, other.maps))
        if not alike:
            raise InputError("these summaries are of different views or basis rows; sum parts with the same maps.")
        unscored = None if self.unscored is None or other.unscored is None else self.unscored + other.unscored
        return Summary(self.maps, self.scored + other.scored, unscored)

    def require_pairs(self) -> None:
        """Raise one sentence when no part held a pair to learn from; a single part may well hold none."""
        if not self.scored.pair_weight > 0.0:
            raise InputError("no part of the summary holds two scored rows of one query; sum over more rows.")

    @property
    def only_map(self) -> FeatureMap:
        """The map of a summary of one view; one sentence where there are more."""
        if len(self.maps) != 1:
            raise InputError(f"the summary is of {len(self.maps)} views, and one was wanted; use CoRankRLS for it.")
        return self.maps[0]

    @property
    def blocks(self) -> list[slice]:
        """Where the features of each view are."""
        ends = np.cumsum([0, *(phi.n_features for phi in self.maps)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def system(self, coupling: float = 0.0) -> tuple[Floats, Floats]:
        """
        Return B + C and E of the paper's (18); the penalty D is λI for these features.

        Parameters
        ----------
        coupling : float
            ν, the weight of the views' disagreement on unscored pairs.

        Returns
        -------
        A, b : arrays of shape (K, K) and (K,)
            The matrix without the penalty, and the right side.
        """
        sums = self.scored.pair
        A = np.zeros_like(sums[:-1, :-1])
        for block in self.blocks:
            A[block, block] = sums[block, block]
        if self.unscored is not None and coupling > 0.0:
            U, M = self.unscored.pair[:-1, :-1], len(self.maps)
            A -= (2.0 * coupling) * U
            for block in self.blocks:
                A[block, block] += (2.0 * coupling * M) * U[block, block]
        return A, sums[:-1, -1].copy()

    def spectrum(self, coupling: float = 0.0) -> Spectrum:
        """
        Decompose the system once for every λ.

        Parameters
        ----------
        coupling : float
            ν.

        Returns
        -------
        Spectrum
            Solves for weights of Φ.
        """
        return Spectrum.of(*self.system(coupling))

    def disagreement(self, w: ArrayLike) -> float:
        """
        Mean over unscored pairs and pairs of views of the squared difference of the two views' margins.

        Parameters
        ----------
        w : array-like of shape (K,)
            Weights of Φ.

        Returns
        -------
        float
            The disagreement; NaN without unscored pairs.
        """
        if self.unscored is None or not self.unscored.pair_weight > 0.0:
            return float("nan")
        weights, M = np.asarray(w, dtype=np.float64), len(self.maps)
        W = np.zeros((len(weights), M))
        for v, block in enumerate(self.blocks):
            W[block, v] = weights[block]
        G = W.T @ self.unscored.pair[:-1, :-1] @ W
        total = M * np.trace(G) - G.sum()
        return max(float(total), 0.0) / (M * (M - 1) / 2 * self.unscored.pair_weight)
