"""Least-squares ranking with sixty decimal digits: scores that are equal in theory are equal."""

from __future__ import annotations

from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np

DIGITS = 60
# what is left of a pivot, or of a difference of two scores, that is none
NOTHING = Decimal(10) ** -30


def long(values):
    """Floats as they are, without rounding."""
    return np.vectorize(Decimal, otypes=[object])(np.asarray(values, dtype=float))


def gram(X, kernel, gamma=None):
    """Similarities of all rows; Gaussian where there is a gamma."""
    with localcontext(prec=DIGITS):
        rows = long(X)
        if kernel == "linear":
            return rows @ rows.T
        return np.array([[(-Decimal(gamma) * ((a - b) ** 2).sum()).exp() for b in rows] for a in rows])


def solve(A, b):
    """Solve A x = b, A symmetric and semidefinite and b in its range, by elimination with the largest pivot first."""
    A, b, n = A.copy(), b.copy(), len(b)
    order, x = [], np.full(n, Decimal(0))
    left = list(range(n))
    scale = max((A[i, i] for i in left), default=Decimal(0))
    while left:
        p = max(left, key=lambda i: A[i, i])
        if A[p, p] <= NOTHING * scale:
            break
        left.remove(p)
        order.append(p)
        for i in left:
            factor = A[i, p] / A[p, p]
            if factor:
                A[i, left] -= factor * A[p, left]
                b[i] -= factor * b[p]
    for at in range(len(order) - 1, -1, -1):
        p, later = order[at], order[at + 1 :]
        x[p] = (b[p] - sum((A[p, j] * x[j] for j in later), Decimal(0))) / A[p, p]
    return x


def laplacian(y, qid, query_weight="pairs", ties=False, weights=None):
    """
    Sum over compared pairs of (e_i − e_j)(e_i − e_j)ᵀ, and the weight that makes it a mean.

    As in `explicit_rls.laplacian`; rows with y = NaN are not compared.
    """
    n = len(y)
    w = long(np.ones(n) if weights is None else weights)
    L, total = np.full((n, n), Decimal(0)), Decimal(0)
    for q in np.unique(qid):
        rows = np.flatnonzero((qid == q) & ~np.isnan(y))
        pairs = [(i, j) for i in rows for j in rows if i < j and (ties or y[i] != y[j])]
        own = sum((w[i] * w[j] for i, j in pairs), Decimal(0))
        size = {"pairs": Decimal(1), "equal": 2 * own, "rows": w[rows].sum()}[query_weight]
        if ties and size > 0:
            total += sum((w[i] ** 2 for i in rows), Decimal(0)) / 2 / size
        for i, j in pairs:
            weight = w[i] * w[j] / size
            total += weight
            for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                L[a, b] += sign * weight
    return L, total


def preferences(n, pairs, weights):
    """Mean over given pairs of (e_a − e_b)(e_a − e_b)ᵀ, and what it asks for."""
    w = long(weights)
    L, side, total = np.full((n, n), Decimal(0)), np.full(n, Decimal(0)), w.sum()
    for (a, b), weight in zip(pairs, w / total if total else w, strict=True):
        for i, j, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
            L[i, j] += sign * weight
        side[a] += weight
        side[b] -= weight
    return L, side


def scores(views, L, side, alpha, coupling=0.0, L_unscored=None):
    """
    Mean of the views' scores of all rows, from equation (18) of the paper for means over pairs.

    views: Gram matrix of all rows and numbers of the basis rows, for each view.
    side: L y, or what preferences ask for.
    """
    with localcontext(prec=DIGITS):
        alpha, four, M = Decimal(alpha), 4 * Decimal(coupling), len(views)
        blocks = [K[:, basis] for K, basis in views]
        rows = []
        for v, (K, basis) in enumerate(views):
            B, row = blocks[v], []
            for u, other in enumerate(blocks):
                part = np.full((B.shape[1], other.shape[1]), Decimal(0))
                if M > 1 and L_unscored is not None and coupling:
                    part = four * ((M - 1) if u == v else -1) * (B.T @ L_unscored @ other)
                if u == v:
                    part = part + B.T @ L @ B + alpha * K[np.ix_(basis, basis)]
                row.append(part)
            rows.append(row)
        a = solve(np.block(rows), np.concatenate([B.T @ side for B in blocks]))
        ends = np.cumsum([B.shape[1] for B in blocks])[:-1]
        found = [B @ own for B, own in zip(blocks, np.split(a, ends), strict=True)]
        return sum(found[1:], found[0]) / M


def ranked(f, size):
    """Return integer ranks of long scores, equal for equal scores, relative to their size."""
    with localcontext(prec=DIGITS):
        order = sorted(range(len(f)), key=lambda i: f[i])
        out = np.zeros(len(f))
        for before, i in pairwise(order):
            out[i] = out[before] + (f[i] - f[before] > NOTHING * Decimal(size))
        return out
