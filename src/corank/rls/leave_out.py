"""
Exact cross-validation without refitting: every query left out, or every pair of rows of a single query.

In the rows HΦ of the least-squares problem, Z with t = H y, the fitted values are S t, S = Z (ZᵀZ + λI)⁻¹ Zᵀ. Training
without the rows of q gives them the values t_q − (I − S_qq)⁻¹ (t − S t)_q. With ZᵀZ = V diag(e) Vᵀ and A = Z V,
S_qq = A_q diag(1/(e + λ)) A_qᵀ; in the dual, I − S = V diag(λ/(e + λ)) Vᵀ for the eigenvectors V of H K Hᵀ. So one
decomposition serves every query and every λ, at O(n_q² k) each. Where λ is above every e, the values are far smaller
than t_q and are computed as (I − S_qq)⁻¹ ((S t)_q − S_qq t_q) instead: the same numbers, without a difference that is
lost in rounding.

The loss is a mean over pairs. Without a query that holds a share s of their weight the others weigh 1/(1 − s) more, so
that the model which alpha belongs to is that of λ = (1 − s) alpha beside sums that stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.rls.accuracy import UNIT, Held, Sizes
from corank.rls.frame import RowFrame
from corank.rls.spectrum import Spectrum

Floats = NDArray[np.float64]
Advance = Callable[[int], Any]

# right sides of size one in every direction: what a system makes of them, it makes of rounding errors
N_PROBES = 8
SIGNS = np.random.default_rng(0).choice([-1.0, 1.0], 1013)
# numbers in the matrices I − S_qq, and in the rows scaled for them, that are held at a time
_ROOM = 1 << 20


def dual_queries_out(
    spectrum: Spectrum,
    t: Floats,
    starts: NDArray[np.int64],
    shares: Floats,
    alphas: Floats,
    sizes: Sizes,
    advance: Advance,
) -> Held:
    """
    Predict each query from all others, for the dense dual.

    spectrum: of H K Hᵀ (made positive along the constants of each query) and t.
    t (n,): H y.
    starts (n_queries + 1,): where each query begins.
    shares (n_queries,): share of each query in the weight of all pairs.
    alphas (m,): weights of the penalty.
    sizes: what rounding errors are relative to.
    advance: is told how many rows are done.
    Returns: H f, each query by the model that did not see it.
    """
    e, most, grain = spectrum.values, spectrum.values.max(initial=0.0), sizes.similarities
    held = Held(np.empty((len(t), len(alphas))), np.empty((len(t), len(alphas))))
    for (begin, end), share in zip(pairwise(starts), shares, strict=True):
        V, t_q = np.ascontiguousarray(spectrum.vectors[begin:end]), t[begin:end]
        shifts = spectrum.shifts((1.0 - share) * alphas)[:, None]
        kept, others = shifts / (e + shifts), spectrum.target - t_q @ V
        residual, from_others = V @ (kept * spectrum.target).T, V @ (e / (e + shifts) * others).T
        for some in _portions(len(alphas), V.size):
            scaled = V * kept[some, None, :]
            R = scaled @ V.T
            inverse = _inverse(R)
            error = _apply(inverse, residual[:, some])
            # the coefficients of the others are those of all less what the query's errors put into them
            b = np.linalg.norm(kept[some] * (spectrum.target - error.T @ V), axis=1) / shifts[some, 0]
            through = np.linalg.norm(inverse @ scaled, axis=2).T
            root = np.sqrt(np.diagonal(R, axis1=1, axis2=2)).T
            summed = root * (sizes.targets + np.sum(root * np.abs(error), axis=0))
            noise = grain * through * b + _apply(np.abs(inverse), summed) + np.abs(t_q)[:, None]
            small = _apply(inverse, from_others[:, some])
            # what is left of t where λ is above every e is as small as e / λ
            least = 2.0 * grain / shifts[some, 0] * sizes.targets + np.linalg.norm(small, axis=0)
            is_large = shifts[some, 0] > most
            held.values[begin:end, some] = np.where(is_large, small, t_q[:, None] - error)
            held.noise[begin:end, some] = UNIT * np.where(is_large, np.abs(inverse).sum(axis=2).T * least, noise)
        advance(end - begin)
    return held


def queries_out(
    spectrum: Spectrum,
    Z: Floats,
    t: Floats,
    starts: NDArray[np.int64],
    shares: Floats,
    alphas: Floats,
    sizes: Sizes,
) -> Held:
    """
    Predict each query from all others, for features.

    spectrum: of ZᵀZ (plus what else is penalised) and Zᵀt over all queries.
    Z, t (n, k): rows of some queries and their targets.
    starts: where each of these queries begins.
    shares: share of each of these queries in the weight of all pairs.
    alphas (m,): weights of the penalty.
    sizes: what rounding errors are relative to.
    Returns: H f, each query by the model that did not see it.
    """
    A, root = Z @ spectrum.vectors, np.sqrt(spectrum.values.max(initial=0.0))
    held = Held(np.empty((len(t), len(alphas))), np.empty((len(t), len(alphas))))
    for (begin, end), share in zip(pairwise(starts), shares, strict=True):
        A_q, t_q = A[begin:end], t[begin:end]
        n, k = A_q.shape
        shifts = spectrum.shifts((1.0 - share) * alphas)[:, None]
        e, others, length = spectrum.values + shifts, spectrum.target - t_q @ A_q, np.linalg.norm(A_q, axis=1)[:, None]
        for some in _portions(len(alphas), n * k):
            if n > k:
                # with more rows than features, take the query out of the sums instead
                rest = np.eye(k) * e[some, None, :] - A_q.T @ A_q
                probes = SIGNS.take(np.arange(k * N_PROBES), mode="wrap").reshape(k, N_PROBES)
                sides = np.broadcast_to(np.column_stack([others, probes]), (len(rest), k, 1 + N_PROBES))
                solved = _solve(rest, sides)
                w, found = solved[:, :, 0], A_q @ solved
                values, seen = found[:, :, 0].T, np.sqrt(np.mean(found[:, :, 1:] ** 2, axis=2)).T
                noise, known = 0.0, 1.0 + length * seen
            else:
                scaled = A_q / e[some, None, :]
                inverse = _inverse(np.eye(n) - scaled @ A_q.T)
                w = others / e[some]
                noise = _apply(np.abs(inverse), np.abs(A_q) @ np.abs(w).T)
                values = _apply(inverse, A_q @ w.T)
                noise += _apply(np.abs(inverse), np.broadcast_to(np.sum(np.abs(values), axis=0), values.shape))
                w, seen = w + values.T @ A_q / e[some], np.linalg.norm(inverse @ scaled, axis=2).T
                known = np.diagonal(inverse, axis1=1, axis2=2).T - shifts[some, 0] * seen**2
            size = np.linalg.norm(w, axis=1)
            noise = noise + root * seen * (sizes.targets + root * size) + length * size
            if sizes.similarities > 0.0:
                left = sizes.targets**2 - t_q @ t_q - w @ others - shifts[some, 0] * size**2
                left = np.sqrt(np.maximum(left, UNIT * sizes.targets**2)) / shifts[some, 0]
                noise = noise + sizes.similarities * np.sqrt(np.maximum(known, 1.0)) * left
            held.values[begin:end, some] = values
            held.noise[begin:end, some] = UNIT * noise
    return held


def views_out(
    spectra: list[Spectrum],
    Z: Floats,
    t: Floats,
    starts: NDArray[np.int64],
    shares: Floats,
    blocks: list[slice],
    alphas: Floats,
    sizes: Sizes,
) -> list[Held]:
    """
    Predict each query from all others by the mean of several views.

    Leaving out a query takes its rows from every view: its design is block diagonal, M n_q rows of all features.

    spectra: of the whole system, one for each coupling.
    Z, t (n, K): rows of some queries, the views' features side by side, and their targets.
    starts: where each of these queries begins.
    shares: share of each of these queries in the weight of all pairs.
    blocks: where the features of each view are.
    alphas (m,): weights of the penalty.
    sizes: what rounding errors are relative to.
    Returns: H f, each query by the models that did not see it.
    """
    M, lengths = len(blocks), np.diff(starts)
    tall = np.zeros((M * len(Z), Z.shape[1]))
    # row i of view v in query q goes behind the M n of earlier queries and the v n_q of earlier views of q
    first = np.arange(len(Z)) + np.repeat((M - 1) * starts[:-1], lengths)
    places = [first + v * np.repeat(lengths, lengths) for v in range(M)]
    targets = np.empty(len(tall))
    for place, block in zip(places, blocks, strict=True):
        tall[place, block], targets[place] = Z[:, block], t
    sizes = replace(sizes, targets=np.sqrt(M) * sizes.targets)
    held = (queries_out(spectrum, tall, targets, M * starts, shares, alphas, sizes) for spectrum in spectra)
    return [Held(*(np.mean([part[place] for place in places], axis=0) for part in one)) for one in held]


def pairs_out(spectrum: Spectrum, Z: Floats | None, frame: RowFrame, alphas: Floats) -> Floats:
    """
    Disagreement error over pairs of rows of one query, each pair predicted by the model that saw neither row.

    Where all rows of the query are compared, L = s (diag(w) − w wᵀ/W) makes the system that of weighted least squares
    with a free constant and the penalty λ/s; leaving out two rows is then a 2×2 system in I − S, at the penalty that
    belongs to the s of the other rows. O(n² k) for each λ and each different sum of two weights.

    spectrum: of the whole system.
    Z (n, k): rows HΦ of the query; None for the dense dual.
    frame: the rows of the one query; those of equal score, if any, are compared too.
    alphas (m,): weights of the penalty.
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
    A = spectrum.vectors if Z is None else Z @ spectrum.vectors
    wrong = np.zeros(len(alphas))
    for g, scale in enumerate(scales):
        pairs = (i[group == g], j[group == g])
        for at, shift in enumerate(spectrum.shifts(alphas * (frame.L.scale[0] / scale))):
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


def _portions(n_alphas: int, size: int) -> list[slice]:
    step = max(1, _ROOM // max(size, 1))
    return [slice(start, min(start + step, n_alphas)) for start in range(0, n_alphas, step)]


def _inverse(systems: Floats) -> Floats:
    """Invert matrices; those that are singular, as least squares does."""
    try:
        return np.linalg.inv(systems)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(systems, hermitian=True)


def _apply(matrices: Floats, columns: Floats) -> Floats:
    """Multiply one matrix with each column."""
    return np.asarray((matrices @ columns.T[..., None])[..., 0].T)


def _solve(systems: Floats, sides: Floats) -> Floats:
    """Solve symmetric systems; least squares where one is singular."""
    try:
        return np.asarray(np.linalg.solve(systems, sides), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.stack([np.linalg.lstsq(R, side, rcond=None)[0] for R, side in zip(systems, sides, strict=True)])
