"""
Exact cross-validation without refitting: every query left out, or every pair of rows of a single query.

In the rows HΦ of the least-squares problem, Z with t = H y, the fitted values are S t, S = Z (ZᵀZ + λI)⁻¹ Zᵀ. Training
without the rows of q gives them the values t_q − (I − S_qq)⁻¹ (t − S t)_q. With ZᵀZ = V diag(e) Vᵀ and A = Z V,
S_qq = A_q diag(1/(e + λ)) A_qᵀ; in the dual, I − S = V diag(λ/(e + λ)) Vᵀ for the eigenvectors V of H K Hᵀ. So one
decomposition serves every query and every λ, at O(n_q² k) each. Where λ is above every e, the values are far smaller
than t_q and are computed as (I − S_qq)⁻¹ ((S t)_q − S_qq t_q) instead: the same numbers, without a difference that is
lost in rounding.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corank.errors import InputError
from corank.metrics import parse_metric
from corank.rls.frame import Frame, query_scale
from corank.rls.pair_frame import PairFrame
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
    is_large = shifts > spectrum.values.max()
    share = spectrum.values / (spectrum.values + shifts[is_large, None])
    kept = shifts[:, None] / (spectrum.values + shifts[:, None])
    residual = V @ (kept * spectrum.target).T
    held, from_others = np.empty_like(residual), np.zeros_like(residual)
    from_others[:, is_large] = V @ (share * spectrum.target).T
    for begin, end in pairwise(starts):
        V_q, t_q = np.ascontiguousarray(V[begin:end]), t[begin:end]
        from_others[begin:end, is_large] -= V_q @ (share * (t_q @ V_q)).T
        for some in _portions(len(shifts), V_q.size):
            R = np.stack([(V_q * row) @ V_q.T for row in kept[some]])
            held[begin:end, some] = _held(
                R, t_q, residual[begin:end, some], from_others[begin:end, some], is_large[some]
            )
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
    shifts = spectrum.shifts(alphas)
    e = spectrum.values + shifts[:, None]
    fitted = A @ spectrum.filtered(alphas)
    held, is_large = np.empty_like(fitted), shifts > spectrum.values.max(initial=0.0)
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
                own = A_q @ ((t_q @ A_q) / e[some]).T
                fitted_q = fitted[begin:end, some]
                held[begin:end, some] = _held(R, t_q, t_q[:, None] - fitted_q, fitted_q - own, is_large[some])
    return held


def views_out(
    spectra: list[Spectrum], Z: Floats, t: Floats, starts: NDArray[np.int64], blocks: list[slice], alphas: ArrayLike
) -> Floats:
    """
    Predict each query from all others by the mean of several views.

    Leaving out a query takes its rows from every view: its design is block diagonal, M n_q rows of all features.

    Parameters
    ----------
    spectra : list of Spectrum
        Of the whole system, one for each coupling.
    Z, t : arrays of shape (n, K) and (n,)
        Rows of some queries, the views' features side by side, and their targets.
    starts : array of int64
        Where each of these queries begins.
    blocks : list of slice
        Where the features of each view are.
    alphas : array-like of shape (m,)
        λ.

    Returns
    -------
    array of shape (n_couplings, n, m)
        H f, each query by the models that did not see it.
    """
    M, sizes = len(blocks), np.diff(starts)
    tall = np.zeros((M * len(Z), Z.shape[1]))
    # row i of view v in query q goes behind the M n of earlier queries and the v n_q of earlier views of q
    first = np.arange(len(Z)) + np.repeat((M - 1) * starts[:-1], sizes)
    places = [first + v * np.repeat(sizes, sizes) for v in range(M)]
    targets = np.empty(len(tall))
    for place, block in zip(places, blocks, strict=True):
        tall[place, block], targets[place] = Z[:, block], t
    held = (queries_out(spectrum, tall, targets, M * starts, alphas) for spectrum in spectra)
    return np.stack([np.mean([one[place] for place in places], axis=0) for one in held])


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
        The share of pairs of different scores that are ordered wrongly, a predicted tie counting ½; NaN without any.
    """
    w, y, root = frame.w, frame.y, np.sqrt(frame.w)
    i, j = np.nonzero(np.triu(y[:, None] != y))
    if not len(i):
        return np.full(np.shape(alphas), np.nan)
    rest = query_scale(w.sum() - (w[i] + w[j]), np.sum(w * w) - (w[i] ** 2 + w[j] ** 2), query_weight)
    scales, group = np.unique(rest, return_inverse=True)
    A = spectrum.vectors if Z is None else Z @ spectrum.vectors
    wrong = np.zeros(np.shape(alphas))
    for g, scale in enumerate(scales):
        pairs = (i[group == g], j[group == g])
        for at, shift in enumerate(spectrum.shifts(np.asarray(alphas) * (frame.scale[0] / scale))):
            if shift > spectrum.values.max(initial=0.0):
                S = (A * ((spectrum.values if Z is None else 1.0) / (spectrum.values + shift))) @ A.T
                margin = _small_margins(S, y, root, *pairs)
            elif Z is None:
                margin = _margins((A * (shift / (spectrum.values + shift))) @ A.T, y, root, *pairs)
            else:
                margin = _margins(np.eye(len(A)) - (A / (spectrum.values + shift)) @ A.T, y, root, *pairs)
            margin *= np.sign(y[pairs[0]] - y[pairs[1]])
            wrong[at] += np.count_nonzero(margin < 0) + np.count_nonzero(margin == 0) / 2
    return wrong / len(i)


