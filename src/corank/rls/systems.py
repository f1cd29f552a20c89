"""
The linear systems of least-squares ranking: (A + alpha I) x = b, A a mean over the compared pairs.

Dense, over n scored rows: A = H K Hᵀ and b = H y, with L = HᵀH the Laplacian of the pairs over their weight, K the Gram
matrix of the rows, and Hᵀx the coefficients of the rows. Of features Φ: A = ΦᵀLΦ and b = ΦᵀL y, x the weights of Φ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.data.problem.ranking import RankingData
from corank.kernels import Basis, stack_features
from corank.rls.accuracy import Held, Sizes
from corank.rls.frame import Frame, RowFrame
from corank.rls.leave_out import Advance, dual_queries_out, rows_out, views_out
from corank.rls.leave_pair_out import pairs_out
from corank.rls.spectrum import Equations, Ridge, Spectrum
from corank.rls.summary import Summary
from corank.solvers.penalty import alpha_of, freedom

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class System(ABC):
    """
    A problem seen by one view, made ready to be solved for one alpha or many.

    frame: what is compared in it.
    basis: the basis rows; None where the features are columns.
    """

    data: RankingData
    frame: Frame
    basis: Basis | None

    @abstractmethod
    def equations(self) -> Equations:
        """Build the system, in arrays that are the caller's own."""

    @abstractmethod
    def coefficients(self, x: Floats) -> Floats:
        """Turn solutions, one a column, into coefficients of the columns (linear kernel) or of the basis rows."""

    @abstractmethod
    def queries_out(self, ridge: Ridge, alphas: Floats, advance: Advance) -> Held:
        """Predict each query from all others, as `Frame.scores` takes it; `advance` is told how many rows are done."""

    @abstractmethod
    def pairs_out(self, ridge: Ridge, alphas: Floats) -> Floats:
        """Predict each pair of rows of the one query from all others, see `corank.rls.leave_pair_out`."""

    @abstractmethod
    def rows_out(self, ridge: Ridge, rows: Any, alphas: Floats) -> Held:
        """Predict other rows of the one query, up to a constant."""

    def evidence(self, ridge: Ridge, alphas: Floats) -> Floats:
        """
        Return the log evidence of each alpha, up to a constant.

        Scores are f and noise of precision L/σ², f has the covariance σ² K/alpha, any level of a query is as likely as
        any other, and σ is the one that makes the scores likeliest: −½(m log(q/m) + log |I + A/alpha|), with m the
        differences that compared rows leave free, by preferences too, and q twice the least value of the objective.
        """
        m = freedom(self.data, self.frame.ties).differences
        found = []
        for shift in ridge.shifts(alphas):
            q, log_det = self._misfit(ridge, float(shift))
            found.append(-0.5 * (m * np.log(max(q, np.finfo(np.float64).tiny) / m) + log_det))
        return np.array(found)

    @abstractmethod
    def _misfit(self, ridge: Ridge, shift: float) -> tuple[float, float]:
        """Return tᵀ(I + ZZᵀ/λ)⁻¹t and log |I + ZZᵀ/λ|, Z and t those of `Frame.design`."""


