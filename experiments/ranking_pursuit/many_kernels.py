"""Kernels of many small pursuits in one loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corank.core.jit import jit
from corank.core.models.pursuit import TINY

BASIC = 0
"""Earlier coefficients do not change."""
BACK = 1
"""All coefficients are refitted after each choice."""
PRE = 2
"""The choice maximises the decrease after refitting."""


class SmallProblems(NamedTuple):
    """
    Many problems of one query each, over the rows of one Gram matrix.

    rows: rows of the Gram matrix; problem b has ``rows[starts[b]:starts[b + 1]]``, which are also its dictionary.
    starts (B + 1,): first entry of each problem.
    y: score of each entry of `rows`.
    mix: β; problem b has L̃ = β I + factor_b (n_b I − 1 1ᵀ).
    factor (B,): (1 − β) times the weight of the problem's pairs.
    """

    rows: NDArray[np.uint64]
    starts: NDArray[np.uint64]
    y: NDArray[np.float64]
    mix: float
    factor: NDArray[np.float64]


@jit
def _weigh(u, out, mix, factor):  # type: ignore[no-untyped-def]
    """Write L̃ u to `out`."""
    mean = 0.0
    for i in range(np.uint64(len(u))):
        mean += u[i]
    mean /= len(u)
    spread = factor * len(u)
    for i in range(np.uint64(len(u))):
        out[i] = mix * u[i] + spread * (u[i] - mean)


@jit
def _transposed(D, v, out):  # type: ignore[no-untyped-def]
    """Write Dᵀ v to `out`, row by row, so that the loop vectorises."""
    out[:] = 0.0
    for i in range(np.uint64(D.shape[0])):
        a = v[i]
        for j in range(np.uint64(D.shape[1])):
            out[j] += a * D[i, j]


@jit
def _dot(u, v):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(np.uint64(len(u))):
        total += u[i] * v[i]
    return total


@jit
def _squares(D, mix, factor, least, out):  # type: ignore[no-untyped-def]
    """Write kᵀL̃k of each column; 0 if it is below `least` times its upper bound."""
    n = D.shape[0]
    means = np.zeros(D.shape[1])
    plain = np.zeros(D.shape[1])
    centred = np.zeros(D.shape[1])
    for i in range(np.uint64(n)):
        for j in range(np.uint64(D.shape[1])):
            means[j] += D[i, j] / n
            plain[j] += D[i, j] * D[i, j]
    for i in range(np.uint64(n)):
        for j in range(np.uint64(D.shape[1])):
            centred[j] += (D[i, j] - means[j]) ** 2
    for j in range(np.uint64(D.shape[1])):
        square = mix * plain[j] + factor * n * centred[j]
        out[j] = square if square > max(least * (mix + factor * n) * plain[j], TINY) else 0.0


@jit
def _best(c, squares, below, usable):  # type: ignore[no-untyped-def]
    """Return the column with the largest c²/below among those with usable > 0, and that value; -1 if there is none."""
    index, top = -1, 0.0
    for j in range(len(c)):
        if usable[j] > 0.0 and squares[j] > 0.0:
            score = c[j] * c[j] / below[j]
            if score > top:
                index, top = j, score
    return index, top


@jit
def pursue_many(K, small, fitting, tol, least, chosen, path, first, last):  # type: ignore[no-untyped-def]
    """
    Fit problems first..last-1; see `corank.models.pursuit.path` for the algorithm.

    K (N, N): Gram matrix.
    small: the problems.
    fitting: BASIC, BACK or PRE.
    tol: a step that lowers J by at most this share of its initial value is not taken.
    least: shares of its squared norm that a candidate must have in L̃, and outside the span of the chosen columns.
    chosen (B, P): receives row numbers of K, -1 after the last step.
    path (B, P, P): receives the coefficients of the first p terms in ``path[b, p - 1]``, the last model repeated to the
        end; for BASIC, whose coefficients do not change, those of all terms.
    first, last: the range of problems.
    """
    item = np.uint64(1)
    P = chosen.shape[1]
    for b in range(np.uint64(first), np.uint64(last)):
        begin = small.starts[b]
        n = small.starts[b + item] - begin
        mix, factor = small.mix, small.factor[b]
        D = np.empty((n, n))
        for i in range(n):
            for k in range(n):
                D[i, k] = K[small.rows[begin + i], small.rows[begin + k]]
        y = small.y[begin : begin + n].copy()
        if mix == 0.0:
            y -= y.mean()
        v, c, w, u, Lu = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
        squares = np.empty(n)
        Q, R, t = np.empty((P, n)), np.zeros((P, P)), np.zeros(P)
        _weigh(y, v, mix, factor)
        J = _dot(y, v)
        _squares(D, mix, factor, least[0], squares)
        if mix == 0.0:
            # L ignores a column's mean, but normalising directions would magnify it
            for k in range(n):
                mean = 0.0
                for i in range(n):
                    mean += D[i, k] / n
                for i in range(n):
                    D[i, k] -= mean
        outside = squares.copy()
        _transposed(D, v, c)
        chosen[b] = -1
        path[b] = 0.0
        p = 0
        while p < P:
            index, gain = _best(c, squares, outside if fitting == PRE else squares, outside)
            if index < 0:
                break
            j = np.uint64(index)
            for i in range(n):
                u[i] = D[i, j]
            if fitting == BASIC:
                if not gain > tol * J:
                    break
                t[p] = c[j] / squares[j]
                _weigh(u, Lu, mix, factor)
                for i in range(n):
                    v[i] -= t[p] * Lu[i]
                _transposed(D, v, c)
                path[b, 0, p] = t[p]
            else:
                R[:p, p] = 0.0
                for _ in range(2):
                    _weigh(u, Lu, mix, factor)
                    for q in range(p):
                        h = _dot(Q[q], Lu)
                        R[q, p] += h
                        for i in range(n):
                            u[i] -= h * Q[q, i]
                _weigh(u, Lu, mix, factor)
                norm = np.sqrt(max(_dot(u, Lu), 0.0))
                if not norm * norm > least[1] * squares[j]:
                    outside[j] = 0.0
                    continue
                R[p, p] = norm
                for i in range(n):
                    Q[p, i] = u[i] / norm
                    Lu[i] /= norm
                t[p] = _dot(Q[p], v)
                if not t[p] * t[p] > tol * J:
                    break
                _transposed(D, Lu, w)
                for i in range(n):
                    v[i] -= t[p] * Lu[i]
                    c[i] -= t[p] * w[i]
                    outside[i] -= w[i] * w[i]
                    if outside[i] <= least[1] * squares[i]:
                        outside[i] = 0.0
                outside[j] = 0.0
                for q in range(p, -1, -1):
                    a = t[q]
                    for later in range(q + 1, p + 1):
                        a -= R[q, later] * path[b, p, later]
                    path[b, p, q] = a / R[q, q]
            chosen[b, p] = small.rows[begin + j]
            p += 1
        if fitting != BASIC:
            for rest in range(max(p, 1), P):
                path[b, rest] = path[b, rest - 1]


@jit
def score_many(K, chosen, path, levels, rows, starts, out, first, last):  # type: ignore[no-untyped-def]
    """
    Write to ``out[i, p]`` the score of row i by the model of the first p terms of its problem, p = 0..P.

    K (N, N): Gram matrix.
    chosen, path: from `pursue_many`.
    levels (B,): added to the scores of each problem.
    rows, starts: problem b scores ``rows[starts[b]:starts[b + 1]]``.
    out (len(rows), P + 1): receives the scores.
    first, last: the range of problems.
    """
    item = np.uint64(1)
    P = chosen.shape[1]
    k = np.empty(P)
    for b in range(np.uint64(first), np.uint64(last)):
        n_terms = 0
        while n_terms < P and chosen[b, n_terms] >= 0:
            n_terms += 1
        for i in range(starts[b], starts[b + item]):
            for q in range(n_terms):
                k[q] = K[rows[i], np.uint64(chosen[b, q])]
            f = levels[b]
            out[i, 0] = f
            for p in range(P):
                if path.shape[1] == 1:
                    f += path[b, 0, p] * k[p] if p < n_terms else 0.0
                else:
                    f = levels[b]
                    for q in range(min(p + 1, n_terms)):
                        f += path[b, p, q] * k[q]
                out[i, p + 1] = f
