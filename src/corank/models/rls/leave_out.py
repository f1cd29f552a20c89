"""
Exact leave-query-out and leave-pair-out without refitting; differences below rounding errors are ties.

In the rows HΦ of the least-squares problem, Z with t = H y, the fitted values are S t, S = Z (ZᵀZ + λI)⁻¹ Zᵀ. Training
without the rows of q gives them the values t_q − (I − S_qq)⁻¹ (t − S t)_q. With ZᵀZ = V diag(e) Vᵀ and A = Z V,
S_qq = A_q diag(1/(e + λ)) A_qᵀ; in the dual, I − S = V diag(λ/(e + λ)) Vᵀ for the eigenvectors V of H K Hᵀ. One
decomposition serves every query and every λ, at O(n_q² k) each. With features the same values are computed from the
other queries, (I − S_qq)⁻¹ ((S t)_q − S_qq t_q): for large λ they are far smaller than t_q, and a difference would be
lost in rounding. The dual does the same if λ is above every e.

Rows that the model without their query scores equally must not be ordered by rounding errors, so values come with error
bounds. To first order, errors of u = 2⁻⁵² in the decomposed matrix change (A + λI) w = b by u e₁ ‖w‖ and u √e₁ ‖t‖ in
any direction, e₁ the largest eigenvalue, and a row z by z (A + λI)⁻¹ times that. It is estimated with right-hand sides
of random signs (`N_PROBES`), solved together with the values. In the dual, and for features computed from
similarities, errors are those of K: u Σ k(x, x), times the coefficients of the rows.

The loss is a mean over pairs. Without a query that holds a share s of their weight, the others have 1/(1 − s) times
their weight, so the model for alpha uses λ = (1 − s) alpha with unchanged sums.

Leave-pair-out: if all rows of the one query are compared, L = s (diag(w) − w wᵀ/W) makes the system that of weighted
least squares with a free constant and the penalty λ/s. Leaving out two rows is a 2×2 system in I − S, at the penalty
for the s of the other rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.rows.blocks import sort_blocks
from corank.models.rls.spectrum import Ridge, RidgeSpectrum

if TYPE_CHECKING:
    from corank.models.rls.frame import ScoredRows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Advance = Callable[[int], Any]

# number of right-hand sides that represent rounding errors
N_PROBES = 4
# largest number of entries of the matrices I − S_qq, and of their scaled rows, in memory
_MAX_ENTRIES = 1 << 20
UNIT = 8.0 * float(np.finfo(np.float64).eps)
"""Relative rounding error of a sum: bounds are of first order, and sums have many terms."""


@dataclass(frozen=True)
class ErrorScales:
    """
    Scales of rounding errors.

    similarities: Σ of the squared lengths of its rows before centring, for features computed from similarities; 0 for
        columns.
    inflation: growth of errors of similarities in features, see `corank.base.kernels.basis.FeatureMap.inflation`.
    """

    targets: float  # ‖t‖, t the targets of the least-squares problem
    similarities: float = 0.0
    inflation: float = 1.0

    def of_features(self, response: Floats, solution: Floats | float, root: float, rows: Floats) -> Floats:
        """
        Bound the effect of errors of similarities on a prediction by features, in units of u.

        They are errors of features, or errors of K times coefficients of rows; the smaller of the two bounds holds.
        """
        blur = self.inflation * np.sqrt(self.similarities)
        by_features = blur * (response * (self.targets + root * solution) + solution)
        return np.asarray(np.minimum(self.similarities * rows, by_features))


class LeaveOutScores(NamedTuple):
    """Predictions by models that have not seen the predicted rows."""

    values: Floats  # (n, m): one column per candidate
    noise: Floats  # (n, m): bounds of their rounding errors

    @classmethod
    def empty(cls, n: int, m: int) -> LeaveOutScores:
        """Allocate n predictions of m candidates."""
        return cls(np.empty((n, m)), np.empty((n, m)))


def merge_ties(values: Floats, noise: Floats, starts: NDArray[np.int64]) -> Floats:
    """Make values of a query equal whose difference is below their rounding errors."""
    order = np.arange(len(values))
    sort_blocks(values, order, starts, 0, len(starts) - 1)
    f, u = values[order], noise[order]
    is_new = np.ones(len(f), dtype=bool)
    is_new[1:] = f[1:] - f[:-1] > u[1:] + u[:-1]
    is_new[starts[:-1]] = True
    out = np.empty_like(f)
    out[order] = f[is_new][np.cumsum(is_new) - 1]
    return out


def dual_queries_out(
    spectrum: Ridge,
    t: Floats,
    starts: NDArray[np.int64],
    shares: Floats,
    alphas: Floats,
    scales: ErrorScales,
    advance: Advance,
) -> LeaveOutScores:
    """Predict each query from all others, for the dense dual."""
    assert isinstance(spectrum, RidgeSpectrum)
    e, largest, grain = spectrum.values, spectrum.scale, scales.similarities
    held, signs = LeaveOutScores.empty(len(t), len(alphas)), _signs(len(e))
    for (begin, end), share in zip(pairwise(starts), shares, strict=True):
        V, t_q = np.ascontiguousarray(spectrum.vectors[begin:end]), t[begin:end]
        shifts = spectrum.shifts((1.0 - share) * alphas)[:, None]
        kept, others = shifts / (e + shifts), spectrum.target - t_q @ V
        residual, from_others = V @ (kept * spectrum.target).T, V @ (e / (e + shifts) * others).T
        for some in _portions(len(alphas), V.size):
            R, probes = np.empty((some.stop - some.start, len(V), len(V))), []
            for index, row in enumerate(kept[some]):
                scaled = V * row
                np.matmul(scaled, V.T, out=R[index])
                probes.append(scaled @ signs)
            is_large = shifts[some, 0] > largest
            side = np.where(is_large, from_others[:, some], residual[:, some]).T[..., None]
            root, most_kept = np.sqrt(np.diagonal(R, axis1=1, axis2=2)), np.sqrt(kept[some].max(axis=1))
            unit = root[..., None] * signs[: len(V)]
            solved = _solve(R, np.concatenate([side, np.stack(probes), unit], axis=2))
            error = solved[:, :, 0]
            # the coefficients without the query are those of all minus the effect of its errors
            b = np.linalg.norm(kept[some] * (spectrum.target - error @ V), axis=1) / shifts[some, 0]
            through, own = _responses(solved[:, :, 1:])
            summed = most_kept * scales.targets + np.sum(root * np.abs(error), axis=1)
            noise = grain * through * b + own * summed + np.abs(t_q).max()
            # if λ is above every e, fitted values are as small as e / λ
            small = own * (2.0 * grain / shifts[some, 0] * scales.targets + np.linalg.norm(error, axis=1))
            held.values[begin:end, some] = np.where(is_large, error.T, t_q[:, None] - error.T)
            held.noise[begin:end, some] = UNIT * np.where(is_large, small, noise)
        advance(end - begin)
    return held


def queries_out(
    ridge: Ridge,
    Z: Floats,
    t: Floats,
    starts: NDArray[np.int64],
    shares: Floats,
    alphas: Floats,
    scales: ErrorScales,
) -> LeaveOutScores:
    """Predict each query from all others, for features."""
    A, root, held = ridge.transform(Z), np.sqrt(ridge.scale), LeaveOutScores.empty(len(t), len(alphas))
    signs = _signs(A.shape[1])
    for (begin, end), share in zip(pairwise(starts), shares, strict=True):
        A_q, t_q = A[begin:end], t[begin:end]
        n, k = A_q.shape
        shifts = ridge.shifts((1.0 - share) * alphas)
        others, length = ridge.target - t_q @ A_q, np.linalg.norm(A_q, axis=1).max()
        for some in _portions(len(alphas), n * k):
            if n > k or not isinstance(ridge, RidgeSpectrum):
                # with more rows than features, subtract the query from the sums
                rest = ridge.matrices(shifts[some]) - A_q.T @ A_q
                sides = np.column_stack([others, signs])
                solved = _solve(rest, np.broadcast_to(sides, (len(rest), *sides.shape)))
                w, predicted = solved[:, :, 0], A_q @ solved
                values, (response,) = predicted[:, :, 0], _responses(predicted[:, :, 1:])
                own = 1.0 + length * response
            else:
                e = ridge.values + shifts[some, None]
                scaled = A_q / e[:, None, :]
                # one product for all right-hand factors
                right = scaled @ np.column_stack([A_q.T, others, signs])
                unit = np.broadcast_to(signs[:n], (len(scaled), n, N_PROBES))
                solved = _solve(np.eye(n) - right[:, :, :n], np.concatenate([right[:, :, n:], unit], axis=2))
                values, (response, own) = solved[:, :, 0], _responses(solved[:, :, 1:])
                w = (others + values @ A_q) / e
            size = np.linalg.norm(w, axis=1)
            noise = root * response * (scales.targets + root * size) + own * (
                length * size + np.abs(values).sum(axis=1)
            )
            if scales.similarities > 0.0:
                left = scales.targets**2 - t_q @ t_q - w @ others
                left = np.sqrt(np.maximum(left, UNIT * scales.targets**2)) / shifts[some]
                noise += scales.of_features(response, size, root, np.sqrt(own) * left)
            held.values[begin:end, some], held.noise[begin:end, some] = values.T, UNIT * noise
    return held


def views_out(
    ridges: list[Ridge],
    Z: Floats,
    t: Floats,
    starts: NDArray[np.int64],
    shares: Floats,
    blocks: list[slice],
    alphas: Floats,
    scales: ErrorScales,
) -> list[LeaveOutScores]:
    """
    Predict each query from all others by the mean of several views.

    Leaving out a query removes its rows from every view: its design is block diagonal, M n_q rows of all features.
    """
    M, lengths = len(blocks), np.diff(starts)
    tall = np.zeros((M * len(Z), Z.shape[1]))
    # row i of view v in query q follows the M n rows of earlier queries and the v n_q of earlier views of q
    first = np.arange(len(Z)) + np.repeat((M - 1) * starts[:-1], lengths)
    places = [first + v * np.repeat(lengths, lengths) for v in range(M)]
    targets = np.empty(len(tall))
    for place, block in zip(places, blocks, strict=True):
        tall[place, block], targets[place] = Z[:, block], t
    scales = replace(scales, targets=np.sqrt(M) * scales.targets)
    held = (queries_out(ridge, tall, targets, M * starts, shares, alphas, scales) for ridge in ridges)
    return [
        LeaveOutScores(*(np.mean([part[place] for place in places], axis=0) for part in of_ridge)) for of_ridge in held
    ]


def rows_out(
    ridge: Ridge, A: Floats, alphas: Floats, scales: ErrorScales, length: float, is_dual: bool
) -> LeaveOutScores:
    """Predict rows outside the system from similarities (dense dual, times H) or features A, up to a constant."""
    A, held = A - A.mean(axis=0), LeaveOutScores.empty(len(A), len(alphas))
    grain, root = scales.similarities, np.sqrt(ridge.scale)
    for index, shift in enumerate(ridge.shifts(alphas)):
        through, w = ridge.times_inverse(A, shift), ridge.times_inverse(ridge.target, shift)
        response, size = np.linalg.norm(through, axis=1), float(np.linalg.norm(w))
        if is_dual:
            noise = (np.sqrt(grain * length) + grain * response) * size + response * scales.targets
        else:
            noise = root * response * (scales.targets + root * size) + np.linalg.norm(A, axis=1) * size
            rows = (np.sqrt(length / grain) + root * response) * scales.targets / shift if grain > 0.0 else response
            noise += scales.of_features(response, size, root, rows)
        held.values[:, index], held.noise[:, index] = A @ w, UNIT * noise
    return held


def _portions(n_alphas: int, size: int) -> list[slice]:
    step = max(1, _MAX_ENTRIES // max(size, 1))
    return [slice(start, min(start + step, n_alphas)) for start in range(0, n_alphas, step)]


def _signs(n: int) -> Floats:
    """Return right-hand sides of size one in every direction, which represent rounding errors."""
    return np.random.default_rng(0).choice([-1.0, 1.0], (n, N_PROBES))


def _responses(probes: Floats) -> list[Floats]:
    """Return the root mean square of the solutions of each group of `N_PROBES` right-hand sides, in the worst row."""
    m, n, _ = probes.shape
    squares = np.square(probes).reshape(m, n, -1, N_PROBES).sum(axis=3).max(axis=1)
    return list(np.sqrt(squares.T / N_PROBES))


def _solve(systems: Floats, sides: Floats) -> Floats:
    """Solve symmetric systems, by least squares if one is singular."""
    try:
        return np.asarray(np.linalg.solve(systems, sides), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.stack([np.linalg.lstsq(R, side, rcond=None)[0] for R, side in zip(systems, sides, strict=True)])


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
    """Bound the rounding errors of margins."""
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
