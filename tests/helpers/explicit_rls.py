"""Reference for least squares: the formulas of the papers with dense matrices."""

from __future__ import annotations

import numpy as np


def laplacian(qid, weights=None, query_weight="pairs", y=None):
    """
    Mean over the pairs of each query of (e_i − e_j)(e_i − e_j)ᵀ, pair by pair, a pair weighing c_q w_i w_j.

    Rows with negative ids, or of equal y if y is given, are not compared. Without y, a row is also a pair with itself.
    """
    n = len(qid)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    L, total = np.zeros((n, n)), 0.0
    for q in np.unique(qid[qid >= 0]):
        rows = np.flatnonzero((qid == q) & (w > 0))
        pairs = [(i, j) for i in rows for j in rows if i < j and (y is None or y[i] != y[j])]
        own = sum(w[i] * w[j] for i, j in pairs)
        size = {"pairs": 1.0, "equal": 2 * own, "rows": w[rows].sum()}[query_weight]
        if y is None and size > 0:
            total += sum(w[i] ** 2 for i in rows) / 2 / size
        for i, j in pairs:
            weight = w[i] * w[j] / size
            total += weight
            L[[i, j], [i, j]] += weight
            L[i, j] -= weight
            L[j, i] -= weight
    return L / total if total else L


def scored_laplacian(y, qid, *, ties=False, **how):
    return laplacian(np.where(np.isnan(y), -1, qid), y=None if ties else y, **how)


def unscored_laplacian(y, qid, **how):
    return laplacian(np.where(np.isnan(y), qid, -1), **how)


def preference_laplacian(n, pairs, weights):
    """Mean over given pairs, and what it asks for: L and Bᵀ1 for differences of 1."""
    B = np.zeros((len(pairs), n))
    B[np.arange(len(pairs)), pairs[:, 0]] += 1
    B[np.arange(len(pairs)), pairs[:, 1]] -= 1
    weights = np.asarray(weights, dtype=float) / np.sum(weights)
    return B.T @ (weights[:, None] * B), B.T @ weights


def dense_coefficients(K, L, y, alpha):
    """Equation (8) of the paper."""
    return np.linalg.solve(L @ K + alpha * np.eye(len(K)), L @ np.nan_to_num(y))


def sparse_coefficients(K, basis, L, y, alpha):
    """Equation (11) of the paper, as least squares so that a poor basis does no harm."""
    B = K[:, basis]
    return np.linalg.lstsq(B.T @ L @ B + alpha * K[np.ix_(basis, basis)], B.T @ L @ np.nan_to_num(y), rcond=None)[0]


def co_coefficients(grams, bases, L, L_unscored, y, alpha, coupling):
    """Equation (18) of the paper for means over pairs, where 4 coupling stands for its 2ν: a block for each view."""
    blocks = [K[:, basis] for K, basis in zip(grams, bases, strict=True)]
    M, target = len(blocks), np.nan_to_num(y)
    rows = []
    for v, B in enumerate(blocks):
        row = []
        for u, other in enumerate(blocks):
            if u == v:
                own = B.T @ L @ B + alpha * grams[v][np.ix_(bases[v], bases[v])]
                row.append(own + 4 * coupling * (M - 1) * B.T @ L_unscored @ B)
            else:
                row.append(-4 * coupling * B.T @ L_unscored @ other)
        rows.append(row)
    e = np.concatenate([B.T @ L @ target for B in blocks])
    a = np.linalg.lstsq(np.block(rows), e, rcond=None)[0]
    ends = np.cumsum([B.shape[1] for B in blocks])[:-1]
    return np.split(a, ends)


def order_of_folds(X, y, weights=None, prior=None):
    """Order rows by score, weight, prior and columns: every n-th row is a fold."""
    n = len(y)
    w, s = np.ones(n) if weights is None else weights, np.zeros(n) if prior is None else prior
    return np.array(sorted(range(n), key=lambda i: (y[i], w[i], s[i], *X[i])))
