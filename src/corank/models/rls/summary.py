"""
Sums over queries from which least-squares ranking is solved; sums of parts add up exactly.

With the concatenated features of all views, Φ = [Φ_1 … Φ_M], a summary holds [Φ y]ᵀ L [Φ y] over scored rows and
Φᵀ L̂ Φ over unjudged rows. Parts of a data set that share no query can be summed anywhere, in any order, saved, loaded
and added. The cost is O(n K² + l K²) time and O(K² + block · K) memory, K the number of all features; solving costs
O(K³) and does not read the rows again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.base.kernels.basis import FeatureMap, stack_features
from corank.base.pairs import Moments
from corank.base.pairs.losses import drawn_weight
from corank.base.solvers.penalty import Freedom, alpha_of, freedom
from corank.core.rows.access import factors_of
from corank.data.ranking import RankingData
from corank.errors import InputError
from corank.memory import require_memory
from corank.models.rls.spectrum import Equations

Floats = NDArray[np.float64]

# K × K arrays while the system is built and solved
_ARRAYS = 6


@dataclass(frozen=True, eq=False)
class PairSums:
    """
    Sums of a problem or of a part of it; `RankRLS.pair_sums` and `CoRankRLS.pair_sums` compute them, ``+`` adds them.

    weights: Denominators of the two sums: the weights of the pairs. For unjudged rows, and with `ties`, they include
        pairs of a row with itself, see `corank.base.pairs.losses.drawn_weight`.
    """

    maps: tuple[FeatureMap, ...]  # one per view; only summaries with equal maps can be added
    scored: Moments  # sums over pairs of scored rows, or preferences
    unscored: Moments | None  # sums over pairs of unjudged rows, if there are several views
    weights: tuple[float, float]
    free: Freedom  # number of free differences and of queries, from which alpha is chosen
    query_weight: str  # weight of a query
    ties: bool  # whether rows of equal score were compared
    factors: Floats | None = None  # factors of the columns
    n_features: int | None = None  # number of columns of X; None if rows are objects
    names: tuple[str, ...] | None = None  # names of the columns, if the rows have them

    @classmethod
    def of(
        cls, maps: tuple[FeatureMap, ...], data: RankingData, query_weight: str = "pairs", ties: bool = False
    ) -> PairSums:
        """Sum over a problem, in one scan of the scored and one of the unjudged rows."""
        are_columns = len(maps) == 1 and maps[0].basis is None and maps[0].view.columns is None
        how: dict[str, Any] = {"features": None if are_columns else stack_features(maps), "query_weight": query_weight}
        K = sum(phi.n_features for phi in maps)
        # sums of scored and unjudged rows, the system, its parts, and its factorisation
        require_memory(K, 8.0 * _ARRAYS * K * K, "set n_basis to fewer rows", "features")
        # overflow is reported by the solver
        with np.errstate(over="ignore", invalid="ignore"):
            scored = Moments.of(data, ties=ties, **how)
            unscored = Moments.of(data, rows="unscored", **how) if len(maps) > 1 else None
        n_features, free = data.n_features if data.X.ndim == 2 else None, freedom(data, ties)
        drawn = ties and data.pairs is None
        weights = (
            drawn_weight(data, query_weight) if drawn else scored.pair_weight,
            drawn_weight(data, query_weight, "unscored"),
        )
        return cls(
            maps, scored, unscored, weights, free, query_weight, ties, factors_of(data.X), n_features, data.names
        )

    def __repr__(self) -> str:
        widths = ", ".join(str(phi.n_features) for phi in self.maps)
        return f"PairSums(pairs of weight {self.scored.pair_weight:g}, views of {widths} features)"

    def __add__(self, other: PairSums) -> PairSums:
        alike = len(self.maps) == len(other.maps) and all(map(FeatureMap.is_like, self.maps, other.maps))
        if not alike:
            raise InputError("these summaries are of different views or basis rows; sum parts with the same maps.")
        for name in ("query_weight", "ties", "n_features"):
            if getattr(self, name) != getattr(other, name):
                raise InputError(
                    f"these summaries are of {name}={getattr(self, name)!r} and {name}={getattr(other, name)!r}; sum "
                    "parts by models with the same parameters and columns."
                )
        if self.names is not None and other.names is not None and self.names != other.names:
            index = next(k for k, pair in enumerate(zip(self.names, other.names, strict=True)) if pair[0] != pair[1])
            raise InputError(
                f"these summaries have {self.names[index]!r} and {other.names[index]!r} as column {index}; sum "
                "parts with the same columns in the same order."
            )
        if not np.array_equal(np.atleast_1d(self.factors), np.atleast_1d(other.factors)):  # type: ignore[arg-type]
            raise InputError("these summaries scale columns differently; pass the first as like when summing others.")
        unscored = None if self.unscored is None or other.unscored is None else self.unscored + other.unscored
        return replace(
            self, scored=self.scored + other.scored, unscored=unscored,
            weights=(self.weights[0] + other.weights[0], self.weights[1] + other.weights[1]),
            free=self.free + other.free, names=self.names or other.names,
        )  # fmt: skip

    def require_pairs(self) -> None:
        """Raise if no part holds a pair; a single part may hold none."""
        if not self.scored.pair_weight > 0.0:
            raise InputError(
                "no part of the summary holds two scored rows of one query to compare; sum over more rows."
            )

    @property
    def only_map(self) -> FeatureMap:
        """The map of a summary of one view; raises for more views."""
        if len(self.maps) != 1:
            raise InputError(f"the summary has {len(self.maps)} views, but one is expected; use CoRankRLS.")
        return self.maps[0]

    @property
    def blocks(self) -> list[slice]:
        """Features of each view."""
        ends = np.cumsum([0, *(phi.n_features for phi in self.maps)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    @property
    def agrees(self) -> bool:
        """Whether there are unjudged pairs to couple the views."""
        return self.unscored is not None and self.unscored.pair_weight > 0.0

    def equations(self, coupling: float = 0.0) -> Equations:
        """
        Return (B + C) and E of the paper's (18), as means over pairs; the penalty D is alpha I for these features.
        """
        sums, M = self.scored.pair / self.weights[0], len(self.maps)
        A = np.zeros_like(sums[:-1, :-1])
        for block in self.blocks:
            A[block, block] = sums[block, block]
        closed = alpha_of(float(np.trace(A)), sum(map(_columns, self.maps)), self.free)
        if self.unscored is not None and self.agrees and coupling > 0.0:
            # the loss has a factor ½, and the sum over (v, u) has every pair of views twice: a factor 4
            U = (4.0 * coupling / self.weights[1]) * self.unscored.pair[:-1, :-1]
            A -= U
            for block in self.blocks:
                A[block, block] += M * U[block, block]
        units = np.diag(A).copy()
        for phi, block in zip(self.maps, self.blocks, strict=True):
            if phi.basis is not None:
                units[block] = units[block].mean() if phi.n_features else 0.0
        return Equations(A, sums[:-1, -1].copy(), units, closed)

    def gap(self, w: ArrayLike) -> float:
        """Return the mean over unjudged pairs and pairs of views of the squared difference of margins."""
        if self.unscored is None or not self.agrees:
            return float("nan")
        weights, M = np.asarray(w, dtype=np.float64), len(self.maps)
        W = np.zeros((len(weights), M))
        for v, block in enumerate(self.blocks):
            W[block, v] = weights[block]
        G = W.T @ self.unscored.pair[:-1, :-1] @ W
        total = M * np.trace(G) - G.sum()
        return max(float(total), 0.0) / (M * (M - 1) / 2 * self.unscored.pair_weight)


def _columns(phi: FeatureMap) -> int:
    if not phi.view.kernel.is_linear:
        return 0
    return phi.n_features if phi.basis is None else int(phi.basis.rows.shape[1])
