"""Kernels of many small pursuits in two views that must agree on unscored rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import jit, relaxed
from corank.core.models.pursuit import TINY
from corank.core.rows.access_code import prefetch


class SmallTwoViewProblems(NamedTuple):
    """
    Many problems of one query each, over the rows of one catalogue, in two views.

    rows: rows of the Gram matrices; problem b has ``rows[starts[b]:starts[b + 1]]``, its scored rows first.
    starts (B + 1,): first entry of each problem.
    n_scored (B,): number of scored rows of each problem.
    y: score of each entry of `rows`; not read for unscored ones.
    side: 0 or 1 for each entry of `rows`, the view whose dictionary contains it; 2 for both.
    factor (B, 2): weights of the problem's scored and unscored pairs: L = factor (n I − 1 1ᵀ).
    """

    rows: NDArray[np.uint64]
    starts: NDArray[np.uint64]
    n_scored: NDArray[np.uint64]
    y: NDArray[np.float64]
    side: NDArray[np.uint64]
    factor: NDArray[np.float64]


@jit
def _centred(K, rows, over, columns, factor):  # type: ignore[no-untyped-def]
    """
    Return H D, and the squared norms of the columns of H D and of D; H = √(factor n) (I − 1 1ᵀ/n), HᵀH = L.

    D are the columns `columns` over the rows `over`.
    """
    n, N = len(over), len(columns)
    D = np.zeros((n, N))
    means, plain, squares = np.zeros(N), np.zeros(N), np.zeros(N)
    width = np.uint64(K.shape[1])
    for i in range(np.uint64(n)):
        # rows of a large catalogue are far apart in memory: prefetch the next one
        ahead = rows[over[min(i + np.uint64(1), np.uint64(n - 1))]] * width
        for j in range(np.uint64(N)):
            D[i, j] = K[rows[over[i]], rows[columns[j]]]
            means[j] += D[i, j] / n
            plain[j] += D[i, j] * D[i, j]
            prefetch(K, ahead + rows[columns[j]])
    root = np.sqrt(factor * n)
    for i in range(np.uint64(n)):
        for j in range(np.uint64(N)):
            D[i, j] = root * (D[i, j] - means[j])
            squares[j] += D[i, j] * D[i, j]
    return D, squares, plain


@jit
def _view(K, rows, scored, free, columns, factor, coupling, least):  # type: ignore[no-untyped-def]
    """
    Prepare the dictionary of a view: rows of its usable columns, H D and Û D̄ over their roots, the roots, and shares.

    The roots are those of the diagonal B + C of the system; the share is that of B, which bounds the determinant. A
    view without a usable column has one column of zeros, with row −1.
    """
    n = len(scored)
    H, g, plain = _centred(K, rows, scored, columns, factor[0])
    usable = g > np.maximum(least * factor[0] * n * plain, TINY)
    if not usable.any():
        return np.full(1, -1), np.zeros((n, 1)), np.zeros((len(free), 1)), np.ones(1), np.ones(1)
    columns = columns[usable]
    H, g = H[:, usable], g[usable]
    U, u, _ = _centred(K, rows, free, columns, factor[1])
    roots = np.sqrt(g + 2.0 * coupling * u)
    return columns, H / roots, U / roots, roots, g / (roots * roots)


@jit
def _onto(D, r):  # type: ignore[no-untyped-def]
    out = np.zeros(D.shape[1])
    for i in range(np.uint64(D.shape[0])):
        for j in range(np.uint64(D.shape[1])):
            out[j] += r[i] * D[i, j]
    return out


@relaxed("nnan", "nsz", "reassoc", "contract")
def _row_top(x, inverse, e, twice, square):  # type: ignore[no-untyped-def]
    """Return the largest value of a row of the search."""
    top = 0.0
    for j in range(len(e)):
        value = (square + e[j] * (e[j] - twice * x[j])) * inverse[j]
        top = max(top, value)
    return top


@jit
def _search(cross, inverse, e1, e2):  # type: ignore[no-untyped-def]
    """Like `joint_best`, with 1/(1 − x²) precomputed, which is faster if the same grid is searched many times."""
    top, best, at_i, at_j = 0.0, 0.0, 0, 0
    for i in range(len(e1)):
        value = _row_top(cross[i], inverse[i], e2, 2.0 * e1[i], e1[i] * e1[i])
        if value > top:
            top, at_i = value, i
    for j in range(len(e2)):
        value = (e1[at_i] ** 2 + e2[j] * (e2[j] - 2.0 * e1[at_i] * cross[at_i, j])) * inverse[at_i, j]
        if value > best:
            best, at_j = value, j
    return best, at_i, at_j


@jit
def copursue_many(K1, K2, small, coupling, separate, tol, least, chosen, coefs, first, last):  # type: ignore[no-untyped-def]
    """
    Fit problems first..last-1 by the joint search of `corank.models.pursuit.coupled`.

    K1, K2 (N, N): Gram matrices of the views.
    small: the problems.
    coupling: ν.
    separate: whether each view has its own residual and whole views must agree, rather than the terms of a step.
    tol: a step that lowers J by at most this share of its initial value is not taken.
    least: share of its upper bound that a column's squared norm must exceed; others are constant up to rounding.
    chosen (B, P, 2): receives row numbers of K, -1 after the last step and in a view without a candidate.
    coefs (B, P, 2): receives coefficients, 0 after the last step.
    first, last: the range of problems.
    """
    item = np.uint64(1)
    for b in range(np.uint64(first), np.uint64(last)):
        begin, end = small.starts[b], small.starts[b + item]
        n = np.int64(small.n_scored[b])
        rows, side, factor = small.rows[begin:end], small.side[begin:end], small.factor[b]
        every = np.arange(np.int64(end - begin))
        scored, free = every[:n], every[n:]
        chosen[b] = -1
        coefs[b] = 0.0
        if n < 2:
            continue
        left, H1, U1, root1, b1 = _view(K1, rows, scored, free, every[side != 1], factor, coupling, least)
        right, H2, U2, root2, b2 = _view(K2, rows, scored, free, every[side != 0], factor, coupling, least)
        y = small.y[begin : begin + np.uint64(n)]
        r1 = np.sqrt(factor[0] * n) * (y - y.mean())
        J = np.dot(r1, r1)
        r2, gap = r1.copy(), np.zeros(len(free))
        cross = -2.0 * coupling * np.dot(U1.T, U2)
        inverse = np.empty_like(cross)
        for i in range(len(left)):
            for j in range(len(right)):
                # in exact arithmetic the determinant is at least 1 - (1 - b1) (1 - b2)
                bound = b1[i] + b2[j] - b1[i] * b2[j]
                inverse[i, j] = 1.0 / max(1.0 - cross[i, j] * cross[i, j], bound)
        for p in range(chosen.shape[1]):
            e1, e2 = _onto(H1, r1), _onto(H2, r2)
            if separate:
                e1 -= 2.0 * coupling * _onto(U1, gap)
                e2 += 2.0 * coupling * _onto(U2, gap)
            gain, at_i, at_j = _search(cross, inverse, e1, e2)
            if not gain > 2.0 * tol * J:
                break
            x, over = cross[at_i, at_j], inverse[at_i, at_j]
            t1, t2 = (e1[at_i] - x * e2[at_j]) * over, (e2[at_j] - x * e1[at_i]) * over
            for i in range(n):
                move1, move2 = t1 * H1[i, at_i], t2 * H2[i, at_j]
                mean = 0.5 * (move1 + move2)
                r1[i] -= move1 if separate else mean
                r2[i] -= move2 if separate else mean
            for i in range(len(free)):
                gap[i] += t1 * U1[i, at_i] - t2 * U2[i, at_j]
            if left[at_i] >= 0:
                chosen[b, p, 0], coefs[b, p, 0] = rows[left[at_i]], t1 / root1[at_i]
            if right[at_j] >= 0:
                chosen[b, p, 1], coefs[b, p, 1] = rows[right[at_j]], t2 / root2[at_j]


@jit
def coscore_many(K1, K2, chosen, coefs, rows, starts, out, first, last):  # type: ignore[no-untyped-def]
    """
    Write to ``out[i, p]`` the score of row i by the mean of the views after p steps of its problem, p = 0..P.

    K1, K2 (N, N): Gram matrices of the views.
    chosen, coefs: from `copursue_many`.
    rows, starts: problem b scores ``rows[starts[b]:starts[b + 1]]``.
    out (len(rows), P + 1): receives the scores.
    first, last: the range of problems.
    """
    item = np.uint64(1)
    for b in range(np.uint64(first), np.uint64(last)):
        for i in range(starts[b], starts[b + item]):
            f = 0.0
            out[i, 0] = 0.0
            for p in range(chosen.shape[1]):
                if chosen[b, p, 0] >= 0:
                    f += 0.5 * coefs[b, p, 0] * K1[rows[i], np.uint64(chosen[b, p, 0])]
                if chosen[b, p, 1] >= 0:
                    f += 0.5 * coefs[b, p, 1] * K2[rows[i], np.uint64(chosen[b, p, 1])]
                out[i, p + 1] = f
