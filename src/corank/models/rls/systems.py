"""
The linear systems of least-squares ranking: (A + alpha I) x = b, A a mean over the compared pairs.

Dense, over n scored rows: A = H K Hᵀ and b = H y, with L = HᵀH the Laplacian of the pairs over their weight, K the Gram
matrix of the rows, and Hᵀx the coefficients of the rows. With features Φ: A = ΦᵀLΦ and b = ΦᵀL y, x the weights of Φ.

Leave-pair-out for one query is exact and needs no refitting. If all rows of the query are compared,
L = s (diag(w) − w wᵀ/W) makes the system that of weighted least squares with a free constant and the penalty λ/s;
leaving out two rows is a 2×2 system in I − S (see `corank.models.rls.leave_out`), at the penalty for the s of the other
rows. Margins below their rounding errors are ties.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.base.kernels.basis import Basis, stack_features
from corank.base.solvers.penalty import alpha_of, freedom
from corank.data.ranking import RankingData
from corank.models.rls.accuracy import UNIT, ErrorScales, LeaveOutScores
from corank.models.rls.frame import ComparedRows, ScoredRows
from corank.models.rls.leave_out import Advance, dual_queries_out, rows_out, views_out
from corank.models.rls.spectrum import Equations, Ridge, RidgeSpectrum
from corank.models.rls.summary import PairSums

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Margins(NamedTuple):
    """f_i − f_j of many pairs, each by the model without its two rows."""

    values: Floats
    errors: Floats  # (2, n): errors of the predictions of the two rows, times √w
    turned: Floats  # (2, n): derivatives of the margin in the two right-hand sides
    grown: Floats  # growth of rounding errors in the 2×2 system


def pairs_out(ridge: Ridge, Z: Floats | None, frame: ScoredRows, alphas: Floats, scales: ErrorScales) -> Floats:
    """
    Return the leave-pair-out disagreement error of one query; O(n² k) for each λ and each distinct sum of two weights.
    """
    w, y, root = frame.w, frame.y, np.sqrt(frame.w)
    i, j = np.nonzero(np.triu(y[:, None] != y))
    if not len(i):
        return np.full(len(alphas), np.nan)
    W, squares = w.sum() - (w[i] + w[j]), np.sum(w * w) - (w[i] ** 2 + w[j] ** 2)
    # s of a mean over the pairs of the other rows; with ties, including pairs of a row with itself
    distinct, group = np.unique(2.0 * W / (W**2 - (0.0 if frame.ties else squares)), return_inverse=True)
    better, prior_gap = np.sign(y[i] - y[j]), frame.prior[i] - frame.prior[j]
    y = y - frame.prior
    y = y - np.average(y, weights=w)
    if Z is None:
        assert isinstance(ridge, RidgeSpectrum)
        A, kept = ridge.vectors, ridge.values
    else:
        A, kept = ridge.transform(Z), np.ones(1)
    # H y = √s √w y; the following uses √w y
    size = float(np.sqrt(frame.L.scale[0]))
    target, scales = ridge.target / size, replace(scales, targets=scales.targets / size)
    wrong = np.zeros(len(alphas))
    for g, scale in enumerate(distinct):
        pairs = (i[group == g], j[group == g])
        for index, shift in enumerate(ridge.shifts(alphas * (frame.L.scale[0] / scale))):
            through = ridge.times_inverse(A, shift)
            if shift > ridge.largest:
                margins = _small_margins((through * kept) @ A.T, y, root, *pairs)
            elif Z is None:
                margins = _margins((through * shift) @ A.T, y, root, *pairs)
            else:
                margins = _margins(np.eye(len(A)) - through @ A.T, y, root, *pairs)
            solution = float(np.linalg.norm(ridge.times_inverse(target, shift)))
            noise = _noise(ridge, through, solution, shift, margins, pairs, scales, Z is None)
            margin = (margins.values + prior_gap[group == g]) * better[group == g]
            wrong[index] += np.where(np.abs(margin) <= noise, 0.5, margin < 0).sum()
    return wrong / len(i)


def _margins(R: Floats, y: Floats, root: Floats, i: Integers, j: Integers) -> Margins:
    """Return f_i − f_j without rows i and j, from R = I − S."""
    u = root / np.linalg.norm(root)
    # the free constant has no residual
    R -= np.outer(R @ u, u)
    residual, diagonal = R @ (root * y), np.diag(R)
    # (R_TT)⁻¹ r_T for T = {i, j}: the errors of the two rows, times √w
    two = (diagonal[i], diagonal[j], R[i, j])
    error_i, error_j = _solve_two(*two, residual[i], residual[j])
    margin = (y[i] - error_i / root[i]) - (y[j] - error_j / root[j])
    return Margins(margin, np.stack([error_i, error_j]), *_turned(*two, root[i], root[j]))


def _small_margins(S: Floats, y: Floats, root: Floats, i: Integers, j: Integers) -> Margins:
    """
    Return f_i − f_j without rows i and j if λ is above every eigenvalue, so that f is nearly constant.

    The constant m, the mean score of the other rows, cancels: with z = √w (y − m), the rest of f in T = {i, j} is
    (I − u uᵀ − S)_TT⁻¹ ((S √w y)_T − S_TT z_T).
    """
    u, w = root / np.linalg.norm(root), root * root
    S -= np.outer(S @ u, u)
    fitted, diagonal, cross = S @ (root * y), np.diag(S), S[i, j]
    m = -(w[i] * y[i] + w[j] * y[j]) / (w.sum() - (w[i] + w[j]))
    z_i, z_j = root[i] * (y[i] - m), root[j] * (y[j] - m)
    side_i = fitted[i] - (diagonal[i] * z_i + cross * z_j)
    side_j = fitted[j] - (cross * z_i + diagonal[j] * z_j)
    kept = 1.0 - u * u - diagonal
    two = (kept[i], kept[j], -u[i] * u[j] - cross)
    f_i, f_j = _solve_two(*two, side_i, side_j)
    return Margins(f_i / root[i] - f_j / root[j], np.stack([f_i, f_j]), *_turned(*two, root[i], root[j]))


def _solve_two(a: Floats, b: Floats, c: Floats, side_i: Floats, side_j: Floats) -> tuple[Floats, Floats]:
    """Solve [[a, c], [c, b]] x = side for many pairs."""
    determinant = a * b - c * c
    return (b * side_i - c * side_j) / determinant, (a * side_j - c * side_i) / determinant


def _turned(a: Floats, b: Floats, c: Floats, root_i: Floats, root_j: Floats) -> tuple[Floats, Floats]:
    """Return `turned` and `grown` of `Margins`."""
    turned = np.stack(_solve_two(a, b, c, 1.0 / root_i, -1.0 / root_j))
    return turned, np.abs(_solve_two(np.abs(a), np.abs(b), -np.abs(c), 1.0 / root_i, 1.0 / root_j)).sum(axis=0)


def _noise(
    ridge: Ridge,
    through: Floats,
    solution: float,
    shift: float,
    margins: Margins,
    pairs: tuple[Integers, Integers],
    scales: ErrorScales,
    is_dual: bool,
) -> Floats:
    """Bound the rounding errors of margins, as in `corank.models.rls.leave_out`."""
    (i, j), (p, q), (error_i, error_j), own = pairs, margins.turned, np.abs(margins.errors), margins.grown
    root, missed = np.sqrt(ridge.scale), error_i + error_j
    if shift > ridge.largest:
        grain = max(scales.similarities, ridge.largest)
        return np.asarray(UNIT * own * (2.0 * grain / shift * scales.targets + missed))
    P = through @ through.T
    length = np.sqrt(np.diag(P))
    response = np.sqrt(np.maximum(p * p * P[i, i] + q * q * P[j, j] + 2.0 * p * q * P[i, j], 0.0))
    b = solution + length[i] * error_i + length[j] * error_j
    noise = own * (scales.targets + missed)
    if is_dual:
        return np.asarray(UNIT * (noise + scales.similarities * shift * response * b))
    noise += root * response * (scales.targets + root * b)
    return np.asarray(UNIT * (noise + scales.of_features(response, b, root, np.sqrt(own) * scales.targets / shift)))


@dataclass(frozen=True, eq=False)
class System(ABC):
    """The linear system of a problem, for one alpha or many."""

    data: RankingData
    frame: ComparedRows  # the comparisons
    basis: Basis | None  # the basis rows; None if the features are columns

    @abstractmethod
    def equations(self) -> Equations:
        """Build the system in new arrays."""

    @abstractmethod
    def coefficients(self, x: Floats) -> Floats:
        """Turn solutions (columns) into coefficients of the columns of X (linear kernel) or of the basis rows."""

    @abstractmethod
    def queries_out(self, ridge: Ridge, alphas: Floats, advance: Advance) -> LeaveOutScores:
        """Predict each query from all others, for `ComparedRows.scores`; `advance` receives the number of rows done."""

    @abstractmethod
    def pairs_out(self, ridge: Ridge, alphas: Floats) -> Floats:
        """Return the leave-pair-out disagreement error of the one query."""

    @abstractmethod
    def rows_out(self, ridge: Ridge, rows: Any, alphas: Floats) -> LeaveOutScores:
        """Predict other rows of the one query, up to a constant."""

    def evidence(self, ridge: Ridge, alphas: Floats) -> Floats:
        """
        Return the log evidence of each alpha, up to a constant.

        Scores are f plus noise of precision L/σ², f has covariance σ² K/alpha, the level of a query has a flat prior,
        and σ maximises the likelihood: −½(m log(q/m) + log |I + A/alpha|), with m the number of free differences of
        compared rows and q twice the minimum of the objective.
        """
        m = freedom(self.data, self.frame.ties).differences
        evidence = []
        for shift in ridge.shifts(alphas):
            q, log_det = self._misfit(ridge, float(shift))
            evidence.append(-0.5 * (m * np.log(max(q, np.finfo(np.float64).tiny) / m) + log_det))
        return np.array(evidence)

    @abstractmethod
    def _misfit(self, ridge: Ridge, shift: float) -> tuple[float, float]:
        """Return tᵀ(I + ZZᵀ/λ)⁻¹t and log |I + ZZᵀ/λ|, Z and t those of `ComparedRows.design`."""


@dataclass(frozen=True, eq=False)
class DenseSystem(System):
    """The dense dual: one coefficient per scored row; the basis are the compared rows."""

    frame: ScoredRows
    basis: Basis

    def equations(self) -> Equations:
        """
        Build H K Hᵀ and H y, in O(n²) in addition to the Gram matrix and at most twice its memory.

        H K Hᵀ and H y are zero along the constant of each query. These directions get an eigenvalue near the mean of
        the diagonal, so that small alphas do not make the system singular. The solution does not change.
        """
        frame, w, is_linear = self.frame, self.frame.w, self.basis.view.kernel.is_linear
        M = self.basis.gram(self.data.X)
        frame.L.half(M, out=M)
        # K is symmetric: (H K)ᵀ = K Hᵀ
        frame.L.half(M.T, out=M)
        trace = float(np.trace(M))
        # distinct values: repeated eigenvalues make the decomposition several times slower
        levels = (trace / len(M) or 1.0) * _spread(frame.n_queries)
        for own, (begin, end) in zip(levels, pairwise(frame.starts), strict=True):
            u = np.sqrt(w[begin:end] / w[begin:end].sum())
            M[begin:end, begin:end] += own * np.outer(u, u)
        closed = alpha_of(trace, self.basis.rows.shape[1] if is_linear else 0, freedom(self.data, frame.ties))
        # the trace of an indefinite kernel may be negative
        units = np.full(len(M), abs(float(np.trace(M))) / len(M))
        return Equations(M, frame.targets, units, closed)

    def coefficients(self, x: Floats) -> Floats:
        """Return Hᵀx, or the equivalent weights of columns."""
        a = self.frame.L.half_t(x)
        return self.basis.column_weights(a) if self.basis.view.kernel.is_linear else a

    def queries_out(self, ridge: Ridge, alphas: Floats, advance: Advance) -> LeaveOutScores:
        """Predict each query from all others."""
        frame = self.frame
        return dual_queries_out(ridge, frame.targets, frame.starts, frame.shares, alphas, self._error_scales, advance)

    def pairs_out(self, ridge: Ridge, alphas: Floats) -> Floats:
        """Return the leave-pair-out disagreement error of the one query."""
        return pairs_out(ridge, None, self.frame, alphas, self._error_scales)

    def rows_out(self, ridge: Ridge, rows: Any, alphas: Floats) -> LeaveOutScores:
        """Predict other rows of the one query, up to a constant."""
        similarities = self.frame.L.half(np.ascontiguousarray(self.basis.similarities(rows).T)).T
        length = float(np.mean(self.basis.diagonal(self.data.X)))
        return rows_out(ridge, ridge.transform(similarities), alphas, self._error_scales, length, is_dual=True)

    def _misfit(self, ridge: Ridge, shift: float) -> tuple[float, float]:
        assert isinstance(ridge, RidgeSpectrum)
        spread = _spread(self.frame.n_queries)
        # remove the eigenvalues that `equations` added for the constants of queries
        levels = spread * (ridge.values.sum() / (len(ridge.values) + spread.sum()))
        q = shift * float(ridge.times_inverse(ridge.target, shift) @ ridge.target)
        return q, ridge.log_det(shift) - float(np.sum(np.log1p(levels / shift)))

    @property
    def _error_scales(self) -> ErrorScales:
        return self.frame.error_scales(self.basis.diagonal(self.data.X))


@dataclass(frozen=True, eq=False)
class FeatureSystem(System):
    """The system of features: columns, or similarities to basis rows."""

    summary: PairSums

    def equations(self) -> Equations:
        """Build ΦᵀLΦ and ΦᵀL y."""
        return self.summary.equations()

    def coefficients(self, x: Floats) -> Floats:
        """Return coefficients of the columns, or of the basis rows."""
        return self.summary.only_map.coefficients(x)

    def queries_out(self, ridge: Ridge, alphas: Floats, advance: Advance) -> LeaveOutScores:
        """Predict each query from all others."""
        return self.views_out([ridge], alphas, advance)[0]

    def views_out(self, ridges: list[Ridge], alphas: Floats, advance: Advance) -> list[LeaveOutScores]:
        """Predict each query from all others by the mean of the views, for each coupling."""
        frame, blocks, parts, scales = self.frame, self.summary.blocks, [], self._error_scales
        for some, starts, Z, t in frame.designs(self.data.X, stack_features(self.summary.maps)):
            parts.append(views_out(ridges, Z, t, starts, frame.shares[some], blocks, alphas, scales))
            advance(len(t))
        return [LeaveOutScores(*map(np.concatenate, zip(*of_one, strict=True))) for of_one in zip(*parts, strict=True)]

    def pairs_out(self, ridge: Ridge, alphas: Floats) -> Floats:
        """Return the leave-pair-out disagreement error of the one query."""
        assert isinstance(self.frame, ScoredRows)
        Z, _ = self.frame.design(0, 1, self.data.X, self.summary.only_map)
        return pairs_out(ridge, Z, self.frame, alphas, self._error_scales)

    def rows_out(self, ridge: Ridge, rows: Any, alphas: Floats) -> LeaveOutScores:
        """Predict other rows of the one query, up to a constant."""
        features = ridge.transform(self.summary.only_map(rows))
        return rows_out(ridge, features, alphas, self._error_scales, self._length, is_dual=False)

    def _misfit(self, ridge: Ridge, shift: float) -> tuple[float, float]:
        explained = float(ridge.times_inverse(ridge.target, shift) @ ridge.target)
        return float(np.sum(self.frame.targets**2)) - explained, ridge.log_det(shift)

    @property
    def _length(self) -> float:
        """Mean k(x, x) over basis rows, summed over views."""
        bases = [phi.basis for phi in self.summary.maps if phi.basis is not None]
        return sum(float(np.mean(basis.diagonal(self.data.X))) for basis in bases)

    @property
    def _error_scales(self) -> ErrorScales:
        inflation = max(phi.inflation for phi in self.summary.maps)
        return replace(self.frame.error_scales(self._length), inflation=inflation)


def _spread(n: int) -> Floats:
    return np.linspace(0.5, 1.5, n)
