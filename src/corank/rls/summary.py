"""
Summary: all that least squares has to know of the rows, as sums over queries that add up exactly.

With the views' features side by side, Φ = [Φ_1 … Φ_M], it holds [Φ y]ᵀ L [Φ y] over scored rows and Φᵀ L̂ Φ over
unscored rows. Parts of a data set that share no query are summed anywhere, in any order, saved, loaded and added. Cost
O(n K² + l K²) in time and O(K² + block · K) in memory, K the number of all features; solving is O(K³) and does not see
the rows again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.basis import FeatureMap, beside
from corank.core.scaled import factors_of
from corank.data.ranking import RankingData
from corank.errors import InputError, reason
from corank.graphs import weigh_queries
from corank.kernels import LinearKernel
from corank.moments import Moments
from corank.rls.frame import Frame
from corank.rls.penalty import Equations, closed_alpha
from corank.rls.spectrum import Spectrum
from corank.rls.summary_file import Tensors, pack_map, read_tensors, unpack_map, write_tensors

Floats = NDArray[np.float64]

# what is saved beside arrays
_NUMBERS = ("n_differences", "query_weight", "ties", "n_features")


@dataclass(frozen=True, eq=False)
class Summary:
    """
    Sums of a problem, or of a part of one; `RankRLS.summary` and `CoRankRLS.summary` make them, ``+`` adds them.

    Attributes
    ----------
    maps : tuple of FeatureMap
        One for each view; parts can be added when they share these.
    scored : Moments
        Sums over pairs of scored rows, or preferences.
    unscored : Moments or None
        Sums over pairs of unscored rows, where there are views to agree.
    n_differences : int
        Number of compared rows less one for each query.
    query_weight : {"pairs", "equal", "rows"}
        How much a query counts in the sums.
    ties : bool
        Whether two rows of equal score were compared.
    factors : array of shape (n_features,), or None
        What columns were multiplied by.
    n_features : int or None
        Number of columns of X; None where rows are objects.

    Examples
    --------
    >>> from corank import RankRLS
    >>> model = RankRLS(alpha=2.0, scale=False)
    >>> parts = [model.summary([[0.0], [1.0]], [0, 1]), model.summary([[5.0], [7.0]], [0, 1])]
    >>> model.fit_summary(parts[0] + parts[1]).coef_.round(6).tolist()  # ((1 + 2) / 2) / ((1 + 4) / 2 + 2)
    [0.333333]
    """

    maps: tuple[FeatureMap, ...]
    scored: Moments
    unscored: Moments | None
    n_differences: int
    query_weight: str
    ties: bool
    factors: Floats | None = None
    n_features: int | None = None

    @classmethod
    def of(cls, maps: tuple[FeatureMap, ...], data: RankingData, frame: Frame) -> Summary:
        """
        Sum over a problem, in one pass over the scored and one over the unscored rows.

        Parameters
        ----------
        maps : tuple of FeatureMap
            The views.
        data : RankingData
            The problem.
        frame : Frame
            What is compared in it.

        Returns
        -------
        Summary
            The sums.
        """
        how: dict[str, Any] = {"features": beside(maps)}
        # sums beyond float64 get their sentence when they are solved
        with np.errstate(over="ignore", invalid="ignore"):
            scored = Moments.of(weigh_queries(data, frame.query_weight, ties=frame.ties), ties=frame.ties, **how)
            unscored = None
            if len(maps) > 1:
                unscored = Moments.of(data, rows="unscored", query_weight=frame.query_weight, **how)
        n_features = data.n_features if data.X.ndim == 2 else None
        return cls(
            maps, scored, unscored, frame.n_differences, frame.query_weight, frame.ties, factors_of(data.X), n_features
        )

    def __add__(self, other: Summary) -> Summary:
        alike = len(self.maps) == len(other.maps) and all(map(FeatureMap.is_like, self.maps, other.maps))
        if not alike:
            raise InputError("these summaries are of different views or basis rows; sum parts with the same maps.")
        for name in ("query_weight", "ties"):
            if getattr(self, name) != getattr(other, name):
                raise InputError(
                    f"these summaries are of {name}={getattr(self, name)!r} and {name}={getattr(other, name)!r}; sum "
                    "parts by models with the same parameters."
                )
        if not np.array_equal(np.atleast_1d(self.factors), np.atleast_1d(other.factors)):  # type: ignore[arg-type]
            raise InputError("these summaries scale columns differently; pass the first as like when summing others.")
        unscored = None if self.unscored is None or other.unscored is None else self.unscored + other.unscored
        return replace(
            self, scored=self.scored + other.scored, unscored=unscored,
            n_differences=self.n_differences + other.n_differences,
        )  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """
        Write the sums to a file, whole or not at all.

        Parameters
        ----------
        path : path
            Where; an existing file is replaced. Kernels that are functions cannot be saved.
        """
        tensors: Tensors = {"scored": self.scored.pair}
        if self.unscored is not None:
            tensors["unscored"] = self.unscored.pair
        if self.factors is not None:
            tensors["factors"] = self.factors
        header = {name: getattr(self, name) for name in _NUMBERS}
        header["scored_weight"] = self.scored.pair_weight
        header["unscored_weight"] = None if self.unscored is None else self.unscored.pair_weight
        header["maps"] = [pack_map(phi, f"map{v}", tensors) for v, phi in enumerate(self.maps)]
        write_tensors(path, header, tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Summary:
        """
        Read what `save` wrote; nothing in the file is run.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Summary
            The sums.
        """
        header, tensors = read_tensors(path)
        try:
            maps = tuple(unpack_map(one, f"map{v}", tensors) for v, one in enumerate(header["maps"]))
            scored = Moments(tensors["scored"], None, header["scored_weight"])
            unscored = None
            if "unscored" in tensors:
                unscored = Moments(tensors["unscored"], None, header["unscored_weight"])
            numbers = {name: header[name] for name in _NUMBERS}
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} describes a summary wrongly ({reason(error)}); save it again.") from error
        return cls(maps, scored, unscored, factors=tensors.get("factors"), **numbers)

    def require_pairs(self) -> None:
        """Raise one sentence when no part held a pair to learn from; a single part may well hold none."""
        if not self.scored.pair_weight > 0.0:
            raise InputError(
                "no part of the summary holds two scored rows of one query to compare; sum over more rows."
            )

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

    @property
    def agrees(self) -> bool:
        """Whether there are unscored pairs for views to agree on."""
        return self.unscored is not None and self.unscored.pair_weight > 0.0

    def equations(self, coupling: float = 0.0) -> Equations:
        """
        Return (B + C) and E of the paper's (18), as means over pairs; the penalty D is alpha I for these features.

        Parameters
        ----------
        coupling : float
            Weight of Σ_{v,u} of the mean squared difference of two views' margins over unscored pairs.

        Returns
        -------
        Equations
            The matrix without the penalty, and the right side.
        """
        sums, M = self.scored.pair / self.scored.pair_weight, len(self.maps)
        A = np.zeros_like(sums[:-1, :-1])
        for block in self.blocks:
            A[block, block] = sums[block, block]
        trace = float(np.trace(A))
        if self.unscored is not None and self.agrees and coupling > 0.0:
            # the loss has its ½, the sum over (v, u) has every pair of views twice: a slope of 4
            U = (4.0 * coupling / self.unscored.pair_weight) * self.unscored.pair[:-1, :-1]
            A -= U
            for block in self.blocks:
                A[block, block] += M * U[block, block]
        return Equations(A, sums[:-1, -1].copy(), trace)

    def spectrum(self, coupling: float = 0.0) -> Spectrum:
        """
        Decompose the system once for every alpha.

        Parameters
        ----------
        coupling : float
            As in `equations`.

        Returns
        -------
        Spectrum
            Solves for weights of Φ.
        """
        A, b, _ = self.equations(coupling)
        return Spectrum.of(A, b)

    def closed_alpha(self) -> float:
        """
        Choose alpha by the closed rule, see `corank.rls.penalty.closed_alpha`; the mean over views.

        Returns
        -------
        float
            The weight of the penalty.
        """
        squares = np.diag(self.scored.pair) / self.scored.pair_weight
        alphas = [
            closed_alpha(float(squares[block].sum()), self.n_differences, _columns(phi))
            for phi, block in zip(self.maps, self.blocks, strict=True)
        ]
        return float(np.mean(alphas))

    def gap(self, w: ArrayLike) -> float:
        """
        Mean over unscored pairs and pairs of views of the squared difference of the two views' margins.

        Parameters
        ----------
        w : array-like of shape (K,)
            Weights of Φ.

        Returns
        -------
        float
            The gap; NaN without unscored pairs.
        """
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
    if not isinstance(phi.view.kernel, LinearKernel):
        return 0
    return phi.n_features if phi.basis is None else int(phi.basis.rows.shape[1])
