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

from corank.basis import Basis, beside
from corank.data.ranking import RankingData
from corank.data.split import keep_scores
from corank.errors import InputError
from corank.kernels import LinearKernel
from corank.rls.frame import Frame, RowFrame
from corank.rls.leave_out import Advance, dual_queries_out, pairs_out, views_out
from corank.rls.penalty import Equations, closed_alpha
from corank.rls.spectrum import Spectrum
from corank.rls.summary import Summary

Floats = NDArray[np.float64]

# parts that the rows of a single query are dealt into where pairs cannot be left out at once
_FOLDS = 10


@dataclass(frozen=True, eq=False)
class System(ABC):
    """
    A problem seen by one view, made ready to be solved for one alpha or many.

    Attributes
    ----------
    data : RankingData
        The problem.
    frame : Frame
        What is compared in it.
    """

    data: RankingData
    frame: Frame

    @abstractmethod
    def equations(self) -> Equations:
        """
        Build the system.

        Returns
        -------
        Equations
            The arrays are the caller's own.
        """

    @abstractmethod
    def on(self, data: RankingData, frame: Frame) -> System:
        """
        Look at other scores of the same rows.

        Parameters
        ----------
        data : RankingData
            The problem.
        frame : Frame
            What is compared in it.

        Returns
        -------
        System
            Its system.
        """

    @abstractmethod
    def coefficients(self, x: Floats) -> Floats:
        """
        Turn solutions into a model.

        Parameters
        ----------
        x : array of shape (k,) or (k, m)
            One solution a column.

        Returns
        -------
        array of shape (n_columns,) or (r,), or the same with m columns
            Coefficients of the columns (linear kernel) or of the basis rows.
        """

    @abstractmethod
    def values(self, rows: Any, x: Floats) -> Floats:
        """
        Score rows by solutions.

        Parameters
        ----------
        rows : ndarray, CSR matrix, or array of objects
            Rows with all columns.
        x : array of shape (k, m)
            One solution a column.

        Returns
        -------
        array of shape (n, m)
            The scores.
        """

    @abstractmethod
    def queries_out(self, spectrum: Spectrum, alphas: Floats, advance: Advance) -> Floats:
        """
        Predict each query from all others.

        Parameters
        ----------
        spectrum : Spectrum
            Of `equations`.
        alphas : array of shape (m,)
            Weights of the penalty.
        advance : callable
            Is told how many rows are done.

        Returns
        -------
        array of shape (n, m)
            What `Frame.scores` takes.
        """

    @abstractmethod
    def pairs_out(self, spectrum: Spectrum, alphas: Floats) -> Floats:
        """
        Predict each pair of rows of the one query from all others, see `corank.rls.leave_out.pairs_out`.

        Parameters
        ----------
        spectrum : Spectrum
            Of `equations`.
        alphas : array of shape (m,)
            Weights of the penalty.

        Returns
        -------
        array of shape (m,)
            The disagreement error.
        """

    def rows_out(self, alphas: Floats, n_parts: int, advance: Advance) -> Floats:
        """
        Predict each part of the rows of the one query from the others, fitted again.

        Where rows of equal score are not compared, leaving out two rows changes what every other row weighs, and no
        solution follows from the whole one. Rows are dealt in the order of their scores, so that parts are alike.

        Parameters
        ----------
        alphas : array of shape (m,)
            Weights of the penalty.
        n_parts : int
            Number of parts.
        advance : callable
            Is told how many rows are done.

        Returns
        -------
        array of shape (m,)
            The share of pairs inside a part that are ordered wrongly, a predicted tie counting ½; NaN without any.
        """
        assert isinstance(self.frame, RowFrame)
        rows, y = self.frame.rows, self.frame.y
        wrong, total = np.zeros(len(alphas)), 0
        for part in range(n_parts):
            # a frame that does not compare equal scores has its rows in the order of their scores
            out = slice(part, None, n_parts)
            kept = np.ones(self.data.n_rows, dtype=bool)
            kept[rows[out]] = False
            data = keep_scores(self.data, kept)
            frame = Frame.of(data, "pairs", ties=False)
            i, j = np.nonzero(y[out][:, None] > y[out])
            if len(i) and frame.n_queries:
                system = self.on(data, frame)
                A, b, _ = system.equations()
                f = system.values(data.X[rows[out]], Spectrum.of(A, b).solve(alphas))
                margins = f[i] - f[j]
                wrong += np.count_nonzero(margins < 0, axis=0) + np.count_nonzero(margins == 0, axis=0) / 2
                total += len(i)
            advance(len(y[out]))
        return wrong / total if total else np.full(len(alphas), np.nan)

    def left_out(self, spectrum: Spectrum, alphas: Floats, metric: str, advance: Advance) -> tuple[Floats, str]:
        """
        Judge every alpha by what models say of rows that they did not see.

        Parameters
        ----------
        spectrum : Spectrum
            Of `equations`.
        alphas : array of shape (m,)
            Weights of the penalty.
        metric : str
            What judges.
        advance : callable
            Is told how many rows are done.

        Returns
        -------
        scores : array of shape (m,)
            Means of the metric.
        how : str
            What was left out.
        """
        frame = self.frame
        if frame.n_queries > 1:
            return frame.scores(self.queries_out(spectrum, alphas, advance), metric), "leave-query-out"
        if not isinstance(frame, RowFrame) or metric != "disagreement":
            raise InputError(
                f"one query cannot be left out and predicted from others; metric={metric!r} needs two queries or more "
                "(with scores and one query, metric='disagreement' leaves out rows)."
            )
        n = len(frame.rows)
        if n < 4:
            raise InputError(
                f"leaving out rows of the one query needs four or more, and it has {n}; pass alpha instead of alphas."
            )
        # one run: equal scores are compared; n runs: there are none
        if len(frame.L.keep) in (1, n):
            return self.pairs_out(spectrum, alphas), "leave-pair-out"
        n_parts = min(_FOLDS, n // 2)
        return self.rows_out(alphas, n_parts, advance), f"{n_parts}-fold"


@dataclass(frozen=True, eq=False)
class DenseSystem(System):
    """
    The dense dual: a coefficient for each scored row.

    Attributes
    ----------
    data : RankingData
        The problem.
    frame : RowFrame
        The compared rows.
    basis : Basis
        The same rows as one view sees them.
    """

    frame: RowFrame
    basis: Basis

    def equations(self) -> Equations:
        """
        Build H K Hᵀ and H y, in O(n²) beside the Gram matrix and at most twice its memory.

        H K Hᵀ is zero along the constant of each query, where H y has no part: those directions are given a value near
        the mean of the diagonal, so that small alphas do not make the system singular. No solution changes.
        """
        L, w = self.frame.L, self.frame.w
        M = self.basis.gram(self.data.X)
        L.half(M, out=M)
        # K is symmetric: (H K)ᵀ = K Hᵀ
        L.half(M.T, out=M)
        trace = float(np.trace(M))
        # values that differ: a decomposition that meets one value many times is several times slower
        levels = (trace / len(M) or 1.0) * np.linspace(0.5, 1.5, self.frame.n_queries)
        for own, (begin, end) in zip(levels, pairwise(self.frame.starts), strict=True):
            u = np.sqrt(w[begin:end] / w[begin:end].sum())
            M[begin:end, begin:end] += own * np.outer(u, u)
        return Equations(M, L.half(self.frame.y), trace)

    def closed_alpha(self, trace: float) -> float:
        """
        Choose alpha by the closed rule, see `corank.rls.penalty.closed_alpha`.

        Parameters
        ----------
        trace : float
            That of `equations`.

        Returns
        -------
        float
            The weight of the penalty.
        """
        is_linear = isinstance(self.basis.view.kernel, LinearKernel)
        return closed_alpha(trace, self.frame.n_differences, self.basis.rows.shape[1] if is_linear else 0)

    def on(self, data: RankingData, frame: Frame) -> DenseSystem:
        """Look at other scores of the same rows."""
        assert isinstance(frame, RowFrame)
        return replace(self, data=data, frame=frame, basis=Basis.of(self.basis.view, data.X, frame.rows))

    def coefficients(self, x: Floats) -> Floats:
        """Return Hᵀx, or the weights of columns that it stands for."""
        a = self.frame.L.half_t(x)
        return self.basis.column_weights(a) if isinstance(self.basis.view.kernel, LinearKernel) else a

    def values(self, rows: Any, x: Floats) -> Floats:
        """Score rows by solutions."""
        return np.asarray(self.basis.similarities(rows) @ self.frame.L.half_t(x))

    def queries_out(self, spectrum: Spectrum, alphas: Floats, advance: Advance) -> Floats:
        """Predict each query from all others."""
        frame = self.frame
        return dual_queries_out(spectrum, frame.L.half(frame.y), frame.starts, frame.shares, alphas, advance)

    def pairs_out(self, spectrum: Spectrum, alphas: Floats) -> Floats:
        """Predict each pair of rows of the one query from all others."""
        return pairs_out(spectrum, None, self.frame, alphas)


@dataclass(frozen=True, eq=False)
class FeatureSystem(System):
    """
    The system of features: columns, or similarities to basis rows.

    Attributes
    ----------
    data : RankingData
        The problem.
    frame : Frame
        What is compared in it.
    summary : Summary
        Its sums.
    """

    summary: Summary

    def equations(self) -> Equations:
        """Build ΦᵀLΦ and ΦᵀL y."""
        return self.summary.equations()

    def on(self, data: RankingData, frame: Frame) -> FeatureSystem:
        """Look at other scores of the same rows, summed by pairs of different scores."""
        return FeatureSystem(data, frame, Summary.of(self.summary.maps, data, frame))

    def coefficients(self, x: Floats) -> Floats:
        """Return coefficients of the columns, or of the basis rows."""
        return self.summary.only_map.coefficients(x)

    def values(self, rows: Any, x: Floats) -> Floats:
        """Score rows by solutions."""
        return np.asarray(self.summary.only_map(rows) @ x)

    def queries_out(self, spectrum: Spectrum, alphas: Floats, advance: Advance) -> Floats:
        """Predict each query from all others."""
        return np.asarray(self.views_out([spectrum], alphas, advance)[0])

    def views_out(self, spectra: list[Spectrum], alphas: Floats, advance: Advance) -> Floats:
        """
        Predict each query from all others by the mean of all views.

        Parameters
        ----------
        spectra : list of Spectrum
            One for each coupling.
        alphas : array of shape (m,)
            Weights of the penalty.
        advance : callable
            Is told how many rows are done.

        Returns
        -------
        array of shape (n_couplings, n, m)
            What `Frame.scores` takes, for each coupling.
        """
        frame, blocks = self.frame, self.summary.blocks
        held = np.empty((len(spectra), int(frame.starts[-1]), len(alphas)))
        for some, starts, Z, t in frame.designs(self.data.X, beside(self.summary.maps)):
            part = slice(frame.starts[some.start], frame.starts[some.stop])
            held[:, part] = views_out(spectra, Z, t, starts, frame.shares[some], blocks, alphas)
            advance(len(t))
        return held

    def pairs_out(self, spectrum: Spectrum, alphas: Floats) -> Floats:
        """Predict each pair of rows of the one query from all others."""
        assert isinstance(self.frame, RowFrame)
        Z, _ = self.frame.design(0, 1, self.data.X, self.summary.only_map)
        return pairs_out(spectrum, Z, self.frame, alphas)
