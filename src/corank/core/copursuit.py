"""Many small pursuits in two views that must agree on unscored rows, each whole, in one compiled loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import jit
from corank.core.pursuit import TINY, joint_best


class SmallPair(NamedTuple):
    """
    Many problems of one query each, over the rows of one catalogue, seen in two views.

    Attributes
    ----------
    rows : array of uint64
        Rows of the Gram matrices; problem b owns ``rows[starts[b]:starts[b + 1]]``, its scored rows first.
    starts : array of uint64, shape (B + 1,)
        Where problems begin.
    n_scored : array of uint64, shape (B,)
        Number of scored rows of each problem.
    y : array of float64
        Score of each entry of `rows`; not read for unscored ones.
    side : array of uint64
        0 or 1 for each entry of `rows`, the view whose dictionary holds it; 2 where both do.
    factor : array of float64, shape (B, 2)
        Weights of the problem's scored and unscored pairs: L = factor (n I − 1 1ᵀ).
    """

    rows: NDArray[np.uint64]
    starts: NDArray[np.uint64]
    n_scored: NDArray[np.uint64]
    y: NDArray[np.float64]
    side: NDArray[np.uint64]
    factor: NDArray[np.float64]


@jit
def _centred(K, rows, over, columns, factor, least):  # type: ignore[no-untyped-def]
    """
    H D and the squared norms of its columns, H = √(factor n) (I − 1 1ᵀ/n), HᵀH = L.

    D are the columns `columns` over the rows `over`. A norm below `least` times what it could be is set to 0.
    """
    n, N = len(over), len(columns)
    D = np.zeros((n, N))
    means, plain, squares = np.zeros(N), np.zeros(N), np.zeros(N)
    for i in range(np.uint64(n)):
        for j in range(np.uint64(N)):
            D[i, j] = K[rows[over[i]], rows[columns[j]]]
            means[j] += D[i, j] / n
            plain[j] += D[i, j] * D[i, j]
    root = np.sqrt(factor * n)
    for i in range(np.uint64(n)):
        for j in range(np.uint64(N)):
            D[i, j] = root * (D[i, j] - means[j])
            squares[j] += D[i, j] * D[i, j]
    for j in range(np.uint64(N)):
        if squares[j] <= max(least * root * root * plain[j], TINY):
            squares[j] = 0.0
    return D, squares


@jit
def _onto(D, r):  # type: ignore[no-untyped-def]
    out = np.zeros(D.shape[1])
    for i in range(np.uint64(D.shape[0])):
        for j in range(np.uint64(D.shape[1])):
            out[j] += r[i] * D[i, j]
    return out


@jit
def copursue_many(K1, K2, small, coupling, separate, tol, least, chosen, coefs, first, last):  # type: ignore[no-untyped-def]
    """
    Fit problems first..last-1 by the joint search of `corank.pursuit.coupled`.

    Parameters
    ----------
    K1, K2 : arrays of shape (N, N)
        Gram matrices of the views.
    small : SmallPair
        The problems.
    coupling : float
        ν.
    separate : bool
        Whether each view has its own residue and whole views must agree, rather than the terms of a step.
    tol : float
        A step that lowers J by no more than this share of its first value is not taken.
    least : float
        A column whose norm is a smaller share of what it could be is constant, up to rounding, and no candidate.
    chosen : array of int64, shape (B, P, 2)
        Receives row numbers of K, -1 after the last step.
    coefs : array of shape (B, P, 2)
        Receives coefficients, 0 after the last step.
    first, last : int
        The run of problems.
    """
    one = np.uint64(1)
    P = chosen.shape[1]
    for b in range(np.uint64(first), np.uint64(last)):
        begin, end = small.starts[b], small.starts[b + one]
        size, n = end - begin, small.n_scored[b]
        rows = small.rows[begin:end]
        every = np.arange(np.int64(size))
        scored, free = every[:n], every[n:]
        left = every[small.side[begin:end] != 1]
        right = every[small.side[begin:end] != 0]
        left = left[_centred(K1, rows, scored, left, small.factor[b, 0], least)[1] > 0.0]
        right = right[_centred(K2, rows, scored, right, small.factor[b, 0], least)[1] > 0.0]
        H1, g1 = _centred(K1, rows, scored, left, small.factor[b, 0], least)
        H2, g2 = _centred(K2, rows, scored, right, small.factor[b, 0], least)
        U1, u1 = _centred(K1, rows, free, left, small.factor[b, 1], 0.0)
        U2, u2 = _centred(K2, rows, free, right, small.factor[b, 1], 0.0)
        root1, root2 = np.sqrt(g1 + 2.0 * coupling * u1), np.sqrt(g2 + 2.0 * coupling * u2)
        r = np.empty(n)
        level = small.y[begin : begin + n].mean() if n > 0 else 0.0
        root = np.sqrt(small.factor[b, 0] * n)
        for i in range(n):
            r[i] = root * (small.y[begin + i] - level)
        J = 0.0
        for i in range(n):
            J += r[i] * r[i]
        cross = np.zeros((len(left), len(right)))
        for k in range(np.uint64(len(free))):
            for i in range(np.uint64(len(left))):
                a = 2.0 * coupling * U1[k, i] / root1[i]
                for j in range(np.uint64(len(right))):
                    cross[i, j] -= a * U2[k, j] / root2[j]
        chosen[b] = -1
        coefs[b] = 0.0
        r1, r2, gap = r, r.copy(), np.zeros(len(free))
        for p in range(P):
            if len(left) == 0 or len(right) == 0:
                break
            e1, e2 = _onto(H1, r1), _onto(H2, r2)
            if separate:
                e1 -= 2.0 * coupling * _onto(U1, gap)
                e2 += 2.0 * coupling * _onto(U2, gap)
            e1 /= root1
            e2 /= root2
            gain, at_i, at_j = joint_best(cross, e1, e2, 0, len(left))
            if not gain > 2.0 * tol * J:
                break
            x = cross[at_i, at_j]
            a1 = (e1[at_i] - x * e2[at_j]) / (1.0 - x * x) / root1[at_i]
            a2 = (e2[at_j] - x * e1[at_i]) / (1.0 - x * x) / root2[at_j]
            for i in range(n):
                move1, move2 = a1 * H1[i, at_i], a2 * H2[i, at_j]
                mean = 0.5 * (move1 + move2)
                r1[i] -= move1 if separate else mean
                r2[i] -= move2 if separate else mean
            for i in range(np.uint64(len(free))):
                gap[i] += a1 * U1[i, at_i] - a2 * U2[i, at_j]
            chosen[b, p, 0], chosen[b, p, 1] = rows[left[at_i]], rows[right[at_j]]
            coefs[b, p, 0], coefs[b, p, 1] = a1, a2


@jit
def coscore_many(K1, K2, chosen, coefs, rows, starts, out, first, last):  # type: ignore[no-untyped-def]
    """
    Write to ``out[i, p]`` the score of row i by the mean of the views after p steps of its problem, p = 0..P.

    Parameters
    ----------
    K1, K2 : arrays of shape (N, N)
        Gram matrices of the views.
    chosen, coefs : arrays
        From `copursue_many`.
    rows, starts : arrays of uint64
        Problem b scores ``rows[starts[b]:starts[b + 1]]``.
    out : array of shape (len(rows), P + 1)
        Receives the scores.
    first, last : int
        The run of problems.
    """
    one = np.uint64(1)
    for b in range(np.uint64(first), np.uint64(last)):
        for i in range(starts[b], starts[b + one]):
            f = 0.0
            out[i, 0] = 0.0
            for p in range(chosen.shape[1]):
                if chosen[b, p, 0] >= 0:
                    f += 0.5 * coefs[b, p, 0] * K1[rows[i], np.uint64(chosen[b, p, 0])]
                    f += 0.5 * coefs[b, p, 1] * K2[rows[i], np.uint64(chosen[b, p, 1])]
                out[i, p + 1] = f
