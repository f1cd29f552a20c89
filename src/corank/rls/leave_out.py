"""
Exact cross-validation without refitting: every query left out, or every pair of rows of a single query.

In the rows HΦ of the least-squares problem, Z with t = H y, the fitted values are S t, S = Z (ZᵀZ + λI)⁻¹ Zᵀ. Training
without the rows of q gives them the values t_q − (I − S_qq)⁻¹ (t − S t)_q. With ZᵀZ = V diag(e) Vᵀ and A = Z V,
S_qq = A_q diag(1/(e + λ)) A_qᵀ; in the dual, I − S = V diag(λ/(e + λ)) Vᵀ for the eigenvectors V of H K Hᵀ. So one
decomposition serves every query and every λ, at O(n_q² k) each.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.rls.frame import Frame, query_scale
from corank.rls.spectrum import Spectrum

Floats = NDArray[np.float64]

# numbers in the matrices I − S_qq, and in the rows scaled for them, that are held at a time
_ROOM = 1 << 20


def dual_queries_out(spectrum: Spectrum, t: Floats, starts: NDArray[np.int64], alphas: ArrayLike) -> Floats:
    """
    Predict each query from all others, for the dense dual.

    Parameters
    ----------
    spectrum : Spectrum
        Of H K Hᵀ (made positive along the constants of each query) and t.
    t : array of shape (n,)
        H y.
    starts : array of int64, shape (n_queries + 1,)
        Where each query begins.
    alphas : array-like of shape (m,)
        λ.

    Returns
    -------
    array of shape (n, m)
        H f, each query by the model that did not see it.
    """
    shifts = spectrum.shifts(alphas)
    V = spectrum.vectors
    kept = shifts[:, None] / (spectrum.values + shifts[:, None])
    residual = V @ (kept * spectrum.target).T
    held = np.empty_like(residual)
    for begin, end in pairwise(starts):
        V_q = np.ascontiguousarray(V[begin:end])
        for some in _portions(len(shifts), V_q.size):
            R = np.stack([(V_q * row) @ V_q.T for row in kept[some]])
            held[begin:end, some] = t[begin:end, None] - _solve(R, residual[begin:end, some])
    return held


def queries_out(spectrum: Spectrum, Z: Floats, t: Floats, starts: NDArray[np.int64], alphas: ArrayLike) -> Floats:
    """
    Predict each query from all others, for features.

    Parameters
    ----------
    spectrum : Spectrum
        Of ZᵀZ (plus what else is penalised) and Zᵀt over all queries.
    Z, t : arrays of shape (n, k) and (n,)
        Rows of some queries and their targets.
    starts : array of int64
        Where each of these queries begins.
    alphas : array-like of shape (m,)
        λ.

    Returns
    -------
    array of shape (n, m)
        H f, each query by the model that did not see it.
    """
    A = Z @ spectrum.vectors
    e = spectrum.values + spectrum.shifts(alphas)[:, None]
    fitted = A @ spectrum.filtered(alphas)
    held = np.empty_like(fitted)
    for begin, end in pairwise(starts):
        A_q, t_q = A[begin:end], t[begin:end]
        n, k = A_q.shape
        for some in _portions(len(e), n * k):
            if n > k:
                # with more rows than features, take the query out of the sums instead
                rest = np.eye(k) * e[some, None, :] - A_q.T @ A_q
                side = (spectrum.target - A_q.T @ t_q)[:, None] * np.ones(len(rest))
                held[begin:end, some] = A_q @ _solve(rest, side)
            else:
                R = np.eye(n) - (A_q / e[some, None, :]) @ A_q.T
                held[begin:end, some] = t_q[:, None] - _solve(R, t_q[:, None] - fitted[begin:end, some])
    return held


def pairs_out(spectrum: Spectrum, Z: Floats | None, frame: Frame, alphas: ArrayLike, query_weight: str) -> Floats:
    """
    Disagreement error over pairs of rows of one query, each pair predicted by the model that saw neither row.

    L = s (diag(w) − w wᵀ/W) makes the system that of weighted least squares with a free constant and the penalty λ/s;
    leaving out two rows is then a 2×2 system in I − S, at the penalty that belongs to the s of the other rows. O(n² k)
    for each λ and each different sum of two weights.

    Parameters
    ----------
    spectrum : Spectrum
        Of the whole system.
    Z : array of shape (n, k), or None
        Rows HΦ of the query; None for the dense dual.
    frame : Frame
        The rows of the one query.
    alphas : array-like of shape (m,)
        λ.
    query_weight : {"pairs", "equal", "rows"}
        What s depends on.

    Returns
    -------
    array of shape (m,)
        The share of pairs of different scores that are ordered wrongly, a predicted tie counting ½.
    """
    w, y = frame.w, frame.y
    i, j = np.nonzero(np.triu(y[:, None] != y))
    rest = query_scale(w.sum() - (w[i] + w[j]), np.sum(w * w) - (w[i] ** 2 + w[j] ** 2), query_weight)
    scales, group = np.unique(rest, return_inverse=True)
    A = spectrum.vectors if Z is None else Z @ spectrum.vectors
    wrong = np.zeros(np.shape(alphas))
    for g, scale in enumerate(scales):
        pairs = (i[group == g], j[group == g])
        for at, shift in enumerate(spectrum.shifts(np.asarray(alphas) * (frame.scale[0] / scale))):
            R = (A * (shift / (spectrum.values + shift))) @ A.T if Z is None else (A / (spectrum.values + shift)) @ -A.T
            if Z is not None:
                R[np.diag_indices_from(R)] += 1.0
            wrong[at] += _wrong_pairs(R, y, np.sqrt(w), *pairs)
    return wrong / len(i)


def _wrong_pairs(R: Floats, y: Floats, root: Floats, i: NDArray[np.int64], j: NDArray[np.int64]) -> float:
    u = root / np.linalg.norm(root)
    # the constant is free: it leaves no residual
    R -= np.outer(R @ u, u)
    residual, diagonal = R @ (root * y), np.diag(R)
    a, b, c = diagonal[i], diagonal[j], R[i, j]
    # (R_TT)⁻¹ r_T for T = {i, j}: the errors of the two rows, times √w
    error_i = (b * residual[i] - c * residual[j]) / (a * b - c * c)
    error_j = (a * residual[j] - c * residual[i]) / (a * b - c * c)
    margin = ((y[i] - error_i / root[i]) - (y[j] - error_j / root[j])) * np.sign(y[i] - y[j])
    return float(np.count_nonzero(margin < 0) + np.count_nonzero(margin == 0) / 2)


def _portions(n_alphas: int, size: int) -> list[slice]:
    step = max(1, _ROOM // max(size, 1))
    return [slice(start, min(start + step, n_alphas)) for start in range(0, n_alphas, step)]


def _solve(systems: Floats, sides: Floats) -> Floats:
    """Solve one symmetric system for each column of `sides`; least squares where one is singular."""
    try:
        return np.asarray(np.linalg.solve(systems, sides.T[..., None])[..., 0].T, dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.stack(
            [np.linalg.lstsq(R, side, rcond=None)[0] for R, side in zip(systems, sides.T, strict=True)], axis=1
        )