@dataclass(frozen=True, eq=False)
class DenseSystem(System):
    """
    The dense dual: a coefficient for each scored row.

    frame: the compared rows.
    basis: the same rows as one view sees them.
    """

    frame: RowFrame
    basis: Basis

    def equations(self) -> Equations:
        """
        Build H K Hᵀ and H y, in O(n²) beside the Gram matrix and at most twice its memory.

        H K Hᵀ is zero along the constant of each query, where H y has no part: those directions are given a value near
        the mean of the diagonal, so that small alphas do not make the system singular. No solution changes.
        """
        frame, w, is_linear = self.frame, self.frame.w, self.basis.view.kernel.is_linear
        M = self.basis.gram(self.data.X)
        frame.L.half(M, out=M)
        # K is symmetric: (H K)ᵀ = K Hᵀ
        frame.L.half(M.T, out=M)
        trace = float(np.trace(M))
        # values that differ: a decomposition that meets one value many times is several times slower
        levels = (trace / len(M) or 1.0) * _spread(frame.n_queries)
        for own, (begin, end) in zip(levels, pairwise(frame.starts), strict=True):
            u = np.sqrt(w[begin:end] / w[begin:end].sum())
            M[begin:end, begin:end] += own * np.outer(u, u)
        closed = alpha_of(trace, self.basis.rows.shape[1] if is_linear else 0, freedom(self.data, frame.ties))
        # an indefinite kernel may leave a trace below zero
        units = np.full(len(M), abs(float(np.trace(M))) / len(M))
        return Equations(M, frame.targets, units, closed)

    def coefficients(self, x: Floats) -> Floats:
        """Return Hᵀx, or the weights of columns that it stands for."""
        a = self.frame.L.half_t(x)
        return self.basis.column_weights(a) if self.basis.view.kernel.is_linear else a

    def queries_out(self, ridge: Ridge, alphas: Floats, advance: Advance) -> Held:
        """Predict each query from all others."""
        frame = self.frame
        return dual_queries_out(ridge, frame.targets, frame.starts, frame.shares, alphas, self._sizes, advance)

    def pairs_out(self, ridge: Ridge, alphas: Floats) -> Floats:
        """Predict each pair of rows of the one query from all others."""
        return pairs_out(ridge, None, self.frame, alphas, self._sizes)

    def rows_out(self, ridge: Ridge, rows: Any, alphas: Floats) -> Held:
        """Predict other rows of the one query, up to a constant."""
        seen = self.frame.L.half(np.ascontiguousarray(self.basis.similarities(rows).T)).T
        length = float(np.mean(self.basis.diagonal(self.data.X)))
        return rows_out(ridge, ridge.seen(seen), alphas, self._sizes, length, is_dual=True)

    def _misfit(self, ridge: Ridge, shift: float) -> tuple[float, float]:
        assert isinstance(ridge, Spectrum)
        spread = _spread(self.frame.n_queries)
        # what `equations` gave the constants of queries is no part of ZZᵀ
        levels = spread * (ridge.values.sum() / (len(ridge.values) + spread.sum()))
        q = shift * float(ridge.through(ridge.target, shift) @ ridge.target)
        return q, ridge.log_det(shift) - float(np.sum(np.log1p(levels / shift)))

    @property
    def _sizes(self) -> Sizes:
        return self.frame.sizes(self.basis.diagonal(self.data.X))


@dataclass(frozen=True, eq=False)
class FeatureSystem(System):
    """
    The system of features: columns, or similarities to basis rows.

    summary: sums of the problem.
    """

    summary: Summary

    def equations(self) -> Equations:
        """Build ΦᵀLΦ and ΦᵀL y."""
        return self.summary.equations()

    def coefficients(self, x: Floats) -> Floats:
        """Return coefficients of the columns, or of the basis rows."""
        return self.summary.only_map.coefficients(x)

    def queries_out(self, ridge: Ridge, alphas: Floats, advance: Advance) -> Held:
        """Predict each query from all others."""
        return self.views_out([ridge], alphas, advance)[0]

    def views_out(self, ridges: list[Ridge], alphas: Floats, advance: Advance) -> list[Held]:
        """Predict each query from all others by the mean of all views, for the system of each coupling."""
        frame, blocks, parts, sizes = self.frame, self.summary.blocks, [], self._sizes
        for some, starts, Z, t in frame.designs(self.data.X, stack_features(self.summary.maps)):
            parts.append(views_out(ridges, Z, t, starts, frame.shares[some], blocks, alphas, sizes))
            advance(len(t))
        return [Held(*map(np.concatenate, zip(*of_one, strict=True))) for of_one in zip(*parts, strict=True)]

    def pairs_out(self, ridge: Ridge, alphas: Floats) -> Floats:
        """Predict each pair of rows of the one query from all others."""
        assert isinstance(self.frame, RowFrame)
        Z, _ = self.frame.design(0, 1, self.data.X, self.summary.only_map)
        return pairs_out(ridge, Z, self.frame, alphas, self._sizes)

    def rows_out(self, ridge: Ridge, rows: Any, alphas: Floats) -> Held:
        """Predict other rows of the one query, up to a constant."""
        seen = ridge.seen(self.summary.only_map(rows))
        return rows_out(ridge, seen, alphas, self._sizes, self._length, is_dual=False)

    def _misfit(self, ridge: Ridge, shift: float) -> tuple[float, float]:
        explained = float(ridge.through(ridge.target, shift) @ ridge.target)
        return float(np.sum(self.frame.targets**2)) - explained, ridge.log_det(shift)

    @property
    def _length(self) -> float:
        """Mean k(x, x) over basis rows, summed over the views that have them."""
        bases = [phi.basis for phi in self.summary.maps if phi.basis is not None]
        return sum(float(np.mean(basis.diagonal(self.data.X))) for basis in bases)

    @property
    def _sizes(self) -> Sizes:
        inflation = max(phi.inflation for phi in self.summary.maps)
        return replace(self.frame.sizes(self._length), inflation=inflation)


def _spread(n: int) -> Floats:
    return np.linspace(0.5, 1.5, n)
