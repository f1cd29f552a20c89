"""
Exact leave-pair-out for one query: every two of its rows predicted by the model that saw neither, without refitting.

Where all rows of the query are compared, L = s (diag(w) − w wᵀ/W) makes the system that of weighted least squares with
a free constant and the penalty λ/s; leaving out two rows is then a 2×2 system in I − S (see `corank.rls.leave_out`), at
the penalty that belongs to the s of the other rows. A margin is as accurate as said there, and below that a tie.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.rls.accuracy import UNIT, Sizes
from corank.rls.frame import RowFrame
from corank.rls.spectrum import Ridge, Spectrum

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Margins(NamedTuple):
    """
    f_i − f_j of many pairs, each without its two rows.

    values: the margins.
    errors (2, n): what the two rows' predictions miss of √w y.
    turned (2, n): what the margin makes of changes in the two right sides.
    grown: what it may make of rounding errors in the 2×2 system.
    """

    values: Floats
    errors: Floats
    turned: Floats
    grown: Floats


def pairs_out(ridge: Ridge, Z: Floats | None, frame: RowFrame, alphas: Floats, sizes: Sizes) -> Floats:
    """
    Disagreement error over pairs of rows of one query; O(n² k) for each λ and each different sum of two weights.

    ridge: of the whole system.
    Z (n, k): rows HΦ of the query; None for the dense dual.
    frame: the rows of the one query; those of equal score, if any, are compared too.
    alphas (m,): weights of the penalty.
    sizes: what rounding errors are relative to.
    Returns: the share of pairs of different scores that are ordered wrongly, a predicted tie counting ½; NaN without
        any.
    """
    w, y, root = frame.w, frame.y, np.sqrt(frame.w)
    i, j = np.nonzero(np.triu(y[:, None] != y))
    if not len(i):
        return np.full(len(alphas), np.nan)
    W, squares = w.sum() - (w[i] + w[j]), np.sum(w * w) - (w[i] ** 2 + w[j] ** 2)
    # s of a mean over the pairs of the other rows, with ties also those of a row with itself
    scales, group = np.unique(2.0 * W / (W**2 - (0.0 if frame.ties else squares)), return_inverse=True)
    better, known = np.sign(y[i] - y[j]), frame.prior[i] - frame.prior[j]
    y = y - frame.prior
    y = y - np.average(y, weights=w)
    if Z is None:
        assert isinstance(ridge, Spectrum)
        A, kept = ridge.vectors, ridge.values
    else:
        A, kept = ridge.seen(Z), np.ones(1)
    # H y = √s √w y: all that follows is of √w y
    size = float(np.sqrt(frame.L.scale[0]))
    target, sizes = ridge.target / size, replace(sizes, targets=sizes.targets / size)
    wrong = np.zeros(len(alphas))
    for g, scale in enumerate(scales):
        pairs = (i[group == g], j[group == g])
        for at, shift in enumerate(ridge.shifts(alphas * (frame.L.scale[0] / scale))):
            through = ridge.through(A, shift)
            if shift > ridge.largest:
                found = _small_margins((through * kept) @ A.T, y, root, *pairs)
            elif Z is None:
                found = _margins((through * shift) @ A.T, y, root, *pairs)
            else:
                found = _margins(np.eye(len(A)) - through @ A.T, y, root, *pairs)
            solution = float(np.linalg.norm(ridge.through(target, shift)))
            noise = _noise(ridge, through, solution, shift, found, pairs, sizes, Z is None)
            margin = (found.values + known[group == g]) * better[group == g]
            wrong[at] += np.where(np.abs(margin) <= noise, 0.5, margin < 0).sum()
    return wrong / len(i)


def _margins(R: Floats, y: Floats, root: Floats, i: Integers, j: Integers) -> Margins:
    """f_i − f_j without rows i and j, from R = I − S."""
    u = root / np.linalg.norm(root)
    # the constant is free: it leaves no residual
    R -= np.outer(R @ u, u)
    residual, diagonal = R @ (root * y), np.diag(R)
    # (R_TT)⁻¹ r_T for T = {i, j}: the errors of the two rows, times √w
    two = (diagonal[i], diagonal[j], R[i, j])
    error_i, error_j = _solve_two(*two, residual[i], residual[j])
    margin = (y[i] - error_i / root[i]) - (y[j] - error_j / root[j])
    return Margins(margin, np.stack([error_i, error_j]), *_turned(*two, root[i], root[j]))


def _small_margins(S: Floats, y: Floats, root: Floats, i: Integers, j: Integers) -> Margins:
    """
    Return f_i − f_j without rows i and j where λ is above every eigenvalue, and f hardly differs from a constant.

    The constant is m, the mean score of the other rows, and cancels: with z = √w (y − m), what is left of f in
    T = {i, j} is (I − u uᵀ − S)_TT⁻¹ ((S √w y)_T − S_TT z_T).
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
    """`turned` and `grown` of `Margins`."""
    turned = np.stack(_solve_two(a, b, c, 1.0 / root_i, -1.0 / root_j))
    return turned, np.abs(_solve_two(np.abs(a), np.abs(b), -np.abs(c), 1.0 / root_i, 1.0 / root_j)).sum(axis=0)


def _noise(
    ridge: Ridge,
    through: Floats,
    solution: float,
    shift: float,
    found: Margins,
    pairs: tuple[Integers, Integers],
    sizes: Sizes,
    is_dual: bool,
) -> Floats:
    """
    What margins may be wrong by, as `corank.rls.leave_out` has it, for two rows.

    through: the rows times (A + λI)⁻¹.
    solution: size of the solution for all rows.
    """
    (i, j), (p, q), (error_i, error_j), own = pairs, found.turned, np.abs(found.errors), found.grown
    root, missed = np.sqrt(ridge.most), error_i + error_j
    if shift > ridge.largest:
        grain = max(sizes.similarities, ridge.largest)
        return np.asarray(UNIT * own * (2.0 * grain / shift * sizes.targets + missed))
    P = through @ through.T
    length = np.sqrt(np.diag(P))
    seen = np.sqrt(np.maximum(p * p * P[i, i] + q * q * P[j, j] + 2.0 * p * q * P[i, j], 0.0))
    b = solution + length[i] * error_i + length[j] * error_j
    noise = own * (sizes.targets + missed)
    if is_dual:
        return np.asarray(UNIT * (noise + sizes.similarities * shift * seen * b))
    noise += root * seen * (sizes.targets + root * b)
    return np.asarray(UNIT * (noise + sizes.of_features(seen, b, root, np.sqrt(own) * sizes.targets / shift)))
