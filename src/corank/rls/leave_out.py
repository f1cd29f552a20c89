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
from corank.rls.spectrum import Ridge, Spectrum

Floats = NDArray[np.float64]
Advance = Callable[[int], Any]

# right sides that stand for rounding errors
N_PROBES = 4
# numbers in the matrices I − S_qq, and in the rows scaled for them, that are held at a time
_ROOM = 1 << 20


def dual_queries_out(
    spectrum: Ridge,
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
    assert isinstance(spectrum, Spectrum)
    e, most, grain = spectrum.values, spectrum.most, sizes.similarities
    held, signs = Held.empty(len(t), len(alphas)), _signs(len(e))
    for (begin, end), share in zip(pairwise(starts), shares, strict=True):
        V, t_q = np.ascontiguousarray(spectrum.vectors[begin:end]), t[begin:end]
        shifts = spectrum.shifts((1.0 - share) * alphas)[:, None]
        kept, others = shifts / (e + shifts), spectrum.target - t_q @ V
        residual, from_others = V @ (kept * spectrum.target).T, V @ (e / (e + shifts) * others).T
        for some in _portions(len(alphas), V.size):
            R, probes = np.empty((some.stop - some.start, len(V), len(V))), []
            for at, row in enumerate(kept[some]):
                scaled = V * row
                np.matmul(scaled, V.T, out=R[at])
                probes.append(scaled @ signs)
            is_large = shifts[some, 0] > most
            side = np.where(is_large, from_others[:, some], residual[:, some]).T[..., None]
            root, most_kept = np.sqrt(np.diagonal(R, axis1=1, axis2=2)), np.sqrt(kept[some].max(axis=1))
            unit = root[..., None] * signs[: len(V)]
            solved = _solve(R, np.concatenate([side, np.stack(probes), unit], axis=2))
            error = solved[:, :, 0]
            # the coefficients of the others are those of all less what the query's errors put into them
            b = np.linalg.norm(kept[some] * (spectrum.target - error @ V), axis=1) / shifts[some, 0]
            through, own = _seen(solved[:, :, 1:])
            summed = most_kept * sizes.targets + np.sum(root * np.abs(error), axis=1)
            noise = grain * through * b + own * summed + np.abs(t_q).max()
            # what is left of t where λ is above every e is as small as e / λ
            small = own * (2.0 * grain / shifts[some, 0] * sizes.targets + np.linalg.norm(error, axis=1))
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
    sizes: Sizes,
) -> Held:
    """
    Predict each query from all others, for features.

    ridge: of ZᵀZ (plus what else is penalised) and Zᵀt over all queries.
    Z, t (n, k): rows of some queries and their targets.
    starts: where each of these queries begins.
    shares: share of each of these queries in the weight of all pairs.
    alphas (m,): weights of the penalty.
    sizes: what rounding errors are relative to.
    Returns: H f, each query by the model that did not see it.
    """
    A, root, held = ridge.seen(Z), np.sqrt(ridge.most), Held.empty(len(t), len(alphas))
    signs = _signs(A.shape[1])
    for (begin, end), share in zip(pairwise(starts), shares, strict=True):
        A_q, t_q = A[begin:end], t[begin:end]
        n, k = A_q.shape
        shifts = ridge.shifts((1.0 - share) * alphas)
        others, length = ridge.target - t_q @ A_q, np.linalg.norm(A_q, axis=1).max()
        for some in _portions(len(alphas), n * k):
            if n > k or not isinstance(ridge, Spectrum):
                # with more rows than features, take the query out of the sums instead
                rest = ridge.matrices(shifts[some]) - A_q.T @ A_q
                sides = np.column_stack([others, signs])
                solved = _solve(rest, np.broadcast_to(sides, (len(rest), *sides.shape)))
                w, found = solved[:, :, 0], A_q @ solved
                values, (seen,) = found[:, :, 0], _seen(found[:, :, 1:])
                own = 1.0 + length * seen
            else:
                e = ridge.values + shifts[some, None]
                scaled = A_q / e[:, None, :]
                # one product for all that is multiplied from the right
                right = scaled @ np.column_stack([A_q.T, others, signs])
                unit = np.broadcast_to(signs[:n], (len(scaled), n, N_PROBES))
                solved = _solve(np.eye(n) - right[:, :, :n], np.concatenate([right[:, :, n:], unit], axis=2))
                values, (seen, own) = solved[:, :, 0], _seen(solved[:, :, 1:])
                w = (others + values @ A_q) / e
            size = np.linalg.norm(w, axis=1)
            noise = root * seen * (sizes.targets + root * size) + own * (length * size + np.abs(values).sum(axis=1))
            if sizes.similarities > 0.0:
                left = sizes.targets**2 - t_q @ t_q - w @ others
                left = np.sqrt(np.maximum(left, UNIT * sizes.targets**2)) / shifts[some]
                noise += sizes.similarities * np.sqrt(own) * left
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
    sizes: Sizes,
) -> list[Held]:
    """
    Predict each query from all others by the mean of several views.

    Leaving out a query takes its rows from every view: its design is block diagonal, M n_q rows of all features.

    ridges: of the whole system, one for each coupling.
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
    held = (queries_out(ridge, tall, targets, M * starts, shares, alphas, sizes) for ridge in ridges)
    return [Held(*(np.mean([part[place] for place in places], axis=0) for part in one)) for one in held]


def rows_out(ridge: Ridge, A: Floats, alphas: Floats, sizes: Sizes, length: float, is_dual: bool) -> Held:
    """
    Predict rows that a system does not hold, up to a constant.

    A (n, k): the rows as the system sees them: similarities to the rows of the dense dual (times H), or features.
    alphas (m,): weights of the penalty.
    sizes: what rounding errors are relative to.
    length: mean k(x, x) of similarities.
    Returns: f.
    """
    A, held, grain, root = A - A.mean(axis=0), Held.empty(len(A), len(alphas)), sizes.similarities, np.sqrt(ridge.most)
    for at, shift in enumerate(ridge.shifts(alphas)):
        through, w = ridge.through(A, shift), ridge.through(ridge.target, shift)
        seen, size = np.linalg.norm(through, axis=1), np.linalg.norm(w)
        if is_dual:
            noise = (np.sqrt(grain * length) + grain * seen) * size + seen * sizes.targets
        else:
            noise = root * seen * (sizes.targets + root * size) + np.linalg.norm(A, axis=1) * size
            noise += (np.sqrt(grain * length) + grain * root * seen) * sizes.targets / shift
        held.values[:, at], held.noise[:, at] = A @ w, UNIT * noise
    return held


def _portions(n_alphas: int, size: int) -> list[slice]:
    step = max(1, _ROOM // max(size, 1))
    return [slice(start, min(start + step, n_alphas)) for start in range(0, n_alphas, step)]


def _signs(n: int) -> Floats:
    """Right sides of size one in every direction: what a system makes of them, it makes of rounding errors."""
    return np.random.default_rng(0).choice([-1.0, 1.0], (n, N_PROBES))


def _seen(probes: Floats) -> list[Floats]:
    """What systems made of groups of `N_PROBES` right sides: the root mean square, in the row where it is most."""
    m, n, _ = probes.shape
    squares = np.square(probes).reshape(m, n, -1, N_PROBES).sum(axis=3).max(axis=1)
    return list(np.sqrt(squares.T / N_PROBES))


def _solve(systems: Floats, sides: Floats) -> Floats:
    """Solve symmetric systems; least squares where one is singular."""
    try:
        return np.asarray(np.linalg.solve(systems, sides), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.stack([np.linalg.lstsq(R, side, rcond=None)[0] for R, side in zip(systems, sides, strict=True)])