def one_query(frame: Frame | PairFrame, metric: str) -> Frame:
    """
    Return the frame of a single query for `pairs_out`, or raise one sentence where that cannot choose among models.

    Parameters
    ----------
    frame : Frame or PairFrame
        What is compared, in one query.
    metric : str
        What is to choose.

    Returns
    -------
    Frame
        The same frame.
    """
    if not isinstance(frame, Frame) or str(parse_metric(metric)) != "disagreement":
        raise InputError(
            f"one query cannot be left out and predicted from others; metric={metric!r} needs two queries or more "
            "(with scores and one query, metric='disagreement' leaves out pairs of rows)."
        )
    if len(frame.y) < 4:
        raise InputError(
            f"leaving out pairs of rows needs four rows or more in the query, and it has {len(frame.y)}; pass alpha "
            "instead of alphas."
        )
    return frame


def _margins(R: Floats, y: Floats, root: Floats, i: NDArray[np.int64], j: NDArray[np.int64]) -> Floats:
    """f_i − f_j without rows i and j, from R = I − S."""
    u = root / np.linalg.norm(root)
    # the constant is free: it leaves no residual
    R -= np.outer(R @ u, u)
    residual, diagonal = R @ (root * y), np.diag(R)
    # (R_TT)⁻¹ r_T for T = {i, j}: the errors of the two rows, times √w
    error_i, error_j = _solve_two(diagonal[i], diagonal[j], R[i, j], residual[i], residual[j])
    return np.asarray((y[i] - error_i / root[i]) - (y[j] - error_j / root[j]))


def _small_margins(S: Floats, y: Floats, root: Floats, i: NDArray[np.int64], j: NDArray[np.int64]) -> Floats:
    """
    Return f_i − f_j without rows i and j where λ is above every eigenvalue, and f hardly differs from a constant.

    The constant is m, the mean score of the other rows, and cancels: with z = √w (y − m), what is left of f in
    T = {i, j} is (I − u uᵀ − S)_TT⁻¹ ((S √w y)_T − S_TT z_T).
    """
    u, w = root / np.linalg.norm(root), root * root
    y = y - np.average(y, weights=w)
    S -= np.outer(S @ u, u)
    fitted, diagonal, cross = S @ (root * y), np.diag(S), S[i, j]
    m = -(w[i] * y[i] + w[j] * y[j]) / (w.sum() - (w[i] + w[j]))
    z_i, z_j = root[i] * (y[i] - m), root[j] * (y[j] - m)
    side_i = fitted[i] - (diagonal[i] * z_i + cross * z_j)
    side_j = fitted[j] - (cross * z_i + diagonal[j] * z_j)
    kept = 1.0 - u * u - diagonal
    f_i, f_j = _solve_two(kept[i], kept[j], -u[i] * u[j] - cross, side_i, side_j)
    return np.asarray(f_i / root[i] - f_j / root[j])


def _solve_two(a: Floats, b: Floats, c: Floats, side_i: Floats, side_j: Floats) -> tuple[Floats, Floats]:
    """Solve [[a, c], [c, b]] x = side for many pairs."""
    determinant = a * b - c * c
    return (b * side_i - c * side_j) / determinant, (a * side_j - c * side_i) / determinant


def _held(R: Floats, t: Floats, residual: Floats, from_others: Floats, is_large: NDArray[np.bool_]) -> Floats:
    """Values of a query that was left out, for R = I − S_qq of each λ; the second form where λ is large."""
    solved = _solve(R, np.where(is_large, from_others, -residual))
    return np.asarray(np.where(is_large, solved, t[:, None] + solved))


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
