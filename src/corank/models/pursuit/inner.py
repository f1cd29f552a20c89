"""The inner product ⟨u, v⟩ = uᵀL̃v of a pursuit, and the scores to approximate in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from corank.base.pairs import Laplacian, PairLaplacian, QueryLaplacian
from corank.base.pairs.factors import weigh_queries
from corank.data.queries import Queries
from corank.data.ranking import RankingData
from corank.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InnerProduct:
    """L̃ = β diag(w) + (1 − β) L over the judged rows, as an operator."""

    L: Laplacian  # laplacian of the compared pairs
    mix: float  # β, the share of regression
    weights: Floats

    def apply(self, V: Floats) -> Floats:
        """
        Return L̃ V.

        V (n,) or (n, r): a vector or a block of columns.
        """
        if self.mix == 0.0:
            return np.asarray(self.L @ V)
        plain = self.mix * (self.weights if V.ndim == 1 else self.weights[:, None]) * V
        return plain if self.mix == 1.0 else plain + (1.0 - self.mix) * (self.L @ V)

    def squares(self, V: Floats) -> Floats:
        """Return vᵀL̃v for each column, as a sum of squares, without cancellation."""
        total = np.zeros(V.shape[1])
        if self.mix > 0.0:
            total += self.mix * np.einsum("ij,ij,i->j", V, V, self.weights)
        if self.mix < 1.0:
            H = self.L.half(V)
            total += (1.0 - self.mix) * np.einsum("ij,ij->j", H, H)
        return total

    @property
    def largest(self) -> float:
        """An upper bound on the eigenvalues of L̃, for rounding errors of norms."""
        if isinstance(self.L, QueryLaplacian):
            top = float(np.max(self.L.scale, initial=0.0)) * float(np.max(self.L.weights, initial=1.0))
        else:
            assert isinstance(self.L, PairLaplacian)
            top = 2.0 * float(np.max(self.L.L.diagonal(), initial=0.0))
        return self.mix * float(self.weights.max()) + (1.0 - self.mix) * top


@dataclass(frozen=True, eq=False)
class Target:
    """The scores s to approximate."""

    rows: NDArray[np.int64]  # (n,): the judged rows of X: scored ones of positive weight, or those of pairs
    inner: InnerProduct  # the inner product over `rows`
    v: Floats  # (n,): L̃ s
    J: float  # sᵀL̃s, the objective of the empty model

    @classmethod
    def of(cls, data: RankingData, mix: float, query_weight: str) -> Target:
        """Build the target of a problem; the target of a preference is a difference of 1."""
        rows = data.scored_rows
        if data.pairs is not None:
            return cls._of_pairs(data, mix, query_weight)
        assert data.targets is not None
        queries = Queries.of(data.queries.codes[rows], len(rows))
        w = data.weight_of(rows)
        L = Laplacian.per_query(queries, query_weight, weights=None if data.weights is None else w)
        inner = InnerProduct(L, mix, w)
        s = data.targets[rows]
        if mix == 0.0:
            # the mean of a query cancels; subtracting it first avoids rounding errors
            s = s - (np.bincount(queries.codes, s) / queries.sizes)[queries.codes]
        return cls(rows, inner, inner.apply(s), float(inner.squares(s[:, None])[0]))

    @classmethod
    def _of_pairs(cls, data: RankingData, mix: float, query_weight: str) -> Target:
        if mix > 0.0:
            raise InputError(f"mix is {mix}, but pairs contain no scores for regression; pass mix=0, or scores.")
        assert data.pairs is not None
        rows, weight = data.scored_rows, weigh_queries(data, query_weight).pair_weight
        kept = weight > 0.0
        pairs, weight, gaps = np.searchsorted(rows, data.pairs[kept]), weight[kept], data.pair_targets[kept]
        L = Laplacian.from_pairs(pairs, len(rows), weight)
        inner = InnerProduct(L, 0.0, np.ones(len(rows)))
        return cls(rows, inner, np.asarray(L.half_t(np.sqrt(weight) * gaps)), float(weight @ gaps**2))


def without_mean(data: RankingData) -> tuple[float, RankingData]:
    """Subtract the mean target of the judged rows from all scores."""
    rows = data.scored_rows
    if data.y is None or data.targets is None:
        return 0.0, data
    mean = float(np.average(data.targets[rows], weights=data.weight_of(rows)))
    return mean, replace(data, y=data.y - mean)
