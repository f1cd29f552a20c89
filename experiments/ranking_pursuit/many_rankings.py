"""Many small rankings: a path of kernel RankSVMs, and the scores and errors of many models."""

from __future__ import annotations

import numpy as np

from corank.core.jit import jit


@jit
def _active(f, y, L, direction):  # type: ignore[no-untyped-def]
    """Write the Laplacian of pairs with a margin below 1 and the sum of their directions; return Σ ½ (1 − margin)²."""
    n = len(f)
    L[:, :] = 0.0
    direction[:] = 0.0
    loss = 0.0
    for i in range(n):
        for j in range(n):
            if y[i] > y[j] and f[i] - f[j] < 1.0:
                loss += 0.5 * (1.0 - f[i] + f[j]) ** 2
                L[i, i] += 1.0
                L[j, j] += 1.0
                L[i, j] -= 1.0
                L[j, i] -= 1.0
                direction[i] += 1.0
                direction[j] -= 1.0
    return loss


@jit
def svm_path(K, y, alphas, coefs, partners):  # type: ignore[no-untyped-def]
    """
    Solve the kernel RankSVM of a small problem for several penalties, by Newton's method with all pairs.

    Minimises mean_P ½ max(0, 1 − (f_i − f_j))² + alpha/2 aᵀKa, f = Ka. For fixed active pairs, the
    optimum solves (alpha I + L_A K/m) a = p_A/m, L_A their Laplacian and p_A the sum of e_i − e_j.

    Parameters
    ----------
    K : array of shape (n, n)
        Gram matrix.
    y : array of float64, shape (n,)
        Scores.
    alphas : array of float64, shape (C,)
        Penalties, large to small: each optimum starts the next.
    coefs : array of shape (n, C)
        Receives a.
    partners : array of shape (n, C)
        Receives the number of active pairs of each row.
    """
    n = len(y)
    m = 0.0
    for i in range(n):
        for j in range(n):
            if y[i] > y[j]:
                m += 1.0
    m = max(m, 1.0)
    a, f = np.zeros(n), np.zeros(n)
    L, direction, L_next, direction_next = np.empty((n, n)), np.empty(n), np.empty((n, n)), np.empty(n)
    for c in range(len(alphas)):
        alpha = alphas[c]
        value = _active(f, y, L, direction) / m + 0.5 * alpha * np.dot(a, f)
        for _ in range(50):
            A = np.dot(L, K) / m
            for i in range(n):
                A[i, i] += alpha
            step = np.linalg.solve(A, direction / m) - a
            moved = np.dot(K, step)
            t = 1.0
            while True:
                there = _active(f + t * moved, y, L_next, direction_next) / m
                there += 0.5 * alpha * np.dot(a + t * step, f + t * moved)
                if there <= value or t < 1e-6:
                    break
                t *= 0.5
            a, f = a + t * step, f + t * moved
            settled = np.array_equal(L, L_next) or value - there <= 1e-12 * value
            value = there
            L, L_next, direction, direction_next = L_next, L, direction_next, direction
            if settled:
                break
        coefs[:, c] = a
        for i in range(n):
            partners[i, c] = L[i, i]


@jit
def score_alike(K, coefs):  # type: ignore[no-untyped-def]
    """
    Return K @ coefs, with a fixed order of summation: equal rows get equal scores, which BLAS does not guarantee.

    Parameters
    ----------
    K : array of shape (m, n)
        Similarities.
    coefs : array of shape (n, C)
        Coefficients, one column for each model.

    Returns
    -------
    array of shape (m, C)
        Scores.
    """
    out = np.zeros((K.shape[0], coefs.shape[1]))
    for i in range(K.shape[0]):
        for j in range(K.shape[1]):
            for c in range(coefs.shape[1]):
                out[i, c] += K[i, j] * coefs[j, c]
    return out


@jit
def errors_many(scores, y, starts, disagreement, squares, first, last):  # type: ignore[no-untyped-def]
    """
    Write the disagreement error (ties count ½) and the mean squared error of each problem and column.

    Visits every pair, which is faster than sorting for problems of some tens of rows and many columns.

    Parameters
    ----------
    scores : array of shape (n, C)
        Scores by C models.
    y : array of shape (n,)
        True scores.
    starts : array of uint64
        Problem b has rows starts[b]..starts[b + 1] - 1.
    disagreement, squares : arrays of shape (B, C)
        Receive the errors; the disagreement is NaN if all scores of a problem are equal.
    first, last : int
        The range of problems.
    """
    item = np.uint64(1)
    C = np.uint64(scores.shape[1])
    wrong, square = np.empty(scores.shape[1]), np.empty(scores.shape[1])
    for b in range(np.uint64(first), np.uint64(last)):
        wrong[:] = 0.0
        square[:] = 0.0
        pairs = 0.0
        for i in range(starts[b], starts[b + item]):
            for c in range(C):
                square[c] += (y[i] - scores[i, c]) ** 2
            for j in range(starts[b], starts[b + item]):
                if y[i] > y[j]:
                    pairs += 1.0
                    for c in range(C):
                        u, v = scores[i, c], scores[j, c]
                        # 1 where lower, ½ where equal or NaN; without branches, so that the loop vectorises
                        wrong[c] += (0.5 if u < v else 0.0) + (0.0 if u > v else 0.5)
        n = starts[b + item] - starts[b]
        for c in range(C):
            disagreement[b, c] = wrong[c] / pairs if pairs > 0.0 else np.nan
            squares[b, c] = square[c] / n
